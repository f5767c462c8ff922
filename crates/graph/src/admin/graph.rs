//! The graph as JSON.

use serde_json::{Value, json};

use super::Control;
use crate::metrics::kind;
use crate::topology::{Action, Call, Connections, Edge, Endpoint, Join, Service, Step, Topology};

/// The answer of `/topology`.
pub(super) fn graph(control: &dyn Control) -> Value {
    let (topology, revision) = control.topology();
    let name = |id| topology.service(id).map(|service| service.name.as_str());
    let edges = topology.edges.iter().map(|edge| {
        let (connections, cold) = match edge.connections {
            Connections::Warm(most) => (most, false),
            Connections::Cold(most) => (most, true),
        };
        json!({
            "id": edge_id(&topology, edge),
            "from": name(edge.from),
            "to": name(edge.to),
            "connections": connections,
            "cold": cold,
        })
    });
    let instances = control.instances();
    let instances = instances.iter().map(|instance| {
        json!({
            "service": name(instance.service).unwrap_or_default(),
            "replica": instance.replica,
            "address": instance.address.to_string(),
            "pid": instance.pid,
            "admin": instance.admin.map(|address| address.to_string()),
        })
    });
    let services = topology.services.iter();
    json!({
        "name": topology.name,
        "seed": topology.seed,
        "revision": revision,
        "fingerprint": crate::service::fingerprint(&topology),
        "entry": name(topology.entry),
        "services": services.map(|of| service(&topology, of)).collect::<Vec<_>>(),
        "edges": edges.collect::<Vec<_>>(),
        "instances": instances.collect::<Vec<_>>(),
        "deployment": control.deployment(),
    })
}

/// How an edge is named: `FROM>TO`.
fn edge_id(topology: &Topology, edge: &Edge) -> String {
    let name = |id| topology.service(id).map_or("", |service| &service.name);
    format!("{}>{}", name(edge.from), name(edge.to))
}

fn service(topology: &Topology, service: &Service) -> Value {
    let endpoints = service.endpoints.iter();
    json!({
        "name": service.name,
        "protocol": service.protocol.name(),
        "replicas": service.replicas,
        "workers": service.workers,
        "cpus": service.placement.cpus,
        "cpu_limit": service.placement.cpu_limit,
        "memory_limit": service.placement.memory_limit,
        "endpoints": endpoints.map(|of| endpoint(topology, of)).collect::<Vec<_>>(),
    })
}

fn endpoint(topology: &Topology, endpoint: &Endpoint) -> Value {
    json!({ "path": endpoint.path, "steps": steps(topology, &endpoint.steps) })
}

fn steps(topology: &Topology, steps: &[Step]) -> Vec<Value> {
    steps.iter().map(|of| step(topology, of)).collect()
}

fn step(topology: &Topology, step: &Step) -> Value {
    let id = step.id.0;
    match &step.action {
        Action::Work(work) => json!({ "id": id, "work": kind(work) }),
        Action::Call(of) => call(topology, id, of),
        Action::Sequence(inner) => json!({ "id": id, "sequence": steps(topology, inner) }),
        Action::Parallel { branches, join } => json!({
            "id": id,
            "parallel": steps(topology, branches),
            "join": match join {
                Join::All => json!("all"),
                Join::Quorum(count) => json!(count),
            },
        }),
    }
}

fn call(topology: &Topology, id: u32, call: &Call) -> Value {
    let edge = topology.edge(call.edge);
    let to = edge.and_then(|edge| topology.service(edge.to));
    json!({
        "id": id,
        "call": to.map(|service| &service.name),
        "edge": edge.map(|edge| edge_id(topology, edge)),
        "path": call.path,
        "probability": call.probability,
        "wait": call.wait,
    })
}
