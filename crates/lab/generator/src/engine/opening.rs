//! Connections: opened, kept open, replaced, closed.

use std::time::Duration;

use lab_load::Protocol;
use lab_load::recording::Phase;
use rustix::io::Errno;
use wire::clock;
use wire::poller::Interest;
use wire::socket;
use wire::stream::Stream;

use super::connection::{Connection, Link, Use};
use super::talk::Talk;
use super::{End, Engine, Sample, Source, Trouble};

/// Most connections that a thread opens at the same time before the first request;
/// more would only wait in the queue of a target that accepts slowly.
const AT_ONCE: u32 = 128;
/// Cause of a failure that cannot be: a connection under way without a socket.
pub(super) const GONE: &str = "no socket";

impl Engine {
    /// Opens the connections that are to be held, or says why that cannot be done. A
    /// target that closes one after the other meanwhile has no room for them.
    pub(crate) fn open_held(&mut self) -> Result<(), Trouble> {
        while self.open < self.held {
            let closed = self.tally.span.connections.closed;
            if closed > u64::from(AT_ONCE.min(self.held / self.streams)) {
                let open = self.open / self.streams;
                return Err(Trouble::Connection(Phase::Connect, "closed early", open));
            }
            while self.opening < AT_ONCE * self.streams && self.open + self.opening < self.held {
                self.open_another(clock::now());
                if let Some(trouble) = self.trouble.take() {
                    return Err(trouble);
                }
            }
            let until = self.open_by.next();
            self.wait(Duration::from_nanos(until.saturating_sub(clock::now())))?;
            self.expire(clock::now())?;
            if let Some(trouble) = self.trouble.take() {
                return Err(trouble);
            }
        }
        Ok(())
    }

    /// Replaces connections that were lost while there was no load.
    pub(super) fn hold(&mut self, now: u64) {
        // What the target closed meanwhile is only known when its events were read.
        // Failure is no trouble here: arrivals try again, and their failures count.
        while self
            .wait(Duration::ZERO)
            .is_ok_and(|(events, _)| events > 0)
        {}
        if self.replaces() {
            while self.open + self.opening < self.held && self.open_another(now) {}
        }
        self.trouble = None;
    }

    /// Whether a lost connection is replaced before an arrival needs one. With one
    /// request for each connection the opening is a part of what an arrival waits for.
    fn replaces(&self) -> bool {
        self.setup.workload.connections.requests_each != Some(1)
    }

    /// Begins to open a connection that any arrival may use. Says whether one is under
    /// way.
    pub(super) fn open_another(&mut self, now: u64) -> bool {
        let place = self.take_spare().unwrap_or_else(|| self.add_place());
        self.open_at(place, now)
    }

    pub(super) fn add_place(&mut self) -> u32 {
        let first = self.push_place();
        for _ in 1..self.streams {
            let place = self.push_place();
            self.save(place);
        }
        first
    }

    fn push_place(&mut self) -> u32 {
        let place = self.connections.len();
        let talk = Talk::new(self.setup.workload.target.protocol, 0);
        self.connections.push(Connection::closed(talk));
        // At most a million, by the workload's check.
        place as u32
    }

    /// Begins to open the connection of a closed place.
    pub(super) fn open_at(&mut self, place: u32, now: u64) -> bool {
        let carrier = self.carrier(place);
        for member in self.members(carrier) {
            self.opening += 1;
            let connection = self.connection(member);
            connection.link = Link::Connecting;
            let bound = connection.exchange.used == Use::Waiting;
            self.unbound += u32::from(!bound);
        }
        let until = now.saturating_add(self.open_within);
        self.open_by.set(carrier, until);
        match self.connect(carrier) {
            Ok(()) => true,
            Err(errno) => {
                self.opening_failed(carrier, Phase::Connect, socket::cause(errno), now);
                false
            }
        }
    }

    /// The first of the places that share a connection; it stands for all.
    pub(super) fn carrier(&self, place: u32) -> u32 {
        place - place % self.streams
    }

    pub(super) fn members(&self, carrier: u32) -> std::ops::Range<u32> {
        carrier..carrier + self.streams
    }

    fn connect(&mut self, place: u32) -> Result<(), Errno> {
        let address = self.setup.address;
        let socket = match self.setup.workload.target.protocol {
            Protocol::Udp => socket::connect_udp(address)?,
            _ => socket::connect_tcp(address)?,
        };
        let connection = &mut self.connections[place as usize];
        let token = connection.token(place);
        let added = self.poller.add(&socket, token, Interest::Write);
        added.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        connection.link = Link::Connecting;
        connection.stream = Some(Stream::Plain(socket));
        connection.talk = Talk::new(
            self.setup.workload.target.protocol,
            self.setup.workload.seed ^ self.begun << 16 ^ u64::from(self.thread),
        );
        self.begun += 1;
        Ok(())
    }

    /// Goes on with a connection under way whose socket has something to tell.
    pub(super) fn go_on_opening(&mut self, place: u32) -> u64 {
        let phase = self.opening_phase(place);
        let step = match phase {
            Phase::Connect => self.connected(place),
            Phase::Tls => self.shake_hands(place),
            _ => self.read_upgrade(place),
        };
        let now = clock::now();
        match step {
            Ok(true) => self.opened(place, now),
            Ok(false) => {}
            Err(cause) => {
                let phase = self.opening_phase(place);
                self.opening_failed(place, phase, cause, now);
            }
        }
        now
    }

    pub(super) fn opening_phase(&self, place: u32) -> Phase {
        match self.connections[place as usize].link {
            Link::Handshaking => Phase::Tls,
            Link::Upgrading => Phase::Protocol,
            _ => Phase::Connect,
        }
    }

    /// TCP has made a connection, or failed to. Says whether it can carry requests.
    fn connected(&mut self, place: u32) -> Result<bool, &'static str> {
        let connection = &mut self.connections[place as usize];
        let Some(stream) = connection.stream.take() else {
            return Err(GONE);
        };
        stream.outcome().map_err(socket::cause)?;
        match (&self.setup.tls, stream) {
            (Some(client), Stream::Plain(socket)) => {
                connection.link = Link::Handshaking;
                let stream = client.begin(socket).map_err(|error| error.cause())?;
                connection.stream = Some(Stream::Tls(Box::new(stream)));
                self.shake_hands(place)
            }
            (_, stream) => {
                connection.stream = Some(stream);
                self.upgrade(place)
            }
        }
    }

    fn shake_hands(&mut self, place: u32) -> Result<bool, &'static str> {
        let connection = &mut self.connections[place as usize];
        let token = connection.token(place);
        let Some(stream) = &mut connection.stream else {
            return Err(GONE);
        };
        if stream.handshake().map_err(|error| error.cause())? {
            return self.upgrade(place);
        }
        let interest = Interest::of(true, stream.wants_write());
        let changed = self.poller.change(&*stream, token, interest);
        changed.map(|()| false).map_err(unwatched)
    }

    /// A connection can carry requests from now on.
    fn opened(&mut self, place: u32, now: u64) {
        let connection = &mut self.connections[place as usize];
        let token = connection.token(place);
        if let Some(stream) = &connection.stream
            && let Err(error) = self.poller.change(stream, token, Interest::Read)
        {
            return self.opening_failed(place, Phase::Connect, unwatched(error), now);
        }
        self.open_by.clear(place);
        self.tally.span.connections.opened += 1;
        let members = self.members(place);
        self.opening -= self.streams;
        self.open += self.streams;
        for member in members.clone() {
            self.connection(member).link = Link::Open;
        }
        for member in members {
            match self.connection(member).exchange.used {
                Use::Waiting => {
                    self.waiting -= 1;
                    self.ask_or_drop(member, now);
                    continue;
                }
                // Its user still pauses.
                Use::Thinking => {}
                Use::Free | Use::Asked => self.list(member),
            }
            self.unbound = self.unbound.saturating_sub(1);
        }
    }

    /// A connection could not be opened. The request that needs it fails: the one bound
    /// to it, or else the arrival that waits longest.
    pub(super) fn opening_failed(
        &mut self,
        place: u32,
        phase: Phase,
        cause: &'static str,
        now: u64,
    ) {
        self.open_by.clear(place);
        self.tally.span.connections.failed += 1;
        let trouble = Trouble::Connection(phase, cause, self.open / self.streams);
        self.trouble.get_or_insert(trouble);
        self.opening -= self.streams;
        let members = self.members(place);
        for member in members.clone() {
            self.connection(member).close();
        }
        let mut bound = false;
        for member in members {
            match self.connection(member).exchange.used {
                Use::Waiting => {
                    bound = true;
                    self.fail(member, phase, cause, now);
                    continue;
                }
                Use::Thinking => {}
                Use::Free | Use::Asked => self.save(member),
            }
            self.unbound = self.unbound.saturating_sub(1);
        }
        if !bound {
            self.fail_arrival(phase, cause, now);
        }
    }

    /// The arrival that waits longest fails. Says whether there was one.
    pub(super) fn fail_arrival(&mut self, phase: Phase, cause: &'static str, now: u64) -> bool {
        let Source::Schedule(plan) = &mut self.source else {
            return false;
        };
        let Some(arrival) = plan.take(now) else {
            return false;
        };
        let composer = &self.setup.composer;
        let kind = composer.kind(&composer.begin(self.first + arrival.number));
        self.tally.fail(kind, phase, cause, now);
        let sample = Sample {
            kind,
            intended: arrival.due.saturating_sub(self.tally.zero),
            sent: None,
            waited: true,
            end: End::Failed(phase, cause),
        };
        self.unanswered(sample);
        true
    }

    /// Closes a connection that was open.
    pub(super) fn close(&mut self, place: u32) {
        let connection = &mut self.connections[place as usize];
        if connection.link == Link::Open {
            self.open -= 1;
        }
        connection.close();
    }

    /// A connection without a request was closed by the target.
    pub(super) fn closed_idle(&mut self, place: u32, now: u64) {
        self.tally.span.connections.closed += 1;
        let used = self.connection(place).carried > 0;
        self.close(place);
        if self.is(place, Use::Free) {
            // A target that closes connections which carried nothing would be asked
            // for the next one without end.
            self.replace(place, used, now);
        }
    }

    /// Has a closed, free connection opened again if it is to be held; otherwise it
    /// waits for an arrival that needs it.
    pub(super) fn replace(&mut self, place: u32, worth: bool, now: u64) {
        let lacking = self.open + self.opening < self.held;
        if worth && lacking && self.ended.is_none() && !self.users && self.replaces() {
            self.open_at(place, now);
        } else {
            self.save(place);
        }
    }

    /// Puts a closed connection that nothing is bound to into the list of spare ones.
    pub(super) fn save(&mut self, place: u32) {
        let connection = &mut self.connections[place as usize];
        if !connection.saved {
            connection.saved = true;
            self.spare.push(place);
        }
    }

    fn take_spare(&mut self) -> Option<u32> {
        while let Some(place) = self.spare.pop() {
            let connection = &mut self.connections[place as usize];
            connection.saved = false;
            if connection.link == Link::Closed && connection.exchange.used == Use::Free {
                return Some(place);
            }
        }
        None
    }

    /// Puts an open connection into the list of free ones.
    pub(super) fn list(&mut self, place: u32) {
        let connection = &mut self.connections[place as usize];
        if !connection.listed {
            connection.listed = true;
            self.free.push(place);
        }
    }

    /// Takes the free connection that was used last.
    pub(super) fn take_free(&mut self) -> Option<u32> {
        while let Some(place) = self.free.pop() {
            let connection = &mut self.connections[place as usize];
            connection.listed = false;
            if connection.link == Link::Open && connection.exchange.used == Use::Free {
                return Some(place);
            }
        }
        None
    }
}

pub(super) fn unwatched(error: std::io::Error) -> &'static str {
    socket::cause(Errno::from_io_error(&error).unwrap_or(Errno::IO))
}
