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

pub(crate) use api_client::put_over;
use args::StaticArgs;
pub(crate) use args::{ApiClientArgs, RouterCommand, body_size};
pub(crate) use nats::user as nats_user;

use crate::server::{control_runtime, ended, logger, on_signal};

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
    control_runtime()?.block_on(net::local(async {
        let shutdown = on_signal()?;
        let logger = logger("static", &args.log)?;
        let result = backend::run(settings, logger.clone(), shutdown).await;
        ended(&logger, result)
    }))
}
