//! The course of a request, from its head on: what comes from either side moves it on.

use std::ops::ControlFlow;

use wire::clock;
use wire::deadlines::NEVER;
use wire::http1::{RequestBody, Sink, write};
use wire::poller::{Event, Poller};

use super::{ActiveRequest, Course, Lent, ON, OVER};
use crate::http::engine::backends::ConnectionState;
use crate::http::engine::buffers::ROOM;
use crate::http::engine::client::ClientConnection;
use crate::http::pipeline::retry::Failure;
use crate::http::pipeline::{Admission, Exchange, Pipeline, Refusal};

/// Bytes of a request's body that are kept for another attempt.
const KEEP: usize = 64 * 1024;

/// Bytes of following requests that are read while one is on its way.
const AHEAD: usize = 16 * 1024;

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

impl ActiveRequest {
    /// A request is there: answers it, or begins to send it on.
    pub(crate) fn begin(&mut self, lent: &mut Lent<'_>) -> Course {
        let context = &mut *lent.context;
        let times = context.clock.times();
        context.counters.requests.increment();
        context.counters.active.increment();
        self.body_read = self.head.body() == RequestBody::None;
        // A sample: each look at the clock costs as much as a quarter of a lookup.
        let sampled = context.counters.requests.get().is_multiple_of(16);
        let began = if sampled { clock::now() } else { 0 };
        let admission = context.shared.pipeline.admit(
            &self.head,
            lent.client.client(),
            &context.shared.table,
            times,
            &mut context.random,
            &mut self.exchange,
        );
        if sampled {
            let took = clock::now().saturating_sub(began);
            context.counters.lookup_time.record(took);
        }
        match admission {
            Admission::Forward => self.attempt(lent),
            Admission::Answer(refusal) => {
                if refusal == Refusal::HeadTooLarge {
                    self.name_endpoint(lent.context);
                }
                self.refuse(refusal, lent)
            }
            Admission::HealthCheck => self.answer_health_check(lent),
        }
    }

    /// Sends on what came from either side.
    pub(crate) fn carry(&mut self, lent: &mut Lent<'_>) -> Course {
        if self.tunnels {
            return self.carry_tunnel(lent);
        }
        loop {
            let before = lent.client.held();
            self.carry_body(lent)?;
            let again = self.push(lent)?;
            let moved = lent.client.held() < before;
            let stuck = self.body_read || !self.upstream.is_empty();
            if !again && (stuck || !moved) {
                break;
            }
        }
        match lent.client.flush(lent.context) {
            true => ON,
            false => self.give_up(lent),
        }
    }

    /// Whether bytes of the client have a place now.
    pub(crate) fn wants_bytes(&self, client: &ClientConnection) -> bool {
        match (self.tunnels, self.body_read) {
            (true, _) => !client.has_ended() && self.upstream.is_empty(),
            (false, false) => self.upstream.len() < ROOM && client.held() < ROOM,
            // The end is to be noticed; a request that follows waits here.
            (false, true) => !client.has_ended() && client.held() < AHEAD,
        }
    }

    /// A client that ends its side has lost interest, as gorouter sees it.
    pub(crate) fn client_ended(&mut self, lent: &mut Lent<'_>) -> Course {
        match self.tunnels {
            true => ON,
            false => self.give_up(lent),
        }
    }

    /// Something happened to the connection to the backend.
    pub(crate) fn event(&mut self, event: Event, lent: &mut Lent<'_>) -> Course {
        let Some(connection) = &mut self.connection else {
            return ON;
        };
        match connection.state() {
            ConnectionState::Connecting if event.writable => self.connected(lent),
            ConnectionState::Connecting => ON,
            ConnectionState::Handshaking => self.handshake(lent),
            ConnectionState::Open if event.broken && !lent.client.took_all() => {
                connection.stop_watching(&lent.context.poller);
                ON
            }
            // There is nothing more to be read, and nobody to write to.
            ConnectionState::Open if self.tunnels && event.broken && connection.has_ended() => {
                self.end_tunnel(lent)
            }
            ConnectionState::Open if event.readable => self.read(lent),
            ConnectionState::Open => ON,
        }
    }

    /// Another look at bytes of the backend that the poller cannot see.
    pub(crate) fn revisit(&mut self, lent: &mut Lent<'_>) -> Course {
        match &self.connection {
            Some(connection) if connection.holds_bytes() => self.read(lent),
            _ => ON,
        }
    }

    /// Watches for what the connection to the backend needs. `took_all`: the client has
    /// taken what came. Whether there are bytes that the poller does not know of.
    pub(crate) fn watch(&mut self, took_all: bool, poller: &Poller) -> bool {
        let sends = !self.upstream.is_empty();
        let connection = self.connection.as_mut();
        connection.is_some_and(|it| it.watch(sends, took_all, poller))
    }

    /// Patience is over.
    pub(crate) fn expired(&mut self, lent: &mut Lent<'_>) -> Course {
        if self.tunnels {
            return self.end_tunnel(lent);
        }
        let now = lent.context.clock.now();
        if self.continue_at <= now && self.attempt_ends > now {
            self.continue_at = NEVER;
            self.deadline = self.attempt_ends;
            if !self.answered {
                let sheet = lent.client.outbox().sheet(&mut lent.context.buffers);
                sheet.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
            }
            return ON;
        }
        let failure = match self.connection.as_ref().map(|it| it.state()) {
            // The time for the whole attempt is over, whatever it was at.
            _ if self.attempt_ends <= now => Failure::Timeout,
            Some(ConnectionState::Connecting) | None => Failure::DialTimeout,
            Some(ConnectionState::Handshaking) => Failure::TlsTimeout,
            Some(ConnectionState::Open) => Failure::Timeout,
        };
        self.fail(failure, lent)
    }

    fn read(&mut self, lent: &mut Lent<'_>) -> Course {
        if self.tunnels {
            self.read_tunnel(lent);
            return ON;
        }
        let taken = self.take_answer(lent);
        taken.unwrap_or_else(|error| self.fail_answer(&error, lent))
    }

    /// Moves what came of the body into the way to the backend.
    fn carry_body(&mut self, lent: &mut Lent<'_>) -> Course {
        if self.body_read || self.upstream.len() >= ROOM {
            return ON;
        }
        let connection = self.connection.as_ref();
        let open = connection.is_some_and(|it| it.state() == ConnectionState::Open);
        // Until there is a connection no more is taken than can be sent again.
        if !open && self.kept.len() + lent.client.held() > KEEP {
            return ON;
        }
        let context = &mut *lent.context;
        let chunked = self.head.body() == RequestBody::Chunked;
        let sheet = self.upstream.sheet(&mut context.buffers);
        let from = sheet.len();
        let mut sink = BodySink {
            pipeline: &context.shared.pipeline,
            exchange: &mut self.exchange,
            out: sheet,
            chunked,
            trailers: false,
        };
        let ended = match lent.client.body(&mut sink, &mut context.buffers) {
            Ok(ended) => ended,
            // Nobody knows where the next request begins.
            Err(_) if self.answered => {
                context.counters.malformed.increment();
                lent.client.cut_off();
                return OVER;
            }
            Err(error) => {
                // Its application is told what its client is told.
                self.exchange.status = error.status();
                self.exchange.progress.answer_body = lent.client.refuse_bytes(error, context);
                if self.attempts > 0 {
                    self.note_failed_attempt(context.clock.now());
                }
                return OVER;
            }
        };
        if ended && chunked && !sink.trailers {
            sink.out.extend_from_slice(write::LAST_CHUNK);
        }
        self.body_read = ended;
        let part = sheet.get(from..).unwrap_or_default();
        if self.kept.len() + part.len() > KEEP {
            self.kept_whole = false;
            self.kept.clear();
        } else if self.kept_whole {
            self.kept.extend_from_slice(part);
        }
        if self.upstream_broken {
            self.upstream.clear(&mut context.buffers);
        }
        ON
    }

    /// Sends what waits for the backend. Whether there is more to be done at once: another
    /// attempt has begun.
    fn push(&mut self, lent: &mut Lent<'_>) -> ControlFlow<(), bool> {
        let Some(connection) = &mut self.connection else {
            return ControlFlow::Continue(false);
        };
        match connection.send(&mut self.upstream, &mut lent.context.buffers) {
            Ok(bytes) => {
                self.sent += bytes;
                ControlFlow::Continue(false)
            }
            Err(error) => {
                // The backend may have answered before it closed: its last word counts.
                self.upstream_broken = true;
                self.upstream.clear(&mut lent.context.buffers);
                self.read(lent)?;
                if self.upstream_broken && self.connection.is_some() {
                    self.fail_write(&error, lent)?;
                }
                ControlFlow::Continue(true)
            }
        }
    }
}
