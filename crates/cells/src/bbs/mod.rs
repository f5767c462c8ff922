//! Keeps what is desired and what is actual, durably, and tells everybody.
//!
//! From the inside out: [`model`] holds the rules as pure functions; `state` holds
//! all records in memory, encoded; `apply` turns a call into changes of the state;
//! `ledger` is what the one thread that makes changes does, durable through `store`, to which
//! `opening` and `recovery` lead and for which `encryption` has the keys, that `rotation` changes;
//! `events` and `outbound` tell others; `service` speaks HTTP.

mod apply;
mod config;
mod convergence;
mod encryption;
mod events;
mod expiry;
mod ledger;
pub mod locket;
mod metrics;
pub mod model;
mod opening;
mod outbound;
mod pools;
mod presence;
mod recovery;
mod rotation;
mod service;
#[cfg(test)]
mod simulation;
mod state;
mod store;

use std::net::SocketAddr;
use std::sync::Arc;

use commit::Started;
pub use commit::StoreError;
pub use commit::postgres::{AddressError, PostgresSettings};
pub use config::{Config, Limits};
pub use encryption::{EncryptionError, EncryptionKeys, KeysError};
use net::tls::{self, TlsError};
use net::{Client, ClientOptions, Shutdown};
use telemetry::{Fields, Logger};
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle;

use crate::descriptors;
use crate::pool::PoolSizeError;
use convergence::{Convergence, Passes, Touches, converge};
use events::Hub;
use expiry::forget_expired;
use ledger::{Commands, Ledger};
use locket::Locket;
use metrics::Metrics;
use outbound::{Outbound, OutboundContext, Reps};
use pools::Pools;
use presence::Presences;
use recovery::Recovery;
use service::Service;
use state::{Names, NextIds};

/// Why a BBS cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The data folder cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What is stored is encrypted with other keys than there are.
    #[error(transparent)]
    Encryption(#[from] EncryptionError),
    /// A pool of workers is too small or too large.
    #[error("start the BBS: {0}")]
    Pool(#[from] PoolSizeError),
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The address cannot be listened on.
    #[error(transparent)]
    Listen(std::io::Error),
    /// The auctioneer cannot be reached at such an address.
    #[error("use the address of the auctioneer: {0}")]
    Auctioneer(#[source] net::ClientError),
    /// A thread cannot be started.
    #[error("start a thread: {0}")]
    Thread(std::io::Error),
    /// Another BBS holds the database now.
    #[error(
        "another BBS took the database over while this one could not reach it; start this one again, with --standby to wait for the other's end"
    )]
    Displaced,
    /// The writer ended by itself.
    #[error("the writer ended unexpectedly; the log says why")]
    Writer,
}

/// Runs a BBS until `shutdown`.
///
/// # Errors
/// When it cannot start, or can no longer write.
pub async fn run(config: Config, logger: Logger, mut shutdown: Shutdown) -> Result<(), Error> {
    let mut running = tokio::select! {
        started = start(config, logger) => started?,
        // One that waits for the database has nothing to end.
        () = shutdown.requested() => return Ok(()),
    };
    tokio::select! {
        () = shutdown.requested() => running.stop().await,
        result = &mut running.serving => result.unwrap_or(Err(Error::Writer)),
    }
}

/// A BBS that runs in the background.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    locket: Option<SocketAddr>,
    ask_stop: watch::Sender<bool>,
    serving: JoinHandle<Result<(), Error>>,
    commands: Commands,
}

impl Running {
    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of Locket's calls over gRPC.
    pub fn locket(&self) -> Option<SocketAddr> {
        self.locket
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
    config.limits.check()?;
    let server_tls = config.server_tls.as_ref().map(tls::server).transpose()?;
    let client_tls = config.client_tls.as_ref().map(tls::client).transpose()?;
    let limits = &config.limits;
    let options = ClientOptions {
        connect_within: limits.communication_timeout,
        answer_within: limits.communication_timeout,
        answer_bytes: 1 << 20,
        tls: client_tls,
        ..ClientOptions::default()
    };
    // Results mostly go to one receiver: to it as many at once as may be under way at all.
    let receivers = Client::new(ClientOptions {
        connections_per_host: limits.callback_workers,
        ..options.clone()
    });
    let client = Client::new(options);
    if let Some(auctioneer) = &config.auctioneer_url {
        client.check(auctioneer).map_err(Error::Auctioneer)?;
    }
    let store = opening::open(&config, &logger).await?;
    let presences = Arc::new(Presences::default());
    let metrics = Arc::new(Metrics::default());
    // Nobody may read that old keys are not needed before it is known.
    let keys_given = config.encryption.is_some();
    metrics.reencrypting.set(keys_given);
    metrics.database_up.set(true);
    let hub = Arc::new(Hub::new(limits.subscriber_events));
    let changes = hub.start().map_err(Error::Thread)?;
    let outbound = Outbound::new(Pools::new(limits), &metrics, &logger);
    let touches = Arc::new(Touches::all());
    let passes = Arc::new(Passes::default());
    let displaced = Arc::new(Notify::new());
    let remote = config.postgres.is_some();
    let ledger = Ledger {
        store,
        recovery: Recovery::new(limits.database_within, &metrics, logger.session("writer")),
        stale: false,
        displaced: Arc::clone(&displaced),
        names: Names::default(),
        next: NextIds::default(),
        hub: Arc::clone(&hub),
        changes,
        outbound: Arc::clone(&outbound),
        touches: Arc::clone(&touches),
        task_retries_max: limits.task_retries_max,
        logger: logger.session("writer"),
        desire_task: logger.session("request").session("desire-task"),
    };
    let Started {
        requests: commands,
        view: state,
        ended,
    } = start_writer(ledger, &config, Arc::clone(&presences)).await?;
    let listener = net::bind(config.listen).await.map_err(Error::Listen)?;
    let address = listener.local_addr().map_err(Error::Listen)?;
    let reps = Arc::new(Reps {
        client: client.clone(),
        presences: Arc::clone(&presences),
        metrics: Arc::clone(&metrics),
    });
    let mut loops = outbound.start(OutboundContext {
        auctioneer: config
            .auctioneer_url
            .clone()
            .map(|url| url.trim_end_matches('/').to_owned()),
        client,
        receivers,
        reps: Arc::clone(&reps),
        state: state.clone(),
        presences: Arc::clone(&presences),
        commands: commands.clone(),
        cells_within: limits.cells_within,
        again_after: limits.again_after,
        metrics: Arc::clone(&metrics),
        logger: logger.clone(),
    });
    loops.spawn(net::boxed(forget_expired(
        Arc::clone(&presences),
        commands.clone(),
        Arc::clone(&touches),
        logger.session("locket"),
    )));
    loops.spawn(net::boxed(converge(Convergence {
        state: state.clone(),
        commands: commands.clone(),
        presences: Arc::clone(&presences),
        outbound: Arc::clone(&outbound),
        touches: Arc::clone(&touches),
        passes: Arc::clone(&passes),
        interval: limits.converge_interval,
        whole_every: limits.whole_pass_every,
        cells_within: limits.cells_within,
        empty_is_lost: config.empty_cells_are_lost,
        ages: limits.ages(ledger::now_ns()),
        logger: logger.session("converge"),
    })));
    if remote {
        loops.spawn(net::boxed(ledger::look_after(commands.clone())));
    }
    if keys_given {
        loops.spawn(net::boxed(rotation::rotate(
            commands.clone(),
            Arc::clone(&metrics),
            logger.session("encryption"),
        )));
    }
    let locket = Locket::new(Arc::clone(&presences), commands.clone(), touches, &logger);
    let service = Arc::new(Service {
        limits: limits.clone(),
        old_clients: config.old_clients,
        state,
        commands: commands.clone(),
        presences,
        locket: locket.clone(),
        reps,
        hub: Arc::clone(&hub),
        metrics,
        passes,
        outbound,
        logs: service::Logs::new(&logger),
    });
    let server_limits = net::Limits {
        connections: descriptors::connections(limits.connections, &logger),
        ..net::Limits::default()
    };
    let writer = Writer { ended, displaced };
    let (ask_stop, asked) = net::shutdown();
    let mut locket_address = None;
    if let Some(listen) = config.locket_listen {
        let listener = net::bind(listen).await.map_err(Error::Listen)?;
        locket_address = Some(listener.local_addr().map_err(Error::Listen)?);
        let certificate = config.server_tls.as_ref();
        let stop = asked.clone();
        loops.spawn(locket::serve(
            listener,
            certificate,
            server_limits,
            locket,
            stop,
        )?);
    }
    let server = net::serve(listener, server_tls, server_limits, service, asked.clone());
    logger.info("started", Fields::new().and("address", address.to_string()));
    let handle = commands.clone();
    let serving = tokio::spawn(net::boxed(serve(
        server, asked, hub, commands, writer, loops, logger,
    )));
    Ok(Running {
        address,
        locket: locket_address,
        ask_stop,
        serving,
        commands: handle,
    })
}

/// Starts the writer once it holds the database and all that is stored is loaded.
async fn start_writer(
    mut ledger: Ledger,
    config: &Config,
    presences: Arc<Presences>,
) -> Result<Started<Ledger>, Error> {
    let remote = config.postgres.is_some();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    if remote {
        // SQLite awaits nothing.
        runtime.enable_all();
    }
    let runtime = runtime.build().map_err(Error::Thread)?;
    let bounds = match remote {
        true => ledger::REMOTE_LIMITS,
        false => ledger::LIMITS,
    };
    let standby = config.standby;
    let open = move || async move {
        opening::hold(&mut ledger.store, standby, &ledger.logger).await?;
        ledger.store.unlock().await?;
        let (state, next) = ledger.store.load(&mut ledger.names).await?;
        ledger.next = next;
        let kept = ledger.store.presences().await?;
        presences.restore(kept, std::time::Instant::now());
        Ok((ledger, state))
    };
    let started = commit::start("bbs-writer", runtime, bounds, open).await;
    started.map_err(|error| error.into_error(Error::Thread))
}

/// What is heard of the writer.
struct Writer {
    ended: oneshot::Receiver<()>,
    displaced: Arc<Notify>,
}

impl Writer {
    /// Waits until it can write no more.
    async fn failed(&mut self) -> Error {
        tokio::select! {
            _ = &mut self.ended => Error::Writer,
            () = self.displaced.notified() => Error::Displaced,
        }
    }
}

/// Serves until asked to stop, or until the writer is gone, and closes everything
/// in order: streams, requests under way, outbound loops, the writer.
async fn serve(
    server: impl Future<Output = ()> + Send + 'static,
    mut asked: Shutdown,
    hub: Arc<Hub>,
    commands: Commands,
    mut writer: Writer,
    mut loops: tokio::task::JoinSet<()>,
    logger: Logger,
) -> Result<(), Error> {
    let server = tokio::spawn(net::boxed(server));
    tokio::select! {
        () = asked.requested() => {}
        error = writer.failed() => {
            server.abort();
            hub.close();
            loops.shutdown().await;
            commands.stop().await;
            return Err(error);
        }
    }
    hub.close();
    let _ = server.await;
    loops.shutdown().await;
    commands.stop().await;
    let _ = writer.ended.await;
    logger.info("exited", Fields::new());
    Ok(())
}
