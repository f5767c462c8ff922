//! New policies in the place of old ones.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::run::Built;
use super::whole::Made;
use super::{Engine, NodeUpdate, Outcome, Problem, slot};
use crate::model::ids::{DenseId, NodeIx};
use crate::model::node::ROOT;
use crate::model::node_set::NodeSet;
use crate::policy::digest::Digest;
use crate::policy::node_policy::{Issued, NodePolicy};

impl Engine {
    /// Puts new policies in the place of old ones, except behind failed policy servers.
    pub(super) fn publish(&mut self, now: i64, built: Vec<Built>) -> Outcome {
        let mut outcome = Outcome {
            generated: built.len(),
            ..Outcome::default()
        };
        // All of them were built again.
        self.held.clear();
        let mut made = Vec::with_capacity(built.len());
        for (ix, result) in built {
            match result {
                Ok(policy) => {
                    self.failures.remove(&ix);
                    made.push((ix, policy));
                }
                Err(failure) => {
                    self.failures.insert(ix, failure);
                }
            }
        }
        let last = self.nodes.entries.len();
        slot(&mut self.published, last);
        for (ix, new) in made {
            let issued = new.as_ref().map(|new| &new.issued);
            if self.is_kept(ix, issued) {
                // What is given out remains, with its config id.
                if let (Some(new), Some(before)) = (new, self.remembered.remove(&ix)) {
                    self.published[ix.index()] = Some(Arc::new(Issued {
                        config_id: before.config_id,
                        ..new.issued
                    }));
                }
                continue;
            }
            if new.is_some() && self.is_behind_failure(ix) {
                self.held.insert(ix);
                continue;
            }
            self.gone.remove(&ix);
            self.owed.remove(&ix);
            let update = self.issue(now, ix, new);
            outcome.updates.push(update);
        }
        outcome.failed = self.failures.len();
        outcome.held = self.held.len();
        outcome
    }

    /// Is this what a node is given already, and what is kept of it?
    pub(super) fn is_kept(&self, ix: NodeIx, new: Option<&Issued>) -> bool {
        if self.owed.contains(&ix) {
            return false;
        }
        let old = self.published.get(ix.index()).and_then(Option::as_ref);
        match (old, self.remembered.get(&ix), new) {
            (None, None, None) => true,
            (Some(old), _, Some(new)) => old.same_content(new) && !self.gone.contains(&ix),
            (None, Some(stored), Some(new)) => new.is(stored),
            _ => false,
        }
    }

    fn issue(&mut self, now: i64, ix: NodeIx, new: Option<Made>) -> NodeUpdate {
        let old = self.published[ix.index()].take();
        let before = self.remembered.remove(&ix);
        let new_config = match (&old, &new) {
            (Some(old), Some(new)) => old.digest != new.issued.digest,
            _ => true,
        };
        let (mut policy, mut whole) = (None, None);
        if let Some(new) = new {
            let digest = new.issued.digest;
            let config_id = match (old, before) {
                (Some(old), _) if !new_config => Arc::clone(&old.config_id),
                (None, Some(before)) if before.digest == digest => before.config_id,
                _ => config_id(now, &digest),
            };
            whole = new.whole.map(|whole| {
                Arc::new(NodePolicy {
                    config_id: Arc::clone(&config_id),
                    ..*whole
                })
            });
            policy = Some(Arc::new(Issued {
                config_id,
                ..new.issued
            }));
        }
        self.published[ix.index()].clone_from(&policy);
        NodeUpdate {
            node: self.nodes.names.text(ix).into(),
            policy,
            whole,
            new_config,
        }
    }

    /// Has a policy server between the node and the root failed?
    fn is_behind_failure(&self, node: NodeIx) -> bool {
        let mut at = node;
        // Bounded: servers may name each other in a circle.
        for _ in 0..=20 {
            let Some(entry) = self.nodes.get(at) else {
                return false;
            };
            if entry.node.id == ROOT {
                return false;
            }
            match self.nodes.named(&entry.node.policy_server_id) {
                Some((server, _)) if self.failures.contains_key(&server) => return true,
                Some((server, _)) => at = server,
                None => return false,
            }
        }
        false
    }

    pub(super) fn note_unstable(&mut self, generated: &NodeSet, found: Vec<(NodeIx, Problem)>) {
        self.unstable.retain(|node, _| !generated.contains(*node));
        for (node, problem) in found {
            self.unstable.entry(node).or_default().insert(problem);
        }
        let unstable: BTreeSet<_> = self.unstable.values().flatten().cloned().collect();
        self.problems.extend(unstable);
    }
}

/// `yyyyMMdd-HHmmss-` of a moment, and the first eight hexadecimal digits of a hash.
fn config_id(now: i64, digest: &Digest) -> Arc<str> {
    let moment = jiff::Timestamp::from_second(now).unwrap_or_default();
    let time = moment.strftime("%Y%m%d-%H%M%S");
    let [a, b, c, d, ..] = *digest;
    let hash = u32::from_be_bytes([a, b, c, d]);
    format!("{time}-{hash:08x}").into()
}
