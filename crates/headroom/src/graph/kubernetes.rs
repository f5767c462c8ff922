//! `headroom graph kubernetes`.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use graph::kubernetes::{Manifests, manifests, portable};

use super::args::KubernetesArgs;
use super::file::TopologyFile;
use super::make::whole;
use crate::output::{eprint, print};

/// Longest job of stress-ng: a ConfigMap takes no more.
const FILE_BYTES: u64 = 1_000_000;

/// Prints the manifests of a topology.
pub(super) fn kubernetes(args: &KubernetesArgs) -> Result<()> {
    // Not for this machine: it may have fewer processors than a node.
    let source = TopologyFile::read(&args.topology)?.source;
    let checked = super::checked(&source, None)?;
    super::warn(&checked.warnings);
    let topology = checked.topology;
    let (portable, files) = portable(&topology)?;
    let entry = topology.service(topology.entry);
    if let Some(entry) = entry.filter(|entry| entry.replicas > 1) {
        eprint(format_args!(
            "warning: each of the {} pods of {} keeps those spans that reach it; for whole traces have one pod of it, or name a collector in [trace]",
            entry.replicas, entry.name
        ));
    }
    if portable.background != topology.background {
        eprint("warning: background work is left out; run it as pods of its own");
    }
    let pinned = topology
        .services
        .iter()
        .any(|one| !one.placement.cpus.is_empty());
    if pinned {
        eprint(
            "warning: cpus are left out; the static policy of the CPU manager pins pods with whole processors",
        );
    }
    let mut texts = BTreeMap::new();
    for (name, path) in files {
        let text = String::from_utf8(whole(&path, FILE_BYTES)?)
            .with_context(|| format!("read {}", path.display()))?;
        texts.insert(name, text);
    }
    print(&manifests(&Manifests {
        topology: portable,
        files: texts,
        image: args.image.clone(),
        namespace: args.namespace.clone(),
        monitor: !args.no_monitor,
    })?)
}
