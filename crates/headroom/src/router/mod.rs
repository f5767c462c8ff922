//! Runs a router, or something that belongs to one, until it is asked to stop.

mod api;
mod args;
mod http;
mod nats;
mod populate;
mod tcp;

use anyhow::{Context, Result};
use routing::backend::{self, BackendSettings};

pub(crate) use args::RouterCommand;
use args::StaticArgs;

use crate::cells::{ended, logger, on_signal};

/// Threads of the control plane. Data paths have threads of their own.
const CONTROL_THREADS: usize = 2;

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

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(CONTROL_THREADS)
        .enable_all()
        .build()
        .context("start the runtime")
}

fn serve_static(args: &StaticArgs) -> Result<()> {
    let settings = BackendSettings {
        listen: args.listen,
        body_bytes: args.size,
        threads: args.threads.map(usize::from),
        id: args.id.clone(),
        control: args.control,
    };
    runtime()?.block_on(async {
        let shutdown = on_signal()?;
        let logger = logger("static", &args.log)?;
        ended(
            &logger,
            backend::run(settings, logger.clone(), shutdown).await,
        )
    })
}
