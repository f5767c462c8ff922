//! What administrators set for nodes, beside what inventories tell.

use std::sync::Arc;

use super::ledger::{Batch, Refusal, Reply};
use super::state::{NodeRecord, Write};
use crate::acceptance::NodeStatus;
use crate::model::mode::PolicyMode;
use crate::model::node::{Node, NodeKind, NodeState, ROOT};
use crate::model::property::Property;
use crate::relay::tree::{Place, check_place, is_behind, relays_above};

/// What an administrator sets for a node; what is left out stays.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Administered {
    /// Properties by their names; those without a value go.
    pub(crate) properties: Vec<(String, Option<serde_json::Value>)>,
    /// The policy mode, or that it has none of its own.
    pub(crate) policy_mode: Option<Option<PolicyMode>>,
    /// Where it stands in its life.
    pub(crate) state: Option<NodeState>,
    /// Is it a relay?
    pub(crate) relay: Option<bool>,
    /// The relay that it is behind, or the root server.
    pub(crate) policy_server: Option<String>,
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
        if let Some(relay) = self.relay {
            node.kind = if relay {
                NodeKind::Relay
            } else {
                NodeKind::Node
            };
        }
        if let Some(server) = self.policy_server {
            node.policy_server_id = server;
        }
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
    let accepted = record.filter(|record| record.known.standing == NodeStatus::Accepted);
    let record = accepted.ok_or_else(|| Refusal::UnknownNode(id.to_owned()))?;
    if change.relay == Some(false) {
        nobody_behind(batch, id)?;
    }
    if let Some(server) = &change.policy_server {
        let below = deepest_below(batch, id);
        check_place(id, server, below, |id| place(batch, id))?;
    }
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

/// Where an accepted node stands in the tree of policy servers.
fn place<'b>(batch: &'b Batch<'_>, id: &str) -> Option<Place<'b>> {
    let record = batch.records.get(&batch.state.nodes, id)?;
    place_of(record)
}

/// Where a node stands, if it is accepted.
pub(crate) fn place_of(record: &NodeRecord) -> Option<Place<'_>> {
    (record.known.standing == NodeStatus::Accepted).then_some(Place {
        server: &record.node.policy_server_id,
        relay: record.node.kind == NodeKind::Relay,
    })
}

/// Most relays in a row that are behind a node.
fn deepest_below(batch: &Batch<'_>, id: &str) -> usize {
    let below = batch.records.values(&batch.state.nodes);
    let relays = below.filter(|one| one.node.kind == NodeKind::Relay);
    let depths = relays.map(|one| {
        let mut above = relays_above(&one.node.id, |id| place(batch, id));
        above.position(|above| above == id).map_or(0, |at| at + 1)
    });
    depths.max().unwrap_or_default()
}

/// A relay is needed as long as nodes are behind it.
pub(super) fn nobody_behind(batch: &Batch<'_>, id: &str) -> Result<(), Refusal> {
    let record = batch.records.get(&batch.state.nodes, id);
    if record.is_none_or(|record| record.node.kind != NodeKind::Relay) {
        return Ok(());
    }
    let all = batch.records.values(&batch.state.nodes);
    let mut behind = all.filter(|one| is_behind(&one.node.id, id, |id| place(batch, id)));
    match behind.next() {
        None => Ok(()),
        Some(first) => Err(Refusal::NodesBehind {
            relay: id.to_owned(),
            first: first.node.id.clone(),
            count: behind.count() + 1,
        }),
    }
}

/// A node is accepted: it is behind the relay that its inventory names, if that is one.
pub(super) fn take_place(batch: &Batch<'_>, node: &mut Node) {
    let server = &node.policy_server_id;
    if check_place(&node.id, server, 0, |id| place(batch, id)).is_err() {
        node.policy_server_id = ROOT.into();
    }
}

/// An inventory came: what an administrator had set stays, and where an accepted node stands.
pub(super) fn keep_set(before: &NodeRecord, node: &mut Node) {
    let standing = before.known.standing;
    let before = &before.node;
    node.state = before.state;
    node.policy_mode = before.policy_mode;
    node.agent_run = before.agent_run;
    if standing == NodeStatus::Accepted {
        node.kind = before.kind;
        node.accepted = before.accepted;
        node.policy_server_id.clone_from(&before.policy_server_id);
    }
    let set = before.properties.iter();
    let set: Vec<_> = set.filter(|one| one.provider.is_none()).cloned().collect();
    node.properties
        .retain(|one| set.iter().all(|other| other.name != one.name));
    node.properties.extend(set);
}
