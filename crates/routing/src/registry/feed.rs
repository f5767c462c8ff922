//! From NATS to the table.

use std::sync::Arc;
use std::time::Duration;

use nats::client::{Client, QueueGauge, QueueLimits, State, SubscribeError, Subscription};
use telemetry::{Fields, Logger};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use super::announcement::Announcement;
use super::counters::RegistryCounters;
use super::intake::Intake;
use super::line_budget::LineBudget;
use crate::table::Table;

/// Pause before an announcement that could not be sent is tried again.
const LATER: Duration = Duration::from_secs(1);

/// The subject of what a feed takes from NATS.
pub const MESSAGES: &str = "router.*";

/// Lines about greetings that could not be answered, and about what the server complains of.
const FAILURES_PER_SECOND: u32 = 10;

/// How the feed behaves.
#[derive(Debug, Clone)]
pub struct FeedSettings {
    /// What `router.start` and answers to `router.greet` say.
    pub announcement: Announcement,
    /// Speak HTTP/2 with backends that register so.
    pub http2: bool,
    /// Time between two prunings (`prune_stale_droplets_interval`).
    pub prune_interval: Duration,
    /// Prune nothing while NATS is away (`suspend_pruning_if_nats_unavailable`).
    pub suspend_pruning: bool,
    /// Time from the start in which latencies are not counted
    /// (`route_latency_metric_muzzle_duration`, 20 s).
    pub latency_muzzle: Duration,
}

/// What is known of the connection and its queue, as it is now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeedStats {
    /// Messages that wait to be taken into the table.
    pub buffered_messages: u64,
    /// Messages that were dropped because too many waited.
    pub dropped_messages: u64,
    /// Messages that were received, dropped ones included.
    pub received_messages: u64,
    /// Whether NATS is connected.
    pub connected: bool,
    /// How often the connection was made again.
    pub reconnects: u64,
}

/// The feed from NATS while it runs. Ends when it is dropped.
pub struct Feed {
    task: JoinHandle<()>,
    queue: QueueGauge,
    state: watch::Receiver<State>,
}

impl Feed {
    /// Subscribes to `router.greet`, publishes `router.start`, and from then on keeps `table`
    /// as `messages` say, the subscription to [`MESSAGES`]. Pruning is part of it. Must be
    /// called within a tokio runtime.
    ///
    /// # Errors
    /// When the subscription cannot be sent.
    pub fn start(
        client: Client,
        messages: Subscription,
        table: Arc<Table>,
        settings: FeedSettings,
        counters: Arc<RegistryCounters>,
        logger: Logger,
    ) -> Result<Self, SubscribeError> {
        let state = client.state();
        let greetings = client.subscribe("router.greet", QueueLimits::default())?;
        let queue = messages.gauge();
        let now = wire::clock::now();
        let muzzle = u64::try_from(settings.latency_muzzle.as_nanos()).unwrap_or(u64::MAX);
        let intake = Intake::new(
            Arc::clone(&table),
            Arc::clone(&counters),
            settings.http2,
            now.saturating_add(muzzle),
            logger.clone(),
        );
        let mut feeder = Feeder {
            announcement: settings.announcement.json(),
            reconnects: state.borrow().reconnects,
            connected: true,
            announced: false,
            lines: LineBudget::new(FAILURES_PER_SECOND),
            client,
            table,
            settings,
            counters,
            logger,
            intake,
        };
        feeder.announce();
        let task = tokio::spawn(net::boxed(feeder.run(messages, greetings, state.clone())));
        Ok(Self { task, queue, state })
    }

    /// The connection and its queue, as they are now.
    pub fn stats(&self) -> FeedStats {
        let queue = self.queue.read();
        let state = self.state.borrow();
        FeedStats {
            buffered_messages: queue.buffered as u64,
            dropped_messages: queue.dropped,
            received_messages: queue.received,
            connected: state.connected,
            reconnects: state.reconnects,
        }
    }

    /// Returns when the client was closed for ever, and why its connection ended last.
    pub async fn lost(&self) -> String {
        let mut state = self.state.clone();
        // An end of the client's task is an end too.
        let _ = state.wait_for(|state| state.closed).await;
        let reason = state.borrow().reason.clone();
        reason.map_or_else(|| "it was closed".to_owned(), |reason| reason.to_string())
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Feeder {
    client: Client,
    table: Arc<Table>,
    settings: FeedSettings,
    counters: Arc<RegistryCounters>,
    logger: Logger,
    intake: Intake,
    announcement: Vec<u8>,
    /// Reconnects of which the consequences were drawn.
    reconnects: u64,
    connected: bool,
    /// Whether `router.start` was published for this connection.
    announced: bool,
    lines: LineBudget,
}

impl Feeder {
    async fn run(
        mut self,
        mut messages: Subscription,
        mut greetings: Subscription,
        mut state: watch::Receiver<State>,
    ) {
        let mut prune = tokio::time::interval(self.settings.prune_interval.max(LATER / 1000));
        prune.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick comes at once, when there is nothing to prune.
        prune.tick().await;
        // What the server said before this began.
        state.mark_changed();
        loop {
            // State before anything else: what it means for pruning must be known first.
            tokio::select! {
                biased;
                changed = state.changed() => {
                    let now = state.borrow_and_update().clone();
                    if changed.is_err() || now.closed {
                        return;
                    }
                    self.follow(&now);
                }
                _ = prune.tick() => self.prune(),
                () = tokio::time::sleep(LATER), if !self.announced && self.connected => {
                    self.announce();
                }
                batch = greetings.next() => {
                    let Some(batch) = batch else { return };
                    for greeting in batch.iter().filter(|it| !it.reply.is_empty()) {
                        self.greet(greeting.reply);
                    }
                }
                batch = messages.next() => {
                    let Some(batch) = batch else { return };
                    let pairs = batch.iter().map(|it| (it.subject, it.payload));
                    self.intake.take(pairs, wire::clock::now());
                    // A flood leaves the runtime's thread to others now and then.
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    fn follow(&mut self, state: &State) {
        if self.connected && !state.connected {
            let reason = state.reason.as_deref().unwrap_or("unknown");
            let fields = Fields::new().and("server", &state.server);
            self.logger.error("nats-connection-lost", &reason, fields);
        }
        self.connected = state.connected;
        if state.connected && state.reconnects != self.reconnects {
            self.reconnects = state.reconnects;
            let fields = Fields::new()
                .and("server", &state.server)
                .and("reconnects", state.reconnects);
            self.logger.info("nats-connection-restored", fields);
            if self.settings.suspend_pruning {
                self.table.refresh_all(wire::clock::now());
            }
            self.announced = false;
            self.announce();
        }
        // Of a subscription that it may not have nothing else is ever heard.
        if let Some(reason) = state.reason.as_deref().filter(|_| state.connected)
            && self.lines.take(wire::clock::now())
        {
            let fields = Fields::new().and("server", &state.server);
            self.logger.error("nats-error", &reason, fields);
        }
    }

    fn prune(&mut self) {
        // Looked up, since a change may not have been told yet.
        if self.settings.suspend_pruning && !self.client.state().borrow().connected {
            self.logger.info("prune-suspended", Fields::new());
            return;
        }
        let pruned = self.table.prune(wire::clock::now());
        let endpoints = pruned.endpoints as u64;
        self.counters
            .with(|totals| totals.endpoints_pruned += endpoints);
        if pruned.endpoints > 0 {
            let fields = Fields::new()
                .and("routes", pruned.routes)
                .and("endpoints", pruned.endpoints);
            self.logger.info("pruned-routes", fields);
        }
    }

    fn announce(&mut self) {
        match self.client.publish(b"router.start", &self.announcement) {
            Ok(()) => self.announced = true,
            Err(error) => self.logger.error("announce-failed", &error, Fields::new()),
        }
    }

    fn greet(&mut self, reply: &[u8]) {
        match self.client.publish(reply, &self.announcement) {
            Ok(()) => self.counters.with(|totals| totals.greeted += 1),
            // Whoever greets in a flood does not fill the log too.
            Err(error) if self.lines.take(wire::clock::now()) => {
                self.logger.error("greet-failed", &error, Fields::new());
            }
            Err(_) => {}
        }
    }
}
