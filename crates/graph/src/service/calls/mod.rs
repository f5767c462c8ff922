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
use super::flight::{Active, Attempt, Open, PoolId, What};
use super::plan::Plan;
use crate::Nanos;
use crate::metrics::ClientCounters;
use crate::script::{Command, Outcome, Ticket};

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
    pub(super) fn call(&mut self, active: &mut Active, command: &Command, context: &mut Context) {
        let Command::Call {
            ticket,
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
        let instance = active.flight.instance;
        let found = active.plan.call(step).and_then(|call| {
            let callee = active.plan.callees.get(call.slot)?.as_ref()?;
            let next = context
                .routes
                .next(instance, call.slot, callee.addresses.len());
            Some((call, next?))
        });
        let Some((call, (pool, room))) = found else {
            let refused = Outcome::Unanswered(failure::REFUSED);
            context.ended(active.key, ticket, refused);
            return;
        };
        let attempt = Attempt {
            flight: active.key,
            pool,
            ticket,
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
                ticket,
                what: What::Queued(pool),
                until: deadline,
            };
            context.flights.wait(active, open);
        } else {
            context.unanswered(active, &attempt, failure::FULL);
        }
    }

    /// Makes an attempt, for which there is room.
    fn make(&mut self, active: &mut Active, attempt: Attempt, context: &mut Context) {
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
        let Some(mut active) = context.flights.take(attempt.flight) else {
            return;
        };
        // One that was given up meanwhile is not among what its request waits for.
        if active.flight.close(attempt.ticket).is_some() {
            if let Some(call) = active.plan.call(attempt.step) {
                note(&call.counters);
            }
            self.make(&mut active, attempt, context);
        }
        context.flights.put(active);
    }

    /// A call waits for a connection no more.
    pub(super) fn leave_queue(
        id: PoolId,
        active: &Active,
        ticket: Ticket,
        context: &mut Context,
    ) -> Option<Attempt> {
        let attempt = context.routes.leave_queue(id, active.key, ticket)?;
        if let Some(call) = active.plan.call(attempt.step) {
            call.counters.waited();
        }
        Some(attempt)
    }

    /// Cuts off what a request waits for; `None`: that is no call, or one that has ended.
    pub(super) fn give_up(
        &mut self,
        active: &Active,
        open: Open,
        context: &mut Context,
    ) -> Option<Attempt> {
        let (flight, ticket) = (active.key, open.ticket);
        match open.what {
            What::Call(link) => self.links.close(link, context),
            What::Stream(channel) => self.channels.cancel(channel, flight, ticket, context),
            What::Queued(pool) => Self::leave_queue(pool, active, ticket, context),
            What::Job(_) | What::Sleep(..) | What::Pause => None,
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
