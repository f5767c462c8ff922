//! The TCP router as a whole: changes come in, ports open and close, health and metrics
//! can be asked for, and in the end it drains.

mod control;
mod metrics;
mod names;
mod status;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use net::{Limits, Shutdown};
use telemetry::{Fields, Logger};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use self::control::Control;
use self::status::Status;
use super::counters::Counters;
use super::engine::{Engine, EngineError};
use super::table::{Capabilities, Table};
use super::{Change, TcpSettings};
use crate::descriptors;
use crate::peer_tls::{self, TlsPartError};

/// Changes that may wait between a feed and the router; a feed that is faster waits.
pub const CHANGES: usize = 4096;

/// How often a drain looks whether the last connection has ended.
const DRAIN_LOOK: Duration = Duration::from_millis(50);

/// Why a TCP router does not start.
#[derive(Debug, thiserror::Error)]
pub enum TcpRouterError {
    /// The engine does not start.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The status server does not start.
    #[error("{0}; expected a free address as `status`")]
    Status(io::Error),
    /// Its certificate or key is of no use.
    #[error(transparent)]
    StatusTls(#[from] TlsPartError),
}

/// A running TCP router. Dropping it ends it as [`TcpRouter::stop`] does.
pub struct TcpRouter {
    settings: TcpSettings,
    engine: Arc<Engine>,
    draining: Arc<AtomicBool>,
    closing: watch::Sender<bool>,
    control: JoinHandle<()>,
    status: Option<SocketAddr>,
    status_tls: Option<SocketAddr>,
    /// Ends the status servers when it is dropped.
    _status: watch::Sender<bool>,
    logger: Logger,
}

impl TcpRouter {
    /// Starts a router that follows `changes`. It goes on with the routes that it has when
    /// the feed ends; mappings that nobody refreshes are pruned.
    ///
    /// # Errors
    /// When threads, TLS or the status server cannot be had. A port that is taken is no
    /// error: it is tried again.
    pub async fn start(
        mut settings: TcpSettings,
        changes: mpsc::Receiver<Change>,
        logger: Logger,
    ) -> Result<Self, TcpRouterError> {
        // Each connection takes two descriptors, and ports and others need some.
        let most = |all: usize| (all - all / 4) / 2;
        descriptors::keep_to(&mut settings.connections, most, &logger);
        let counters = Arc::new(Counters::default());
        let engine = Engine::start(&settings, Arc::clone(&counters), &logger)?;
        let engine = Arc::new(engine);
        let own = settings.backend_tls.as_ref();
        let capabilities = Capabilities {
            termination: settings.termination.is_some(),
            backend_tls: own.is_some(),
            own_authority: own.is_some_and(|own| !own.authorities.is_empty()),
            client_certificate: own.is_some_and(|own| !own.certificate.is_empty()),
        };
        let table = Table::new(capabilities, settings.stale_after);
        let fed = settings.routing_api.is_some();
        let control = Control::new(table, Arc::clone(&engine), fed, logger.session("routes"));
        let shown = control.shown();
        let draining = Arc::new(AtomicBool::new(false));
        let (stop_status, stopped) = net::shutdown();
        let handler = Status::new(Arc::clone(&draining), fed, counters, shown);
        let handler = Arc::new(handler);
        let mut status = None;
        if let Some(address) = settings.status {
            let (handler, stopped) = (Arc::clone(&handler), stopped.clone());
            status = Some(serve_status(address, None, handler, stopped).await?);
        }
        let mut status_tls = None;
        if let Some(own) = &settings.status_tls {
            let tls = peer_tls::server("[status_tls]", &own.certificate, &own.key)?;
            status_tls = Some(serve_status(own.listen, Some(tls), handler, stopped).await?);
        }
        let (closing, closed) = watch::channel(false);
        let rhythm = control::Intervals {
            prune: settings.prune_every,
            bind_again: settings.bind_again,
        };
        let control = tokio::spawn(net::boxed(control.run(changes, closed, rhythm)));
        let fields = Fields::new()
            .and("listen", settings.listen)
            .and("status", status)
            .and("status-tls", status_tls);
        logger.info("started", fields);
        Ok(Self {
            settings,
            engine,
            draining,
            closing,
            control,
            status,
            status_tls,
            _status: stop_status,
            logger,
        })
    }

    /// Where health and metrics are served.
    pub fn status(&self) -> Option<SocketAddr> {
        self.status
    }

    /// Where they are served within TLS.
    pub fn status_tls(&self) -> Option<SocketAddr> {
        self.status_tls
    }

    /// Connections of clients that are open.
    pub fn active(&self) -> u64 {
        self.engine.active()
    }

    /// Drains: health fails at once; after `drain_wait` no connection is accepted any
    /// more; established ones go on until they end, at most for `drain_timeout`.
    pub async fn drain(self) {
        self.draining.store(true, Relaxed);
        let fields = Fields::new().and("active", self.active());
        self.logger.info("drain-began", fields);
        tokio::time::sleep(self.settings.drain_wait).await;
        // Ports would open again with the next change.
        self.closing.send_replace(true);
        self.engine.close_all();
        let fields = Fields::new().and("active", self.active());
        self.logger.info("drain-closed-ports", fields);
        let emptied = async {
            // Connections in the kernel's queues count a moment later.
            tokio::time::sleep(DRAIN_LOOK).await;
            while self.active() > 0 {
                tokio::time::sleep(DRAIN_LOOK).await;
            }
        };
        let _ = tokio::time::timeout(self.settings.drain_timeout, emptied).await;
        self.stop();
    }

    /// Ends at once, with all connections.
    pub fn stop(self) {
        let fields = Fields::new().and("active", self.active());
        self.logger.info("stopped", fields);
    }
}

impl Drop for TcpRouter {
    fn drop(&mut self) {
        self.control.abort();
        self.engine.stop();
    }
}

/// Runs a router until one of two signals: `drain` lets connections end, `stop` does not,
/// and ends a drain too.
///
/// # Errors
/// As [`TcpRouter::start`].
pub async fn run(
    settings: TcpSettings,
    changes: mpsc::Receiver<Change>,
    logger: Logger,
    drain: impl Future<Output = ()>,
    stop: impl Future<Output = ()>,
) -> Result<(), TcpRouterError> {
    let router = TcpRouter::start(settings, changes, logger).await?;
    let drained = async {
        drain.await;
        router.drain().await;
    };
    tokio::select! {
        () = drained => {}
        () = stop => {}
    }
    Ok(())
}

async fn serve_status(
    address: SocketAddr,
    tls: Option<Arc<rustls::ServerConfig>>,
    handler: Arc<Status>,
    stopped: Shutdown,
) -> Result<SocketAddr, TcpRouterError> {
    let listener = net::bind(address).await.map_err(TcpRouterError::Status)?;
    let address = listener.local_addr().map_err(TcpRouterError::Status)?;
    let limits = Limits {
        connections: 256,
        head_bytes: 8 * 1024,
        drain: Duration::ZERO,
        ..Limits::default()
    };
    tokio::spawn(net::serve(listener, tls, limits, handler, stopped));
    Ok(address)
}
