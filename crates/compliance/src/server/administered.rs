//! What administrators set for nodes, beside what inventories tell.

use std::sync::Arc;

use super::ledger::{Batch, Refusal, Reply};
use super::state::{NodeRecord, Write};
use crate::acceptance::Standing;
use crate::model::mode::PolicyMode;
use crate::model::node::{Node, NodeState};
use crate::model::property::Property;

/// What an administrator sets for a node; what is left out stays.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Administered {
    /// Properties by their names; those without a value go.
    pub(crate) properties: Vec<(String, Option<serde_json::Value>)>,
    /// The policy mode, or that it has none of its own.
    pub(crate) policy_mode: Option<Option<PolicyMode>>,
    /// Where it stands in its life.
    pub(crate) state: Option<NodeState>,
}

impl Administered {
    /// Carries it out on a node.
    fn on(self, node: &mut Node) -> Result<(), Refusal> {
        for (name, value) in self.properties {
            let known = node.properties.iter().position(|one| one.name == name);
            if let Some(provider) = known.and_then(|at| node.properties[at].provider.clone()) {
                return Err(Refusal::Provided { name, provider });
            }
            match (known, value) {
                (Some(at), Some(value)) => node.properties[at].value = value,
                (Some(at), None) => drop(node.properties.remove(at)),
                (None, Some(value)) => node.properties.push(Property::new(name, value)),
                (None, None) => {}
            }
        }
        node.policy_mode = self.policy_mode.unwrap_or(node.policy_mode);
        node.state = self.state.unwrap_or(node.state);
        Ok(node.check()?)
    }
}

/// Sets what an administrator wants on an accepted node.
pub(super) fn administer(
    batch: &mut Batch<'_>,
    id: &str,
    change: Administered,
) -> Result<Reply, Refusal> {
    let record = batch.records.get(&batch.state.nodes, id);
    let accepted = record.filter(|record| record.known.standing == Standing::Accepted);
    let record = accepted.ok_or_else(|| Refusal::UnknownNode(id.to_owned()))?;
    let mut node = Node::clone(&record.node);
    change.on(&mut node)?;
    let record = Arc::new(NodeRecord {
        node: Arc::new(node),
        ..NodeRecord::clone(record)
    });
    let id: Arc<str> = id.into();
    batch
        .records
        .put(Arc::clone(&id), Some(Arc::clone(&record)));
    batch.writes.push(Write::Node(id, record, None));
    Ok(Reply::Done)
}

/// An inventory came: what an administrator had set stays.
pub(super) fn keep_set(before: &Node, node: &mut Node) {
    node.state = before.state;
    node.policy_mode = before.policy_mode;
    node.agent_run = before.agent_run;
    let set = before.properties.iter();
    let set: Vec<_> = set.filter(|one| one.provider.is_none()).cloned().collect();
    node.properties
        .retain(|one| set.iter().all(|other| other.name != one.name));
    node.properties.extend(set);
}
