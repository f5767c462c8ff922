//! What objects have in common: their outer form, and pods that have no rights.

use crate::{Yaml, texts, yaml};

/// Most bytes of the values of a ConfigMap: Kubernetes refuses 1 MiB and more, keys included.
pub const MOST_BYTES: usize = 1_000_000;

/// Nobody, as most images call it. What an image itself says may be root.
pub const NOBODY: u32 = 65_534;

/// An object of a kind that has a specification.
pub fn object(version: &str, kind: &str, metadata: Yaml, spec: Yaml) -> Yaml {
    yaml!({ "apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec })
}

/// A ConfigMap with these values; `binary` are in Base64.
pub fn config_map(metadata: Yaml, plain: Vec<(String, Yaml)>, binary: Vec<(String, Yaml)>) -> Yaml {
    let mut object = yaml!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata });
    for (key, values) in [("data", plain), ("binaryData", binary)] {
        if !values.is_empty() {
            object = object.with(key, Yaml::Map(values));
        }
    }
    object
}

/// Processors and memory of a container. Asked for is the limit: only such pods are never
/// squeezed by others (class Guaranteed).
pub fn guaranteed(cpu: &str, memory: &str) -> Yaml {
    let amounts = yaml!({ "cpu": cpu, "memory": memory });
    yaml!({ "requests": (amounts.clone()), "limits": amounts })
}

/// What a container may do: nothing.
pub fn container_security() -> Yaml {
    yaml!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": { "drop": (texts(["ALL"])) },
    })
}

/// Who a pod is: nobody.
pub fn pod_security() -> Yaml {
    yaml!({
        "runAsNonRoot": true,
        "runAsUser": NOBODY,
        "runAsGroup": NOBODY,
        "seccompProfile": { "type": "RuntimeDefault" },
    })
}

/// A volume's place in a container, to be read only.
pub fn mount(name: &str, path: &str) -> Yaml {
    yaml!({ "name": name, "mountPath": path, "readOnly": true })
}

/// Objects as one text for `kubectl apply -f -`, behind comments that people read.
pub fn manifest(comments: &str, objects: &[Yaml]) -> String {
    let mut text = comments.to_owned();
    for object in objects {
        text.push_str("---\n");
        text.push_str(&object.document());
    }
    text
}
