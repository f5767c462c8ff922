//! The answer on its way back: the backend's, or the router's own.

use wire::deadlines::NEVER;
use wire::http1::{BodyLength, RequestBody, RequestHead, Sink, write};
use wire::stream::{Received, StreamError};

use super::{ActiveRequest, FINISHED, Flow, ONGOING, ThreadResources, malformed};
use crate::http::engine::buffers::ROOM;
use crate::http::engine::client::DISCARD;
use crate::http::engine::context::Context;
use crate::http::pipeline::fields::has_token;
use crate::http::pipeline::{
    Answer, ClientBody, Exchange, Pipeline, Promise, Refusal, Times, Upgrade,
};

/// Where the parts of an answer go.
struct AnswerSink<'a> {
    pipeline: &'a Pipeline,
    head: &'a RequestHead,
    exchange: &'a mut Exchange,
    out: &'a mut Vec<u8>,
    length: BodyLength,
    promise: &'a mut Option<Promise>,
    /// Whether the client's connection may go on.
    keep_alive: bool,
    trailers: bool,
    now: Times,
    /// Why the answer cannot be passed on.
    unfit: Option<String>,
}

impl AnswerSink<'_> {
    /// Why an answer cannot be passed on as it is: it changes to a protocol that nobody asked
    /// for.
    fn unfit(&self, fields: &[u8]) -> Option<String> {
        if self.length != BodyLength::Upgraded {
            return None;
        }
        let all = |name: &'static [u8]| {
            let fields = wire::http1::fields(fields);
            let named = fields.filter(move |(found, _)| found.eq_ignore_ascii_case(name));
            named.map(|(_, value)| value)
        };
        let asked = self.exchange.request.part(self.exchange.seen.upgrade);
        let upgrades = all(b"Connection").any(|options| has_token(options, b"upgrade"));
        let given = all(b"Upgrade").next().filter(|_| upgrades);
        let given = given.unwrap_or_default();
        let agreed = self.exchange.upgrade() != Upgrade::None && given.eq_ignore_ascii_case(asked);
        (!agreed).then(|| {
            let (given, asked) = (malformed::quote(given), malformed::quote(asked));
            format!("backend tried to switch protocol {given} when {asked} was requested")
        })
    }

    fn is_chunked(&self) -> bool {
        matches!(
            self.promise,
            Some(Promise {
                body: ClientBody::Chunked,
                ..
            })
        )
    }
}

impl Sink for AnswerSink<'_> {
    fn interim(&mut self, status: u16, fields: &[u8]) {
        if self.head.minor() > 0 {
            self.pipeline.write_interim(status, fields, self.out);
        }
    }

    fn length(&mut self, length: BodyLength) {
        self.length = length;
    }

    fn head(&mut self, status: u16, fields: &[u8]) {
        self.unfit = self.unfit(fields);
        if self.unfit.is_some() {
            // The engine answers in its stead.
            return;
        }
        let progress = &mut self.exchange.progress;
        progress.attempt_finished = self.now.mono;
        progress.backend_status = status;
        progress.backend_length = match self.length {
            BodyLength::Exactly(length) => Some(length),
            _ => None,
        };
        let answer = Answer {
            status,
            fields,
            body: self.length,
        };
        *self.promise = Some(self.pipeline.write_answer(
            self.head,
            self.exchange,
            &answer,
            self.keep_alive,
            self.now,
            self.out,
        ));
    }

    fn body(&mut self, part: &[u8]) {
        if self.promise.is_none() {
            return;
        }
        self.exchange.progress.answer_body += part.len() as u64;
        if self.is_chunked() {
            write::chunk(part, self.out);
        } else {
            self.out.extend_from_slice(part);
        }
    }

    fn trailers(&mut self, fields: &[u8]) {
        if self.is_chunked() {
            self.trailers = true;
            self.out.extend_from_slice(b"0\r\n");
            self.pipeline
                .write_trailers(fields, self.exchange, self.out);
            self.out.extend_from_slice(b"\r\n");
        }
    }
}

/// How an answer fails to come.
pub(super) enum AnswerError {
    /// The backend ended the connection before it, or within it.
    Closed,
    /// The connection broke.
    Broken(StreamError),
    /// It is not HTTP, or cannot be passed on: what is wrong.
    Protocol(String),
}

impl ActiveRequest {
    /// Takes in bytes of the backend, once, and sends on what came of the answer.
    pub(super) fn take_answer(
        &mut self,
        resources: &mut ThreadResources<'_>,
    ) -> Result<Flow, AnswerError> {
        if !resources.client.took_all() {
            // The client takes what is there first; the poller tells again.
            return Ok(ONGOING);
        }
        let Some(connection) = &mut self.connection else {
            return Ok(ONGOING);
        };
        let most = resources
            .context
            .shared
            .settings
            .response_head_bytes
            .max(ROOM);
        match connection.receive(most, &mut resources.context.buffers) {
            Ok(Received::Bytes(_)) => self.pass_on(resources),
            Ok(Received::Nothing) => Ok(ONGOING),
            Ok(Received::End) => self.answer_ends(resources),
            Err(error) => {
                resources.context.note_memory(&error);
                Err(AnswerError::Broken(error))
            }
        }
    }

    fn pass_on(&mut self, resources: &mut ThreadResources<'_>) -> Result<Flow, AnswerError> {
        let keep_alive = self.keeps_client(resources.context);
        let Some(connection) = &mut self.connection else {
            return Ok(ONGOING);
        };
        let context = &mut *resources.context;
        let mut sink = AnswerSink {
            now: context.clock.times(),
            pipeline: &context.shared.pipeline,
            keep_alive,
            head: &self.head,
            exchange: &mut self.exchange,
            out: resources.client.outbox().write_buffer(&mut context.buffers),
            length: BodyLength::UntilClose,
            promise: &mut self.promise,
            trailers: false,
            unfit: None,
        };
        let scan = connection.scan(&mut sink);
        let unended = sink.is_chunked() && !sink.trailers;
        let unfit = sink.unfit.take();
        if !self.answered && self.promise.is_some() {
            self.answered = true;
            self.leave_endpoint();
        }
        if self.answered || !resources.client.took_all() {
            // The backend has heard of the request; nobody else has to tell to go on.
            self.continue_at = NEVER;
            self.deadline = self.attempt_ends;
        }
        if let Some(unfit) = unfit {
            return Err(AnswerError::Protocol(unfit));
        }
        let Some(connection) = &mut self.connection else {
            return Ok(ONGOING);
        };
        let scan = scan.map_err(|error| {
            let most = context.shared.settings.response_head_bytes;
            AnswerError::Protocol(malformed::text(error, connection.bytes(), most))
        })?;
        connection.consume(scan.consumed, &mut context.buffers);
        let Some(complete) = scan.complete else {
            return Ok(ONGOING);
        };
        if complete.upgraded {
            self.begin_tunnel(resources);
            return Ok(ONGOING);
        }
        Ok(self.finish(unended, complete.keep_alive, resources))
    }

    /// The backend sends no more.
    fn answer_ends(&mut self, resources: &mut ThreadResources<'_>) -> Result<Flow, AnswerError> {
        let Some(connection) = &mut self.connection else {
            return Ok(ONGOING);
        };
        if !connection.end() {
            // Half a head is no closing under an idle connection: the backend was at work.
            if connection.bytes().is_empty() {
                return Err(AnswerError::Closed);
            }
            let most = resources.context.shared.settings.response_head_bytes;
            let text = malformed::cut_short(connection.bytes(), most);
            return Err(AnswerError::Protocol(text));
        }
        let promised = self.promise.map(|promise| promise.body);
        let unended = matches!(promised, Some(ClientBody::Chunked));
        Ok(self.finish(unended, false, resources))
    }

    /// The backend's answer is whole, but for its end if it is `unended`. `reusable`: its
    /// connection may carry another one.
    fn finish(
        &mut self,
        unended: bool,
        reusable: bool,
        resources: &mut ThreadResources<'_>,
    ) -> Flow {
        let context = &mut *resources.context;
        if unended {
            let write_buffer = resources.client.outbox().write_buffer(&mut context.buffers);
            write_buffer.extend_from_slice(write::LAST_CHUNK);
        }
        self.exchange.progress.backend_finished = context.clock.now();
        let keep_alive = self.promise.is_some_and(|promise| promise.keep_alive);
        let whole = self.body_read && self.upstream.is_empty() && !self.upstream_broken;
        // A backend may take CONNECT for what it says: bytes behind it would be a tunnel's.
        let tunnels = self.head.method() == b"CONNECT";
        if let Some(connection) = self.connection.take() {
            if reusable && whole && !self.exchange.closes && !tunnels {
                resources.backends.keep(connection, context);
            } else {
                resources.backends.close(*connection, context);
            }
        }
        self.complete(keep_alive, resources)
    }

    /// Refuses the request.
    pub(super) fn refuse(&mut self, refusal: Refusal, resources: &mut ThreadResources<'_>) -> Flow {
        self.unlogged = !refusal.is_logged();
        self.refused = Some(refusal);
        let keep_alive = self.keeps_client(resources.context);
        let keep_alive = self.write_refusal(refusal, keep_alive, resources);
        self.complete(keep_alive, resources)
    }

    /// Whether the client's connection can go on behind an answer that begins now.
    fn keeps_client(&self, context: &Context) -> bool {
        // A client that waits for leave to send its body was not given it, or has not sent all:
        // whether the rest still comes, nobody knows.
        let waits = self.head.expects_continue() && !self.body_read;
        // Nor is it worth while to read much that nobody wants.
        let read = self.exchange.progress.request_body;
        let much = matches!(self.head.body(), RequestBody::Exactly(length)
            if length.saturating_sub(read) >= DISCARD as u64);
        context.keeps_connections() && self.head.keep_alive() && !waits && !much
    }

    /// Answers a health check of the router itself.
    pub(super) fn answer_health_check(&mut self, resources: &mut ThreadResources<'_>) -> Flow {
        let keep_alive = self.keeps_client(resources.context);
        let context = &mut *resources.context;
        let times = context.clock.times();
        let healthy = context.keeps_connections();
        let keep_alive = context.shared.pipeline.write_health(
            &self.head,
            &mut self.exchange,
            healthy,
            keep_alive,
            times,
            resources.client.outbox().write_buffer(&mut context.buffers),
        );
        self.complete(keep_alive, resources)
    }

    /// All of the answer is in the outbox. `keep_alive`: another request may follow.
    fn complete(&self, keep_alive: bool, resources: &mut ThreadResources<'_>) -> Flow {
        let (client, context) = (&mut resources.client, &mut *resources.context);
        client.answered(keep_alive, self.body_read, context);
        FINISHED
    }
}
