//! The connection to NATS: what is said goes out, and what routers say about themselves comes in.
//!
//! While NATS is away nothing is kept for it: what waited would be old by its return, when
//! everything is said anew. While it is slow, messages wait within bounds; beyond them the table
//! is told that not all was sent.

use std::sync::Arc;
use std::time::Duration;

use nats::client::{Client, ClientConfig, QueueLimits, State, SubscribeError, Subscription};
use telemetry::{Fields, Logger};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::cadence::{Announcement, Greeted, Greeting};
use super::metrics::Metrics;
use super::registration::Registration;
use super::table::Audience;

/// Batches that may wait for the connection.
const BATCHES: usize = 64;
/// What routers say that may wait.
const WAITING: usize = 64;
/// Pause after rounds of attempts to connect that failed.
const RECONNECT: Duration = Duration::from_secs(1);

/// A message that is to go out.
pub(super) struct Outgoing {
    pub(super) subject: &'static str,
    pub(super) payload: Vec<u8>,
}

impl Outgoing {
    /// The message that registers, or unregisters; none for what does not go over NATS.
    pub(super) fn of(registration: &Registration, registers: bool) -> Option<Self> {
        let (message, subject) = match (registration, registers) {
            (Registration::Http(message), true) => (message, "router.register"),
            (Registration::Http(message), false) => (message, "router.unregister"),
            (Registration::Internal(message), true) => (message, "service-discovery.register"),
            (Registration::Internal(message), false) => (message, "service-discovery.unregister"),
            (Registration::Tcp(_), _) => return None,
        };
        Some(Self {
            subject,
            payload: message.json(),
        })
    }
}

/// What comes from NATS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NatsEvent {
    /// There is a connection: nobody knows what the routers behind it have heard.
    Connected,
    /// A router, or the service discovery, says how often it wants to be told.
    Announced {
        audience: Audience,
        interval: Duration,
        /// It has just started, and knows nothing.
        started: bool,
    },
}

/// The two ends of the connection that the table has.
pub(super) struct Link {
    pub(super) batches: mpsc::Sender<Vec<Outgoing>>,
    pub(super) heard: mpsc::Receiver<NatsEvent>,
}

/// Who is greeted, and where the answers go.
struct Peer {
    audience: Audience,
    /// First word of the subjects.
    service: &'static str,
    inbox: String,
    greeting: Greeting,
    next: Instant,
}

/// The connection, while it is worked.
struct Connection {
    config: ClientConfig,
    peers: Vec<Peer>,
    batches: mpsc::Receiver<Vec<Outgoing>>,
    heard: mpsc::Sender<NatsEvent>,
    metrics: Arc<Metrics>,
    logger: Logger,
}

/// Works a connection until the link is gone. `audiences`: who is greeted.
pub(super) fn connect(
    config: ClientConfig,
    audiences: &[Audience],
    metrics: Arc<Metrics>,
    logger: Logger,
) -> Link {
    let (batches, outgoing) = mpsc::channel(BATCHES);
    let (told, heard) = mpsc::channel(WAITING);
    let peer = |audience: &Audience| {
        let id = uuid::Builder::from_random_bytes(rand::random()).into_uuid();
        Peer {
            audience: *audience,
            service: match audience {
                Audience::External => "router",
                Audience::Internal => "service-discovery",
            },
            inbox: format!("_INBOX.{}", id.simple()),
            greeting: Greeting::default(),
            next: Instant::now(),
        }
    };
    let connection = Connection {
        config,
        peers: audiences.iter().map(peer).collect(),
        batches: outgoing,
        heard: told,
        metrics,
        logger,
    };
    tokio::spawn(net::boxed(connection.run()));
    Link { batches, heard }
}

impl Connection {
    async fn run(mut self) {
        loop {
            let Some(client) = self.connected().await else {
                return;
            };
            let served = self.serve(&client).await;
            self.metrics.connected.set(false);
            match served {
                // What was said last is sent before the end.
                Ok(()) => return client.close().await,
                Err(error) => self
                    .logger
                    .error("nats-connection-ended", &error, Fields::new()),
            }
            sleep(RECONNECT).await;
        }
    }

    /// Connects, however long that takes; `None` once the link is gone. What is to go out
    /// meanwhile does not.
    async fn connected(&mut self) -> Option<Client> {
        loop {
            let connecting = Client::connect(self.config.clone());
            tokio::pin!(connecting);
            let connected = loop {
                tokio::select! {
                    connected = &mut connecting => break connected,
                    batch = self.batches.recv() => self.drop_batch(&batch?),
                }
            };
            match connected {
                Ok(client) => return Some(client),
                Err(error) => {
                    self.logger
                        .error("connecting-to-nats-failed", &error, Fields::new());
                    let pause = sleep(RECONNECT);
                    tokio::pin!(pause);
                    loop {
                        tokio::select! {
                            () = &mut pause => break,
                            batch = self.batches.recv() => self.drop_batch(&batch?),
                        }
                    }
                }
            }
        }
    }

    /// Serves a connection, across its interruptions, until the link is gone.
    async fn serve(&mut self, client: &Client) -> Result<(), ServeError> {
        let (said, mut announcements) = mpsc::channel(WAITING);
        for peer in &self.peers {
            let start = client.subscribe(&format!("{}.start", peer.service), limits())?;
            let answers = client.subscribe(&peer.inbox, limits())?;
            for (subscription, started) in [(start, true), (answers, false)] {
                let (audience, said) = (peer.audience, said.clone());
                let logger = self.logger.clone();
                tokio::spawn(net::boxed(listen(
                    subscription,
                    audience,
                    started,
                    said,
                    logger,
                )));
            }
        }
        let mut state = client.state();
        let mut connection = Current::default();
        loop {
            let now = state.borrow_and_update().clone();
            self.notice(&now, &mut connection).await?;
            let greet = self.peers.iter().filter(|peer| peer.greeting.is_wanted());
            let greet = greet.map(|peer| peer.next).min();
            tokio::select! {
                changed = state.changed() => {
                    if changed.is_err() {
                        return Err(ServeError::Closed);
                    }
                }
                announced = announcements.recv() => {
                    // We hold a sender.
                    if let Some(announced) = announced {
                        self.announced(announced).await;
                    }
                }
                batch = self.batches.recv() => {
                    let Some(batch) = batch else {
                        return Ok(());
                    };
                    match connection.connected {
                        true => self.publish(client, &state, batch).await,
                        false => self.drop_batch(&batch),
                    }
                }
                () = at(greet), if connection.connected => self.greet(client),
            }
        }
    }

    /// Tells the table, and people, when the connection comes or goes.
    async fn notice(&mut self, state: &State, known: &mut Current) -> Result<(), ServeError> {
        if state.closed {
            return Err(ServeError::Closed);
        }
        let now = Current {
            connected: state.connected,
            reconnects: state.reconnects,
        };
        if now == *known {
            return Ok(());
        }
        *known = now;
        self.metrics.connected.set(state.connected);
        if state.connected {
            let fields = Fields::new().and("server", &state.server);
            self.logger.info("connecting-to-nats-succeeded", fields);
            // Whoever is gone gets no say in this: the link ends next.
            let _ = self.heard.send(NatsEvent::Connected).await;
        } else {
            let reason = state.reason.as_deref().unwrap_or("no reason is known");
            self.logger
                .error("nats-connection-lost", &reason, Fields::new());
        }
        Ok(())
    }

    async fn announced(&mut self, heard: NatsEvent) {
        if let NatsEvent::Announced {
            audience, interval, ..
        } = heard
        {
            for peer in self
                .peers
                .iter_mut()
                .filter(|peer| peer.audience == audience)
            {
                peer.greeting.answered();
            }
            let fields = Fields::new().and("interval-seconds", interval.as_secs());
            self.logger.info("received-registry-interval", fields);
        }
        let _ = self.heard.send(heard).await;
    }

    /// Publishes what goes out. Waits for a slow server, and not for one that is away.
    async fn publish(&self, client: &Client, state: &watch::Receiver<State>, batch: Vec<Outgoing>) {
        let mut state = state.clone();
        let mut batch = batch.into_iter();
        while let Some(message) = batch.next() {
            let sent = tokio::select! {
                sent = client.publish_when_room(message.subject.as_bytes(), &message.payload) => sent,
                _ = state.wait_for(|state| !state.connected) => {
                    self.metrics.dropped_messages.add(1 + batch.len());
                    return;
                }
            };
            let count = match (&sent, message.subject.starts_with("router.")) {
                (Err(_), _) => &self.metrics.dropped_messages,
                (Ok(()), true) => &self.metrics.messages.http,
                (Ok(()), false) => &self.metrics.messages.internal,
            };
            count.add(1);
            if let Err(error) = sent {
                let fields = Fields::new().and("subject", message.subject);
                self.logger.error("failed-to-publish", &error, fields);
            }
        }
    }

    fn drop_batch(&self, batch: &[Outgoing]) {
        self.metrics.dropped_messages.add(batch.len());
    }

    /// Greets those who are due.
    fn greet(&mut self, client: &Client) {
        let now = Instant::now();
        for peer in &mut self.peers {
            if !peer.greeting.is_wanted() || peer.next > now {
                continue;
            }
            let subject = format!("{}.greet", peer.service);
            let fields = Fields::new().and("subject", &subject);
            let greeted = client.publish_request(subject.as_bytes(), peer.inbox.as_bytes(), b"");
            if let Err(error) = greeted {
                self.logger.error("failed-to-greet", &error, fields.clone());
            }
            let pause = match peer.greeting.sent() {
                Greeted::Wait(pause) => pause,
                Greeted::InVain(pause) => {
                    let cause = "nobody answers; routes are registered every 20 s until one does";
                    self.logger.error("greeting-in-vain", &cause, fields);
                    pause
                }
            };
            peer.next = now + pause;
        }
    }
}

/// Which connection it is.
#[derive(Debug, Default, PartialEq, Eq)]
struct Current {
    connected: bool,
    reconnects: u64,
}

/// Why a connection is made anew.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error(transparent)]
    Subscribe(#[from] SubscribeError),
    #[error("the client is closed")]
    Closed,
}

/// Routers speak seldom.
fn limits() -> QueueLimits {
    QueueLimits {
        messages: 1024,
        bytes: 1024 * 1024,
    }
}

/// Waits for the time, or for ever without one.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Hands on what is said on a subject, until nobody wants it.
async fn listen(
    mut subscription: Subscription,
    audience: Audience,
    started: bool,
    said: mpsc::Sender<NatsEvent>,
    logger: Logger,
) {
    loop {
        let batch = tokio::select! {
            batch = subscription.next() => batch,
            () = said.closed() => None,
        };
        let Some(batch) = batch else {
            return;
        };
        for message in batch.iter() {
            match Announcement::parse(message.payload) {
                Ok(announcement) => {
                    let heard = NatsEvent::Announced {
                        audience,
                        interval: announcement.interval(),
                        started,
                    };
                    if said.send(heard).await.is_err() {
                        return;
                    }
                }
                Err(error) => {
                    logger.error("received-invalid-registry-interval", &error, Fields::new());
                }
            }
        }
    }
}
