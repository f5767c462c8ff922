//! The course of a request, from its head on: what comes from either side moves it on.

use std::ops::ControlFlow;

use wire::clock;
use wire::deadlines::NEVER;
use wire::http1::{RequestBody, Sink, write};
use wire::poller::{Event, Poller};

use super::{ActiveRequest, FINISHED, Flow, ONGOING, ThreadResources};
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
    pub(crate) fn begin(&mut self, resources: &mut ThreadResources<'_>) -> Flow {
        let context = &mut *resources.context;
        let times = context.clock.times();
        context.counters.requests.increment();
        context.counters.active.increment();
        self.body_read = self.head.body() == RequestBody::None;
        // A sample: each look at the clock costs as much as a quarter of a lookup.
        let sampled = context.counters.requests.get().is_multiple_of(16);
        let began = if sampled { clock::now() } else { 0 };
        let admission = context.shared.pipeline.admit(
            &self.head,
            resources.client.client(),
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
            Admission::Forward => self.attempt(resources),
            Admission::Answer(refusal) => {
                if refusal == Refusal::HeadTooLarge {
                    self.name_endpoint(resources.context);
                }
                self.refuse(refusal, resources)
            }
            Admission::HealthCheck => self.answer_health_check(resources),
        }
    }

    /// Sends on what came from either side.
    pub(crate) fn carry(&mut self, resources: &mut ThreadResources<'_>) -> Flow {
        if self.tunnels {
            return self.carry_tunnel(resources);
        }
        loop {
            let before = resources.client.held();
            self.carry_body(resources)?;
            let again = self.push(resources)?;
            let moved = resources.client.held() < before;
            let stuck = self.body_read || !self.upstream.is_empty();
            if !again && (stuck || !moved) {
                break;
            }
        }
        match resources.client.flush(resources.context) {
            true => ONGOING,
            false => self.give_up(resources),
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
    pub(crate) fn client_ended(&mut self, resources: &mut ThreadResources<'_>) -> Flow {
        match self.tunnels {
            true => ONGOING,
            false => self.give_up(resources),
        }
    }

    /// Something happened to the connection to the backend.
    pub(crate) fn event(&mut self, event: Event, resources: &mut ThreadResources<'_>) -> Flow {
        let Some(connection) = &mut self.connection else {
            return ONGOING;
        };
        match connection.state() {
            ConnectionState::Connecting if event.writable => self.connected(resources),
            ConnectionState::Connecting => ONGOING,
            ConnectionState::Handshaking => self.handshake(resources),
            ConnectionState::Open if event.broken && !resources.client.took_all() => {
                connection.stop_watching(&resources.context.poller);
                ONGOING
            }
            // There is nothing more to be read, and nobody to write to.
            ConnectionState::Open if self.tunnels && event.broken && connection.has_ended() => {
                self.end_tunnel(resources)
            }
            ConnectionState::Open if event.readable => self.read(resources),
            ConnectionState::Open => ONGOING,
        }
    }

    /// Another look at bytes of the backend that the poller cannot see.
    pub(crate) fn revisit(&mut self, resources: &mut ThreadResources<'_>) -> Flow {
        match &self.connection {
            Some(connection) if connection.holds_bytes() => self.read(resources),
            _ => ONGOING,
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
    pub(crate) fn expired(&mut self, resources: &mut ThreadResources<'_>) -> Flow {
        if self.tunnels {
            return self.end_tunnel(resources);
        }
        let now = resources.context.clock.now();
        if self.continue_at <= now && self.attempt_ends > now {
            self.continue_at = NEVER;
            self.deadline = self.attempt_ends;
            if !self.answered {
                let write_buffer = resources
                    .client
                    .outbox()
                    .write_buffer(&mut resources.context.buffers);
                write_buffer.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
            }
            return ONGOING;
        }
        let failure = match self.connection.as_ref().map(|it| it.state()) {
            // The time for the whole attempt is over, whatever it was at.
            _ if self.attempt_ends <= now => Failure::Timeout,
            Some(ConnectionState::Connecting) | None => Failure::DialTimeout,
            Some(ConnectionState::Handshaking) => Failure::TlsTimeout,
            Some(ConnectionState::Open) => Failure::Timeout,
        };
        self.fail(failure, resources)
    }

    fn read(&mut self, resources: &mut ThreadResources<'_>) -> Flow {
        if self.tunnels {
            self.read_tunnel(resources);
            return ONGOING;
        }
        let taken = self.take_answer(resources);
        taken.unwrap_or_else(|error| self.fail_answer(&error, resources))
    }

    /// Moves what came of the body into the way to the backend.
    fn carry_body(&mut self, resources: &mut ThreadResources<'_>) -> Flow {
        if self.body_read || self.upstream.len() >= ROOM {
            return ONGOING;
        }
        let connection = self.connection.as_ref();
        let open = connection.is_some_and(|it| it.state() == ConnectionState::Open);
        // Until there is a connection no more is taken than can be sent again.
        if !open && self.kept.len() + resources.client.held() > KEEP {
            return ONGOING;
        }
        let context = &mut *resources.context;
        let chunked = self.head.body() == RequestBody::Chunked;
        let write_buffer = self.upstream.write_buffer(&mut context.buffers);
        let from = write_buffer.len();
        let mut sink = BodySink {
            pipeline: &context.shared.pipeline,
            exchange: &mut self.exchange,
            out: write_buffer,
            chunked,
            trailers: false,
        };
        let ended = match resources.client.body(&mut sink, &mut context.buffers) {
            Ok(ended) => ended,
            // Nobody knows where the next request begins.
            Err(_) if self.answered => {
                context.counters.malformed.increment();
                resources.client.cut_off();
                return FINISHED;
            }
            Err(error) => {
                // Its application is told what its client is told.
                self.exchange.status = error.status();
                self.exchange.progress.answer_body = resources.client.refuse_bytes(error, context);
                if self.attempts > 0 {
                    self.note_failed_attempt(context.clock.now());
                }
                return FINISHED;
            }
        };
        if ended && chunked && !sink.trailers {
            sink.out.extend_from_slice(write::LAST_CHUNK);
        }
        self.body_read = ended;
        let part = write_buffer.get(from..).unwrap_or_default();
        if self.kept.len() + part.len() > KEEP {
            self.kept_whole = false;
            self.kept.clear();
        } else if self.kept_whole {
            self.kept.extend_from_slice(part);
        }
        if self.upstream_broken {
            self.upstream.clear(&mut context.buffers);
        }
        ONGOING
    }

    /// Sends what waits for the backend. Whether there is more to be done at once: another
    /// attempt has begun.
    fn push(&mut self, resources: &mut ThreadResources<'_>) -> ControlFlow<(), bool> {
        let Some(connection) = &mut self.connection else {
            return ControlFlow::Continue(false);
        };
        match connection.send(&mut self.upstream, &mut resources.context.buffers) {
            Ok(bytes) => {
                self.sent += bytes;
                ControlFlow::Continue(false)
            }
            Err(error) => {
                // The backend may have answered before it closed: its last word counts.
                self.upstream_broken = true;
                self.upstream.clear(&mut resources.context.buffers);
                self.read(resources)?;
                if self.upstream_broken && self.connection.is_some() {
                    self.fail_write(&error, resources)?;
                }
                ControlFlow::Continue(true)
            }
        }
    }
}
