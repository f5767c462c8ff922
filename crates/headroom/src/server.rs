//! What every server that this program can be has: threads, a log, and signals that end it.

use anyhow::{Context, Result};
use net::Shutdown;
use telemetry::{Logger, Sink};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::LogArgs;

/// Threads of a control plane. Data paths have threads of their own.
const CONTROL_THREADS: usize = 2;

/// How much nicer than its data path the control plane of a router is. Linux gives a tenth
/// of a processor to a thread that shares it with one that is 10 less nice: a burst of
/// heartbeats does not hold up requests, and a flood of requests does not let routes expire.
const CONTROL_NICENESS: i32 = 10;

/// A thread for each processor.
pub(crate) fn runtime() -> Result<Runtime> {
    built(&mut Builder::new_multi_thread())
}

/// Threads for a control plane, or for what has little to do.
pub(crate) fn control_runtime() -> Result<Runtime> {
    built(Builder::new_multi_thread().worker_threads(CONTROL_THREADS))
}

/// For a router, whose data path has threads of its own: those of the runtime stand back.
/// The data path must be started on the thread that blocks on the runtime, since threads
/// inherit how nice they are.
pub(crate) fn nice_runtime() -> Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    built(builder.worker_threads(CONTROL_THREADS).on_thread_start(|| {
        // Of this thread only. Without it, bursts of registrations delay requests.
        let _ = rustix::process::nice(CONTROL_NICENESS);
    }))
}

fn built(builder: &mut Builder) -> Result<Runtime> {
    builder.enable_all().build().context("start the runtime")
}

/// A log on standard output.
pub(crate) fn logger(source: &str, args: &LogArgs) -> Result<Logger> {
    let sink = Sink::stdout().context("start the writer of the log")?;
    Ok(Logger::new(source, sink, args.log_level.into()))
}

/// Lines that still wait are written before the process ends.
pub(crate) fn ended<E>(logger: &Logger, result: Result<(), E>) -> Result<()>
where
    anyhow::Error: From<E>,
{
    logger.sink().flush();
    result.map_err(Into::into)
}

/// Asks for the end at SIGTERM or SIGINT.
pub(crate) fn on_signal() -> Result<Shutdown> {
    let mut interrupt = signal(SignalKind::interrupt()).context("watch for SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("watch for SIGTERM")?;
    let (ask, shutdown) = net::shutdown();
    tokio::spawn(net::boxed(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        // The other side is gone only when the process ends anyway.
        let _ = ask.send(true);
        // Dropping the sender would be read as a stop too; it lives until here.
    }));
    Ok(shutdown)
}
