//! Manifests for Kubernetes: objects, what its API would refuse, and the YAML in which
//! people read, keep and change them.

mod names;
mod objects;
mod yaml;

pub use names::{
    KubernetesError, is_key, is_label, is_name, is_secret, must, must_be_image, must_be_name,
    must_be_namespace,
};
pub use objects::{
    MOST_BYTES, NOBODY, config_map, container_security, guaranteed, manifest, mount, object,
    pod_security,
};
pub use yaml::{Yaml, texts};
