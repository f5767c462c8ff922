//! Callers' connections.

use std::mem;

use http::HeaderValue;
use wire::http2::{Asked, Payload, Reason, Served, ServerSettings, Serving, StreamKey};
use wire::poller::Event;
use wire::slab::Key;
use wire::stream::Stream;

use super::STREAMS;
use super::message::{self, Body};
use crate::Nanos;
use crate::script::Failure;
use crate::service::event_loop::{EventLoop, Todo};
use crate::service::flight::Flight;
use crate::service::plan::{Plan, REVISION};
use crate::service::recording::GONE;
use crate::service::session::{IDLE, LIMITS, MOST_BODY, PATIENCE};
use crate::service::token::Token;
use crate::topology::Protocol;
use wire::deadlines::NEVER;

/// How long a caller that was told that its connection ends may take to end it.
const FAREWELL: Nanos = 5_000_000_000;

/// A caller's connection, each stream of which is a request.
pub(in crate::service) struct Front {
    key: Key,
    /// Place of the instance in its thread.
    pub(in crate::service) instance: usize,
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
}

impl EventLoop {
    /// A caller has connected to an instance that speaks HTTP/2 or gRPC.
    pub(in crate::service) fn begin_front(
        &mut self,
        instance: usize,
        protocol: Protocol,
        stream: Stream,
    ) {
        let key = self.fronts.reserve();
        let settings = ServerSettings {
            streams: STREAMS,
            head_bytes: LIMITS.head_bytes as u32,
            ..ServerSettings::default()
        };
        let mut serving = Serving::start(stream, settings, 0, MOST_BODY);
        let token = Token::Front(key).number();
        if serving.watch(&self.poller, token).is_err() {
            self.fronts.release(key);
            return;
        }
        if let Some(plan) = self.current_plan(instance) {
            plan.counters.accepted();
        }
        let front = Front {
            key,
            instance,
            protocol,
            serving,
            flights: Vec::new(),
            in_hand: 0,
            pending: false,
            shut: false,
            deadline: self.now.saturating_add(IDLE),
        };
        self.fronts.put(key, Box::new(front));
        self.drive_front(key, true);
    }

    pub(in crate::service) fn front_event(&mut self, key: Key, event: Event) {
        self.drive_front(key, event.readable);
    }

    /// Sends and reads what can be now, and hands over what came.
    pub(in crate::service) fn drive_front(&mut self, key: Key, mut readable: bool) {
        let Some(mut front) = self.fronts.take(key) else {
            return;
        };
        let driven = loop {
            front.pending = false;
            let driven = front.serving.drive(mem::take(&mut readable));
            let served: Vec<_> = front.serving.served().collect();
            for (stream, served) in served {
                match served {
                    Served::Asked(asked) => self.asked(&mut front, stream, &asked),
                    Served::Answered => {
                        let flight = front.release(stream);
                        self.todo.extend(flight.map(Todo::Sent));
                    }
                    Served::Gone => {
                        let flight = front.release(stream);
                        let gone = |flight| Todo::Abandon(flight, GONE);
                        self.todo.extend(flight.map(gone));
                    }
                }
            }
            // Refusals are there to be sent.
            if !front.pending || driven.is_err() {
                break driven;
            }
        };
        let writing = front.serving.wants_write();
        let watched = front.serving.rewatch(&self.poller);
        if driven.is_err() || watched.is_err() {
            self.forget_front(front);
            return;
        }
        // Only a connection without a request in hand runs out of patience; one in the
        // middle of a request does sooner.
        front.deadline = match (front.in_hand, front.serving.open_streams()) {
            (0, 0) if front.shut => self.now.saturating_add(FAREWELL),
            (0, 0) => self.now.saturating_add(IDLE),
            (0, _) => self.now.saturating_add(PATIENCE),
            _ if writing => self.now.saturating_add(PATIENCE),
            _ => NEVER,
        };
        self.timers.fronts.lower(key.index(), front.deadline);
        self.fronts.put(key, front);
    }

    /// The connection has ended: so have its requests.
    fn forget_front(&mut self, front: Box<Front>) {
        for one in front.flights.iter().flatten() {
            self.todo.push_back(Todo::Abandon(one.flight, GONE));
        }
        self.timers.fronts.clear(front.key.index());
        if let Some(plan) = self.current_plan(front.instance) {
            plan.counters.closed();
        }
        self.fronts.release(front.key);
    }

    pub(in crate::service) fn front_expired(&mut self, key: Key) {
        let Some(front) = self.fronts.take(key) else {
            return;
        };
        for one in front.flights.iter().flatten() {
            if one.deadline <= self.now {
                self.todo.push_back(Todo::Expired(one.flight));
            }
        }
        if front.deadline > self.now {
            let next = front.next(self.now);
            self.timers.fronts.lower(key.index(), next);
            self.fronts.put(key, front);
        } else if front.shut || front.serving.open_streams() > 0 {
            self.forget_front(front);
        } else {
            self.fronts.put(key, front);
            self.shut_front_down(key);
        }
    }

    /// Lets a caller open no more streams. The connection ends with the last one.
    fn shut_front_down(&mut self, key: Key) {
        if let Some(front) = self.fronts.get_mut(key)
            && !front.shut
        {
            front.shut = true;
            front.serving.shut_down();
            self.drive_front(key, false);
        }
    }

    /// Ends the connections of those instances that accept nothing more.
    pub(in crate::service) fn shut_fronts_down(&mut self) {
        let keys: Vec<_> = self.fronts.keys().collect();
        for key in keys {
            let instance = self.fronts.get_mut(key).map(|front| front.instance);
            if instance.is_some_and(|instance| self.is_leaving(instance)) {
                self.shut_front_down(key);
            }
        }
    }

    /// The end: what is on its way is cut off.
    pub(in crate::service) fn end_fronts(&mut self) {
        let keys: Vec<_> = self.fronts.keys().collect();
        for key in keys {
            if let Some(front) = self.fronts.take(key) {
                self.forget_front(front);
            }
        }
    }

    /// A request is there.
    fn asked(&mut self, front: &mut Front, stream: StreamKey, asked: &Asked) {
        let head = &asked.head;
        let started = self.woken.min(self.now);
        let refused = match message::ask(head, front.protocol, started) {
            Ok(ask) => {
                let mut fields = Vec::with_capacity(head.headers.len());
                for (name, value) in &head.headers {
                    fields.push((name.as_str().as_bytes(), value.as_bytes()));
                }
                let fields = fields.iter().copied();
                let revision = head.headers.get(REVISION).map(HeaderValue::as_bytes);
                match self.new_request(front.instance, revision, ask.path, fields) {
                    Some(mut flight) => {
                        flight.stream = Some((front.key, stream));
                        flight.protocol = front.protocol;
                        flight.bodiless = ask.bodiless;
                        flight.deadline = ask.deadline;
                        let deadline = flight.deadline;
                        let key = self.flights.insert(flight);
                        front.keep(InHand {
                            stream,
                            flight: key,
                            deadline,
                        });
                        self.timers.fronts.lower(front.key.index(), deadline);
                        self.todo.push_back(Todo::Begin(key));
                        return;
                    }
                    None => 503,
                }
            }
            Err(status) => status,
        };
        let answer = message::refusal(refused, front.protocol);
        // The head is ours, and well-formed.
        let _ = front
            .serving
            .answer(stream, answer, Payload::default(), None);
        front.pending = true;
    }

    /// Answers a request that came over a stream. It is concluded when that is sent.
    pub(in crate::service) fn answer_stream(
        &mut self,
        flight: &mut Flight,
        plan: &Plan,
        status: u16,
        body: Body,
        failure: Option<Failure>,
    ) {
        let failed = failure.is_some().then_some(&flight.failed[..]);
        let (head, body, trailers) =
            message::answer(plan, flight, flight.protocol, status, body, failed);
        let front = flight
            .stream
            .and_then(|(front, stream)| Some((self.fronts.get_mut(front)?, stream)));
        let answered = front.map(|(front, stream)| {
            let answered = front.serving.answer(stream, head, body, trailers);
            if !mem::replace(&mut front.pending, true) {
                self.todo.push_back(Todo::Front(front.key));
            }
            answered
        });
        if !matches!(answered, Some(Ok(()))) {
            self.conclude(flight, plan, GONE);
        }
    }

    /// A request that came over a stream gets no answer.
    pub(in crate::service) fn drop_stream(&mut self, flight: &mut Flight) {
        if let Some((key, stream)) = flight.stream.take()
            && let Some(front) = self.fronts.get_mut(key)
        {
            front.serving.reset(stream, Reason::INTERNAL_ERROR);
            front.release(stream);
            if !mem::replace(&mut front.pending, true) {
                self.todo.push_back(Todo::Front(key));
            }
        }
    }
}
