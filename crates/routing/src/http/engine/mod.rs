//! The HTTP data path: sockets, threads, timeouts.
//!
//! ```text
//! client ──▶ inbox ──▶ head, body ──▶ upstream ──▶ backend
//! client ◀── outbox ◀── head, body ◀── inbox ◀──── backend
//! ```
//!
//! Each thread has its own listeners, its own poller, its own connections and its own
//! idle connections to backends; threads share the table and nothing else. Readiness is
//! level-triggered: one `recv` for each event, one `send` for what it led to, and the
//! interest in a socket changes only when one side is slower than the other.
//!
//! A thread is a `Worker` that waits for events and hands each to the part that owns what
//! it is about. A part uses only those below it; what is for those above is given back:
//!
//! | part | owns |
//! |---|---|
//! | `http2` | clients' connections of HTTP/2, whose streams become clients |
//! | `clients` | the clients: which there are, their deadlines, the request of each |
//! | `request` | a request from its head to its log line, and the tunnel behind an upgrade |
//! | `backends` | connections to backends: pools, names, sockets, TLS, HTTP/2 |
//! | `client` | a client's connection: its beginning, heads, bodies, answers, end |
//! | `context` | the thread's tools: settings, poller, clock, counters, memory |

mod backends;
mod batches;
mod buffers;
mod client;
mod clients;
mod context;
mod envelopes;
mod http2;
mod log_writer;
mod reload;
mod request;
mod resolver;
mod syslog;
#[cfg(test)]
mod tests;
mod tls;
mod token;
mod worker;

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arc_swap::ArcSwap;
use rustix::io::Errno;
use wire::listeners::BACKLOG;
use wire::poller::Poller;
use wire::socket;
use wire::threads::{Phase, Threads, processors};

use self::context::Shared;
use self::envelopes::{EnvelopeSender, EnvelopesError};
use self::log_writer::LogWriter;
use self::request::RequestSinks;
use self::resolver::Resolver;
use self::tls::Tls;
use self::worker::Worker;
use super::counters::Counters;
use super::pipeline::Pipeline;
use super::settings::HttpSettings;
use crate::table::Table;

/// What an engine works with.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// How it behaves.
    pub settings: Arc<HttpSettings>,
    /// Where requests go.
    pub table: Arc<Table>,
    /// Where it counts; with as many threads as [`threads`] says.
    pub counters: Arc<Counters>,
    /// What health checks on the proxy's port are told. Draining is unhealthy in any case.
    pub healthy: Arc<AtomicBool>,
}

/// Why an engine did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address cannot be listened on.
    #[error("listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the kernel says.
        source: io::Error,
    },
    /// The access log's file cannot be opened.
    #[error("open the access log {path}: {source}")]
    AccessLog {
        /// Its path.
        path: String,
        /// What the kernel says.
        source: io::Error,
    },
    /// A certificate, a key or the authorities of one side are of no use.
    #[error("prepare TLS towards {side}: {source}")]
    Tls {
        /// Towards whom.
        side: &'static str,
        /// What is wrong.
        source: wire::tls::TlsOptionsError,
    },
    /// Certificates or the key for loggregator's agent are of no use.
    #[error(transparent)]
    Envelopes(crate::peer_tls::TlsPartError),
    /// There are no threads or descriptors left.
    #[error("start the threads of the HTTP router: {0}")]
    Threads(#[source] io::Error),
}

/// Threads that an engine with these settings has.
pub fn threads(settings: &HttpSettings) -> usize {
    settings.threads.unwrap_or_else(processors).max(1)
}

/// A running data path. Dropping it stops it.
pub struct Engine {
    /// Swapped as a whole when settings change.
    shared: Arc<ArcSwap<Shared>>,
    counters: Arc<Counters>,
    threads: Threads,
    log: Option<LogWriter>,
    envelopes: Option<EnvelopeSender>,
    address: Option<SocketAddr>,
    tls_address: Option<SocketAddr>,
}

fn prepare_tls(settings: &HttpSettings) -> Result<Tls, StartError> {
    Tls::new(settings).map_err(|(side, source)| StartError::Tls { side, source })
}

fn unlistened(address: SocketAddr, errno: Errno) -> StartError {
    StartError::Listen {
        address,
        source: errno.into(),
    }
}

fn unopened(settings: &HttpSettings, source: io::Error) -> StartError {
    let file = settings.access_log.file.as_deref();
    StartError::AccessLog {
        path: file.unwrap_or(Path::new("")).display().to_string(),
        source,
    }
}

/// Says what of the settings [`start`] would refuse, for those who have long to wait until
/// then. Opens no listener.
///
/// # Errors
/// When a certificate or key is of no use, or the access log cannot be opened.
pub fn check(settings: &HttpSettings) -> Result<(), StartError> {
    prepare_tls(settings)?;
    if let Some(settings) = &settings.envelopes {
        envelopes::check(settings).map_err(StartError::Envelopes)?;
    }
    if let Some(file) = &settings.access_log.file {
        let opened = File::options().append(true).create(true).open(file);
        opened.map_err(|source| unopened(settings, source))?;
    }
    Ok(())
}

/// Opens the listeners and starts the threads.
///
/// # Errors
/// When an address cannot be listened on, a certificate or key is of no use, the access
/// log cannot be opened, or there are no threads or descriptors left.
pub fn start(config: EngineConfig) -> Result<Engine, StartError> {
    let settings = &config.settings;
    let count = threads(settings);
    let tls = prepare_tls(settings)?;
    let mut addresses = [(settings.listen, false), (settings.listen_tls, true)];
    // Another router there would answer a part of the requests, by its own settings.
    for at in [settings.listen, settings.listen_tls].into_iter().flatten() {
        socket::check_free(at).map_err(|errno| unlistened(at, errno))?;
    }
    let mut listeners = Vec::new();
    for _ in 0..count {
        let mut own = Vec::new();
        for (address, is_tls) in &mut addresses {
            let Some(at) = *address else {
                continue;
            };
            let failed = |errno| unlistened(at, errno);
            // Each thread has its own queue of new connections.
            let listener = socket::listen_tcp(at, BACKLOG, true).map_err(failed)?;
            // The first one is given a port; the others share it.
            *address = Some(socket::local_address(&listener).map_err(failed)?);
            own.push((listener, *is_tls));
        }
        listeners.push(own);
    }
    let log = LogWriter::start(&settings.access_log, &config.counters)
        .map_err(|source| unopened(settings, source))?;
    let envelopes = settings
        .envelopes
        .as_ref()
        .map(|settings| EnvelopeSender::start(settings, Arc::clone(config.counters.envelopes())));
    let envelopes = envelopes.transpose().map_err(|error| match error {
        EnvelopesError::Tls(error) => StartError::Envelopes(error),
        EnvelopesError::Thread(error) => StartError::Threads(error),
    })?;
    let shared = Shared {
        pipeline: Pipeline::new(Arc::clone(settings)),
        selection: reload::selection(settings),
        settings: Arc::clone(settings),
        tls,
        resolver: Arc::new(Resolver::start().map_err(StartError::Threads)?),
        table: config.table,
        healthy: config.healthy,
    };
    let mut engine = Engine {
        shared: Arc::new(ArcSwap::from_pointee(shared)),
        counters: config.counters,
        threads: Threads::default(),
        log,
        envelopes,
        address: addresses[0].0,
        tls_address: addresses[1].0,
    };
    let most = (settings.client_connections / count).max(1);
    for (index, own) in listeners.into_iter().enumerate() {
        engine
            .add_thread(index, own, most)
            .map_err(StartError::Threads)?;
    }
    Ok(engine)
}

impl Engine {
    fn add_thread(
        &mut self,
        index: usize,
        listeners: Vec<(OwnedFd, bool)>,
        most: usize,
    ) -> io::Result<()> {
        let counters = self.counters.thread(index).cloned().unwrap_or_default();
        let request_sinks = RequestSinks {
            log: self.log.as_ref().map(LogWriter::lines),
            envelopes: self.envelopes.as_ref().map(EnvelopeSender::batches),
        };
        let (poller, shared) = (Poller::new()?, Arc::clone(&self.shared));
        let waker = poller.waker().clone();
        let worker = Worker::new(poller, shared, counters, listeners, most, request_sinks)?;
        self.threads.start("http", waker, move || worker.run())
    }

    /// Where plain connections are accepted, with the port that was given for port 0.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// The same of connections with TLS.
    pub fn tls_address(&self) -> Option<SocketAddr> {
        self.tls_address
    }

    /// Closes the listeners and the connections without a request; the others end with
    /// their answer. Ask [`Engine::active`] how many are left.
    pub fn drain(&self) {
        self.threads.set_phase(Phase::Draining);
    }

    /// Connections of clients that are open, but for those behind an upgrade: their protocol
    /// says when it is over, and a drain does not wait for it, as gorouter does not.
    pub fn active(&self) -> u64 {
        self.counters.open_exchanges()
    }

    /// Opens the access log's file anew, soon: it was moved away.
    pub fn reopen_log(&self) {
        if let Some(log) = &self.log {
            log.reopen();
        }
    }

    /// Ends everything now, requests on their way included, and waits until the threads
    /// are gone and the access log is written.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.threads.stop();
        if let Some(log) = self.log.take() {
            log.finish();
        }
        if let Some(envelopes) = self.envelopes.take() {
            envelopes.finish();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.end();
    }
}
