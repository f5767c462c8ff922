//! A graph as manifests for Kubernetes: a Deployment and a Service for each of its services,
//! and the topology in a ConfigMap that all of them follow.

mod pods;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

use document::yaml::{Yaml, map};

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

/// Most bytes of the ConfigMap's values: Kubernetes refuses 1 MiB and more, keys included.
const MOST_BYTES: usize = 1_000_000;

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

/// Why there are no manifests.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("render manifests for Kubernetes: {what} is {found}; expected {expected}")]
pub struct KubernetesError {
    what: &'static str,
    found: String,
    expected: &'static str,
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
    let mut wrong = None;
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
            wrong = Some(refused("a job of stress-ng", &found, expected));
        }
        *job = PathBuf::from(name);
    });
    match wrong {
        Some(wrong) => Err(wrong),
        None => Ok((topology, files)),
    }
}

/// The manifests, as one YAML text for `kubectl apply -f -`.
///
/// # Errors
/// When a name or the size of the topology is beyond what Kubernetes takes.
pub fn manifests(graph: &Manifests) -> Result<String, KubernetesError> {
    check(graph)?;
    let mut documents = vec![config_map(graph)];
    for of in &graph.topology.services {
        documents.push(service(graph, of));
        documents.push(deployment(graph, of));
    }
    if graph.monitor {
        documents.push(monitor(graph));
    }
    let entry = graph.topology.service(graph.topology.entry);
    let entry = entry.map_or("", |entry| &entry.name);
    let space = &graph.namespace;
    let mut text = format!(
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
    for document in documents {
        text.push_str("---\n");
        text.push_str(&document.document());
    }
    Ok(text)
}

fn check(graph: &Manifests) -> Result<(), KubernetesError> {
    let name = "a label of DNS: lower-case letters, digits and -, beginning with a letter";
    for service in &graph.topology.services {
        must(
            is_name(&service.name),
            "the name of a service",
            &service.name,
            name,
        )?;
        for (key, value) in &service.labels {
            let label = format!("{key}: {value}");
            let expected = "a key and a value of up to 63 letters, digits, -, _ and ., a letter or digit at both ends";
            must(is_label(key, value), "a label", &label, expected)?;
        }
    }
    must(
        is_name(&graph.namespace),
        "the namespace",
        &graph.namespace,
        name,
    )?;
    let image = &graph.image;
    let fits =
        (1..=500).contains(&image.len()) && image.bytes().all(|byte| byte.is_ascii_graphic());
    must(
        fits,
        "the image",
        image,
        "the name of an image, without spaces",
    )?;
    let files: usize = graph
        .files
        .iter()
        .map(|(name, text)| name.len() + text.len())
        .sum();
    let bytes = files + graph.topology.to_toml().len();
    must(
        bytes <= MOST_BYTES,
        "the size of the topology and its files",
        &units::write_bytes(bytes as u64),
        "at most 1,000,000 bytes: a ConfigMap takes no more",
    )
}

fn must(
    holds: bool,
    what: &'static str,
    found: &str,
    expected: &'static str,
) -> Result<(), KubernetesError> {
    match holds {
        true => Ok(()),
        false => Err(refused(what, found, expected)),
    }
}

fn refused(what: &'static str, found: &str, expected: &'static str) -> KubernetesError {
    let found = if found.is_empty() { "empty" } else { found };
    KubernetesError {
        what,
        found: found.to_owned(),
        expected,
    }
}

/// What may name a Service (RFC 1035), and so everything else.
fn is_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    text.len() <= 63
        && text.as_bytes().first().is_some_and(u8::is_ascii_lowercase)
        && text.bytes().all(inner)
        && !text.ends_with('-')
}

/// What may be a label: the key may have a DNS name before a slash, the value may be empty.
fn is_label(key: &str, value: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let word = |text: &str| {
        let bytes = text.as_bytes();
        (1..=63).contains(&bytes.len())
            && bytes.iter().all(|&byte| inner(byte))
            && end(bytes.first())
            && end(bytes.last())
    };
    let (domain, name) = match key.split_once('/') {
        Some((domain, name)) => (Some(domain), name),
        None => (None, key),
    };
    let is_part = |part: &str| !part.contains('_') && word(part);
    let domain = domain.is_none_or(|domain| {
        domain.len() <= 253
            && domain == domain.to_ascii_lowercase()
            && domain.split('.').all(is_part)
    });
    domain && word(name) && (value.is_empty() || word(value))
}

/// What may name a value of a ConfigMap.
fn is_key(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=253).contains(&text.len())
        && text.bytes().all(plain)
        && !text.starts_with("..")
        && text != "."
}

/// A graph's name as the value of a label and as the begin of names.
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
fn config_map(graph: &Manifests) -> Yaml {
    let mut data = vec![(FILE.to_owned(), graph.topology.to_toml().into())];
    let files = graph.files.iter();
    data.extend(files.map(|(name, text)| (name.clone(), text.as_str().into())));
    map([
        ("apiVersion", "v1".into()),
        ("kind", "ConfigMap".into()),
        (
            "metadata",
            metadata(graph, &config_map_name(graph), "topology"),
        ),
        ("data", Yaml::Map(data)),
    ])
}

fn config_map_name(graph: &Manifests) -> String {
    format!("{}-topology", label(&graph.topology.name))
}

/// Has Prometheus ask every pod.
fn monitor(graph: &Manifests) -> Yaml {
    let endpoint = map([
        ("port", "admin".into()),
        ("path", "/metrics".into()),
        ("interval", "5s".into()),
    ]);
    let selected = map([(
        "app.kubernetes.io/part-of",
        label(&graph.topology.name).into(),
    )]);
    map([
        ("apiVersion", "monitoring.coreos.com/v1".into()),
        ("kind", "ServiceMonitor".into()),
        (
            "metadata",
            metadata(graph, &label(&graph.topology.name), "monitor"),
        ),
        (
            "spec",
            map([
                ("selector", map([("matchLabels", selected)])),
                ("endpoints", Yaml::List(vec![endpoint])),
            ]),
        ),
    ])
}

/// Name, namespace and labels of an object.
fn metadata(graph: &Manifests, name: &str, part: &str) -> Yaml {
    map([
        ("name", name.into()),
        ("namespace", graph.namespace.as_str().into()),
        ("labels", labels(graph, part)),
    ])
}

/// What all objects of a part have in common; pods are selected by it.
fn labels(graph: &Manifests, part: &str) -> Yaml {
    map([
        ("app.kubernetes.io/name", part.into()),
        (
            "app.kubernetes.io/part-of",
            label(&graph.topology.name).into(),
        ),
        ("app.kubernetes.io/managed-by", "headroom".into()),
    ])
}
