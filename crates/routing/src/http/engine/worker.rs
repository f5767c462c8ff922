//! One thread: it waits for its sockets and handles what happens to them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use wire::clock;
use wire::poller::{Event, Poller, Waker};
use wire::slab::{Key, Slab};

use super::accept::Listener;
use super::buffers::Buffers;
use super::http2::Http2;
use super::log_writer::LogLines;
use super::pools::Pools;
use super::resolver::Resolver;
use super::session::{Flight, Phase, Session, Whereabouts};
use super::tls::Tls;
use super::token;
use crate::http::counters::ThreadCounters;
use crate::http::pipeline::{Pipeline, Times};
use crate::http::settings::HttpSettings;
use crate::selection::SelectionSettings;
use crate::table::{Nanos, Table};
use wire::deadlines::{Deadlines, NEVER};

/// A turn of the loop that takes longer than this is counted as late.
const LATE: Nanos = 50_000_000;
/// The difference between both clocks is looked at this often.
const WALL_EVERY: Nanos = 20_000_000;
/// Used flights that are kept for the next requests.
const SPARE_FLIGHTS: usize = 256;

/// Deadlines are late by up to this, so that many connections cost few wake-ups.
pub(super) const GRAIN: Duration = Duration::from_millis(10);

/// What an engine is doing.
pub(super) const RUNNING: u8 = 0;
pub(super) const DRAINING: u8 = 1;
pub(super) const STOPPED: u8 = 2;

/// What all threads share.
pub(super) struct Shared {
    pub(super) pipeline: Pipeline,
    pub(super) settings: Arc<HttpSettings>,
    pub(super) selection: SelectionSettings,
    pub(super) tls: Tls,
    pub(super) resolver: Resolver,
    pub(super) table: Arc<Table>,
    pub(super) healthy: Arc<AtomicBool>,
    /// [`RUNNING`], [`DRAINING`] or [`STOPPED`].
    pub(super) state: AtomicU8,
}

/// One thread. See the module.
pub(super) struct Worker {
    pub(super) shared: Arc<Shared>,
    pub(super) counters: Arc<ThreadCounters>,
    pub(super) poller: Poller,
    waker: Waker,
    pub(super) listeners: Vec<Listener>,
    /// Most connections of clients on this thread.
    pub(super) most_clients: usize,
    pub(super) clients: Slab<Box<Session>>,
    pub(super) links: Slab<Whereabouts>,
    pub(super) http2: Http2,
    pub(super) client_deadlines: Deadlines,
    pub(super) link_deadlines: Deadlines,
    pub(super) pools: Pools,
    pub(super) buffers: Buffers,
    #[expect(clippy::vec_box, reason = "flights are large, and move in and out")]
    flights: Vec<Box<Flight>>,
    pub(super) log: Option<LogLines>,
    pub(super) random: SmallRng,
    /// When the event came that is being handled.
    pub(super) now: Nanos,
    /// What to add to `now` for the time since 1970, and when that was looked at.
    wall: (u64, Nanos),
    /// Connections with bytes that the poller does not know of (decrypted already).
    again: Vec<Key>,
    /// Connections whose request waits for a name to be resolved.
    pub(super) resolving: Vec<Key>,
    /// When to try to accept again after the system had no descriptors left.
    pub(super) accept_again: Nanos,
    /// The engine's state as this thread saw it last.
    pub(super) state: u8,
}

impl Worker {
    pub(super) fn new(
        shared: Arc<Shared>,
        counters: Arc<ThreadCounters>,
        listeners: Vec<Listener>,
        most_clients: usize,
        log: Option<LogLines>,
    ) -> io::Result<Self> {
        let poller = Poller::new()?;
        let waker = Waker::new(&poller, Key::of(0).token(token::WAKER))?;
        let mut worker = Self {
            shared,
            counters,
            poller,
            waker,
            listeners,
            most_clients,
            clients: Slab::default(),
            links: Slab::default(),
            http2: Http2::default(),
            client_deadlines: Deadlines::with_grain(GRAIN),
            link_deadlines: Deadlines::with_grain(GRAIN),
            pools: Pools::default(),
            buffers: Buffers::default(),
            flights: Vec::new(),
            log,
            random: SmallRng::from_rng(&mut rand::rng()),
            now: clock::now(),
            wall: (0, 0),
            again: Vec::new(),
            resolving: Vec::new(),
            accept_again: NEVER,
            state: RUNNING,
        };
        worker.listen()?;
        Ok(worker)
    }

    /// Wakes this thread from others.
    pub(super) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Runs until the engine stops.
    pub(super) fn run(mut self) {
        loop {
            self.now = clock::now();
            if !self.follow() {
                break;
            }
            let until = self.next_wake();
            let longest =
                (until != NEVER).then(|| Duration::from_nanos(until.saturating_sub(self.now)));
            // Only a broken poller fails here: nothing can be served any more.
            let Ok(events) = self.poller.wait(longest) else {
                break;
            };
            let woken = clock::now();
            self.now = woken;
            for index in 0..events {
                let Some(event) = self.poller.event(index) else {
                    break;
                };
                if index > 0 {
                    self.now = clock::now();
                }
                self.handle(event);
            }
            self.revisit();
            self.expire();
            self.counters.turns.increment();
            if self.now.saturating_sub(woken) > LATE {
                self.counters.late_turns.increment();
            }
            if let Some(log) = &mut self.log
                && log.due() <= self.now
            {
                log.hand_over(&self.counters);
            }
        }
        self.give_up_all();
    }

    /// Does what the engine's state asks for; `false`: end.
    fn follow(&mut self) -> bool {
        let state = self.shared.state.load(Ordering::Relaxed);
        if state != self.state {
            self.state = state;
            self.listeners.clear();
            self.shut_fronts_down();
            self.close_idle();
        }
        state != STOPPED
    }

    /// Closes the connections of clients that carry no request.
    fn close_idle(&mut self) {
        for index in 0..self.clients.places() {
            let Some(key) = self.clients.key_at(index) else {
                continue;
            };
            self.with_client(key, |worker, session| {
                if session.phase == Phase::Idle && session.outbox.is_empty() {
                    session.phase = Phase::Closed;
                } else {
                    worker.settle(session);
                }
            });
        }
    }

    /// The end: what is on its way is cut off, and logged.
    fn give_up_all(&mut self) {
        for index in 0..self.clients.places() {
            if let Some(key) = self.clients.key_at(index) {
                self.with_client(key, |worker, session| worker.client_gone(session));
            }
        }
        self.give_up_http2();
        if let Some(log) = &mut self.log {
            log.hand_over(&self.counters);
        }
        let idle = self.pools.len() as u64;
        for _ in 0..idle {
            self.counters.idle_backends.decrement();
            self.counters.open_backends.decrement();
        }
    }

    fn next_wake(&self) -> Nanos {
        if !self.again.is_empty() || self.http2.has_more() {
            return self.now;
        }
        let log = self.log.as_ref().map_or(NEVER, LogLines::due);
        self.client_deadlines
            .next()
            .min(self.link_deadlines.next())
            .min(self.accept_again)
            .min(self.http2.next_deadline())
            .min(log)
    }

    fn handle(&mut self, event: Event) {
        match Key::of_token(event.token) {
            (token::WAKER, _) => {
                self.waker.clear();
                self.names_resolved();
            }
            (token::LISTENER, key) => self.accept(key.index() as usize),
            (token::CLIENT, key) => self.with_client(key, |worker, session| {
                worker.client_event(session, event);
            }),
            (token::BACKEND, key) => match self.links.get(key) {
                Some(Whereabouts::Idle(_)) => self.idle_link_spoke(key),
                Some(Whereabouts::With(client)) => {
                    let client = *client;
                    self.with_client(client, |worker, session| {
                        worker.link_event(session, event);
                    });
                }
                None => {}
            },
            (token::FRONT, key) => self.turn_front(key, event.readable),
            (token::BACK, key) => self.turn_back(key, event.readable),
            _ => {}
        }
    }

    /// Lends a client's connection to `what`, and removes it if it was closed.
    pub(super) fn with_client(&mut self, key: Key, what: impl FnOnce(&mut Self, &mut Session)) {
        let Some(mut session) = self.clients.take(key) else {
            return;
        };
        what(self, &mut session);
        match session.phase {
            Phase::Closed => self.forget_client(session),
            Phase::Http2 => self.begin_front(session),
            _ => self.clients.put(key, session),
        }
    }

    /// Asks for another look at a connection in the next turn.
    pub(super) fn look_again(&mut self, key: Key) {
        if !self.again.contains(&key) {
            self.again.push(key);
        }
    }

    fn revisit(&mut self) {
        for key in std::mem::take(&mut self.again) {
            self.now = clock::now();
            self.with_client(key, |worker, session| worker.revisited(session));
        }
        self.revisit_http2();
    }

    fn expire(&mut self) {
        self.now = clock::now();
        if self.accept_again <= self.now {
            self.resume_accepting();
        }
        while let Some((place, _)) = self.client_deadlines.expired(self.now) {
            if let Some(key) = self.clients.key_at(place as usize) {
                self.with_client(key, |worker, session| worker.client_expired(session));
            }
        }
        while let Some((place, _)) = self.link_deadlines.expired(self.now) {
            if let Some(key) = self.links.key_at(place as usize)
                && matches!(self.links.get(key), Some(Whereabouts::Idle(_)))
            {
                self.drop_idle_link(key);
            }
        }
        self.expire_fronts();
    }

    /// The moment of the event at hand, on both clocks.
    pub(super) fn times(&mut self) -> Times {
        if self.now.saturating_sub(self.wall.1) > WALL_EVERY {
            let since_1970 = std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .unwrap_or_default();
            let wall = u64::try_from(since_1970.as_nanos()).unwrap_or_default();
            self.wall = (wall.wrapping_sub(clock::now()), self.now);
        }
        Times {
            mono: self.now,
            wall: self.now.wrapping_add(self.wall.0),
        }
    }

    /// Memory for a request.
    pub(super) fn new_flight(&mut self) -> Box<Flight> {
        let mut flight = self.flights.pop().unwrap_or_default();
        flight.reset();
        flight
    }

    /// Keeps the memory of a request for another one.
    pub(super) fn spare_flight(&mut self, mut flight: Box<Flight>) {
        flight.upstream.clear(&mut self.buffers);
        if self.flights.len() < SPARE_FLIGHTS {
            flight.release();
            self.flights.push(flight);
        }
    }
}
