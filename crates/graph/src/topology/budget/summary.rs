//! What spans amount to, for each service and edge.

use std::collections::HashMap;

use serde::Serialize;
use stats::nearest_rank;

use crate::Nanos;
use crate::topology::Topology;
use traces::SpanId;
use traces::{Span, SpanKind};

/// Samples that are kept for each service and edge; of more the first are.
const MOST_SAMPLES: usize = 100_000;

/// Where values lie, in nanoseconds. All zero without values.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Half are smaller.
    pub p50: Nanos,
    /// Nine of ten are smaller.
    pub p90: Nanos,
    /// All but one in a hundred are smaller; by few values it says little.
    pub p99: Nanos,
}

impl Spread {
    /// Of values, which it sorts.
    pub fn of(values: &mut [Nanos]) -> Self {
        values.sort_unstable();
        let sum: f64 = values.iter().map(|value| *value as f64).sum();
        let quantile = |q| nearest_rank(values, q).unwrap_or(0);
        Self {
            count: values.len() as u64,
            mean: sum / values.len().max(1) as f64,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
        }
    }
}

/// A service's part.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServiceTime {
    /// Its name.
    pub service: String,
    /// How often a request comes to it, by expectation.
    pub visits: f64,
    /// Visits that failed; they are in no latency.
    pub failed: u64,
    /// From a request's first byte to its answer, with what it calls.
    pub latency: Spread,
    /// Time of its own work for each visit: sleeping and computing, one after the other.
    pub work: Spread,
    /// Processor time of its own work for each visit, by expectation, in nanoseconds.
    pub cpu: f64,
}

/// An edge's part.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EdgeTime {
    /// Who calls.
    pub from: String,
    /// Who is called.
    pub to: String,
    /// Attempts for each request, by expectation.
    pub calls: f64,
    /// Attempts that failed; they are in no latency.
    pub failed: u64,
    /// From the wish to call to the end of the answer.
    pub latency: Spread,
}

/// Every service and edge, in the order of the graph.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The services.
    pub services: Vec<ServiceTime>,
    /// The edges.
    pub edges: Vec<EdgeTime>,
}

impl Summary {
    /// Of the spans of so many requests, in any order. Spans of services and edges that the
    /// graph does not have are left out.
    pub fn of_spans(topology: &Topology, spans: &[Span], requests: u64) -> Self {
        let mut gathered = Gathered::new(topology);
        gathered.add(spans);
        gathered.summary(requests)
    }
}

/// Values so far.
pub(super) struct Gathered<'a> {
    topology: &'a Topology,
    service_of: HashMap<&'a str, usize>,
    edge_of: HashMap<(usize, usize), usize>,
    services: Vec<Part>,
    edges: Vec<Part>,
    /// Own work of the visits whose spans are being added: time, processor time.
    work: HashMap<SpanId, (Nanos, Nanos)>,
}

#[derive(Default)]
struct Part {
    seen: u64,
    failed: u64,
    latencies: Vec<Nanos>,
    work: Vec<Nanos>,
    cpu: f64,
}

impl Part {
    fn add(&mut self, span: &Span) -> bool {
        self.seen += 1;
        let well = (200..400).contains(&span.status);
        if !well {
            self.failed += 1;
        } else if self.latencies.len() < MOST_SAMPLES {
            self.latencies.push(span.end.saturating_sub(span.start));
        }
        well
    }
}

impl<'a> Gathered<'a> {
    pub(super) fn new(topology: &'a Topology) -> Self {
        let names = topology.services.iter().map(|one| one.name.as_str());
        let pair = |edge: &super::super::Edge| (edge.from.0 as usize, edge.to.0 as usize);
        Self {
            topology,
            service_of: names.zip(0..).collect(),
            edge_of: topology.edges.iter().map(pair).zip(0..).collect(),
            services: topology.services.iter().map(|_| Part::default()).collect(),
            edges: topology.edges.iter().map(|_| Part::default()).collect(),
            work: HashMap::new(),
        }
    }

    /// Adds spans; all those of a request belong together.
    pub(super) fn add(&mut self, spans: &[Span]) {
        self.work.clear();
        for span in spans.iter().filter(|span| span.kind == SpanKind::Work) {
            let (wall, cpu) = self.work.entry(span.parent).or_default();
            *wall += span.end.saturating_sub(span.start);
            *cpu += span.cpu;
        }
        for span in spans {
            let Some(&service) = self.service_of.get(&*span.service) else {
                continue;
            };
            match span.kind {
                SpanKind::Server => {
                    let part = &mut self.services[service];
                    let (wall, cpu) = self.work.get(&span.id).copied().unwrap_or_default();
                    if part.add(span) && part.work.len() < MOST_SAMPLES {
                        part.work.push(wall);
                    }
                    part.cpu += cpu as f64;
                }
                SpanKind::Client => {
                    let peer = self.service_of.get(&*span.peer);
                    let edge = peer.and_then(|peer| self.edge_of.get(&(service, *peer)));
                    if let Some(part) = edge.and_then(|edge| self.edges.get_mut(*edge)) {
                        part.add(span);
                    }
                }
                SpanKind::Work | SpanKind::Internal => {}
            }
        }
    }

    pub(super) fn summary(self, requests: u64) -> Summary {
        let each = requests.max(1) as f64;
        let name = |id: super::super::ServiceId| {
            let service = self.topology.service(id);
            service.map_or(String::new(), |one| one.name.clone())
        };
        let services = self.services.into_iter().zip(&self.topology.services);
        let edges = self.edges.into_iter().zip(&self.topology.edges);
        Summary {
            services: services
                .map(|(mut part, service)| ServiceTime {
                    service: service.name.clone(),
                    visits: part.seen as f64 / each,
                    failed: part.failed,
                    latency: Spread::of(&mut part.latencies),
                    work: Spread::of(&mut part.work),
                    cpu: part.cpu / part.seen.max(1) as f64,
                })
                .collect(),
            edges: edges
                .map(|(mut part, edge)| EdgeTime {
                    from: name(edge.from),
                    to: name(edge.to),
                    calls: part.seen as f64 / each,
                    failed: part.failed,
                    latency: Spread::of(&mut part.latencies),
                })
                .collect(),
        }
    }
}
