//! `headroom router populate`.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nats::client::{ClientConfig, ServerAddress};
use net::Shutdown;
use routing::registry::populate::Progress;
use routing::registry::{PopulateSettings, populate as populate_http};
use routing_api::client::ClientSettings;
use routing_api::populate_tcp::{self, PopulateTcp};
use telemetry::{Fields, Logger};
use tokio::sync::watch;

use super::api_client;
use super::args::PopulateArgs;
use super::nats::user;
use crate::server::{control_runtime, ended, logger, on_signal};

/// Registers until a signal, or for as long as was asked for.
pub(super) fn populate(args: &PopulateArgs) -> Result<()> {
    control_runtime()?.block_on(net::local(async {
        let shutdown = ends(on_signal()?, args.length);
        let logger = logger("populate", &args.log)?;
        let result = match &args.api {
            Some(url) => tcp(args, url, logger.clone(), shutdown).await,
            None => http(args, &logger, shutdown).await,
        };
        ended(&logger, result)
    }))
}

/// A stop that also comes by itself after a while.
fn ends(mut by_signal: Shutdown, length: Option<Duration>) -> Shutdown {
    let Some(length) = length else {
        return by_signal;
    };
    let (ask, shutdown) = net::shutdown();
    tokio::spawn(net::boxed(async move {
        tokio::select! {
            () = by_signal.requested() => {}
            () = tokio::time::sleep(length) => {}
        }
        // The other side is gone only when everything is over.
        let _ = ask.send(true);
    }));
    shutdown
}

async fn http(args: &PopulateArgs, logger: &Logger, mut shutdown: Shutdown) -> Result<()> {
    let mut servers = Vec::new();
    for server in &args.nats {
        servers.push(server.parse::<ServerAddress>()?);
    }
    let settings = PopulateSettings {
        client: ClientConfig {
            servers,
            user: user(
                args.nats_user.as_deref(),
                args.nats_password_file.as_deref(),
            )?,
            name: "headroom-populate".to_owned(),
            ..ClientConfig::default()
        },
        routes: u64::from(args.routes),
        prefix: args.prefix.clone(),
        domain: args.domain.clone().unwrap_or_default(),
        backends: args.backend.clone(),
        pause: args.pause,
        every: args.every,
        once: args.once,
    };
    let (progress, told) = watch::channel(Progress::default());
    tokio::spawn(net::boxed(log_registered(
        told,
        args.routes,
        logger.clone(),
    )));
    populate_http(settings, &progress, shutdown.requested()).await?;
    let Progress {
        rounds, messages, ..
    } = *progress.borrow();
    let fields = Fields::new()
        .and("rounds", rounds)
        .and("messages", messages);
    logger.info("ended", fields);
    Ok(())
}

/// Logs once that every route was registered.
async fn log_registered(mut told: watch::Receiver<Progress>, routes: u32, logger: Logger) {
    // An error means that it ended before.
    if told.wait_for(|progress| progress.rounds > 0).await.is_ok() {
        logger.info("registered", Fields::new().and("routes", routes));
    }
}

async fn tcp(args: &PopulateArgs, url: &str, logger: Logger, shutdown: Shutdown) -> Result<()> {
    let [backend] = args.backend.as_slice() else {
        anyhow::bail!("--api registers one backend for all ports; expected one --backend");
    };
    let first_port = args.first_port.unwrap_or_default();
    let routes = u16::try_from(args.routes).ok();
    ensure!(
        routes.is_some(),
        "--routes: there are at most 65535 ports, and {} were asked for",
        args.routes
    );
    let mut api = ClientSettings::default();
    api_client::put_over(&mut api, url, &args.client)?;
    let what = PopulateTcp {
        api,
        isolation_segment: args.segment.clone(),
        router_group: args.router_group.clone(),
        first_port,
        routes: routes.unwrap_or_default(),
        backend: *backend,
        ttl: None,
        every: args.every,
        once: args.once,
    };
    populate_tcp::run(&what, logger, shutdown)
        .await
        .context("register TCP routes")
}
