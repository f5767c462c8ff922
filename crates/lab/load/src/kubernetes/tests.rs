//! The manifests, read by a YAML parser and held against what the Kubernetes API takes
//! (fields and types from its reference, API version 1.35).

use saphyr::{LoadableYamlNode, Yaml as Read};
use serde_json::Value;

use super::*;

/// Reads a YAML text as JSON values, one for each document.
fn read(text: &str) -> Vec<Value> {
    Read::load_from_str(text)
        .unwrap()
        .iter()
        .map(json)
        .collect()
}

fn json(yaml: &Read) -> Value {
    if let Some(text) = yaml.as_str() {
        return text.into();
    }
    if let Some(number) = yaml.as_integer() {
        return number.into();
    }
    if let Some(value) = yaml.as_bool() {
        return value.into();
    }
    if let Some(values) = yaml.as_sequence() {
        return values.iter().map(json).collect();
    }
    let entries = yaml.as_mapping().unwrap_or_else(|| panic!("{yaml:?}"));
    let entries = entries
        .iter()
        .map(|(key, value)| (key.as_str().unwrap().to_owned(), json(value)));
    Value::Object(entries.collect())
}

/// What a place in a manifest may hold.
enum Schema {
    Text,
    Integer,
    Bool,
    /// Integer or text.
    Port,
    /// Any keys, texts as values.
    Texts,
    List(&'static Schema),
    /// Keys with their schemas; those marked must be there.
    Object(&'static [(&'static str, bool, Schema)]),
}
use Schema::{Bool, Integer, List, Object, Port, Text, Texts};

const METADATA: Schema = Object(&[
    ("name", true, Text),
    ("namespace", false, Text),
    ("labels", true, Texts),
]);
const POD_METADATA: Schema = Object(&[("labels", true, Texts)]);
const SELECTOR: Schema = Object(&[("matchLabels", true, Texts)]);
const KEY: Schema = Object(&[
    ("name", true, Text),
    ("key", true, Text),
    ("optional", false, Bool),
]);
const ENV: Schema = Object(&[
    ("name", true, Text),
    ("value", false, Text),
    ("valueFrom", false, Object(&[("secretKeyRef", false, KEY)])),
]);
const CONTAINER: Schema = Object(&[
    ("name", true, Text),
    ("image", true, Text),
    ("args", true, List(&Text)),
    ("env", true, List(&ENV)),
    (
        "ports",
        false,
        List(&Object(&[
            ("name", false, Text),
            ("containerPort", true, Integer),
        ])),
    ),
    (
        "readinessProbe",
        false,
        Object(&[("tcpSocket", false, Object(&[("port", true, Port)]))]),
    ),
    (
        "resources",
        true,
        Object(&[("requests", true, Texts), ("limits", true, Texts)]),
    ),
    (
        "securityContext",
        true,
        Object(&[
            ("allowPrivilegeEscalation", true, Bool),
            ("readOnlyRootFilesystem", true, Bool),
            ("capabilities", true, Object(&[("drop", true, List(&Text))])),
        ]),
    ),
    (
        "volumeMounts",
        false,
        List(&Object(&[
            ("name", true, Text),
            ("mountPath", true, Text),
            ("readOnly", false, Bool),
        ])),
    ),
]);
const VOLUME: Schema = Object(&[
    ("name", true, Text),
    ("configMap", false, Object(&[("name", true, Text)])),
    (
        "secret",
        false,
        Object(&[
            ("secretName", true, Text),
            (
                "items",
                false,
                List(&Object(&[("key", true, Text), ("path", true, Text)])),
            ),
        ]),
    ),
]);
const SPREAD: Schema = Object(&[
    ("maxSkew", true, Integer),
    ("topologyKey", true, Text),
    ("whenUnsatisfiable", true, Text),
    ("labelSelector", false, SELECTOR),
]);
const POD: Schema = Object(&[
    ("restartPolicy", false, Text),
    ("automountServiceAccountToken", true, Bool),
    ("enableServiceLinks", true, Bool),
    (
        "securityContext",
        true,
        Object(&[
            ("runAsNonRoot", true, Bool),
            ("runAsUser", true, Integer),
            ("runAsGroup", true, Integer),
            ("seccompProfile", true, Object(&[("type", true, Text)])),
        ]),
    ),
    ("containers", true, List(&CONTAINER)),
    ("volumes", false, List(&VOLUME)),
    ("topologySpreadConstraints", false, List(&SPREAD)),
]);
const TEMPLATE: Schema = Object(&[("metadata", true, POD_METADATA), ("spec", true, POD)]);
const JOB: Schema = Object(&[
    ("completionMode", false, Text),
    ("completions", true, Integer),
    ("parallelism", true, Integer),
    ("backoffLimit", true, Integer),
    ("template", true, TEMPLATE),
]);
const DEPLOYMENT: Schema = Object(&[
    ("replicas", true, Integer),
    ("selector", true, SELECTOR),
    ("template", true, TEMPLATE),
]);
const SERVICE: Schema = Object(&[
    ("selector", true, Texts),
    (
        "ports",
        true,
        List(&Object(&[
            ("name", false, Text),
            ("port", true, Integer),
            ("targetPort", false, Port),
        ])),
    ),
]);

macro_rules! kind {
    ($($entry:expr),* $(,)?) => {
        Object(&[("apiVersion", true, Text), ("kind", true, Text), ("metadata", true, METADATA), $($entry),*])
    };
}

/// Every object that may come, by version and kind.
const KINDS: &[(&str, &str, Schema)] = &[
    ("batch/v1", "Job", kind![("spec", true, JOB)]),
    ("apps/v1", "Deployment", kind![("spec", true, DEPLOYMENT)]),
    ("v1", "Service", kind![("spec", true, SERVICE)]),
    (
        "v1",
        "ConfigMap",
        kind![("data", false, Texts), ("binaryData", false, Texts)],
    ),
    (
        "v1",
        "Secret",
        kind![("type", true, Text), ("stringData", true, Texts)],
    ),
];

fn hold_against(schema: &Schema, value: &Value, place: &str) {
    match schema {
        Text => assert!(value.is_string(), "{place}: {value}"),
        Integer => assert!(value.is_i64(), "{place}: {value}"),
        Bool => assert!(value.is_boolean(), "{place}: {value}"),
        Port => assert!(value.is_i64() || value.is_string(), "{place}: {value}"),
        Texts => {
            let entries = value
                .as_object()
                .unwrap_or_else(|| panic!("{place}: {value}"));
            assert!(entries.values().all(Value::is_string), "{place}: {value}");
        }
        List(each) => {
            let values = value
                .as_array()
                .unwrap_or_else(|| panic!("{place}: {value}"));
            for (index, value) in values.iter().enumerate() {
                hold_against(each, value, &format!("{place}[{index}]"));
            }
        }
        Object(fields) => {
            let entries = value
                .as_object()
                .unwrap_or_else(|| panic!("{place}: {value}"));
            for (key, value) in entries {
                let field = fields.iter().find(|(name, ..)| name == key);
                let (_, _, schema) = field.unwrap_or_else(|| panic!("{place} has no {key}"));
                hold_against(schema, value, &format!("{place}.{key}"));
            }
            for (name, required, _) in *fields {
                assert!(
                    !required || entries.contains_key(*name),
                    "{place} lacks {name}"
                );
            }
        }
    }
}

/// The objects of the manifests, held against the schema.
fn objects(load: &Manifests) -> Vec<Value> {
    let text = manifests(load).unwrap();
    let objects = read(&text);
    for object in &objects {
        let (version, kind) = (&object["apiVersion"], &object["kind"]);
        let known = KINDS
            .iter()
            .find(|known| version == known.0 && kind == known.1);
        let (_, _, schema) = known.unwrap_or_else(|| panic!("{version} {kind}"));
        hold_against(schema, object, kind.as_str().unwrap());
    }
    objects
}

fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let same = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
    objects
        .iter()
        .find(same)
        .unwrap_or_else(|| panic!("{kind} {name}"))
}

fn load() -> Manifests {
    Manifests {
        name: "shop".into(),
        namespace: Some("perf".into()),
        image: "registry.example/headroom:0.1.0".into(),
        workers: 4,
        processors: 2,
        memory_mib: 512,
        arguments: ["http://shop/", "--rate", "5000/s", "-H", "a: \"b\"\n"]
            .map(str::to_owned)
            .to_vec(),
        files: BTreeMap::from([
            ("body.json".to_owned(), b"{\"a\": 1}\n".to_vec()),
            ("bytes".to_owned(), vec![0, 255, 1]),
        ]),
        nats: NatsServer::Included {
            image: "nats:2.12-alpine".into(),
            token: "t0123456789abcdef".into(),
        },
    }
}

fn existing(secret: Option<&str>, authority: bool) -> Manifests {
    Manifests {
        nats: NatsServer::At {
            url: "tls://nats.example:4222".into(),
            secret: secret.map(str::to_owned),
            authority,
        },
        namespace: None,
        files: BTreeMap::new(),
        ..load()
    }
}

#[test]
fn workers_are_an_indexed_job_that_runs_once() {
    let objects = objects(&load());
    let job = &find(&objects, "Job", "shop-workers")["spec"];
    assert_eq!(job["completionMode"], "Indexed");
    assert_eq!(
        (&job["completions"], &job["parallelism"]),
        (&4.into(), &4.into())
    );
    assert_eq!(job["backoffLimit"], 0);
    let pod = &job["template"]["spec"];
    assert_eq!(pod["restartPolicy"], "Never");
    assert_eq!(
        pod["topologySpreadConstraints"][0]["topologyKey"],
        "kubernetes.io/hostname"
    );
    let selected = &pod["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"];
    assert_eq!(selected, &job["template"]["metadata"]["labels"]);
    let container = &pod["containers"][0];
    assert_eq!(container["resources"]["limits"]["cpu"], "2");
    assert_eq!(container["resources"]["limits"]["memory"], "512Mi");
    let expected = [
        "load",
        "--worker",
        "--session",
        "shop",
        "--workers-within",
        "5m",
    ];
    assert_eq!(container["args"], Value::from(expected.to_vec()));
}

#[test]
fn the_coordinator_gets_the_load_and_its_files() {
    let objects = objects(&load());
    let pod = &find(&objects, "Job", "shop-coordinator")["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let expected = [
        "load",
        "--workers",
        "4",
        "--session",
        "shop",
        "--workers-within",
        "5m",
        "http://shop/",
        "--rate",
        "5000/s",
        "-H",
        "a: \"b\"\n",
    ];
    assert_eq!(container["args"], Value::from(expected.to_vec()));
    assert_eq!(container["volumeMounts"][0]["mountPath"], FILES);
    assert_eq!(pod["volumes"][0]["configMap"]["name"], "shop-files");
    let files = find(&objects, "ConfigMap", "shop-files");
    assert_eq!(files["data"]["body.json"], "{\"a\": 1}\n");
    assert_eq!(files["binaryData"]["bytes"], "AP8B");
}

#[test]
fn arguments_arrive_as_they_were_given() {
    let given = ["--data", "$(HOME) $$ $", "--", "http://shop/"];
    let load = Manifests {
        arguments: given.map(str::to_owned).to_vec(),
        ..load()
    };
    let objects = objects(&load);
    let pod = &find(&objects, "Job", "shop-coordinator")["spec"]["template"]["spec"];
    let args = pod["containers"][0]["args"].as_array().unwrap();
    // Of which Kubernetes makes what was given; no flag of ours stands behind `--`.
    let expected = ["--data", "$$(HOME) $$$$ $$", "--", "http://shop/"];
    assert_eq!(args[args.len() - 4..], expected.map(Value::from));
}

#[test]
fn every_pod_has_no_rights_and_a_guaranteed_share() {
    for load in [load(), existing(Some("nats-login"), true)] {
        for object in objects(&load) {
            let pod = &object["spec"]["template"]["spec"];
            if pod.is_null() {
                continue;
            }
            assert_eq!(pod["automountServiceAccountToken"], false);
            assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
            assert_eq!(
                pod["securityContext"]["seccompProfile"]["type"],
                "RuntimeDefault"
            );
            for container in pod["containers"].as_array().unwrap() {
                let security = &container["securityContext"];
                assert_eq!(security["allowPrivilegeEscalation"], false);
                assert_eq!(security["readOnlyRootFilesystem"], true);
                assert_eq!(security["capabilities"]["drop"], Value::from(vec!["ALL"]));
                assert_eq!(
                    container["resources"]["requests"],
                    container["resources"]["limits"]
                );
            }
        }
    }
}

#[test]
fn a_nats_server_of_its_own_is_found_by_name_and_asks_for_the_token() {
    let objects = objects(&load());
    let variable = |pod: &Value, name: &str| {
        let env = pod["containers"][0]["env"].as_array().unwrap();
        env.iter()
            .find(|each| each["name"] == name)
            .cloned()
            .unwrap()
    };
    for (kind, name) in [
        ("Job", "shop-workers"),
        ("Job", "shop-coordinator"),
        ("Deployment", "shop-nats"),
    ] {
        let pod = &find(&objects, kind, name)["spec"]["template"]["spec"];
        let token = &variable(pod, "HEADROOM_NATS_TOKEN")["valueFrom"]["secretKeyRef"];
        assert_eq!(
            (&token["name"], &token["key"]),
            (&"shop-nats".into(), &"token".into())
        );
    }
    let pod = &find(&objects, "Job", "shop-workers")["spec"]["template"]["spec"];
    assert_eq!(
        variable(pod, "HEADROOM_NATS_URL")["value"],
        "nats://shop-nats:4222"
    );
    let deployment = &find(&objects, "Deployment", "shop-nats")["spec"];
    let labels = &deployment["template"]["metadata"]["labels"];
    assert_eq!(&deployment["selector"]["matchLabels"], labels);
    let service = &find(&objects, "Service", "shop-nats")["spec"];
    assert_eq!(&service["selector"], labels);
    assert_eq!(
        find(&objects, "Secret", "shop-nats")["stringData"]["token"],
        "t0123456789abcdef"
    );
    let text = manifests(&load()).unwrap();
    assert_eq!(
        text.matches("t0123456789abcdef").count(),
        1,
        "in the Secret only"
    );
    assert!(
        objects
            .iter()
            .all(|object| object["metadata"]["namespace"] == "perf")
    );
}

#[test]
fn an_existing_nats_server_is_only_referred_to() {
    let with = objects(&existing(Some("nats-login"), true));
    assert_eq!(with.len(), 2);
    let pod = &find(&with, "Job", "shop-workers")["spec"]["template"]["spec"];
    let env = pod["containers"][0]["env"].as_array().unwrap();
    let names: Vec<&str> = env
        .iter()
        .map(|each| each["name"].as_str().unwrap())
        .collect();
    let expected = [
        "HEADROOM_NATS_URL",
        "HEADROOM_NATS_WITHIN",
        "HEADROOM_NATS_TOKEN",
        "HEADROOM_NATS_USER",
        "HEADROOM_NATS_PASSWORD",
        "HEADROOM_NATS_CA",
    ];
    assert_eq!(names, expected);
    assert_eq!(pod["volumes"][0]["secret"]["secretName"], "nats-login");
    let without = objects(&existing(None, false));
    let pod = &find(&without, "Job", "shop-workers")["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["env"].as_array().unwrap().len(), 2);
    assert!(pod["volumes"].is_null());
}

#[test]
fn what_kubernetes_would_refuse_is_said_before() {
    let refused = |change: fn(&mut Manifests)| {
        let mut load = load();
        change(&mut load);
        manifests(&load).unwrap_err().to_string()
    };
    for (error, part) in [
        (
            refused(|load| load.name = "Shop".into()),
            "the name is Shop",
        ),
        (
            refused(|load| load.name = "x".repeat(41)),
            "the name is xxx",
        ),
        (refused(|load| load.name = "a-".into()), "the name is a-"),
        (
            refused(|load| load.namespace = Some(String::new())),
            "the namespace is empty",
        ),
        (
            refused(|load| load.workers = 0),
            "the number of workers is 0",
        ),
        (
            refused(|load| load.processors = 257),
            "the number of processors is 257",
        ),
        (
            refused(|load| load.memory_mib = 1),
            "the memory in MiB is 1",
        ),
        (
            refused(|load| load.image = "a b".into()),
            "the image is a b",
        ),
        (
            refused(|load| drop(load.files.insert("a/b".into(), vec![]))),
            "the name of a file is a/b",
        ),
        (
            refused(|load| drop(load.files.insert("a".into(), vec![0; MOST_BYTES]))),
            "the size of the files in bytes is 1000",
        ),
    ] {
        assert!(
            error.contains(part) && error.contains("expected"),
            "{error}"
        );
    }
    let mut load = existing(None, true);
    assert!(manifests(&load).unwrap_err().to_string().contains("ca.crt"));
    load.nats = NatsServer::At {
        url: "nats://me:s3cret@h".into(),
        secret: None,
        authority: false,
    };
    let error = manifests(&load).unwrap_err().to_string();
    assert!(
        error.contains("Secret") && !error.contains("s3cret"),
        "{error}"
    );
    load.nats = NatsServer::Included {
        image: "nats".into(),
        token: "1e3s3cret12345678".into(),
    };
    let error = manifests(&load).unwrap_err().to_string();
    assert!(
        !error.contains("s3cret") && !format!("{load:?}").contains("s3cret"),
        "{error}"
    );
}
