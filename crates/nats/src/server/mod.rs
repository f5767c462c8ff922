//! A NATS endpoint that a process can embed: subjects with wildcards, queue groups, users,
//! TLS, bounds. No clusters, no JetStream, no accounts.

mod config;
mod connection;
mod deliver;
mod local;
mod outbound;
mod peer;
mod sublist;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

pub use config::ServerConfig;

pub(crate) use local::Local;
use local::Locals;
use sublist::{Sub, Sublist, Subscriber};

use crate::client::{QueueLimits, SubscribeError, Subscription};

/// Pause after a failed accept, most of which are a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Why an endpoint could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be had.
    #[error("listen for NATS at {address}: {cause}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        cause: std::io::Error,
    },
}

/// Numbers of an endpoint since its start, and as they are now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerStats {
    /// Clients that are connected.
    pub connections: u64,
    /// Clients that were, those included.
    pub connections_total: u64,
    /// Clients that found no room.
    pub refused: u64,
    /// Subscriptions that exist.
    pub subscriptions: u64,
    /// Messages that were published.
    pub in_messages: u64,
    /// Bytes of their headers and payloads.
    pub in_bytes: u64,
    /// Messages that were given to subscriptions.
    pub out_messages: u64,
    /// Bytes of their headers and payloads.
    pub out_bytes: u64,
    /// Clients that were cut off because too much waited for them.
    pub slow_consumers: u64,
    /// Clients that broke the protocol.
    pub protocol_errors: u64,
    /// Clients that did not prove who they are.
    pub auth_errors: u64,
}

#[derive(Default)]
struct Counters {
    connections_total: AtomicU64,
    refused: AtomicU64,
    in_messages: AtomicU64,
    in_bytes: AtomicU64,
    out_messages: AtomicU64,
    out_bytes: AtomicU64,
    slow_consumers: AtomicU64,
    protocol_errors: AtomicU64,
    auth_errors: AtomicU64,
}

/// One more.
fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

struct Shared {
    config: ServerConfig,
    address: SocketAddr,
    subs: Sublist,
    locals: Locals,
    counters: Counters,
    room: Arc<Semaphore>,
}

impl Shared {
    /// Ends a subscription.
    fn remove(&self, sub: &Arc<Sub>) {
        if let Subscriber::Peer(peer) = &sub.subscriber {
            peer.subs().remove(&sub.sid);
        }
        self.subs.remove(sub);
    }
}

/// Reads an endpoint's numbers from anywhere.
#[derive(Clone)]
pub struct ServerGauge(Arc<Shared>);

impl ServerGauge {
    /// The numbers as they are now.
    pub fn read(&self) -> ServerStats {
        let counters = &self.0.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let free = self.0.room.available_permits();
        ServerStats {
            connections: self.0.config.max_connections.saturating_sub(free) as u64,
            connections_total: read(&counters.connections_total),
            refused: read(&counters.refused),
            subscriptions: self.0.subs.len(),
            in_messages: read(&counters.in_messages),
            in_bytes: read(&counters.in_bytes),
            out_messages: read(&counters.out_messages),
            out_bytes: read(&counters.out_bytes),
            slow_consumers: read(&counters.slow_consumers),
            protocol_errors: read(&counters.protocol_errors),
            auth_errors: read(&counters.auth_errors),
        }
    }
}

/// A running endpoint. Ends when it is dropped.
pub struct Server {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
}

impl Server {
    /// Listens and serves, on the tokio runtime of the caller.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub async fn start(config: ServerConfig) -> Result<Self, StartError> {
        let failed = |cause| StartError::Listen {
            address: config.listen,
            cause,
        };
        let listener = TcpListener::bind(config.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let most = config.max_connections.min(Semaphore::MAX_PERMITS);
        let shared = Arc::new(Shared {
            room: Arc::new(Semaphore::new(most)),
            config,
            address,
            subs: Sublist::default(),
            locals: Locals::default(),
            counters: Counters::default(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { shared, tasks })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// Its numbers, to be read from anywhere.
    pub fn gauge(&self) -> ServerGauge {
        ServerGauge(Arc::clone(&self.shared))
    }

    /// Subscribes within this process: messages come without a connection in between. A
    /// client whose messages fill more than half of the queue is read more slowly; what
    /// finds it full is dropped and counted, as with a client's subscription.
    ///
    /// # Errors
    /// When `subject` is none.
    pub fn subscribe(
        &self,
        subject: &str,
        limits: QueueLimits,
    ) -> Result<Subscription, SubscribeError> {
        local::subscribe(&self.shared, subject, limits)
    }

    /// Closes the listener and all connections.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.locals.close();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Dropped with this task, and all clients with it.
    let mut clients = JoinSet::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
            Some(_) = clients.join_next() => continue,
        };
        match Arc::clone(&shared.room).try_acquire_owned() {
            Ok(permit) => {
                let id = shared
                    .counters
                    .connections_total
                    .fetch_add(1, Ordering::Relaxed)
                    + 1;
                clients.spawn(serve(Arc::clone(&shared), stream, id, permit));
            }
            Err(_) => {
                count(&shared.counters.refused);
                // Told without waiting: whoever floods us gets no task for it.
                let mut out = bytes::BytesMut::new();
                crate::codec::encode::error(&mut out, "maximum connections exceeded");
                let _ = stream.try_write(&out);
            }
        }
    }
}

async fn serve(
    shared: Arc<Shared>,
    stream: tokio::net::TcpStream,
    id: u64,
    _permit: OwnedSemaphorePermit,
) {
    connection::serve(shared, stream, id).await;
}
