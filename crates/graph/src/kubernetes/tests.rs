use std::collections::BTreeMap;
use std::path::Path;

use document::Source;
use saphyr::{LoadableYamlNode, Yaml as Read};
use serde_json::Value;

use super::*;

const GRAPH: &str = r#"
name = "Shop (test)"
[services.root]
entry = true
cpus = "0"
replicas = 2
labels = { team = "checkout" }
steps = [{ call = "price" }, { call = "store" }]
[services.price]
protocol = "grpc"
limits = { cpu = 2, memory = "64MiB" }
steps = [{ call = "store" }, { memory = "40MiB", touches = 10 }]
[services.store]
limits = { cpu = 0.5 }
steps = [{ stress-ng = "job.cfg" }, { memory = "40MiB", touches = 10 }]
[[background]]
name = "noisy"
cpu = "50%"
"#;

fn graph() -> Manifests {
    let source = Source {
        name: "graph.toml".into(),
        text: GRAPH.into(),
    };
    let checked = crate::topology::check(&source, Path::new("here"), None).unwrap();
    let (topology, files) = portable(&checked.topology).unwrap();
    let expected = BTreeMap::from([("job.cfg".to_owned(), "here/job.cfg".into())]);
    assert_eq!(files, expected);
    Manifests {
        topology,
        files: BTreeMap::from([("job.cfg".to_owned(), "cpu 1\n".to_owned())]),
        image: "registry.example/headroom:1".into(),
        namespace: "lab".into(),
        monitor: true,
    }
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
    let entries = yaml.as_mapping().unwrap();
    let entry = |(key, value): (&Read, &Read)| (key.as_str().unwrap().to_owned(), json(value));
    Value::Object(entries.iter().map(entry).collect())
}

/// The objects of the manifests, held against the API.
fn objects(graph: &Manifests) -> Vec<Value> {
    let text = manifests(graph).unwrap();
    let objects: Vec<Value> = Read::load_from_str(&text)
        .unwrap()
        .iter()
        .map(json)
        .collect();
    let api: Value =
        serde_json::from_str(include_str!("../../tests/data/kubernetes-1.21.2.json")).unwrap();
    for object in &objects {
        let kind = object["kind"].as_str().unwrap();
        let definition = match (object["apiVersion"].as_str().unwrap(), kind) {
            ("v1", "ConfigMap" | "Service") => format!("io.k8s.api.core.v1.{kind}"),
            ("apps/v1", "Deployment") => format!("io.k8s.api.apps.v1.{kind}"),
            // A kind of the Prometheus operator, which Kubernetes does not know.
            ("monitoring.coreos.com/v1", "ServiceMonitor") => continue,
            (version, kind) => panic!("{version} {kind}"),
        };
        hold_against(&api, &api["definitions"][&definition], object, kind);
    }
    objects
}

/// Every field must be known, of the right type, and none that is needed may be missing.
fn hold_against(api: &Value, schema: &Value, value: &Value, place: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        let quantity = name.ends_with("Quantity") || name.ends_with("IntOrString");
        if quantity {
            assert!(value.is_string() || value.is_i64(), "{place}: {value}");
            return;
        }
        return hold_against(api, &api["definitions"][name], value, place);
    }
    match schema["type"].as_str() {
        Some("string") => assert!(value.is_string(), "{place}: {value}"),
        Some("integer") => assert!(value.is_i64(), "{place}: {value}"),
        Some("boolean") => assert!(value.is_boolean(), "{place}: {value}"),
        Some("array") => {
            let values = value
                .as_array()
                .unwrap_or_else(|| panic!("{place}: {value}"));
            for (index, one) in values.iter().enumerate() {
                hold_against(api, &schema["items"], one, &format!("{place}[{index}]"));
            }
        }
        Some("object") => {
            let entries = value
                .as_object()
                .unwrap_or_else(|| panic!("{place}: {value}"));
            for (key, one) in entries {
                let place = format!("{place}.{key}");
                let known = match &schema["properties"][key] {
                    Value::Null => &schema["additionalProperties"],
                    known => known,
                };
                assert!(!known.is_null(), "{place} is not in the API");
                hold_against(api, known, one, &place);
            }
            for needed in schema["required"].as_array().into_iter().flatten() {
                let needed = needed.as_str().unwrap();
                assert!(entries.contains_key(needed), "{place} lacks {needed}");
            }
        }
        other => panic!("{place}: the API has {other:?}"),
    }
}

fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let mut all = objects.iter();
    all.find(|object| object["kind"] == kind && object["metadata"]["name"] == name)
        .unwrap_or_else(|| panic!("no {kind} {name}"))
}

fn container<'a>(objects: &'a [Value], service: &str) -> &'a Value {
    &find(objects, "Deployment", service)["spec"]["template"]["spec"]["containers"][0]
}

#[test]
fn every_object_is_one_of_the_api() {
    let objects = objects(&graph());
    // A ConfigMap, a Service and a Deployment for each of three, a ServiceMonitor.
    assert_eq!(objects.len(), 8);
    assert!(
        objects
            .iter()
            .all(|one| one["metadata"]["namespace"] == "lab")
    );
}

#[test]
fn the_schema_finds_mistakes() {
    let api: Value =
        serde_json::from_str(include_str!("../../tests/data/kubernetes-1.21.2.json")).unwrap();
    let schema = &api["definitions"]["io.k8s.api.apps.v1.Deployment"];
    let all = objects(&graph());
    let good = find(&all, "Deployment", "store");
    for (pointer, change) in [
        ("/spec/template/spec/containers/0/name", None),
        ("/spec/replicas", Some(Value::from("2"))),
        (
            "/spec/template/spec/containers/0/argz",
            Some(Value::from("x")),
        ),
    ] {
        let mut bad = good.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = bad.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match change {
            Some(value) => drop(parent.insert(key.to_owned(), value)),
            None => drop(parent.remove(key)),
        }
        let held = std::panic::catch_unwind(|| hold_against(&api, schema, &bad, "Deployment"));
        assert!(held.is_err(), "{pointer} was not found");
    }
}

#[test]
fn pods_are_guaranteed_what_they_may_use() {
    let objects = objects(&graph());
    for (service, cpu, memory) in [
        ("root", "1", "320Mi"),
        ("price", "2", "67108864"),
        ("store", "500m", "168Mi"),
    ] {
        let resources = &container(&objects, service)["resources"];
        assert_eq!(resources["requests"], resources["limits"]);
        assert_eq!(resources["limits"]["cpu"], cpu, "{service}");
        assert_eq!(resources["limits"]["memory"], memory, "{service}");
    }
}

#[test]
fn pods_find_each_other() {
    let objects = objects(&graph());
    let arguments = |service: &str| {
        let all = container(&objects, service)["args"]
            .as_array()
            .unwrap()
            .iter();
        let all: Vec<&str> = all.map(|one| one.as_str().unwrap()).collect();
        all.join(" ")
    };
    let expected = "graph service --file /etc/headroom/graph.toml --name root --listen 0.0.0.0:8080 --admin 0.0.0.0:8887 --peer price=price:8080 --peer store=store:8080";
    assert_eq!(arguments("root"), expected);
    let price = arguments("price");
    assert!(
        price.contains("--collector http://root:8887/v1/traces"),
        "{price}"
    );
    for service in ["root", "price", "store"] {
        let deployment = &find(&objects, "Deployment", service)["spec"];
        let pods = &deployment["template"]["metadata"]["labels"];
        let name = &find(&objects, "Service", service)["spec"];
        for (key, value) in name["selector"].as_object().unwrap() {
            assert_eq!(&pods[key], value);
        }
        assert_eq!(name["selector"], deployment["selector"]["matchLabels"]);
    }
    assert_eq!(find(&objects, "Deployment", "root")["spec"]["replicas"], 2);
    let spoken = &find(&objects, "Service", "price")["spec"]["ports"][0]["appProtocol"];
    assert_eq!(spoken, "grpc");
}

#[test]
fn all_follow_one_config_map_by_its_folder() {
    let graph = graph();
    let objects = objects(&graph);
    let map = find(&objects, "ConfigMap", "shop-test-topology");
    let text = map["data"][FILE].as_str().unwrap();
    let read = crate::topology::of_text(text);
    assert_eq!(read, graph.topology);
    assert!(
        read.services
            .iter()
            .all(|one| one.placement.cpus.is_empty())
    );
    assert!(read.background.is_empty());
    assert_eq!(map["data"]["job.cfg"], "cpu 1\n");
    for service in ["root", "price", "store"] {
        let mount = &container(&objects, service)["volumeMounts"][0];
        assert_eq!(mount["mountPath"], FOLDER);
        assert!(mount["subPath"].is_null(), "one file does not follow");
    }
}

#[test]
fn pods_have_no_rights() {
    for object in objects(&graph()) {
        let pod = &object["spec"]["template"]["spec"];
        if pod.is_null() {
            continue;
        }
        assert_eq!(pod["automountServiceAccountToken"], false);
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        let security = &pod["containers"][0]["securityContext"];
        assert_eq!(security["allowPrivilegeEscalation"], false);
        assert_eq!(security["readOnlyRootFilesystem"], true);
    }
}

#[test]
fn prometheus_finds_the_services() {
    let objects = objects(&graph());
    let monitor = &find(&objects, "ServiceMonitor", "shop-test")["spec"];
    let wanted = &monitor["selector"]["matchLabels"];
    let service = find(&objects, "Service", "store");
    for (key, value) in wanted.as_object().unwrap() {
        assert_eq!(&service["metadata"]["labels"][key], value);
    }
    assert_eq!(
        monitor["endpoints"][0]["port"],
        service["spec"]["ports"][1]["name"]
    );
    let without = Manifests {
        monitor: false,
        ..graph()
    };
    assert!(!manifests(&without).unwrap().contains("ServiceMonitor"));
}

#[test]
fn what_kubernetes_would_refuse_is_refused() {
    let refused = |change: fn(&mut Manifests)| {
        let mut graph = graph();
        change(&mut graph);
        manifests(&graph).unwrap_err().to_string()
    };
    let name = refused(|graph| graph.topology.services[1].name = "2nd".into());
    assert!(name.contains("2nd"), "{name}");
    // It may have an underscore everywhere else.
    let name = refused(|graph| graph.topology.services[1].name = "my_store".into());
    assert!(name.contains("my_store; expected a label of DNS"), "{name}");
    let label = refused(|graph| {
        let labels = &mut graph.topology.services[1].labels;
        labels.push(("team".into(), "check out".into()));
    });
    assert!(label.contains("team: check out"), "{label}");
    let namespace = refused(|graph| graph.namespace = "Lab".into());
    assert!(namespace.contains("Lab"), "{namespace}");
    let image = refused(|graph| graph.image.clear());
    assert!(image.contains("the image is empty"), "{image}");
    let long = refused(|graph| drop(graph.files.insert("a".into(), "x".repeat(1_000_001))));
    assert!(long.contains("1,000,000"), "{long}");
}

#[test]
fn names_become_labels() {
    for (name, expected) in [
        ("checkout", "checkout"),
        ("Shop (test)", "shop-test"),
        ("3 hops", "graph-3-hops"),
        ("", "graph"),
        ("ÄÖ", "graph"),
        ("--a--", "a"),
    ] {
        assert_eq!(label(name), expected, "{name}");
    }
    assert!(label(&"x".repeat(300)).len() <= 50);
}
