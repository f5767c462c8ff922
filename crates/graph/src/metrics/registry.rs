//! All counters of a process, by what they are about.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::counters::{
    ClientCounters, ConnectionCounters, InstanceCounters, ServerCounters, WorkCounters,
};
use super::snapshot::{Key, Snapshot, Totals};
use crate::lock;
use crate::topology::{Action, EdgeId, Service, ServiceId, StepId, Topology, Work};

/// The counters of all instances that a process hosts. What is about the same thing adds
/// up over instances. A new profile goes on with the counters of the old one where names
/// are the same.
#[derive(Debug, Default)]
pub struct Metrics {
    all: Mutex<All>,
}

/// By what is counted, then by the replica that counts.
type Series<C> = BTreeMap<Key, BTreeMap<u32, Arc<C>>>;

#[derive(Debug, Default)]
struct All {
    servers: Series<ServerCounters>,
    clients: Series<ClientCounters>,
    works: Series<WorkCounters>,
    connections: Series<ConnectionCounters>,
}

impl Metrics {
    /// No counters.
    pub fn new() -> Self {
        Self::default()
    }

    /// The counters of an instance, made if there are none. A thread asks once for each
    /// profile; all of an instance's must stay on the thread where it lives.
    pub fn instance(
        &self,
        topology: &Topology,
        service: ServiceId,
        replica: u32,
    ) -> Arc<InstanceCounters> {
        let mut all = lock(&self.all);
        let Some(service_of) = topology.service(service) else {
            return Arc::default();
        };
        let name: Arc<str> = service_of.name.as_str().into();
        let mut server = |path| {
            let service = Arc::clone(&name);
            made(&mut all.servers, Key::Server { service, path }, replica)
        };
        let endpoints = service_of.endpoints.iter();
        let endpoints = endpoints.map(|endpoint| server(Some(endpoint.path.as_str().into())));
        let endpoints = endpoints.collect();
        let elsewhere = server(None);
        let mut edges = Vec::new();
        for (id, edge) in topology.edges.iter().enumerate() {
            let to = topology.service(edge.to);
            let (Ok(id), Some(to)) = (u32::try_from(id), to) else {
                continue;
            };
            if edge.from == service {
                let (from, to) = (Arc::clone(&name), to.name.as_str().into());
                let key = Key::Client { from, to };
                edges.push((EdgeId(id), made(&mut all.clients, key, replica)));
            }
        }
        let works = all.works_of(service_of, &name, replica);
        let key = Key::Connections { service: name };
        let connections = made(&mut all.connections, key, replica);
        Arc::new(InstanceCounters {
            endpoints,
            elsewhere,
            edges: edges.into(),
            unknown_edge: Arc::default(),
            works,
            unknown_work: Arc::default(),
            connections,
        })
    }

    /// What all counters say now.
    pub fn snapshot(&self) -> Snapshot {
        let all = lock(&self.all);
        let mut totals = BTreeMap::new();
        sum(&all.connections, Totals::of_connections, &mut totals);
        sum(&all.servers, Totals::of_server, &mut totals);
        sum(&all.clients, Totals::of_client, &mut totals);
        sum(&all.works, Totals::of_work, &mut totals);
        Snapshot(totals)
    }
}

/// Adds what all replicas have counted together.
fn sum<C>(series: &Series<C>, of: fn(&C) -> Totals, totals: &mut BTreeMap<Key, Totals>) {
    for (key, replicas) in series {
        let all = totals.entry(key.clone()).or_default();
        for counters in replicas.values() {
            all.add(&of(counters));
        }
    }
}

impl All {
    fn works_of(
        &mut self,
        service: &Service,
        name: &Arc<str>,
        replica: u32,
    ) -> Box<[(StepId, Arc<WorkCounters>)]> {
        let mut found = Vec::new();
        for endpoint in &service.endpoints {
            endpoint.each_step(|step| {
                if let Action::Work(work) = &step.action {
                    found.push((step.id, work));
                }
            });
        }
        let counters = found.into_iter().map(|(id, work)| {
            let key = Key::Work {
                service: Arc::clone(name),
                step: id.0,
                kind: kind(work).into(),
            };
            (id, made(&mut self.works, key, replica))
        });
        let mut counters: Vec<_> = counters.collect();
        counters.sort_by_key(|(id, _)| *id);
        counters.into()
    }
}

fn made<C: Default>(series: &mut Series<C>, key: Key, replica: u32) -> Arc<C> {
    let replicas = series.entry(key).or_default();
    Arc::clone(replicas.entry(replica).or_default())
}

/// The name of a kind of work in metrics and spans: its key in the file.
pub fn kind(work: &Work) -> &'static str {
    match work {
        Work::Cpu(_) => "cpu",
        Work::Ops(_) => "ops",
        Work::Primes(_) => "primes",
        Work::Memory { .. } => "memory",
        Work::Fork(_) => "fork",
        Work::Disk { .. } => "disk",
        Work::Lock { .. } => "lock",
        Work::Sleep(_) => "sleep",
        Work::StressNg { .. } => "stress-ng",
        Work::StressNgBackground { .. } => "stress-ng-background",
        Work::StressNgStatus => "stress-ng-status",
    }
}
