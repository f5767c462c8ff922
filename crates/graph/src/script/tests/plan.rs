//! Topologies in few words.

use crate::Nanos;
use crate::amount::Amount;
use crate::topology::{
    Action, Call, Connections, Edge, EdgeId, Endpoint, Faults, Join, Placement, Protocol, Response,
    Service, ServiceId, Step, StepId, Topology, Tracing, Work,
};

pub(super) const MS: Nanos = 1_000_000;

/// What a test says of a service.
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) faults: Faults,
    pub(super) latency: Amount,
}

impl Plan {
    pub(super) fn new(steps: Vec<Step>) -> Self {
        Self {
            steps,
            faults: Faults::default(),
            latency: Amount::ZERO,
        }
    }
}

/// Services in order; the edge `n` leads to the service `n`, whoever calls.
pub(super) fn topology(seed: u64, plans: Vec<Plan>) -> Topology {
    let edge = |to| Edge {
        from: ServiceId(0),
        to: ServiceId(to),
        connections: Connections::Warm(64),
    };
    let count = u32::try_from(plans.len()).unwrap();
    let named = plans.into_iter().enumerate();
    Topology {
        name: "test".into(),
        seed,
        services: named.map(|(at, plan)| service(at, plan)).collect(),
        edges: (0..count).map(edge).collect(),
        entry: ServiceId(0),
        tracing: Tracing::default(),
        background: Vec::new(),
    }
}

fn service(at: usize, mut plan: Plan) -> Service {
    number(&mut plan.steps, &mut 2);
    let endpoint = Endpoint {
        path: "/".into(),
        steps: plan.steps,
        response: Response::Bytes(Amount::Constant(7.0)),
        latency: plan.latency,
        step: StepId(1),
    };
    Service {
        name: format!("s{at}"),
        protocol: Protocol::Http1,
        replicas: 1,
        workers: 1,
        queue: 10,
        endpoints: vec![endpoint],
        faults: plan.faults,
        placement: Placement::default(),
        labels: Vec::new(),
    }
}

fn number(steps: &mut [Step], next: &mut u32) {
    for step in steps {
        step.id = StepId(*next);
        *next += 1;
        match &mut step.action {
            Action::Sequence(steps) => number(steps, next),
            Action::Parallel { branches, .. } => number(branches, next),
            Action::Work(_) | Action::Call(_) => {}
        }
    }
}

fn step(action: Action) -> Step {
    let id = StepId(0);
    Step { id, action }
}

pub(super) fn constant(value: u32) -> Amount {
    Amount::Constant(value.into())
}

/// A call of the service `to` as it is without further keys; the timeout is 1 s.
pub(super) fn plain(to: u32) -> Call {
    Call {
        edge: EdgeId(to),
        path: None,
        probability: 1.0,
        count: constant(1),
        request: constant(0),
        timeout: 1000 * MS,
        retries: 0,
        backoff: 0,
        wait: true,
    }
}

pub(super) fn call(to: u32) -> Step {
    step(Action::Call(plain(to)))
}

pub(super) fn call_with(to: u32, change: impl FnOnce(&mut Call)) -> Step {
    let mut call = plain(to);
    change(&mut call);
    step(Action::Call(call))
}

pub(super) fn work(work: Work) -> Step {
    step(Action::Work(work))
}

pub(super) fn cpu(nanos: Nanos) -> Step {
    work(Work::Cpu(Amount::Constant(nanos as f64)))
}

pub(super) fn sleep(nanos: Nanos) -> Step {
    work(Work::Sleep(Amount::Constant(nanos as f64)))
}

pub(super) fn sequence(steps: Vec<Step>) -> Step {
    step(Action::Sequence(steps))
}

pub(super) fn parallel(join: Join, branches: Vec<Step>) -> Step {
    step(Action::Parallel { branches, join })
}
