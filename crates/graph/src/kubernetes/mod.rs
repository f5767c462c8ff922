//! A graph as manifests for Kubernetes: a Deployment and a Service for each of its services,
//! and the topology in a ConfigMap that all of them follow.

mod pods;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use kubernetes::KubernetesError;
use kubernetes::{
    MOST_BYTES, Yaml, config_map, is_key, is_label, manifest, must, must_be_image, must_be_name,
    must_be_namespace, object, yaml,
};

use crate::topology::{Topology, Work};
use pods::{deployment, service};

/// Port of requests, of every pod and Service.
pub const PORT: u16 = 8080;

/// Port of the control server: metrics, and spans of the others.
pub const ADMIN_PORT: u16 = 8887;

/// Folder of the ConfigMap in every pod. It is mounted as a folder, not file by file, so
/// that a change reaches the services.
pub const FOLDER: &str = "/etc/headroom";

/// The topology's name in that folder.
pub const FILE: &str = "graph.toml";

/// What is rendered.
#[derive(Debug, Clone)]
pub struct Manifests {
    /// The graph, as [`portable`] gives it.
    pub topology: Topology,
    /// Files that it names, by their names.
    pub files: BTreeMap<String, String>,
    /// Image that holds `headroom` as its entry point.
    pub image: String,
    /// Namespace of everything.
    pub namespace: String,
    /// Whether there is a ServiceMonitor (of the Prometheus operator).
    pub monitor: bool,
}

/// A graph without what holds on one machine only (`cpus`, background work), and with the
/// files that it names (jobs of stress-ng) in the folder of its own; those files, by their
/// new names.
///
/// # Errors
/// When two files have one name.
pub fn portable(
    topology: &Topology,
) -> Result<(Topology, BTreeMap<String, PathBuf>), KubernetesError> {
    let mut topology = topology.clone();
    topology.background.clear();
    let mut files = BTreeMap::new();
    for service in &mut topology.services {
        service.placement.cpus.clear();
    }
    let mut fine = Ok(());
    topology.each_work_mut(|work| {
        let (Work::StressNg { job } | Work::StressNgBackground { job }) = work else {
            return;
        };
        let name = job.file_name().and_then(|name| name.to_str());
        let name = name.unwrap_or_default().to_owned();
        let other = files.insert(name.clone(), job.clone());
        let fits = is_key(&name) && name != FILE;
        if !fits || other.is_some_and(|other| other != *job) {
            let found = job.display().to_string();
            let expected = "a file with a name of letters, digits, -, _ and ., which no other has";
            fine = must(false, "a job of stress-ng", &found, expected);
        }
        *job = PathBuf::from(name);
    });
    fine.map(|()| (topology, files))
}

/// The manifests, as one YAML text for `kubectl apply -f -`.
///
/// # Errors
/// When a name or the size of the topology is beyond what Kubernetes takes.
pub fn manifests(graph: &Manifests) -> Result<String, KubernetesError> {
    check(graph)?;
    let mut objects = vec![topology(graph)];
    for of in &graph.topology.services {
        objects.push(service(graph, of));
        objects.push(deployment(graph, of));
    }
    if graph.monitor {
        objects.push(monitor(graph));
    }
    let entry = graph.topology.service(graph.topology.entry);
    let entry = entry.map_or("", |entry| &entry.name);
    let space = &graph.namespace;
    let comments = format!(
        "# The graph {}: {} services, in the namespace {space}, which must be there.\n\
         # apply    kubectl apply -f FILE\n\
         # load     {entry}.{space}:{PORT}, within the cluster\n\
         # watch    kubectl -n {space} port-forward service/{entry} {ADMIN_PORT}, then http://localhost:{ADMIN_PORT}/\n\
         # change   kubectl -n {space} edit configmap {}\n\
         # remove   kubectl delete -f FILE\n",
        label(&graph.topology.name),
        graph.topology.services.len(),
        config_map_name(graph),
    );
    Ok(manifest(&comments, &objects))
}

fn check(graph: &Manifests) -> Result<(), KubernetesError> {
    for service in &graph.topology.services {
        must_be_name("the name of a service", &service.name)?;
        for (key, value) in &service.labels {
            let label = format!("{key}: {value}");
            let expected = "a key and a value of up to 63 letters, digits, -, _ and ., a letter or digit at both ends";
            must(is_label(key, value), "a label", &label, expected)?;
        }
    }
    must_be_namespace(&graph.namespace)?;
    must_be_image("the image", &graph.image)?;
    let files = graph.files.iter();
    let files: usize = files.map(|(name, text)| name.len() + text.len()).sum();
    let bytes = files + graph.topology.to_toml().len();
    must(
        bytes <= MOST_BYTES,
        "the size of the topology and its files",
        &units::write_bytes(bytes as u64),
        "at most 1,000,000 bytes: a ConfigMap takes no more",
    )
}

/// A graph's name as the value of a label and as the start of names.
fn label(name: &str) -> String {
    let mut label = String::new();
    for character in name.chars().map(|one| one.to_ascii_lowercase()) {
        let plain = character.is_ascii_lowercase() || character.is_ascii_digit();
        if plain {
            label.push(character);
        } else if !label.is_empty() && !label.ends_with('-') {
            label.push('-');
        }
        if label.len() == 50 {
            break;
        }
    }
    let label = label.trim_matches('-');
    match label.as_bytes().first() {
        Some(first) if first.is_ascii_lowercase() => label.to_owned(),
        _ => format!("graph-{label}").trim_end_matches('-').to_owned(),
    }
}

/// The topology, and the files that it names.
fn topology(graph: &Manifests) -> Yaml {
    let mut data = vec![(FILE.to_owned(), graph.topology.to_toml().into())];
    let files = graph.files.iter();
    data.extend(files.map(|(name, text)| (name.clone(), text.as_str().into())));
    let metadata = metadata(graph, &config_map_name(graph), "topology");
    config_map(metadata, data, Vec::new())
}

fn config_map_name(graph: &Manifests) -> String {
    format!("{}-topology", label(&graph.topology.name))
}

/// Has Prometheus ask every pod.
fn monitor(graph: &Manifests) -> Yaml {
    let name = label(&graph.topology.name);
    let metadata = metadata(graph, &name, "monitor");
    let spec = yaml!({
        "selector": { "matchLabels": { "app.kubernetes.io/part-of": name } },
        "endpoints": [{ "port": "admin", "path": "/metrics", "interval": "5s" }],
    });
    object("monitoring.coreos.com/v1", "ServiceMonitor", metadata, spec)
}

/// Name, namespace and labels of an object.
fn metadata(graph: &Manifests, name: &str, part: &str) -> Yaml {
    let namespace = graph.namespace.as_str();
    yaml!({ "name": name, "namespace": namespace, "labels": (labels(graph, part)) })
}

/// What all objects of a part have in common; pods are selected by it.
fn labels(graph: &Manifests, part: &str) -> Yaml {
    yaml!({
        "app.kubernetes.io/name": part,
        "app.kubernetes.io/part-of": (label(&graph.topology.name)),
        "app.kubernetes.io/managed-by": "headroom",
    })
}
