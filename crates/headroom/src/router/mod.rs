//! Runs a router, or something that belongs to one, until it is asked to stop.

mod api;
mod api_client;
mod args;
mod http;
mod nats;
mod populate;
mod tcp;

use std::path::Path;

use anyhow::{Context, Result};
use backend::{self, BackendSettings};
use document::Secret;
use tokio::runtime::{Builder, Runtime};

pub(crate) use api_client::put_over;
use args::StaticArgs;
pub(crate) use args::{ApiClientArgs, RouterCommand, body_size};
pub(crate) use nats::user as nats_user;

use crate::cells::{ended, logger, on_signal};

/// Threads of the control plane. Data paths have threads of their own.
const CONTROL_THREADS: usize = 2;

/// How much nicer than its data path the control plane of a router is. Linux gives a tenth
/// of a processor to a thread that shares it with one that is 10 less nice: a burst of
/// heartbeats does not hold up requests, and a flood of requests does not let routes expire.
const CONTROL_NICENESS: i32 = 10;

/// Serves until a signal ends it.
pub(crate) fn serve(command: RouterCommand) -> Result<()> {
    match command {
        RouterCommand::Http(args) => http::serve(&args),
        RouterCommand::Tcp(args) => tcp::serve(&args),
        RouterCommand::Api(args) => api::serve(&args),
        RouterCommand::Populate(args) => populate::populate(&args),
        RouterCommand::Static(args) => serve_static(&args),
        RouterCommand::Nats(args) => nats::serve(&args),
    }
}

/// For what does its work on the runtime's threads.
fn runtime() -> Result<Runtime> {
    built(&mut builder())
}

/// For a router, whose data path has threads of its own: those of the runtime stand back.
/// The data path must be started on the thread that blocks on the runtime, since threads
/// inherit how nice they are.
fn control_runtime() -> Result<Runtime> {
    built(builder().on_thread_start(|| {
        // Of this thread only. Without it, bursts of registrations delay requests.
        let _ = rustix::process::nice(CONTROL_NICENESS);
    }))
}

fn builder() -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(CONTROL_THREADS).enable_all();
    builder
}

fn built(builder: &mut Builder) -> Result<Runtime> {
    builder.build().context("start the runtime")
}

/// Certificate and key of the static backend.
fn static_tls(args: &StaticArgs) -> Result<Option<(String, Secret)>> {
    let read = |path: &Path, what: &str| {
        std::fs::read_to_string(path)
            .with_context(|| format!("read the {what} of TLS from {}", path.display()))
    };
    match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => {
            let certificate = read(certificate, "certificate")?;
            Ok(Some((certificate, read(key, "key")?.into())))
        }
        _ => Ok(None),
    }
}

fn serve_static(args: &StaticArgs) -> Result<()> {
    let settings = BackendSettings {
        listen: args.listen,
        body_bytes: args.size,
        threads: args.threads.map(usize::from),
        id: args.id.clone(),
        control: args.control,
        tls: static_tls(args)?,
    };
    runtime()?.block_on(net::local(async {
        let shutdown = on_signal()?;
        let logger = logger("static", &args.log)?;
        ended(
            &logger,
            backend::run(settings, logger.clone(), shutdown).await,
        )
    }))
}
