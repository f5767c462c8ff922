//! A graph that a program makes: services and calls first, numbers at the end; and the parts
//! of graphs as they are when nothing is said of them.

use std::collections::HashMap;

use super::{
    Action, Call, Edge, EdgeId, Endpoint, Faults, Placement, Protocol, Service, ServiceId, Step,
    StepId, Topology, Tracing,
};
use crate::amount::Amount;

/// A graph in the making. Whoever makes it sees to it that it has no cycle.
pub(super) struct Draft {
    pub(super) topology: Topology,
    edges: HashMap<(ServiceId, ServiceId), EdgeId>,
}

impl Draft {
    pub(super) fn new(name: &str, seed: u64) -> Self {
        Self {
            topology: Topology {
                name: name.to_owned(),
                seed,
                services: Vec::new(),
                edges: Vec::new(),
                entry: ServiceId(0),
                tracing: Tracing::default(),
                background: Vec::new(),
            },
            edges: HashMap::new(),
        }
    }

    /// Adds a service with the endpoint `/`, which does nothing yet.
    pub(super) fn service(&mut self, name: String) -> ServiceId {
        let id = u32::try_from(self.topology.services.len()).unwrap_or(u32::MAX);
        self.topology.services.push(service(name));
        ServiceId(id)
    }

    /// A call that is always made, once; its edge is added if it is new.
    pub(super) fn call(&mut self, from: ServiceId, to: ServiceId) -> Call {
        let edges = &mut self.topology.edges;
        let edge = *self.edges.entry((from, to)).or_insert_with(|| {
            edges.push(Edge {
                from,
                to,
                connections: super::CONNECTIONS,
            });
            EdgeId(u32::try_from(edges.len()).unwrap_or(u32::MAX) - 1)
        });
        call(edge)
    }

    /// Adds a step to a service's first endpoint.
    pub(super) fn push(&mut self, service: ServiceId, action: Action) {
        let service = self.topology.services.get_mut(service.0 as usize);
        let endpoint = service.and_then(|service| service.endpoints.first_mut());
        if let Some(endpoint) = endpoint {
            endpoint.steps.push(step(action));
        }
    }

    pub(super) fn finish(mut self, entry: ServiceId) -> Topology {
        self.topology.entry = entry;
        self.topology.renumber();
        self.topology
    }
}

/// A service of which nothing is said: it has the endpoint `/`, which does nothing.
pub(super) fn service(name: String) -> Service {
    Service {
        name,
        protocol: Protocol::Http1,
        replicas: 1,
        workers: super::WORKERS,
        queue: super::QUEUE,
        endpoints: vec![endpoint("/")],
        faults: Faults::default(),
        placement: Placement::default(),
        labels: Vec::new(),
    }
}

/// A call of which nothing is said: it is always made, once.
pub(super) fn call(edge: EdgeId) -> Call {
    Call {
        edge,
        path: None,
        probability: 1.0,
        count: Amount::Constant(1.0),
        request: Amount::ZERO,
        timeout: super::TIMEOUT,
        retries: 0,
        backoff: 0,
        wait: true,
    }
}

/// A step without a number yet.
pub(super) fn step(action: Action) -> Step {
    Step {
        id: StepId(0),
        action,
    }
}

/// An endpoint that does nothing yet.
pub(super) fn endpoint(path: &str) -> Endpoint {
    Endpoint {
        path: path.to_owned(),
        steps: Vec::new(),
        response: super::RESPONSE,
        latency: Amount::ZERO,
        step: StepId(0),
    }
}
