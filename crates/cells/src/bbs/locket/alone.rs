//! Locket without a BBS: a database that holds locks and presences alone, of its own or shared.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use commit::Started;
use commit::postgres::PostgresSettings;
use net::Shutdown;
use net::tls::Files;
use telemetry::{Fields, Logger};
use tokio::task::JoinHandle;

use super::Locket;
use super::shared::Shared;
use crate::bbs::convergence::Touches;
use crate::bbs::events::Hub;
use crate::bbs::expiry::forget_expired;
use crate::bbs::ledger::{self, Ledger};
use crate::bbs::metrics::Metrics;
use crate::bbs::outbound::Outbound;
use crate::bbs::pools::Pools;
use crate::bbs::presence::Presences;
use crate::bbs::recovery::Recovery;
use crate::bbs::state::{Names, NextIds, State};
use crate::bbs::store::Store;
use crate::bbs::{Error, Limits};
use crate::descriptors;

/// What a Locket of its own needs to run.
#[derive(Debug, Clone)]
pub struct Config {
    /// Address of its calls over gRPC; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Folder of the database; created when missing, used by one Locket at a time.
    pub data_dir: PathBuf,
    /// A database in PostgreSQL instead, which any number of Lockets share.
    pub postgres: Option<PostgresSettings>,
    /// Certificate to serve with; clients must then show one of the same authority.
    pub tls: Option<Files>,
}

/// A Locket that runs in the background.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Running {
    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until it has stopped, which the shutdown given to [`start`] asks for.
    pub async fn stopped(self) {
        // A panic is reported by the runtime.
        let _ = self.serving.await;
    }
}

/// Runs a Locket until `shutdown`.
///
/// # Errors
/// When it cannot start.
pub async fn run(config: Config, logger: Logger, shutdown: Shutdown) -> Result<(), Error> {
    start(config, logger, shutdown).await?.stopped().await;
    Ok(())
}

/// Starts a Locket; it serves when this returns.
///
/// # Errors
/// When the data folder, TLS or the address cannot be used.
pub fn start(
    config: Config,
    logger: Logger,
    shutdown: Shutdown,
) -> net::BoxFuture<Result<Running, Error>> {
    Box::pin(start_unboxed(config, logger, shutdown))
}

async fn start_unboxed(
    config: Config,
    logger: Logger,
    mut shutdown: Shutdown,
) -> Result<Running, Error> {
    let (locket, end) = match config.postgres.clone() {
        Some(settings) => share(settings, &logger).await?,
        None => own(&config, &logger).await?,
    };
    let listener = net::bind(config.listen).await.map_err(Error::Listen)?;
    let address = listener.local_addr().map_err(Error::Listen)?;
    let server_limits = net::Limits {
        connections: descriptors::connections(Limits::default().connections, &logger),
        ..net::Limits::default()
    };
    let stop = shutdown.clone();
    let server = super::serve(listener, config.tls.as_ref(), server_limits, locket, stop)?;
    logger.info("started", Fields::new().and("address", address.to_string()));
    let serving = tokio::spawn(net::boxed(async move {
        // It ends with the shutdown as well, once its calls are answered.
        server.await;
        shutdown.requested().await;
        end.await;
        logger.info("exited", Fields::new());
    }));
    Ok(Running { address, serving })
}

/// A Locket, and what ends that which works for it, once the last call was answered.
type RunningLocket = (Locket, net::BoxFuture<()>);

/// One that shares a database with others.
async fn share(settings: PostgresSettings, logger: &Logger) -> Result<RunningLocket, Error> {
    let (shared, writing) = Shared::open(settings, logger).await?;
    // It ends once nobody is left who could ask.
    let writing = tokio::spawn(writing);
    let end = net::boxed(async move {
        let _ = writing.await;
    });
    Ok((Locket::sharing(shared, logger), end))
}

/// One with a database of its own.
async fn own(config: &Config, logger: &Logger) -> Result<RunningLocket, Error> {
    let store = Store::open(&config.data_dir, None)?;
    let presences = Arc::new(Presences::default());
    let limits = Limits::default();
    let (commands, ended) = write(store, Arc::clone(&presences), &limits, logger).await?;
    // Nobody converges here.
    let touches = Arc::new(Touches::all());
    let locket = Locket::new(
        Arc::clone(&presences),
        commands.clone(),
        Arc::clone(&touches),
        logger,
    );
    let sweeping = forget_expired(presences, commands.clone(), touches, logger.clone());
    let sweeping = tokio::spawn(net::boxed(sweeping));
    let end = net::boxed(async move {
        sweeping.abort();
        commands.stop().await;
        let _ = ended.await;
    });
    Ok((locket, end))
}

type Writer = (ledger::Commands, tokio::sync::oneshot::Receiver<()>);

/// Starts the writer of a BBS, of whose records only presences are used.
async fn write(
    store: Store,
    presences: Arc<Presences>,
    limits: &Limits,
    logger: &Logger,
) -> Result<Writer, Error> {
    let metrics = Arc::new(Metrics::default());
    let hub = Arc::new(Hub::new(limits.subscriber_events));
    let mut ledger = Ledger {
        store,
        recovery: Recovery::new(limits.database_within, &metrics, logger.clone()),
        stale: false,
        displaced: Arc::default(),
        names: Names::default(),
        next: NextIds::default(),
        changes: hub.start().map_err(Error::Thread)?,
        hub,
        outbound: Outbound::new(Pools::new(limits), &metrics, logger),
        touches: Arc::new(Touches::all()),
        task_retries_max: limits.task_retries_max,
        logger: logger.session("writer"),
        desire_task: logger.clone(),
    };
    // SQLite awaits nothing.
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(Error::Thread)?;
    let open = move || async move {
        ledger.store.unlock().await?;
        let kept = ledger.store.presences().await?;
        presences.restore(kept, std::time::Instant::now());
        Ok((ledger, State::default()))
    };
    let Started {
        requests, ended, ..
    } = commit::start("locket-writer", runtime, ledger::LIMITS, open)
        .await
        .map_err(|error| error.into_error(Error::Thread))?;
    Ok((requests, ended))
}
