//! The route emitter: tells routers where instances run.
//!
//! ```text
//! BBS ── events, syncs ──▶ table (pure) ── changes, rounds ──▶ NATS: routers, service discovery
//!                                                       └────▶ routing API: TCP routers
//! ```
//!
//! # What always holds
//!
//! - A route is taken from routers only when the BBS says that its instance has ended, is not
//!   routable or is not wanted there: not because the BBS is away, and not because of what it
//!   lacks in a domain that is not fresh.
//! - Nothing waits for NATS, the routing API or the BBS: who was away is told everything anew.

mod api;
mod cadence;
mod emitter;
mod events;
mod metrics;
mod nats;
pub mod registration;
mod source;
pub mod table;
mod tcp;
mod unregistrations;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ::nats::client::ClientConfig;
use diego::Bbs;
use net::tls::{Files, TlsError};
use net::{Client, ClientOptions, Limits, Shutdown};
use telemetry::{Fields, Logger};
use tokio::task::JoinHandle;

use crate::descriptors;
use crate::lock::Lock;
use emitter::{Emitter, Parts};
use metrics::Metrics;
use source::Source;
use table::{Audience, Table, TableSettings};
use tcp::{Carrier, TcpRoutes};
pub use tcp::{RoutingApi, RoutingApiError};
use unregistrations::Unregistrations;

/// Settings of a route emitter. Times are those of Diego's.
#[derive(Clone)]
pub struct Config {
    /// Where it answers health checks and says its numbers; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The BBS, for instance `http://127.0.0.1:8889`.
    pub bbs: String,
    /// Certificate shown to the BBS; needed for an `https` address.
    pub bbs_tls: Option<Files>,
    /// Only instances of this cell; empty: of all.
    pub cell_id: String,
    /// How NATS is reached.
    pub nats: ClientConfig,
    /// Certificate shown to NATS, whose servers then must speak TLS.
    pub nats_tls: Option<Files>,
    /// Longest time between two syncs.
    pub sync_interval: Duration,
    /// Longest wait for an answer of the BBS.
    pub communication_timeout: Duration,
    /// What the table is told.
    pub table: TableSettings,
    /// Whether service discovery is told of internal routes.
    pub internal_routes: bool,
    /// The routing API, which is told of TCP routes.
    pub routing_api: Option<Arc<dyn RoutingApi>>,
    /// How long a TCP route lives that is not written again.
    pub tcp_route_ttl: Duration,
    /// Time between two sends of an unregistration.
    pub unregistration_interval: Duration,
    /// How often an unregistration is sent again.
    pub unregistration_send_count: u32,
    /// Several may be started, of which the one that holds the lock at the BBS is active.
    pub standby: bool,
}

impl fmt::Debug for Config {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Config")
            .field("listen", &self.listen)
            .field("bbs", &self.bbs)
            .field("cell_id", &self.cell_id)
            .field("nats", &self.nats.servers)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// The usual settings, for the BBS at this address and NATS as it is reached.
    pub fn new(listen: SocketAddr, bbs: impl Into<String>, nats: ClientConfig) -> Self {
        Self {
            listen,
            bbs: bbs.into(),
            bbs_tls: None,
            cell_id: String::new(),
            nats,
            nats_tls: None,
            sync_interval: Duration::from_secs(60),
            communication_timeout: Duration::from_secs(30),
            table: TableSettings::default(),
            internal_routes: false,
            routing_api: None,
            tcp_route_ttl: Duration::from_secs(120),
            unregistration_interval: Duration::from_secs(30),
            unregistration_send_count: 20,
            standby: false,
        }
    }
}

/// Why a route emitter could not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be listened on.
    #[error("start the route emitter: {0}")]
    Listen(#[from] std::io::Error),
    /// The certificates cannot be used.
    #[error("start the route emitter: {0}")]
    Tls(#[from] TlsError),
    /// The BBS cannot be reached at such an address.
    #[error("start the route emitter: use the address of the BBS: {0}")]
    Bbs(#[source] net::ClientError),
    /// No server of NATS is named.
    #[error("start the route emitter: no server of NATS is named; expected one or more")]
    NoNats,
    /// It is not the active one any more.
    #[error(
        "the lock was lost: it could not be renewed, or another route emitter holds it; start this one again to wait for it"
    )]
    LockLost,
}

/// A route emitter at work.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    server: JoinHandle<()>,
    emitter: JoinHandle<bool>,
}

impl Running {
    /// Where it answers health checks.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until it has stopped, which the shutdown given to [`start`] asks for.
    ///
    /// # Errors
    /// When it lost its lock before.
    pub async fn stopped(self) -> Result<(), Error> {
        // A panic is reported by the runtime; it ends all the same.
        let lost = self.emitter.await.unwrap_or(false);
        if lost {
            return Err(Error::LockLost);
        }
        let _ = self.server.await;
        Ok(())
    }
}

/// Runs a route emitter until `shutdown`.
///
/// # Errors
/// When it cannot start or loses its lock; see [`Error`].
pub async fn run(config: Config, logger: Logger, shutdown: Shutdown) -> Result<(), Error> {
    start(config, logger, shutdown).await?.stopped().await
}

/// Starts a route emitter and returns once it answers health checks. One that stands by does so
/// before it holds the lock.
///
/// # Errors
/// When it cannot start; see [`Error`].
pub fn start(
    config: Config,
    logger: Logger,
    shutdown: Shutdown,
) -> net::BoxFuture<Result<Running, Error>> {
    Box::pin(start_unboxed(config, logger, shutdown))
}

async fn start_unboxed(
    mut config: Config,
    logger: Logger,
    shutdown: Shutdown,
) -> Result<Running, Error> {
    if config.nats.servers.is_empty() {
        return Err(Error::NoNats);
    }
    if let Some(files) = &config.nats_tls {
        config.nats.tls = Some(net::tls::client(files)?);
    }
    let tls = config.bbs_tls.as_ref().map(net::tls::client).transpose()?;
    let client = Client::new(ClientOptions {
        connections_per_host: 16,
        answer_within: config.communication_timeout,
        tls,
        ..ClientOptions::default()
    });
    client.check(&config.bbs).map_err(Error::Bbs)?;
    let lock = config.standby.then(|| {
        let (client, logger) = (client.clone(), logger.session("lock"));
        // The key as the original has it, so that both may stand by for each other.
        Lock::new(
            client,
            &config.bbs,
            "route_emitter",
            "route emitter",
            logger,
        )
    });
    let bbs = Bbs::new(client, &*config.bbs);
    let listener = net::bind(config.listen).await?;
    let address = listener.local_addr()?;
    let metrics = Arc::new(Metrics::default());
    let handler = Arc::new(api::Api {
        metrics: Arc::clone(&metrics),
        bbs: bbs.clone(),
        logger: logger.session("request"),
    });
    let mut limits = Limits::default();
    limits.connections = descriptors::connections(limits.connections, &logger);
    let server = net::serve(listener, None, limits, handler, shutdown.clone());
    logger.info("started", Fields::new().and("address", address.to_string()));
    let work = work(config, bbs, lock, metrics, logger, shutdown);
    Ok(Running {
        address,
        server: tokio::spawn(net::boxed(server)),
        emitter: tokio::spawn(net::boxed(work)),
    })
}

/// Waits for the lock, if there is one, and works until `shutdown`; true when the lock was lost.
async fn work(
    config: Config,
    bbs: Bbs,
    lock: Option<Lock>,
    metrics: Arc<Metrics>,
    logger: Logger,
    shutdown: Shutdown,
) -> bool {
    let mut held = None;
    if let Some(lock) = lock {
        let Some(expires) = lock.acquire(shutdown.clone()).await else {
            return false;
        };
        held = Some(lock.keep(expires, shutdown.clone()));
    }
    metrics.lock_held.set(true);
    let lost = async {
        match held {
            Some(held) => held.await,
            None => std::future::pending().await,
        }
    };
    let emit = emit(config, bbs, Arc::clone(&metrics), logger, shutdown);
    tokio::pin!(lost, emit);
    let lost = tokio::select! {
        lost = &mut lost => {
            // Given up because all ends; what is under way ends as well.
            if !lost {
                emit.await;
            }
            lost
        }
        () = &mut emit => false,
    };
    metrics.lock_held.set(false);
    lost
}

async fn emit(config: Config, bbs: Bbs, metrics: Arc<Metrics>, logger: Logger, shutdown: Shutdown) {
    let mut audiences = vec![Audience::External];
    if config.internal_routes {
        audiences.push(Audience::Internal);
    }
    let source = Source {
        bbs,
        cell_id: config.cell_id,
    };
    let news = events::follow(source.clone(), logger.session("watcher"));
    let nats_logger = logger.session("nats");
    let link = nats::connect(config.nats, &audiences, Arc::clone(&metrics), nats_logger);
    let tcp = config.routing_api.map(|api| {
        let routes = Arc::new(TcpRoutes::default());
        let carrier = Carrier {
            routes: Arc::clone(&routes),
            api,
            ttl: config.tcp_route_ttl,
            metrics: Arc::clone(&metrics),
            logger: logger.session("tcp"),
        };
        (routes, tokio::spawn(net::boxed(carrier.run())))
    });
    let (tcp, carrier) = tcp.unzip();
    let (interval, count) = (
        config.unregistration_interval,
        config.unregistration_send_count,
    );
    let emitter = Emitter::new(Parts {
        table: Table::new(config.table),
        source,
        link,
        tcp,
        unregistrations: Unregistrations::new(interval, count),
        audiences,
        sync_interval: config.sync_interval,
        metrics,
        logger: logger.session("watcher"),
    });
    emitter.run(news, shutdown).await;
    if let Some(carrier) = carrier {
        carrier.abort();
    }
}
