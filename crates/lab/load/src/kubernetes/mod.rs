//! Manifests that run a load on Kubernetes: workers as an Indexed Job, the coordinator
//! as another, and a NATS server for them to meet if there is none.

mod pods;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use kubernetes::{
    MOST_BYTES, Yaml, config_map, is_key, is_name, is_secret, manifest, must, must_be_image,
    must_be_namespace, yaml,
};
use pods::{coordinator, nats, workers};

pub use kubernetes::KubernetesError;

/// What shall run, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifests {
    /// Name of the session, and start of the names of all objects: a label of DNS
    /// (`[a-z][a-z0-9-]*`, no `-` at the end) of at most 40 bytes.
    pub name: String,
    /// Namespace; without one that of whoever applies the manifests.
    pub namespace: Option<String>,
    /// Image whose entry point is `headroom`.
    pub image: String,
    /// Number of workers; 1 to 1,000.
    pub workers: u32,
    /// Processors of each worker: whole ones, so that a node with the static CPU
    /// policy gives it processors of its own; 1 to 256.
    pub processors: u32,
    /// Memory of each worker, in MiB; 16 to 1,048,576.
    pub memory_mib: u32,
    /// The load, as it stands after `headroom load`: URL and flags, without those about
    /// workers, session and NATS. Files are named as they are in `files`, below
    /// [`FILES`].
    pub arguments: Vec<String>,
    /// Files that the arguments name; in all at most 1 MB. They end up in a ConfigMap,
    /// which is no place for secrets.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Where workers and coordinator meet.
    pub nats: NatsServer,
}

/// Folder in which the coordinator finds the files.
pub const FILES: &str = "/load";

/// A NATS server.
#[derive(Clone, PartialEq, Eq)]
pub enum NatsServer {
    /// One that is there already.
    At {
        /// Its address, without what proves who one is.
        url: String,
        /// Name of a Secret in the same namespace with what does: `token`, or `user`
        /// and `password`.
        secret: Option<String>,
        /// Whether the Secret also has `ca.crt`, the authority to trust for TLS.
        authority: bool,
    },
    /// One that comes and goes with this load.
    Included {
        /// Its image: `nats:2.12-alpine` or another of that kind.
        image: String,
        /// What clients prove themselves with: 16 to 128 random letters and digits, the
        /// first a letter (the server's configuration takes others for numbers). It
        /// stands in the manifests' Secret.
        token: String,
    },
}

impl std::fmt::Debug for NatsServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::At { url, secret, .. } => write!(formatter, "At({url}, secret {secret:?})"),
            Self::Included { image, .. } => write!(formatter, "Included({image})"),
        }
    }
}

/// The manifests, as one YAML text for `kubectl apply -f -`.
///
/// # Errors
/// When a name, a number or the files are beyond what Kubernetes takes.
pub fn manifests(load: &Manifests) -> Result<String, KubernetesError> {
    check(load)?;
    let name = &load.name;
    let mut objects = Vec::new();
    if !load.files.is_empty() {
        objects.push(files(load));
    }
    if let NatsServer::Included { image, token } = &load.nats {
        objects.extend(nats(load, image, token));
    }
    objects.push(workers(load));
    objects.push(coordinator(load));
    let namespace = load.namespace.as_ref();
    let kubectl = namespace.map_or("kubectl".to_owned(), |name| format!("kubectl -n {name}"));
    let comments = format!(
        "# Load from {} workers. Apply it with `{kubectl} apply -f FILE`, follow it with\n\
         # `{kubectl} logs -f job/{name}-coordinator`, remove it with `{kubectl} delete -f FILE`.\n",
        load.workers
    );
    Ok(manifest(&comments, &objects))
}

fn check(load: &Manifests) -> Result<(), KubernetesError> {
    let range = |what, value: u32, from, to, expected| {
        let fits = (from..=to).contains(&value);
        must(fits, what, &value.to_string(), expected)
    };
    let expected =
        "at most 40 lower-case letters, digits and -, beginning with a letter, not ending with -";
    must(is_name(&load.name, 40), "the name", &load.name, expected)?;
    if let Some(namespace) = &load.namespace {
        must_be_namespace(namespace)?;
    }
    let (workers, cores) = (load.workers, load.processors);
    range("the number of workers", workers, 1, 1000, "1 to 1,000")?;
    range("the number of processors", cores, 1, 256, "1 to 256")?;
    let (memory, expected) = (load.memory_mib, "16 to 1,048,576");
    range("the memory in MiB", memory, 16, 1 << 20, expected)?;
    must_be_image("the image", &load.image)?;
    for name in load.files.keys() {
        let expected = "letters, digits, -, _ and . only, at most 253";
        must(is_key(name), "the name of a file", name, expected)?;
    }
    let files = load.files.iter();
    let bytes: usize = files.map(|(name, bytes)| name.len() + bytes.len()).sum();
    let what = "the size of the files in bytes";
    let expected = "at most 1,000,000: a ConfigMap takes no more";
    must(bytes <= MOST_BYTES, what, &bytes.to_string(), expected)?;
    match &load.nats {
        NatsServer::At {
            url,
            secret,
            authority,
        } => {
            let scheme = ["nats://", "tls://"]
                .iter()
                .any(|scheme| url.starts_with(scheme));
            // Not repeated in the error: it may be the password.
            let expected =
                "nats://HOST:PORT or tls://HOST:PORT; what proves who you are goes into a Secret";
            let found = if url.contains('@') {
                "one with a secret in it"
            } else {
                url
            };
            must(
                scheme && !url.contains('@'),
                "the address of NATS",
                found,
                expected,
            )?;
            let fits = secret.as_deref().is_none_or(is_secret);
            let expected = "the name of a Secret: lower-case letters, digits, - and .";
            let found = secret.as_deref().unwrap_or("none");
            must(fits, "the Secret for NATS", found, expected)?;
            let expected = "one that has the authority as ca.crt";
            must(
                secret.is_some() || !authority,
                "the Secret for NATS",
                found,
                expected,
            )
        }
        NatsServer::Included { image, token } => {
            must_be_image("the image of NATS", image)?;
            let fits = (16..=128).contains(&token.len())
                && token.bytes().all(|byte| byte.is_ascii_alphanumeric())
                && token.as_bytes()[0].is_ascii_alphabetic();
            let found = "one that is not shown here";
            let expected = "16 to 128 letters and digits, beginning with a letter";
            must(fits, "the token of NATS", found, expected)
        }
    }
}

/// The files of the load.
fn files(load: &Manifests) -> Yaml {
    let mut plain = Vec::new();
    let mut binary = Vec::new();
    for (name, bytes) in &load.files {
        match std::str::from_utf8(bytes) {
            Ok(text) => plain.push((name.clone(), text.into())),
            Err(_) => binary.push((name.clone(), base64(bytes).into())),
        }
    }
    config_map(metadata(load, "files"), plain, binary)
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Name, namespace and labels of one of the objects.
fn metadata(load: &Manifests, part: &str) -> Yaml {
    let mut metadata = yaml!({ "name": (format!("{}-{part}", load.name)) });
    if let Some(namespace) = &load.namespace {
        metadata = metadata.with("namespace", namespace.as_str());
    }
    metadata.with("labels", labels(load, part))
}

/// What all objects of a part have in common; pods are selected by it.
fn labels(load: &Manifests, part: &str) -> Yaml {
    yaml!({
        "app.kubernetes.io/name": "headroom",
        "app.kubernetes.io/instance": (load.name.as_str()),
        "app.kubernetes.io/component": part,
    })
}
