//! What runs: the pods of workers, coordinator and NATS.

use kubernetes::{
    Yaml, config_map, container_security, guaranteed, mount, object, pod_security, texts, yaml,
};

use super::{FILES, Manifests, NatsServer, labels, metadata};

/// How long everybody waits for everybody: images must be pulled first.
const WITHIN: &str = "5m";
/// Where the authority of an existing NATS server stands.
const NATS_SECRET: &str = "/nats";

/// The workers: all at once, each once, none again: a load with a worker that came back
/// is not the load that was asked for.
pub(crate) fn workers(load: &Manifests) -> Yaml {
    let session = &load.name;
    let arguments = [
        "load",
        "--worker",
        "--session",
        session,
        "--workers-within",
        WITHIN,
    ];
    let memory = format!("{}Mi", load.memory_mib);
    let resources = guaranteed(&load.processors.to_string(), &memory);
    let container = container(load, "worker", texts(arguments), resources, Vec::new());
    // Preferred, not demanded: a cluster of one node is a cluster.
    let spread = yaml!([{
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": { "matchLabels": (labels(load, "workers")) },
    }]);
    let pod = pod(load, container, Vec::new()).with("topologySpreadConstraints", spread);
    let spec = yaml!({
        "completionMode": "Indexed",
        "completions": (load.workers),
        "parallelism": (load.workers),
        "backoffLimit": 0,
        "template": (template(load, "workers", pod)),
    });
    object("batch/v1", "Job", metadata(load, "workers"), spec)
}

/// The coordinator: its exit code is the verdict, its log the result.
pub(crate) fn coordinator(load: &Manifests) -> Yaml {
    let workers = load.workers.to_string();
    let mut arguments = vec!["load"];
    arguments.extend(["--workers", &workers, "--session", &load.name]);
    arguments.extend(["--workers-within", WITHIN]);
    // Last, for what stands behind a `--` is no flag. Of arguments Kubernetes takes `$(NAME)` for a
    // variable, and `$$` for `$`.
    let given = load.arguments.iter();
    let given: Vec<String> = given.map(|text| text.replace('$', "$$")).collect();
    arguments.extend(given.iter().map(String::as_str));
    let (mut mounts, mut volumes) = (Vec::new(), Vec::new());
    if !load.files.is_empty() {
        let name = format!("{}-files", load.name);
        mounts.push(mount("files", FILES));
        volumes.push(yaml!({ "name": "files", "configMap": { "name": name } }));
    }
    let resources = guaranteed("1", "256Mi");
    let container = container(load, "coordinator", texts(arguments), resources, mounts);
    let spec = yaml!({
        "completions": 1,
        "parallelism": 1,
        "backoffLimit": 0,
        "template": (template(load, "coordinator", pod(load, container, volumes))),
    });
    object("batch/v1", "Job", metadata(load, "coordinator"), spec)
}

/// A NATS server of the load's own: its configuration, its token, itself, its name.
pub(crate) fn nats(load: &Manifests, image: &str, token: &str) -> [Yaml; 4] {
    let metadata = || metadata(load, "nats");
    let own = format!("{}-nats", load.name);
    // The token comes by a variable, so that neither `ps` nor the ConfigMap has it.
    let configuration = "port: 4222\nauthorization: { token: $HEADROOM_NATS_TOKEN }\n";
    let configuration = vec![("nats.conf".to_owned(), configuration.into())];
    let secret = yaml!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": (metadata()),
        "type": "Opaque",
        "stringData": { "token": token },
    });
    let container = yaml!({
        "name": "nats",
        "image": image,
        "args": ["--config", "/etc/headroom/nats.conf"],
        "env": [(from_secret("HEADROOM_NATS_TOKEN", &own, "token", false))],
        "ports": [{ "name": "nats", "containerPort": 4222 }],
        "readinessProbe": { "tcpSocket": { "port": "nats" } },
        "resources": (guaranteed("1", "256Mi")),
        "securityContext": (container_security()),
        "volumeMounts": [(mount("configuration", "/etc/headroom"))],
    });
    let pod = yaml!({
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "securityContext": (pod_security()),
        "containers": [container],
        "volumes": [{ "name": "configuration", "configMap": { "name": own } }],
    });
    let deployment = yaml!({
        "replicas": 1,
        "selector": { "matchLabels": (labels(load, "nats")) },
        "template": (template(load, "nats", pod)),
    });
    let service = yaml!({
        "selector": (labels(load, "nats")),
        "ports": [{ "name": "nats", "port": 4222, "targetPort": "nats" }],
    });
    [
        config_map(metadata(), configuration, Vec::new()),
        secret,
        object("apps/v1", "Deployment", metadata(), deployment),
        object("v1", "Service", metadata(), service),
    ]
}

fn template(load: &Manifests, part: &str, spec: Yaml) -> Yaml {
    yaml!({ "metadata": { "labels": (labels(load, part)) }, "spec": spec })
}

/// A pod that runs once, without rights of any kind.
fn pod(load: &Manifests, container: Yaml, mut volumes: Vec<Yaml>) -> Yaml {
    if let Some(name) = authority(load) {
        // Only the authority: what proves who we are comes by variables.
        let items = yaml!([{ "key": "ca.crt", "path": "ca.crt" }]);
        let secret = yaml!({ "secretName": name, "items": items });
        volumes.push(yaml!({ "name": "nats", "secret": secret }));
    }
    let pod = yaml!({
        "restartPolicy": "Never",
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "securityContext": (pod_security()),
        "containers": [container],
    });
    with_some(pod, "volumes", volumes)
}

fn container(
    load: &Manifests,
    name: &str,
    args: Yaml,
    resources: Yaml,
    mut mounts: Vec<Yaml>,
) -> Yaml {
    if authority(load).is_some() {
        mounts.push(mount("nats", NATS_SECRET));
    }
    let container = yaml!({
        "name": name,
        "image": (load.image.as_str()),
        "args": args,
        "env": (Yaml::List(environment(load))),
        "resources": resources,
        "securityContext": (container_security()),
    });
    with_some(container, "volumeMounts", mounts)
}

/// With a list, if there is anything in it.
fn with_some(map: Yaml, key: &str, values: Vec<Yaml>) -> Yaml {
    match values.is_empty() {
        true => map,
        false => map.with(key, Yaml::List(values)),
    }
}

/// Name of the Secret that has the authority of an existing NATS server.
fn authority(load: &Manifests) -> Option<&str> {
    match &load.nats {
        NatsServer::At {
            secret,
            authority: true,
            ..
        } => secret.as_deref(),
        _ => None,
    }
}

fn environment(load: &Manifests) -> Vec<Yaml> {
    let value = |name: &str, value: &str| yaml!({ "name": name, "value": value });
    let within = value("HEADROOM_NATS_WITHIN", WITHIN);
    match &load.nats {
        NatsServer::Included { .. } => {
            let own = format!("{}-nats", load.name);
            vec![
                value("HEADROOM_NATS_URL", &format!("nats://{own}:4222")),
                within,
                from_secret("HEADROOM_NATS_TOKEN", &own, "token", false),
            ]
        }
        NatsServer::At { url, secret, .. } => {
            let mut variables = vec![value("HEADROOM_NATS_URL", url), within];
            for key in ["token", "user", "password"] {
                let name = format!("HEADROOM_NATS_{}", key.to_ascii_uppercase());
                let secret = secret.as_deref();
                variables.extend(secret.map(|secret| from_secret(&name, secret, key, true)));
            }
            if authority(load).is_some() {
                variables.push(value("HEADROOM_NATS_CA", &format!("{NATS_SECRET}/ca.crt")));
            }
            variables
        }
    }
}

fn from_secret(name: &str, secret: &str, key: &str, optional: bool) -> Yaml {
    let from = yaml!({ "name": secret, "key": key, "optional": optional });
    yaml!({ "name": name, "valueFrom": { "secretKeyRef": from } })
}
