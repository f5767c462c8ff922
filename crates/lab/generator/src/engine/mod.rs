//! The load loop of one thread: its own connections, its own part of the schedule, one
//! poller. Threads share nothing but the compiled requests.
//!
//! An arrival that is due takes the free connection that has been open for longest (of a target
//! with several addresses the one that rested longest); if there is none, another one is opened, up
//! to the limit; beyond it the arrival waits for the first connection that becomes free. No
//! arrival is dropped, and none is put off because the target is slow: its latency counts from
//! the time it was due.
//!
//! The loop owns the traffic, which hands each event on to what it is about: the source
//! (what is due), the pool (connections), the opening of connections, the bytes of plain
//! ones, of those with streams and of pipelines, and the record. None of these knows the traffic.

mod addresses;
mod coalesce;
mod conversation;
mod exchange;
mod opening;
mod outages;
mod pipeline;
mod plain;
mod plan;
mod pool;
mod postgres;
mod reaction;
mod record;
mod sampling;
mod source;
mod spin_window;
mod streams;
mod tally;
mod traffic;
mod websocket;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lab_load::recording::Phase;
use lab_load::request::Composer;
use lab_load::{Pace, Protocol, Segment, Span, Workload};
use wire::clock;
use wire::poller::{Poller, Waker};
use wire::tls::TlsClient;

use coalesce::Coalescer;
use reaction::{LONGEST_WAIT, Wait};
use spin_window::SpinWindow;
use traffic::Traffic;

pub(crate) use addresses::Addresses;
pub use outages::{Due, Outage, Outages};
pub(crate) use postgres::{LOGIN_REFUSED, NO_PASSWORD};
pub(crate) use sampling::{End, Sample, Sampler};

/// Length of a span.
const SECOND: u64 = 1_000_000_000;
/// Arrivals that were due when the segment ended and wait for a connection are sent up
/// to so much after that was seen, in nanoseconds.
const DRAIN: u64 = 1_000_000_000;
/// Bytes that one read can take, and that an incomplete part of an answer may have.
const BUFFER: usize = 128 * 1024;
/// Most connections that a thread opens at the same time before the first request;
/// more would only wait in the queue of a target that accepts slowly.
const AT_ONCE: u32 = 128;

/// What all threads of a generator share.
pub(crate) struct Setup {
    pub(crate) workload: Workload,
    pub(crate) composer: Composer,
    /// Where the target is.
    pub(crate) addresses: Addresses,
    /// How TLS begins, if it does.
    pub(crate) tls: Option<TlsClient>,
    /// Ends the segment that is under way.
    pub(crate) stop: AtomicBool,
    /// When a segment ends that has no length of its own; of no meaning to one that
    /// begins later.
    pub(crate) ends_at: AtomicU64,
    /// Other rates than the segment began with. Those from before a segment's start are of no
    /// meaning to it.
    pub(crate) turns: Turns,
    /// When requests of the segment failed.
    pub(crate) outages: Arc<Outages>,
}

/// Changes of the rate of segments that are under way.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// From when on, and requests per second.
    all: Mutex<Vec<(u64, f64)>>,
    /// How many there are, for threads that look at every turn of their loop.
    count: AtomicUsize,
}

impl Turns {
    /// From `at` on the rate is another.
    pub(crate) fn add(&self, at: u64, rate: f64) {
        let mut all = self.lock();
        all.push((at, rate));
        self.count.store(all.len(), Ordering::Relaxed);
    }

    /// Those after the first `known`; `None`: there are none.
    #[inline]
    pub(crate) fn after(&self, known: usize) -> Option<Vec<(u64, f64)>> {
        let count = self.count.load(Ordering::Relaxed);
        (count > known).then(|| self.lock()[known..].to_vec())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u64, f64)>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How the connections of a protocol carry exchanges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Multiplexing {
    /// One at a time.
    Plain,
    /// Several, whose answers come in any order.
    Streams,
    /// Several, whose answers come in their order.
    Pipeline,
}

impl Setup {
    /// How connections carry exchanges.
    #[inline]
    fn multiplexing(&self) -> Multiplexing {
        match self.workload.target.protocol {
            Protocol::Http2 | Protocol::Grpc => Multiplexing::Streams,
            Protocol::Redis | Protocol::Postgres => Multiplexing::Pipeline,
            Protocol::Http1 | Protocol::WebSocket | Protocol::Tcp | Protocol::Udp => {
                Multiplexing::Plain
            }
        }
    }
}

/// What a thread tells.
pub(crate) enum Report {
    /// Its connections are open; how to wake it.
    Ready(Waker),
    /// Its connections could not be opened, or its segment could not go on.
    Failed(EngineError),
    /// So many of its connections were closed while it did nothing.
    TurnedAway(u32),
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
pub(crate) enum EngineError {
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
    pub(crate) fn send(&self, report: Report) {
        let _ = self.reports.send((self.number, report));
    }
}

/// One thread's loop. Times are nanoseconds of [`clock::now`].
pub(crate) struct Engine {
    setup: Arc<Setup>,
    traffic: Traffic,
    /// When the span under way ends.
    boundary: u64,
    /// Changes of the rate that are known, of all segments so far.
    turned: usize,
}

impl Engine {
    /// The loop of the generator's thread `index`, without connections.
    pub(crate) fn new(setup: Arc<Setup>, index: u32, sampler: Option<Sampler>) -> io::Result<Self> {
        let traffic = Traffic::new(Arc::clone(&setup), index, Poller::new()?, sampler);
        Ok(Self {
            setup,
            traffic,
            boundary: u64::MAX,
            turned: 0,
        })
    }

    /// Wakes this loop from other threads.
    pub(crate) fn waker(&mut self) -> Waker {
        self.traffic.pool.poller().waker().clone()
    }

    /// Runs a segment that begins at `began`. Spans go to `sender`; gives the last ones.
    pub(crate) fn run(
        &mut self,
        segment: &Segment,
        began: u64,
        sender: &ReportSender,
    ) -> Result<Ending, EngineError> {
        let length = segment.length.duration;
        let mut end = length.map(|length| began.saturating_add(nanos(length)));
        // With a number of requests the segment is over when these are.
        let mut by_time = end.is_some() && segment.length.requests.is_none();
        // Until when its own time goes, and whether that is over. Those of a number that are sent
        // later, because the target holds every connection, come after it.
        let mut own_end = end;
        if !by_time && let Some(own) = segment.lasts() {
            let put_off = match self.setup.workload.pace {
                Pace::Tick(tick) => tick,
                _ => Duration::ZERO,
            };
            own_end = Some(began.saturating_add(nanos(own.saturating_add(put_off))));
        }
        let mut own_over = false;
        self.begin(segment, began, sender);
        let ends_at = own_end.unwrap_or(u64::MAX);
        self.traffic.record.tally.ends_at(ends_at);
        let by_users = self.traffic.source.is_users();
        let mut users = by_users.then_some(began);
        self.boundary = began + SECOND;
        let pace = self.setup.workload.pace;
        let mut coalescer = (pace == Pace::Coalesce && by_users).then(|| Coalescer::new(began));
        let mut window = (pace == Pace::Exact && !by_users).then(SpinWindow::new);
        let mut stopped = false;
        loop {
            let now = clock::now();
            if let Some(turns) = self.setup.turns.after(self.turned) {
                self.turned += turns.len();
                // Of the requests that were to come by then, nobody knows when they do now.
                if !turns.is_empty() && !by_time && !own_over {
                    own_end = end;
                    self.traffic.record.tally.ends_at(end.unwrap_or(u64::MAX));
                }
                for (at, rate) in turns.into_iter().filter(|(at, _)| *at > began) {
                    self.traffic.source.turn(at, rate, end);
                }
            }
            if end.is_none()
                && let Some(at) = self.announced_end(began)
            {
                (end, own_end, by_time) = (Some(at), Some(at), true);
                self.traffic.record.tally.ends_at(at);
            }
            if self.ended().is_none()
                && now >= self.boundary
                && own_end.is_none_or(|end| self.boundary < end)
                && !self.traffic.record.tally.is_over()
            {
                self.boundary = self.turn(now, own_end, began, sender);
            }
            if users.is_some_and(|at| at <= now) {
                users = None;
                self.traffic.start_users(now);
            }
            self.expire(now)?;
            self.traffic.dispatch(now);
            if self.ended().is_none() {
                let stop = self.setup.stop.load(Ordering::Relaxed);
                if stop || end.is_some_and(|end| now >= end) {
                    stopped = stop && end.is_none_or(|end| now < end);
                    let at = end.map_or(now, |end| end.min(now));
                    if !own_over {
                        self.finish(at);
                    }
                    self.end_at(at, now, stop);
                } else if !by_time && users.is_none() {
                    if let Some(at) = own_end
                        && now >= at
                        && !own_over
                    {
                        own_over = true;
                        self.finish(at);
                    }
                    // Until all is answered nobody knows whether it was within its own time.
                    let known = own_over || own_end.is_none() || self.traffic.is_idle();
                    if known && self.exhausted() {
                        if !own_over {
                            self.finish(now);
                        }
                        // Journeys that have begun are gone on with.
                        self.traffic.source.run_out(now);
                    }
                }
            }
            if self.ended().is_some() {
                if now >= self.traffic.source.given_up_at() {
                    self.give_up_backlog(now);
                }
                if self.traffic.source.is_exhausted() && self.traffic.is_idle() {
                    self.traffic.record.settle();
                    let planned = self.traffic.source.planned(now);
                    let open = self.traffic.pool.open();
                    let record = &mut self.traffic.record;
                    let (last, after) = record.last(now, planned, open, sender);
                    return Ok(Ending {
                        last,
                        after,
                        stopped,
                    });
                }
            }
            let mut until = self.traffic.next_wake(now);
            if self.ended().is_none() {
                let own_ends = match own_over {
                    true => u64::MAX,
                    false => self.boundary.min(own_end.unwrap_or(u64::MAX)),
                };
                until = until.min(own_ends).min(end.unwrap_or(u64::MAX));
                until = until.min(users.unwrap_or(u64::MAX));
            }
            if let Some(coalescer) = &mut coalescer
                && let Some(nap) = coalescer.nap(now, self.traffic.record.tally.in_flight())
            {
                clock::nap(nap);
                self.traffic
                    .record
                    .reaction
                    .napped(nanos(nap), clock::now());
            }
            let now = clock::now();
            let wake_at = match &mut window {
                Some(window) => window.wake_at(now, until),
                None if pace == Pace::Spin => now,
                None => until,
            };
            // While answers are awaited, a sleep that is too long must be noticed.
            let wake_at = match self.traffic.record.tally.in_flight() {
                0 => wake_at,
                _ => wake_at.min(now + LONGEST_WAIT),
            };
            let longest = Duration::from_nanos(wake_at.saturating_sub(now));
            let (events, slept) = self.wait(longest)?;
            if let Some(window) = &mut window
                && events == 0
                && wake_at > now
            {
                window.slept(wake_at, now + slept);
            }
            if let Some(coalescer) = &mut coalescer {
                coalescer.woken(events, slept);
            }
        }
    }

    /// Opens the connections that are to be held, or says why that cannot be done. A
    /// target that closes one after the other meanwhile has no room for them.
    pub(crate) fn open_held(&mut self) -> Result<(), EngineError> {
        let held = self.traffic.pool.held();
        while self.traffic.pool.open() < held {
            let closed = self.traffic.record.tally.span.connections.closed;
            if closed > u64::from(AT_ONCE.min(held)) {
                let open = self.traffic.pool.open();
                return Err(EngineError::Connection(
                    Phase::Connect,
                    "closed early",
                    open,
                ));
            }
            while self.traffic.pool.opening() < AT_ONCE && self.traffic.pool.lacks() {
                self.traffic.open_another(clock::now());
                self.traffic.opening.trouble.take().map_or(Ok(()), Err)?;
            }
            let until = self.traffic.opening.by.next();
            self.wait(Duration::from_nanos(until.saturating_sub(clock::now())))?;
            self.expire(clock::now())?;
            self.traffic.opening.trouble.take().map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// How many of the held connections are closed by now. Looks at what their sockets have to tell.
    pub(crate) fn turned_away(&mut self) -> Result<u32, EngineError> {
        while self.wait(Duration::ZERO)?.0 > 0 {}
        let pool = &self.traffic.pool;
        Ok(pool.held().saturating_sub(pool.open()))
    }

    /// When the segment that began at `began` ends, once that is announced. Nothing falls
    /// due from then on.
    fn announced_end(&mut self, began: u64) -> Option<u64> {
        let at = self.setup.ends_at.load(Ordering::Relaxed);
        if at <= began {
            return None;
        }
        self.traffic.source.cut(at);
        Some(at)
    }

    /// Waits for events and handles them; says how many there were, and how long the
    /// wait was.
    fn wait(&mut self, longest: Duration) -> Result<(usize, u64), EngineError> {
        let traffic = &mut self.traffic;
        traffic.record.settle();
        let began = clock::now();
        let waited = traffic.pool.poller().wait(Some(longest));
        let ended = clock::now();
        let events = waited.map_err(|error| EngineError::System("wait for sockets", error))?;
        traffic.record.reaction.woken(Wait {
            began,
            ended,
            longest: nanos(longest),
            events,
            full: events == Poller::MOST_EVENTS,
            interrupted: traffic.pool.poller().interrupted(),
        });
        while let Some(event) = traffic.pool.poller().next_event() {
            let now = traffic.handle(&event);
            // A large batch of answers must not delay what is due meanwhile. What belongs to the next
            // span is sent when that has begun.
            if now < self.boundary {
                traffic.dispatch(now);
            }
        }
        traffic.record.settle();
        Ok((events, ended - began))
    }

    fn begin(&mut self, segment: &Segment, began: u64, sender: &ReportSender) {
        self.traffic.begin(segment, began, sender);
        // Connections that were lost since the last segment are replaced beforehand. What
        // the target closed meanwhile is only known when its events were read.
        let now = clock::now();
        while self
            .wait(Duration::ZERO)
            .is_ok_and(|(events, _)| events > 0)
        {}
        self.traffic.hold(now);
    }

    fn ended(&self) -> Option<u64> {
        self.traffic.source.ended()
    }

    /// Whether no request will be begun any more.
    fn exhausted(&self) -> bool {
        let source = &self.traffic.source;
        source.is_exhausted() && (!source.is_users() || self.traffic.is_idle())
    }

    /// Ends the segment: no user goes on, no arrival falls due any more.
    fn end_at(&mut self, at: u64, now: u64, stop: bool) {
        for place in self.traffic.source.end(at, now, stop) {
            self.traffic.break_off(place, at);
        }
        if self.traffic.source.is_users() {
            self.traffic.leave_line(at);
        }
    }

    /// Ends the segment's own time in the record.
    fn finish(&mut self, at: u64) {
        let planned = self.traffic.source.planned(at);
        self.traffic.record.finish(at, planned);
    }

    /// Ends the span at the last whole second, and says when the next one ends.
    fn turn(&mut self, now: u64, end: Option<u64>, began: u64, sender: &ReportSender) -> u64 {
        let traffic = &mut self.traffic;
        let last = end.map_or(now, |end| now.min(end.saturating_sub(1)));
        let end = began + (last - began) / SECOND * SECOND;
        traffic.record.tally.own().planned += traffic.source.planned(end);
        let open = traffic.pool.open();
        traffic.record.turn(end, now, open, sender);
        end + SECOND
    }

    /// Gives up arrivals that still wait for a connection long after the end.
    fn give_up_backlog(&mut self, now: u64) {
        let traffic = &mut self.traffic;
        traffic.record.tally.span.planned += traffic.source.planned(now);
        let (opening, busy) = (!self.traffic.opening.by.is_empty(), self.traffic.busy());
        loop {
            let cause = self.traffic.source.first_lacks(opening, busy);
            if !self.traffic.fail_arrival((Phase::Connect, cause), now) {
                break;
            }
        }
        self.traffic.source.give_up();
    }

    /// Handles what has run out.
    fn expire(&mut self, now: u64) -> Result<(), EngineError> {
        // A thread that did not run for long finds answers, connections and deadlines together:
        // deadlines come last.
        if self.traffic.first_deadline() <= now {
            let pool = &self.traffic.pool;
            let connections = (pool.open() + pool.opening()) as usize;
            for _ in 0..=connections / Poller::MOST_EVENTS {
                if self.wait(Duration::ZERO)?.0 < Poller::MOST_EVENTS {
                    break;
                }
            }
            // What has become free is for those that would give up now.
            self.traffic.dispatch(now);
        }
        self.traffic.expire(now);
        Ok(())
    }
}

/// A length of time in nanoseconds.
fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}
