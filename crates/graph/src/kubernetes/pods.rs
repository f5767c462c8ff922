//! What runs a service: its pods, and the name under which they are called.

use document::yaml::{Yaml, map, texts};

use super::{ADMIN_PORT, FILE, FOLDER, Manifests, PORT, config_map_name, labels, metadata};
use crate::topology::{Protocol, Service, Work};

/// Memory of a service without its working sets, in MiB: it takes a few.
const MEMORY_MIB: u64 = 128;

/// What the entry needs beside, in MiB: it keeps the spans of all (see
/// [`StoreLimits`](crate::trace::StoreLimits)).
const STORE_MIB: u64 = 192;

/// Longer than a service takes to let its requests end.
const GRACE_S: u32 = 15;

/// How long a probe may take: a pod without processor time answers late.
const PROBE_S: u32 = 5;

/// Nobody, as most images call it. What an image itself says may be root.
const USER: u32 = 65_534;

/// The name under which a service is called: pods take connections in turn.
pub(super) fn service(graph: &Manifests, of: &Service) -> Yaml {
    let port = |name: &str, port: u16, protocol: &str| {
        map([
            ("name", name.into()),
            ("port", u32::from(port).into()),
            ("targetPort", name.into()),
            ("appProtocol", protocol.into()),
        ])
    };
    let spoken = match of.protocol {
        Protocol::Http1 => "http",
        Protocol::Http2 => "kubernetes.io/h2c",
        Protocol::Grpc => "grpc",
    };
    map([
        ("apiVersion", "v1".into()),
        ("kind", "Service".into()),
        ("metadata", metadata(graph, &of.name, &of.name)),
        (
            "spec",
            map([
                ("selector", labels(graph, &of.name)),
                (
                    "ports",
                    Yaml::List(vec![
                        port("requests", PORT, spoken),
                        port("admin", ADMIN_PORT, "http"),
                    ]),
                ),
            ]),
        ),
    ])
}

/// The pods of a service.
pub(super) fn deployment(graph: &Manifests, of: &Service) -> Yaml {
    let labels_of = || {
        let mut all = match labels(graph, &of.name) {
            Yaml::Map(entries) => entries,
            _ => Vec::new(),
        };
        // Ours win: they are what the pods are found by.
        let own = of.labels.iter();
        let own = own.filter(|(key, _)| !key.starts_with("app.kubernetes.io/"));
        all.extend(own.map(|(key, value)| (key.clone(), value.as_str().into())));
        Yaml::Map(all)
    };
    let template = map([
        ("metadata", map([("labels", labels_of())])),
        ("spec", pod(graph, of)),
    ]);
    map([
        ("apiVersion", "apps/v1".into()),
        ("kind", "Deployment".into()),
        ("metadata", metadata(graph, &of.name, &of.name)),
        (
            "spec",
            map([
                ("replicas", of.replicas.into()),
                ("selector", map([("matchLabels", labels(graph, &of.name))])),
                ("template", template),
            ]),
        ),
    ])
}

fn pod(graph: &Manifests, of: &Service) -> Yaml {
    let topology = map([
        ("name", "topology".into()),
        ("configMap", map([("name", config_map_name(graph).into())])),
    ]);
    // Disk work needs a file; the rest of the file system is read-only.
    let scratch = map([
        ("name", "scratch".into()),
        ("emptyDir", Yaml::Map(Vec::new())),
    ]);
    let security = map([
        ("runAsNonRoot", true.into()),
        ("runAsUser", USER.into()),
        ("runAsGroup", USER.into()),
        ("fsGroup", USER.into()),
        ("seccompProfile", map([("type", "RuntimeDefault".into())])),
    ]);
    map([
        ("automountServiceAccountToken", false.into()),
        ("enableServiceLinks", false.into()),
        ("terminationGracePeriodSeconds", GRACE_S.into()),
        ("securityContext", security),
        ("containers", Yaml::List(vec![container(graph, of)])),
        ("volumes", Yaml::List(vec![topology, scratch])),
    ])
}

fn container(graph: &Manifests, of: &Service) -> Yaml {
    let port = |name: &str, port: u16| {
        map([
            ("name", name.into()),
            ("containerPort", u32::from(port).into()),
        ])
    };
    let mount = |name: &str, path: &str, read_only: bool| {
        map([
            ("name", name.into()),
            ("mountPath", path.into()),
            ("readOnly", read_only.into()),
        ])
    };
    // Slow is what an overloaded service shall be: only one that hangs is started again.
    let probe = |period: u32, failures: u32| {
        map([
            (
                "httpGet",
                map([("path", "/ping".into()), ("port", "admin".into())]),
            ),
            ("periodSeconds", period.into()),
            ("timeoutSeconds", PROBE_S.into()),
            ("failureThreshold", failures.into()),
        ])
    };
    let security = map([
        ("allowPrivilegeEscalation", false.into()),
        ("readOnlyRootFilesystem", true.into()),
        ("capabilities", map([("drop", texts(["ALL"]))])),
    ]);
    map([
        ("name", "service".into()),
        ("image", graph.image.as_str().into()),
        ("args", texts(arguments(graph, of))),
        (
            "ports",
            Yaml::List(vec![port("requests", PORT), port("admin", ADMIN_PORT)]),
        ),
        ("readinessProbe", probe(2, 5)),
        ("livenessProbe", probe(10, 9)),
        ("resources", resources(graph, of)),
        ("securityContext", security),
        (
            "volumeMounts",
            Yaml::List(vec![
                mount("topology", FOLDER, true),
                mount("scratch", "/tmp", false),
            ]),
        ),
    ])
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

/// Requests are limits, so that the pod is of the class Guaranteed; and whole processors if
/// the topology says nothing else, so that the static policy of the CPU manager gives it
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
    let all = || {
        map([
            ("cpu", cpu.as_str().into()),
            ("memory", memory.as_str().into()),
        ])
    };
    map([("requests", all()), ("limits", all())])
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
