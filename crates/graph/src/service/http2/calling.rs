//! Calls over channels: which one, what becomes of a call that got no answer.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use wire::http2::{Answer, StreamError};
use wire::poller::{Event, Interest};
use wire::slab::Key;
use wire::socket;
use wire::stream::Stream;

use traces::failure;

use super::channel::{Channel, Ended, Stage, Unsent};
use super::{MESSAGE_PREFIX, message};
use crate::script::{Outcome, Ticket};
use crate::service::calling::{pool, route};
use crate::service::event_loop::{EventLoop, Todo};
use crate::service::exchange::why;
use crate::service::flight::{Flight, MOST_ECHO, Open, What};
use crate::service::link::{Attempt, PoolId};
use crate::service::plan::{CallPlan, Plan};
use crate::service::token::Token;
use crate::topology::Protocol;
use wire::deadlines::NEVER;

impl EventLoop {
    /// Sends the request of an attempt over the channel that is kept, or, `fresh`, over a
    /// new one.
    pub(in crate::service) fn stream_attempt(
        &mut self,
        flight: &mut Flight,
        plan: &Plan,
        call: &CallPlan,
        id: PoolId,
        mut attempt: Attempt,
        fresh: bool,
    ) {
        let callee = plan.callees.get(call.slot).and_then(Option::as_ref);
        let protocol = callee.map_or(Protocol::Http2, |callee| callee.protocol);
        attempt.sent = self.now;
        let Some((request, body)) =
            message::request(plan, call, flight, &attempt, protocol, self.now)
        else {
            self.unanswered(flight, &attempt, failure::MALFORMED);
            return;
        };
        let kept = if fresh { None } else { self.kept_channel(id) };
        let key = match kept.map_or_else(|| self.open_channel(id, call, protocol), Ok) {
            Ok(key) => key,
            Err(why) => {
                self.unanswered(flight, &attempt, why);
                return;
            }
        };
        let echoes = plan.endpoint(flight.endpoint).is_some_and(|one| one.echo);
        if let Some(pool) = pool(&mut self.instances, id) {
            pool.load += 1;
        }
        if let Some(channel) = self.channels.get_mut(key) {
            channel.unsent.push_back(Unsent {
                attempt,
                request,
                body,
                keep: if echoes {
                    MOST_ECHO + MESSAGE_PREFIX
                } else {
                    0
                },
            });
            if !mem::replace(&mut channel.pending, true) {
                self.todo.push_back(Todo::Channel(key));
            }
            let place = key.index();
            self.timers.channels.lower(place, attempt.deadline);
        }
        let ticket = attempt.ticket;
        let what = What::Stream(key);
        flight.open.push(Open::new(ticket, what));
    }

    /// The channel of a pool that takes more calls.
    fn kept_channel(&mut self, id: PoolId) -> Option<Key> {
        let pool = pool(&mut self.instances, id)?;
        let (address, key) = (pool.address, pool.channel?);
        let channel = self.channels.get_mut(key)?;
        channel.takes_more(address).then_some(key)
    }

    fn open_channel(
        &mut self,
        id: PoolId,
        call: &CallPlan,
        protocol: Protocol,
    ) -> Result<Key, &'static str> {
        let once = route(&mut self.instances, id).is_some_and(|route| !route.warm);
        let address = pool(&mut self.instances, id).map(|pool| pool.address);
        let address = address.ok_or(failure::REFUSED)?;
        let stream =
            Stream::Plain(socket::connect_tcp(address).map_err(|errno| why(socket::cause(errno)))?);
        let key = self.channels.reserve();
        let token = Token::Channel(key).number();
        if self.poller.add(&stream, token, Interest::Write).is_err() {
            self.channels.release(key);
            return Err(failure::NO_DESCRIPTORS);
        }
        call.counters.opened();
        let channel = Channel {
            key,
            pool: id,
            counters: Arc::clone(&call.counters),
            address,
            protocol,
            stage: Stage::Dialing(stream),
            unsent: VecDeque::new(),
            calls: Vec::new(),
            reused: false,
            heard: 0,
            once,
            pending: false,
        };
        self.channels.put(key, Box::new(channel));
        if let Some(pool) = pool(&mut self.instances, id).filter(|_| !once) {
            pool.channel = Some(key);
        }
        Ok(key)
    }

    pub(in crate::service) fn channel_event(&mut self, key: Key, event: Event) {
        if let Some(channel) = self.channels.get_mut(key)
            && let Err(why) = channel.begin(event, &self.poller)
        {
            let mut ended = Vec::new();
            if let Some(channel) = self.channels.take(key) {
                self.channel_broke(channel, why, &mut ended);
            }
            return;
        }
        if event.readable
            && let Some(channel) = self.channels.get_mut(key)
        {
            channel.heard = self.now;
        }
        self.drive_channel(key, event.readable);
    }

    /// Sends and reads what can be now, and tells of the calls that ended.
    pub(in crate::service) fn drive_channel(&mut self, key: Key, readable: bool) {
        let Some(mut channel) = self.channels.take(key) else {
            return;
        };
        channel.pending = false;
        let mut ended = Vec::new();
        let driven = channel.drive(readable, &mut ended);
        let watched = match &mut channel.stage {
            Stage::Open(connection) => connection.rewatch(&self.poller),
            Stage::Dialing(_) | Stage::Ended => Ok(()),
        };
        if let Err(why) = driven.and(watched.map_err(|_| failure::RESET)) {
            self.channel_broke(channel, why, &mut ended);
            return;
        }
        for (attempt, answer) in ended {
            self.stream_ended(&mut channel, &attempt, answer);
        }
        self.put_channel(channel);
    }

    /// Puts a channel back into its place, or forgets one that carries no more calls.
    fn put_channel(&mut self, mut channel: Box<Channel>) {
        let key = channel.key;
        let kept = self
            .pool(channel.pool)
            .is_some_and(|pool| pool.channel == Some(key) && channel.takes_more(pool.address));
        if !kept && channel.is_idle() {
            self.forget_channel(channel);
        } else {
            self.channels.put(key, channel);
        }
    }

    #[expect(clippy::boxed_local, reason = "as it comes out of its slab")]
    fn forget_channel(&mut self, channel: Box<Channel>) {
        self.timers.channels.clear(channel.key.index());
        channel.counters.closed();
        if let Some(pool) = pool(&mut self.instances, channel.pool) {
            pool.channel.take_if(|key| *key == channel.key);
        }
        self.channels.release(channel.key);
    }

    /// A channel is of no more use: its calls have ended with it.
    fn channel_broke(
        &mut self,
        mut channel: Box<Channel>,
        why: &'static str,
        ended: &mut Vec<Ended>,
    ) {
        if let Some(pool) = pool(&mut self.instances, channel.pool) {
            pool.channel.take_if(|key| *key == channel.key);
        }
        for (attempt, answer) in ended.drain(..) {
            self.stream_ended(&mut channel, &attempt, answer);
        }
        for unsent in mem::take(&mut channel.unsent) {
            self.unheard(&channel, &unsent.attempt, why, channel.reused);
        }
        self.forget_channel(channel);
    }

    /// A call's stream has ended.
    fn stream_ended(
        &mut self,
        channel: &mut Channel,
        attempt: &Attempt,
        answer: Result<Answer, StreamError>,
    ) {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                let why = match error {
                    StreamError::Protocol(_) => failure::MALFORMED,
                    _ => failure::RESET,
                };
                // Those that the callee surely did nothing with, or that met its end.
                let race = channel.reused
                    && matches!(
                        error,
                        StreamError::Refused
                            | StreamError::GoAway(_)
                            | StreamError::Closed
                            | StreamError::Io(_)
                    );
                self.unheard(channel, attempt, why, race);
                return;
            }
        };
        channel.reused = true;
        self.unload(channel.pool);
        let Some(mut flight) = self.flights.take(attempt.flight) else {
            return;
        };
        let (outcome, failed, body) = message::outcome(&answer, channel.protocol);
        let (status, why) = match outcome {
            Outcome::Unanswered(why) => (0, why),
            Outcome::Answered(status) => (status, ""),
            _ => (0, failure::MALFORMED),
        };
        let plan = flight.plan.clone();
        let echoes =
            plan.is_some_and(|plan| plan.endpoint(flight.endpoint).is_some_and(|one| one.echo));
        if status >= 400 && !failed.is_empty() {
            flight.failed.clear();
            flight.failed.extend_from_slice(failed);
            flight.failed_edge = Some(attempt.edge);
        } else if echoes && (200..400).contains(&status) {
            flight.keep(attempt.step, attempt.ticket, body);
        }
        self.record_call(&flight, attempt, status, why);
        self.flights.put(attempt.flight, flight);
        self.todo
            .push_back(Todo::Ended(attempt.flight, attempt.ticket, outcome));
    }

    /// A call got no answer; `race`: the callee may have closed the connection while it
    /// was idle, so that it is made once more over a new one.
    fn unheard(&mut self, channel: &Channel, attempt: &Attempt, why: &'static str, race: bool) {
        self.unload(channel.pool);
        let Some(mut flight) = self.flights.take(attempt.flight) else {
            return;
        };
        flight.close(attempt.ticket);
        let plan = flight.plan.clone();
        let call = plan.as_ref().and_then(|plan| plan.call(attempt.step));
        match (&plan, call) {
            (Some(plan), Some(call)) if race => {
                // The first of those that failed together opens the channel for all.
                let fresh = self.kept_channel(channel.pool) == Some(channel.key);
                self.stream_attempt(&mut flight, plan, call, channel.pool, *attempt, fresh);
            }
            _ => self.unanswered(&mut flight, attempt, why),
        }
        self.flights.put(attempt.flight, flight);
    }

    /// A call is of no use to anybody any more; `None`: it has ended.
    pub(in crate::service) fn cancel_stream(
        &mut self,
        channel: Key,
        flight: Key,
        ticket: Ticket,
    ) -> Option<Attempt> {
        let channel = self.channels.get_mut(channel)?;
        let attempt = channel.cancel(flight, ticket)?;
        let (id, key) = (channel.pool, channel.key);
        if !mem::replace(&mut channel.pending, true) {
            self.todo.push_back(Todo::Channel(key));
        }
        self.unload(id);
        Some(attempt)
    }

    /// The time of a call may be over.
    pub(in crate::service) fn channel_expired(&mut self, key: Key) {
        let Some(channel) = self.channels.get_mut(key) else {
            return;
        };
        let (mut late, mut next) = (Vec::new(), NEVER);
        for attempt in channel.attempts() {
            if attempt.deadline <= self.now {
                late.push(attempt);
            } else {
                next = next.min(attempt.deadline);
            }
        }
        self.timers.channels.lower(key.index(), next);
        // Nothing was heard since: the callee may be gone without a word. Who comes next
        // finds out over a new connection.
        let silent = late.iter().any(|attempt| attempt.sent > channel.heard);
        if silent && let Some(pool) = pool(&mut self.instances, channel.pool) {
            pool.channel.take_if(|kept| *kept == key);
        }
        for attempt in late {
            self.cancel_stream(key, attempt.flight, attempt.ticket);
            if let Some(mut flight) = self.flights.take(attempt.flight) {
                flight.close(attempt.ticket);
                self.unanswered(&mut flight, &attempt, failure::TIMEOUT);
                self.flights.put(attempt.flight, flight);
            }
        }
    }

    /// A pool has room for another call.
    fn unload(&mut self, id: PoolId) {
        if let Some(pool) = pool(&mut self.instances, id) {
            pool.load = pool.load.saturating_sub(1);
            if !pool.waiting.is_empty() {
                self.todo.push_back(Todo::Dispatch(id));
            }
        }
    }

    /// The end: what is on its way is cut off.
    pub(in crate::service) fn end_channels(&mut self) {
        let keys: Vec<_> = self.channels.keys().collect();
        for key in keys {
            if let Some(channel) = self.channels.take(key) {
                self.forget_channel(channel);
            }
        }
    }
}
