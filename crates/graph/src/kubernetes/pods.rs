//! What runs a service: its pods, and the name under which they are called.

use kubernetes::{
    NOBODY, Yaml, container_security, guaranteed, mount, object, pod_security, texts, yaml,
};

use super::{ADMIN_PORT, FILE, FOLDER, Manifests, PORT, config_map_name, labels, metadata};
use crate::topology::{Protocol, Service, Work};

/// Memory of a service without its working sets, in MiB: it takes a few.
const MEMORY_MIB: u64 = 128;

/// What the entry needs beside, in MiB: it keeps the spans of all (see
/// [`StoreLimits`](traces::StoreLimits)).
const STORE_MIB: u64 = 192;

/// Longer than a service takes to let its requests end.
const GRACE_S: u32 = 15;

/// How long a probe may take: a pod without processor time answers late.
const PROBE_S: u32 = 5;

/// The name under which a service is called: pods take connections in turn.
pub(super) fn service(graph: &Manifests, of: &Service) -> Yaml {
    let port = |name: &str, port: u16, protocol: &str| {
        let port = u32::from(port);
        yaml!({ "name": name, "port": port, "targetPort": name, "appProtocol": protocol })
    };
    let spoken = match of.protocol {
        Protocol::Http1 => "http",
        Protocol::Http2 => "kubernetes.io/h2c",
        Protocol::Grpc => "grpc",
    };
    let spec = yaml!({
        "selector": (labels(graph, &of.name)),
        "ports": [(port("requests", PORT, spoken)), (port("admin", ADMIN_PORT, "http"))],
    });
    object("v1", "Service", metadata(graph, &of.name, &of.name), spec)
}

/// The pods of a service.
pub(super) fn deployment(graph: &Manifests, of: &Service) -> Yaml {
    let selected = labels(graph, &of.name);
    // Ours win: they are what the pods are found by.
    let own = of.labels.iter();
    let own = own.filter(|(key, _)| !key.starts_with("app.kubernetes.io/"));
    let all = own.fold(selected.clone(), |all, (key, value)| {
        all.with(key, value.as_str())
    });
    let spec = yaml!({
        "replicas": (of.replicas),
        "selector": { "matchLabels": selected },
        "template": { "metadata": { "labels": all }, "spec": (pod(graph, of)) },
    });
    object(
        "apps/v1",
        "Deployment",
        metadata(graph, &of.name, &of.name),
        spec,
    )
}

fn pod(graph: &Manifests, of: &Service) -> Yaml {
    yaml!({
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": GRACE_S,
        "securityContext": (pod_security().with("fsGroup", NOBODY)),
        "containers": [(container(graph, of))],
        "volumes": [
            { "name": "topology", "configMap": { "name": (config_map_name(graph)) } },
            // Disk work needs a file; the rest of the file system is read-only.
            { "name": "scratch", "emptyDir": {} },
        ],
    })
}

fn container(graph: &Manifests, of: &Service) -> Yaml {
    let (port, admin) = (u32::from(PORT), u32::from(ADMIN_PORT));
    // Slow is what an overloaded service shall be: only one that hangs is started again.
    let probe = |period: u32, failures: u32| {
        yaml!({
            "httpGet": { "path": "/ping", "port": "admin" },
            "periodSeconds": period,
            "timeoutSeconds": PROBE_S,
            "failureThreshold": failures,
        })
    };
    yaml!({
        "name": "service",
        "image": (graph.image.as_str()),
        "args": (texts(arguments(graph, of))),
        "ports": [
            { "name": "requests", "containerPort": port },
            { "name": "admin", "containerPort": admin },
        ],
        "readinessProbe": (probe(2, 5)),
        "livenessProbe": (probe(10, 9)),
        "resources": (resources(graph, of)),
        "securityContext": (container_security()),
        "volumeMounts": [
            (mount("topology", FOLDER)),
            { "name": "scratch", "mountPath": "/tmp", "readOnly": false },
        ],
    })
}

/// The command line of a pod. Spans go to the entry, so that one control server has whole
/// traces.
fn arguments(graph: &Manifests, of: &Service) -> Vec<String> {
    let topology = &graph.topology;
    let mut arguments: Vec<String> = ["graph", "service", "--file"].map(str::to_owned).to_vec();
    arguments.push(format!("{FOLDER}/{FILE}"));
    let mut add = |flag: &str, value: String| {
        arguments.push(flag.to_owned());
        arguments.push(value);
    };
    add("--name", of.name.clone());
    add("--listen", format!("0.0.0.0:{PORT}"));
    add("--admin", format!("0.0.0.0:{ADMIN_PORT}"));
    let own = topology.find(&of.name);
    if let Some(entry) = topology.service(topology.entry)
        && entry.name != of.name
    {
        let url = format!("http://{}:{ADMIN_PORT}/v1/traces", entry.name);
        add("--collector", url);
    }
    for edge in topology.edges.iter().filter(|edge| Some(edge.from) == own) {
        if let Some(callee) = topology.service(edge.to) {
            add("--peer", format!("{0}={0}:{PORT}", callee.name));
        }
    }
    arguments
}

/// Whole processors if the topology says nothing else, so that the static policy of the CPU manager gives it
/// processors of its own.
fn resources(graph: &Manifests, of: &Service) -> Yaml {
    let cpu = match of.placement.cpu_limit {
        Some(cpus) if cpus.fract() == 0.0 => format!("{cpus}"),
        // Kubernetes counts in thousandths.
        Some(cpus) => format!("{}m", (cpus * 1000.0).ceil()),
        None => "1".to_owned(),
    };
    let entry = graph.topology.service(graph.topology.entry);
    let store = match entry.is_some_and(|entry| entry.name == of.name) {
        true => STORE_MIB,
        false => 0,
    };
    let memory = of.placement.memory_limit.map_or_else(
        || format!("{}Mi", MEMORY_MIB + store + sets(of).div_ceil(1 << 20)),
        |bytes| bytes.to_string(),
    );
    guaranteed(&cpu, &memory)
}

/// Bytes of all working sets of an instance.
fn sets(of: &Service) -> u64 {
    let mut sum: u64 = 0;
    for endpoint in &of.endpoints {
        endpoint.each_step(|step| {
            if let crate::topology::Action::Work(Work::Memory { set, .. }) = &step.action {
                sum = sum.saturating_add(*set);
            }
        });
    }
    sum
}
