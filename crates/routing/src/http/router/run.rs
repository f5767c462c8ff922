//! The life of a router, from its settings to its end.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use telemetry::{Fields, Logger};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior};

use super::drain::drain;
use super::feeds::{FeedError, Feeding, Feeds};
use super::log_losses::{self, LogLosses};
use super::servers;
use super::settings::RouterSettings;
use super::shrink_detector::ShrinkDetector;
use crate::descriptors;
use crate::http::counters::Counters;
use crate::http::engine::{self, Engine, EngineConfig};
use crate::http::settings::HttpSettings;
use crate::http::status::{Health, Phase};
use crate::peer_tls::TlsPartError;
use crate::table::Table;

/// Descriptors of listeners, pollers, feeds, status servers and logs, at the least.
const OWN_DESCRIPTORS: usize = 32;

/// What a router can be told while it runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Signal {
    /// Serve on for a while, then end with the last request (SIGUSR1).
    Drain,
    /// End now (SIGTERM, SIGINT).
    Stop,
    /// Open the access log anew and read the file of routes again (SIGHUP).
    Reload,
    /// The same, and take these settings as far as that is possible without a restart.
    Settings(Box<RouterSettings>),
}

/// Why a router did not start, or ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum RouterError {
    /// A status or metrics address cannot be listened on. The error names it.
    #[error(transparent)]
    Listen(io::Error),
    /// The data path cannot be started.
    #[error(transparent)]
    Engine(#[from] engine::StartError),
    /// Certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsPartError),
    /// A feed cannot be started, or ended for ever.
    #[error(transparent)]
    Feed(#[from] FeedError),
    /// The file with the process's id cannot be written.
    #[error("write the process id to {}: {cause}", path.display())]
    PidFile {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
}

/// What the parts of a router share.
pub(super) struct Parts {
    pub(super) settings: RouterSettings,
    pub(super) table: Arc<Table>,
    pub(super) counters: Arc<Counters>,
    pub(super) health: Arc<Health>,
    pub(super) logger: Logger,
    pub(super) started: Instant,
    /// `<index>-<uuid>`, as others know this router.
    pub(super) id: String,
}

/// A router that runs: its addresses, for those who started it with port 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Router {
    /// Where requests are accepted.
    pub http: Option<SocketAddr>,
    /// Where `/health` answers.
    pub status: Option<SocketAddr>,
    /// Where `/routes` answers.
    pub routes: Option<SocketAddr>,
    /// Where `/metrics` answers.
    pub metrics: Option<SocketAddr>,
    /// Where the embedded endpoint of NATS listens.
    pub nats: Option<SocketAddr>,
}

/// Runs a router until a signal ends it. `running` learns its addresses as soon as it is
/// healthy.
///
/// # Errors
/// When it cannot start, or NATS is lost for ever.
pub fn run(
    settings: RouterSettings,
    logger: Logger,
    signals: mpsc::Receiver<Signal>,
    running: watch::Sender<Router>,
) -> net::BoxFuture<Result<(), RouterError>> {
    Box::pin(run_unboxed(settings, logger, signals, running))
}

async fn run_unboxed(
    mut settings: RouterSettings,
    logger: Logger,
    mut signals: mpsc::Receiver<Signal>,
    running: watch::Sender<Router>,
) -> Result<(), RouterError> {
    keep_to_descriptors(&mut settings.http, &logger);
    engine::check(&settings.http)?;
    let _pid_file = settings.pid_file.clone().map(PidFile::write).transpose()?;
    let threads = engine::threads(&settings.http);
    let uuid = uuid::Builder::from_random_bytes(rand::random()).into_uuid();
    let parts = Arc::new(Parts {
        table: Arc::new(Table::new(settings.table.clone())),
        counters: Arc::new(Counters::new(threads)),
        health: Arc::new(Health::default()),
        logger: logger.clone(),
        started: Instant::now(),
        id: format!("{}-{uuid}", settings.index),
        settings,
    });
    // Dropped at the end, which ends the servers.
    let (_stop_servers, stopped) = net::shutdown();
    let feeds = Arc::new(Feeds::default());
    let deprecated = parts.settings.status.deprecated;
    let varz = deprecated.then(|| servers::varz(&parts, &stopped));
    let mut addresses = servers::start(&parts, &feeds, varz.as_ref(), &stopped).await?;
    let feeding = feeds.start(&parts, varz, &stopped).await?;
    addresses.nats = feeding.nats_address();
    logger.info("starting", Fields::new().and("id", &parts.id));
    if gather(parts.settings.start_delay, &mut signals).await {
        logger.info("stopped", Fields::new());
        return Ok(());
    }
    let healthy = Arc::new(AtomicBool::new(true));
    let engine = engine::start(EngineConfig {
        settings: Arc::new(parts.settings.http.clone()),
        table: Arc::clone(&parts.table),
        counters: Arc::clone(&parts.counters),
        healthy: Arc::clone(&healthy),
    })?;
    addresses.http = engine.address();
    parts.health.reach(Phase::Healthy);
    logger.info("started", started_fields(&addresses, &parts));
    // Fails only when nobody wants to know.
    let _ = running.send(addresses);
    let mut losses = LogLosses::default();
    let ended = serve(
        &parts,
        &engine,
        &feeding,
        &healthy,
        &mut signals,
        &mut losses,
    )
    .await;
    parts.health.reach(Phase::Degraded);
    stop(engine).await;
    losses.report(&parts.counters.totals(), &logger);
    logger.info("stopped", Fields::new());
    ended
}

/// A client takes a descriptor, its backend another; a stream of HTTP/2 is a pair, and so is the
/// way of a request through the router to a route service. An eighth is for everything else.
fn keep_to_descriptors(settings: &mut HttpSettings, logger: &Logger) {
    let mut each = if settings.http2 && settings.listen_tls.is_some() {
        3
    } else {
        2
    };
    if settings.route_services.hairpin {
        each += 2;
    }
    let most = |all: usize| all.saturating_sub((all / 8).max(OWN_DESCRIPTORS)) / each;
    descriptors::keep_to(&mut settings.client_connections, most, logger);
}

/// Waits while registrations come in, and says whether the router was told to end. A drain
/// is an end too: nothing was accepted yet.
async fn gather(delay: Duration, signals: &mut mpsc::Receiver<Signal>) -> bool {
    let over = tokio::time::sleep(delay);
    tokio::pin!(over);
    loop {
        tokio::select! {
            () = &mut over => return false,
            signal = signals.recv() => match signal {
                Some(Signal::Stop | Signal::Drain) | None => return true,
                Some(Signal::Reload | Signal::Settings(_)) => {}
            },
        }
    }
}

fn started_fields(addresses: &Router, parts: &Parts) -> Fields {
    let mut fields = Fields::new().and("routes", parts.table.len());
    for (name, address) in [
        ("http", addresses.http),
        ("status", addresses.status),
        ("routes-address", addresses.routes),
        ("metrics", addresses.metrics),
        ("nats", addresses.nats),
    ] {
        if let Some(address) = address {
            fields = fields.and(name, address.to_string());
        }
    }
    fields
}

/// Follows signals until one ends the router.
async fn serve(
    parts: &Arc<Parts>,
    engine: &Engine,
    feeding: &Feeding,
    healthy: &AtomicBool,
    signals: &mut mpsc::Receiver<Signal>,
    losses: &mut LogLosses,
) -> Result<(), RouterError> {
    let mut drains = parts.settings.drain;
    let mut looks = tokio::time::interval(log_losses::EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut shrink_detector = ShrinkDetector::default();
    loop {
        tokio::select! {
            _ = looks.tick() => {
                losses.report(&parts.counters.totals(), &parts.logger);
                if shrink_detector.is_over(parts.table.endpoints().max(parts.table.len())) {
                    // Threads that serve may wait for it a moment; this one need not.
                    tokio::task::spawn_blocking(processes::give_back_freed_memory);
                }
            }
            signal = signals.recv() => match signal {
                Some(Signal::Stop) | None => return Ok(()),
                Some(Signal::Drain) => {
                    healthy.store(false, Ordering::Relaxed);
                    drain(drains, &parts.health, engine, signals, &parts.logger).await;
                    return Ok(());
                }
                Some(Signal::Reload) => {
                    engine.reopen_log();
                    feeding.reload();
                }
                Some(Signal::Settings(new)) => {
                    engine.reopen_log();
                    feeding.reload();
                    if reload(parts, engine, &new) {
                        drains = new.drain;
                    }
                }
            },
            error = feeding.lost() => return Err(error.into()),
        }
    }
}

/// Takes new settings; whether they were of use.
fn reload(parts: &Parts, engine: &Engine, new: &RouterSettings) -> bool {
    let mut http = new.http.clone();
    keep_to_descriptors(&mut http, &parts.logger);
    match engine.reload(&http) {
        Ok(mut kept) => {
            kept.extend(new.restarts_for(&parts.settings));
            let fields = Fields::new().and("restart-needed-for", kept);
            parts.logger.info("settings-reloaded", fields);
            true
        }
        Err(error) => {
            parts
                .logger
                .error("settings-not-reloaded", &error, Fields::new());
            false
        }
    }
}

/// Ends the threads of the data path, off the runtime's threads.
async fn stop(engine: Engine) {
    // An error means that the runtime ends already, and the engine with it.
    let _ = tokio::task::spawn_blocking(move || engine.stop()).await;
}

/// The file with the process's id, while the process lives.
struct PidFile(PathBuf);

impl PidFile {
    fn write(path: PathBuf) -> Result<Self, RouterError> {
        match std::fs::write(&path, std::process::id().to_string()) {
            Ok(()) => Ok(Self(path)),
            Err(cause) => Err(RouterError::PidFile { path, cause }),
        }
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // It may have been taken away already.
        let _ = std::fs::remove_file(&self.0);
    }
}
