//! All counters of a process, by what they are about.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::counters::{
    ClientCounters, ConnectionCounters, InstanceCounters, ServerCounters, WorkCounters,
};
use crate::lock;
use crate::topology::{Action, EdgeId, Service, ServiceId, StepId, Topology, Work};

/// The counters of all instances that a process hosts. What is about the same thing adds
/// up over instances. A new profile goes on with the counters of the old one where names
/// are the same.
#[derive(Debug, Default)]
pub struct Metrics {
    pub(super) all: Mutex<All>,
}

/// By name, then by the replica that counts.
type Series<K, C> = BTreeMap<K, BTreeMap<u32, Arc<C>>>;

#[derive(Debug, Default)]
pub(super) struct All {
    /// Service and path; `None`: paths without an endpoint.
    pub(super) servers: Series<(Arc<str>, Option<Arc<str>>), ServerCounters>,
    /// Caller and callee.
    pub(super) clients: Series<(Arc<str>, Arc<str>), ClientCounters>,
    /// Service, step and kind of work.
    pub(super) works: Series<(Arc<str>, u32, Arc<str>), WorkCounters>,
    /// Service.
    pub(super) connections: Series<Arc<str>, ConnectionCounters>,
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
        let endpoints = service_of.endpoints.iter();
        let endpoints = endpoints.map(|endpoint| {
            let key = (Arc::clone(&name), Some(endpoint.path.as_str().into()));
            made(&mut all.servers, key, replica)
        });
        let endpoints = endpoints.collect();
        let elsewhere = made(&mut all.servers, (Arc::clone(&name), None), replica);
        let mut edges = Vec::new();
        for (id, edge) in topology.edges.iter().enumerate() {
            let to = topology.service(edge.to);
            let (Ok(id), Some(to)) = (u32::try_from(id), to) else {
                continue;
            };
            if edge.from == service {
                let key = (Arc::clone(&name), to.name.as_str().into());
                edges.push((EdgeId(id), made(&mut all.clients, key, replica)));
            }
        }
        let works = all.works_of(service_of, &name, replica);
        let connections = made(&mut all.connections, name, replica);
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
            let key = (Arc::clone(name), id.0, kind(work).into());
            (id, made(&mut self.works, key, replica))
        });
        let mut counters: Vec<_> = counters.collect();
        counters.sort_by_key(|(id, _)| *id);
        counters.into()
    }
}

fn made<K: Ord, C: Default>(series: &mut Series<K, C>, key: K, replica: u32) -> Arc<C> {
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
