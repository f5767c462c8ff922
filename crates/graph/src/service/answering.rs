//! Requests in hand: what their scripts command, and their answers.

use std::mem;
use std::sync::Arc;

use wire::clock;
use wire::slab::Key;

use traces::failure;

use super::event_loop::EventLoop;
use super::flight::{Flight, What};
use super::http2::StreamBody;
use super::intake::Sent;
use super::message::{AnswerHead, write_answer};
use super::plan::Plan;
use super::recording::GONE;
use super::session::{PATIENCE, Phase};
use crate::script::{Arrival, Command, Failure, Outcome, Ticket};

impl EventLoop {
    /// What an instance does now.
    pub(super) fn current_plan(&self, instance: usize) -> Option<&Arc<Plan>> {
        self.instances.get(instance)?.plans.front()
    }

    /// What an instance does for a request: by the revision that it began under elsewhere,
    /// if that is still kept, else by the newest.
    pub(super) fn plan_for(&self, instance: usize, asked: Option<&[u8]>) -> Option<Arc<Plan>> {
        let plans = &self.instances.get(instance)?.plans;
        let of = |asked: &[u8]| plans.iter().find(|plan| plan.fingerprint == asked);
        asked.and_then(of).or_else(|| plans.front()).cloned()
    }

    /// A request is whole: its script begins.
    pub(super) fn begin(&mut self, key: Key) {
        let Some(mut flight) = self.flights.take(key) else {
            return;
        };
        let Some(plan) = flight.plan.clone() else {
            return;
        };
        plan.server_counters(flight.endpoint).began(flight.queue);
        if let Some(session) = flight.session.and_then(|key| self.sessions.get_mut(key)) {
            session.deadline = flight.deadline;
            let place = session.key.index();
            self.timers.sessions.set(place, session.deadline);
        }
        let arrival = Arrival {
            endpoint: flight.endpoint,
            trace: flight.trace,
            span: flight.span,
            came: flight.started,
            now: self.now.max(flight.started),
            deadline: flight.deadline,
        };
        let mut commands = mem::take(&mut self.commands);
        flight.request.begin(&plan.program, &arrival, &mut commands);
        self.carry_out(key, &mut flight, &plan, &mut commands);
        self.commands = commands;
        self.put_flight(key, flight);
    }

    /// Something that a request waited for has ended.
    pub(super) fn ended(&mut self, key: Key, ticket: Ticket, outcome: Outcome) {
        let now = self.now;
        self.tell(key, |flight, plan, commands| {
            flight.close(ticket);
            let request = &mut flight.request;
            request.ended(&plan.program, ticket, outcome, now, commands);
        });
    }

    /// A request's time is over.
    pub(super) fn expired(&mut self, key: Key) {
        let now = self.now;
        self.tell(key, |flight, plan, commands| {
            flight.request.expired(&plan.program, now, commands);
        });
    }

    fn tell(&mut self, key: Key, what: impl FnOnce(&mut Flight, &Plan, &mut Vec<Command>)) {
        let Some(mut flight) = self.flights.take(key) else {
            return;
        };
        if let Some(plan) = flight.plan.clone() {
            let mut commands = mem::take(&mut self.commands);
            what(&mut flight, &plan, &mut commands);
            self.carry_out(key, &mut flight, &plan, &mut commands);
            self.commands = commands;
        }
        self.put_flight(key, flight);
    }

    /// Puts a request back into its place, or forgets it if all of it has ended.
    fn put_flight(&mut self, key: Key, flight: Box<Flight>) {
        if flight.concluded && flight.request.is_finished() {
            self.flights.release(key);
            self.spare_flight(flight);
        } else {
            self.flights.put(key, flight);
        }
    }

    /// Does what a script commands. Calls go out before own work holds this thread up.
    fn carry_out(
        &mut self,
        key: Key,
        flight: &mut Flight,
        plan: &Arc<Plan>,
        commands: &mut Vec<Command>,
    ) {
        for command in &*commands {
            match command {
                Command::Call { .. } => self.call(key, flight, plan, command),
                Command::Wait { .. } => self.wait(key, flight, command),
                Command::Work { .. } | Command::Answer { .. } | Command::Drop => {}
            }
        }
        for command in commands.drain(..) {
            match command {
                Command::Call { .. } | Command::Wait { .. } => {}
                Command::Work { .. } => self.work(key, flight, plan, &command),
                Command::Answer {
                    status,
                    bytes,
                    failure,
                } => self.answer(key, flight, plan, status, bytes, failure),
                Command::Drop => self.drop_unanswered(flight, plan),
            }
        }
    }

    fn answer(
        &mut self,
        key: Key,
        flight: &mut Flight,
        plan: &Plan,
        status: u16,
        bytes: u64,
        failure: Option<Failure>,
    ) {
        let cause = failure.map_or("", |failure| failure.cause);
        flight.answer = Some((status, cause));
        if let Some(failure) = failure
            && (flight.failed.is_empty() || flight.failed_edge != failure.edge)
        {
            flight.failed.clear();
            match failure.edge {
                Some(edge) => plan.write_edge(edge, &mut flight.failed),
                None => flight.failed.extend_from_slice(plan.name.as_bytes()),
            }
            flight.failed.push(b' ');
            flight.failed.extend_from_slice(failure.cause.as_bytes());
        }
        let own = failure.filter(|failure| failure.edge.is_none());
        flight.why = mem::take(&mut flight.why)
            .filter(|(cause, _)| own.is_some_and(|own| own.cause == *cause));
        let echoes = plan.endpoint(flight.endpoint).is_some_and(|one| one.echo);
        let body = match failure {
            Some(_) => Body::Failure,
            None if echoes => Body::Echo,
            None => Body::Bytes(bytes),
        };
        if flight.stream.is_some() {
            let body = match body {
                Body::Bytes(bytes) => StreamBody::Filler(bytes),
                text => {
                    let mut written = Vec::new();
                    text.write(flight, plan, &mut written);
                    StreamBody::Text(written)
                }
            };
            self.answer_stream(flight, plan, status, body, failure);
            return;
        }
        let session = flight.session.and_then(|key| self.sessions.take(key));
        let Some(mut session) = session else {
            self.conclude(flight, plan, GONE);
            return;
        };
        session.last = !flight.keep_alive || self.is_leaving(session.instance);
        let head = AnswerHead {
            status,
            bytes: body.length(flight, plan),
            keep_alive: !session.last,
            old: flight.old,
            failed: failure.is_some().then_some(&flight.failed),
        };
        write_answer(plan, &head, session.outbox.sheet());
        if !flight.bodiless {
            match body {
                Body::Bytes(bytes) => session.outbox.fill(bytes),
                text => text.write(flight, plan, session.outbox.sheet()),
            }
        }
        self.now = clock::now();
        match self.send(&mut session) {
            Sent::All => {
                self.conclude(flight, plan, cause);
                self.answered(&mut session);
            }
            Sent::Some => {
                session.phase = Phase::Answering(key);
                session.deadline = self.now.saturating_add(PATIENCE);
            }
            Sent::Failed => {
                self.conclude(flight, plan, GONE);
                session.phase = Phase::Closed;
            }
        }
        self.put_session(session);
    }

    /// An answer that took several sends is sent.
    pub(super) fn sent(&mut self, key: Key) {
        if let Some(mut flight) = self.flights.take(key) {
            let (_, cause) = flight.answer.unwrap_or_default();
            if let Some(plan) = flight.plan.clone() {
                self.conclude(&mut flight, &plan, cause);
            }
            self.put_flight(key, flight);
        }
    }

    /// A fault: the caller gets no answer.
    fn drop_unanswered(&mut self, flight: &mut Flight, plan: &Plan) {
        flight.answer = Some((0, failure::FAULT));
        if let Some(mut session) = flight.session.and_then(|key| self.sessions.take(key)) {
            session.phase = Phase::Closed;
            self.put_session(session);
        }
        self.drop_stream(flight);
        self.conclude(flight, plan, failure::FAULT);
    }

    /// A request is of no use to anybody: what it began is cut off.
    pub(super) fn abandon(&mut self, key: Key, cause: &'static str) {
        let Some(mut flight) = self.flights.take(key) else {
            return;
        };
        let Some(plan) = flight.plan.clone() else {
            return;
        };
        if flight.answer.is_some() {
            // What goes on behind the answer goes on.
            if !flight.concluded {
                self.conclude(&mut flight, &plan, cause);
            }
            if self.state != super::host::STOPPED {
                self.put_flight(key, flight);
                return;
            }
        }
        for open in mem::take(&mut flight.open) {
            match open.what {
                What::Call(link) => self.cut_off(link, &flight),
                What::Stream(channel) => {
                    if let Some(attempt) = self.cancel_stream(channel, key, open.ticket) {
                        self.record_call(&flight, &attempt, 0, GONE);
                    }
                }
                What::Queued(slot, place) => {
                    let place = (slot, place);
                    if let Some(attempt) = self.leave_queue(&flight, key, open.ticket, place) {
                        self.record_call(&flight, &attempt, 0, GONE);
                    }
                }
                What::Job(job) => self.jobs.release(job),
                What::Sleep(..) | What::Pause => {}
            }
        }
        if !flight.concluded {
            self.conclude(&mut flight, &plan, cause);
        }
        self.timers.waits.clear(key.index());
        self.flights.release(key);
        self.spare_flight(flight);
    }
}

/// What stands in the body of an answer.
#[derive(Debug, Clone, Copy)]
enum Body {
    Bytes(u64),
    Failure,
    Echo,
}

impl Body {
    /// Writes what is text.
    fn write(self, flight: &mut Flight, plan: &Plan, out: &mut Vec<u8>) {
        match self {
            Self::Bytes(_) => {}
            Self::Failure => write_failure(flight, out),
            Self::Echo => write_echo(flight, plan, out),
        }
    }

    fn length(self, flight: &Flight, plan: &Plan) -> u64 {
        let length = match self {
            Self::Bytes(bytes) => return bytes,
            Self::Failure => {
                let why = flight.why.as_ref().map_or(0, |(_, why)| why.len() + 1);
                flight.failed.len() + 1 + why
            }
            Self::Echo => {
                let own = "hello:".len() + plan.name.len() + ":".len() + flight.path.len();
                flight.prefix.len() + own + flight.parts.len() + flight.echo.len()
            }
        };
        length as u64
    }
}

/// Writes where a failure began and its cause, and in a second line what is known of it.
fn write_failure(flight: &Flight, out: &mut Vec<u8>) {
    out.extend_from_slice(&flight.failed);
    out.push(b'\n');
    if let Some((_, why)) = &flight.why {
        out.extend_from_slice(why.as_bytes());
        out.push(b'\n');
    }
}

/// Writes testapi's body: `hello:SERVICE:PATH`, and behind a colon each the bodies of the
/// calls in the order of their steps.
fn write_echo(flight: &mut Flight, plan: &Plan, out: &mut Vec<u8>) {
    out.extend_from_slice(&flight.prefix);
    out.extend_from_slice(b"hello:");
    out.extend_from_slice(plan.name.as_bytes());
    out.push(b':');
    out.extend_from_slice(&flight.path);
    flight.parts.sort_unstable();
    for part in &flight.parts {
        out.push(b':');
        let body = flight.echo.get(part.start..part.end);
        out.extend_from_slice(body.unwrap_or_default());
    }
}
