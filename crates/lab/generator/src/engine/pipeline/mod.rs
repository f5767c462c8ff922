//! Connections on which answers come in the order of requests: those of Redis and PostgreSQL.
//!
//! As with streams, each exchange has a place of its own, and what belongs to the connection
//! stands at the carrier. Requests made while events are handled are sent together after them,
//! which is what makes a pipeline of several cheap. Each has its own latency all the same: from
//! the moment when it was made, to that when the bytes with its answer's end were read.

use std::collections::VecDeque;
use std::sync::Arc;

use lab_load::recording::{Phase, UNFIT};
use lab_load::request::redis_command;
use lab_load::{Login, Protocol, Target};
use wire::clock;
use wire::poller::{Interest, Poller};
use wire::resp::{ReplyScan, ReplyScanner, ReplySink};
use wire::stream::{Received, Stream};

use super::conversation::{Broken, CompleteResponse, ResponseCapture, Step};
use super::pool::{Pool, Use};
use super::postgres::{LOGIN_REFUSED, Postgres};
use super::record::Record;
use super::{BUFFER, Multiplexing, Setup};

/// Why a request fails whose connection was closed because an earlier one had no answer in time:
/// answers come in order, so its own would not come either.
pub(super) const BEHIND: &str = "behind a time-out";
/// Why a connection is closed that says what nobody asked for.
const UNASKED: Broken = (Phase::Protocol, "unasked reply");
/// Why a connection is closed by the target.
const CLOSED: Broken = (Phase::Read, "closed early");
/// Bytes that requests made together may have to be encrypted and copied: a hundred thousand
/// are a millisecond's work.
const BATCH: usize = 100_000;
/// Memory that a connection keeps for what it sends next.
const USUAL: usize = 64 * 1024;

/// One connection.
pub(super) struct Pipeline {
    stream: Stream,
    conversation: PipelineConversation,
    /// Places whose answers are to come, in their order.
    asked: VecDeque<u32>,
    /// Places whose requests wait for another connection: this one has carried all it may.
    queue: VecDeque<u32>,
    /// What is to be sent, and how much of it was.
    output: Vec<u8>,
    sent: usize,
    /// Whether it waits to be driven.
    unsent: bool,
    /// Whether it is about to be closed.
    broken: bool,
}

/// What is spoken.
enum PipelineConversation {
    /// RESP.
    Redis {
        scanner: Box<ReplyScanner>,
        /// Replies to the login that are still to come.
        login: usize,
    },
    Postgres(Box<Postgres>),
}

impl PipelineConversation {
    /// Takes what came in during the login; what it is answered with is appended to `out`. Says
    /// whether the login is done.
    fn log_in(&mut self, input: &[u8], out: &mut Vec<u8>) -> Step {
        let (scanner, login) = match self {
            Self::Postgres(conversation) => return conversation.log_in(input, out),
            Self::Redis { scanner, login } => (scanner, login),
        };
        let mut rest = input;
        while !rest.is_empty() {
            let scan = scanner.scan(rest, &mut DiscardReply);
            let scan = scan.map_err(|error| error.cause())?;
            rest = &rest[scan.consumed..];
            match scan.complete.map(|reply| reply.error) {
                Some(_) if *login == 0 => return Err(UNASKED.1),
                Some(Some(code)) if code.as_str() == "LOADING" => return Err("loading"),
                Some(Some(_)) => return Err(LOGIN_REFUSED),
                Some(None) => *login -= 1,
                None => {}
            }
        }
        Ok(*login == 0)
    }

    /// Takes what came in. Says how many bytes were used, and gives an answer that is whole.
    fn take(
        &mut self,
        input: &[u8],
        kept: Option<&mut ResponseCapture>,
    ) -> Result<(usize, Option<CompleteResponse>), &'static str> {
        match self {
            Self::Redis { scanner, .. } => {
                let scan = match kept {
                    Some(kept) => {
                        let scan = scanner.scan(input, kept);
                        if let Ok(ReplyScan {
                            complete: Some(reply),
                            ..
                        }) = &scan
                        {
                            (kept.code, kept.rows) = (reply.error, reply.elements);
                        }
                        scan
                    }
                    None => scanner.scan(input, &mut DiscardReply),
                };
                let scan = scan.map_err(|error| error.cause())?;
                let whole = scan
                    .complete
                    .map(|reply| CompleteResponse::of(reply.bytes, true));
                Ok((scan.consumed, whole))
            }
            Self::Postgres(conversation) => {
                let whole = conversation.take(input, kept)?;
                let whole =
                    whole.map(|answered| CompleteResponse::of(answered.bytes, answered.idle));
                Ok((input.len(), whole))
            }
        }
    }
}

impl Pipeline {
    /// Begins to speak on a connection, of so many kinds of requests.
    pub(super) fn start(stream: Stream, target: &Target, kinds: usize) -> Self {
        let mut output = Vec::new();
        let conversation = match target.protocol {
            Protocol::Postgres => {
                let conversation = Postgres::start(&target.login, kinds, &mut output);
                PipelineConversation::Postgres(Box::new(conversation))
            }
            _ => PipelineConversation::Redis {
                scanner: Box::default(),
                login: log_in(&target.login, &mut output),
            },
        };
        Self {
            stream,
            conversation,
            asked: VecDeque::new(),
            queue: VecDeque::new(),
            output,
            sent: 0,
            unsent: false,
            broken: false,
        }
    }

    /// Goes on with the login, and says whether the connection can carry requests.
    pub(super) fn log_in(&mut self) -> Step {
        let mut piece = [0; 1024];
        let mut length = 0;
        loop {
            let done = self
                .conversation
                .log_in(&piece[..length], &mut self.output)?;
            self.send().map_err(|(_, cause)| cause)?;
            if done {
                return Ok(true);
            }
            let received = self.stream.receive(&mut piece);
            length = match received.map_err(|error| error.cause())? {
                Received::Bytes(received) => received,
                Received::Nothing => return Ok(false),
                Received::End => return Err(CLOSED.1),
            };
        }
    }

    /// Whether it is about to be closed, and a request may as well go over another: of a
    /// transaction the rest may not.
    fn is_left(&self) -> bool {
        self.broken && matches!(self.conversation, PipelineConversation::Redis { .. })
    }

    /// What the poller is to tell of it.
    fn interest(&self) -> Interest {
        let writing = self.sent < self.output.len() || self.stream.wants_write();
        Interest::of(true, writing)
    }

    /// Sends what there is, as far as the kernel takes it.
    fn send(&mut self) -> Result<(), Broken> {
        let sent = match self.sent == self.output.len() {
            true => self.stream.flush().map(|()| 0),
            false => self.stream.send(&self.output[self.sent..]),
        };
        self.sent += sent.map_err(|error| (Phase::Write, error.cause()))?;
        if self.sent == self.output.len() {
            self.sent = 0;
            self.output.clear();
            if self.output.capacity() > USUAL {
                self.output = Vec::new();
            }
        }
        Ok(())
    }

    /// The places that it leaves behind when it is closed: those whose answers will not come,
    /// and those that were not sent.
    pub(super) fn into_places(self) -> (VecDeque<u32>, VecDeque<u32>) {
        (self.asked, self.queue)
    }
}

/// Appends the commands that a connection begins with, and says how many.
fn log_in(login: &Login, out: &mut Vec<u8>) -> usize {
    let Login {
        user,
        password,
        database,
    } = login;
    let mut commands = 0;
    if !password.is_empty() || !user.is_empty() {
        match user.as_str() {
            "" => redis_command(&["AUTH", password], out),
            user => redis_command(&["AUTH", user, password], out),
        }
        commands += 1;
    }
    if !database.is_empty() && database != "0" {
        redis_command(&["SELECT", database], out);
        commands += 1;
    }
    commands
}

/// Replies of which nothing is kept.
struct DiscardReply;

impl ReplySink for DiscardReply {
    fn part(&mut self, _: &[u8]) {}
    fn next_value(&mut self) {}
}

/// The values of a reply, a line each.
impl ReplySink for ResponseCapture {
    fn part(&mut self, bytes: &[u8]) {
        wire::http1::Sink::body(self, bytes);
    }

    fn next_value(&mut self) {
        wire::http1::Sink::body(self, b"\n");
    }
}

/// What came of driving a connection.
pub(super) struct Pumped {
    /// When.
    pub(super) at: u64,
    /// Why it is of no further use, if it is.
    pub(super) broken: Option<Broken>,
}

/// What the pipelines of a thread have in common.
pub(super) struct Pipelines {
    setup: Arc<Setup>,
    buffer: Vec<u8>,
    /// Carriers that have something to send.
    unsent: Vec<u32>,
    /// When the first request was made that these have to send.
    asked: Option<u64>,
    /// Answers of the last drive, with their places.
    pub(super) answered: Vec<(u32, CompleteResponse)>,
}

impl Pipelines {
    pub(super) fn new(setup: Arc<Setup>) -> Self {
        let speaks = setup.multiplexing() == Multiplexing::Pipeline;
        Self {
            setup,
            buffer: vec![0; if speaks { BUFFER } else { 0 }],
            unsent: Vec::new(),
            asked: None,
            answered: Vec::new(),
        }
    }

    /// Makes the request of the visit at a place. Its bytes leave when the carrier is driven.
    pub(super) fn send_request(
        &mut self,
        pool: &mut Pool,
        record: &mut Record,
        place: u32,
    ) -> Step {
        let carrier = pool.carrier(place);
        let retired = self.retired(pool, carrier);
        let Some(mut pipeline) = pool[carrier].pipeline.take() else {
            return Ok(false);
        };
        let made = match retired || pipeline.is_left() {
            true => {
                pipeline.queue.push_back(place);
                Ok(None)
            }
            false => self.make(&mut pipeline, pool, place).map(Some),
        };
        if matches!(made, Ok(Some(_))) && !std::mem::replace(&mut pipeline.unsent, true) {
            self.unsent.push(carrier);
        }
        pool[carrier].pipeline = Some(pipeline);
        let Ok(Some(bytes)) = made else {
            pool.set_used(place, Use::Waiting);
            return made.map(|_| false);
        };
        pool.set_used(place, Use::Asked);
        pool[carrier].carried += 1;
        let reused = pool[carrier].carried > 1;
        let exchange = &mut pool[place].exchange;
        let now = clock::now();
        record.sending(exchange, now);
        record.sent(exchange, bytes, reused);
        self.asked.get_or_insert(now);
        Ok(true)
    }

    /// Appends the request of a place to what is to be sent, and says how many bytes it has.
    fn make(
        &self,
        pipeline: &mut Pipeline,
        pool: &mut Pool,
        place: u32,
    ) -> Result<usize, &'static str> {
        let composer = &self.setup.composer;
        let exchange = &mut pool[place].exchange;
        let visit = exchange.visit.as_ref().ok_or(UNFIT)?;
        exchange.kind = composer.kind(visit);
        let needs = composer.needs(visit);
        exchange.kept.begin(false, needs.body);
        let before = pipeline.output.len();
        match (&mut pipeline.conversation, composer.statement(visit)) {
            (PipelineConversation::Postgres(conversation), Some(bound)) => {
                let asked =
                    conversation.write_statement(exchange.kind, bound, &mut pipeline.output);
                asked.map_err(|()| UNFIT)?;
            }
            _ => {
                let written = composer.write(visit, &mut pipeline.output);
                written.map_err(|_| UNFIT)?;
            }
        }
        pipeline.asked.push_back(place);
        Ok(pipeline.output.len() - before)
    }

    /// Whether a connection has carried all the requests that it may.
    fn retired(&self, pool: &Pool, carrier: u32) -> bool {
        let each = self.setup.workload.connections.requests_each;
        each.is_some_and(|each| pool[carrier].carried >= each)
    }

    /// Whether a connection has carried all that it may, to the end.
    pub(super) fn is_spent(&self, pool: &Pool, carrier: u32) -> bool {
        let pipeline = pool[carrier].pipeline.as_ref();
        self.retired(pool, carrier) && pipeline.is_some_and(|pipeline| pipeline.asked.is_empty())
    }

    /// Forgets a place. Says whether its answer was awaited: the connection is of no further use
    /// then.
    pub(super) fn forget(&self, pool: &mut Pool, place: u32) -> bool {
        let carrier = pool.carrier(place);
        let Some(pipeline) = &mut pool[carrier].pipeline else {
            return false;
        };
        pipeline.queue.retain(|queued| *queued != place);
        let before = pipeline.asked.len();
        pipeline.asked.retain(|asked| *asked != place);
        pipeline.asked.len() < before
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

    /// Sends what is to be sent on a connection, and takes what came in: whole answers are in
    /// [`Pipelines::answered`] afterwards.
    pub(super) fn drive(
        &mut self,
        pool: &mut Pool,
        record: &mut Record,
        carrier: u32,
        readable: bool,
    ) -> Pumped {
        self.answered.clear();
        let Some(mut pipeline) = pool[carrier].pipeline.take() else {
            let (at, broken) = (clock::now(), None);
            return Pumped { at, broken };
        };
        pipeline.unsent = false;
        let sent = pipeline.send();
        let (at, received) = match readable || sent.is_err() {
            // A target may answer and hang up: its answers count, though no more can be sent.
            true => self.receive(&mut pipeline, pool, record),
            false => (clock::now(), Ok(())),
        };
        let broken = sent.and(received).err();
        pipeline.broken = broken.is_some();
        // Fails only for want of memory in the kernel; the next answer finds it again.
        let _ = watch(pool, carrier, &pipeline);
        pool[carrier].pipeline = Some(pipeline);
        Pumped { at, broken }
    }

    /// Takes what came in.
    fn receive(
        &mut self,
        pipeline: &mut Pipeline,
        pool: &mut Pool,
        record: &mut Record,
    ) -> (u64, Result<(), Broken>) {
        loop {
            let received = pipeline.stream.receive(&mut self.buffer);
            let now = clock::now();
            let length = match received {
                Ok(Received::Bytes(length)) => length,
                Ok(Received::Nothing) => return (now, Ok(())),
                Ok(Received::End) => return (now, Err(CLOSED)),
                Err(error) => return (now, Err((Phase::Read, error.cause()))),
            };
            if let Err(broken) = self.scan(pipeline, pool, record, length) {
                return (now, Err(broken));
            }
            // What else there is will be told again, unless TLS holds it.
            if length < BUFFER && !pipeline.stream.holds_bytes() {
                return (now, Ok(()));
            }
        }
    }

    /// Looks at so many bytes that came in.
    fn scan(
        &mut self,
        pipeline: &mut Pipeline,
        pool: &mut Pool,
        record: &mut Record,
        length: usize,
    ) -> Result<(), Broken> {
        let mut rest = &self.buffer[..length];
        while !rest.is_empty() {
            let place = pipeline.asked.front().copied();
            let kept = place.map(|place| &mut pool[place].exchange.kept);
            let taken = pipeline.conversation.take(rest, kept);
            let (used, whole) = taken.map_err(|cause| (Phase::Protocol, cause))?;
            rest = &rest[used..];
            let Some(place) = place else {
                match whole {
                    Some(_) => return Err(UNASKED),
                    None => continue,
                }
            };
            let kind = pool[place].exchange.kind;
            record.tally.kind(kind).bytes_received += used as u64;
            if let Some(whole) = whole {
                pipeline.asked.pop_front();
                self.answered.push((place, whole));
            }
        }
        Ok(())
    }
}

/// Has the poller tell what a connection needs to know.
pub(super) fn watch(pool: &mut Pool, carrier: u32, pipeline: &Pipeline) -> std::io::Result<()> {
    let (connection, _, poller): (_, _, &Poller) = pool.watched(carrier);
    let interest = Some(pipeline.interest());
    connection
        .registration
        .set(&pipeline.stream, interest, poller)
}

#[cfg(test)]
mod tests;
