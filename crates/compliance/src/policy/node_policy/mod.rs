//! The policy of one node, and what it expects to be reported.

mod issued;
mod json;

use std::sync::Arc;

pub use issued::{Issued, IssuedEntry, Remembered, overridden_digest};
pub use json::{ExpectedReports, PolicyDocument};

use super::conflicts::Draft;
use super::content::Content;
use super::digest::{Digest, Digester};
use crate::model::mode::{Modes, PolicyMode};
use crate::model::node::NodeKind;
use crate::model::schedule::AgentRun;

/// What a node's agent must know of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Identity of the node.
    pub node_id: Arc<str>,
    /// Its name in the network.
    pub hostname: Arc<str>,
    /// What it is in the tree of servers.
    pub kind: NodeKind,
    /// Identity of its policy server.
    pub server_id: Arc<str>,
    /// Name of its policy server in the network; empty while that is not known.
    pub server_hostname: Arc<str>,
    /// Modes and schedules of all nodes and its own.
    pub modes: Modes,
    /// The schedule that holds.
    pub run: AgentRun,
    /// Seconds after midnight of the first run of a day.
    pub first_run: u32,
    /// Conditions that its groups set, in their order.
    pub conditions: Box<[Arc<str>]>,
    /// The JSON of its properties, if its policy fills templates or leaves a property to it.
    pub properties: Option<Box<str>>,
}

/// A directive on a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The rule that brings it, and the directive.
    pub draft: Arc<Draft>,
    /// Audit or enforce.
    pub mode: PolicyMode,
    /// What it asks.
    pub content: Arc<Content>,
}

/// A draft that does not hold on a node, and the one that does instead.
pub type OverriddenPair = (Arc<Draft>, Arc<Draft>);

/// The policy of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodePolicy {
    /// `yyyyMMdd-HHmmss-` of the generation that made it, and eight hexadecimal digits of the
    /// hash.
    pub config_id: Arc<str>,
    /// Hash of all that the agent sees.
    pub digest: Digest,
    /// What the agent knows of itself.
    pub header: Header,
    /// Directives in their order.
    pub entries: Box<[Entry]>,
    /// What does not hold; no part of the hash, since the agent does not see it.
    pub overridden: Box<[OverriddenPair]>,
}

impl NodePolicy {
    /// A policy without config id.
    pub(super) fn new(
        header: Header,
        entries: Vec<Entry>,
        overridden: Vec<OverriddenPair>,
    ) -> Self {
        let digest = hash(&header, &entries);
        Self {
            config_id: "".into(),
            digest,
            header,
            entries: entries.into(),
            overridden: overridden.into(),
        }
    }

    /// How many values are expected to be reported.
    pub fn value_count(&self) -> u64 {
        let counts = self
            .entries
            .iter()
            .map(|entry| entry.content.compiled.value_count);
        counts.map(u64::from).sum()
    }

    /// Bytes of its texts, those that other nodes share with it too.
    pub fn bytes(&self) -> usize {
        let entries = self.entries.iter().map(|entry| entry.content.bytes());
        let properties = self.header.properties.as_deref().map_or(0, str::len);
        entries.sum::<usize>() + properties
    }
}

fn hash(header: &Header, entries: &[Entry]) -> Digest {
    let mut all = Digester::new("policy");
    let Header {
        node_id,
        hostname,
        kind,
        server_id,
        server_hostname,
        modes,
        run,
        first_run,
        conditions,
        properties,
    } = header;
    for text in [node_id, hostname, server_id, server_hostname] {
        all.text(text);
    }
    all.number(*kind as u64);
    all.text(modes.global.mode.name());
    all.number(u64::from(modes.global.overridable));
    all.optional(modes.node.map(PolicyMode::name));
    all.text(modes.compliance.name());
    for run in [Some(modes.run), modes.node_run, Some(*run)] {
        all.number(u64::from(run.is_some()));
        let run = run.unwrap_or_default();
        for number in [run.interval, run.start_minute, run.start_hour, run.splay] {
            all.number(number.into());
        }
    }
    all.number((*first_run).into());
    all.number(conditions.len() as u64);
    conditions.iter().for_each(|one| all.text(one));
    // Of all other policies the hash is as it always was, so that they are not given out again.
    if let Some(properties) = properties {
        all.text(properties);
    }
    for entry in entries {
        all.text(&entry.draft.rule_id);
        all.text(&entry.draft.directive_id);
        all.text(&entry.draft.directive_name);
        all.number(u64::from(entry.draft.system));
        all.text(entry.mode.name());
        all.digest(&entry.content.digest);
    }
    all.finish()
}
