//! Connections that carry several exchanges at a time: HTTP/2, and gRPC over it.
//!
//! Each exchange has a place of its own, as if it had a connection; its session stands at
//! the carrier. Requests made while events are handled are sent together after them.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use lab_load::Protocol;
use lab_load::recording::{Phase, UNFIT};
use lab_load::request::{self, Composer, Visit, is_redirect};
use wire::clock;
use wire::http2::grpc::{self, GrpcError};
use wire::http2::{Answer, Carried, ClientSettings, Exchanges, Progress, StreamError, StreamKey};
use wire::poller::Poller;
use wire::stream::Stream;

use super::Setup;
use super::conversation::{Broken, CompleteResponse, Step};
use super::exchange::Exchange;
use super::pool::{Pool, Use};
use super::record::Record;

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
    queue: VecDeque<u32>,
    /// Free places that nobody is offered, because the target takes no more streams.
    parked: Vec<u32>,
    /// Whether it waits to be driven.
    unsent: bool,
}

impl Session {
    /// Begins one of so many exchanges at a time, of which the poller tells.
    pub(super) fn start(
        stream: Stream,
        streams: usize,
        poller: &Poller,
        token: u64,
    ) -> io::Result<Self> {
        let settings = ClientSettings {
            streams,
            early_streams: 0,
            ..ClientSettings::default()
        };
        let mut connection = Exchanges::start(stream, settings);
        connection.watch(poller, token)?;
        Ok(Self {
            connection,
            places: Vec::new(),
            queue: VecDeque::new(),
            parked: Vec::new(),
            unsent: false,
        })
    }

    /// Whether the target takes another stream. If it does not, a free place is kept until it
    /// does.
    pub(super) fn takes_or_park(&mut self, place: u32) -> bool {
        let takes = self.connection.can_send();
        if !takes {
            self.parked.push(place);
        }
        takes
    }

    /// Reads what the target sent on a session that has begun. Says whether it takes
    /// requests.
    pub(super) fn read_settings(&mut self) -> Step {
        loop {
            let driven = self.connection.drive(true);
            let progress = driven.map_err(|error| error.cause())?;
            if self.connection.can_send() || progress == Progress::Waiting {
                // What a connection begins with belongs to no request.
                self.connection.take_bytes();
                return Ok(self.connection.can_send());
            }
        }
    }

    /// The places whose requests the target has not taken.
    pub(super) fn into_queue(self) -> VecDeque<u32> {
        self.queue
    }

    /// Opens a stream for the request of a place; `None` when the values of its visit do not
    /// make one.
    fn open(&mut self, setup: &Setup, place: u32, exchange: &mut Exchange) -> Option<()> {
        let visit = exchange.visit.as_ref()?;
        let needs = setup.composer.needs(visit);
        exchange.kept.begin(needs.fields, needs.body);
        let target = &setup.workload.target;
        let grpc = target.protocol == Protocol::Grpc;
        let (head, body) = message(&setup.composer, visit, grpc, target.tls)?;
        let keep = match needs.body {
            true => KEPT,
            // What is in front of a message tells whether it is whole.
            false if grpc => grpc::PREFIX,
            false => 0,
        };
        let key = self.connection.send(head, body, keep).ok()?;
        let slot = key.slot();
        if self.places.len() <= slot {
            self.places.resize(slot + 1, None);
        }
        self.places[slot] = Some((key, place));
        exchange.stream = Some(key);
        Some(())
    }
}

/// What came of driving a connection, and when.
pub(super) struct Driven {
    pub(super) at: u64,
    /// Exchanges that have ended, well or not, by their places.
    pub(super) ended: Vec<(u32, Result<Answer, StreamError>)>,
    /// Whether the connection is of no further use.
    pub(super) closed: bool,
    /// What went over it.
    pub(super) bytes: Carried,
}

/// What the sessions of a thread have in common.
pub(super) struct Streams {
    setup: Arc<Setup>,
    /// Carriers whose sessions have something to send.
    unsent: Vec<u32>,
    /// When the first request was made that these have to send.
    asked: Option<u64>,
}

impl Streams {
    pub(super) fn new(setup: Arc<Setup>) -> Self {
        Self {
            setup,
            unsent: Vec::new(),
            asked: None,
        }
    }

    /// Opens a stream for the request of the visit at a place. Its bytes leave when the
    /// carrier is driven.
    pub(super) fn send_request(
        &mut self,
        pool: &mut Pool,
        record: &mut Record,
        place: u32,
    ) -> Step {
        let carrier = pool.carrier(place);
        let retired = self.retired(pool, carrier);
        let Some(mut session) = pool[carrier].session.take() else {
            return Ok(false);
        };
        // Otherwise the target allows fewer streams than asked for, or is going away.
        let takes = !retired && session.connection.can_send();
        let exchange = &mut pool[place].exchange;
        if let Some(visit) = &exchange.visit {
            exchange.kind = self.setup.composer.kind(visit);
        }
        let opened = takes.then(|| session.open(&self.setup, place, exchange));
        match opened {
            Some(Some(())) => self.mark(&mut session, carrier),
            Some(None) => {}
            None => session.queue.push_back(place),
        }
        pool[carrier].session = Some(session);
        let Some(()) = opened.flatten() else {
            pool.set_used(place, Use::Waiting);
            return if takes { Err(UNFIT) } else { Ok(false) };
        };
        pool.set_used(place, Use::Asked);
        pool[carrier].carried += 1;
        let reused = pool[carrier].carried > 1;
        let exchange = &mut pool[place].exchange;
        let now = clock::now();
        record.sending(exchange, now);
        // Its bytes are counted when they leave: its fields are packed for the connection.
        record.sent(exchange, 0, reused);
        self.asked.get_or_insert(now);
        Ok(true)
    }

    fn mark(&mut self, session: &mut Session, carrier: u32) {
        if !std::mem::replace(&mut session.unsent, true) {
            self.unsent.push(carrier);
        }
    }

    /// Whether a connection has carried all the requests that it may.
    fn retired(&self, pool: &Pool, carrier: u32) -> bool {
        let each = self.setup.workload.connections.requests_each;
        each.is_some_and(|each| pool[carrier].carried >= each)
    }

    /// Gives up the exchange at a place, if its connection still carries it.
    pub(super) fn cancel(&mut self, pool: &mut Pool, place: u32) {
        let carrier = pool.carrier(place);
        let key = pool[place].exchange.stream.take();
        let Some(session) = &mut pool[carrier].session else {
            return;
        };
        session.queue.retain(|queued| *queued != place);
        if let Some(key) = key {
            session.connection.cancel(key);
            self.mark(session, carrier);
        }
    }

    /// Takes a carrier that has something to send.
    #[inline]
    pub(super) fn take_unsent(&mut self) -> Option<u32> {
        self.unsent.pop()
    }

    /// All that was made since the last call was sent together.
    #[inline]
    pub(super) fn all_sent(&mut self, record: &mut Record) {
        if let Some(asked) = self.asked.take() {
            record.reaction.held(asked, clock::now(), BATCH);
        }
    }

    /// Sends what is to be sent on a connection, and takes what came in.
    pub(super) fn drive(&mut self, pool: &mut Pool, carrier: u32, readable: bool) -> Driven {
        let mut ended = Vec::new();
        let (connection, _, poller) = pool.watched(carrier);
        let Some(session) = &mut connection.session else {
            return Driven {
                at: clock::now(),
                ended,
                closed: false,
                bytes: Carried::default(),
            };
        };
        session.unsent = false;
        let driven = session.connection.drive(readable);
        let at = clock::now();
        for (key, result) in session.connection.finished() {
            let place = session.places.get_mut(key.slot()).and_then(Option::take);
            if let Some((_, place)) = place.filter(|(expected, _)| *expected == key) {
                ended.push((place, result));
            }
        }
        // Fails only for want of memory in the kernel; the next answer finds it again.
        let _ = session.connection.rewatch(poller);
        if matches!(driven, Ok(Progress::More)) {
            self.mark(session, carrier);
        }
        Driven {
            at,
            ended,
            closed: driven.is_err(),
            bytes: session.connection.take_bytes(),
        }
    }

    /// Takes an answer into its exchange, or says why it is not whole.
    pub(super) fn take(
        &self,
        exchange: &mut Exchange,
        answer: &Answer,
    ) -> Result<CompleteResponse, Broken> {
        let grpc = self.setup.workload.target.protocol == Protocol::Grpc;
        let fields = match exchange.kept.want_fields || (!grpc && is_redirect(answer.status)) {
            true => lines(answer),
            false => Vec::new(),
        };
        let (status, body, body_bytes) = match grpc {
            true => called(answer, exchange.kept.want_body)
                .map_err(|error| (Phase::Protocol, error.cause()))?,
            false => (answer.status, answer.body.as_slice(), answer.body_bytes),
        };
        exchange.kept.set(fields, body);
        Ok(CompleteResponse {
            status: Some(status),
            keep_alive: true,
            surplus: false,
            body_bytes,
        })
    }

    /// Takes a request of the queue that the target takes by now: its place.
    pub(super) fn take_queued(&self, pool: &mut Pool, carrier: u32) -> Option<u32> {
        // Each request that leaves the queue may be the last one that it carries.
        let retired = self.retired(pool, carrier);
        let session = pool[carrier].session.as_mut()?;
        let takes = !retired && !session.queue.is_empty() && session.connection.can_send();
        takes.then(|| session.queue.pop_front()).flatten()
    }

    /// A place that was kept while the target took no more streams, once it does. Those whose
    /// streams end are offered without this: it finds out when the target allows more.
    pub(super) fn take_parked(&self, pool: &mut Pool, place: u32) -> Option<u32> {
        let carrier = pool.carrier(place);
        let session = pool[carrier].session.as_mut()?;
        let takes = !session.parked.is_empty() && session.connection.can_send();
        takes.then(|| session.parked.pop()).flatten()
    }

    /// Whether a connection has carried all that it may, to the end; or all that the target
    /// takes, which may never close it.
    pub(super) fn is_spent(&self, pool: &mut Pool, carrier: u32) -> bool {
        let retired = self.retired(pool, carrier);
        let Some(session) = &mut pool[carrier].session else {
            return false;
        };
        (retired || session.connection.is_draining()) && session.connection.open_streams() == 0
    }

    /// Whether it is the target that takes no more on a connection, and not the load.
    pub(super) fn is_full(&self, pool: &mut Pool, place: u32) -> bool {
        let carrier = pool.carrier(place);
        let session = pool[carrier].session.as_mut();
        session.is_some_and(|session| !session.connection.can_send())
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

/// Status, message and its size of a call's answer; `look`: the message is looked at.
fn called(answer: &Answer, look: bool) -> Result<(u16, &[u8], u64), GrpcError> {
    let status = grpc::status(answer).code;
    // A call that went wrong has a status instead of a message.
    if status != 0 {
        let bytes = answer.body_bytes.saturating_sub(grpc::PREFIX as u64);
        return Ok((
            status,
            grpc::message(&answer.body).unwrap_or_default(),
            bytes,
        ));
    }
    let message = grpc::unary(answer)?;
    match message.compressed && look {
        true => Err(GrpcError::Compressed),
        false => Ok((status, message.start, message.length)),
    }
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
