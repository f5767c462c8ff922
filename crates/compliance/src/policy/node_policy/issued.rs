//! What is remembered of policies that are given out.

use std::sync::Arc;

use super::super::conflicts::Draft;
use super::super::digest::{Digest, Digester};
use super::{NodePolicy, OverriddenPair};
use crate::model::mode::PolicyMode;

/// A policy that is given out, without its texts: enough to tell whether another asks the same, and
/// which directives differ. The texts of a large fleet are more than a gigabyte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issued {
    /// The config id under which it was given out; empty before that.
    pub config_id: Arc<str>,
    /// Hash of all that the agent sees.
    pub digest: Digest,
    /// [Hash](overridden_digest) of what does not hold.
    pub overridden: Digest,
    /// Its directives in their order.
    pub entries: Box<[IssuedEntry]>,
    /// How many values are expected to be reported.
    pub value_count: u64,
}

/// A directive of such a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedEntry {
    /// The rule that brings it, and the directive.
    pub draft: Arc<Draft>,
    /// Audit or enforce.
    pub mode: PolicyMode,
    /// Hash of what it asks.
    pub content: Digest,
}

/// A policy as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// Its config id.
    pub config_id: Arc<str>,
    /// Hash of all that the agent sees.
    pub digest: Digest,
    /// [Hash](overridden_digest) of what does not hold, if what is expected could be read.
    pub overridden: Option<Digest>,
}

impl Issued {
    /// What is remembered of a policy.
    pub fn of(policy: &NodePolicy) -> Self {
        let entries = policy.entries.iter().map(|entry| IssuedEntry {
            draft: Arc::clone(&entry.draft),
            mode: entry.mode,
            content: entry.content.digest,
        });
        Self {
            config_id: Arc::clone(&policy.config_id),
            digest: policy.digest,
            overridden: overridden_digest(policy.overridden.iter().map(identities)),
            entries: entries.collect(),
            value_count: policy.value_count(),
        }
    }

    /// Do two policies ask the same, whatever generation made them?
    pub fn same_content(&self, other: &Self) -> bool {
        self.digest == other.digest && self.overridden == other.overridden
    }

    /// Is it the one that the store has?
    pub fn is(&self, stored: &Remembered) -> bool {
        self.digest == stored.digest && stored.overridden == Some(self.overridden)
    }
}

/// A directive that does not hold and the one that does instead: rule and directive of both.
fn identities(pair: &OverriddenPair) -> [&str; 4] {
    let (draft, by) = pair;
    [
        &draft.rule_id,
        &draft.directive_id,
        &by.rule_id,
        &by.directive_id,
    ]
}

/// Hash of what does not hold on a node: of each its rule and directive, and those of what holds
/// instead. Reports show no more of it.
pub fn overridden_digest<'a>(all: impl Iterator<Item = [&'a str; 4]>) -> Digest {
    let mut hash = Digester::new("overridden");
    all.flatten().for_each(|identity| hash.text(identity));
    hash.finish()
}
