//! Keeps what is desired and what is actual, durably, and tells everybody.
//!
//! From the inside out: [`model`] holds the rules as pure functions; `state` holds
//! all records in memory, encoded; `apply` turns a call into changes of the state;
//! `ledger` is what the one thread that makes changes does, durable through `store`;
//! `events` and `outbound` tell others; `service` speaks HTTP.

mod apply;
mod events;
mod ledger;
mod metrics;
pub mod model;
mod outbound;
mod presence;
mod service;
mod state;
mod store;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use commit::StoreError;
use commit::{StartError, Started};
use net::tls::{self, TlsError};
use net::{Client, ClientOptions, Shutdown};
use telemetry::{Fields, Logger};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use events::Hub;
use ledger::{Commands, Ledger};
use metrics::Metrics;
use outbound::{Means, Reps};
use presence::Presences;
use service::Service;
use state::Names;
use store::Store;

/// What a BBS needs to run.
#[derive(Debug, Clone)]
pub struct Config {
    /// Address of the API; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Folder of the database; created when missing, used by one BBS at a time.
    pub data_dir: PathBuf,
    /// Certificate to serve with; clients must then show one of the same authority.
    pub server_tls: Option<tls::Files>,
    /// Certificate to show to the auctioneer, reps and callbacks at `https` addresses.
    pub client_tls: Option<tls::Files>,
    /// Base address of the auctioneer; without one nothing is placed.
    pub auctioneer_url: Option<String>,
    /// Bounds.
    pub limits: Limits,
}

impl Config {
    /// A BBS in plain HTTP without an auctioneer.
    pub fn new(listen: SocketAddr, data_dir: impl Into<PathBuf>) -> Self {
        Self {
            listen,
            data_dir: data_dir.into(),
            server_tls: None,
            client_tls: None,
            auctioneer_url: None,
            limits: Limits::default(),
        }
    }
}

/// Bounds of a BBS.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// Longest wait for a request's body.
    pub body_within: Duration,
    /// Connections open at once.
    pub connections: usize,
    /// Events that may wait for one subscriber.
    pub subscriber_events: usize,
    /// Callbacks under way at once.
    pub callback_workers: usize,
    /// Rejections after which a task is placed again; the next one fails it.
    pub task_retries_max: i32,
    /// Longest wait for an answer of the auctioneer, a rep or a callback.
    pub communication_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 16 << 20,
            body_within: Duration::from_secs(30),
            connections: 16_384,
            subscriber_events: 1024,
            callback_workers: 1000,
            task_retries_max: 3,
            communication_timeout: Duration::from_secs(10),
        }
    }
}

/// Why a BBS cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The data folder cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The address cannot be listened on.
    #[error(transparent)]
    Listen(std::io::Error),
    /// A thread cannot be started.
    #[error("start a thread: {0}")]
    Thread(std::io::Error),
    /// The writer ended by itself.
    #[error("the writer ended unexpectedly; the log says why")]
    Writer,
}

/// Runs a BBS until `shutdown`.
///
/// # Errors
/// When it cannot start, or can no longer write.
pub async fn run(config: Config, logger: Logger, mut shutdown: Shutdown) -> Result<(), Error> {
    let mut running = start(config, logger).await?;
    tokio::select! {
        () = shutdown.asked() => running.stop().await,
        result = &mut running.serving => result.unwrap_or(Err(Error::Writer)),
    }
}

/// A BBS that runs in the background.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    ask_stop: watch::Sender<bool>,
    serving: JoinHandle<Result<(), Error>>,
    commands: Commands,
}

impl Running {
    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it: requests under way are answered, the database is closed.
    ///
    /// # Errors
    /// When the writer had ended before.
    pub async fn stop(self) -> Result<(), Error> {
        let _ = self.ask_stop.send(true);
        self.serving.await.unwrap_or(Err(Error::Writer))
    }

    /// Bounds the database to so many pages of 4 KiB; a change that does not fit
    /// then fails as it does on a full disk.
    pub async fn limit_pages(&self, pages: u32) {
        let limit = move |ledger: &mut Ledger| ledger.store.limit_pages(pages);
        self.commands.tend(limit).await;
    }
}

/// Starts a BBS; it serves when this returns.
///
/// # Errors
/// When the data folder, TLS or the address cannot be used.
pub fn start(config: Config, logger: Logger) -> net::BoxFuture<Result<Running, Error>> {
    Box::pin(start_unboxed(config, logger))
}

async fn start_unboxed(config: Config, logger: Logger) -> Result<Running, Error> {
    let server_tls = config.server_tls.as_ref().map(tls::server).transpose()?;
    let client_tls = config.client_tls.as_ref().map(tls::client).transpose()?;
    let limits = &config.limits;
    let client = Client::new(ClientOptions {
        connect_within: limits.communication_timeout,
        answer_within: limits.communication_timeout,
        answer_bytes: 1 << 20,
        tls: client_tls,
        ..ClientOptions::default()
    });
    let store = Store::open(&config.data_dir)?;
    let mut names = Names::default();
    let (state, next) = store.load(&mut names)?;
    let listener = net::bind(config.listen).await.map_err(Error::Listen)?;
    let address = listener.local_addr().map_err(Error::Listen)?;

    let metrics = Arc::new(Metrics::default());
    let hub = Arc::new(Hub::new(limits.subscriber_events));
    let changes = hub.start().map_err(Error::Thread)?;
    let (outbound, inbox) = outbound::queues(&metrics);
    let lengths = outbound.lengths();
    let ledger = Ledger {
        store,
        names,
        next,
        hub: Arc::clone(&hub),
        changes,
        outbound,
        task_retries_max: limits.task_retries_max,
        logger: logger.session("writer"),
        desire_task: logger.session("request").session("desire-task"),
    };
    // SQLite awaits nothing.
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(Error::Thread)?;
    let open = || async { Ok::<_, std::convert::Infallible>((ledger, state)) };
    let Started {
        requests: commands,
        view: state,
        ended: writer_ended,
    } = commit::start("bbs-writer", runtime, ledger::LIMITS, open)
        .await
        .map_err(|StartError::Thread(error)| Error::Thread(error))?;
    let presences = Arc::new(Presences::default());
    let reps = Arc::new(Reps {
        client: client.clone(),
        presences: Arc::clone(&presences),
        metrics: Arc::clone(&metrics),
    });
    let loops = inbox.start(Means {
        auctioneer: config
            .auctioneer_url
            .clone()
            .map(|url| url.trim_end_matches('/').to_owned()),
        client,
        reps: Arc::clone(&reps),
        state: state.clone(),
        lengths: Arc::clone(&lengths),
        commands: commands.clone(),
        callback_workers: limits.callback_workers,
        logger: logger.clone(),
    });
    let service = Arc::new(Service::new(
        limits,
        state,
        commands.clone(),
        presences,
        reps,
        Arc::clone(&hub),
        metrics,
        lengths,
        &logger,
    ));
    let server_limits = net::Limits {
        connections: limits.connections,
        ..net::Limits::default()
    };
    let (ask_stop, asked) = net::shutdown();
    let server = net::serve(listener, server_tls, server_limits, service, asked.clone());
    logger.info("started", Fields::new().and("address", address.to_string()));
    let handle = commands.clone();
    let serving = tokio::spawn(net::boxed(serve(
        server,
        asked,
        hub,
        commands,
        writer_ended,
        loops,
        logger,
    )));
    Ok(Running {
        address,
        ask_stop,
        serving,
        commands: handle,
    })
}

/// Serves until asked to stop, or until the writer is gone, and closes everything
/// in order: streams, requests under way, outbound loops, the writer.
async fn serve(
    server: impl Future<Output = ()> + Send + 'static,
    mut asked: Shutdown,
    hub: Arc<Hub>,
    commands: Commands,
    mut writer_ended: oneshot::Receiver<()>,
    mut loops: tokio::task::JoinSet<()>,
    logger: Logger,
) -> Result<(), Error> {
    let server = tokio::spawn(net::boxed(server));
    tokio::select! {
        () = asked.asked() => {}
        _ = &mut writer_ended => {
            server.abort();
            return Err(Error::Writer);
        }
    }
    hub.close();
    let _ = server.await;
    loops.shutdown().await;
    commands.stop().await;
    let _ = writer_ended.await;
    logger.info("exited", Fields::new());
    Ok(())
}
