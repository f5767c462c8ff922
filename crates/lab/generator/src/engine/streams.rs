//! Connections that carry several exchanges at a time: HTTP/2, and gRPC over it.
//!
//! Each exchange has a place of its own, as if it had a connection; the places of one
//! connection follow each other, and its session stands at the first. Requests made
//! while events are handled are sent together after them.

use std::collections::VecDeque;

use bytes::Bytes;
use lab_load::Protocol;
use lab_load::recording::Phase;
use lab_load::request::{self, Composer, Visit, is_redirect};
use wire::clock;
use wire::http2::{Answer, ClientSettings, Exchanges, Progress, StreamError, StreamKey, grpc};
use wire::stream::Stream;

use super::Engine;
use super::asking::Delay;
use super::connection::{Link, Use};
use super::opening::{GONE, unwatched};
use super::talk::Whole;

/// Bytes of an answer that are kept when its body is looked at.
const KEPT: usize = request::Answer::KEPT + grpc::PREFIX;

/// Bytes that requests made together may have to be encrypted and copied: a hundred thousand
/// are a millisecond's work.
const BATCH: usize = 100_000;

/// What stands for a connection with several exchanges.
pub(super) struct Session {
    connection: Exchanges,
    /// Which place each stream's answer belongs to.
    places: Vec<Option<(StreamKey, u32)>>,
    /// Places whose requests the target does not take yet.
    queue: VecDeque<(u32, Delay)>,
    /// Whether it waits to be driven.
    unsent: bool,
}

impl Engine {
    /// Whether connections carry several exchanges.
    pub(super) fn multiplexed(&self) -> bool {
        let protocol = self.setup.workload.target.protocol;
        matches!(protocol, Protocol::Http2 | Protocol::Grpc)
    }

    /// Begins to speak HTTP/2 over a connection that is made. It is open once the
    /// target's settings are there: a target that speaks something else is found out
    /// before it has requests.
    pub(super) fn begin_session(&mut self, carrier: u32) -> Result<(), &'static str> {
        let connection = &mut self.connections[carrier as usize];
        let token = connection.token(carrier);
        let stream = connection.stream.take().ok_or(GONE)?;
        let tls = matches!(stream, Stream::Tls(_));
        if tls && stream.protocol() != Some(b"h2") {
            return Err("no common protocol");
        }
        self.poller.remove(&stream).map_err(unwatched)?;
        connection.link = Link::Upgrading;
        let settings = ClientSettings {
            streams: self.streams as usize,
            early_streams: 0,
            ..ClientSettings::default()
        };
        let mut exchanges = Exchanges::start(stream, settings);
        exchanges.watch(&self.poller, token).map_err(unwatched)?;
        connection.session = Some(Box::new(Session {
            connection: exchanges,
            places: Vec::new(),
            queue: VecDeque::new(),
            unsent: false,
        }));
        Ok(())
    }

    /// Reads what the target sent on a session that has begun. Says whether it takes
    /// requests.
    pub(super) fn read_settings(&mut self, carrier: u32) -> Result<bool, &'static str> {
        let session = self.connection(carrier).session.as_mut().ok_or(GONE)?;
        loop {
            let driven = session.connection.drive(true);
            let progress = driven.map_err(|error| error.cause())?;
            if session.connection.can_send() || progress == Progress::Waiting {
                return Ok(session.connection.can_send());
            }
        }
    }

    /// Opens a stream for the request of the visit at a place. Its bytes leave with
    /// [`Engine::send_streams`].
    pub(super) fn ask_stream(&mut self, place: u32, delay: Delay) {
        let carrier = self.carrier(place);
        let retired = self.retired(carrier);
        let (first, rest) = self.connections.split_at_mut(carrier as usize + 1);
        let Some(head) = first.last_mut() else { return };
        let Some(session) = head.session.as_mut() else {
            return;
        };
        let exchange = match place - carrier {
            0 => &mut head.exchange,
            other => &mut rest[other as usize - 1].exchange,
        };
        let Some(visit) = &exchange.visit else { return };
        let setup = &self.setup;
        exchange.kind = setup.composer.kind(visit);
        if retired || !session.connection.can_send() {
            // The target allows fewer streams than asked for, or is going away.
            exchange.used = Use::Waiting;
            self.waiting += 1;
            session.queue.push_back((place, delay));
            return;
        }
        let target = &setup.workload.target;
        let needs = setup.composer.needs(visit);
        exchange.kept.begin(needs.fields, needs.body);
        let grpc = target.protocol == Protocol::Grpc;
        let sent = message(&setup.composer, visit, grpc, target.tls).and_then(|(head, body)| {
            let keep = if needs.body { KEPT } else { 0 };
            let bytes = body.len() + head.uri().path().len();
            let key = session.connection.send(head, body, keep).ok()?;
            Some((key, bytes))
        });
        let Some((key, bytes)) = sent else {
            exchange.used = Use::Waiting;
            self.waiting += 1;
            return self.fail(place, Phase::Write, "no request", clock::now());
        };
        let slot = key.slot();
        if session.places.len() <= slot {
            session.places.resize(slot + 1, None);
        }
        session.places[slot] = Some((key, place));
        exchange.stream = Some(key);
        exchange.used = Use::Asked;
        let now = clock::now();
        exchange.sent = now;
        if self.users && !exchange.counted {
            exchange.intended = now;
        }
        head.carried += 1;
        self.tally.sent(now);
        let until = now.saturating_add(self.answer_within);
        self.answer_by.set(place, until);
        self.tally.count(exchange, delay, bytes, &mut self.reaction);
        self.tally.span.connections.reused += u64::from(head.carried > 1);
        if !std::mem::replace(&mut session.unsent, true) {
            self.unsent_streams.push(carrier);
        }
        self.asked.get_or_insert(now);
    }

    /// Whether a connection has carried all the requests that it may.
    fn retired(&self, carrier: u32) -> bool {
        let each = self.setup.workload.connections.requests_each;
        each.is_some_and(|each| self.connections[carrier as usize].carried >= each)
    }

    /// Gives up the exchange at a place, if its connection still carries it.
    pub(super) fn cancel_stream(&mut self, place: u32) {
        let carrier = self.carrier(place);
        let key = self.connection(place).exchange.stream.take();
        let Some(session) = &mut self.connection(carrier).session else {
            return;
        };
        session.queue.retain(|(queued, _)| *queued != place);
        let Some(key) = key else { return };
        session.connection.cancel(key);
        if !std::mem::replace(&mut session.unsent, true) {
            self.unsent_streams.push(carrier);
        }
    }

    /// Sends the requests that were made since the last call.
    #[inline]
    pub(super) fn send_streams(&mut self) {
        while let Some(carrier) = self.unsent_streams.pop() {
            self.drive(carrier, false);
        }
        if let Some(asked) = self.asked.take() {
            // All that was made since is sent together.
            self.reaction.held(asked, clock::now(), BATCH);
        }
    }

    /// Takes what came in on a connection, and says when.
    pub(super) fn take_streams(&mut self, carrier: u32) -> u64 {
        self.drive(carrier, true)
    }

    fn drive(&mut self, carrier: u32, readable: bool) -> u64 {
        let connection = &mut self.connections[carrier as usize];
        let Some(session) = &mut connection.session else {
            return clock::now();
        };
        session.unsent = false;
        let driven = session.connection.drive(readable);
        let now = clock::now();
        let finished: Vec<_> = session.connection.finished().collect();
        let mut ended = Vec::new();
        for (key, result) in finished {
            let place = session.places.get_mut(key.slot()).and_then(Option::take);
            if let Some((_, place)) = place.filter(|(expected, _)| *expected == key) {
                ended.push((place, result));
            }
        }
        // Fails only for want of memory in the kernel; the next answer finds it again.
        let _ = session.connection.rewatch(&self.poller);
        let more = matches!(driven, Ok(Progress::More));
        if more && !std::mem::replace(&mut session.unsent, true) {
            self.unsent_streams.push(carrier);
        }
        for (place, result) in ended {
            self.end_stream(place, result, now);
        }
        match driven {
            Ok(_) => self.ask_queued(carrier, now),
            Err(_) => {
                self.tally.span.connections.closed += 1;
                self.shut_session(carrier, now);
            }
        }
        now
    }

    /// Closes a connection with several exchanges. Requests that it did not take yet
    /// have another one opened.
    fn shut_session(&mut self, carrier: u32, now: u64) {
        let queue = match self.connection(carrier).session.take() {
            Some(session) => session.queue,
            None => return,
        };
        self.open -= self.streams;
        let used = self.connection(carrier).carried > 0;
        for member in self.members(carrier) {
            self.connection(member).close();
        }
        for (place, _) in queue {
            self.waiting -= 1;
            self.ask_or_open(place, now);
        }
        for member in self.members(carrier) {
            let connection = self.connection(member);
            if connection.link == Link::Closed && connection.exchange.used == Use::Free {
                self.replace(member, used, now);
            }
        }
    }

    /// An exchange has ended, well or not.
    fn end_stream(&mut self, place: u32, result: Result<Answer, StreamError>, now: u64) {
        let exchange = &mut self.connections[place as usize].exchange;
        if exchange.used != Use::Asked {
            return;
        }
        exchange.stream = None;
        match result {
            Ok(answer) => {
                let grpc = self.setup.workload.target.protocol == Protocol::Grpc;
                let kind = self.tally.kind(exchange.kind);
                kind.bytes_received += answer.body_bytes;
                let fields =
                    match exchange.kept.want_fields || (!grpc && is_redirect(answer.status)) {
                        true => lines(&answer),
                        false => Vec::new(),
                    };
                let (status, body, body_bytes) = match grpc {
                    true => {
                        let message = grpc::message(&answer.body).unwrap_or_default();
                        let framing = grpc::PREFIX as u64;
                        let bytes = answer.body_bytes.saturating_sub(framing);
                        (grpc::status(&answer).code, message, bytes)
                    }
                    false => (answer.status, answer.body.as_slice(), answer.body_bytes),
                };
                exchange.kept.set(fields, body);
                let whole = Whole {
                    status: Some(status),
                    keep_alive: true,
                    body_bytes,
                };
                self.answered(place, whole, now);
            }
            // The target did nothing with it, so it can be asked again.
            Err(StreamError::Refused) if !exchange.again => {
                exchange.again = true;
                self.tally.retried(exchange, now);
                self.answer_by.clear(place);
                self.ask_or_open(place, now);
            }
            Err(error) => {
                let phase = match error.is_protocol() {
                    true => Phase::Protocol,
                    false => Phase::Read,
                };
                self.fail(place, phase, error.cause(), now);
            }
        }
    }

    /// Asks what the target did not take before, as far as it does now.
    fn ask_queued(&mut self, carrier: u32, now: u64) {
        loop {
            // Each request that leaves the queue may be the last one that it carries.
            let retired = self.retired(carrier);
            let Some(session) = &mut self.connection(carrier).session else {
                return;
            };
            if retired {
                if session.connection.open_streams() == 0 {
                    self.shut_session(carrier, now);
                }
                return;
            }
            if session.queue.is_empty() || !session.connection.can_send() {
                return;
            }
            if let Some((place, delay)) = session.queue.pop_front() {
                self.waiting -= 1;
                self.ask(place, delay);
            }
        }
    }
}

/// A request's head and body as HTTP/2 takes them; `None` when the visit's values do
/// not make one.
fn message(
    composer: &Composer,
    visit: &Visit,
    grpc: bool,
    tls: bool,
) -> Option<(http::Request<()>, Bytes)> {
    let parts = composer.parts(visit).ok()?;
    let (mut head, body) = if grpc {
        let head = grpc::request(tls, &parts.authority, &parts.path).ok()?;
        (head, grpc::frame(&parts.body).ok()?)
    } else {
        let scheme = if tls { "https" } else { "http" };
        let uri = format!("{scheme}://{}{}", parts.authority, parts.path);
        let head = http::Request::builder().method(parts.method).uri(uri);
        let body = Bytes::copy_from_slice(&parts.body);
        (head.body(()).ok()?, body)
    };
    for (name, value) in &parts.headers {
        let name = http::HeaderName::from_bytes(name.as_bytes()).ok()?;
        let value = http::HeaderValue::from_str(value).ok()?;
        head.headers_mut().append(name, value);
    }
    Some((head, body))
}

/// An answer's fields as lines.
fn lines(answer: &Answer) -> Vec<u8> {
    let trailers = answer.trailers.iter().flat_map(http::HeaderMap::iter);
    let mut lines = Vec::new();
    let fields = answer.headers.iter().chain(trailers);
    for (name, value) in fields {
        lines.extend_from_slice(name.as_str().as_bytes());
        lines.extend_from_slice(b": ");
        lines.extend_from_slice(value.as_bytes());
        lines.extend_from_slice(b"\r\n");
    }
    lines
}
