//! One client's connection, from its first byte to its last.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rustix::io::Errno;
use telemetry::Fields;
use wire::poller::{Event, Poller};
use wire::socket;
use wire::stream::Stream;

use super::dial::{Begun, Dial, begin};
use super::port::Port;
use super::relay::{Broken, Carriers, Flow, Side};
use super::slots::Key;
use super::token::Token;
use super::worker::Shared;
use crate::table::Nanos;
use crate::tcp::counters::End;
use crate::tcp::table::Pool;

/// What a thread lends to the session that it serves.
pub(super) struct Lent<'a> {
    pub(super) poller: &'a Poller,
    pub(super) carriers: &'a mut Carriers,
    pub(super) shared: &'a Shared,
    pub(super) now: Nanos,
    /// The session's own.
    pub(super) key: Key,
}

/// Which of the two sides of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Client,
    Backend,
}

/// One client's connection.
pub(super) struct Session {
    port: Arc<Port>,
    client: Side,
    backend: Option<Side>,
    stage: Stage,
    up: Flow,
    down: Flow,
    /// When this stage began, or bytes were last carried.
    active: Nanos,
}

enum Stage {
    /// On the way to a backend.
    Dialing(Dial),
    /// Carrying bytes.
    Relaying,
}

/// A session's fate: `Err` when it is over.
pub(super) type Fate = Result<(), End>;

impl Session {
    pub(super) fn new(port: Arc<Port>, client: OwnedFd, now: Nanos) -> Self {
        Self {
            port,
            client: Side::new(Stream::Plain(client)),
            backend: None,
            stage: Stage::Relaying,
            up: Flow::default(),
            down: Flow::default(),
            active: now,
        }
    }

    /// Begins with a connection that was just accepted.
    pub(super) fn begin(&mut self, lent: &mut Lent<'_>) -> Fate {
        let routes = self.port.routes();
        let pool = routes.find(None).ok_or(End::NoRoute)?;
        self.dial(Arc::clone(pool), lent)
    }

    /// Goes on after something happened to one of its sockets.
    pub(super) fn event(&mut self, which: Which, event: Event, lent: &mut Lent<'_>) -> Fate {
        match (&mut self.stage, which) {
            (Stage::Relaying, _) => self.carry(which, event, lent),
            (Stage::Dialing(_), Which::Backend) => {
                let Some(side) = &self.backend else {
                    return Ok(());
                };
                match socket::outcome(&side.stream) {
                    Ok(()) => self.connected(lent),
                    Err(errno) => {
                        self.dial_failed(socket::cause(errno), lent);
                        self.dial_next(lent)
                    }
                }
            }
            // The client is not watched meanwhile.
            (Stage::Dialing(_), Which::Client) => Ok(()),
        }
    }

    /// Looks whether anything has taken too long. Called once a second or more often.
    pub(super) fn tick(&mut self, lent: &mut Lent<'_>) -> Fate {
        self.report();
        let settings = &lent.shared.settings;
        let waited = Duration::from_nanos(lent.now.saturating_sub(self.active));
        match &self.stage {
            Stage::Dialing(dial) => {
                let waited = Duration::from_nanos(lent.now.saturating_sub(dial.began));
                if waited < settings.connect_timeout {
                    return Ok(());
                }
                self.dial_failed(socket::cause(Errno::TIMEDOUT), lent);
                self.dial_next(lent)
            }
            Stage::Relaying => {
                let limit = settings.idle_timeout;
                match limit.is_zero() || waited < limit {
                    true => Ok(()),
                    false => Err(End::Idle),
                }
            }
        }
    }

    /// Ends it: counts what it did, and gives back what it took from its thread. Its
    /// sockets close when it is dropped.
    pub(super) fn over(&mut self, end: End, carriers: &mut Carriers, shared: &Shared) {
        self.report();
        self.up.release(carriers);
        self.down.release(carriers);
        self.port.counters.active.fetch_sub(1, Relaxed);
        shared.counters.ended(end);
    }

    fn report(&mut self) {
        let counters = &self.port.counters;
        let (up, down) = (self.up.take_carried(), self.down.take_carried());
        if up > 0 {
            counters.sent.fetch_add(up, Relaxed);
        }
        if down > 0 {
            counters.received.fetch_add(down, Relaxed);
        }
    }

    fn dial(&mut self, pool: Arc<Pool>, lent: &mut Lent<'_>) -> Fate {
        self.stage = Stage::Dialing(Dial::new(pool, lent.now));
        self.dial_next(lent)
    }

    /// Tries one backend after the other until one is reached or on its way.
    fn dial_next(&mut self, lent: &mut Lent<'_>) -> Fate {
        self.backend = None;
        loop {
            let Stage::Dialing(dial) = &mut self.stage else {
                return Ok(());
            };
            let most = lent.shared.settings.attempts;
            let backend = dial.next(most, lent.now).ok_or(End::NoBackend)?;
            let Some(address) = backend.address() else {
                self.dial_failed("address unknown", lent);
                continue;
            };
            match begin(address) {
                Ok(Begun::Connected(socket)) => {
                    self.backend = Some(Side::new(Stream::Plain(socket)));
                    return self.connected(lent);
                }
                Ok(Begun::Underway(socket)) => {
                    let mut side = Side::new(Stream::Plain(socket));
                    let token = Token::Backend(lent.key).pack();
                    let watched = side.watch(lent.poller, token, false, true);
                    self.backend = Some(side);
                    return watched.map_err(|_| End::NoBackend);
                }
                Err(errno) => self.dial_failed(socket::cause(errno), lent),
            }
        }
    }

    fn dial_failed(&mut self, cause: &'static str, lent: &Lent<'_>) {
        let shared = lent.shared;
        shared.counters.dial_failed(cause);
        self.port.counters.dial_errors.fetch_add(1, Relaxed);
        let Stage::Dialing(Dial {
            backend: Some(backend),
            ..
        }) = &self.stage
        else {
            return;
        };
        // One line for each time that it begins to fail, however many clients ask for it.
        if !backend.has_failed(lent.now) {
            let address = backend.address().map(|address| address.to_string());
            let fields = Fields::new()
                .and("port", self.port.number())
                .and("backend", address.as_deref().or(backend.host()));
            shared.logger.error("dial-backend", &cause, fields);
        }
        backend.fail_until(lent.now.saturating_add(shared.failed_for));
    }

    fn connected(&mut self, lent: &mut Lent<'_>) -> Fate {
        if let Stage::Dialing(dial) = &self.stage {
            let took = Duration::from_nanos(wire::clock::now().saturating_sub(dial.began));
            lent.shared.counters.connected_after(took);
        }
        self.stage = Stage::Relaying;
        self.active = lent.now;
        self.watch(lent)
    }

    /// Carries bytes after something happened to one side.
    fn carry(&mut self, which: Which, event: Event, lent: &mut Lent<'_>) -> Fate {
        let Some(backend) = &mut self.backend else {
            return Ok(());
        };
        let client = &mut self.client;
        let (this, other, from_this, to_this) = match which {
            Which::Client => (client, backend, &mut self.up, &mut self.down),
            Which::Backend => (backend, client, &mut self.down, &mut self.up),
        };
        self.active = lent.now;
        if event.writable && (to_this.is_blocked() || this.stream.wants_write()) {
            let was_blocked = to_this.is_blocked();
            let mut carried = to_this.drain(this, lent.carriers);
            if carried.is_ok() && was_blocked && other.stream.holds_bytes() {
                carried = to_this.pump(other, this, lent.carriers);
            }
            carried.map_err(|broken| end_of(&broken, other_of(which)))?;
        }
        if event.readable && from_this.reads() {
            if let Err(broken) = from_this.pump(this, other, lent.carriers) {
                // What the target said before it went away is still for this side.
                if let Broken::Target(_) = broken {
                    to_this.pump_rest(other, this, lent.carriers);
                }
                return Err(end_of(&broken, which));
            }
        }
        if self.up.is_finished() && self.down.is_finished() {
            return Err(End::Finished);
        }
        self.watch(lent)
    }

    /// Tells the poller what is wanted of both sides now.
    fn watch(&mut self, lent: &Lent<'_>) -> Fate {
        let Some(backend) = &mut self.backend else {
            return Ok(());
        };
        let (up, down) = (&self.up, &self.down);
        let write = down.is_blocked() || self.client.stream.wants_write();
        let token = Token::Client(lent.key).pack();
        let client = self.client.watch(lent.poller, token, up.reads(), write);
        let write = up.is_blocked() || backend.stream.wants_write();
        let token = Token::Backend(lent.key).pack();
        let backend = backend.watch(lent.poller, token, down.reads(), write);
        watched(client, End::ClientBroke)?;
        watched(backend, End::BackendBroke)
    }
}

/// The kernel's limit on watched sockets is the only reason to fail.
fn watched(result: io::Result<()>, end: End) -> Fate {
    result.map_err(|_| end)
}

fn other_of(which: Which) -> Which {
    match which {
        Which::Client => Which::Backend,
        Which::Backend => Which::Client,
    }
}

/// How a session ends whose direction from `source` broke.
fn end_of(broken: &Broken, source: Which) -> End {
    let side = match broken {
        Broken::Source(_) => source,
        Broken::Target(_) => other_of(source),
    };
    match side {
        Which::Client => End::ClientBroke,
        Which::Backend => End::BackendBroke,
    }
}
