//! The client's side of a request: its head, its body, its patience.

use rustix::io::Errno;
use wire::clock;
use wire::http1::{RequestBody, RequestError, Sink, write};
use wire::poller::Event;
use wire::stream::{Received, StreamError};

use super::buffers::ROOM;
use super::session::{Flight, LinkState, Phase, Session};
use super::worker::{RUNNING, Worker};
use crate::http::pipeline::{Admission, Exchange, Pipeline, Refusal};
use crate::table::Nanos;
use wire::deadlines::NEVER;

/// Bytes of a request's body that are kept for another attempt.
const KEEP: usize = 64 * 1024;
/// Bytes of a body that are read and dropped, so that the connection can go on after an
/// answer that did not wait for it. As Go's server does.
const DISCARD: usize = 256 * 1024;
/// How long a closed connection waits for its client to notice.
const LINGER: Nanos = 2_000_000_000;

/// Where the parts of a request's body go.
struct BodySink<'a> {
    pipeline: &'a Pipeline,
    exchange: &'a mut Exchange,
    out: &'a mut Vec<u8>,
    chunked: bool,
    trailers: bool,
}

impl Sink for BodySink<'_> {
    fn body(&mut self, part: &[u8]) {
        self.exchange.progress.request_body += part.len() as u64;
        if self.chunked {
            write::chunk(part, self.out);
        } else {
            self.out.extend_from_slice(part);
        }
    }

    fn trailers(&mut self, fields: &[u8]) {
        self.trailers = true;
        self.out.extend_from_slice(b"0\r\n");
        self.pipeline
            .write_trailers(fields, self.exchange, self.out);
        self.out.extend_from_slice(b"\r\n");
    }
}

impl Worker {
    /// Something happened to a client's socket.
    pub(super) fn client_event(&mut self, session: &mut Session, event: Event) {
        if session.phase == Phase::Opening {
            self.open(session);
        } else if session.wants_bytes() {
            if event.readable {
                self.read_client(session);
            }
        } else if event.broken && session.outbox.is_empty() {
            // Neither reading nor writing would find out.
            self.client_gone(session);
        }
        self.settle(session);
    }

    /// Another look at a connection whose bytes the poller cannot see.
    pub(super) fn revisited(&mut self, session: &mut Session) {
        if session.phase != Phase::Opening && session.stream.holds_bytes() && session.wants_bytes()
        {
            self.read_client(session);
        }
        let held = |flight: &Flight| {
            let link = flight.link.as_ref();
            link.is_some_and(|link| {
                link.state == LinkState::Open && (link.stream.holds_bytes() || !link.watched)
            })
        };
        if session.flight.as_deref().is_some_and(held) {
            if session.phase == Phase::Tunnel {
                self.read_tunnel(session);
            } else {
                self.read_link(session);
            }
        }
        self.settle(session);
    }

    /// Takes in bytes of the client, once.
    fn read_client(&mut self, session: &mut Session) {
        let most = match session.phase {
            Phase::Idle | Phase::Head => self.shared.settings.longest_head().max(ROOM),
            _ => ROOM,
        };
        let received = session
            .inbox
            .receive(&mut session.stream, most, &mut self.buffers);
        match received {
            Ok(Received::Bytes(bytes)) => self.counters.received.add(bytes as u64),
            Ok(Received::Nothing) => return,
            Ok(Received::End) => session.ended = true,
            Err(error) => {
                self.note_memory(&error);
                session.ended = true;
                session.outbox.clear(&mut self.buffers);
            }
        }
        match session.phase {
            // A client that ends its side has lost interest, as gorouter sees it.
            Phase::Flight if session.ended => self.client_gone(session),
            Phase::Discarding(left) => self.discard(session, left),
            Phase::Lingering(left) => {
                let left = left.saturating_sub(session.inbox.len());
                session.inbox.clear(&mut self.buffers);
                session.phase = if session.ended || left == 0 {
                    Phase::Closed
                } else {
                    Phase::Lingering(left)
                };
            }
            _ => {}
        }
    }

    /// Counts a connection that ends since there is no memory for what came.
    pub(super) fn note_memory(&self, error: &StreamError) {
        if matches!(error, StreamError::Socket(Errno::NOBUFS)) {
            self.counters.no_memory.increment();
        }
    }

    /// Does everything that can be done without waiting, sends what there is to send, and
    /// waits for the rest.
    pub(super) fn settle(&mut self, session: &mut Session) {
        loop {
            let before = session.phase;
            let mut more = false;
            match session.phase {
                Phase::Opening | Phase::Http2 | Phase::Closed => {}
                Phase::Idle | Phase::Head => more = self.next_request(session),
                Phase::Flight => self.carry(session),
                Phase::Tunnel => self.carry_tunnel(session),
                Phase::Discarding(_) => {
                    self.flush(session);
                }
                Phase::Flushing => {
                    if self.flush(session) && session.outbox.is_empty() {
                        self.linger(session);
                    }
                }
                Phase::Lingering(_) => {}
            }
            if session.phase == before && !more {
                break;
            }
        }
        self.arm_link(session);
        self.arm(session);
    }

    /// Begins the next request if its head is there, and says whether it did.
    fn next_request(&mut self, session: &mut Session) -> bool {
        // A client that does not take its answers gets no more of them.
        if !self.flush(session) || !session.outbox.is_empty() {
            return false;
        }
        if session.inbox.is_empty() {
            if session.ended || (self.state != RUNNING && session.used) {
                session.phase = Phase::Closed;
            }
            return false;
        }
        let mut flight = self.new_flight();
        match session
            .scanner
            .head(session.inbox.bytes(), &mut flight.head)
        {
            Ok(Some(length)) => {
                session.inbox.consume(length, &mut self.buffers);
                session.used = true;
                self.begin(session, flight);
                return true;
            }
            Ok(None) => {
                self.spare_flight(flight);
                session.inbox.park(&mut self.buffers);
                if session.ended {
                    self.refuse_bytes(session, RequestError::RequestLine);
                } else if session.phase == Phase::Idle {
                    session.phase = Phase::Head;
                    session.deadline = self.after(self.shared.settings.head_timeout);
                }
            }
            Err(error) => {
                self.spare_flight(flight);
                self.refuse_bytes(session, error);
            }
        }
        false
    }

    /// Answers bytes that are no request, and closes.
    fn refuse_bytes(&mut self, session: &mut Session, error: RequestError) {
        self.counters.malformed.increment();
        if error == RequestError::ContentLengthEmpty {
            self.counters.empty_content_length.increment();
        }
        let sheet = session.outbox.sheet(&mut self.buffers);
        sheet.extend_from_slice(error.answer());
        self.close_after_answer(session);
    }

    /// What is in the outbox is the last that the client gets.
    pub(super) fn close_after_answer(&mut self, session: &mut Session) {
        session.inbox.clear(&mut self.buffers);
        session.phase = Phase::Flushing;
        session.deadline = self.after(self.shared.settings.head_timeout);
    }

    fn linger(&mut self, session: &mut Session) {
        match session.stream.close_write() {
            Ok(true) if !session.ended && session.stream.socket().is_some() => {}
            Ok(false) => return,
            _ => {
                session.phase = Phase::Closed;
                return;
            }
        }
        session.phase = Phase::Lingering(DISCARD);
        session.deadline = self.now.saturating_add(LINGER);
    }

    /// A request is there: answers it, or begins to send it on.
    fn begin(&mut self, session: &mut Session, mut flight: Box<Flight>) {
        let times = self.times();
        self.counters.requests.increment();
        self.counters.active.increment();
        session.phase = Phase::Flight;
        flight.body_read = flight.head.body() == RequestBody::None;
        // A sample: each look at the clock costs as much as a quarter of a lookup.
        let sampled = self.counters.requests.get().is_multiple_of(16);
        let began = if sampled { clock::now() } else { 0 };
        let admission = self.shared.pipeline.admit(
            &flight.head,
            &session.client,
            &self.shared.table,
            times,
            &mut self.random,
            &mut flight.exchange,
        );
        if sampled {
            let took = clock::now().saturating_sub(began);
            self.counters.lookup_time.record(took);
        }
        session.flight = Some(flight);
        match admission {
            Admission::Forward => self.attempt(session),
            Admission::Answer(refusal) => self.refuse(session, refusal),
            Admission::HealthCheck => self.answer_health_check(session),
        }
    }

    /// Sends on what came of the request's body, and what came back.
    fn carry(&mut self, session: &mut Session) {
        loop {
            let before = session.inbox.len();
            self.carry_body(session);
            let again = session.phase == Phase::Flight && self.push(session);
            if session.phase != Phase::Flight {
                return;
            }
            let moved = session.inbox.len() < before;
            let stuck = session
                .flight
                .as_ref()
                .is_none_or(|flight| flight.body_read || !flight.upstream.is_empty());
            if !again && (stuck || !moved) {
                break;
            }
        }
        self.flush(session);
    }

    /// Moves what came of the body into the way to the backend.
    fn carry_body(&mut self, session: &mut Session) {
        let Some(flight) = &mut session.flight else {
            return;
        };
        if flight.body_read || flight.upstream.len() >= ROOM {
            return;
        }
        let connected = flight
            .link
            .as_ref()
            .is_some_and(|link| link.state == LinkState::Open);
        // Until there is a connection no more is taken than can be sent again.
        if !connected && flight.kept.len() + session.inbox.len() > KEEP {
            return;
        }
        let chunked = flight.head.body() == RequestBody::Chunked;
        let sheet = flight.upstream.sheet(&mut self.buffers);
        let from = sheet.len();
        let mut sink = BodySink {
            pipeline: &self.shared.pipeline,
            exchange: &mut flight.exchange,
            out: sheet,
            chunked,
            trailers: false,
        };
        match session.scanner.body(session.inbox.bytes(), &mut sink) {
            Ok(scan) => {
                if scan.ended && chunked && !sink.trailers {
                    sink.out.extend_from_slice(write::LAST_CHUNK);
                }
                flight.body_read = scan.ended;
                let part = sheet.get(from..).unwrap_or_default();
                if flight.kept.len() + part.len() > KEEP {
                    flight.kept_whole = false;
                    flight.kept.clear();
                } else if flight.kept_whole {
                    flight.kept.extend_from_slice(part);
                }
                if flight.upstream_broken {
                    flight.upstream.clear(&mut self.buffers);
                }
                session.inbox.consume(scan.consumed, &mut self.buffers);
            }
            Err(error) => self.body_malformed(session, error),
        }
    }

    /// The body breaks its framing: nobody knows where the next request begins.
    fn body_malformed(&mut self, session: &mut Session, error: RequestError) {
        let answered = session
            .flight
            .as_ref()
            .is_some_and(|flight| flight.answered);
        self.drop_link(session);
        if answered {
            self.counters.malformed.increment();
            self.cut_off(session);
            return;
        }
        self.end_flight(session);
        self.refuse_bytes(session, error);
    }

    /// Whether the rest of the body can be dropped, so that the connection goes on: drops
    /// what is there.
    pub(super) fn discard_rest(&mut self, session: &mut Session) {
        session.phase = Phase::Discarding(DISCARD);
        session.deadline = self.after(self.shared.settings.head_timeout);
        self.discard(session, DISCARD);
    }

    fn discard(&mut self, session: &mut Session, left: usize) {
        match session.scanner.body(session.inbox.bytes(), &mut ()) {
            Ok(scan) => {
                session.inbox.consume(scan.consumed, &mut self.buffers);
                let left = left.saturating_sub(scan.consumed);
                if scan.ended {
                    self.next_begins(session);
                } else if left == 0 {
                    self.close_after_answer(session);
                } else if session.ended {
                    session.phase = Phase::Closed;
                } else {
                    session.phase = Phase::Discarding(left);
                }
            }
            Err(_) => self.close_after_answer(session),
        }
    }

    /// The connection waits for its next request.
    pub(super) fn next_begins(&mut self, session: &mut Session) {
        session.phase = Phase::Idle;
        session.deadline = self.after(self.shared.settings.idle_timeout);
    }

    /// Sends to the client what can be sent now; `false` when it is gone.
    pub(super) fn flush(&mut self, session: &mut Session) -> bool {
        if session.outbox.is_empty() && !session.stream.wants_write() {
            return true;
        }
        match session.outbox.send(&mut session.stream, &mut self.buffers) {
            Ok(bytes) => {
                self.counters.sent.add(bytes as u64);
                true
            }
            Err(_) => {
                session.ended = true;
                self.client_gone(session);
                false
            }
        }
    }

    /// The client went away: its request is of no use to anybody.
    pub(super) fn client_gone(&mut self, session: &mut Session) {
        let mut told = false;
        if session.flight.is_some() {
            if session.phase == Phase::Flight {
                self.counters.clients_gone.increment();
                told = self.note_cancelled(session);
            }
            self.drop_link(session);
            self.end_flight(session);
        }
        if told && session.ended {
            self.close_after_answer(session);
        } else {
            session.phase = Phase::Closed;
        }
    }

    /// A client's connection ran out of patience.
    pub(super) fn client_expired(&mut self, session: &mut Session) {
        if session.deadline > self.now {
            self.arm(session);
            return;
        }
        match session.phase {
            Phase::Flight => self.flight_expired(session),
            Phase::Opening => self.opening_failed(session),
            Phase::Head | Phase::Flushing | Phase::Discarding(_) => {
                self.counters.slow_clients.increment();
                session.phase = Phase::Closed;
            }
            Phase::Idle | Phase::Lingering(_) => session.phase = Phase::Closed,
            Phase::Tunnel => self.end_tunnel(session),
            Phase::Http2 | Phase::Closed => session.deadline = NEVER,
        }
        self.settle(session);
    }

    /// Refuses a request, and goes on with the next one if that can be.
    pub(super) fn refuse(&mut self, session: &mut Session, refusal: Refusal) {
        let times = self.times();
        let running = self.state == RUNNING;
        let Some(flight) = &mut session.flight else {
            return;
        };
        flight.unlogged = !refusal.is_logged();
        // A client that waits for leave to send its body was not given it: whether the body
        // still comes, nobody knows.
        let waits = flight.head.expects_continue() && !flight.body_read;
        // Nor is it worth while to read much that nobody wants.
        let read = flight.exchange.progress.request_body;
        let much = matches!(flight.head.body(), RequestBody::Exactly(length)
            if length.saturating_sub(read) >= DISCARD as u64);
        let keep_alive = running && flight.head.keep_alive() && !waits && !much;
        let keep_alive = self.shared.pipeline.write_refusal(
            &flight.head,
            &mut flight.exchange,
            refusal,
            keep_alive,
            times,
            session.outbox.sheet(&mut self.buffers),
        );
        self.answer_is_whole(session, keep_alive);
    }

    fn answer_health_check(&mut self, session: &mut Session) {
        let times = self.times();
        let running = self.state == RUNNING;
        let healthy = running
            && self
                .shared
                .healthy
                .load(std::sync::atomic::Ordering::Relaxed);
        let Some(flight) = &mut session.flight else {
            return;
        };
        let keep_alive = self.shared.pipeline.write_health(
            &flight.head,
            &mut flight.exchange,
            healthy,
            running && flight.head.keep_alive(),
            times,
            session.outbox.sheet(&mut self.buffers),
        );
        self.answer_is_whole(session, keep_alive);
    }
}
