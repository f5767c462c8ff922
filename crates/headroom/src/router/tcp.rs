//! `headroom router tcp`.

use anyhow::{Context, Result, ensure};
use net::Shutdown;
use routing::api_feed;
use routing::tcp::settings_file::Loaded;
use routing::tcp::{
    self, CHANGES, Change, FixedRoute, TcpSettings, fixed, routes_file, settings_file,
};
use routing_api::client::{ApiClient, ClientSettings};
use telemetry::{Fields, Logger};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::api_client;
use super::args::TcpArgs;
use crate::output;
use crate::server::{ended, logger, nice_runtime, on_signal};

/// Serves until a signal.
pub(super) fn serve(args: &TcpArgs) -> Result<()> {
    let Loaded { settings, routes } = settings(args)?;
    if args.print_settings {
        return output::print(&settings_file::print(&settings));
    }
    let routes = fixed_routes(args, routes)?;
    ensure!(
        routes.is_empty() || settings.routing_api.is_none(),
        "there are fixed routes (--route, --routes or [[route]]), and a routing API (--api or \
         [routing_api]); expected one of both, since each takes away the other's routes"
    );
    // What is wrong with it is told before anything is listened on.
    if let Some(api) = &settings.routing_api {
        ApiClient::new(api)?;
    }
    nice_runtime()?.block_on(net::local(async {
        let shutdown = on_signal()?;
        let logger = logger("tcp-router", &args.log)?;
        let (changes, told) = mpsc::channel(CHANGES);
        if !routes.is_empty() {
            let session = logger.session("fixed-routes");
            let kept = fixed::keep(routes, settings.stale_after, changes.clone(), session);
            tokio::spawn(net::boxed(kept));
        }
        if let Some(api) = settings.routing_api.clone() {
            let segments = settings.isolation_segments.clone();
            let feed = follow_api(api, segments, changes.clone(), &logger, shutdown.clone());
            tokio::spawn(net::boxed(feed));
        }
        let result = tcp::run(settings, told, logger.clone(), drain()?, stop(shutdown)).await;
        // The router took it for an end if the last sender went away before.
        drop(changes);
        ended(&logger, result)
    }))
}

/// The routes of the settings, of the command line and of the file that it names.
fn fixed_routes(args: &TcpArgs, mut routes: Vec<FixedRoute>) -> Result<Vec<FixedRoute>> {
    if let Some(path) = &args.routes {
        routes.extend(routes_file::read(path)?.into_iter().map(FixedRoute::from));
    }
    routes.extend(args.route.iter().cloned());
    Ok(routes)
}

/// Follows the routing API until `shutdown`.
fn follow_api(
    api: ClientSettings,
    segments: Vec<String>,
    changes: mpsc::Sender<Change>,
    logger: &Logger,
    shutdown: Shutdown,
) -> impl Future<Output = ()> + use<> {
    let logger = logger.session("routing-api");
    async move {
        let fed = api_feed::tcp::run(&api, segments, changes, logger.clone(), shutdown).await;
        if let Err(error) = fed {
            logger.error("feed-failed", &error, Fields::new());
        }
    }
}

async fn stop(mut shutdown: Shutdown) {
    shutdown.requested().await;
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
fn settings(args: &TcpArgs) -> Result<Loaded> {
    let Loaded {
        mut settings,
        routes,
    } = match &args.config {
        Some(path) => {
            settings_file::load(path).map_err(|problems| anyhow::anyhow!("\n{problems}"))?
        }
        None => Loaded {
            settings: TcpSettings::default(),
            routes: Vec::new(),
        },
    };
    if let Some(url) = &args.api {
        let api = settings.routing_api.get_or_insert_default();
        api_client::put_over(api, url, &args.client)?;
    }
    if !args.segment.is_empty() {
        settings.isolation_segments.clone_from(&args.segment);
    }
    settings.listen = args.listen.unwrap_or(settings.listen);
    settings.status = args.health.or(settings.status);
    settings.threads = args.threads.map(usize::from).or(settings.threads);
    settings.drain_wait = args.drain_wait.unwrap_or(settings.drain_wait);
    Ok(Loaded { settings, routes })
}
