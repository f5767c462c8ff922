//! What every part of a thread works with, and what parts leave for others to do.

use std::collections::VecDeque;

use traces::context;
use traces::ids::Run;
use traces::{SpanId, TraceId};
use wire::clock;
use wire::poller::Poller;
use wire::slab::Key;

use super::active_requests::ActiveRequests;
use super::instances::Instances;
use super::recordings::Recordings;
use super::request_state::{ActiveRequest, Attempt, PoolId};
use super::routes::Routes;
use crate::Nanos;
use crate::script::{OperationId, Outcome};
use crate::trace::Recorder;

/// Bytes that one read takes.
const ROOM: usize = 64 * 1024;

/// Something to do. None of it is done while something else is: so each may change what it
/// works on.
pub(super) enum Deferred {
    /// A request is there.
    Begin(Key),
    /// Something that a request waited for has ended.
    Ended(Key, OperationId, Outcome),
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
    Http2Caller(Key),
    /// A connection of HTTP/2 to a callee has.
    Channel(Key),
    /// A request is of no use to anybody.
    Abandon(Key, &'static str),
}

/// The tools of one thread. Each keeps its own rules; together they have none.
pub(super) struct Context {
    pub(super) poller: Poller,
    pub(super) instances: Instances,
    pub(super) active_requests: ActiveRequests,
    pub(super) routes: Routes,
    pub(super) recordings: Recordings,
    pub(super) deferred: VecDeque<Deferred>,
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
            active_requests: ActiveRequests::default(),
            routes: Routes::default(),
            recordings: Recordings(recorder),
            deferred: VecDeque::new(),
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
    ) -> Option<ActiveRequest> {
        let plan = self.instances.plan_for(instance, revision)?;
        let mut active = self.active_requests.begin(plan);
        let (plan, state) = (&active.plan, &mut active.state);
        state.instance = instance;
        state.path.extend_from_slice(path);
        state.endpoint = plan.find(&state.path);
        state.started = self.woken.min(self.now);
        state.queue = self.now.saturating_sub(state.started);
        let context = context::read(fields, &mut state.passed);
        state.trace = if context.trace == TraceId::default() {
            self.instances.new_trace(instance, plan.topology.seed)
        } else {
            context.trace
        };
        state.parent = context.parent;
        state.span = SpanId::child(context.parent, state.trace, 0, 0);
        state.sampled = plan.sampler.samples(&context, state.trace);
        state.debug = context.debug;
        Some(active)
    }

    /// An attempt ended without an answer.
    pub(super) fn unanswered(
        &mut self,
        active: &mut ActiveRequest,
        attempt: &Attempt,
        why: &'static str,
    ) {
        self.recordings.call(active, attempt, 0, why, self.now);
        let state = &mut active.state;
        if state.failed_edge == Some(attempt.edge) {
            // What an earlier attempt was told does not hold for this one.
            state.failed_edge = None;
            state.failed.clear();
        }
        self.ended(
            attempt.request,
            attempt.operation_id,
            Outcome::Unanswered(why),
        );
    }

    /// An attempt that was sent got no answer; `race`: the callee may have closed the
    /// connection while it was idle, so that it is made once more over a new one.
    pub(super) fn lost(&mut self, mut attempt: Attempt, why: &'static str, race: bool) {
        if race {
            attempt.fresh = true;
            self.retries.push_back(attempt);
            self.deferred.push_back(Deferred::Retry);
        } else if let Some(mut active) = self.active_requests.take(attempt.request) {
            active.state.close(attempt.operation_id);
            self.unanswered(&mut active, &attempt, why);
            self.active_requests.put(active);
        }
    }

    /// Something that a request waited for has ended, of which it will be told.
    pub(super) fn ended(&mut self, request: Key, operation_id: OperationId, outcome: Outcome) {
        self.deferred
            .push_back(Deferred::Ended(request, operation_id, outcome));
    }

    /// There may be room in a pool for those who wait for it.
    pub(super) fn freed(&mut self, pool: PoolId) {
        if self.routes.is_wanted(pool) {
            self.deferred.push_back(Deferred::Dispatch(pool));
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
