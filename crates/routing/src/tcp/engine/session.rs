//! One client's connection, from its first byte to its last.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use wire::poller::{Event, Poller};
use wire::slab::Key;
use wire::stream::Stream;

use super::dial::Dial;
use super::port::Port;
use super::relay::{Broken, Carriers, Flow, Side};
use super::token;
use super::worker::Shared;
use crate::table::Nanos;
use crate::tcp::counters::{Counters, End};
use crate::tcp::table::Pool;

/// What a thread lends to the session that it serves.
pub(super) struct SessionContext<'a> {
    pub(super) poller: &'a Poller,
    pub(super) carriers: &'a mut Carriers,
    pub(super) shared: &'a Shared,
    pub(super) now: Nanos,
    /// The session's own.
    pub(super) key: Key,
}

/// Which of the two sides of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionSide {
    Client,
    Backend,
}

impl SessionSide {
    fn other(self) -> Self {
        match self {
            Self::Client => Self::Backend,
            Self::Backend => Self::Client,
        }
    }
}

/// One client's connection.
pub(super) struct Session {
    pub(super) port: Arc<Port>,
    pub(super) client: Option<Side>,
    pub(super) backend: Option<Side>,
    pub(super) stage: Stage,
    pub(super) up: Flow,
    pub(super) down: Flow,
    /// When this stage began, or bytes were last carried.
    pub(super) since: Nanos,
}

/// What a session waits for. How it gets from one stage to the next: `opening`.
pub(super) enum Stage {
    /// The client's `ClientHello`, of which this much came.
    Hello(Vec<u8>),
    /// TLS with the client.
    ClientTls(Arc<Pool>),
    /// A connection to a backend.
    Dialing(Dial),
    /// TLS with that backend.
    BackendTls(Dial),
    /// Bytes, from either side.
    Relaying,
}

/// A session's fate: `Err` when it is over.
pub(super) type SessionResult = Result<(), End>;

impl Session {
    pub(super) fn new(key: Key, port: Arc<Port>, client: OwnedFd, now: Nanos) -> Self {
        let client = Side::new(Stream::Plain(client), key.token(token::CLIENT));
        Self {
            port,
            client: Some(client),
            backend: None,
            stage: Stage::Relaying,
            up: Flow::default(),
            down: Flow::default(),
            since: now,
        }
    }

    /// Goes on after something happened to one of its sockets.
    pub(super) fn event(
        &mut self,
        which: SessionSide,
        event: Event,
        context: &mut SessionContext<'_>,
    ) -> SessionResult {
        match self.stage {
            Stage::Relaying => self.carry(which, event, context),
            _ => self.open_further(which, event, context),
        }
    }

    /// Looks whether anything has taken too long. Called once a second or more often.
    pub(super) fn tick(&mut self, context: &mut SessionContext<'_>) -> SessionResult {
        self.report(&context.shared.counters);
        let settings = &context.shared.settings;
        let limit = match &self.stage {
            Stage::Hello(_) => settings.hello_timeout,
            Stage::ClientTls(_) | Stage::BackendTls(_) => settings.handshake_timeout,
            Stage::Dialing(_) => settings.connect_timeout,
            Stage::Relaying if settings.idle_timeout.is_zero() => return Ok(()),
            Stage::Relaying => settings.idle_timeout,
        };
        match Duration::from_nanos(context.now.saturating_sub(self.since)) < limit {
            true => Ok(()),
            false => self.too_late(context),
        }
    }

    /// Ends it: counts what it did, and gives back what it took from its thread. Its
    /// sockets close when it is dropped.
    pub(super) fn over(&mut self, end: End, carriers: &mut Carriers, shared: &Shared) {
        self.report(&shared.counters);
        self.up.release(carriers);
        self.down.release(carriers);
        self.port.counters.active.fetch_sub(1, Relaxed);
        shared.counters.ended(end);
    }

    fn report(&mut self, all: &Counters) {
        let port = &self.port.counters;
        let (up, down) = (self.up.take_carried(), self.down.take_carried());
        if up > 0 {
            all.sent.fetch_add(up, Relaxed);
            port.sent.fetch_add(up, Relaxed);
        }
        if down > 0 {
            all.received.fetch_add(down, Relaxed);
            port.received.fetch_add(down, Relaxed);
        }
    }

    /// Begins to carry bytes: first those that are here already, of which the poller knows
    /// nothing.
    pub(super) fn begin_to_carry(&mut self, context: &mut SessionContext<'_>) -> SessionResult {
        self.stage = Stage::Relaying;
        self.since = context.now;
        let (Some(client), Some(backend)) = (&mut self.client, &mut self.backend) else {
            return Ok(());
        };
        let up = match self.up.is_blocked() {
            true => self.up.drain(backend, context.carriers),
            false => Ok(()),
        };
        up.map_err(|broken| end_of(&broken, SessionSide::Client))?;
        for which in [SessionSide::Client, SessionSide::Backend] {
            let (this, other, flow) = match which {
                SessionSide::Client => (&mut *client, &mut *backend, &mut self.up),
                SessionSide::Backend => (&mut *backend, &mut *client, &mut self.down),
            };
            if this.stream.holds_bytes() {
                let pumped = flow.pump(this, other, context.carriers);
                pumped.map_err(|broken| end_of(&broken, which))?;
            }
        }
        self.go_on(context)
    }

    /// Carries bytes after something happened to one side.
    fn carry(
        &mut self,
        which: SessionSide,
        event: Event,
        context: &mut SessionContext<'_>,
    ) -> SessionResult {
        let (Some(client), Some(backend)) = (&mut self.client, &mut self.backend) else {
            return Ok(());
        };
        let (this, other, from_this, to_this) = match which {
            SessionSide::Client => (client, backend, &mut self.up, &mut self.down),
            SessionSide::Backend => (backend, client, &mut self.down, &mut self.up),
        };
        self.since = context.now;
        if event.writable && (to_this.is_blocked() || this.stream.wants_write()) {
            let was_blocked = to_this.is_blocked();
            let mut carried = to_this.drain(this, context.carriers);
            if carried.is_ok() && was_blocked && other.stream.holds_bytes() {
                carried = to_this.pump(other, this, context.carriers);
            }
            carried.map_err(|broken| end_of(&broken, which.other()))?;
        }
        if event.readable
            && from_this.reads()
            && let Err(broken) = from_this.pump(this, other, context.carriers)
        {
            // What the target said before it went away is still for this side.
            if let Broken::Target = broken {
                to_this.pump_rest(other, this, context.carriers);
            }
            return Err(end_of(&broken, which));
        }
        self.go_on(context)
    }

    fn go_on(&mut self, context: &SessionContext<'_>) -> SessionResult {
        match (self.up.is_finished(), self.down.is_finished()) {
            (true, true) => return Err(End::Finished),
            (true, false) => self.down.is_last(),
            (false, true) => self.up.is_last(),
            (false, false) => {}
        }
        self.watch(context)
    }

    /// Tells the poller what is wanted of both sides now.
    fn watch(&mut self, context: &SessionContext<'_>) -> SessionResult {
        let (up, down) = (&self.up, &self.down);
        if let Some(client) = &mut self.client {
            let write = down.is_blocked() || client.stream.wants_write();
            let watched = client.watch(context.poller, up.reads(), write);
            watched_or(watched, End::ClientBroke)?;
        }
        if let Some(backend) = &mut self.backend {
            let write = up.is_blocked() || backend.stream.wants_write();
            let watched = backend.watch(context.poller, down.reads(), write);
            watched_or(watched, End::BackendBroke)?;
        }
        Ok(())
    }
}

/// The kernel's limit on watched sockets is the only reason to fail.
pub(super) fn watched_or(result: io::Result<()>, end: End) -> SessionResult {
    result.map_err(|_| end)
}

/// How a session ends whose direction from `source` broke.
fn end_of(broken: &Broken, source: SessionSide) -> End {
    let side = match broken {
        Broken::Source => source,
        Broken::Target => source.other(),
    };
    match side {
        SessionSide::Client => End::ClientBroke,
        SessionSide::Backend => End::BackendBroke,
    }
}
