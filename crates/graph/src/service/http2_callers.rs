//! Callers' connections: HTTP/2 and gRPC, each stream of which is a request.

use std::mem;

use http::HeaderValue;
use wire::deadlines::NEVER;
use wire::http2::{Payload, Reason, ReceivedRequest, Served, ServerSettings, Serving, StreamKey};
use wire::slab::Key;
use wire::stream::Stream;

use super::bounds::{IDLE, LIMITS, MOST_BODY, PATIENCE};
use super::context::{Context, Deferred};
use super::http2::message;
use super::plan::REVISION;
use super::recordings::GONE;
use super::reply::Reply;
use super::request_state::{ActiveRequest, RequestState};
use super::token;
use crate::Nanos;
use crate::topology::Protocol;
use wire::timed::Timed;

/// Most streams of one connection.
const STREAMS: u32 = 250;
/// How long a caller that was told that its connection ends may take to end it.
const FAREWELL: Nanos = 5_000_000_000;

/// See the module. Each is looked at again when its patience, or the time of the first of
/// its requests, is over.
#[derive(Default)]
pub(super) struct Http2Callers(Timed<Box<Http2Caller>>);

/// A caller's connection.
struct Http2Caller {
    key: Key,
    /// Place of the instance in its thread.
    instance: usize,
    protocol: Protocol,
    serving: Serving,
    /// Requests in hand, by the slots of their streams.
    active_requests: Vec<Option<PendingRequest>>,
    in_hand: usize,
    /// Something waits to be sent with the next drive, which is among the things to do.
    pending: bool,
    /// It was told to open no more streams.
    shut: bool,
    deadline: Nanos,
}

/// A request in hand.
#[derive(Debug, Clone, Copy)]
struct PendingRequest {
    stream: StreamKey,
    request: Key,
    deadline: Nanos,
}

impl Http2Caller {
    fn keep(&mut self, one: PendingRequest) {
        let slot = one.stream.slot();
        if slot >= self.active_requests.len() {
            self.active_requests.resize(slot + 1, None);
        }
        self.active_requests[slot] = Some(one);
        self.in_hand += 1;
    }

    /// The request of a stream that is over.
    fn release(&mut self, stream: StreamKey) -> Option<Key> {
        let place = self.active_requests.get_mut(stream.slot())?;
        let one = place.take_if(|one| one.stream == stream)?;
        self.in_hand -= 1;
        Some(one.request)
    }

    /// When to look at it again.
    fn next(&self, now: Nanos) -> Nanos {
        let in_hand = self
            .active_requests
            .iter()
            .flatten()
            .map(|one| one.deadline);
        in_hand
            .filter(|deadline| *deadline > now)
            .chain([self.deadline])
            .min()
            .unwrap_or(NEVER)
    }

    /// It is to be driven soon.
    fn drive_later(&mut self, context: &mut Context) {
        if !mem::replace(&mut self.pending, true) {
            context.deferred.push_back(Deferred::Http2Caller(self.key));
        }
    }

    /// Sends and reads what can be now, and hands over what came. Gives the earliest time of
    /// the requests that came; `None`: the connection has ended.
    fn drive(&mut self, mut readable: bool, context: &mut Context) -> Option<Nanos> {
        let mut first = NEVER;
        let driven = loop {
            self.pending = false;
            let driven = self.serving.drive(mem::take(&mut readable));
            let served: Vec<_> = self.serving.served().collect();
            for (stream, served) in served {
                match served {
                    Served::Asked(asked) => {
                        first = first.min(self.handle_request(stream, &asked, context));
                    }
                    Served::Answered => context
                        .deferred
                        .extend(self.release(stream).map(Deferred::Sent)),
                    Served::Gone => {
                        let gone = |request| Deferred::Abandon(request, GONE);
                        context.deferred.extend(self.release(stream).map(gone));
                    }
                }
            }
            // Refusals are there to be sent.
            if !self.pending || driven.is_err() {
                break driven;
            }
        };
        let writing = self.serving.wants_write();
        self.serving.rewatch(&context.poller).ok()?;
        driven.ok()?;
        // Only a connection without a request in hand runs out of patience; one in the
        // middle of a request does sooner.
        self.deadline = match (self.in_hand, self.serving.open_streams()) {
            (0, 0) if self.shut => context.after(FAREWELL),
            (0, 0) => context.after(IDLE),
            (0, _) => context.after(PATIENCE),
            _ if writing => context.after(PATIENCE),
            _ => NEVER,
        };
        Some(first.min(self.deadline))
    }

    /// A request is there, or is refused. Gives its time.
    fn handle_request(
        &mut self,
        stream: StreamKey,
        asked: &ReceivedRequest,
        context: &mut Context,
    ) -> Nanos {
        let head = &asked.head;
        let started = context.woken.min(context.now);
        let refused = match message::parse_request(head, self.protocol, started) {
            Ok(ask) => {
                let mut fields = Vec::with_capacity(head.headers.len());
                for (name, value) in &head.headers {
                    fields.push((name.as_str().as_bytes(), value.as_bytes()));
                }
                let fields = fields.iter().copied();
                let revision = head.headers.get(REVISION).map(HeaderValue::as_bytes);
                match context.new_request(self.instance, revision, ask.path, fields) {
                    Some(mut active) => {
                        active.state.stream = Some((self.key, stream));
                        active.state.bodiless = ask.bodiless;
                        active.state.deadline = ask.deadline;
                        self.keep(PendingRequest {
                            stream,
                            request: active.key,
                            deadline: ask.deadline,
                        });
                        context.deferred.push_back(Deferred::Begin(active.key));
                        context.active_requests.put(active);
                        return ask.deadline;
                    }
                    None => 503,
                }
            }
            Err(status) => status,
        };
        let answer = message::refusal(refused, self.protocol);
        let nothing = Payload::default();
        // The head is ours, and well-formed.
        let _ = self.serving.answer(stream, answer, nothing, None);
        self.pending = true;
        NEVER
    }
}

impl Http2Callers {
    /// A caller has connected to an instance that speaks HTTP/2 or gRPC.
    pub(super) fn welcome(
        &mut self,
        instance: usize,
        protocol: Protocol,
        stream: Stream,
        context: &mut Context,
    ) {
        let key = self.0.values.reserve();
        let settings = ServerSettings {
            streams: STREAMS,
            head_bytes: LIMITS.head_bytes as u32,
            ..ServerSettings::default()
        };
        let mut serving = Serving::start(stream, settings, 0, MOST_BODY);
        let watched = serving.watch(&context.poller, key.token(token::HTTP2_CALLER));
        if watched.is_err() {
            self.0.values.release(key);
            return;
        }
        context.instances.caller_connected(instance);
        let caller = Http2Caller {
            key,
            instance,
            protocol,
            serving,
            active_requests: Vec::new(),
            in_hand: 0,
            pending: false,
            shut: false,
            deadline: context.after(IDLE),
        };
        self.0.values.put(key, Box::new(caller));
        self.drive(key, true, context);
    }

    /// Sends and reads what can be now, and hands over what came.
    pub(super) fn drive(&mut self, key: Key, readable: bool, context: &mut Context) {
        let Some(caller) = self.0.values.get_mut(key) else {
            return;
        };
        match caller.drive(readable, context) {
            Some(next) => self.0.deadlines.lower(key.index(), next),
            None => self.forget(key, context),
        }
    }

    /// The connection has ended: so have its requests.
    fn forget(&mut self, key: Key, context: &mut Context) {
        if let Some(caller) = self.0.values.get(key) {
            let gone = |one: &PendingRequest| Deferred::Abandon(one.request, GONE);
            context
                .deferred
                .extend(caller.active_requests.iter().flatten().map(gone));
            context.instances.caller_disconnected(caller.instance);
            self.0.release(key);
        }
    }

    /// Handles one whose patience may be over, or the time of a request; `false`: there is
    /// none.
    pub(super) fn expire(&mut self, context: &mut Context) -> bool {
        let Some(key) = self.0.late(context.now) else {
            return false;
        };
        if let Some(caller) = self.0.values.get(key) {
            for one in caller.active_requests.iter().flatten() {
                if one.deadline <= context.now {
                    context.deferred.push_back(Deferred::Expired(one.request));
                }
            }
            if caller.deadline > context.now {
                let next = caller.next(context.now);
                self.0.deadlines.lower(key.index(), next);
            } else if caller.shut || caller.serving.open_streams() > 0 {
                self.forget(key, context);
            } else {
                self.shut_down(key, context);
            }
        }
        true
    }

    pub(super) fn next_deadline(&self) -> Nanos {
        self.0.next_deadline()
    }

    /// Lets a caller open no more streams. The connection ends with the last one.
    fn shut_down(&mut self, key: Key, context: &mut Context) {
        if let Some(caller) = self.0.values.get_mut(key)
            && !mem::replace(&mut caller.shut, true)
        {
            caller.serving.shut_down();
            self.drive(key, false, context);
        }
    }

    /// Ends the connections of those instances that accept nothing more.
    pub(super) fn leave(&mut self, context: &mut Context) {
        for key in self.0.keys() {
            let caller = self.0.values.get(key);
            if caller.is_some_and(|caller| context.instances.is_leaving(caller.instance)) {
                self.shut_down(key, context);
            }
        }
    }

    /// The end of all.
    pub(super) fn end(&mut self, context: &mut Context) {
        for key in self.0.keys() {
            self.forget(key, context);
        }
    }

    /// Answers a request. It is concluded when that is sent.
    pub(super) fn answer(
        &mut self,
        active: &mut ActiveRequest,
        reply: Reply,
        context: &mut Context,
    ) {
        let caller = active
            .state
            .stream
            .and_then(|(caller, stream)| Some((self.0.values.get_mut(caller)?, stream)));
        let answered = caller.is_some_and(|(caller, stream)| {
            let (head, body, trailers) = message::answer(active, caller.protocol, reply);
            caller.drive_later(context);
            caller.serving.answer(stream, head, body, trailers).is_ok()
        });
        if !answered {
            context.recordings.conclude(active, GONE, context.now);
        }
    }

    /// The caller of a request gets no answer.
    pub(super) fn drop(&mut self, state: &RequestState, context: &mut Context) {
        if let Some((key, stream)) = state.stream
            && let Some(caller) = self.0.values.get_mut(key)
        {
            caller.serving.reset(stream, Reason::INTERNAL_ERROR);
            caller.release(stream);
            caller.drive_later(context);
        }
    }
}
