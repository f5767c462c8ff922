//! One thread of the engine.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use telemetry::Logger;
use wire::deadlines::NEVER;
use wire::listeners::{LISTENER, Listeners};
use wire::poller::{Event, Poller, WAKER};
use wire::slab::{Key, Slab};
use wire::socket;
use wire::threads::Phase;

use super::Claim;
use super::port::Port;
use super::relay::Carriers;
use super::session::{Session, SessionContext, SessionSide};
use super::tls::Tls;
use super::token;
use crate::table::Nanos;
use crate::tcp::TcpSettings;
use crate::tcp::counters::{Counters, End};

/// Connections accepted for one event; a queue that is longer is told again.
const ACCEPTS: usize = 8;

/// Parts in which the sessions are looked through for what takes too long, one each tick.
const PARTS: u32 = 10;

/// What a thread is asked to do.
pub(super) enum Order {
    /// Accept on this socket; the claim goes with it.
    Open(Arc<Port>, OwnedFd, Claim),
    /// Accept no more on this port.
    Close(u16),
    /// Accept no more.
    CloseAll,
}

/// What all threads share.
pub(super) struct Shared {
    pub(super) settings: TcpSettings,
    pub(super) tls: Tls,
    pub(super) counters: Arc<Counters>,
    pub(super) logger: Logger,
    pub(super) failed_for: Nanos,
    /// Time between two looks at one session.
    round: Duration,
}

impl Shared {
    pub(super) fn new(
        settings: &TcpSettings,
        tls: Tls,
        counters: Arc<Counters>,
        logger: Logger,
    ) -> Self {
        let limits = [
            settings.connect_timeout,
            settings.idle_timeout,
            settings.hello_timeout,
            settings.handshake_timeout,
        ];
        let limits = limits.into_iter().filter(|limit| !limit.is_zero());
        // A limit is kept to an eighth of it, or to a second.
        let shortest = limits.min().unwrap_or(Duration::from_secs(8));
        let round = (shortest / 8).clamp(Duration::from_millis(10), Duration::from_secs(1));
        Self {
            failed_for: u64::try_from(settings.failed_for.as_nanos()).unwrap_or(u64::MAX),
            settings: settings.clone(),
            tls,
            counters,
            logger,
            round,
        }
    }
}

/// See the module.
pub(super) struct Worker {
    poller: Poller,
    orders: Receiver<Order>,
    shared: Arc<Shared>,
    carriers: Carriers,
    /// Each of a port. They pause until the next tick.
    listeners: Listeners<(Arc<Port>, Claim)>,
    sessions: Slab<Session>,
    now: Nanos,
    next_tick: Nanos,
    part: u32,
}

impl Worker {
    pub(super) fn new(poller: Poller, orders: Receiver<Order>, shared: Arc<Shared>) -> Self {
        Self {
            poller,
            orders,
            carriers: Carriers::new(shared.settings.splice),
            shared,
            listeners: Listeners::default(),
            sessions: Slab::default(),
            now: wire::clock::now(),
            next_tick: 0,
            part: 0,
        }
    }

    pub(super) fn run(mut self) {
        while self.poller.phase() != Phase::Stopped {
            if let Err(error) = self.poller.wait_until(self.until(), self.now) {
                let fields = telemetry::Fields::new();
                self.shared.logger.fatal("wait", &error, fields);
                break;
            }
            self.now = wire::clock::now();
            while let Some(event) = self.poller.next_event() {
                match Key::of_token(event.token) {
                    (token::CLIENT, key) => self.serve(key, SessionSide::Client, event),
                    (token::BACKEND, key) => self.serve(key, SessionSide::Backend, event),
                    (LISTENER, key) => self.accept(key),
                    (WAKER, _) => self.follow_orders(),
                    _ => {}
                }
            }
            self.tick();
        }
        self.end();
    }

    /// When to wake for the next tick, if there is anything to look after.
    fn until(&self) -> Nanos {
        match self.sessions.taken() == 0 && self.listeners.next_deadline() == NEVER {
            true => NEVER,
            false => self.next_tick,
        }
    }

    fn serve(&mut self, key: Key, which: SessionSide, event: Event) {
        self.with_session(key, |session, context| session.event(which, event, context));
    }

    fn with_session(
        &mut self,
        key: Key,
        act: impl FnOnce(&mut Session, &mut SessionContext<'_>) -> Result<(), End>,
    ) {
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        let mut context = SessionContext {
            poller: &self.poller,
            carriers: &mut self.carriers,
            shared: &self.shared,
            now: self.now,
            key,
        };
        if let Err(end) = act(session, &mut context) {
            session.over(end, &mut self.carriers, &self.shared);
            self.sessions.remove(key);
        }
    }

    fn accept(&mut self, key: Key) {
        for _ in 0..ACCEPTS {
            let Some(((port, _), listener)) = self.listeners.get(key) else {
                return;
            };
            if !self.shared.has_room(port) {
                return self.hold_back(key);
            }
            match socket::accept_anybody(listener) {
                Ok(Some(socket)) => self.begin(Arc::clone(port), socket),
                Ok(None) => return,
                Err(_) => {
                    // Out of descriptors or memory: time may help.
                    self.shared.counters.accept_errors.fetch_add(1, Relaxed);
                    return self.hold_back(key);
                }
            }
        }
    }

    fn begin(&mut self, port: Arc<Port>, socket: OwnedFd) {
        let counters = &self.shared.counters;
        counters.accepted.fetch_add(1, Relaxed);
        counters.active.fetch_add(1, Relaxed);
        port.counters.accepted.fetch_add(1, Relaxed);
        port.counters.active.fetch_add(1, Relaxed);
        let key = self.sessions.reserve();
        let session = Session::new(key, port, socket, self.now);
        self.sessions.put(key, session);
        self.with_session(key, Session::begin);
    }

    /// Leaves a listener's queue to the kernel until the next tick.
    fn hold_back(&mut self, key: Key) {
        if self.listeners.pause(key, self.next_tick, &self.poller) {
            self.shared.counters.held_back.fetch_add(1, Relaxed);
        }
    }

    fn tick(&mut self) {
        if self.now < self.next_tick {
            return;
        }
        let step = self.shared.round / PARTS;
        let step = u64::try_from(step.as_nanos()).unwrap_or(u64::MAX);
        self.next_tick = self.now.saturating_add(step);
        if self.listeners.next_deadline() != NEVER {
            self.listeners.resume(self.now, &self.poller);
        }
        let (part, parts) = (self.part as usize, PARTS as usize);
        for place in (part..self.sessions.places()).step_by(parts) {
            if let Some(key) = self.sessions.key_at(place) {
                self.with_session(key, Session::tick);
            }
        }
        self.part = (self.part + 1) % PARTS;
    }

    /// Does what was asked.
    fn follow_orders(&mut self) {
        while let Ok(order) = self.orders.try_recv() {
            match order {
                // One that cannot be watched now is tried again at the next tick.
                Order::Open(port, socket, claim) => {
                    _ = self.listeners.add(socket, (port, claim), &self.poller);
                }
                Order::Close(number) => self.close(|port| port.number() == number),
                Order::CloseAll => self.close(|_| true),
            }
        }
    }

    /// Closes listeners. Connections in their queues are begun first: closing would reset
    /// them.
    fn close(&mut self, which: impl Fn(&Port) -> bool) {
        for key in self.listeners.keys() {
            while let Some(((port, _), listener)) = self.listeners.get(key)
                && which(port)
            {
                let client = match self.shared.has_room(port) {
                    true => socket::accept_anybody(listener),
                    false => Ok(None),
                };
                match client {
                    Ok(Some(client)) => self.begin(Arc::clone(port), client),
                    _ => self.listeners.close(key),
                }
            }
        }
    }

    fn end(mut self) {
        for place in 0..self.sessions.places() {
            if let Some(key) = self.sessions.key_at(place) {
                self.with_session(key, |_, _| Err(End::Stopped));
            }
        }
    }
}

impl Shared {
    fn has_room(&self, port: &Port) -> bool {
        let (all, of_port) = (&self.counters.active, &port.counters.active);
        all.load(Relaxed) < self.settings.connections as u64
            && of_port.load(Relaxed) < self.settings.port_connections as u64
    }
}
