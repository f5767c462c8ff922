//! Calls over HTTP/2 and gRPC: which connection, what becomes of a call without an answer.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use traces::failure;
use wire::deadlines::NEVER;
use wire::poller::{Event, Interest};
use wire::slab::Key;
use wire::socket;
use wire::stream::Stream;

use super::causes::cause_word;
use super::channel::{Channel, QueuedCall, Stage};
use crate::Nanos;
use crate::script::OperationId;
use crate::service::context::Context;
use crate::service::http2::{MESSAGE_PREFIX, message};
use crate::service::plan::CallPlan;
use crate::service::request_state::{ActiveRequest, Attempt, MOST_ECHO, Open, OpenKind, PoolId};
use crate::service::token;
use crate::topology::Protocol;
use wire::timed::Timed;

/// See the module. Each is looked at again when the time of its first call is over.
#[derive(Default)]
pub(super) struct Channels(Timed<Box<Channel>>);

impl Channels {
    /// Sends the request of an attempt over the channel that is kept, or over a new one.
    pub(super) fn attempt(
        &mut self,
        active: &mut ActiveRequest,
        mut attempt: Attempt,
        context: &mut Context,
    ) {
        attempt.sent = context.now;
        match self.send(active, attempt, context) {
            Ok(key) => {
                let open = Open::new(attempt.operation_id, OpenKind::Stream(key));
                active.state.open.push(open);
            }
            Err(why) => context.unanswered(active, &attempt, why),
        }
    }

    /// Hands the request of an attempt to a channel.
    fn send(
        &mut self,
        active: &ActiveRequest,
        attempt: Attempt,
        context: &mut Context,
    ) -> Result<Key, &'static str> {
        let id = attempt.pool;
        let plan = &active.plan;
        let call = plan.call(attempt.step).ok_or(failure::REFUSED)?;
        let callee = plan.callees.get(call.slot).and_then(Option::as_ref);
        let protocol = callee.map_or(Protocol::Http2, |callee| callee.protocol);
        let (request, body) = message::request(active, call, &attempt, protocol, context.now)
            .ok_or(failure::MALFORMED)?;
        let key = self.kept(id, context);
        let key = key.map_or_else(|| self.open(id, call, protocol, context), Ok)?;
        if let Some(pool) = context.routes.pool(id) {
            pool.load += 1;
        }
        if let Some(channel) = self.0.values.get_mut(key) {
            let keep = match active.echoes() {
                true => MOST_ECHO + MESSAGE_PREFIX,
                false => 0,
            };
            channel.unsent.push_back(QueuedCall {
                attempt,
                request,
                body,
                keep,
            });
            channel.drive_later(context);
            self.0.deadlines.lower(key.index(), attempt.deadline);
        }
        Ok(key)
    }

    /// The channel of a pool that takes more calls.
    fn kept(&mut self, id: PoolId, context: &mut Context) -> Option<Key> {
        let pool = context.routes.pool(id)?;
        let (address, key) = (pool.address, pool.channel?);
        let channel = self.0.values.get_mut(key)?;
        channel.takes_more(address).then_some(key)
    }

    fn open(
        &mut self,
        id: PoolId,
        call: &CallPlan,
        protocol: Protocol,
        context: &mut Context,
    ) -> Result<Key, &'static str> {
        let once = context.routes.route(id).is_some_and(|route| !route.warm);
        let pool = context.routes.pool(id).ok_or(failure::REFUSED)?;
        let connected = socket::connect_tcp(pool.address);
        let stream = Stream::Plain(connected.map_err(|errno| cause_word(socket::cause(errno)))?);
        let (kind, poller) = (token::CHANNEL, &context.poller);
        let key = self.0.watch(&stream, kind, Interest::Write, poller);
        let key = key.ok_or(failure::NO_DESCRIPTORS)?;
        call.counters.opened();
        let channel = Channel {
            key,
            pool: id,
            counters: Arc::clone(&call.counters),
            address: pool.address,
            protocol,
            stage: Stage::Dialing(stream),
            unsent: VecDeque::new(),
            calls: Vec::new(),
            reused: false,
            heard: 0,
            once,
            pending: false,
        };
        self.0.values.put(key, Box::new(channel));
        if !once {
            pool.channel = Some(key);
        }
        Ok(key)
    }

    pub(super) fn event(&mut self, key: Key, event: Event, context: &mut Context) {
        let Some(channel) = self.0.values.get_mut(key) else {
            return;
        };
        if let Err(why) = channel.begin(event, &context.poller) {
            self.broke(key, why, context);
            return;
        }
        if event.readable {
            channel.heard = context.now;
        }
        self.drive(key, event.readable, context);
    }

    /// Sends and reads what can be now, and tells of the calls that ended.
    pub(super) fn drive(&mut self, key: Key, readable: bool, context: &mut Context) {
        let Some(channel) = self.0.values.get_mut(key) else {
            return;
        };
        let mut ended = Vec::new();
        let driven = channel.drive(readable, &context.poller, &mut ended);
        for (attempt, answer) in ended {
            channel.ended(attempt, answer, context);
        }
        if let Err(why) = driven {
            self.broke(key, why, context);
            return;
        }
        // One that carries no more calls is forgotten.
        let pool = context.routes.pool(channel.pool);
        let kept =
            pool.is_some_and(|pool| pool.channel == Some(key) && channel.takes_more(pool.address));
        if !kept && channel.is_idle() {
            self.forget(key, context);
        }
    }

    fn forget(&mut self, key: Key, context: &mut Context) {
        if let Some(channel) = self.0.values.get(key) {
            channel.counters.closed();
            context.routes.forget_channel(channel.pool, key);
            self.0.release(key);
        }
    }

    /// A channel is of no more use: its calls have ended with it.
    fn broke(&mut self, key: Key, why: &'static str, context: &mut Context) {
        if let Some(channel) = self.0.values.get_mut(key) {
            for unsent in mem::take(&mut channel.unsent) {
                channel.unheard(unsent.attempt, why, channel.reused, context);
            }
            self.forget(key, context);
        }
    }

    /// A call is of no use to anybody any more; `None`: it has ended.
    pub(super) fn cancel(
        &mut self,
        channel: Key,
        request: Key,
        operation_id: OperationId,
        context: &mut Context,
    ) -> Option<Attempt> {
        let channel = self.0.values.get_mut(channel)?;
        let attempt = channel.cancel(request, operation_id, context)?;
        context.unload(attempt.pool);
        Some(attempt)
    }

    /// Handles calls whose time is over; `false`: there are none.
    pub(super) fn expire(&mut self, context: &mut Context) -> bool {
        let Some(key) = self.0.late(context.now) else {
            return false;
        };
        let Some(channel) = self.0.values.get_mut(key) else {
            return true;
        };
        let (mut late, mut next) = (Vec::new(), NEVER);
        for attempt in channel.attempts() {
            if attempt.deadline <= context.now {
                late.push(attempt);
            } else {
                next = next.min(attempt.deadline);
            }
        }
        self.0.deadlines.lower(key.index(), next);
        // Nothing was heard since: the callee may be gone without a word. Who comes next
        // finds out over a new connection.
        if late.iter().any(|attempt| attempt.sent > channel.heard) {
            context.routes.forget_channel(channel.pool, key);
        }
        for attempt in late {
            self.cancel(key, attempt.request, attempt.operation_id, context);
            context.lost(attempt, failure::TIMEOUT, false);
        }
        true
    }

    pub(super) fn next_deadline(&self) -> Nanos {
        self.0.next_deadline()
    }

    /// The end of all.
    pub(super) fn end(&mut self, context: &mut Context) {
        for key in self.0.keys() {
            self.forget(key, context);
        }
    }
}
