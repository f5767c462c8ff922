//! The loop that has the table: what comes in changes it, what changed goes out.
//!
//! Nothing in it waits for anybody. What cannot go out at once is not kept: the table is, and is
//! told anew when there is room.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use diego::CallError;
use net::Shutdown;
use telemetry::{Fields, Logger};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::cadence::Cadence;
use super::events::BbsUpdate;
use super::metrics::Metrics;
use super::nats::{Link, NatsEvent, Outgoing};
use super::registration::Registration;
use super::source::{Answered, Routed, Source};
use super::table::{Audience, Changes, Cursor, Event, Table};
use super::tcp::TcpRoutes;
use super::unregistrations::Unregistrations;

/// Registrations that one batch of a round has.
const PAGE: usize = 512;
/// Time until the BBS is asked even if there is no stream of events.
const FIRST_SYNC: Duration = Duration::from_secs(1);
/// First pause after a sync that failed; pauses double up to the sync interval.
const SYNC_AGAIN: Duration = Duration::from_secs(1);
/// Processes that are asked for at once because an instance of theirs runs.
const MOST_UNKNOWN: usize = 10_000;

/// What a task that asked the BBS brings back.
enum BbsAnswer {
    Everything {
        answer: Result<Answered, CallError>,
        began: Instant,
    },
    Desired(Result<Vec<Routed>, CallError>),
}

/// A round in which everything is registered again.
#[derive(Debug, Default)]
struct Round {
    /// Whether one is under way.
    active: bool,
    behind: Option<Cursor>,
}

/// An audience, and when it is told everything.
struct Listener {
    audience: Audience,
    cadence: Cadence,
    round: Round,
}

/// When the BBS is asked for everything.
struct Syncs {
    interval: Duration,
    due: Instant,
    pause: Duration,
    under_way: bool,
    /// Something was missed since the one under way began.
    again: bool,
}

/// The table, and everybody it has to do with.
pub(super) struct Emitter {
    table: Table,
    source: Source,
    link: Link,
    tcp: Option<Arc<TcpRoutes>>,
    unregistrations: Unregistrations,
    listeners: Vec<Listener>,
    syncs: Syncs,
    /// Processes whose desired LRP is to be asked for.
    unknown: BTreeSet<Arc<str>>,
    asking_unknown: bool,
    asked: mpsc::Sender<BbsAnswer>,
    answers: mpsc::Receiver<BbsAnswer>,
    metrics: Arc<Metrics>,
    logger: Logger,
}

/// What an emitter is made of.
pub(super) struct Parts {
    pub(super) table: Table,
    pub(super) source: Source,
    pub(super) link: Link,
    pub(super) tcp: Option<Arc<TcpRoutes>>,
    pub(super) unregistrations: Unregistrations,
    pub(super) audiences: Vec<Audience>,
    pub(super) sync_interval: Duration,
    pub(super) metrics: Arc<Metrics>,
    pub(super) logger: Logger,
}

impl Emitter {
    pub(super) fn new(parts: Parts) -> Self {
        // One of each kind is under way at most.
        let (asked, answers) = mpsc::channel(2);
        let now = Instant::now();
        let listener = |audience| Listener {
            audience,
            cadence: Cadence::new(now, rand::random()),
            round: Round::default(),
        };
        Self {
            table: parts.table,
            source: parts.source,
            link: parts.link,
            tcp: parts.tcp,
            unregistrations: parts.unregistrations,
            listeners: parts.audiences.into_iter().map(listener).collect(),
            syncs: Syncs {
                interval: parts.sync_interval,
                due: now + FIRST_SYNC.min(parts.sync_interval),
                pause: SYNC_AGAIN,
                under_way: false,
                again: false,
            },
            unknown: BTreeSet::new(),
            asking_unknown: false,
            asked,
            answers,
            metrics: parts.metrics,
            logger: parts.logger,
        }
    }

    /// Works until `shutdown`.
    pub(super) async fn run(mut self, mut news: mpsc::Receiver<BbsUpdate>, mut shutdown: Shutdown) {
        loop {
            let batches = self.link.batches.clone();
            let (due, more) = (self.next_due(), self.has_more());
            tokio::select! {
                () = shutdown.requested() => return,
                Some(news) = news.recv() => self.take(news),
                Some(asked) = self.answers.recv() => self.answered(asked),
                Some(heard) = self.link.heard.recv() => self.handle_nats_event(heard),
                // A round goes on whenever there is room for its next page.
                Ok(room) = batches.reserve(), if more => {
                    let page = self.next_page();
                    if !page.is_empty() {
                        room.send(page);
                    }
                }
                () = sleep_until(due) => {}
            }
            self.do_what_is_due();
        }
    }

    fn take(&mut self, news: BbsUpdate) {
        match news {
            BbsUpdate::Subscribed => {
                self.metrics.subscribed.set(true);
                // What happened before was missed.
                match self.syncs.under_way {
                    true => self.syncs.again = true,
                    false => self.syncs.due = Instant::now(),
                }
            }
            BbsUpdate::Lost => self.metrics.subscribed.set(false),
            BbsUpdate::Happened(events) => {
                self.metrics.events.add(1);
                let mut all = Changes::default();
                for event in events {
                    let changes = self.table.apply(event);
                    all.registered.extend(changes.registered);
                    all.unregistered.extend(changes.unregistered);
                    all.collisions += changes.collisions;
                    self.note_unknown(changes.unknown_process);
                }
                self.send_changes(all);
            }
        }
    }

    fn note_unknown(&mut self, process: Option<Arc<str>>) {
        // More than these are found out by the next sync.
        if let Some(process) = process
            && self.unknown.len() < MOST_UNKNOWN
        {
            self.unknown.insert(process);
        }
    }

    fn handle_nats_event(&mut self, heard: NatsEvent) {
        let now = Instant::now();
        match heard {
            NatsEvent::Connected => {
                for listener in &mut self.listeners {
                    listener.begin(now);
                }
                self.unregistrations.make_due(now);
            }
            NatsEvent::Announced {
                audience,
                interval,
                started,
            } => {
                let listeners = self.listeners.iter_mut();
                for listener in listeners.filter(|it| it.audience == audience) {
                    let random = rand::random();
                    match started {
                        true => listener.cadence.started(interval, now, random),
                        false => listener.cadence.wanted(interval, now, random),
                    }
                }
            }
        }
    }

    fn answered(&mut self, asked: BbsAnswer) {
        match asked {
            BbsAnswer::Everything { answer, began } => self.synced(answer, began),
            BbsAnswer::Desired(answer) => {
                self.asking_unknown = false;
                let desired = match answer {
                    Ok(desired) => desired,
                    Err(error) => {
                        let what = "failed-getting-desired-lrps-routing-info";
                        return self.logger.error(what, &error, Fields::new());
                    }
                };
                for (process, desired) in desired {
                    match desired {
                        Ok(desired) => {
                            let changes = self.table.apply(Event::Desired(desired));
                            self.send_changes(changes);
                        }
                        Err(error) => self.unreadable(&process, &error),
                    }
                }
            }
        }
    }

    fn synced(&mut self, answer: Result<Answered, CallError>, began: Instant) {
        let now = Instant::now();
        self.syncs.under_way = false;
        let finished = match answer {
            Ok(answered) => {
                for (process, cause) in &answered.unreadable {
                    self.unreadable(process, cause);
                }
                let finished = self.table.finish_sync(answered.snapshot);
                finished.map_err(|error| error.to_string())
            }
            Err(error) => {
                self.table.abandon_sync();
                Err(error.to_string())
            }
        };
        match finished {
            Ok(changes) => {
                let took = now - began;
                self.metrics.synced(took);
                let fields = Fields::new()
                    .and("registered", changes.registered.len())
                    .and("unregistered", changes.unregistered.len())
                    .and("seconds", took.as_secs_f64());
                self.logger.info("sync-complete", fields);
                self.syncs.pause = SYNC_AGAIN;
                self.syncs.due = match self.syncs.again {
                    true => now,
                    false => began + self.syncs.interval,
                };
                self.send_changes(changes);
            }
            Err(error) => {
                self.metrics.failed_syncs.add(1);
                self.logger
                    .error("failed-to-sync-events", &error, Fields::new());
                self.syncs.due = now + self.syncs.pause.min(self.syncs.interval);
                self.syncs.pause = (self.syncs.pause * 2).min(self.syncs.interval);
            }
        }
    }

    fn unreadable(&self, process: &str, cause: &dyn std::fmt::Display) {
        let fields = Fields::new().and("process-guid", process);
        self.logger.error("unreadable-routes", cause, fields);
    }

    /// Sends what changed.
    fn send_changes(&mut self, changes: Changes) {
        let now = Instant::now();
        let Changes {
            registered,
            unregistered,
            collisions,
            unknown_process: _,
        } = changes;
        if collisions > 0 {
            self.metrics.collisions.add(collisions as usize);
            let fields = Fields::new().and("addresses", collisions);
            self.logger.info("collision-detected-with-endpoint", fields);
        }
        self.metrics.table(self.table.counts());
        let mut batch = Vec::new();
        for registration in &registered {
            self.unregistrations.forget(&registration.key());
            if self.has_listener(registration) {
                self.metrics.registered.add(registration.routes());
                batch.extend(Outgoing::of(registration, true));
            }
            if let Some(tcp) = &self.tcp {
                tcp.register(registration);
            }
        }
        for registration in unregistered {
            if let Some(tcp) = &self.tcp {
                tcp.unregister(&registration);
            }
            if !self.has_listener(&registration) {
                continue;
            }
            self.metrics.unregistered.add(registration.routes());
            let Some(outgoing) = Outgoing::of(&registration, false) else {
                continue;
            };
            batch.push(outgoing);
            if !self.unregistrations.sent(registration, now) {
                let cause = "too many others are remembered; it is sent once";
                self.logger
                    .error("unregistration-not-remembered", &cause, Fields::new());
            }
        }
        if !batch.is_empty() {
            self.send(batch, now);
        }
        let remembered = self.unregistrations.len() as u64;
        self.metrics.remembered.set(remembered);
    }

    /// Whether anybody listens to such registrations.
    fn has_listener(&self, registration: &Registration) -> bool {
        match registration {
            Registration::Http(_) => true,
            Registration::Tcp(_) => self.tcp.is_some(),
            Registration::Internal(_) => {
                let mut listeners = self.listeners.iter();
                listeners.any(|it| it.audience == Audience::Internal)
            }
        }
    }

    /// Sends a batch if there is room. If there is none, everything is said again once there is.
    fn send(&mut self, batch: Vec<Outgoing>, now: Instant) {
        let Err(failed) = self.link.batches.try_send(batch) else {
            return;
        };
        let dropped = match &failed {
            mpsc::error::TrySendError::Full(batch) | mpsc::error::TrySendError::Closed(batch) => {
                batch.len()
            }
        };
        self.metrics.dropped_messages.add(dropped);
        for listener in &mut self.listeners {
            listener.begin(now);
        }
        self.unregistrations.make_due(now);
    }

    /// Whether there is a page that could go out.
    fn has_more(&self) -> bool {
        let unregistration = self.unregistrations.next_due();
        self.is_connected() && unregistration.is_some_and(|due| due <= Instant::now())
            || self.listeners.iter().any(|it| it.round.active)
    }

    /// Whether anybody receives what is sent again: what nobody would is not used up meanwhile.
    fn is_connected(&self) -> bool {
        self.metrics.connected.is_set()
    }

    /// The next page of unregistrations that are due, or else of a round.
    fn next_page(&mut self) -> Vec<Outgoing> {
        let again = match self.is_connected() {
            true => self.unregistrations.due(Instant::now(), PAGE),
            false => Vec::new(),
        };
        if !again.is_empty() {
            self.metrics.unregistered_again.add(again.len());
            return again
                .iter()
                .filter_map(|it| Outgoing::of(it, false))
                .collect();
        }
        let Some(listener) = self.listeners.iter_mut().find(|it| it.round.active) else {
            return Vec::new();
        };
        let behind = listener.round.behind.take();
        let (page, next) = self.table.page(listener.audience, behind.as_ref(), PAGE);
        listener.round.active = next.is_some();
        listener.round.behind = next;
        for registration in &page {
            self.metrics.repeated.add(registration.routes());
            if let Some(tcp) = &self.tcp {
                tcp.register(registration);
            }
        }
        page.iter()
            .filter_map(|it| Outgoing::of(it, true))
            .collect()
    }

    /// When something is due at the latest.
    fn next_due(&self) -> Instant {
        // What waits for room is woken by that.
        let rounds = self.listeners.iter().filter(|it| !it.round.active);
        let rounds = rounds.map(|it| it.cadence.next());
        let unregistration = self.unregistrations.next_due();
        let unregistration = unregistration.filter(|due| *due > Instant::now());
        let sync = (!self.syncs.under_way).then_some(self.syncs.due);
        let all = rounds.chain(unregistration).chain(sync);
        all.min()
            .unwrap_or_else(|| Instant::now() + self.syncs.interval)
    }

    fn do_what_is_due(&mut self) {
        let now = Instant::now();
        for listener in &mut self.listeners {
            if !listener.round.active && listener.cadence.next() <= now {
                listener.begin(now);
                self.metrics.rounds.add(1);
                let interval = listener.cadence.interval().as_secs();
                let fields = Fields::new().and("interval-seconds", interval);
                self.logger.debug("emitting-routes", fields);
            }
        }
        if !self.syncs.under_way && self.syncs.due <= now {
            self.sync(now);
        }
        if !self.unknown.is_empty() && !self.asking_unknown {
            self.fetch_unknown();
        }
    }

    fn sync(&mut self, began: Instant) {
        self.syncs.under_way = true;
        self.syncs.again = false;
        self.table.begin_sync();
        let running = self.table.running_processes();
        let (source, asked) = (self.source.clone(), self.asked.clone());
        tokio::spawn(net::boxed(async move {
            let answer = source.snapshot(running).await;
            // Nobody takes it any more when all ends.
            let _ = asked.send(BbsAnswer::Everything { answer, began }).await;
        }));
    }

    fn fetch_unknown(&mut self) {
        self.asking_unknown = true;
        let processes = std::mem::take(&mut self.unknown);
        let (source, asked) = (self.source.clone(), self.asked.clone());
        tokio::spawn(net::boxed(async move {
            let answer = source.desired_of(&processes).await;
            let _ = asked.send(BbsAnswer::Desired(answer)).await;
        }));
    }
}

impl Listener {
    /// Begins a round, from the start if one was under way.
    fn begin(&mut self, now: Instant) {
        self.round = Round {
            active: true,
            behind: None,
        };
        self.cadence.done(now, rand::random());
    }
}
