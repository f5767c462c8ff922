//! What every part of a thread works with, and what parts leave for others to do.

use std::collections::VecDeque;

use traces::context;
use traces::ids::Run;
use traces::{SpanId, TraceId};
use wire::clock;
use wire::poller::Poller;
use wire::slab::Key;

use super::flight::{Active, Attempt, PoolId};
use super::flights::Flights;
use super::instances::Instances;
use super::recordings::Recordings;
use super::routes::Routes;
use crate::Nanos;
use crate::script::{Outcome, Ticket};
use crate::trace::Recorder;

/// Bytes that one read takes.
const ROOM: usize = 64 * 1024;

/// Something to do. None of it is done while something else is: so each may change what it
/// works on.
pub(super) enum Todo {
    /// A request is there.
    Begin(Key),
    /// Something that a request waited for has ended.
    Ended(Key, Ticket, Outcome),
    /// A request's time is over.
    Expired(Key),
    /// An answer that took several sends is sent.
    Sent(Key),
    /// A caller's connection may go on.
    Resume(Key),
    /// There may be a connection for those who wait.
    Dispatch(PoolId),
    /// The next of the attempts that are to be made once more.
    Retry,
    /// A caller's connection of HTTP/2 has something to send.
    Front(Key),
    /// A connection of HTTP/2 to a callee has.
    Channel(Key),
    /// A request is of no use to anybody.
    Abandon(Key, &'static str),
}

/// The tools of one thread. Each keeps its own rules; together they have none.
pub(super) struct Context {
    pub(super) poller: Poller,
    pub(super) instances: Instances,
    pub(super) flights: Flights,
    pub(super) routes: Routes,
    pub(super) recordings: Recordings,
    pub(super) todo: VecDeque<Todo>,
    /// Attempts to make once more, over new connections.
    pub(super) retries: VecDeque<Attempt>,
    /// Where bytes are read into.
    pub(super) room: Vec<u8>,
    /// When the event came that is being handled.
    pub(super) now: Nanos,
    /// When the kernel last told of events.
    pub(super) woken: Nanos,
}

impl Context {
    pub(super) fn new(poller: Poller, run: Run, recorder: Recorder) -> Self {
        Self {
            poller,
            instances: Instances::new(run),
            flights: Flights::default(),
            routes: Routes::default(),
            recordings: Recordings(recorder),
            todo: VecDeque::new(),
            retries: VecDeque::new(),
            room: vec![0; ROOM],
            now: clock::now(),
            woken: 0,
        }
    }

    /// The moment after a time from now.
    pub(super) fn after(&self, time: Nanos) -> Nanos {
        self.now.saturating_add(time)
    }

    /// A request with a path and fields, which asks for a revision if it must; `None`: the
    /// instance does nothing.
    pub(super) fn new_request<'a>(
        &mut self,
        instance: usize,
        revision: Option<&[u8]>,
        path: &[u8],
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
    ) -> Option<Active> {
        let plan = self.instances.plan_for(instance, revision)?;
        let mut active = self.flights.begin(plan);
        let (plan, flight) = (&active.plan, &mut active.flight);
        flight.instance = instance;
        flight.path.extend_from_slice(path);
        flight.endpoint = plan.find(&flight.path);
        flight.started = self.woken.min(self.now);
        flight.queue = self.now.saturating_sub(flight.started);
        let context = context::read(fields, &mut flight.passed);
        flight.trace = if context.trace == TraceId::default() {
            self.instances.new_trace(instance, plan.topology.seed)
        } else {
            context.trace
        };
        flight.parent = context.parent;
        flight.span = SpanId::child(context.parent, flight.trace, 0, 0);
        flight.sampled = plan.sampler.samples(&context, flight.trace);
        flight.debug = context.debug;
        Some(active)
    }

    /// An attempt ended without an answer.
    pub(super) fn unanswered(&mut self, active: &mut Active, attempt: &Attempt, why: &'static str) {
        self.recordings.call(active, attempt, 0, why, self.now);
        let flight = &mut active.flight;
        if flight.failed_edge == Some(attempt.edge) {
            // What an earlier attempt was told does not hold for this one.
            flight.failed_edge = None;
            flight.failed.clear();
        }
        self.ended(attempt.flight, attempt.ticket, Outcome::Unanswered(why));
    }

    /// An attempt that was sent got no answer; `race`: the callee may have closed the
    /// connection while it was idle, so that it is made once more over a new one.
    pub(super) fn lost(&mut self, mut attempt: Attempt, why: &'static str, race: bool) {
        if race {
            attempt.fresh = true;
            self.retries.push_back(attempt);
            self.todo.push_back(Todo::Retry);
        } else if let Some(mut active) = self.flights.take(attempt.flight) {
            active.flight.close(attempt.ticket);
            self.unanswered(&mut active, &attempt, why);
            self.flights.put(active);
        }
    }

    /// Something that a request waited for has ended, of which it will be told.
    pub(super) fn ended(&mut self, flight: Key, ticket: Ticket, outcome: Outcome) {
        self.todo.push_back(Todo::Ended(flight, ticket, outcome));
    }

    /// There may be room in a pool for those who wait for it.
    pub(super) fn freed(&mut self, pool: PoolId) {
        if self.routes.is_wanted(pool) {
            self.todo.push_back(Todo::Dispatch(pool));
        }
    }

    /// A call over HTTP/2 has ended: its pool has room for another one.
    pub(super) fn unload(&mut self, id: PoolId) {
        if let Some(pool) = self.routes.pool(id) {
            pool.load = pool.load.saturating_sub(1);
        }
        self.freed(id);
    }
}
