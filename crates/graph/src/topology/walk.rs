//! Ways over a graph: its steps in the order of the file, its services in the order of the
//! calls.

use std::collections::{HashMap, HashSet};

use super::{Action, Call, Edge, EdgeId, Endpoint, ServiceId, Step, StepId, Topology, Work};

/// Cycles that are told; a graph of services that all call each other has very many.
const MOST_CYCLES: usize = 32;

/// What a walk along the calls finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// Every service, behind those that call it; of no meaning if there are cycles.
    pub(super) order: Vec<ServiceId>,
    /// The edges of each cycle, one for each edge that leads back: the first [`MOST_CYCLES`].
    pub(super) cycles: Vec<Vec<EdgeId>>,
}

/// As [`along_calls`], but for calls of a service by itself, of which some end: see
/// [`endless_within`].
pub(super) fn between_services(topology: &Topology) -> Found {
    let apart = |edge: &Edge| edge.from != edge.to;
    walk(topology.services.len(), &topology.edges, apart)
}

/// The edges by which a service calls itself without an end: its endpoints call each other in
/// a circle. One that calls another of its endpoints is none.
pub(super) fn endless_within(topology: &Topology) -> impl Iterator<Item = EdgeId> {
    let own = (0..).zip(&topology.edges);
    let own = own.filter(|(_, edge)| edge.from == edge.to);
    let endless = own.filter(|(_, edge)| {
        let service = topology.service(edge.from);
        let (endpoints, calls) = (
            service.map_or(0, |one| one.endpoints.len()),
            within(topology, edge.from),
        );
        !along_calls(endpoints, &calls).cycles.is_empty()
    });
    endless.map(|(id, _)| EdgeId(id))
}

/// The calls of a service by itself. Its endpoints stand for services, by their places.
fn within(topology: &Topology, id: ServiceId) -> Vec<Edge> {
    let Some(service) = topology.service(id) else {
        return Vec::new();
    };
    let mut calls = Vec::new();
    let place = |at: usize| ServiceId(u32::try_from(at).unwrap_or(u32::MAX));
    for (at, endpoint) in service.endpoints.iter().enumerate() {
        for (_, call) in endpoint.calls() {
            let edge = topology.edge(call.edge).filter(|edge| edge.to == id);
            let to = match &call.path {
                // The path that it has leads to it again.
                None => Some(at),
                Some(path) => service.endpoint(path).map(|(to, _)| to),
            };
            calls.extend(edge.zip(to).map(|(edge, to)| Edge {
                from: place(at),
                to: place(to),
                connections: edge.connections,
            }));
        }
    }
    calls
}

/// Walks from every service along the edges, in depth first. Edges name services below
/// `services`.
pub(super) fn along_calls(services: usize, edges: &[Edge]) -> Found {
    walk(services, edges, |_| true)
}

fn walk(services: usize, edges: &[Edge], follow: impl Fn(&Edge) -> bool) -> Found {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        OnPath,
        Left,
    }
    let mut out: Vec<Vec<EdgeId>> = vec![Vec::new(); services];
    for (edge, id) in edges.iter().zip(0..).filter(|(edge, _)| follow(edge)) {
        out[edge.from.0 as usize].push(EdgeId(id));
    }
    let mut marks = vec![Mark::New; services];
    let mut order = Vec::with_capacity(services);
    let mut cycles = Vec::new();
    // The services of the path, each with how many of its edges have been followed.
    let mut path: Vec<(usize, usize)> = Vec::new();
    for start in 0..services {
        if marks[start] != Mark::New {
            continue;
        }
        marks[start] = Mark::OnPath;
        path.push((start, 0));
        while let Some((at, followed)) = path.last_mut() {
            let here = *at;
            let Some(edge) = out[here].get(*followed).copied() else {
                marks[here] = Mark::Left;
                order.push(ServiceId(u32::try_from(here).unwrap_or(u32::MAX)));
                path.pop();
                continue;
            };
            *followed += 1;
            let to = edges[edge.0 as usize].to.0 as usize;
            match marks[to] {
                Mark::New => {
                    marks[to] = Mark::OnPath;
                    path.push((to, 0));
                }
                Mark::OnPath if cycles.len() < MOST_CYCLES => {
                    let from = path.iter().position(|(at, _)| *at == to).unwrap_or(0);
                    let cycle = path[from..].iter();
                    cycles.push(cycle.map(|(at, followed)| out[*at][followed - 1]).collect());
                }
                Mark::OnPath | Mark::Left => {}
            }
        }
    }
    order.reverse();
    Found { order, cycles }
}

/// For each service, whether calls lead to it from `entry`.
pub(super) fn reached(topology: &Topology, entry: ServiceId) -> Vec<bool> {
    let mut reached = vec![false; topology.services.len()];
    let mut calls: Vec<Vec<ServiceId>> = vec![Vec::new(); topology.services.len()];
    for edge in &topology.edges {
        calls[edge.from.0 as usize].push(edge.to);
    }
    let mut open = vec![entry];
    while let Some(id) = open.pop() {
        if !std::mem::replace(&mut reached[id.0 as usize], true) {
            open.extend(&calls[id.0 as usize]);
        }
    }
    reached
}

/// The services that no other calls.
pub(super) fn uncalled(topology: &Topology) -> Vec<ServiceId> {
    let called: HashSet<ServiceId> = topology.edges.iter().map(|edge| edge.to).collect();
    let ids = (0..).map(ServiceId).zip(&topology.services);
    let uncalled = ids.map(|(id, _)| id).filter(|id| !called.contains(id));
    uncalled.collect()
}

/// Visits steps and those within them, each before its own.
fn each_step<'a>(steps: &'a [Step], visit: &mut impl FnMut(&'a Step)) {
    for step in steps {
        visit(step);
        match &step.action {
            Action::Sequence(inner) => each_step(inner, visit),
            Action::Parallel { branches, .. } => each_step(branches, visit),
            Action::Work(_) | Action::Call(_) => {}
        }
    }
}

/// Visits steps and those within them, each before its own.
pub(super) fn each_step_mut(steps: &mut [Step], visit: &mut impl FnMut(&mut Step)) {
    for step in steps {
        visit(step);
        match &mut step.action {
            Action::Sequence(inner) => each_step_mut(inner, visit),
            Action::Parallel { branches, .. } => each_step_mut(branches, visit),
            Action::Work(_) | Action::Call(_) => {}
        }
    }
}

impl Endpoint {
    /// Visits its steps and those within them, each before its own.
    pub fn each_step<'a>(&'a self, mut visit: impl FnMut(&'a Step)) {
        each_step(&self.steps, &mut visit);
    }

    /// Its calls, in the order of their steps.
    pub fn calls(&self) -> Vec<(StepId, &Call)> {
        let mut calls = Vec::new();
        self.each_step(|step| {
            if let Action::Call(call) = &step.action {
                calls.push((step.id, call));
            }
        });
        calls
    }
}

impl Topology {
    /// Every service, behind all that call it.
    pub fn callers_first(&self) -> Vec<ServiceId> {
        between_services(self).order
    }

    /// Every endpoint of a service, by its place, behind those of the service that call it.
    pub fn endpoints_callers_first(&self, id: ServiceId) -> Vec<usize> {
        let endpoints = self.service(id).map_or(0, |one| one.endpoints.len());
        let order = along_calls(endpoints, &within(self, id)).order;
        order.into_iter().map(|place| place.0 as usize).collect()
    }

    /// Visits all work of all services.
    pub(crate) fn each_work_mut(&mut self, mut visit: impl FnMut(&mut Work)) {
        let endpoints = self
            .services
            .iter_mut()
            .flat_map(|service| &mut service.endpoints);
        for endpoint in endpoints {
            each_step_mut(&mut endpoint.steps, &mut |step| {
                if let Action::Work(work) = &mut step.action {
                    visit(work);
                }
            });
        }
    }

    /// Gives edges and steps the numbers that they would have if the graph was read from a
    /// file, and drops edges that no call uses.
    pub(super) fn renumber(&mut self) {
        let mut new: HashMap<EdgeId, EdgeId> = HashMap::new();
        let mut edges = Vec::with_capacity(self.edges.len());
        let mut last = 0;
        let mut next = || {
            last += 1;
            StepId(last)
        };
        for service in &mut self.services {
            for endpoint in &mut service.endpoints {
                endpoint.step = next();
                each_step_mut(&mut endpoint.steps, &mut |step| {
                    step.id = next();
                    if let Action::Call(call) = &mut step.action {
                        let old = call.edge;
                        call.edge = *new.entry(old).or_insert_with(|| {
                            edges.extend(self.edges.get(old.0 as usize).cloned());
                            EdgeId(u32::try_from(edges.len()).unwrap_or(u32::MAX) - 1)
                        });
                    }
                });
            }
        }
        self.edges = edges;
    }
}
