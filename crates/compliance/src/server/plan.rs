//! All definitions at once: tried on a copy, shown as a plan, and put in the place of what there is
//! if they hold.

use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;

use super::generator::{Generator, generate};
use super::ledger::{Refusal, Reply, Request};
use crate::definitions::{Definitions, Delta, Difference, Edit};
use crate::model::node::ROOT;
use crate::policy::generation::{ChangeError, NodeUpdate, Problem};
use crate::policy::node_policy::Issued;

/// Nodes that a plan names.
const NAMED: usize = 1_000;

/// Objects that differ, of which only these are kept; of more, all definitions are.
const FEW: usize = 64;

/// What other definitions would change, or did.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Plan {
    /// The version that they change; after it was done, that which they are.
    pub(crate) version: i64,
    /// Objects.
    pub(crate) objects: Vec<Difference>,
    /// How many nodes get another policy.
    pub(crate) nodes: usize,
    /// The first of them.
    pub(crate) named: Vec<PlannedNode>,
    /// Nodes whose policies cannot be made, and why.
    pub(crate) failures: Vec<PlannedFailure>,
    /// What is wrong. It stops nothing but groups in a circle, which are refused.
    pub(crate) problems: Vec<String>,
    /// How long it took; after it was done, until all of it was durable and expected.
    pub(crate) milliseconds: f64,
}

/// A node that gets another policy.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlannedNode {
    pub(super) id: String,
    hostname: String,
    /// Directives that it gets.
    added: Vec<String>,
    /// Directives whose content, mode or rule is another.
    changed: Vec<String>,
    /// Directives that it loses.
    removed: Vec<String>,
}

/// A node whose policy cannot be made.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct PlannedFailure {
    pub(super) id: String,
    why: String,
}

/// Why definitions are not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DefineError {
    /// An object is wrong.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// They could not be kept.
    #[error(transparent)]
    Refusal(#[from] Refusal),
    /// Nobody could say who belongs to some groups.
    #[error("{0}; nothing was changed")]
    Circle(Problem),
    /// Policies could not be made.
    #[error(
        "the policies of {count} nodes cannot be made, the first of {node}: {why}; nothing was changed"
    )]
    Failures {
        count: usize,
        /// One of them.
        node: String,
        why: String,
    },
}

impl Generator {
    /// Tries definitions on a copy, and puts it in the place of the engine if they hold.
    pub(super) fn define(
        &mut self,
        mut new: Arc<Definitions>,
        base: Option<i64>,
    ) -> Result<Plan, DefineError> {
        let start = Instant::now();
        let (old, version) = {
            let state = self.view.read();
            (Arc::clone(&state.definitions), state.version)
        };
        let kept = Arc::make_mut(&mut new).keep_made(&old);
        let mut differences = old.to(&new);
        differences.objects.extend(kept);
        let delta = Delta::between(&old, &new);
        // What is durable is changed in its place if nobody else has it.
        drop(old);
        let mut engine = self.engine.clone();
        engine.apply(differences.changes)?;
        let mut outcome = generate(&mut engine, self.threads);
        // The root server has no agent of its own.
        outcome.updates.retain(|update| &*update.node != ROOT);
        let mut plan = Plan {
            version,
            objects: differences.objects,
            nodes: outcome.updates.len(),
            named: self.named(&outcome.updates),
            failures: engine
                .failures()
                .map(|(id, failure)| PlannedFailure {
                    id: id.to_owned(),
                    why: failure.to_string(),
                })
                .collect(),
            problems: engine.problems().iter().map(ToString::to_string).collect(),
            milliseconds: start.elapsed().as_secs_f64() * 1e3,
        };
        let Some(base) = base else {
            return Ok(plan);
        };
        self.no_new_failure(&engine)?;
        self.no_new_circle(&engine)?;
        let request = match delta.len() <= FEW {
            true => Request::Edit(Box::new(Edit::Folder(Box::new(delta))), Some(base)),
            false => Request::Definitions(new, base),
        };
        if let Reply::Version(version) = self.runtime.block_on(self.commands.run(request))? {
            plan.version = version;
        }
        self.put(engine, outcome);
        plan.milliseconds = start.elapsed().as_secs_f64() * 1e3;
        Ok(plan)
    }

    fn named(&self, updates: &[NodeUpdate]) -> Vec<PlannedNode> {
        let first = updates.iter().take(NAMED);
        first
            .map(|update| {
                let old = self.engine.issued(&update.node);
                let node = self.engine.node(&update.node);
                let (added, changed, removed) = compared(old, update.policy.as_ref());
                PlannedNode {
                    id: update.node.to_string(),
                    hostname: node.map(|node| node.hostname.clone()).unwrap_or_default(),
                    added,
                    changed,
                    removed,
                }
            })
            .collect()
    }
}

/// Directives that a node gets, keeps otherwise, and loses.
fn compared(
    old: Option<&Arc<Issued>>,
    new: Option<&Arc<Issued>>,
) -> (Vec<String>, Vec<String>, Vec<String>) {
    let entries = |policy: Option<&Arc<Issued>>| {
        let all = policy.into_iter().flat_map(|policy| policy.entries.iter());
        let all = all.map(|entry| {
            let draft = &entry.draft;
            let key = (Arc::clone(&draft.rule_id), Arc::clone(&draft.directive_id));
            (key, (entry.mode, entry.content))
        });
        all.collect::<std::collections::BTreeMap<_, _>>()
    };
    let (old, new) = (entries(old), entries(new));
    let (mut added, mut changed, mut removed) = (Vec::new(), Vec::new(), Vec::new());
    for (key, content) in &new {
        match old.get(key) {
            None => added.push(key.1.to_string()),
            Some(before) if before != content => changed.push(key.1.to_string()),
            Some(_) => {}
        }
    }
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        removed.push(key.1.to_string());
    }
    (added, changed, removed)
}
