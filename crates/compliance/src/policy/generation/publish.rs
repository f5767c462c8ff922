//! New policies in the place of old ones.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::run::Built;
use super::{Engine, NodeUpdate, Outcome, Problem, slot};
use crate::model::ids::{DenseId, NodeIx};
use crate::model::node::ROOT;
use crate::model::node_set::NodeSet;
use crate::policy::digest::Digest;
use crate::policy::node_policy::NodePolicy;

impl Engine {
    /// Puts new policies in the place of old ones, except behind failed policy servers.
    pub(super) fn publish(&mut self, now: i64, built: Vec<Built>) -> Outcome {
        let mut outcome = Outcome {
            generated: built.len(),
            ..Outcome::default()
        };
        let mut touched: BTreeSet<NodeIx> = std::mem::take(&mut self.held);
        for (ix, result) in built {
            touched.insert(ix);
            match result {
                Ok(policy) => {
                    self.failures.remove(&ix);
                    *slot(&mut self.newest, ix.index()) = policy.map(Arc::new);
                }
                Err(failure) => {
                    self.failures.insert(ix, failure);
                }
            }
        }
        let last = self.nodes.entries.len();
        slot(&mut self.newest, last);
        slot(&mut self.published, last);
        for ix in touched {
            let new = &self.newest[ix.index()];
            let old = &self.published[ix.index()];
            let same = match (old, new) {
                (None, None) => true,
                (Some(old), Some(new)) => old.same_content(new) && !self.gone.contains(&ix),
                _ => false,
            };
            if same {
                // The old one remains, with its config id.
                self.newest[ix.index()] = old.clone();
                continue;
            }
            if self.failures.contains_key(&ix) {
                continue;
            }
            if new.is_some() && self.is_behind_failure(ix) {
                self.held.insert(ix);
                continue;
            }
            let new_config = match (old, new) {
                (Some(old), Some(new)) => old.digest != new.digest,
                _ => true,
            };
            self.gone.remove(&ix);
            let before = self.config_ids.remove(&ix);
            let policy = new.as_ref().map(|new| {
                let config_id = match (old, before) {
                    (Some(old), _) if !new_config => Arc::clone(&old.config_id),
                    (None, Some((digest, id))) if digest == new.digest => id,
                    _ => config_id(now, &new.digest),
                };
                Arc::new(NodePolicy {
                    config_id,
                    ..NodePolicy::clone(new)
                })
            });
            outcome.updates.push(NodeUpdate {
                node: self.nodes.names.text(ix).into(),
                policy: policy.clone(),
                new_config,
            });
            self.newest[ix.index()] = policy.clone();
            self.published[ix.index()] = policy;
        }
        outcome.failed = self.failures.len();
        outcome.held = self.held.len();
        outcome
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
    let hash = digest
        .iter()
        .take(4)
        .fold(0u32, |hash, &byte| hash << 8 | u32::from(byte));
    format!("{time}-{hash:08x}").into()
}
