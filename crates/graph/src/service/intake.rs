//! Callers' connections: reading requests, sending answers, ending.

use std::mem;

use wire::deadlines::NEVER;
use wire::http1::{RequestBody, RequestHead};
use wire::poller::{Event, Interest};
use wire::slab::Key;
use wire::stream::Received;

use super::event_loop::{EventLoop, Todo};
use super::flight::Flight;
use super::message::{self, write_refusal};
use super::plan::REVISION;
use super::recording::GONE;
use super::session::{IDLE, LINGER, LINGER_BYTES, MOST_AHEAD, MOST_BODY, PATIENCE, Phase, Session};
use super::token::Token;
use traces::context;
use traces::{SpanId, TraceId};

impl EventLoop {
    pub(super) fn session_event(&mut self, key: Key, event: Event) {
        let Some(mut session) = self.sessions.take(key) else {
            return;
        };
        if event.writable && session.writing {
            self.go_on_sending(&mut session);
        }
        if event.readable && session.phase != Phase::Closed {
            self.read(&mut session);
        }
        self.put_session(session);
    }

    /// Puts a connection back into its place, or forgets it if it was closed.
    pub(super) fn put_session(&mut self, session: Box<Session>) {
        if session.phase == Phase::Closed {
            self.forget_session(session);
            return;
        }
        let place = session.key.index();
        self.timers.sessions.set(place, session.deadline);
        self.sessions.put(session.key, session);
    }

    #[expect(clippy::boxed_local, reason = "as it comes out of its slab")]
    pub(super) fn forget_session(&mut self, session: Box<Session>) {
        self.timers.sessions.clear(session.key.index());
        if let Some(plan) = self.current_plan(session.instance) {
            plan.counters.closed();
        }
        self.sessions.release(session.key);
    }

    /// A connection is of no more use, nor is the request on it.
    pub(super) fn close_session(&mut self, session: &mut Session, cause: &'static str) {
        match session.phase {
            Phase::Body(flight, _) => {
                if let Some(flight) = self.flights.remove(flight) {
                    self.spare_flight(flight);
                }
            }
            Phase::Flight(flight) | Phase::Answering(flight) => {
                self.todo.push_back(Todo::Abandon(flight, cause));
            }
            _ => {}
        }
        session.phase = Phase::Closed;
    }

    /// Takes in what came, once.
    pub(super) fn read(&mut self, session: &mut Session) {
        let mut room = mem::take(&mut self.room);
        match session.stream.receive(&mut room) {
            Ok(Received::Bytes(count)) => {
                self.took(session, room.get(..count).unwrap_or_default());
            }
            Ok(Received::Nothing) => {}
            // A caller that ends its side has lost interest.
            Ok(Received::End) | Err(_) => self.close_session(session, GONE),
        }
        self.room = room;
    }

    fn took(&mut self, session: &mut Session, bytes: &[u8]) {
        match session.phase {
            Phase::Head | Phase::Body(..) if session.rest.is_empty() => {
                let used = self.advance(session, bytes);
                let rest = bytes.get(used..).unwrap_or_default();
                session.rest.extend_from_slice(rest);
            }
            Phase::Head | Phase::Body(..) => {
                session.rest.extend_from_slice(bytes);
                self.use_rest(session);
            }
            Phase::Flight(_) | Phase::Answering(_) => session.rest.extend_from_slice(bytes),
            Phase::Lingering(left) if left > bytes.len() => {
                session.phase = Phase::Lingering(left - bytes.len());
            }
            Phase::Lingering(_) => session.phase = Phase::Closed,
            Phase::Refusing | Phase::Closed => {}
        }
        if session.rest.len() > MOST_AHEAD
            && matches!(session.phase, Phase::Flight(_) | Phase::Answering(_))
        {
            session.paused = true;
            self.watch(session);
        }
    }

    /// Scans the bytes that wait.
    fn use_rest(&mut self, session: &mut Session) {
        let mut rest = mem::take(&mut session.rest);
        let used = self.advance(session, &rest);
        rest.drain(..used);
        if rest.is_empty() {
            rest.shrink_to(MOST_AHEAD / 16);
        }
        session.rest = rest;
    }

    /// Scans bytes until a request is whole, and says how many it used.
    fn advance(&mut self, session: &mut Session, input: &[u8]) -> usize {
        let mut used = 0;
        loop {
            let rest = input.get(used..).unwrap_or_default();
            match session.phase {
                Phase::Head if rest.is_empty() => break,
                Phase::Head => {
                    let Some(instance) = self.instances.get_mut(session.instance) else {
                        session.phase = Phase::Closed;
                        break;
                    };
                    let mut head = mem::take(&mut instance.head);
                    let scanned = session.scanner.head(rest, &mut head);
                    match scanned {
                        Ok(Some(length)) => {
                            used += length;
                            self.head(session, &head);
                        }
                        Ok(None) if session.deadline > self.now.saturating_add(PATIENCE) => {
                            session.deadline = self.now.saturating_add(PATIENCE);
                        }
                        Ok(None) => {}
                        Err(error) => self.refuse(session, error.status()),
                    }
                    if let Some(instance) = self.instances.get_mut(session.instance) {
                        instance.head = head;
                    }
                    if matches!(scanned, Ok(None)) {
                        break;
                    }
                }
                Phase::Body(flight, before) => match session.scanner.body(rest, &mut ()) {
                    Ok(scan) => {
                        used += scan.consumed;
                        let so_far = before + scan.consumed as u64;
                        if scan.ended {
                            session.phase = Phase::Flight(flight);
                            session.deadline = NEVER;
                            self.todo.push_back(Todo::Begin(flight));
                        } else if so_far > MOST_BODY {
                            self.refuse(session, 413);
                        } else {
                            session.phase = Phase::Body(flight, so_far);
                            session.deadline = self.now.saturating_add(PATIENCE);
                            break;
                        }
                    }
                    Err(error) => self.refuse(session, error.status()),
                },
                _ => break,
            }
        }
        used
    }

    /// A head is there: what it says is taken over, and its body comes next.
    fn head(&mut self, session: &mut Session, head: &RequestHead) {
        if head.is_http2_preface() {
            self.refuse(session, 400);
            return;
        }
        let bodiless = match head.method() {
            b"GET" | b"POST" => false,
            b"HEAD" => true,
            _ => {
                self.refuse(session, 405);
                return;
            }
        };
        if matches!(head.body(), RequestBody::Exactly(length) if length > MOST_BODY) {
            self.refuse(session, 413);
            return;
        }
        let path = message::path(head.target());
        let revision = head.field(REVISION);
        let Some(mut flight) = self.new_request(session.instance, revision, path, head.fields())
        else {
            self.refuse(session, 503);
            return;
        };
        flight.session = Some(session.key);
        flight.bodiless = bodiless;
        flight.keep_alive = head.keep_alive();
        flight.old = head.minor() == 0;
        flight.deadline = message::deadline(head.field(message::TIMEOUT), flight.started);
        session.phase = Phase::Body(self.flights.insert(flight), 0);
        session.deadline = self.now.saturating_add(PATIENCE);
        if head.expects_continue() {
            let sheet = session.outbox.sheet();
            sheet.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
            if self.send(session) == Sent::Failed {
                self.close_session(session, GONE);
            }
        }
    }

    /// A request with a path and fields, which asks for a revision if it must; `None`: the
    /// instance does nothing.
    pub(super) fn new_request<'a>(
        &mut self,
        instance: usize,
        revision: Option<&[u8]>,
        path: &[u8],
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
    ) -> Option<Box<Flight>> {
        let plan = self.plan_for(instance, revision)?;
        let mut flight = self.new_flight();
        flight.instance = instance;
        flight.path.extend_from_slice(path);
        flight.endpoint = plan.find(&flight.path);
        flight.started = self.woken.min(self.now);
        flight.queue = self.now.saturating_sub(flight.started);
        let context = context::read(fields, &mut flight.passed);
        if context.trace == TraceId::default() {
            if let Some(instance) = self.instances.get_mut(instance) {
                flight.trace = TraceId::of_request(plan.topology.seed, self.run, instance.number);
                instance.number = instance.number.wrapping_add(instance.step);
            }
        } else {
            flight.trace = context.trace;
        }
        flight.parent = context.parent;
        flight.span = SpanId::child(context.parent, flight.trace, 0, 0);
        flight.sampled = plan.sampler.samples(&context, flight.trace);
        flight.debug = context.debug;
        flight.plan = Some(plan);
        Some(flight)
    }

    /// Answers what is no request that can be handled, and closes.
    fn refuse(&mut self, session: &mut Session, status: u16) {
        self.close_session(session, "refused");
        session.phase = Phase::Refusing;
        session.deadline = self.now.saturating_add(PATIENCE);
        write_refusal(status, session.outbox.sheet());
        match self.send(session) {
            Sent::All => self.linger(session),
            Sent::Some => {}
            Sent::Failed => session.phase = Phase::Closed,
        }
    }

    /// A refusal is sent: what the caller still sends is taken for a moment, since closing
    /// before would take the refusal away from it.
    fn linger(&mut self, session: &mut Session) {
        session.rest = Vec::new();
        match session.stream.close_write() {
            Ok(_) => {
                session.phase = Phase::Lingering(LINGER_BYTES);
                session.deadline = self.now.saturating_add(LINGER);
            }
            Err(_) => session.phase = Phase::Closed,
        }
    }

    /// Sends what waits in the outbox, and begins or ends to watch for when more can be.
    pub(super) fn send(&mut self, session: &mut Session) -> Sent {
        if session.outbox.send(&mut session.stream).is_err() {
            session.outbox.clear();
            return Sent::Failed;
        }
        let all = session.outbox.is_empty();
        if session.writing == all {
            session.writing = !all;
            self.watch(session);
        }
        if all { Sent::All } else { Sent::Some }
    }

    /// Tells the poller what is wanted of a connection now.
    fn watch(&mut self, session: &mut Session) {
        let interest = Interest::of(!session.paused, session.writing);
        let token = Token::Session(session.key).number();
        if self
            .poller
            .change(&session.stream, token, interest)
            .is_err()
        {
            self.close_session(session, GONE);
        }
    }

    fn go_on_sending(&mut self, session: &mut Session) {
        session.deadline = self.now.saturating_add(PATIENCE);
        match (self.send(session), session.phase) {
            (Sent::Failed, _) => self.close_session(session, GONE),
            (Sent::All, Phase::Answering(flight)) => {
                self.todo.push_back(Todo::Sent(flight));
                self.answered(session);
            }
            (Sent::All, Phase::Refusing) => self.linger(session),
            _ => {}
        }
    }

    /// An answer is sent: the next request may come.
    pub(super) fn answered(&mut self, session: &mut Session) {
        if session.last || self.is_leaving(session.instance) {
            session.phase = Phase::Closed;
            return;
        }
        session.phase = Phase::Head;
        session.deadline = self.now.saturating_add(IDLE);
        if session.paused {
            session.paused = false;
            self.watch(session);
        }
        if !session.rest.is_empty() {
            self.todo.push_back(Todo::Resume(session.key));
        }
    }

    /// Looks at what came behind a request that is answered now.
    pub(super) fn resume(&mut self, key: Key) {
        let Some(mut session) = self.sessions.take(key) else {
            return;
        };
        if session.phase == Phase::Head {
            // It was looked at as soon as it could be.
            let woken = mem::replace(&mut self.woken, self.now);
            self.use_rest(&mut session);
            self.woken = woken;
        }
        self.put_session(session);
    }

    pub(super) fn session_expired(&mut self, key: Key) {
        let Some(mut session) = self.sessions.take(key) else {
            return;
        };
        session.deadline = NEVER;
        match session.phase {
            Phase::Flight(flight) => self.todo.push_back(Todo::Expired(flight)),
            _ => self.close_session(&mut session, "timeout"),
        }
        self.put_session(session);
    }
}

/// How far sending came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// Everything that waited.
    All,
    /// Not everything.
    Some,
    /// The connection is gone.
    Failed,
}
