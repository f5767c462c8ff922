//! Runs a router, or something that belongs to one, until it is asked to stop.

mod api;
mod args;
mod http;
mod nats;
mod populate;
mod tcp;

use std::path::Path;

use anyhow::{Context, Result};
use routing::backend::{self, BackendSettings};
use routing::secret::Secret;

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
    runtime()?.block_on(async {
        let shutdown = on_signal()?;
        let logger = logger("static", &args.log)?;
        ended(
            &logger,
            backend::run(settings, logger.clone(), shutdown).await,
        )
    })
}
