//! A proxy between two processes that breaks what passes: toxiproxy's model, for TCP and UDP,
//! per direction and per client, and toxics that come and go while connections live.
//!
//! It needs no rights. What follows from its being a program and no network stands in
//! `docs/faults.md`; the most important is that the kernel completes handshakes for it, so
//! connections are made without delay. A partition for all clients is the exception: see
//! [`gate`].
//!
//! What passes when is computed by [`stream`] and [`datagram`], which know neither sockets nor
//! clocks; [`tcp`] and [`udp`] read, wait and write.

mod applied;
mod bucket;
mod datagram;
mod gate;
mod on_path;
mod stream;
mod tcp;
mod toxic;
mod traffic;
mod udp;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use applied::Applied;
pub use applied::ToxicEffect;
pub use stream::SEGMENT;
pub use toxic::{
    Clients, Direction, Jitter, LONGEST_DELAY, LimitEnd, MOST_TOXICS, Protocol, RateOf, ResetWhen,
    Toxic, ToxicError, ToxicKind,
};
pub use traffic::Traffic;
use traffic::TrafficCounters;

/// Most bytes that all connections of a proxy hold together, but for what each may hold anyhow.
const MOST_HELD: usize = 256 << 20;

/// Where a proxy stands, and its bounds.
#[derive(Debug, Clone)]
pub struct ProxySettings {
    /// What it carries.
    pub protocol: Protocol,
    /// Where it listens: a loopback address; port 0 lets the kernel choose.
    pub listen: SocketAddr,
    /// Whom it forwards to.
    pub upstream: SocketAddr,
    /// What everything random about it is drawn from.
    pub seed: u64,
    /// Most connections at a time, over UDP clients. A connection beyond is reset, a datagram
    /// of a client beyond dropped; both are counted as refused. Each takes two descriptors,
    /// over UDP one.
    pub most_connections: usize,
}

/// Why a proxy could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// It would be open to the network.
    #[error(
        "listen on {listen} for a proxy: that is no loopback address; choose one of 127.0.0.0/8 or ::1"
    )]
    Open {
        /// Where it should have listened.
        listen: SocketAddr,
    },
    /// It would forward to itself.
    #[error("forward from {listen} to itself; name the address of the server")]
    Loop {
        /// The address.
        listen: SocketAddr,
    },
    /// The socket could not be made.
    #[error("listen on {listen} for a proxy: {found}; choose another address, or port 0 for any")]
    Listen {
        /// Where.
        listen: SocketAddr,
        /// What the kernel says.
        found: io::Error,
    },
}

/// A running proxy. Dropping it ends it and closes its connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

/// A toxic that was put on a proxy: what it does, also after it was taken off.
#[derive(Debug, Clone)]
pub struct ToxicHandle(Arc<[applied::Counters; 2]>);

impl ToxicHandle {
    /// What it did in a direction up to now.
    pub fn effect(&self, direction: Direction) -> ToxicEffect {
        self.0[direction.index()].snapshot()
    }
}

/// The toxics that are on, in the order in which they were put on.
type Toxics = Vec<Arc<Applied>>;

/// What the proxy and all of its connections know.
#[derive(Debug)]
struct Shared {
    settings: ProxySettings,
    origin: Instant,
    toxics: watch::Sender<Toxics>,
    traffic: TrafficCounters,
    /// Bytes of memory that all connections hold.
    held: AtomicUsize,
}

impl Proxy {
    /// Starts one in the runtime of the caller.
    ///
    /// # Errors
    /// When the address is none of the machine's own, is the upstream's, or cannot be bound.
    pub async fn start(settings: ProxySettings) -> Result<Self, ProxyError> {
        let listen = settings.listen;
        if !listen.ip().is_loopback() {
            return Err(ProxyError::Open { listen });
        }
        if listen == settings.upstream {
            return Err(ProxyError::Loop { listen });
        }
        let failed = |found| ProxyError::Listen { listen, found };
        let shared = Arc::new(Shared {
            settings,
            origin: Instant::now(),
            toxics: watch::Sender::default(),
            traffic: TrafficCounters::default(),
            held: AtomicUsize::new(0),
        });
        let (address, task) = match shared.settings.protocol {
            Protocol::Tcp => {
                let listener = TcpListener::bind(listen).await.map_err(failed)?;
                let address = listener.local_addr().map_err(failed)?;
                (
                    address,
                    tokio::spawn(tcp::serve(listener, address, Arc::clone(&shared))),
                )
            }
            Protocol::Udp => {
                let socket = UdpSocket::bind(listen).await.map_err(failed)?;
                let address = socket.local_addr().map_err(failed)?;
                (
                    address,
                    tokio::spawn(udp::serve(socket, Arc::clone(&shared))),
                )
            }
        };
        Ok(Self {
            address,
            shared,
            task,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What passed and what did not.
    pub fn traffic(&self) -> Traffic {
        self.shared.traffic.snapshot()
    }

    /// Puts a toxic on. One of the same name is changed: it counts on, and starts anew
    /// otherwise.
    ///
    /// # Errors
    /// When the proxy cannot do it; see [`Toxic::check`]. Then nothing changes.
    pub fn put(&self, toxic: Toxic) -> Result<ToxicHandle, ToxicError> {
        toxic.check(self.shared.settings.protocol)?;
        let seed = self.shared.settings.seed;
        let mut done = Err(ToxicError::TooMany {
            name: toxic.name.clone(),
        });
        self.shared.toxics.send_if_modified(|toxics| {
            let place = toxics.iter().position(|on| on.toxic.name == toxic.name);
            if place.is_none() && toxics.len() >= MOST_TOXICS {
                return false;
            }
            let counters = place.map(|place| Arc::clone(&toxics[place].counters));
            let applied = Arc::new(Applied::new(toxic, seed, counters.unwrap_or_default()));
            done = Ok(ToxicHandle(Arc::clone(&applied.counters)));
            match place {
                Some(place) => toxics[place] = applied,
                None => toxics.push(applied),
            }
            true
        });
        done
    }

    /// Takes a toxic off. What it held passes in order; connections that it ended stay so.
    /// Whether it was on.
    pub fn take_off(&self, name: &str) -> bool {
        self.shared.toxics.send_if_modified(|toxics| {
            let before = toxics.len();
            toxics.retain(|on| on.toxic.name != name);
            toxics.len() < before
        })
    }
}

impl Proxy {
    /// Ends it and waits until its sockets are closed.
    pub async fn stop(mut self) {
        self.task.abort();
        // It was aborted, or it has panicked, which the runtime has told.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    /// Of all toxics those that touch a direction of a connection.
    fn touching(toxics: &Toxics, direction: Direction, client: IpAddr, ordinal: u64) -> Toxics {
        let touches = |on: &&Arc<Applied>| on.touches(direction, client, ordinal);
        toxics.iter().filter(touches).cloned().collect()
    }

    /// How many bytes of memory connections may still hold together.
    fn spare(&self) -> usize {
        MOST_HELD.saturating_sub(self.held.load(Relaxed))
    }
}

/// What one direction of one connection holds, as part of what all do.
struct HeldPart<'s> {
    all: &'s AtomicUsize,
    own: usize,
}

impl<'s> HeldPart<'s> {
    fn of(shared: &'s Shared) -> Self {
        Self {
            all: &shared.held,
            own: 0,
        }
    }

    fn is_now(&mut self, bytes: usize) {
        // Wrapping is as good as signed.
        self.all.fetch_add(bytes.wrapping_sub(self.own), Relaxed);
        self.own = bytes;
    }
}

impl Drop for HeldPart<'_> {
    fn drop(&mut self) {
        self.is_now(0);
    }
}

#[cfg(test)]
mod tests;
