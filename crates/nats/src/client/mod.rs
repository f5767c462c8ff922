//! A client whose queues have bounds.
//!
//! [`Client::connect`] fails when no server can be reached at first. From then on the
//! connection is restored for as long as the client lives, with its subscriptions; what
//! waits to be sent is kept meanwhile. Delivery is what core NATS promises: at most once.

mod config;
mod dial;
mod error;
mod outbox;
mod session;
pub(crate) mod subscription;

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{oneshot, watch};

pub use config::{AddressError, ClientConfig, ServerAddress};
pub use error::{ConnectError, DialError, FlushError, PublishError, SubscribeError};
pub use subscription::{Batch, QueueGauge, QueueLimits, QueueStats, Received, Subscription};

use crate::codec::encode;
use crate::subject;
use dial::Connection;
use outbox::Outbox;
use session::Pings;
use subscription::{Queue, Source};

/// Whether a client is connected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// Whether there is a connection now.
    pub connected: bool,
    /// How often a connection was made again.
    pub reconnects: u64,
    /// The server of this connection, or of the last one.
    pub server: String,
    /// Why there is no connection, or what the server complained about last.
    pub reason: Option<Arc<str>>,
    /// The client was closed: there will be no connection any more.
    pub closed: bool,
}

/// A client. Cheap to clone; closed when the last clone and the last subscription are gone.
#[derive(Clone)]
pub struct Client(Arc<Alive>);

/// Tells the connection's task that nobody holds the client any more.
struct Alive {
    shared: Arc<Shared>,
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.shared.close();
    }
}

struct Shared {
    config: ClientConfig,
    outbox: Outbox,
    queues: Mutex<BTreeMap<u64, Arc<Queue>>>,
    next_sid: AtomicU64,
    max_payload: AtomicUsize,
    pings: Pings,
    state: watch::Sender<State>,
    closing: watch::Sender<bool>,
}

impl Client {
    /// Connects to the first server that accepts us. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When none does, after the attempts of the settings.
    pub async fn connect(config: ClientConfig) -> Result<Self, ConnectError> {
        let shared = Arc::new(Shared {
            outbox: Outbox::new(config.outgoing_bytes),
            queues: Mutex::default(),
            next_sid: AtomicU64::new(1),
            max_payload: AtomicUsize::new(config.payload_bytes),
            pings: Pings::default(),
            state: watch::Sender::default(),
            closing: watch::Sender::new(false),
            config,
        });
        let connection = shared.first_connection().await?;
        tokio::spawn(run(Arc::clone(&shared), connection));
        Ok(Self(Arc::new(Alive { shared })))
    }

    /// Whether the client is connected, now and whenever that changes.
    pub fn state(&self) -> watch::Receiver<State> {
        self.0.shared.state.subscribe()
    }

    /// Subscribes to a subject, which may have wildcards.
    ///
    /// # Errors
    /// When it is no subject, or too much waits to be sent.
    pub fn subscribe(
        &self,
        subject: &str,
        limits: QueueLimits,
    ) -> Result<Subscription, SubscribeError> {
        self.subscribe_as_one_of("", subject, limits)
    }

    /// Subscribes as a member of the group `group`, of which one receives each message;
    /// an empty one is no group.
    ///
    /// # Errors
    /// As [`subscribe`](Self::subscribe).
    pub fn subscribe_as_one_of(
        &self,
        group: &str,
        subject: &str,
        limits: QueueLimits,
    ) -> Result<Subscription, SubscribeError> {
        let group_is_word = group.is_empty() || subject::is_publishable(group.as_bytes());
        if !subject::is_subscribable(subject.as_bytes()) || !group_is_word {
            return Err(SubscribeError::Subject);
        }
        let sid = self.0.shared.next_sid.fetch_add(1, Ordering::Relaxed);
        let queue = Arc::new(Queue::new(subject, group, limits));
        self.0.shared.queues().insert(sid, Arc::clone(&queue));
        let client = self.clone();
        let subscription = Subscription::new(queue, Source::Client { client, sid });
        let sent = self.0.shared.outbox.add(subject.len() + 48, |out| {
            encode::subscribe(out, subject.as_bytes(), group.as_bytes(), sid);
        });
        match sent {
            Err(PublishError::Full(waiting)) => Err(SubscribeError::Full(waiting)),
            _ => Ok(subscription),
        }
    }

    fn unsubscribe(&self, sid: u64) {
        self.0.shared.queues().remove(&sid);
        // If too much waits, the server goes on to send what nobody reads, until the next
        // connection.
        let _ = self
            .0
            .shared
            .outbox
            .add(32, |out| encode::unsubscribe(out, sid));
    }

    /// Publishes: the message waits to be sent when this returns.
    ///
    /// # Errors
    /// When it cannot be published, or too much waits already.
    pub fn publish(&self, subject: &[u8], payload: &[u8]) -> Result<(), PublishError> {
        self.0.shared.check(subject, payload)?;
        outbox::publish(&self.0.shared.outbox, subject, b"", payload)
    }

    /// As [`publish`](Self::publish), naming the subject at which answers are expected.
    ///
    /// # Errors
    /// As [`publish`](Self::publish); the subject of answers must be one as well.
    pub fn publish_request(
        &self,
        subject: &[u8],
        reply: &[u8],
        payload: &[u8],
    ) -> Result<(), PublishError> {
        self.0.shared.check(subject, payload)?;
        if !subject::is_publishable(reply) {
            return Err(PublishError::Subject);
        }
        outbox::publish(&self.0.shared.outbox, subject, reply, payload)
    }

    /// As [`publish`](Self::publish), but waits for room, for as long as the server is
    /// away or slow.
    ///
    /// # Errors
    /// When the message cannot be published or the client is closed.
    pub async fn publish_when_room(
        &self,
        subject: &[u8],
        payload: &[u8],
    ) -> Result<(), PublishError> {
        self.0.shared.check(subject, payload)?;
        let outbox = &self.0.shared.outbox;
        outbox
            .when_room(|| outbox::publish(outbox, subject, b"", payload))
            .await
    }

    /// Waits until the server has read everything that was published before.
    ///
    /// # Errors
    /// When the connection is lost meanwhile; then nobody knows.
    pub async fn flush(&self) -> Result<(), FlushError> {
        if self.0.shared.outbox.is_closed() {
            return Err(FlushError::Closed);
        }
        let before = self.0.shared.state.borrow().clone();
        if !before.connected {
            return Err(FlushError::Away);
        }
        let (sender, receiver) = oneshot::channel();
        self.0
            .shared
            .ping(Some(sender))
            .map_err(|_| FlushError::Away)?;
        // What was published went into that connection, which may be gone by now.
        let now = self.0.shared.state.borrow().clone();
        if !now.connected || now.reconnects != before.reconnects {
            return Err(FlushError::Away);
        }
        receiver.await.map_err(|_| FlushError::Away)
    }

    /// Bytes that the server takes in one message.
    pub fn max_payload(&self) -> usize {
        self.0.shared.max_payload.load(Ordering::Relaxed)
    }

    /// Sends what waits, if there is a connection that takes it in time, and ends.
    pub async fn close(self) {
        let patience = self.0.shared.config.connect_timeout;
        let _ = tokio::time::timeout(patience, self.flush()).await;
        self.0.shared.close();
        let mut state = self.state();
        // The task ends with the runtime at the latest.
        let _ = state.wait_for(|state| state.closed).await;
    }
}

impl Shared {
    async fn first_connection(&self) -> Result<Connection, ConnectError> {
        let attempts = self.config.attempts.max(1);
        let mut attempt = 1;
        loop {
            let Some(outcome) = self.round().await else {
                return Err(ConnectError::NoServer);
            };
            match outcome {
                Ok(connection) => return Ok(connection),
                Err((server, cause)) if attempt >= attempts => {
                    return Err(ConnectError::Unreachable {
                        server,
                        attempts,
                        cause,
                    });
                }
                Err(_) => {}
            }
            attempt += 1;
            tokio::time::sleep(self.config.pause).await;
        }
    }

    /// Tries each server once, beginning behind the one of the last connection. `None`:
    /// there are no servers.
    async fn round(&self) -> Option<Result<Connection, (String, DialError)>> {
        let servers = &self.config.servers;
        let last = self.state.borrow().server.clone();
        let begin = servers
            .iter()
            .position(|server| server.to_string() == last)
            .map_or(0, |at| at + 1);
        let mut failed = None;
        for step in 0..servers.len() {
            let server = &servers[(begin + step) % servers.len()];
            match dial::dial(&self.config, server).await {
                Ok(connection) => {
                    // Known before anyone is told that there is a connection.
                    self.max_payload
                        .store(connection.max_payload, Ordering::Relaxed);
                    self.state.send_modify(|state| {
                        // The first connection is the one before which there was none.
                        state.reconnects += u64::from(!state.server.is_empty());
                        state.connected = true;
                        state.server = server.to_string();
                        state.reason = None;
                    });
                    return Some(Ok(connection));
                }
                Err(error) => failed = Some(Err((server.to_string(), error))),
            }
        }
        failed
    }

    fn check(&self, subject: &[u8], payload: &[u8]) -> Result<(), PublishError> {
        if !subject::is_publishable(subject) {
            return Err(PublishError::Subject);
        }
        let most = self.max_payload.load(Ordering::Relaxed);
        if payload.len() > most {
            return Err(PublishError::Large {
                found: payload.len(),
                most,
            });
        }
        Ok(())
    }

    fn ping(&self, flush: Option<oneshot::Sender<()>>) -> Result<(), DialError> {
        // Noted first: the answer may be quick.
        self.pings
            .sent(flush, || self.outbox.add_liveness(encode::PING))
    }

    async fn closed(&self) {
        // The sender lives as long as this.
        let _ = self.closing.subscribe().wait_for(|closing| *closing).await;
    }

    fn queues(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Queue>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self, sid: u64) -> Option<Arc<Queue>> {
        self.queues().get(&sid).cloned()
    }

    fn server_error(&self, text: &[u8]) {
        let text = String::from_utf8_lossy(&text[..text.len().min(256)]);
        let reason = format!("the server says {text:?}");
        self.state
            .send_modify(|state| state.reason = Some(reason.into()));
    }

    fn close(&self) {
        self.outbox.close();
        self.closing.send_replace(true);
    }
}

/// Serves one connection after the other until the client is closed.
async fn run(shared: Arc<Shared>, mut connection: Connection) {
    while let Some(reason) = session::serve(&shared, connection).await {
        shared.state.send_modify(|state| {
            state.connected = false;
            // What the server said is a better reason than that it hung up.
            if !matches!(reason, DialError::Closed) || state.reason.is_none() {
                state.reason = Some(reason.to_string().into());
            }
        });
        shared.pings.forget(|| shared.outbox.forget_liveness());
        let restored = tokio::select! {
            biased;
            () = shared.closed() => break,
            connection = reconnect(&shared) => connection,
        };
        connection = restored;
    }
    shared.outbox.close();
    shared.pings.forget(|| shared.outbox.forget_liveness());
    for queue in shared.queues().values() {
        queue.close();
    }
    shared.state.send_modify(|state| {
        state.connected = false;
        state.closed = true;
    });
}

/// Tries until a server accepts us.
async fn reconnect(shared: &Shared) -> Connection {
    let mut pause = shared.config.pause;
    loop {
        if let Some(Ok(connection)) = shared.round().await {
            return connection;
        }
        tokio::time::sleep(pause.saturating_add(jitter(pause))).await;
        pause = pause.saturating_mul(2).min(shared.config.longest_pause);
    }
}

/// Up to a quarter of `pause`, so that the clients of a server that comes back do not all
/// come at once.
fn jitter(pause: Duration) -> Duration {
    let random = std::hash::RandomState::new().build_hasher().finish();
    (pause / 4096).saturating_mul((random % 1024) as u32)
}
