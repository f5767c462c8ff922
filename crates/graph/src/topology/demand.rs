//! How much a request asks of services and processors, by expected values.

use std::collections::BTreeMap;

use super::{Endpoint, Service, ServiceId, Topology, Work};
use crate::topology::Action;

/// How often each endpoint of each service is called for one request that enters at an
/// endpoint of the entry: expected values, without retries and failures.
pub fn visits(topology: &Topology, endpoint: usize) -> Vec<Vec<f64>> {
    let mut visits: Vec<Vec<f64>> = topology
        .services
        .iter()
        .map(|service| vec![0.0; service.endpoints.len()])
        .collect();
    let entry = visits.get_mut(topology.entry.0 as usize);
    if let Some(first) = entry.and_then(|endpoints| endpoints.get_mut(endpoint)) {
        *first = 1.0;
    }
    for caller in topology.callers_first() {
        let Some(service) = topology.service(caller) else {
            continue;
        };
        for at in topology.endpoints_callers_first(caller) {
            let Some(endpoint) = service.endpoints.get(at) else {
                continue;
            };
            let here = visits[caller.0 as usize][at];
            if here == 0.0 {
                continue;
            }
            for (_, call) in endpoint.calls() {
                let Some(edge) = topology.edge(call.edge) else {
                    continue;
                };
                let path = call.path.as_deref().unwrap_or(&endpoint.path);
                let callee = topology.service(edge.to).and_then(|to| to.endpoint(path));
                if let Some((place, _)) = callee {
                    let made = call.probability * call.count.mean();
                    visits[edge.to.0 as usize][place] += here * made;
                }
            }
        }
    }
    visits
}

/// Processor time that each service asks for, all instances together, for each time that
/// passes: 2 is two processors' worth. At a rate of requests a second at the entry's first
/// endpoint; counts work whose processor time is known (`cpu`, `lock`).
pub fn busy(topology: &Topology, rate: f64) -> Vec<f64> {
    let visits = visits(topology, 0);
    let services = topology.services.iter().zip(&visits);
    let of = |(service, visits): (&Service, &Vec<f64>)| {
        let endpoints = service.endpoints.iter().zip(visits);
        let nanos: f64 = endpoints.map(|(one, visits)| visits * cpu_time(one)).sum();
        rate * nanos / 1e9
    };
    services.map(of).collect()
}

/// What services that are pinned ask of a processor.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Load {
    /// Processor time for each time that passes: above 1 it cannot be done.
    pub busy: f64,
    /// Who asks for it.
    pub services: Vec<ServiceId>,
}

/// What each processor to which services are pinned has to do at a rate of requests a
/// second: as [`busy`], shared evenly by a service's processors, and background load.
pub fn pinned(topology: &Topology, rate: f64) -> BTreeMap<u32, Load> {
    let mut loads: BTreeMap<u32, Load> = BTreeMap::new();
    let busy = busy(topology, rate);
    for ((service, busy), id) in topology.services.iter().zip(busy).zip(0..) {
        let cpus = &service.placement.cpus;
        for cpu in cpus.iter().filter(|_| busy > 0.0) {
            let load = loads.entry(*cpu).or_default();
            load.busy += busy / cpus.len() as f64;
            load.services.push(ServiceId(id));
        }
    }
    for background in &topology.background {
        let cpus = &background.cpus;
        for cpu in cpus {
            // Only where services are: a load alone disturbs nobody.
            if let Some(load) = loads.get_mut(cpu) {
                load.busy +=
                    background.cpu_share * f64::from(background.threads) / cpus.len() as f64;
            }
        }
    }
    loads
}

/// Expected processor time of an endpoint's own work, in nanoseconds.
fn cpu_time(endpoint: &Endpoint) -> f64 {
    let mut nanos = 0.0;
    endpoint.each_step(|step| {
        nanos += match &step.action {
            Action::Work(Work::Cpu(time) | Work::Lock { hold: time, .. }) => time.mean(),
            _ => 0.0,
        };
    });
    nanos
}
