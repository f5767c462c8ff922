//! The routing API: TCP mappings, HTTP routes and router groups, durable, with events; and
//! its client.
//!
//! ```text
//! calls ──▶ server ──▶ ledger (one thread) ──▶ store (SQLite, PostgreSQL)
//!             │           │ model, state (pure)
//!             │           ▼
//!             └──────── events ──▶ client
//! ```
//!
//! A call that was answered with success is in the database. What crosses the wire follows
//! routing-api 44661ed.

pub mod client;
mod events;
mod ledger;
mod metrics;
pub mod model;
pub mod populate_tcp;
mod server;
mod settings;
pub mod settings_file;
mod state;
mod store;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

pub use commit::StoreError;
use net::Shutdown;
use net::tls::{self, TlsError};
use telemetry::{Fields, Logger};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use events::Hub;
use ledger::{Commands, Ledger};
use metrics::Metrics;
use model::RouterGroup;
pub use server::KeyError;
use server::{Admin, Bodies, GroupLocks, Service, Status, Tokens};
pub use settings::{ApiSettings, Database, Limits, MutualTls, PostgresSettings};
use state::Command;
use store::Store;

/// Connections at once of those who ask for health and metrics.
const STATUS_CONNECTIONS: usize = 256;

/// Why a routing API cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The key of tokens cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// An address cannot be listened on.
    #[error(transparent)]
    Listen(std::io::Error),
    /// Nobody could reach it.
    #[error("start the routing API: it listens nowhere; set listen, or [mtls]")]
    Nowhere,
    /// Anybody could change routes.
    #[error(
        "listen on {0}: other machines could change routes without a token; set token_key, use [mtls], listen on a loopback address, or say open_to_all = true"
    )]
    Open(SocketAddr),
    /// Anybody could lock router groups.
    #[error("listen on {0} for the admin port: it knows no tokens; expected a loopback address")]
    OpenAdmin(SocketAddr),
    /// A group to begin with breaks a rule.
    #[error("make the router group {name:?}: {cause}")]
    Group {
        /// The group.
        name: String,
        /// The rule.
        cause: String,
    },
    /// The longest time to live is none.
    #[error("max_ttl is {0:?}; expected at least one second")]
    MaxTtl(std::time::Duration),
    /// The database could not be filled.
    #[error("make the first router groups: {0}")]
    Seed(model::ApiError),
    /// The writer ended by itself.
    #[error("the writer ended unexpectedly; the log says why")]
    Writer,
}

/// Runs a routing API until `shutdown`. While another one holds the database it waits, and
/// listens nowhere.
///
/// # Errors
/// When it cannot start, or can no longer write.
pub async fn run(
    settings: ApiSettings,
    logger: Logger,
    mut shutdown: Shutdown,
) -> Result<(), Error> {
    let retry = settings.limits.retry_interval;
    let mut told = false;
    let mut running = loop {
        let started = tokio::select! {
            started = start(settings.clone(), logger.clone()) => started,
            () = shutdown.requested() => return Ok(()),
        };
        match started {
            Err(Error::Store(error @ StoreError::Locked { .. })) if settings.can_wait() => {
                // One line, not one for each attempt.
                if !std::mem::replace(&mut told, true) {
                    let fields = Fields::new().and("cause", error.to_string());
                    logger.info("waiting-for-lock", fields);
                }
            }
            started => break started?,
        }
        tokio::select! {
            () = tokio::time::sleep(retry) => {}
            () = shutdown.requested() => return Ok(()),
        }
    };
    tokio::select! {
        () = shutdown.requested() => running.stop().await,
        result = &mut running.serving => result.unwrap_or(Err(Error::Writer)),
    }
}

/// A routing API that runs in the background.
#[derive(Debug)]
pub struct Running {
    address: Option<SocketAddr>,
    mtls_address: Option<SocketAddr>,
    admin_address: Option<SocketAddr>,
    status_address: Option<SocketAddr>,
    ask_stop: watch::Sender<bool>,
    serving: JoinHandle<Result<(), Error>>,
    commands: Commands,
}

impl Running {
    /// Where plain connections are accepted.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Where mutual TLS is spoken.
    pub fn mtls_address(&self) -> Option<SocketAddr> {
        self.mtls_address
    }

    /// Where router groups can be locked.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin_address
    }

    /// Where health and metrics answer beside the API.
    pub fn status_address(&self) -> Option<SocketAddr> {
        self.status_address
    }

    /// Ends it: event streams end, calls under way are answered, the database is closed.
    ///
    /// # Errors
    /// When the writer had ended before.
    pub async fn stop(self) -> Result<(), Error> {
        let _ = self.ask_stop.send(true);
        self.serving.await.unwrap_or(Err(Error::Writer))
    }

    /// Bounds an SQLite database to so many pages of 4 KiB; a call that does not fit then
    /// fails as it does on a full disk.
    pub async fn limit_pages(&self, pages: u32) {
        let limit = move |ledger: &mut Ledger| ledger.store.limit_pages(pages);
        self.commands.tend(limit).await;
    }
}

/// Starts a routing API; it serves when this returns.
///
/// # Errors
/// When the settings, the database, TLS or an address cannot be used.
pub fn start(settings: ApiSettings, logger: Logger) -> net::BoxFuture<Result<Running, Error>> {
    Box::pin(start_unboxed(settings, logger))
}

async fn start_unboxed(settings: ApiSettings, logger: Logger) -> Result<Running, Error> {
    settings.check()?;
    let store = Store::open(&settings.database)?;
    let key = settings.token_key.as_deref();
    let issuer = settings.token_issuer.as_deref();
    let tokens = key.map(|key| Tokens::read(key, issuer)).transpose()?;
    if tokens.is_some() && issuer.is_none() {
        let what = "tokens of every issuer with this key are taken, other identity zones of \
                    the UAA among them; token_issuer names the one to take";
        logger.info("token-issuer-unset", Fields::new().and("note", what));
    }
    let server_tls = settings.mtls.as_ref().map(|mtls| tls::server(&mtls.files));
    let server_tls = server_tls.transpose()?;
    let limits = &settings.limits;
    let metrics = Arc::new(Metrics::default());
    let hub = Arc::new(Hub::new(limits.subscriber_events));
    let ledger = Ledger {
        store,
        hub: Arc::clone(&hub),
        metrics: Arc::clone(&metrics),
        logger: logger.session("writer"),
        max_ttl: i64::try_from(settings.max_ttl.as_secs()).unwrap_or(i64::MAX / 2000),
        retry_interval: limits.retry_interval,
        tried: Instant::now(),
    };
    let writer = start_writer(ledger, ledger::limits(limits.write_within)).await?;
    seed(&writer.requests, settings.router_groups).await?;
    let group_locks = Arc::new(GroupLocks::default());
    let service = Arc::new(Service {
        group_locks: Arc::clone(&group_locks),
        state: writer.view,
        commands: writer.requests.clone(),
        hub: Arc::clone(&hub),
        metrics,
        tokens,
        bodies: Bodies::new(
            limits.body_bytes,
            limits.body_bytes_at_once,
            limits.body_within,
        ),
        logger: logger.session("request"),
    });
    let server_limits = net::Limits {
        connections: limits.connections,
        ..net::Limits::default()
    };
    let (ask_stop, asked) = net::shutdown();
    let mut servers = tokio::task::JoinSet::new();
    let (mut address, mut mtls_address) = (None, None);
    if let Some(listen) = settings.listen {
        let listener = net::bind(listen).await.map_err(Error::Listen)?;
        address = Some(listener.local_addr().map_err(Error::Listen)?);
        let (service, asked) = (Arc::clone(&service), asked.clone());
        servers.spawn(net::serve(listener, None, server_limits, service, asked));
    }
    if let Some(mtls) = &settings.mtls {
        let listener = net::bind(mtls.listen).await.map_err(Error::Listen)?;
        mtls_address = Some(listener.local_addr().map_err(Error::Listen)?);
        let (service, asked) = (Arc::clone(&service), asked.clone());
        servers.spawn(net::serve(
            listener,
            server_tls,
            server_limits,
            service,
            asked,
        ));
    }
    let mut admin_address = None;
    if let Some(listen) = settings.admin_listen {
        let listener = net::bind(listen).await.map_err(Error::Listen)?;
        admin_address = Some(listener.local_addr().map_err(Error::Listen)?);
        let admin = Arc::new(Admin {
            locks: group_locks,
            logger: logger.session("admin"),
        });
        servers.spawn(net::serve(
            listener,
            None,
            server_limits,
            admin,
            asked.clone(),
        ));
    }
    let mut status_address = None;
    if let Some(listen) = settings.status {
        let listener = net::bind(listen).await.map_err(Error::Listen)?;
        status_address = Some(listener.local_addr().map_err(Error::Listen)?);
        let status = Arc::new(Status(service));
        let limits = net::Limits {
            connections: STATUS_CONNECTIONS,
            ..server_limits
        };
        servers.spawn(net::serve(listener, None, limits, status, asked.clone()));
    }
    let fields = Fields::new()
        .and("address", address)
        .and("mtls-address", mtls_address)
        .and("status-address", status_address);
    logger.info("started", fields);
    let commands = writer.requests.clone();
    let limits = settings.limits;
    let chores = tokio::spawn(net::boxed(ledger::look_after(commands.clone(), limits)));
    let serving = tokio::spawn(net::boxed(serve(
        servers,
        asked,
        hub,
        writer.requests,
        writer.ended,
        chores,
        logger,
    )));
    Ok(Running {
        address,
        mtls_address,
        admin_address,
        status_address,
        ask_stop,
        serving,
        commands,
    })
}

/// Starts the writer once all that is stored is loaded.
async fn start_writer(
    mut ledger: Ledger,
    limits: commit::Limits,
) -> Result<commit::Started<Ledger>, StoreError> {
    let failed = |error: std::io::Error| StoreError::Database {
        doing: "start the thread of",
        cause: error.to_string(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    let open = || async move { ledger.store.load().await.map(|state| (ledger, state)) };
    let started = commit::start("api-writer", runtime, limits, open).await;
    started.map_err(|error| error.into_error(failed))
}

async fn seed(commands: &Commands, groups: Vec<RouterGroup>) -> Result<(), Error> {
    if groups.is_empty() {
        return Ok(());
    }
    let seeded = commands.run(Command::Seed(groups)).await;
    seeded.map(drop).map_err(Error::Seed)
}

/// Serves until asked to stop, or until the writer is gone, and closes everything in order:
/// event streams, calls under way, the writer.
async fn serve(
    mut servers: tokio::task::JoinSet<()>,
    mut asked: Shutdown,
    hub: Arc<Hub>,
    commands: Commands,
    mut writer_ended: oneshot::Receiver<()>,
    chores: JoinHandle<()>,
    logger: Logger,
) -> Result<(), Error> {
    tokio::select! {
        () = asked.requested() => {}
        _ = &mut writer_ended => {
            chores.abort();
            return Err(Error::Writer);
        }
    }
    hub.close();
    while servers.join_next().await.is_some() {}
    chores.abort();
    commands.stop().await;
    let _ = writer_ended.await;
    logger.info("exited", Fields::new());
    Ok(())
}
