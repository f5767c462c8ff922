//! Calls: attempts, and those who wait for a connection.

mod causes;
mod channel;
mod channels;
mod link;
mod links;

use traces::failure;
use wire::poller::Event;
use wire::slab::Key;

use self::channels::Channels;
use self::links::Links;
use super::context::Context;
use super::plan::Plan;
use super::request_state::{ActiveRequest, Attempt, Open, OpenKind, PoolId};
use crate::Nanos;
use crate::metrics::ClientCounters;
use crate::script::{Command, OperationId, Outcome};

/// See the module.
#[derive(Default)]
pub(super) struct Calls {
    links: Links,
    channels: Channels,
}

impl Calls {
    /// Takes over whom an instance calls now.
    pub(super) fn adopt(&mut self, instance: usize, plan: &Plan, context: &mut Context) {
        for key in context.routes.adopt(instance, plan) {
            self.links.close(key, context);
        }
    }

    /// A script wants an attempt of a call.
    pub(super) fn call(
        &mut self,
        active: &mut ActiveRequest,
        command: &Command,
        context: &mut Context,
    ) {
        let Command::Call {
            operation_id,
            edge,
            step,
            bytes,
            deadline,
            attempt,
            span,
        } = *command
        else {
            return;
        };
        let instance = active.state.instance;
        let found = active.plan.call(step).and_then(|call| {
            let callee = active.plan.callees.get(call.slot)?.as_ref()?;
            let next = context
                .routes
                .next(instance, call.slot, callee.addresses.len());
            Some((call, next?))
        });
        let Some((call, (pool, room))) = found else {
            let refused = Outcome::Unanswered(failure::REFUSED);
            context.ended(active.key, operation_id, refused);
            return;
        };
        let attempt = Attempt {
            request: active.key,
            pool,
            operation_id,
            edge,
            step,
            bytes,
            deadline,
            number: attempt,
            fresh: false,
            span,
            wanted: context.now,
            sent: 0,
        };
        call.counters.began(attempt.number);
        if room {
            self.make(active, attempt, context);
        } else if context.routes.enqueue(attempt) {
            call.counters.waits();
            let open = Open {
                operation_id,
                what: OpenKind::Queued(pool),
                until: deadline,
            };
            context.active_requests.wait(active, open);
        } else {
            context.unanswered(active, &attempt, failure::FULL);
        }
    }

    /// Makes an attempt, for which there is room.
    fn make(&mut self, active: &mut ActiveRequest, attempt: Attempt, context: &mut Context) {
        if context
            .routes
            .route(attempt.pool)
            .is_some_and(|route| route.streams)
        {
            self.channels.attempt(active, attempt, context);
        } else {
            self.links.attempt(active, attempt, context);
        }
    }

    /// There may be a connection for those who wait.
    pub(super) fn dispatch(&mut self, id: PoolId, context: &mut Context) {
        while let Some(attempt) = context.routes.dequeue(id) {
            self.go_on(attempt, context, |counters| counters.waited());
        }
    }

    /// An attempt is made once more.
    pub(super) fn retry(&mut self, context: &mut Context) {
        if let Some(attempt) = context.retries.pop_front() {
            self.go_on(attempt, context, |_| ());
        }
    }

    /// Makes an attempt that a request waits for already.
    fn go_on(&mut self, attempt: Attempt, context: &mut Context, note: impl Fn(&ClientCounters)) {
        let Some(mut active) = context.active_requests.take(attempt.request) else {
            return;
        };
        // One that was given up meanwhile is not among what its request waits for.
        if active.state.close(attempt.operation_id).is_some() {
            if let Some(call) = active.plan.call(attempt.step) {
                note(&call.counters);
            }
            self.make(&mut active, attempt, context);
        }
        context.active_requests.put(active);
    }

    /// A call waits for a connection no more.
    pub(super) fn leave_queue(
        id: PoolId,
        active: &ActiveRequest,
        operation_id: OperationId,
        context: &mut Context,
    ) -> Option<Attempt> {
        let attempt = context.routes.leave_queue(id, active.key, operation_id)?;
        if let Some(call) = active.plan.call(attempt.step) {
            call.counters.waited();
        }
        Some(attempt)
    }

    /// Cuts off what a request waits for; `None`: that is no call, or one that has ended.
    pub(super) fn give_up(
        &mut self,
        active: &ActiveRequest,
        open: Open,
        context: &mut Context,
    ) -> Option<Attempt> {
        let (request, operation_id) = (active.key, open.operation_id);
        match open.what {
            OpenKind::Call(link) => self.links.close(link, context),
            OpenKind::Stream(channel) => {
                self.channels
                    .cancel(channel, request, operation_id, context)
            }
            OpenKind::Queued(pool) => Self::leave_queue(pool, active, operation_id, context),
            OpenKind::Job(_) | OpenKind::Sleep(..) | OpenKind::Pause => None,
        }
    }

    pub(super) fn link_event(&mut self, key: Key, event: Event, context: &mut Context) {
        self.links.event(key, event, context);
    }

    pub(super) fn channel_event(&mut self, key: Key, event: Event, context: &mut Context) {
        self.channels.event(key, event, context);
    }

    /// A connection of HTTP/2 has something to send.
    pub(super) fn drive_channel(&mut self, key: Key, context: &mut Context) {
        self.channels.drive(key, false, context);
    }

    /// Handles calls whose time is over; `false`: there are none.
    pub(super) fn expire(&mut self, context: &mut Context) -> bool {
        self.links.expire(context) || self.channels.expire(context)
    }

    pub(super) fn next_deadline(&self) -> Nanos {
        self.links
            .next_deadline()
            .min(self.channels.next_deadline())
    }

    /// The end of all.
    pub(super) fn end(&mut self, context: &mut Context) {
        self.links.end(context);
        self.channels.end(context);
    }
}
