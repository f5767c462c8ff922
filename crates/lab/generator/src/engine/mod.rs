//! The load loop of one thread: its own connections, its own part of the schedule, one
//! poller. Threads share nothing but the compiled requests.
//!
//! An arrival that is due takes the free connection that was used last; if there is
//! none, another one is opened, up to the limit; beyond it the arrival waits for the
//! first connection that becomes free. No arrival is dropped, and none is put off
//! because the target is slow: its latency counts from the time it was due.

mod answering;
mod asking;
mod coalesce;
mod connection;
mod opening;
mod outages;
mod plan;
mod reaction;
mod sampling;
mod spans;
mod streams;
mod talk;
mod tally;
mod upgrading;
mod vigil;
mod websocket;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

use lab_load::recording::{NONE_FREE, Phase};
use lab_load::{Model, Pace, Segment, Span, Workload};
use wire::clock;
use wire::deadlines::{Deadlines, NEVER};
use wire::http1::KnownHead;
use wire::poller::{Event, Poller, Waker};
use wire::tls::TlsClient;

use coalesce::Coalescer;
use connection::{Connection, Link, Use};
use lab_load::request::Composer;
use plan::{Plan, Timing};
use reaction::{LONGEST_WAIT, Reaction, Wait};
use tally::Tally;
use vigil::Vigil;

pub use outages::{Outage, Outages};
pub(crate) use sampling::{End, Sample, Sampler};

/// Length of a span.
const SECOND: u64 = 1_000_000_000;
/// Arrivals that were due when the segment ended and wait for a connection are sent up
/// to so much later, in nanoseconds.
const DRAIN: u64 = 1_000_000_000;
/// Bytes that one read can take, and that an incomplete part of an answer may have.
const BUFFER: usize = 128 * 1024;
/// The poller's name for calls from outside.
const WAKER: u64 = u64::MAX;

/// What all threads of a generator share.
pub(crate) struct Setup {
    pub(crate) workload: Workload,
    pub(crate) composer: Composer,
    /// Where the target is.
    pub(crate) address: SocketAddr,
    /// How TLS begins, if it does.
    pub(crate) tls: Option<TlsClient>,
    /// Ends the segment that is under way.
    pub(crate) stop: AtomicBool,
    /// When a segment ends that has no length of its own; of no meaning to one that
    /// begins later.
    pub(crate) ends_at: AtomicU64,
    /// When requests of the segment failed.
    pub(crate) outages: Arc<Outages>,
}

/// What a thread tells.
pub(crate) enum Report {
    /// Its connections are open; how to wake it.
    Ready(Waker),
    /// Its connections could not be opened, or its segment could not go on.
    Failed(Trouble),
    /// A span of its own has ended.
    Span(Box<Span>),
    /// Its segment has ended.
    Ended(Ending),
}

/// How a thread's segment ended.
pub(crate) struct Ending {
    /// The last span of the segment's own time.
    pub(crate) last: Box<Span>,
    /// What came after it, until the last answer.
    pub(crate) after: Option<Box<Span>>,
    /// Whether it was stopped before its time.
    pub(crate) stopped: bool,
}

/// What stopped a thread.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// A connection could not be opened, when so many were open.
    Connection(Phase, &'static str, u32),
    /// The kernel refused something else.
    System(&'static str, io::Error),
}

/// Where a thread's spans go to, and where emptied ones come from.
pub(crate) struct ReportSender {
    pub(crate) number: usize,
    pub(crate) reports: SyncSender<(usize, Report)>,
    pub(crate) emptied: Receiver<Box<Span>>,
}

impl ReportSender {
    /// Tells something. Nobody listens when the generator is being dropped.
    pub(crate) fn tell(&self, report: Report) {
        let _ = self.reports.send((self.number, report));
    }
}

/// Who decides when the next request is made.
#[derive(Debug)]
enum Source {
    /// Nobody: there is no segment, or it is over.
    Nobody,
    /// The schedule.
    Schedule(Box<Plan>),
    /// Users: each as soon as its last answer and its pause are over.
    Users {
        think: u64,
        /// Number of the next request, and the distance to the one after it.
        next: u64,
        step: u64,
        /// Requests that are left.
        left: u64,
    },
}

/// One thread's loop. Times are nanoseconds of [`clock::now`].
pub(crate) struct Engine {
    setup: Arc<Setup>,
    /// Number of this thread over all generators, and how many there are.
    thread: u32,
    threads: u32,
    poller: Poller,
    waker: Waker,
    connections: Vec<Connection>,
    /// Open connections without a request; the last one is used first.
    free: Vec<u32>,
    /// Closed connections that may be opened for an arrival.
    spare: Vec<u32>,
    /// Exchanges at a time on one connection.
    streams: u32,
    /// Places whose connections are to be kept open, and most that may be.
    held: u32,
    most: u32,
    open: u32,
    /// Places with connections under way, and those of them that no request is bound
    /// to yet.
    opening: u32,
    unbound: u32,
    /// Requests that are bound to a connection under way.
    waiting: u32,
    /// How long answers and connections may take, and until when those under way do.
    answer_within: u64,
    open_within: u64,
    answer_by: Deadlines,
    open_by: Deadlines,
    /// Until when users pause.
    pauses: Deadlines,
    tally: Tally,
    reaction: Reaction,
    source: Source,
    /// Whether users decide when requests are made, not the schedule.
    users: bool,
    /// Number of the segment's first arrival.
    first: u64,
    /// Arrivals below these numbers had to wait for a connection to open, or for one
    /// to become free because no more may be opened.
    excused: u64,
    capped: u64,
    /// Arrivals that came due, up to the last span; requests of journeys beyond the
    /// first in this span.
    came_due: u64,
    later_steps: u64,
    /// When the segment ended; requests may still be under way.
    ended: Option<u64>,
    /// The first connection that could not be opened.
    trouble: Option<Trouble>,
    request: Vec<u8>,
    framed: Vec<u8>,
    buffer: Vec<u8>,
    /// The head of the last answer of HTTP/1.1.
    known: KnownHead,
    /// Connections begun so far.
    begun: u64,
    /// Connections with several exchanges that have something to send.
    unsent_streams: Vec<u32>,
    /// When the first request was made that these have to send.
    asked: Option<u64>,
    unsent_span: Option<Box<Span>>,
    /// Takes requests one by one, if anybody wants them so.
    sampler: Option<Sampler>,
}

impl Engine {
    /// The loop of the generator's thread `index`, without connections.
    pub(crate) fn new(setup: Arc<Setup>, index: u32, sampler: Option<Sampler>) -> io::Result<Self> {
        let poller = Poller::new()?;
        let waker = Waker::new(&poller, WAKER)?;
        let workload = &setup.workload;
        let part = |all: u32| all / workload.threads + u32::from(index < all % workload.threads);
        // A place carries one exchange at a time; the places of a connection that
        // carries several open and close together.
        let streams = workload.connections.streams.max(1);
        let held = part(workload.connections.held) * streams;
        let span = Box::new(Span::empty(setup.composer.kinds().len()));
        Ok(Self {
            thread: workload.share.first + index,
            threads: workload.share.threads.max(workload.threads),
            poller,
            waker,
            connections: Vec::new(),
            free: Vec::new(),
            spare: Vec::new(),
            held,
            most: (part(workload.connections.most) * streams).max(held),
            streams,
            open: 0,
            opening: 0,
            unbound: 0,
            waiting: 0,
            answer_within: nanos(workload.timeout),
            open_within: nanos(workload.connections.connect_within),
            answer_by: Deadlines::default(),
            open_by: Deadlines::default(),
            pauses: Deadlines::default(),
            tally: Tally::new(clock::now(), span),
            reaction: Reaction::new(clock::now()),
            source: Source::Nobody,
            users: false,
            first: 0,
            excused: 0,
            capped: 0,
            came_due: 0,
            later_steps: 0,
            ended: None,
            trouble: None,
            request: Vec::new(),
            framed: Vec::new(),
            known: KnownHead::default(),
            begun: 0,
            unsent_streams: Vec::new(),
            asked: None,
            buffer: vec![0; BUFFER],
            unsent_span: None,
            sampler,
            setup,
        })
    }

    /// Wakes this loop from other threads.
    pub(crate) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Runs a segment that begins at `began`. Spans go to `sender`; gives the last ones.
    pub(crate) fn run(
        &mut self,
        segment: &Segment,
        began: u64,
        sender: &ReportSender,
    ) -> Result<Ending, Trouble> {
        let length = segment.length.duration;
        let mut end = length.map(|length| began.saturating_add(nanos(length)));
        // With a number of requests the segment is over when these are.
        let mut by_time = end.is_some() && segment.length.requests.is_none();
        self.begin(segment, began, sender);
        self.tally.ends_at(end.unwrap_or(u64::MAX));
        let mut users = self.users.then_some(began);
        let mut boundary = began + SECOND;
        let mut coalescer = (self.setup.workload.pace == Pace::Coalesce && users.is_some())
            .then(|| Coalescer::new(began));
        let spin = self.setup.workload.pace == Pace::Spin;
        let mut vigil =
            (self.setup.workload.pace == Pace::Exact && users.is_none()).then(Vigil::new);
        let mut stopped = false;
        loop {
            let now = clock::now();
            if end.is_none()
                && let Some(at) = self.told_end(began)
            {
                (end, by_time) = (Some(at), true);
                self.tally.ends_at(at);
            }
            if self.ended.is_none()
                && now >= boundary
                && end.is_none_or(|end| boundary < end)
                && !self.tally.is_over()
            {
                boundary = self.turn(now, end, began, sender);
            }
            if users.is_some_and(|at| at <= now) {
                users = None;
                self.start_users(now);
            }
            self.expire(now)?;
            self.dispatch(now);
            self.send_streams();
            if self.ended.is_none() {
                let stop = self.setup.stop.load(Ordering::Relaxed);
                if stop || end.is_some_and(|end| now >= end) {
                    stopped = stop && end.is_none_or(|end| now < end);
                    self.end_at(end.map_or(now, |end| end.min(now)), stop);
                } else if !by_time && users.is_none() && self.exhausted() {
                    self.ended = Some(now);
                    self.finish(now);
                }
            }
            if let Some(ended) = self.ended {
                if now >= ended.saturating_add(DRAIN) {
                    self.give_up_backlog(now);
                }
                if self.settled() {
                    let (last, after) = self.last(now, sender);
                    return Ok(Ending {
                        last,
                        after,
                        stopped,
                    });
                }
            }
            let mut until = self.next_wake(now);
            if self.ended.is_none() {
                until = until.min(boundary).min(end.unwrap_or(u64::MAX));
                until = until.min(users.unwrap_or(u64::MAX));
            }
            if let Some(coalescer) = &mut coalescer
                && let Some(nap) = coalescer.nap(now, self.tally.in_flight())
            {
                clock::nap(nap);
                self.reaction.napped(nanos(nap), clock::now());
            }
            let now = clock::now();
            let wake_at = match &mut vigil {
                Some(vigil) => vigil.wake_at(now, until),
                None if spin => now,
                None => until,
            };
            // While answers are awaited, a sleep that is too long must be noticed.
            let wake_at = match self.tally.in_flight() {
                0 => wake_at,
                _ => wake_at.min(now + LONGEST_WAIT),
            };
            let longest = Duration::from_nanos(wake_at.saturating_sub(now));
            let (events, slept) = self.wait(longest)?;
            if let Some(vigil) = &mut vigil
                && events == 0
                && wake_at > now
            {
                vigil.slept(wake_at, now + slept);
            }
            if let Some(coalescer) = &mut coalescer {
                coalescer.woken(events, slept);
            }
        }
    }

    /// When the segment that began at `began` ends, once that is told. Nothing falls
    /// due from then on.
    fn told_end(&mut self, began: u64) -> Option<u64> {
        let at = self.setup.ends_at.load(Ordering::Relaxed);
        if at <= began {
            return None;
        }
        if let Source::Schedule(plan) = &mut self.source {
            plan.end_at(at);
        }
        Some(at)
    }

    /// Waits for events and handles them; says how many there were, and how long the
    /// wait was.
    fn wait(&mut self, longest: Duration) -> Result<(usize, u64), Trouble> {
        self.settle_answers();
        let began = clock::now();
        let waited = self.poller.wait(Some(longest));
        let ended = clock::now();
        let events = waited.map_err(|error| Trouble::System("wait for sockets", error))?;
        self.reaction.woken(Wait {
            began,
            ended,
            longest: nanos(longest),
            events,
            full: events == Poller::MOST_EVENTS,
            interrupted: self.poller.interrupted(),
        });
        for index in 0..events {
            let Some(event) = self.poller.event(index) else {
                break;
            };
            let now = self.handle(event);
            // A large batch of answers must not delay what is due meanwhile.
            self.dispatch(now);
            self.send_streams();
        }
        self.settle_answers();
        Ok((events, ended - began))
    }

    /// Takes note of what this thread may have added to the answers that it has read.
    fn settle_answers(&mut self) {
        if self.reaction.is_settled() {
            return;
        }
        let tally = &mut self.tally;
        self.reaction.settle(|answered, intended, actual| {
            let kind = tally.kind(answered.kind);
            kind.intended_doubt.record_ns(answered.intended, intended);
            kind.actual_doubt.record_ns(answered.actual, actual);
        });
    }

    /// Handles one event, and says when it did.
    fn handle(&mut self, event: Event) -> u64 {
        if event.token == WAKER {
            self.waker.clear();
            return clock::now();
        }
        let place = event.token as u32;
        let Some(connection) = self.connections.get(place as usize) else {
            return clock::now();
        };
        // An event of a stream that was closed since is nobody's.
        if connection.token(place) != event.token {
            return clock::now();
        }
        match connection.link {
            Link::Closed => clock::now(),
            Link::Connecting | Link::Handshaking | Link::Upgrading => self.go_on_opening(place),
            Link::Open if connection.session.is_some() => self.take_streams(place),
            Link::Open => {
                if event.writable && connection.writing {
                    self.send_rest(place);
                }
                match event.readable {
                    true => self.take_answer(place),
                    false => clock::now(),
                }
            }
        }
    }

    fn begin(&mut self, segment: &Segment, began: u64, sender: &ReportSender) {
        let seed = self.setup.workload.seed;
        // What happened to connections since the last segment belongs to this one.
        let connections = std::mem::take(&mut self.tally.span.connections);
        self.tally = Tally::new(began, self.empty_span(sender));
        self.tally.span.connections = connections;
        (self.first, self.excused, self.capped) = (segment.first, 0, 0);
        (self.came_due, self.later_steps, self.ended) = (0, 0, None);
        self.source = match &segment.model {
            Model::Open(arrivals) => {
                // Segments at the same rate are not the same schedule.
                let schedule = arrivals.schedule(&segment.length, seed ^ segment.first);
                let tick = match self.setup.workload.pace {
                    Pace::Tick(tick) => nanos(tick),
                    _ => 0,
                };
                let timing = Timing { began, tick };
                let plan = Plan::new(schedule, self.thread, self.threads, timing);
                Source::Schedule(Box::new(plan))
            }
            Model::Closed { think } => {
                let own = |all: u64| {
                    let (thread, threads) = (u64::from(self.thread), u64::from(self.threads));
                    all / threads + u64::from(thread < all % threads)
                };
                Source::Users {
                    think: nanos(*think),
                    next: segment.first + u64::from(self.thread),
                    step: u64::from(self.threads),
                    left: segment.length.requests.map_or(u64::MAX, own),
                }
            }
        };
        self.users = matches!(self.source, Source::Users { .. });
        // Connections that were lost since the last segment are replaced beforehand.
        self.hold(clock::now());
    }

    /// Whether no request will be begun any more.
    fn exhausted(&self) -> bool {
        match &self.source {
            Source::Nobody => true,
            Source::Schedule(plan) => plan.next_due().is_none(),
            Source::Users { left, .. } => *left == 0 && self.idle(),
        }
    }

    /// Whether no request is under way, and no user pauses.
    fn idle(&self) -> bool {
        self.tally.in_flight() == 0 && self.waiting == 0 && self.pauses.is_empty()
    }

    /// Whether the segment has ended and nothing of it is left.
    fn settled(&mut self) -> bool {
        let all_sent = match &self.source {
            Source::Schedule(plan) => plan.next_due().is_none(),
            Source::Nobody | Source::Users { .. } => true,
        };
        all_sent && self.idle()
    }

    /// Ends the segment: no user goes on, no arrival falls due any more.
    fn end_at(&mut self, at: u64, stop: bool) {
        self.ended = Some(at);
        self.finish(at);
        if stop || !matches!(self.source, Source::Schedule(_)) {
            self.source = Source::Nobody;
        }
        let thinking: Vec<u32> = self.pauses.iter().map(|(place, _)| place).collect();
        for place in thinking {
            self.pauses.clear(place);
            self.connections[place as usize].exchange.visit = None;
            self.release(place, at, 0);
        }
    }

    /// Gives up arrivals that still wait for a connection long after the end: the target
    /// holds them all.
    fn give_up_backlog(&mut self, now: u64) {
        if let Source::Schedule(_) = self.source {
            self.came_due(now);
            while self.fail_arrival(Phase::Connect, NONE_FREE, now) {}
            self.source = Source::Nobody;
        }
    }

    /// When something is to be done even if no socket has anything to tell.
    fn next_wake(&self, now: u64) -> u64 {
        let arrival = match &self.source {
            Source::Schedule(plan) => match plan.next_due() {
                Some(due) if due > now => Some(due),
                // Arrivals wait for connections. One more can only get a connection
                // of its own.
                Some(_) if self.open + self.opening < self.most => plan.next_to_fall_due(),
                _ => None,
            },
            _ => None,
        };
        let drained = match (&self.source, self.ended) {
            (Source::Schedule(_), Some(ended)) => Some(ended.saturating_add(DRAIN)),
            _ => None,
        };
        let deadlines = [&self.answer_by, &self.open_by, &self.pauses];
        let deadlines = deadlines.into_iter().map(Deadlines::next);
        let others = [arrival, drained].into_iter().flatten();
        deadlines.chain(others).min().unwrap_or(NEVER)
    }

    /// Handles what has run out.
    fn expire(&mut self, now: u64) -> Result<(), Trouble> {
        // A thread that did not run for long finds answers and deadlines together:
        // answers come first.
        if self.answer_by.next() <= now {
            self.wait(Duration::ZERO)?;
        }
        while let Some((place, _)) = self.answer_by.expired(now) {
            self.fail(place, Phase::Timeout, "timeout", now);
        }
        while let Some((place, _)) = self.open_by.expired(now) {
            let phase = self.opening_phase(place);
            self.opening_failed(place, phase, "timeout", now);
        }
        while let Some((place, at)) = self.pauses.expired(now) {
            self.resume(place, at, now);
        }
        Ok(())
    }
}

impl Engine {
    fn connection(&mut self, place: u32) -> &mut Connection {
        &mut self.connections[place as usize]
    }

    fn is(&self, place: u32, used: Use) -> bool {
        self.connections[place as usize].exchange.used == used
    }
}

/// A length of time in nanoseconds.
fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}
