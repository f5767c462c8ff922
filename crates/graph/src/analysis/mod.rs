//! The analysis of [`traces`], asked about a graph: its topology says what is known of the
//! services, and runs in virtual time for the budget.

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use traces::analysis::{Analysis, Budget, Floors, Known, KnownCall, KnownService};
use traces::{Nanos, Span};

use crate::noise::Noise;
use crate::topology::budget::{Costs, MOST_CALLS_TOGETHER, Simulation};
use crate::topology::{Connections, Edge, Endpoint, Service, Topology};

/// Requests that are run in virtual time for a budget.
const REQUESTS: u64 = 2_000;

/// What is asked of a graph's spans.
#[derive(Debug, Clone, Copy, Default)]
pub struct Question<'a> {
    /// The graph that they are of: gives the entry, the budget and the limits.
    pub topology: Option<&'a Topology>,
    /// The machine's floor.
    pub noise: Option<&'a Noise>,
    /// What work takes, for the budget.
    pub costs: Costs,
    /// What a hop takes, for the budget; `None`: as hops, handling and handing over took in
    /// the run itself.
    pub hop: Option<Nanos>,
    /// What they took when the machine was asked for nothing else.
    pub machine: Option<&'a Floors>,
    /// The path of the requests that are looked at; `None`: that of most of them.
    pub path: Option<&'a str>,
}

impl<'a> Question<'a> {
    /// What a graph's spans say, with the usual costs of work.
    pub fn of(topology: &'a Topology) -> Self {
        Self {
            topology: Some(topology),
            ..Self::default()
        }
    }

    /// Answers it. Time grows with the number of spans, a microsecond or so each.
    pub fn analyse(&self, spans: &[Span]) -> Analysis {
        let known = self.topology.map(known);
        let budget = self.topology.map(|topology| VirtualTime {
            topology,
            costs: self.costs,
            hop: self.hop,
        });
        let noise = self.noise.map(Noise::summary);
        let question = traces::analysis::Question {
            known: known.as_ref(),
            budget: budget.as_ref().map(|budget| budget as &dyn Budget),
            noise: noise.as_ref(),
            machine: self.machine,
            path: self.path,
        };
        question.analyse(spans)
    }
}

/// What a topology says of its services and of who calls whom.
pub fn known(topology: &Topology) -> Known {
    let name = |id| topology.service(id).map(|one| one.name.clone());
    let endpoints = topology.services.iter().flat_map(|one| &one.endpoints);
    let calls: Vec<_> = endpoints.flat_map(Endpoint::calls).collect();
    let made: HashSet<_> = calls.iter().map(|(_, call)| call.edge.0).collect();
    let waits = calls.iter().filter(|(_, call)| call.wait);
    let waits: HashSet<_> = waits.map(|(_, call)| call.edge.0).collect();
    let call = |(at, edge): (u32, &Edge)| {
        let (Connections::Warm(connections) | Connections::Cold(connections)) = edge.connections;
        Some(KnownCall {
            from: name(edge.from)?,
            to: name(edge.to)?,
            connections,
            awaited: !made.contains(&at) || waits.contains(&at),
        })
    };
    Known {
        services: topology.services.iter().map(known_service).collect(),
        calls: (0..).zip(&topology.edges).filter_map(call).collect(),
        entry: name(topology.entry),
        sampled: Some(topology.tracing.sample),
    }
}

fn known_service(service: &Service) -> KnownService {
    let faults = &service.faults;
    let delays = faults.delay_rate > 0.0 && !faults.delay.is_zero();
    KnownService {
        name: service.name.clone(),
        instances: service.replicas,
        workers: service.workers,
        cpu_limit: service.placement.cpu_limit,
        adds_time: delays || service.endpoints.iter().any(|one| !one.latency.is_zero()),
    }
}

/// The budget of a topology: its requests, run in virtual time.
#[derive(Debug)]
struct VirtualTime<'a> {
    topology: &'a Topology,
    costs: Costs,
    hop: Option<Nanos>,
}

impl Budget for VirtualTime<'_> {
    fn requests(
        &self,
        path: &str,
        floors: &Floors,
        each: &mut dyn FnMut(&[Span]),
    ) -> Result<(), String> {
        let costs = match self.hop {
            Some(hop) => Costs { hop, ..self.costs },
            None => Costs {
                hop: floors.hop_ns() as Nanos,
                handling: floors.handling.median_ns as Nanos,
                handoff: floors.handoff.median_ns as Nanos,
                ..self.costs
            },
        };
        let said = |error: crate::topology::budget::BudgetError| error.to_string();
        let mut simulation = Simulation::new(self.topology, path, &costs).map_err(said)?;
        let (mut number, mut calls) = (0, 0);
        while number < REQUESTS && calls < MOST_CALLS_TOGETHER {
            let mut spans = Vec::new();
            calls += simulation.request(number, &mut spans).map_err(said)?.calls;
            number += 1;
            each(&spans);
        }
        Ok(())
    }
}
