//! A backend to measure routers with: it answers every request of HTTP/1.1 with the same
//! bytes, as cheaply as can be (one call to receive, one to send), and it can be told to
//! be slow, to hang, to reset, to close or to fail while it runs.
//!
//! A thread per core, each with a listener of its own (`SO_REUSEPORT`) and nothing shared
//! but the behaviour.

mod answers;
mod behaviour;
mod connection;
mod control;
mod fate;
pub mod target;
#[cfg(test)]
mod tests;
mod worker;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use wire::listeners::BACKLOG;
use wire::poller::Poller;
use wire::socket;
use wire::threads::{Threads, processors};
use wire::tls::{TlsServer, TlsServerOptions};

pub use behaviour::{Behaviour, BehaviourError, Mode};
pub use control::run;
pub use fate::{Fate, Script};

use worker::Worker;

use document::Secret;

/// Largest body of an answer, in bytes.
pub const MOST_BODY_BYTES: usize = 64 * 1024 * 1024;

/// Settings of a backend.
#[derive(Debug, Clone, PartialEq)]
pub struct BackendSettings {
    /// Where it answers; port 0: a free one.
    pub listen: SocketAddr,
    /// Bytes of the body: letters Z, as gostatic's. At most [`MOST_BODY_BYTES`].
    pub body_bytes: usize,
    /// Threads; `None`: one for each processor.
    pub threads: Option<usize>,
    /// Value of the header `X-Backend`; empty: the header is not there.
    pub id: String,
    /// Where the behaviour can be changed; `None`: nowhere.
    pub control: Option<SocketAddr>,
    /// Certificate with its chain, and its key, PEM; `None`: it speaks no TLS.
    pub tls: Option<(String, Secret)>,
}

/// What all threads share.
#[derive(Debug)]
struct Shared {
    behaviour: ArcSwap<Behaviour>,
    /// Decides instead of the behaviour.
    script: Option<Arc<dyn Script>>,
    body_bytes: usize,
    id: String,
    tls: Option<TlsServer>,
    requests: AtomicU64,
    accepted: AtomicU64,
}

/// A backend that runs. Dropping it stops it.
#[derive(Debug)]
pub struct StaticBackend {
    address: SocketAddr,
    shared: Arc<Shared>,
    threads: Threads,
}

impl StaticBackend {
    /// Starts to answer.
    ///
    /// # Errors
    /// When the address cannot be listened on, as when another backend does, certificate or key are
    /// of no use, or a thread cannot be started.
    pub fn start(settings: &BackendSettings) -> io::Result<Self> {
        Self::start_with(settings, None)
    }

    /// Starts to answer as a script decides.
    ///
    /// # Errors
    /// As [`StaticBackend::start`].
    pub fn start_script(settings: &BackendSettings, script: Arc<dyn Script>) -> io::Result<Self> {
        Self::start_with(settings, Some(script))
    }

    fn start_with(settings: &BackendSettings, script: Option<Arc<dyn Script>>) -> io::Result<Self> {
        let threads = settings.threads.unwrap_or_else(processors).clamp(1, 1024);
        if settings.body_bytes > MOST_BODY_BYTES || !is_field_value(&settings.id) {
            let message = format!(
                "expected a body of at most {MOST_BODY_BYTES} bytes and an id of visible ASCII"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let tls = settings.tls.as_ref().map(tls_server).transpose()?;
        let shared = Arc::new(Shared {
            behaviour: ArcSwap::from_pointee(Behaviour::default()),
            script,
            body_bytes: settings.body_bytes,
            id: settings.id.clone(),
            tls,
            requests: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
        });
        let mut backend = Self {
            address: settings.listen,
            shared,
            threads: Threads::default(),
        };
        // Another backend there would take a part of the connections, and behave as nobody asked.
        socket::check_free(settings.listen).map_err(|errno| refused(settings.listen, errno))?;
        for _ in 0..threads {
            // The first thread finds the port that the others then share.
            backend.add_thread()?;
        }
        Ok(backend)
    }

    fn add_thread(&mut self) -> io::Result<()> {
        let at = self.address;
        let listener = socket::listen_tcp(at, BACKLOG, true).map_err(|errno| refused(at, errno))?;
        self.address = socket::local_address(&listener)?;
        let poller = Poller::new()?;
        let waker = poller.waker().clone();
        let worker = Worker::new(poller, listener, Arc::clone(&self.shared))?;
        self.threads.start("backend", waker, move || worker.run())
    }

    /// Where it answers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Requests that it has read so far.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Connections that it has accepted so far.
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::Relaxed)
    }

    /// How it behaves.
    pub fn behaviour(&self) -> Arc<Behaviour> {
        self.shared.behaviour.load_full()
    }

    /// Behaves otherwise, from the next request on.
    pub fn behave(&self, behaviour: Behaviour) {
        self.shared.behaviour.store(Arc::new(behaviour));
    }
}

fn refused(address: SocketAddr, errno: rustix::io::Errno) -> io::Error {
    let cause = io::Error::from(errno);
    io::Error::new(cause.kind(), format!("listen on {address}: {cause}"))
}

fn tls_server((certificate, key): &(String, Secret)) -> io::Result<TlsServer> {
    TlsServer::new(&TlsServerOptions {
        certificates: &[(certificate.clone(), key.to_string())],
        tls13: true,
        protocols: &["http/1.1"],
        ..TlsServerOptions::default()
    })
    .map_err(|cause| {
        let message = format!("prepare TLS of the backend: {cause}");
        io::Error::new(io::ErrorKind::InvalidInput, message)
    })
}

/// Whether a text can stand in a header without changing its meaning.
fn is_field_value(text: &str) -> bool {
    text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && text.trim() == text
}
