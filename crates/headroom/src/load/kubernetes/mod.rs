//! `headroom load … --kubernetes`: the same load as manifests.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use lab_load::Target;
use lab_load::kubernetes::{FILES, Manifests, NatsServer, manifests};
use lab_store::Outcome;

use super::args::LoadArgs;
use super::plan::read;
use crate::cli::meant;
use crate::output::print;

/// Longest file: a ConfigMap takes no more.
const FILE_BYTES: u64 = 1_000_000;
/// Flags whose value is a file that the coordinator reads.
const FILE_FLAGS: &[&str] = &[
    "--data-file",
    "--requests-file",
    "--trace",
    "--cacert",
    "--cert",
];
/// Flags about workers and manifests; in a pod they are others. All but the last three
/// have a value.
const OWN_FLAGS: &[&str] = &[
    "--workers",
    "--nats",
    "--session",
    "--workers-within",
    "--image",
    "--nats-image",
    "--nats-secret",
    "--namespace",
    "--worker-memory",
    "--kubernetes",
    "--nats-authority",
    "--quiet",
];
const OWN_SWITCHES: &[&str] = &["--kubernetes", "--nats-authority", "--quiet"];
/// Short flags that have a value.
const SHORT_WITH_VALUE: &str = "qznmHdDTtc";

/// The same load as manifests for Kubernetes.
#[derive(Debug, Args)]
pub(crate) struct KubernetesArgs {
    /// Print manifests for Kubernetes that make this load, and make none
    #[arg(long, requires_all = ["workers", "image"], help_heading = HEADING)]
    pub(crate) kubernetes: bool,
    /// Image whose entry point is headroom
    #[arg(long, value_name = "IMAGE", requires = "kubernetes", help_heading = HEADING)]
    image: Option<String>,
    /// Namespace of everything; without one that of whoever applies the manifests
    #[arg(long, value_name = "NAME", requires = "kubernetes", help_heading = HEADING)]
    namespace: Option<String>,
    /// Memory of each worker
    #[arg(long, value_name = "SIZE", default_value = "256MiB", requires = "kubernetes", value_parser = memory_mib, help_heading = HEADING)]
    worker_memory: u32,
    /// Secret with token, or user and password, for the server of --nats
    #[arg(long, value_name = "NAME", requires_all = ["kubernetes", "nats"], help_heading = HEADING)]
    nats_secret: Option<String>,
    /// That Secret also has ca.crt, the authority to trust
    #[arg(long, requires = "nats_secret", help_heading = HEADING)]
    nats_authority: bool,
    /// Image of the NATS server that comes with the load, without --nats
    #[arg(long, value_name = "IMAGE", default_value = "nats:2.12-alpine", requires = "kubernetes", conflicts_with = "nats", help_heading = HEADING)]
    nats_image: String,
}

const HEADING: &str = "Kubernetes";

fn memory_mib(text: &str) -> Result<u32, String> {
    let bytes = units::parse_bytes(text).map_err(meant)?;
    u32::try_from(bytes.div_ceil(1 << 20)).map_err(|error| error.to_string())
}

/// Prints the manifests of a load on a target, whose workers have so many threads.
pub(super) fn render(args: &LoadArgs, target: &Target, threads: u32) -> Result<Outcome> {
    for (flag, path) in [
        ("--csv", &args.csv),
        ("--hdr", &args.hdr),
        ("--report", &args.report),
    ] {
        if path.is_some() {
            bail!(
                "{flag} writes a file, which would be lost with its pod; use --json and the coordinator's log"
            );
        }
    }
    for (flag, path) in [
        ("--key", &args.key),
        ("--password-file", &args.password_file),
    ] {
        if path.is_some() {
            bail!(
                "{flag} is a secret, and the files of a load travel in a ConfigMap; mount a Secret into the manifests by hand"
            );
        }
    }
    refuse_password(target)?;
    let given: Vec<String> = std::env::args_os()
        .skip_while(|argument| argument != "load")
        .skip(1)
        .map(|argument| {
            argument
                .into_string()
                .map_err(|other| anyhow!("argument {other:?} is not UTF-8"))
        })
        .collect::<Result<_>>()?;
    let mut files = Files::default();
    let mut arguments = match args.threads {
        Some(_) => Vec::new(),
        // In its pod the coordinator would count its own processors. First, for what stands
        // behind a `--` is no flag.
        None => vec!["--threads".to_owned(), threads.to_string()],
    };
    arguments.extend(rewritten(given, &mut |path| files.add(path))?);
    if let Some(path) = &args.requests_file {
        files.add_named_in(path)?;
    }
    let more = &args.kubernetes;
    let text = manifests(&Manifests {
        name: args.workers.session.clone(),
        namespace: more.namespace.clone(),
        image: more.image.clone().context("--kubernetes needs --image")?,
        workers: args
            .workers
            .workers
            .context("--kubernetes needs --workers")?,
        processors: threads,
        memory_mib: more.worker_memory,
        arguments,
        files: files.contents,
        nats: match &args.workers.nats {
            Some(url) => NatsServer::At {
                url: url.clone(),
                secret: more.nats_secret.clone(),
                authority: more.nats_authority,
            },
            None => NatsServer::Included {
                image: more.nats_image.clone(),
                // A letter first: the server takes what begins like a number for one.
                token: format!("t{:032x}", rand::random::<u128>()),
            },
        },
    })?;
    print(&text)?;
    Ok(Outcome::Pass)
}

/// Refuses a password: the variable that it comes from would be missing in the pod, and the load
/// would fail there.
fn refuse_password(target: &Target) -> Result<()> {
    match target.protocol.password_variable() {
        Some(variable) if !target.login.password.is_empty() => bail!(
            "{variable} is a secret, which these manifests do not carry; unset it here, and give it to the \
             coordinator's container from a Secret of yours: under env, name: {variable} with \
             valueFrom.secretKeyRef"
        ),
        _ => Ok(()),
    }
}

/// The arguments as the coordinator's pod needs them: without those about workers and
/// manifests, and with `place` for the path of each file.
fn rewritten(
    given: Vec<String>,
    place: &mut impl FnMut(&str) -> Result<String>,
) -> Result<Vec<String>> {
    let mut kept = Vec::new();
    let mut given = given.into_iter();
    while let Some(argument) = given.next() {
        let value = |given: &mut std::vec::IntoIter<String>| {
            given
                .next()
                .ok_or_else(|| anyhow!("{argument} has no value"))
        };
        if argument == "--" {
            kept.push(argument);
            kept.extend(given);
            break;
        }
        if argument.starts_with("--") {
            let (flag, joined) = match argument.split_once('=') {
                Some((flag, value)) => (flag, Some(value.to_owned())),
                None => (argument.as_str(), None),
            };
            if OWN_FLAGS.contains(&flag) {
                if joined.is_none() && !OWN_SWITCHES.contains(&flag) {
                    value(&mut given)?;
                }
            } else if FILE_FLAGS.contains(&flag) {
                let path = joined.map_or_else(|| value(&mut given), Ok)?;
                kept.extend([flag.to_owned(), place(&path)?]);
            } else {
                kept.push(argument);
            }
            continue;
        }
        // Short flags may stand together; the first with a value ends them.
        let shorts = argument.strip_prefix('-').unwrap_or_default();
        let Some(at) = shorts.find(|short| SHORT_WITH_VALUE.contains(short)) else {
            kept.push(argument);
            continue;
        };
        let (before, rest) = shorts.split_at(at);
        let (short, joined) = rest.split_at(1);
        let path = match joined {
            "" => value(&mut given)?,
            joined => joined.trim_start_matches('=').to_owned(),
        };
        let path = if short == "D" { place(&path)? } else { path };
        kept.extend([format!("-{before}{short}"), path]);
    }
    Ok(kept)
}

/// The files of a load, by the name that they get.
#[derive(Default)]
struct Files {
    contents: BTreeMap<String, Vec<u8>>,
    sources: BTreeMap<String, PathBuf>,
}

impl Files {
    /// Reads a file; where the coordinator will find it.
    fn add(&mut self, path: &str) -> Result<String> {
        let path = Path::new(path);
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.with_context(|| format!("{} has no plain name", path.display()))?;
        if let Some(other) = self.sources.get(name)
            && other != path
        {
            bail!(
                "{} and {} would have one name in the pod; rename one",
                other.display(),
                path.display()
            );
        }
        let bytes = read(path, FILE_BYTES, "a file for the ConfigMap")?;
        self.contents.insert(name.to_owned(), bytes);
        self.sources.insert(name.to_owned(), path.to_owned());
        Ok(format!("{FILES}/{name}"))
    }

    /// Adds the files that a file of requests names; they lie beside it there, so they
    /// must here.
    fn add_named_in(&mut self, requests: &Path) -> Result<()> {
        let bytes = read(requests, FILE_BYTES, "the requests file")?;
        let text =
            String::from_utf8(bytes).with_context(|| format!("read {}", requests.display()))?;
        let file: toml::Table =
            toml::from_str(&text).with_context(|| format!("read {}", requests.display()))?;
        let folder = requests.parent().unwrap_or(Path::new(""));
        for name in named_files(&file) {
            if Path::new(&name).components().count() != 1 {
                bail!(
                    "{} names {name}; for Kubernetes put it beside that file",
                    requests.display()
                );
            }
            self.add(&folder.join(&name).to_string_lossy())?;
        }
        Ok(())
    }
}

/// Values of `[tables]`, and of every `body_file`, in a file of requests.
fn named_files(file: &toml::Table) -> Vec<String> {
    fn bodies(value: &toml::Value, found: &mut Vec<String>) {
        match value {
            toml::Value::Array(values) => values.iter().for_each(|value| bodies(value, found)),
            toml::Value::Table(table) => {
                let own = table.get("body_file").and_then(toml::Value::as_str);
                found.extend(own.map(str::to_owned));
                table.values().for_each(|value| bodies(value, found));
            }
            _ => {}
        }
    }
    let tables = file.get("tables").and_then(toml::Value::as_table);
    let tables = tables.into_iter().flat_map(|tables| tables.values());
    let mut found: Vec<String> = tables
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect();
    for key in ["request", "journey"] {
        file.get(key)
            .into_iter()
            .for_each(|value| bodies(value, &mut found));
    }
    found
}
