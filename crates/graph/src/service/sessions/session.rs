//! A caller's connection: reading requests, sending answers, ending.

use std::mem;

use traces::failure;
use wire::clock;
use wire::deadlines::NEVER;
use wire::http1::{RequestBody, RequestHead, RequestScanner};
use wire::poller::{Interest, Registration};
use wire::slab::Key;
use wire::stream::{Received, Stream};

use crate::Nanos;
use crate::service::bounds::{IDLE, LIMITS, MOST_BODY, PATIENCE};
use crate::service::context::{Context, Deferred};
use crate::service::message::{self, write_answer, write_refusal};
use crate::service::outbox::Outbox;
use crate::service::plan::REVISION;
use crate::service::recordings::GONE;
use crate::service::reply::Reply;
use crate::service::request_state::ActiveRequest;
use crate::service::token;

/// Bytes that may wait behind a request that is not answered yet; then nothing is read.
const MOST_AHEAD: usize = 64 * 1024;
/// Bytes that are still taken from a caller after a refusal, so that it can read that.
const LINGER_BYTES: usize = 256 * 1024;
/// How long those may take.
const LINGER: Nanos = 1_000_000_000;

/// See the module.
pub(super) struct Session {
    key: Key,
    /// Place of the instance in its thread.
    pub(super) instance: usize,
    stream: Stream,
    scanner: RequestScanner,
    /// Bytes that came and are not used yet.
    rest: Vec<u8>,
    outbox: Outbox,
    pub(super) phase: Phase,
    /// Reading waits until the answer is sent, since too much came ahead.
    paused: bool,
    pub(super) registration: Registration,
    /// It ends behind the answer at hand.
    last: bool,
    pub(super) deadline: Nanos,
    /// That of the request whose body comes.
    until: Nanos,
}

/// What a connection is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Before or in the head of a request.
    Head,
    /// In the body of this one; so many bytes came.
    Body(Key, u64),
    /// This one is in hand.
    Processing(Key),
    /// Its answer is being sent.
    Answering(Key),
    /// A refusal is being sent.
    Refusing,
    /// Nothing more is said; so many bytes are still taken.
    Lingering(usize),
    /// To be forgotten.
    Closed,
}

/// How far sending came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    /// Everything that waited.
    All,
    /// Not everything.
    Some,
    /// The connection is gone.
    Failed,
}

impl Session {
    pub(super) fn new(key: Key, instance: usize, stream: Stream, context: &Context) -> Self {
        Self {
            key,
            instance,
            stream,
            scanner: RequestScanner::new(LIMITS),
            rest: Vec::new(),
            outbox: Outbox::default(),
            phase: Phase::Head,
            paused: false,
            registration: Registration::added(key.token(token::SESSION), Interest::Read),
            last: false,
            deadline: context.after(IDLE),
            until: NEVER,
        }
    }

    /// Whether nothing of a request came.
    pub(super) fn is_idle(&self) -> bool {
        self.phase == Phase::Head && self.rest.is_empty()
    }

    /// A connection is of no more use, nor is the request on it.
    fn close(&mut self, cause: &'static str, context: &mut Context) {
        match self.phase {
            Phase::Body(request, _) => {
                if let Some(active) = context.active_requests.take(request) {
                    context.active_requests.forget(active);
                }
            }
            Phase::Processing(request) | Phase::Answering(request) => {
                context
                    .deferred
                    .push_back(Deferred::Abandon(request, cause));
            }
            _ => {}
        }
        self.phase = Phase::Closed;
    }

    /// Takes in what came, once.
    pub(super) fn read(&mut self, head: &mut RequestHead, context: &mut Context) {
        let mut room = mem::take(&mut context.room);
        match self.stream.receive(&mut room) {
            Ok(Received::Bytes(count)) => {
                let bytes = room.get(..count).unwrap_or_default();
                self.received(bytes, head, context);
            }
            Ok(Received::Nothing) => {}
            // A caller that ends its side has lost interest.
            Ok(Received::End) | Err(_) => self.close(GONE, context),
        }
        context.room = room;
    }

    fn received(&mut self, bytes: &[u8], head: &mut RequestHead, context: &mut Context) {
        match self.phase {
            Phase::Head | Phase::Body(..) if self.rest.is_empty() => {
                let used = self.advance(bytes, head, context);
                let rest = bytes.get(used..).unwrap_or_default();
                self.rest.extend_from_slice(rest);
            }
            Phase::Head | Phase::Body(..) => {
                self.rest.extend_from_slice(bytes);
                self.use_rest(head, context);
            }
            Phase::Processing(_) | Phase::Answering(_) => self.rest.extend_from_slice(bytes),
            Phase::Lingering(left) if left > bytes.len() => {
                self.phase = Phase::Lingering(left - bytes.len());
            }
            Phase::Lingering(_) => self.phase = Phase::Closed,
            Phase::Refusing | Phase::Closed => {}
        }
        if self.rest.len() > MOST_AHEAD
            && matches!(self.phase, Phase::Processing(_) | Phase::Answering(_))
        {
            self.paused = true;
            self.watch(context);
        }
    }

    /// Scans the bytes that wait.
    fn use_rest(&mut self, head: &mut RequestHead, context: &mut Context) {
        let mut rest = mem::take(&mut self.rest);
        let used = self.advance(&rest, head, context);
        rest.drain(..used);
        if rest.is_empty() {
            rest.shrink_to(MOST_AHEAD / 16);
        }
        self.rest = rest;
    }

    /// Scans bytes until a request is whole, and says how many it used.
    fn advance(&mut self, input: &[u8], head: &mut RequestHead, context: &mut Context) -> usize {
        let mut used = 0;
        loop {
            let rest = input.get(used..).unwrap_or_default();
            match self.phase {
                Phase::Head if rest.is_empty() => break,
                Phase::Head => {
                    let scanned = self.scanner.head(rest, head);
                    match scanned {
                        Ok(Some(length)) => {
                            used += length;
                            self.handle_head(head, context);
                        }
                        Ok(None) => self.deadline = self.deadline.min(context.after(PATIENCE)),
                        Err(error) => self.refuse(error.status(), context),
                    }
                    if matches!(scanned, Ok(None)) {
                        break;
                    }
                }
                Phase::Body(request, before) => match self.scanner.body(rest, &mut ()) {
                    Ok(scan) => {
                        used += scan.consumed;
                        let so_far = before + scan.consumed as u64;
                        if scan.ended {
                            self.phase = Phase::Processing(request);
                            self.deadline = self.until;
                            context.deferred.push_back(Deferred::Begin(request));
                        } else if so_far > MOST_BODY {
                            self.refuse(413, context);
                        } else {
                            self.phase = Phase::Body(request, so_far);
                            self.deadline = context.after(PATIENCE);
                            break;
                        }
                    }
                    Err(error) => self.refuse(error.status(), context),
                },
                _ => break,
            }
        }
        used
    }

    /// A head is there: what it says is taken over, and its body comes next.
    fn handle_head(&mut self, head: &RequestHead, context: &mut Context) {
        if head.is_http2_preface() {
            self.refuse(400, context);
            return;
        }
        let bodiless = match head.method() {
            b"GET" | b"POST" => false,
            b"HEAD" => true,
            _ => {
                self.refuse(405, context);
                return;
            }
        };
        if matches!(head.body(), RequestBody::Exactly(length) if length > MOST_BODY) {
            self.refuse(413, context);
            return;
        }
        let path = message::path(head.target());
        let revision = head.field(REVISION);
        let (instance, fields) = (self.instance, head.fields());
        let Some(mut active) = context.new_request(instance, revision, path, fields) else {
            self.refuse(503, context);
            return;
        };
        let state = &mut active.state;
        state.session = Some(self.key);
        state.bodiless = bodiless;
        state.keep_alive = head.keep_alive();
        state.old = head.minor() == 0;
        state.deadline = message::deadline(head.field(message::TIMEOUT), state.started);
        self.until = state.deadline;
        self.phase = Phase::Body(active.key, 0);
        self.deadline = context.after(PATIENCE);
        context.active_requests.put(active);
        if head.expects_continue() {
            let write_buffer = self.outbox.write_buffer();
            write_buffer.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
            if self.send(context) == Sent::Failed {
                self.close(GONE, context);
            }
        }
    }

    /// Answers what is no request that can be handled, and closes.
    fn refuse(&mut self, status: u16, context: &mut Context) {
        self.close("refused", context);
        self.phase = Phase::Refusing;
        self.deadline = context.after(PATIENCE);
        write_refusal(status, self.outbox.write_buffer());
        match self.send(context) {
            Sent::All => self.linger(context),
            Sent::Some => {}
            Sent::Failed => self.phase = Phase::Closed,
        }
    }

    /// A refusal is sent: what the caller still sends is taken for a moment, since closing
    /// before would take the refusal away from it.
    fn linger(&mut self, context: &mut Context) {
        self.rest = Vec::new();
        match self.stream.close_write() {
            Ok(_) => {
                self.phase = Phase::Lingering(LINGER_BYTES);
                self.deadline = context.after(LINGER);
            }
            Err(_) => self.phase = Phase::Closed,
        }
    }

    /// Sends what waits in the outbox, and begins or ends to watch for when more can be.
    fn send(&mut self, context: &mut Context) -> Sent {
        if self.outbox.send(&mut self.stream).is_err() {
            self.outbox.clear();
            return Sent::Failed;
        }
        let all = self.outbox.is_empty();
        self.watch(context);
        if all { Sent::All } else { Sent::Some }
    }

    /// Tells the poller what is wanted of a connection now.
    fn watch(&mut self, context: &mut Context) {
        let interest = Interest::of(!self.paused, !self.outbox.is_empty());
        let set = self
            .registration
            .set(&self.stream, Some(interest), &context.poller);
        if set.is_err() {
            self.close(GONE, context);
        }
    }

    pub(super) fn go_on_sending(&mut self, context: &mut Context) {
        self.deadline = context.after(PATIENCE);
        match (self.send(context), self.phase) {
            (Sent::Failed, _) => self.close(GONE, context),
            (Sent::All, Phase::Answering(request)) => {
                context.deferred.push_back(Deferred::Sent(request));
                self.answered(context);
            }
            (Sent::All, Phase::Refusing) => self.linger(context),
            _ => {}
        }
    }

    /// An answer is sent: the next request may come.
    fn answered(&mut self, context: &mut Context) {
        if self.last || context.instances.is_leaving(self.instance) {
            self.phase = Phase::Closed;
            return;
        }
        self.phase = Phase::Head;
        self.deadline = context.after(IDLE);
        if self.paused {
            self.paused = false;
            self.watch(context);
        }
        if !self.rest.is_empty() {
            context.deferred.push_back(Deferred::Resume(self.key));
        }
    }

    /// Looks at what came behind a request that is answered now.
    pub(super) fn resume(&mut self, head: &mut RequestHead, context: &mut Context) {
        if self.phase == Phase::Head {
            // It was looked at as soon as it could be.
            let woken = mem::replace(&mut context.woken, context.now);
            self.use_rest(head, context);
            context.woken = woken;
        }
    }

    /// Answers the request in hand.
    pub(super) fn answer(
        &mut self,
        active: &mut ActiveRequest,
        reply: Reply,
        context: &mut Context,
    ) {
        self.last = !active.state.keep_alive || context.instances.is_leaving(self.instance);
        write_answer(active, reply, !self.last, self.outbox.write_buffer());
        if !active.state.bodiless {
            let filler = reply.write(active, self.outbox.write_buffer());
            self.outbox.fill(filler);
        }
        context.now = clock::now();
        let sent = self.send(context);
        let recordings = &mut context.recordings;
        match sent {
            Sent::All => {
                recordings.conclude(active, reply.cause, context.now);
                self.answered(context);
            }
            Sent::Some => {
                self.phase = Phase::Answering(active.key);
                self.deadline = context.after(PATIENCE);
            }
            Sent::Failed => {
                recordings.conclude(active, GONE, context.now);
                self.phase = Phase::Closed;
            }
        }
    }

    /// Its time is over, or that of its request.
    pub(super) fn expired(&mut self, context: &mut Context) {
        self.deadline = NEVER;
        match self.phase {
            Phase::Processing(request) => context.deferred.push_back(Deferred::Expired(request)),
            _ => self.close(failure::TIMEOUT, context),
        }
    }
}
