//! `headroom router tcp`.

use anyhow::{Context, Result};
use net::Shutdown;
use routing::api::client::ClientSettings;
use routing::api::feed;
use routing::tcp::{self, CHANGES, TcpSettings};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::args::TcpArgs;
use super::runtime;
use crate::cells::{ended, logger, on_signal};

/// Serves until a signal.
pub(super) fn serve(args: &TcpArgs) -> Result<()> {
    let settings = settings(args)?;
    runtime()?.block_on(async {
        let shutdown = on_signal()?;
        let logger = logger("tcp-router", &args.log)?;
        let (changes, told) = mpsc::channel(CHANGES);
        if let Some(url) = &args.api {
            let api = ClientSettings {
                url: url.clone(),
                ..ClientSettings::default()
            };
            let (logger, shutdown) = (logger.session("routing-api"), shutdown.clone());
            tokio::spawn(async move {
                let feed = feed::tcp::run(&api, Vec::new(), changes, logger.clone(), shutdown);
                if let Err(error) = feed.await {
                    logger.fatal("feed-failed", &error, telemetry::Fields::new());
                }
            });
        }
        let drain = drain()?;
        let result = tcp::run(settings, told, logger.clone(), drain, stop(shutdown)).await;
        ended(&logger, result)
    })
}

async fn stop(mut shutdown: Shutdown) {
    shutdown.asked().await;
}

/// Returns when a drain is asked for.
fn drain() -> Result<impl Future<Output = ()>> {
    let mut stream = signal(SignalKind::user_defined2()).context("watch for SIGUSR2")?;
    Ok(async move {
        if stream.recv().await.is_none() {
            std::future::pending().await
        }
    })
}

/// The settings of the file, and the flags over them.
fn settings(args: &TcpArgs) -> Result<TcpSettings> {
    let mut settings = TcpSettings::default();
    if let Some(listen) = args.listen {
        settings.listen = listen;
    }
    if args.health.is_some() {
        settings.status = args.health;
    }
    if let Some(threads) = args.threads {
        settings.threads = Some(usize::from(threads));
    }
    if let Some(wait) = args.drain_wait {
        settings.drain_wait = wait;
    }
    Ok(settings)
}
