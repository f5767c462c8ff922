//! The auctioneer: takes requests for work, asks every cell for its state, and
//! gives each piece of work to the cell that suits it best.
//!
//! It keeps nothing: work that could not be placed is reported to the BBS, which
//! asks again later.

mod api;
mod intake;
mod metrics;
pub mod placement;
mod queue;
mod round;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use diego::Bbs;
use net::tls::{self, Files, TlsError};
use net::{Client, ClientOptions, Limits, Shutdown};
use telemetry::{Fields, Logger};
use tokio::task::JoinHandle;

use crate::descriptors;
use crate::lock::Lock;
use crate::pool::{self, Pool, PoolSizeError};
use metrics::Metrics;
use queue::Queue;
use round::Auctioneer;

/// Settings of an auctioneer.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The BBS, for instance `http://127.0.0.1:8889`.
    pub bbs: String,
    /// Certificate of the API; without it the API is plain HTTP.
    pub server_tls: Option<Files>,
    /// Certificate shown to the BBS and to reps; needed for `https` addresses.
    pub client_tls: Option<Files>,
    /// Most cells that are talked to at once.
    pub workers: usize,
    /// Longest wait for the state of a cell; slower cells take no part in a round.
    pub cell_state_timeout: Duration,
    /// How long the last tenth of the cells may take beyond the others. Who is later
    /// takes no part in the round, so that one slow cell does not hold all work up.
    pub state_grace: Duration,
    /// Longest wait for a cell to take work, and for the BBS to answer.
    pub communication_timeout: Duration,
    /// Shortest time from the start of a round to the start of the next, so that
    /// work gathers and each cell is asked once for all of it.
    pub round_interval: Duration,
    /// Pieces of work that may wait for a round; more are refused with status 503.
    pub queue_max: usize,
    /// How cells are scored.
    pub placement: placement::Options,
    /// Several may be started, of which the one that holds the lock at the BBS is active.
    pub standby: bool,
}

impl Config {
    /// The usual settings, for the BBS at this address.
    pub fn new(listen: SocketAddr, bbs: impl Into<String>) -> Self {
        Self {
            listen,
            bbs: bbs.into(),
            server_tls: None,
            client_tls: None,
            workers: 1000,
            cell_state_timeout: Duration::from_secs(10),
            state_grace: Duration::from_secs(1),
            communication_timeout: Duration::from_secs(10),
            round_interval: Duration::from_millis(50),
            queue_max: 1_000_000,
            placement: placement::Options::default(),
            standby: false,
        }
    }
}

/// Why an auctioneer could not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be listened on.
    #[error("start the auctioneer: {0}")]
    Listen(#[from] std::io::Error),
    /// The pool of workers is too small or too large.
    #[error("start the auctioneer: {0}")]
    Pool(#[from] PoolSizeError),
    /// The certificates cannot be used.
    #[error("start the auctioneer: {0}")]
    Tls(#[from] TlsError),
    /// The BBS cannot be reached at such an address.
    #[error("start the auctioneer: use the address of the BBS: {0}")]
    Bbs(#[source] net::ClientError),
    /// It is not the active one any more.
    #[error(
        "the lock was lost: it could not be renewed, or another auctioneer holds it; start this one again to wait for it"
    )]
    LockLost,
    /// It was asked to end before it held the lock.
    #[error("the auctioneer ended before it held the lock")]
    Ended,
}

/// An auctioneer at work.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    server: JoinHandle<()>,
    rounds: JoinHandle<()>,
    lock: Option<JoinHandle<bool>>,
}

impl Running {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until it has stopped, which the shutdown given to [`start`] asks for.
    pub async fn stopped(self) {
        // A panic in either is reported by the runtime; the other one still ends.
        let _ = self.server.await;
        let _ = self.rounds.await;
    }
}

/// Runs an auctioneer until `shutdown`.
///
/// # Errors
/// When it cannot start; see [`Error`].
pub async fn run(config: Config, logger: Logger, shutdown: Shutdown) -> Result<(), Error> {
    let mut running = match start(config, logger, shutdown).await {
        Err(Error::Ended) => return Ok(()),
        started => started?,
    };
    if let Some(lock) = running.lock.take() {
        // Not before it is given up or lost.
        if lock.await.unwrap_or(true) {
            return Err(Error::LockLost);
        }
    }
    running.stopped().await;
    Ok(())
}

/// Starts an auctioneer and returns once it listens: one that stands by, not before it holds the
/// lock.
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
    config: Config,
    logger: Logger,
    shutdown: Shutdown,
) -> Result<Running, Error> {
    pool::check("auction_runner_workers", config.workers)?;
    let server_tls = config.server_tls.as_ref().map(tls::server).transpose()?;
    let client_tls = config.client_tls.as_ref().map(tls::client).transpose()?;
    let client = |connections_per_host, answer_within| {
        Client::new(ClientOptions {
            connections_per_host,
            answer_within,
            tls: client_tls.clone(),
            answer_bytes: 256 << 20,
            ..ClientOptions::default()
        })
    };
    let to_bbs = client(64, config.communication_timeout);
    to_bbs.check(&config.bbs).map_err(Error::Bbs)?;
    let lock = config.standby.then(|| {
        let (client, logger) = (to_bbs.clone(), logger.session("lock"));
        Lock::new(client, &config.bbs, "auctioneer", "auctioneer", logger)
    });
    let bbs = Bbs::new(to_bbs, &*config.bbs);
    let reps = client(
        2,
        config.cell_state_timeout.max(config.communication_timeout),
    );

    let mut held = None;
    if let Some(lock) = lock {
        let acquired = lock.acquire(shutdown.clone()).await;
        let expires = acquired.ok_or(Error::Ended)?;
        held = Some(tokio::spawn(net::boxed(
            lock.keep(expires, shutdown.clone()),
        )));
    }
    let listener = net::bind(config.listen).await?;
    let address = listener.local_addr()?;
    let queue = Arc::new(Queue::new(config.queue_max));
    let metrics = Arc::new(Metrics::default());
    let workers = Pool::new("calls", config.workers);
    let handler = Arc::new(api::Api {
        queue: Arc::clone(&queue),
        metrics: Arc::clone(&metrics),
        workers: workers.clone(),
        logger: logger.session("request"),
    });
    let mut limits = Limits::default();
    limits.connections = descriptors::connections(limits.connections, &logger);
    let server = net::serve(listener, server_tls, limits, handler, shutdown.clone());
    let auctioneer = Auctioneer {
        config,
        bbs,
        reps,
        queue,
        logger: logger.session("auction"),
        workers,
        metrics,
    };
    logger.info("started", Fields::new().and("address", address.to_string()));
    Ok(Running {
        address,
        server: tokio::spawn(net::boxed(server)),
        rounds: tokio::spawn(net::boxed(auctioneer.run(shutdown))),
        lock: held,
    })
}
