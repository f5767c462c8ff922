//! One thread: it waits for its sockets and hands on what happens to them.

use std::io;
use std::mem;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use rustix::io::Errno;
use wire::deadlines::NEVER;
use wire::listeners::{AT_ONCE, LISTENER, Listeners, PAUSE};
use wire::poller::{Event, Poller, WAKER};
use wire::slab::Key;
use wire::socket;
use wire::threads::Phase;

use super::backends::Backends;
use super::buffers::Buffers;
use super::clients::{Arrival, Clients, Parts, Session};
use super::context::{Clock, Context, Shared};
use super::http2::Http2Clients;
use super::request::{RequestSinks, Requests};
use super::token;
use crate::http::counters::ThreadCounters;
use crate::table::Nanos;

/// A turn of the loop that takes longer than this is counted as late.
const LATE: Nanos = 50_000_000;

/// One thread. See the module.
pub(super) struct Worker {
    parts: Parts,
    /// Each says whether clients speak TLS there.
    listeners: Listeners<bool>,
    clients: Clients,
    http2_clients: Http2Clients,
    /// What the engine was doing when this thread last looked.
    phase: Phase,
    /// Where settings come from when they change.
    source: Arc<ArcSwap<Shared>>,
}

impl Worker {
    pub(super) fn new(
        poller: Poller,
        source: Arc<ArcSwap<Shared>>,
        counters: Arc<ThreadCounters>,
        sockets: Vec<(OwnedFd, bool)>,
        most_clients: usize,
        request_sinks: RequestSinks,
    ) -> io::Result<Self> {
        let mut listeners = Listeners::default();
        for (socket, tls) in sockets {
            listeners.add(socket, tls, &poller)?;
        }
        let context = Context {
            shared: source.load_full(),
            counters,
            poller,
            clock: Clock::default(),
            buffers: Buffers::default(),
            random: SmallRng::from_rng(&mut rand::rng()),
            running: true,
        };
        Ok(Self {
            parts: Parts {
                context,
                backends: Backends::new(),
                requests: Requests::new(request_sinks),
            },
            listeners,
            clients: Clients::new(most_clients),
            http2_clients: Http2Clients::default(),
            phase: Phase::Running,
            source,
        })
    }

    /// Runs until the engine stops.
    pub(super) fn run(mut self) {
        loop {
            let now = self.parts.context.clock.look();
            if !self.follow() {
                break;
            }
            let until = self.next_deadline();
            // Only a broken poller fails here: nothing can be served any more.
            let waited = self.parts.context.poller.wait_until(until, now);
            if waited.is_err() {
                break;
            }
            let woken = self.parts.context.clock.look();
            let mut first = true;
            while let Some(event) = self.parts.context.poller.next_event() {
                if !mem::replace(&mut first, false) {
                    self.parts.context.clock.look();
                }
                self.handle(event);
            }
            self.revisit();
            self.expire();
            let context = &mut self.parts.context;
            if self.clients.have_gone() && context.running {
                let now = context.clock.now();
                self.listeners.resume(now, &context.poller);
            }
            let (now, counters) = (context.clock.now(), &context.counters);
            counters.turns.increment();
            if now.saturating_sub(woken) > LATE {
                counters.late_turns.increment();
            }
            self.parts.requests.hand_over(now, counters);
        }
        self.give_up();
    }

    /// Does what the engine was told; `false`: end.
    fn follow(&mut self) -> bool {
        let newest = self.source.load();
        if !Arc::ptr_eq(&newest, &self.parts.context.shared) {
            self.parts.context.shared = Arc::clone(&newest);
        }
        let phase = self.parts.context.poller.phase();
        if phase != self.phase {
            self.phase = phase;
            self.parts.context.running = phase == Phase::Running;
            self.listeners = Listeners::default();
            let context = &mut self.parts.context;
            self.http2_clients.shut_all_down(&mut self.clients, context);
            for key in self.clients.keys() {
                self.with_client(key, Session::drain);
            }
        }
        phase != Phase::Stopped
    }

    /// The end: what is on its way is cut off, and logged.
    fn give_up(&mut self) {
        for key in self.clients.keys() {
            self.with_client(key, Session::give_up);
        }
        let context = &mut self.parts.context;
        self.http2_clients.give_up(&mut self.clients, context);
        self.parts.backends.give_up(context);
        self.parts.requests.hand_over(NEVER, &context.counters);
    }

    fn next_deadline(&self) -> Nanos {
        self.clients
            .next_deadline()
            .min(self.listeners.next_deadline())
            .min(self.http2_clients.next_deadline())
            .min(self.parts.backends.next_deadline())
            .min(self.parts.requests.next_deadline())
    }

    fn handle(&mut self, event: Event) {
        let (context, backends) = (&mut self.parts.context, &mut self.parts.backends);
        match Key::of_token(event.token) {
            (WAKER, _) => {
                for key in backends.resolved() {
                    self.with_client(key, Session::name_resolved);
                }
            }
            (LISTENER, key) => self.accept(key),
            (token::CLIENT, key) => {
                self.with_client(key, |session, parts| session.client_event(event, parts));
            }
            (token::BACKEND, key) => {
                if let Some(client) = backends.event(key, context) {
                    self.with_client(client, |session, parts| session.backend_event(event, parts));
                }
            }
            (token::HTTP2_CLIENT, key) => {
                let clients = &mut self.clients;
                self.http2_clients
                    .turn(key, event.readable, clients, context);
            }
            (token::BACK, key) => backends.turn_http2(key, event.readable, context),
            _ => {}
        }
    }

    fn with_client(&mut self, key: Key, act: impl FnOnce(&mut Session, &mut Parts)) {
        if let Some(connection) = self.clients.work(key, &mut self.parts, act) {
            let context = &mut self.parts.context;
            self.http2_clients
                .begin(connection, &mut self.clients, context);
        }
    }

    /// Accepts the connections that wait.
    fn accept(&mut self, key: Key) {
        let (context, backends) = (&mut self.parts.context, &mut self.parts.backends);
        for _ in 0..AT_ONCE {
            if !self.clients.have_room() {
                context.counters.full.increment();
                self.listeners.pause(key, NEVER, &context.poller);
                return;
            }
            let Some((tls, listener)) = self.listeners.get(key) else {
                return;
            };
            match socket::accept(listener) {
                Ok(Some((socket, peer))) => {
                    let tls = *tls;
                    let arrival = Arrival { socket, peer, tls };
                    self.clients.welcome(arrival, context);
                }
                Ok(None) => return,
                Err(Errno::MFILE | Errno::NFILE) if backends.make_room(context) => {}
                Err(_) => {
                    context.counters.no_descriptors.increment();
                    context.counters.full.increment();
                    let until = context.clock.now().saturating_add(PAUSE);
                    self.listeners.pause(key, until, &context.poller);
                    return;
                }
            }
        }
    }

    /// Another look at what had more to do than one turn takes.
    fn revisit(&mut self) {
        for key in self.clients.again() {
            self.parts.context.clock.look();
            self.with_client(key, Session::revisit);
        }
        let (context, backends) = (&mut self.parts.context, &mut self.parts.backends);
        self.http2_clients.revisit(&mut self.clients, context);
        backends.revisit(context);
    }

    /// Ends what has taken too long.
    fn expire(&mut self) {
        let now = self.parts.context.clock.look();
        while let Some(key) = self.clients.expired(now) {
            self.with_client(key, Session::expired);
        }
        let (context, backends) = (&mut self.parts.context, &mut self.parts.backends);
        if self.listeners.next_deadline() <= now {
            self.listeners.resume(now, &context.poller);
        }
        backends.expire(context);
        self.http2_clients.expire(&mut self.clients, context);
    }
}
