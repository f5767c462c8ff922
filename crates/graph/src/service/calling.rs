//! Calls: attempts, and those who wait for a connection.

use std::sync::Arc;

use wire::clock;
use wire::slab::Key;

use traces::failure;

use super::event_loop::{EventLoop, Instance, Todo};
use super::flight::{Flight, Open, What};
use super::link::{Attempt, MOST_WAITING, Pool, PoolId, Route};
use super::message::write_request;
use super::plan::{CallPlan, Plan};
use super::recording::GONE;
use crate::script::{Command, Outcome, Ticket};

impl EventLoop {
    /// A script wants an attempt of a call.
    pub(super) fn call(
        &mut self,
        key: Key,
        flight: &mut Flight,
        plan: &Arc<Plan>,
        command: &Command,
    ) {
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
        let attempt = Attempt {
            flight: key,
            ticket,
            edge,
            step,
            bytes,
            deadline,
            number: attempt,
            span,
            wanted: self.now,
            sent: 0,
        };
        let instance = flight.instance;
        let found = plan.call(step).and_then(|call| {
            let callee = plan.callees.get(call.slot)?.as_ref()?;
            let route = self
                .instances
                .get_mut(instance)?
                .routes
                .get_mut(call.slot)?;
            let place = route.next(callee.addresses.len());
            let (streams, most) = (route.streams, route.most);
            let pool = route.pools.get_mut(place)?;
            let room = pool.waiting.is_empty() && pool.has_room(streams, most);
            Some((call, pool, place, room))
        });
        let Some((call, pool, place, room)) = found else {
            self.todo.push_back(Todo::Ended(
                key,
                ticket,
                Outcome::Unanswered(failure::REFUSED),
            ));
            return;
        };
        call.counters.began(attempt.number);
        let id = PoolId {
            instance,
            slot: call.slot,
            place,
        };
        if room {
            self.make(flight, plan, call, id, attempt);
        } else if pool.waiting.len() < MOST_WAITING {
            pool.waiting.push_back(attempt);
            call.counters.waits();
            let what = What::Queued(call.slot, place);
            flight.open.push(Open::until(ticket, what, deadline));
            self.timers.waits.lower(key.index(), deadline);
        } else {
            self.unanswered(flight, &attempt, failure::FULL);
        }
    }

    pub(super) fn pool(&mut self, id: PoolId) -> Option<&mut Pool> {
        pool(&mut self.instances, id)
    }

    /// Makes an attempt, for which there is room.
    fn make(
        &mut self,
        flight: &mut Flight,
        plan: &Plan,
        call: &CallPlan,
        id: PoolId,
        attempt: Attempt,
    ) {
        if route(&mut self.instances, id).is_some_and(|route| route.streams) {
            self.stream_attempt(flight, plan, call, id, attempt, false);
        } else {
            self.attempt(flight, plan, call, id, attempt, false);
        }
    }

    /// Sends the request of an attempt, over a connection that is kept, or, `fresh`, over
    /// a new one.
    pub(super) fn attempt(
        &mut self,
        flight: &mut Flight,
        plan: &Plan,
        call: &CallPlan,
        id: PoolId,
        mut attempt: Attempt,
        fresh: bool,
    ) {
        let mut kept = !fresh;
        loop {
            let idle = self
                .pool(id)
                .filter(|_| kept)
                .and_then(|pool| pool.idle.pop())
                .and_then(|key| self.links.take(key));
            let mut link = match idle.map_or_else(|| self.open_link(id, call), Ok) {
                Ok(link) => link,
                Err(cause) => {
                    self.unanswered(flight, &attempt, cause);
                    return;
                }
            };
            self.now = clock::now();
            attempt.sent = self.now;
            link.attempt = Some(attempt);
            link.answer.wanted = plan.endpoint(flight.endpoint).is_some_and(|one| one.echo);
            write_request(plan, call, flight, &attempt, self.now, &mut link.outbox);
            match self.send_request(&mut link) {
                Ok(()) => {
                    let what = What::Call(link.key);
                    let ticket = attempt.ticket;
                    flight.open.push(Open::new(ticket, what));
                    let place = link.key.index();
                    self.timers.links.set(place, attempt.deadline);
                    self.links.put(link.key, link);
                    return;
                }
                Err(why) => {
                    let reused = link.reused;
                    self.drop_link(link);
                    if !reused {
                        self.unanswered(flight, &attempt, why);
                        return;
                    }
                    // The callee closed it while it was idle.
                    kept = false;
                }
            }
        }
    }

    /// There may be a connection for those who wait.
    pub(super) fn dispatch(&mut self, id: PoolId) {
        loop {
            let Some(route) = route(&mut self.instances, id) else {
                return;
            };
            let (streams, most) = (route.streams, route.most);
            let Some(pool) = route.pools.get_mut(id.place) else {
                return;
            };
            if !pool.has_room(streams, most) {
                return;
            }
            let Some(attempt) = pool.waiting.pop_front() else {
                return;
            };
            let key = attempt.flight;
            let Some(mut flight) = self.flights.take(key) else {
                continue;
            };
            flight.close(attempt.ticket);
            if let Some(plan) = flight.plan.clone()
                && let Some(call) = plan.call(attempt.step)
            {
                call.counters.waited();
                self.make(&mut flight, &plan, call, id, attempt);
            }
            self.flights.put(key, flight);
        }
    }

    /// An attempt ended without an answer.
    pub(super) fn unanswered(&mut self, flight: &mut Flight, attempt: &Attempt, why: &'static str) {
        self.record_call(flight, attempt, 0, why);
        if flight.failed_edge == Some(attempt.edge) {
            // What an earlier attempt was told does not hold for this one.
            flight.failed_edge = None;
            flight.failed.clear();
        }
        let outcome = Outcome::Unanswered(why);
        self.todo
            .push_back(Todo::Ended(attempt.flight, attempt.ticket, outcome));
    }

    /// The request of a call is of no use to anybody any more.
    pub(super) fn cut_off(&mut self, key: Key, flight: &Flight) {
        if let Some(mut link) = self.links.take(key) {
            if let Some(attempt) = link.attempt.take() {
                self.record_call(flight, &attempt, 0, GONE);
            }
            self.drop_link(link);
        }
    }

    /// A call waits for a connection no more.
    pub(super) fn leave_queue(
        &mut self,
        flight: &Flight,
        key: Key,
        ticket: Ticket,
        (slot, place): (usize, usize),
    ) -> Option<Attempt> {
        let id = PoolId {
            instance: flight.instance,
            slot,
            place,
        };
        let pool = pool(&mut self.instances, id)?;
        let is = |one: &Attempt| one.flight == key && one.ticket == ticket;
        let at = pool.waiting.iter().position(is)?;
        let attempt = pool.waiting.remove(at)?;
        if let Some(call) = flight
            .plan
            .as_ref()
            .and_then(|plan| plan.call(attempt.step))
        {
            call.counters.waited();
        }
        Some(attempt)
    }
}

/// The route of one of these instances to which a pool belongs.
pub(super) fn route(instances: &mut [Instance], id: PoolId) -> Option<&mut Route> {
    instances.get_mut(id.instance)?.routes.get_mut(id.slot)
}

/// A pool of one of these instances.
pub(super) fn pool(instances: &mut [Instance], id: PoolId) -> Option<&mut Pool> {
    route(instances, id)?.pools.get_mut(id.place)
}
