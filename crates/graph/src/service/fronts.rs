//! Callers' connections: HTTP/2 and gRPC, each stream of which is a request.

use std::mem;

use http::HeaderValue;
use wire::deadlines::NEVER;
use wire::http2::{Asked, Payload, Reason, Served, ServerSettings, Serving, StreamKey};
use wire::slab::Key;
use wire::stream::Stream;

use super::bounds::{IDLE, LIMITS, MOST_BODY, PATIENCE};
use super::context::{Context, Todo};
use super::flight::{Active, Flight};
use super::http2::message;
use super::plan::REVISION;
use super::recordings::GONE;
use super::reply::Reply;
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
pub(super) struct Fronts(Timed<Box<Front>>);

/// A caller's connection.
struct Front {
    key: Key,
    /// Place of the instance in its thread.
    instance: usize,
    protocol: Protocol,
    serving: Serving,
    /// Requests in hand, by the slots of their streams.
    flights: Vec<Option<InHand>>,
    in_hand: usize,
    /// Something waits to be sent with the next drive, which is among the things to do.
    pending: bool,
    /// It was told to open no more streams.
    shut: bool,
    deadline: Nanos,
}

/// A request in hand.
#[derive(Debug, Clone, Copy)]
struct InHand {
    stream: StreamKey,
    flight: Key,
    deadline: Nanos,
}

impl Front {
    fn keep(&mut self, one: InHand) {
        let slot = one.stream.slot();
        if slot >= self.flights.len() {
            self.flights.resize(slot + 1, None);
        }
        if let Some(place) = self.flights.get_mut(slot) {
            *place = Some(one);
            self.in_hand += 1;
        }
    }

    /// The request of a stream that is over.
    fn release(&mut self, stream: StreamKey) -> Option<Key> {
        let place = self.flights.get_mut(stream.slot())?;
        let one = place.take_if(|one| one.stream == stream)?;
        self.in_hand -= 1;
        Some(one.flight)
    }

    /// When to look at it again.
    fn next(&self, now: Nanos) -> Nanos {
        let in_hand = self.flights.iter().flatten().map(|one| one.deadline);
        in_hand
            .filter(|deadline| *deadline > now)
            .chain([self.deadline])
            .min()
            .unwrap_or(NEVER)
    }

    /// It is to be driven soon.
    fn drive_later(&mut self, context: &mut Context) {
        if !mem::replace(&mut self.pending, true) {
            context.todo.push_back(Todo::Front(self.key));
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
                        first = first.min(self.asked(stream, &asked, context));
                    }
                    Served::Answered => context.todo.extend(self.release(stream).map(Todo::Sent)),
                    Served::Gone => {
                        let gone = |flight| Todo::Abandon(flight, GONE);
                        context.todo.extend(self.release(stream).map(gone));
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
    fn asked(&mut self, stream: StreamKey, asked: &Asked, context: &mut Context) -> Nanos {
        let head = &asked.head;
        let started = context.woken.min(context.now);
        let refused = match message::ask(head, self.protocol, started) {
            Ok(ask) => {
                let mut fields = Vec::with_capacity(head.headers.len());
                for (name, value) in &head.headers {
                    fields.push((name.as_str().as_bytes(), value.as_bytes()));
                }
                let fields = fields.iter().copied();
                let revision = head.headers.get(REVISION).map(HeaderValue::as_bytes);
                match context.new_request(self.instance, revision, ask.path, fields) {
                    Some(mut active) => {
                        active.flight.stream = Some((self.key, stream));
                        active.flight.bodiless = ask.bodiless;
                        active.flight.deadline = ask.deadline;
                        self.keep(InHand {
                            stream,
                            flight: active.key,
                            deadline: ask.deadline,
                        });
                        context.todo.push_back(Todo::Begin(active.key));
                        context.flights.put(active);
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

impl Fronts {
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
        let watched = serving.watch(&context.poller, key.token(token::FRONT));
        if watched.is_err() {
            self.0.values.release(key);
            return;
        }
        context.instances.came(instance);
        let front = Front {
            key,
            instance,
            protocol,
            serving,
            flights: Vec::new(),
            in_hand: 0,
            pending: false,
            shut: false,
            deadline: context.after(IDLE),
        };
        self.0.values.put(key, Box::new(front));
        self.drive(key, true, context);
    }

    /// Sends and reads what can be now, and hands over what came.
    pub(super) fn drive(&mut self, key: Key, readable: bool, context: &mut Context) {
        let Some(front) = self.0.values.get_mut(key) else {
            return;
        };
        match front.drive(readable, context) {
            Some(next) => self.0.deadlines.lower(key.index(), next),
            None => self.forget(key, context),
        }
    }

    /// The connection has ended: so have its requests.
    fn forget(&mut self, key: Key, context: &mut Context) {
        if let Some(front) = self.0.values.get(key) {
            let gone = |one: &InHand| Todo::Abandon(one.flight, GONE);
            context
                .todo
                .extend(front.flights.iter().flatten().map(gone));
            context.instances.went(front.instance);
            self.0.release(key);
        }
    }

    /// Handles one whose patience may be over, or the time of a request; `false`: there is
    /// none.
    pub(super) fn expire(&mut self, context: &mut Context) -> bool {
        let Some(key) = self.0.late(context.now) else {
            return false;
        };
        if let Some(front) = self.0.values.get(key) {
            for one in front.flights.iter().flatten() {
                if one.deadline <= context.now {
                    context.todo.push_back(Todo::Expired(one.flight));
                }
            }
            if front.deadline > context.now {
                let next = front.next(context.now);
                self.0.deadlines.lower(key.index(), next);
            } else if front.shut || front.serving.open_streams() > 0 {
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
        if let Some(front) = self.0.values.get_mut(key)
            && !mem::replace(&mut front.shut, true)
        {
            front.serving.shut_down();
            self.drive(key, false, context);
        }
    }

    /// Ends the connections of those instances that accept nothing more.
    pub(super) fn leave(&mut self, context: &mut Context) {
        for key in self.0.keys() {
            let front = self.0.values.get(key);
            if front.is_some_and(|front| context.instances.is_leaving(front.instance)) {
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
    pub(super) fn answer(&mut self, active: &mut Active, reply: Reply, context: &mut Context) {
        let front = active
            .flight
            .stream
            .and_then(|(front, stream)| Some((self.0.values.get_mut(front)?, stream)));
        let answered = front.is_some_and(|(front, stream)| {
            let (head, body, trailers) = message::answer(active, front.protocol, reply);
            front.drive_later(context);
            front.serving.answer(stream, head, body, trailers).is_ok()
        });
        if !answered {
            context.recordings.conclude(active, GONE, context.now);
        }
    }

    /// The caller of a request gets no answer.
    pub(super) fn drop(&mut self, flight: &Flight, context: &mut Context) {
        if let Some((key, stream)) = flight.stream
            && let Some(front) = self.0.values.get_mut(key)
        {
            front.serving.reset(stream, Reason::INTERNAL_ERROR);
            front.release(stream);
            front.drive_later(context);
        }
    }
}
