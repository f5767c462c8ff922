//! The answer on its way back, and what remains to be done behind it.

use rustix::io::Errno;
use wire::clock;
use wire::http1::{BodyLength, Expect, RequestHead, Sink, write};
use wire::stream::{Received, StreamError};

use super::buffers::ROOM;
use super::malformed;
use super::session::{Phase, Session};
use super::worker::{RUNNING, Worker};
use crate::http::access_log;
use crate::http::pipeline::fields::has_token;
use crate::http::pipeline::retry::{self, Failure};
use crate::http::pipeline::{
    Answer, AnswerBody, ClientBody, Exchange, Pipeline, Promise, Refusal, Times, Upgrade,
};
use wire::deadlines::NEVER;

/// What the request lets its answer be. gorouter sends `CONNECT` on as any method.
pub(super) fn expectation(head: &RequestHead) -> Expect {
    match head.method() {
        b"HEAD" => Expect::NoBody,
        _ => Expect::Body,
    }
}

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
    /// for, or its body is in a coding that the next hop would not be told of.
    fn unfit(&self, fields: &[u8]) -> Option<String> {
        let all = |name: &'static [u8]| {
            let fields = wire::http1::fields(fields);
            let named = fields.filter(move |(found, _)| found.eq_ignore_ascii_case(name));
            named.map(|(_, value)| value)
        };
        match self.length {
            BodyLength::Exactly(_) => None,
            BodyLength::Chunked | BodyLength::UntilClose => all(b"Transfer-Encoding")
                .find(|coding| !coding.eq_ignore_ascii_case(b"chunked"))
                .map(|coding| {
                    let coding = malformed::told(coding);
                    format!("unsupported transfer encoding: {coding}")
                }),
            BodyLength::Upgraded => {
                let asked = self.exchange.request.part(self.exchange.seen.upgrade);
                let upgrades = all(b"Connection").any(|options| has_token(options, b"upgrade"));
                let given = all(b"Upgrade").next().filter(|_| upgrades);
                let given = given.unwrap_or_default();
                let agreed =
                    self.exchange.upgrade() != Upgrade::None && given.eq_ignore_ascii_case(asked);
                (!agreed).then(|| {
                    let (given, asked) = (malformed::told(given), malformed::told(asked));
                    format!("backend tried to switch protocol {given} when {asked} was requested")
                })
            }
        }
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
        let answer = Answer {
            status,
            reason: b"",
            fields,
            body: match self.length {
                BodyLength::Exactly(length) => AnswerBody::Exactly(length),
                BodyLength::Chunked => AnswerBody::Chunked,
                BodyLength::UntilClose | BodyLength::Upgraded => AnswerBody::UntilClose,
            },
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

impl Worker {
    /// Takes in bytes of the backend, once.
    pub(super) fn read_link(&mut self, session: &mut Session) {
        if !session.outbox.is_empty() {
            // The client takes what is there first; the poller tells again.
            return;
        }
        let most = self.shared.settings.response_head_bytes.max(ROOM);
        let Some(link) = session
            .flight
            .as_mut()
            .and_then(|flight| flight.link.as_mut())
        else {
            return;
        };
        let received = link
            .inbox
            .receive(&mut link.stream, most, &mut self.buffers);
        let more = link.stream.holds_bytes();
        match received {
            Ok(Received::Bytes(_)) => self.take_answer(session),
            Ok(Received::Nothing) => {}
            Ok(Received::End) => self.answer_ends(session),
            Err(StreamError::Socket(Errno::CONNRESET)) => self.fail(session, Failure::Reset),
            // In TLS 1.3 a server refuses the client's certificate only now.
            Err(error) => {
                self.note_memory(&error);
                self.fail_tls(session, &error, Failure::Closed);
            }
        }
        if more && session.flight.is_some() {
            self.look_again(session.key);
        }
    }

    /// Sends on what came of the answer.
    fn take_answer(&mut self, session: &mut Session) {
        let now = self.times();
        let running = self.state == RUNNING;
        let Some(flight) = &mut session.flight else {
            return;
        };
        let Some(link) = &mut flight.link else {
            return;
        };
        let mut sink = AnswerSink {
            pipeline: &self.shared.pipeline,
            keep_alive: running && flight.head.keep_alive(),
            head: &flight.head,
            exchange: &mut flight.exchange,
            out: session.outbox.sheet(&mut self.buffers),
            length: BodyLength::UntilClose,
            promise: &mut flight.promise,
            trailers: false,
            now,
            unfit: None,
        };
        let scan = link.scanner.scan(link.inbox.bytes(), &mut sink);
        let (chunked, trailers) = (sink.is_chunked(), sink.trailers);
        let unfit = sink.unfit.take();
        if !flight.answered && flight.promise.is_some() {
            flight.answered = true;
            if std::mem::take(&mut flight.counted)
                && let Some(endpoint) = &flight.endpoint
            {
                endpoint.state.end();
            }
        }
        if flight.answered || !session.outbox.is_empty() {
            // The backend has heard of the request; nobody else has to tell to go on.
            flight.continue_at = NEVER;
            session.deadline = flight.attempt_ends;
        }
        if let Some(unfit) = unfit {
            self.fail(session, Failure::Protocol(&unfit));
            return;
        }
        let scan = match scan {
            Ok(scan) => scan,
            Err(error) => {
                let most = self.shared.settings.response_head_bytes;
                let text = malformed::text(error, link.inbox.bytes(), most);
                self.fail(session, Failure::Protocol(&text));
                return;
            }
        };
        link.inbox.consume(scan.consumed, &mut self.buffers);
        let Some(complete) = scan.complete else {
            return;
        };
        if complete.upgraded {
            self.begin_tunnel(session);
            return;
        }
        if chunked && !trailers {
            let sheet = session.outbox.sheet(&mut self.buffers);
            sheet.extend_from_slice(write::LAST_CHUNK);
        }
        self.finish(session, complete.keep_alive);
    }

    /// The backend sends no more.
    fn answer_ends(&mut self, session: &mut Session) {
        let Some(flight) = &mut session.flight else {
            return;
        };
        let Some(link) = &mut flight.link else {
            return;
        };
        link.ended = true;
        if link.scanner.end(&mut ()).is_err() {
            // Half a head is no closing under an idle connection: the backend was at work.
            let text;
            let failure = if link.inbox.is_empty() {
                Failure::Closed
            } else {
                let most = self.shared.settings.response_head_bytes;
                text = malformed::cut_short(link.inbox.bytes(), most);
                Failure::Protocol(&text)
            };
            self.fail(session, failure);
            return;
        }
        if let Some(Promise {
            body: ClientBody::Chunked,
            ..
        }) = flight.promise
        {
            let sheet = session.outbox.sheet(&mut self.buffers);
            sheet.extend_from_slice(write::LAST_CHUNK);
        }
        self.finish(session, false);
    }

    /// The backend's answer is whole. `reusable`: its connection may carry another one.
    fn finish(&mut self, session: &mut Session, reusable: bool) {
        let Some(flight) = &mut session.flight else {
            return;
        };
        flight.exchange.progress.backend_finished = self.now;
        let keep_alive = flight.promise.is_some_and(|promise| promise.keep_alive);
        let whole = flight.body_read && flight.upstream.is_empty() && !flight.upstream_broken;
        let settings = &self.shared.settings.backends;
        let continued = flight.head.expects_continue() && !settings.keep_alive_after_continue;
        if let Some(link) = flight.link.take() {
            // A backend may take CONNECT for what it says: bytes behind it would be a tunnel's.
            let tunnels = flight.head.method() == b"CONNECT";
            if reusable && whole && !continued && !tunnels {
                self.keep_link(link);
            } else {
                self.close_link(*link);
            }
        }
        self.answer_is_whole(session, keep_alive);
    }

    /// All of the answer is in the outbox: the exchange is over.
    pub(super) fn answer_is_whole(&mut self, session: &mut Session, keep_alive: bool) {
        let body_read = session
            .flight
            .as_ref()
            .is_none_or(|flight| flight.body_read);
        let waits = session
            .flight
            .as_ref()
            .is_some_and(|flight| flight.head.expects_continue());
        self.drop_link(session);
        self.end_flight(session);
        // A stream carries one request.
        if !keep_alive || session.stream.socket().is_none() {
            self.close_after_answer(session);
        } else if body_read {
            self.next_begins(session);
        } else if waits && session.inbox.is_empty() {
            // Whether the body still comes, nobody knows.
            self.close_after_answer(session);
        } else {
            self.discard_rest(session);
        }
    }

    /// The answer has begun and cannot be finished: the client must notice.
    pub(super) fn cut_off(&mut self, session: &mut Session) {
        self.end_flight(session);
        // What was promised stays unfulfilled: to close is the only way to say so.
        self.flush(session);
        session.phase = Phase::Closed;
    }

    /// Notes that nobody waits for the answer any more, and says so to a client that may have
    /// ended only its own side. Whether there is something to send.
    pub(super) fn note_cancelled(&mut self, session: &mut Session) -> bool {
        let times = self.times();
        let Some(flight) = &mut session.flight else {
            return false;
        };
        if flight.answered {
            return false;
        }
        if flight.attempts > 0 {
            retry::note_cancelled(&mut flight.exchange);
            let progress = &mut flight.exchange.progress;
            progress.failed_attempts += 1;
            progress.failed_finished = times.mono;
            progress.backend_finished = times.mono;
        }
        self.shared.pipeline.write_refusal(
            &flight.head,
            &mut flight.exchange,
            Refusal::Cancelled,
            false,
            times,
            session.outbox.sheet(&mut self.buffers),
        );
        true
    }

    /// Counts and logs a request, and takes it off its connection.
    pub(super) fn end_flight(&mut self, session: &mut Session) {
        self.now = clock::now();
        let times = self.times();
        let Some(flight) = session.flight.take() else {
            return;
        };
        let counters = &self.counters;
        counters.active.decrement();
        let exchange = &flight.exchange;
        let status = exchange.status();
        let class = usize::from(status / 100);
        let class = if (1..=5).contains(&class) { class } else { 0 };
        if let Some(count) = counters.responses.get(class) {
            count.increment();
        }
        if flight.to_service
            && flight.answered
            && let Some(count) = counters.responses_of_route_services.get(class)
        {
            count.increment();
        }
        match status {
            400 | 404 if !flight.answered => counters.rejected.increment(),
            502 | 503 | 496 | 525 | 526 if !flight.answered && flight.attempts > 0 => {
                counters.bad_gateways.increment();
            }
            _ => {}
        }
        if exchange.upgrade() != Upgrade::None && status != 101 {
            counters.failed_upgrades.increment();
        }
        let took = times.mono.saturating_sub(exchange.started().mono);
        counters.latency.record(took);
        let progress = &exchange.progress;
        if progress.backend_started > 0 {
            let backend = progress
                .backend_finished
                .saturating_sub(progress.backend_started);
            counters.own_time.record(took.saturating_sub(backend));
        }
        if let Some(log) = &mut self.log
            && !flight.unlogged
        {
            access_log::write_line(
                &self.shared.pipeline,
                &flight.head,
                &session.client,
                exchange,
                times,
                log.line(times.mono),
            );
        }
        self.spare_flight(flight);
    }
}
