//! What a service does for each of its endpoints, flattened for the data path.

use std::sync::Arc;

use crate::amount::Amount;
use crate::topology::{
    Action, Call, Faults, Join, Response, ServiceId, Step, StepId, Topology, Work,
};

/// What one service does for each of its endpoints. Requests hold the one that they began
/// with, so that a new topology never changes one of them.
#[derive(Debug)]
pub struct Program {
    pub(super) seed: u64,
    pub(super) faults: Faults,
    pub(super) endpoints: Vec<Entry>,
    /// In preorder: a node is followed by what is below it.
    pub(super) nodes: Vec<Node>,
    /// Where each step lies among `nodes`, by its id.
    places: Vec<(StepId, usize)>,
}

/// Where an endpoint begins.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) step: StepId,
    pub(super) latency: Amount,
    pub(super) response: Response,
    /// The sequence of all its steps.
    pub(super) root: usize,
}

/// A step. What is below it lies right behind it.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) step: StepId,
    /// `None`: the whole of an endpoint.
    pub(super) parent: Option<usize>,
    /// Behind the last node below this one.
    pub(super) end: usize,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Work(Work),
    Call(Call),
    Sequence,
    Parallel(Join),
}

impl Program {
    /// That of a service. One that the topology does not have answers every request with
    /// 404.
    pub fn compile(topology: &Topology, service: ServiceId) -> Arc<Self> {
        let mut program = Self {
            seed: topology.seed,
            faults: Faults::default(),
            endpoints: Vec::new(),
            nodes: Vec::new(),
            places: Vec::new(),
        };
        if let Some(service) = topology.service(service) {
            program.faults = service.faults.clone();
            for endpoint in &service.endpoints {
                let root = program.nodes.len();
                program.endpoints.push(Entry {
                    step: endpoint.step,
                    latency: endpoint.latency.clone(),
                    response: endpoint.response.clone(),
                    root,
                });
                program.add(None, endpoint.step, Kind::Sequence, &endpoint.steps);
            }
        }
        program.places.sort_unstable();
        Arc::new(program)
    }

    /// Adds a node and all that is below it.
    fn add(&mut self, parent: Option<usize>, step: StepId, kind: Kind, below: &[Step]) {
        let at = self.nodes.len();
        self.nodes.push(Node {
            step,
            parent,
            end: at + 1,
            kind,
        });
        for step in below {
            self.places.push((step.id, self.nodes.len()));
            let (kind, below): (_, &[Step]) = match &step.action {
                Action::Work(work) => (Kind::Work(work.clone()), &[]),
                Action::Call(call) => (Kind::Call(call.clone()), &[]),
                Action::Sequence(steps) => (Kind::Sequence, steps),
                Action::Parallel { branches, join } => (Kind::Parallel(*join), branches),
            };
            self.add(Some(at), step.id, kind, below);
        }
        self.nodes[at].end = self.nodes.len();
    }

    /// The call that a step makes; `None`: the step makes none.
    pub fn call(&self, step: StepId) -> Option<&Call> {
        match self.kind(step)? {
            Kind::Call(call) => Some(call),
            _ => None,
        }
    }

    /// The work that a step does; `None`: the step does none.
    pub fn work(&self, step: StepId) -> Option<&Work> {
        match self.kind(step)? {
            Kind::Work(work) => Some(work),
            _ => None,
        }
    }

    fn kind(&self, step: StepId) -> Option<&Kind> {
        let at = self
            .places
            .binary_search_by_key(&step, |(id, _)| *id)
            .ok()?;
        let (_, node) = self.places.get(at)?;
        self.nodes.get(*node).map(|node| &node.kind)
    }

    /// The first node below `node`.
    pub(super) fn first(&self, node: usize) -> Option<usize> {
        (node + 1 < self.nodes[node].end).then_some(node + 1)
    }

    /// The node behind `node` with the same parent.
    pub(super) fn next(&self, node: usize) -> Option<usize> {
        let parent = self.nodes[node].parent?;
        let next = self.nodes[node].end;
        (next < self.nodes[parent].end).then_some(next)
    }
}
