//! What runs: the pods of workers, coordinator and NATS.

use super::{FILES, Manifests, NatsServer, labels, metadata};
use document::yaml::{Yaml, map, texts};

/// How long everybody waits for everybody: images must be pulled first.
const WITHIN: &str = "5m";
/// Where the authority of an existing NATS server stands.
const NATS_SECRET: &str = "/nats";
/// Nobody, as most images call it. What an image itself says may be root.
const USER: u32 = 65_534;

/// The workers: all at once, each once, none again: a load with a worker that came back
/// is not the load that was asked for.
pub(crate) fn workers(load: &Manifests) -> Yaml {
    let arguments = [
        "load",
        "--worker",
        "--session",
        &load.name,
        "--workers-within",
        WITHIN,
    ];
    let container = container(
        load,
        "worker",
        texts(arguments),
        resources(load.processors, load.memory_mib),
        Vec::new(),
    );
    let mut spec = pod(load, container, Vec::new());
    if let Yaml::Map(entries) = &mut spec {
        // Preferred, not demanded: a cluster of one node is a cluster.
        let spread = map([
            ("maxSkew", 1.into()),
            ("topologyKey", "kubernetes.io/hostname".into()),
            ("whenUnsatisfiable", "ScheduleAnyway".into()),
            (
                "labelSelector",
                map([("matchLabels", labels(load, "workers"))]),
            ),
        ]);
        entries.push((
            "topologySpreadConstraints".to_owned(),
            Yaml::List(vec![spread]),
        ));
    }
    let spec = map([
        ("completionMode", "Indexed".into()),
        ("completions", load.workers.into()),
        ("parallelism", load.workers.into()),
        ("backoffLimit", 0.into()),
        ("template", template(load, "workers", spec)),
    ]);
    object("batch/v1", "Job", metadata(load, "workers"), spec)
}

/// The coordinator: its exit code is the verdict, its log the result.
pub(crate) fn coordinator(load: &Manifests) -> Yaml {
    let mut arguments = vec!["load".to_owned()];
    arguments.extend(load.arguments.iter().cloned());
    let workers = load.workers.to_string();
    for argument in [
        "--workers",
        &workers,
        "--session",
        &load.name,
        "--workers-within",
        WITHIN,
    ] {
        arguments.push(argument.to_owned());
    }
    let mut mounts = Vec::new();
    let mut volumes = Vec::new();
    if !load.files.is_empty() {
        mounts.push(mount("files", FILES));
        let config_map = map([("name", format!("{}-files", load.name).into())]);
        volumes.push(map([("name", "files".into()), ("configMap", config_map)]));
    }
    let container = container(
        load,
        "coordinator",
        texts(arguments),
        resources(1, 256),
        mounts,
    );
    let spec = map([
        ("completions", 1.into()),
        ("parallelism", 1.into()),
        ("backoffLimit", 0.into()),
        (
            "template",
            template(load, "coordinator", pod(load, container, volumes)),
        ),
    ]);
    object("batch/v1", "Job", metadata(load, "coordinator"), spec)
}

/// A NATS server of the load's own: its configuration, its token, itself, its name.
pub(crate) fn nats(load: &Manifests, image: &str, token: &str) -> [Yaml; 4] {
    // The token comes by a variable, so that neither `ps` nor the ConfigMap has it.
    let configuration = "port: 4222\nauthorization: { token: $HEADROOM_NATS_TOKEN }\n";
    let config_map = Yaml::Map(
        [
            ("apiVersion", "v1".into()),
            ("kind", "ConfigMap".into()),
            ("metadata", metadata(load, "nats")),
            ("data", map([("nats.conf", configuration.into())])),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .to_vec(),
    );
    let secret = map([
        ("apiVersion", "v1".into()),
        ("kind", "Secret".into()),
        ("metadata", metadata(load, "nats")),
        ("type", "Opaque".into()),
        ("stringData", map([("token", token.into())])),
    ]);
    let container = map([
        ("name", "nats".into()),
        ("image", image.into()),
        ("args", texts(["--config", "/etc/headroom/nats.conf"])),
        (
            "env",
            Yaml::List(vec![from_secret(
                "HEADROOM_NATS_TOKEN",
                &format!("{}-nats", load.name),
                "token",
                false,
            )]),
        ),
        (
            "ports",
            Yaml::List(vec![map([
                ("name", "nats".into()),
                ("containerPort", 4222.into()),
            ])]),
        ),
        (
            "readinessProbe",
            map([("tcpSocket", map([("port", "nats".into())]))]),
        ),
        ("resources", resources(1, 256)),
        ("securityContext", security()),
        (
            "volumeMounts",
            Yaml::List(vec![mount("configuration", "/etc/headroom")]),
        ),
    ]);
    let config = map([("name", format!("{}-nats", load.name).into())]);
    let volume = map([("name", "configuration".into()), ("configMap", config)]);
    let spec = map([
        ("automountServiceAccountToken", false.into()),
        ("enableServiceLinks", false.into()),
        ("securityContext", pod_security()),
        ("containers", Yaml::List(vec![container])),
        ("volumes", Yaml::List(vec![volume])),
    ]);
    let deployment = map([
        ("replicas", 1.into()),
        ("selector", map([("matchLabels", labels(load, "nats"))])),
        ("template", template(load, "nats", spec)),
    ]);
    let port = map([
        ("name", "nats".into()),
        ("port", 4222.into()),
        ("targetPort", "nats".into()),
    ]);
    let service = map([
        ("selector", labels(load, "nats")),
        ("ports", Yaml::List(vec![port])),
    ]);
    [
        config_map,
        secret,
        object("apps/v1", "Deployment", metadata(load, "nats"), deployment),
        object("v1", "Service", metadata(load, "nats"), service),
    ]
}

fn object(version: &str, kind: &str, metadata: Yaml, spec: Yaml) -> Yaml {
    map([
        ("apiVersion", version.into()),
        ("kind", kind.into()),
        ("metadata", metadata),
        ("spec", spec),
    ])
}

fn template(load: &Manifests, part: &str, spec: Yaml) -> Yaml {
    map([
        ("metadata", map([("labels", labels(load, part))])),
        ("spec", spec),
    ])
}

/// A pod that runs once, without rights of any kind.
fn pod(load: &Manifests, container: Yaml, mut volumes: Vec<Yaml>) -> Yaml {
    if let Some(secret) = authority(load) {
        // Only the authority: what proves who we are comes by variables.
        let item = map([("key", "ca.crt".into()), ("path", "ca.crt".into())]);
        let secret = map([
            ("secretName", secret.into()),
            ("items", Yaml::List(vec![item])),
        ]);
        volumes.push(map([("name", "nats".into()), ("secret", secret)]));
    }
    let mut entries = vec![
        ("restartPolicy".to_owned(), "Never".into()),
        ("automountServiceAccountToken".to_owned(), false.into()),
        ("enableServiceLinks".to_owned(), false.into()),
        ("securityContext".to_owned(), pod_security()),
        ("containers".to_owned(), Yaml::List(vec![container])),
    ];
    if !volumes.is_empty() {
        entries.push(("volumes".to_owned(), Yaml::List(volumes)));
    }
    Yaml::Map(entries)
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
    let mut entries = vec![
        ("name".to_owned(), name.into()),
        ("image".to_owned(), load.image.as_str().into()),
        ("args".to_owned(), args),
        ("env".to_owned(), Yaml::List(environment(load))),
        ("resources".to_owned(), resources),
        ("securityContext".to_owned(), security()),
    ];
    if !mounts.is_empty() {
        entries.push(("volumeMounts".to_owned(), Yaml::List(mounts)));
    }
    Yaml::Map(entries)
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
    let value = |name: &str, value: &str| map([("name", name.into()), ("value", value.into())]);
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
    let from = map([
        ("name", secret.into()),
        ("key", key.into()),
        ("optional", optional.into()),
    ]);
    map([
        ("name", name.into()),
        ("valueFrom", map([("secretKeyRef", from)])),
    ])
}

fn mount(name: &str, path: &str) -> Yaml {
    map([
        ("name", name.into()),
        ("mountPath", path.into()),
        ("readOnly", true.into()),
    ])
}

/// Asked for is the limit: only such pods are never squeezed by others.
fn resources(processors: u32, memory_mib: u32) -> Yaml {
    let amounts = map([
        ("cpu", processors.to_string().into()),
        ("memory", format!("{memory_mib}Mi").into()),
    ]);
    map([("requests", amounts.clone()), ("limits", amounts)])
}

fn security() -> Yaml {
    map([
        ("allowPrivilegeEscalation", false.into()),
        ("readOnlyRootFilesystem", true.into()),
        ("capabilities", map([("drop", texts(["ALL"]))])),
    ])
}

fn pod_security() -> Yaml {
    map([
        ("runAsNonRoot", true.into()),
        ("runAsUser", USER.into()),
        ("runAsGroup", USER.into()),
        ("seccompProfile", map([("type", "RuntimeDefault".into())])),
    ])
}
