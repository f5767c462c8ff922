//! The instances of services that live on a thread: what they do, under which revision.

use std::collections::VecDeque;
use std::sync::Arc;

use traces::TraceId;
use traces::ids::Run;

use super::plan::Plan;

/// Revisions that requests may still ask for.
pub(super) const KEPT_REVISIONS: usize = 4;

/// See the module.
pub(super) struct Instances {
    all: Vec<Instance>,
    /// Connections that callers have to all of them.
    callers: usize,
    /// Part of the trace ids that are made here.
    run: Run,
}

struct Instance {
    /// It accepts nothing more, since the host drains.
    leaving: bool,
    /// Connections that callers have to it.
    callers: usize,
    /// The newest is the first.
    plans: VecDeque<Arc<Plan>>,
    /// The number of the next request without a trace, and what to add for the one after.
    number: u64,
    step: u64,
}

impl Instances {
    /// None so far.
    pub(super) fn new(run: Run) -> Self {
        Self {
            all: Vec::new(),
            callers: 0,
            run,
        }
    }

    /// One more, a replica of so many. Requests without a trace are numbered so that
    /// replicas never give the same number.
    pub(super) fn add(&mut self, replica: u32, replicas: u32) {
        self.all.push(Instance {
            leaving: false,
            callers: 0,
            plans: VecDeque::new(),
            number: replica.into(),
            step: replicas.max(1).into(),
        });
    }

    /// An instance does something else from now on.
    pub(super) fn adopt(&mut self, instance: usize, plan: &Arc<Plan>) {
        if let Some(instance) = self.all.get_mut(instance) {
            instance.plans.push_front(Arc::clone(plan));
            instance.plans.truncate(KEPT_REVISIONS);
        }
    }

    /// What an instance does now.
    pub(super) fn plan(&self, instance: usize) -> Option<&Arc<Plan>> {
        self.all.get(instance)?.plans.front()
    }

    /// What an instance does for a request: by the revision that it began under elsewhere,
    /// if that is still kept, else by the newest.
    pub(super) fn plan_for(&self, instance: usize, asked: Option<&[u8]>) -> Option<Arc<Plan>> {
        let plans = &self.all.get(instance)?.plans;
        let of = |asked: &[u8]| plans.iter().find(|plan| plan.fingerprint == asked);
        asked.and_then(of).or_else(|| plans.front()).cloned()
    }

    /// The trace of a request that came without one.
    pub(super) fn new_trace(&mut self, instance: usize, seed: u64) -> TraceId {
        let Some(instance) = self.all.get_mut(instance) else {
            return TraceId::default();
        };
        let number = instance.number;
        instance.number = number.wrapping_add(instance.step);
        TraceId::of_request(seed, self.run, number)
    }

    /// A caller has connected.
    pub(super) fn caller_connected(&mut self, instance: usize) {
        self.callers += 1;
        if let Some(instance) = self.all.get_mut(instance) {
            instance.callers += 1;
            instance
                .plans
                .front()
                .inspect(|plan| plan.counters.accepted());
        }
    }

    /// A caller's connection has ended.
    pub(super) fn caller_disconnected(&mut self, instance: usize) {
        self.callers -= 1;
        if let Some(instance) = self.all.get_mut(instance) {
            instance.callers -= 1;
            instance
                .plans
                .front()
                .inspect(|plan| plan.counters.closed());
        }
    }

    /// How many connections callers have.
    pub(super) fn callers(&self) -> usize {
        self.callers
    }

    /// How many they have to instances that leave.
    pub(super) fn leaving_callers(&self) -> usize {
        let leaving = self.all.iter().filter(|one| one.leaving);
        leaving.map(|one| one.callers).sum()
    }

    /// Whether an instance accepts nothing more.
    pub(super) fn is_leaving(&self, instance: usize) -> bool {
        self.all.get(instance).is_none_or(|one| one.leaving)
    }

    /// Those whom nobody calls from here leave; says which.
    pub(super) fn leave(&mut self) -> Vec<usize> {
        let is_inner = |one: &Instance| one.plans.front().is_some_and(|plan| plan.inner);
        let all = self.all.iter_mut().enumerate();
        let outer = all.filter(|(_, one)| !is_inner(one));
        outer
            .map(|(index, one)| {
                one.leaving = true;
                index
            })
            .collect()
    }

    /// The end: workers do nothing more.
    pub(super) fn stop(&mut self) {
        for plan in self.all.iter_mut().flat_map(|one| one.plans.drain(..)) {
            if let Ok(Some(workers)) = &plan.workers {
                workers.request_stop();
            }
        }
    }
}
