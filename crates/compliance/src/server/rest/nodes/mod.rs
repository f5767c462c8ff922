//! Nodes: who is pending, who is accepted, decisions about them, and what is set for them.

mod details;
mod inherited;
mod schemas;

use std::collections::HashSet;
use std::sync::Arc;

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answers::ApiError;
use super::route::{Answer, Call, Route, routes};
use crate::acceptance::{DecisionError, NodeStatus};
use crate::model::expiration;
use crate::model::mode::PolicyMode;
use crate::model::node::{Node, NodeKind, NodeState};
use crate::model::property::{Property, removes};
use crate::reports::moment::Moment;
use crate::server::administered::Administered;
use crate::server::generator::Task;
use crate::server::ledger::{Refusal, Request};
use crate::server::service::Service;
use crate::server::state::NodeRecord;
use inherited::INHERITED;
use schemas::{CHANGE, DECIDED_NODES, DECISION, IDS, INCLUDE, NODE_STATUSES, NODES, ONE_DECISION};

/// Most nodes that one decision is about.
const DECIDED: usize = 100_000;
/// What Rudder takes behind `?` to find nodes by.
const QUERY: [&str; 4] = ["query", "where", "composition", "select"];

/// The calls of nodes.
pub(super) const ROUTES: &[Route] = routes! {
    get "nodes" "listAcceptedNodes" "Accepted nodes"
        => "nodes": NODES, Later(|service, call| Box::pin(service.all(call, NodeStatus::Accepted))),
        with_query(INCLUDE);
    get "nodes/pending" "listPendingNodes" "Nodes that wait for a decision"
        => "nodes": NODES, Later(|service, call| Box::pin(service.all(call, NodeStatus::Pending))),
        with_query(INCLUDE);
    get "nodes/pending/{id}" "pendingNodeDetails" "A node that waits"
        => "nodes": NODES,
        Later(|service, call| Box::pin(service.included_pending(call))),
        with_query(INCLUDE);
    get "nodes/status" "getNodesStatus" "Pending, accepted or unknown"
        => "nodes": NODE_STATUSES, Now(|service, call| Ok(service.statuses(call.query.get("ids")))),
        with_query(IDS);
    get "nodes/{id}" "nodeDetails" "A node, accepted or waiting"
        => "nodes": NODES, Later(|service, call| Box::pin(service.included_known(call))),
        with_query(INCLUDE);
    get "nodes/{id}/inheritedProperties" "nodeInheritedProperties"
        "What a node has of its own and inherits, and from where"
        => "": INHERITED, Now(|service, call| service.inherited(call.id()));
    post "nodes/pending" "changePendingNodeStatus" "Accept or refuse nodes"
        => "nodes": DECIDED_NODES, Later(|service, call| Box::pin(service.decide_some(call))),
        takes(&DECISION);
    post "nodes/pending/{id}" "changePendingNodeStatus" "Accept or refuse a node"
        => "nodes": DECIDED_NODES, Later(|service, call| Box::pin(service.decide_one(call))),
        takes(&ONE_DECISION);
    post "nodes/{id}" "updateNode"
        "Set properties, policy mode, state or place of an accepted node, or let it have another \
         key"
        => "nodes": NODES, Later(|service, call| Box::pin(service.change(call))), takes(&CHANGE);
    delete "nodes/{id}" "deleteNode" "Delete an accepted node, with all that it reported"
        => "nodes": NODES, Later(|service, call| Box::pin(service.delete(call.id())));
};

/// What becomes of pending nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Accepted,
    Refused,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Decision {
    #[serde(default)]
    node_id: Vec<String>,
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Change {
    properties: Vec<Property>,
    policy_mode: Option<String>,
    state: Option<NodeState>,
    key_status: Option<String>,
    agent_key: Option<Value>,
    kind: Option<NodeKind>,
    policy_server_id: Option<String>,
}

impl Change {
    /// What of it is set for the node.
    fn administered(self) -> Administered {
        let mode = |word: &str| match word {
            "audit" => Some(PolicyMode::Audit),
            "enforce" => Some(PolicyMode::Enforce),
            _ => None,
        };
        let properties = self.properties.into_iter();
        Administered {
            properties: properties
                .map(|one| (one.name, Some(one.value).filter(|value| !removes(value))))
                .collect(),
            policy_mode: self.policy_mode.as_deref().map(mode),
            state: self.state,
            relay: self.kind.map(|kind| kind == NodeKind::Relay),
            policy_server: self.policy_server_id,
        }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let status = match &refusal {
            Refusal::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
            Refusal::Decision(DecisionError::NotAccepted { .. })
            | Refusal::UnknownNode(_)
            | Refusal::UnknownToken(_) => StatusCode::NOT_FOUND,
            Refusal::Provided { .. } => return Self::managed("inventory", refusal),
            Refusal::Misplaced(_) => return Self::field("policyServerId", refusal.to_string()),
            Refusal::Model(error) => return Self::field("properties", error.to_string()),
            _ => StatusCode::CONFLICT,
        };
        Self::new(status, refusal)
    }
}

impl Service {
    async fn change(&self, call: &Call<'_>) -> Answer {
        let change: Change = call.read()?;
        let id = call.id();
        for (at, one) in change.properties.iter().enumerate() {
            if one.name == expiration::PROPERTY
                && let Err(why) = expiration::check(&one.value)
            {
                return Err(ApiError::field(format!("properties[{at}].value"), why));
            }
        }
        self.one(id, NodeStatus::Accepted)?;
        let reset = change.key_status.is_some() || change.agent_key.is_some();
        let change = change.administered();
        if change != Administered::default() {
            let node = id.to_owned();
            let request = Request::Administer { node, change };
            self.commands.run(request).await?;
            // The thread is gone only when the server stops; it starts anew from the store.
            let _ = self.tasks.send(Task::Administered(id.to_owned())).await;
        }
        // What is refused leaves the key settled as well.
        if reset {
            self.commands.run(Request::ResetKey(id.to_owned())).await?;
        }
        self.one(id, NodeStatus::Accepted)
    }

    /// All nodes. Who asks for those of a query is not answered all of them, which might then be
    /// acted on.
    async fn all(&self, call: &Call<'_>, standing: NodeStatus) -> Answer {
        let asked = QUERY.iter().find(|name| call.query.get(name).is_some());
        if let Some(name) = asked {
            let message = "nodes are not found by a query here: make a group of it, whose nodeIds \
                           are its nodes";
            return Err(ApiError::field(*name, message));
        }
        self.included(call, self.records(standing)).await
    }

    async fn included_known(&self, call: &Call<'_>) -> Answer {
        let known = self.view.read().nodes.get(call.id()).cloned();
        let record = known.ok_or_else(|| ApiError::not_found("node", call.id()))?;
        self.included(call, vec![record]).await
    }

    async fn included_pending(&self, call: &Call<'_>) -> Answer {
        let record = self.record(call.id(), NodeStatus::Pending)?;
        self.included(call, vec![record]).await
    }

    fn record(&self, id: &str, standing: NodeStatus) -> Result<Arc<NodeRecord>, ApiError> {
        let state = self.view.read();
        let node = state.nodes.get(id).cloned();
        let node = node.filter(|node| node.known.standing == standing);
        node.ok_or_else(|| ApiError::not_found("node", id))
    }

    fn one(&self, id: &str, standing: NodeStatus) -> Result<Value, ApiError> {
        let record = self.record(id, standing)?;
        Ok(json!({"nodes": [shown(&record)]}))
    }

    fn statuses(&self, ids: Option<&str>) -> Value {
        let state = self.view.read();
        let ids = ids.unwrap_or_default().split(',');
        let ids = ids.filter(|id| !id.is_empty());
        let nodes = ids.map(|id| {
            let status = match state.nodes.get(id).map(|node| node.known.standing) {
                None => "unknown",
                Some(NodeStatus::Pending) => "pending",
                Some(NodeStatus::Accepted) => "accepted",
            };
            json!({"id": id, "status": status})
        });
        json!({"nodes": nodes.collect::<Vec<_>>()})
    }

    async fn delete(&self, id: &str) -> Answer {
        let found = self.one(id, NodeStatus::Accepted)?;
        self.intake.delete(id).await?;
        Ok(found)
    }

    async fn decide_some(&self, call: &Call<'_>) -> Answer {
        let decision: Decision = call.read()?;
        self.decide(decision.node_id, decision.status).await
    }

    async fn decide_one(&self, call: &Call<'_>) -> Answer {
        let decision: Decision = call.read()?;
        let nodes = vec![call.id().to_owned()];
        self.decide(nodes, decision.status).await
    }

    async fn decide(&self, nodes: Vec<String>, status: Status) -> Result<Value, ApiError> {
        if nodes.is_empty() || nodes.len() > DECIDED {
            let found = nodes.len();
            let message = format!("it lists {found} nodes; expected 1 to {DECIDED}");
            return Err(ApiError::field("nodeId", message));
        }
        let accept = status == Status::Accepted;
        let word = if accept { "accepted" } else { "refused" };
        let mut named = HashSet::new();
        let nodes = nodes.into_iter().filter(|id| named.insert(id.clone()));
        let nodes: Vec<String> = nodes.collect();
        let decided = self.intake.decide(nodes.clone(), accept).await?;
        let (mut shown, mut undecided) = (Vec::with_capacity(decided.len()), Vec::new());
        for (id, one) in nodes.iter().zip(decided) {
            match one {
                Ok(node) => {
                    shown.push(json!({"id": node.id, "hostname": node.hostname, "status": word}));
                }
                Err(why) => undecided.push((id, why.to_string())),
            }
        }
        let Some((_, first)) = undecided.first() else {
            return Ok(json!({"nodes": shown}));
        };
        let (done, all) = (shown.len(), nodes.len());
        let details = match all {
            1 => first.clone(),
            _ => format!(
                "{done} of {all} nodes were {word}; {first}{}",
                more(undecided.len() - 1)
            ),
        };
        let undecided = undecided.iter();
        let undecided: Vec<Value> = undecided
            .map(|(id, why)| json!({"id": id, "why": why}))
            .collect();
        let data = json!({"nodes": shown, "undecided": undecided});
        Err(ApiError::in_part(details, data))
    }
}

/// How many others there are of what was told.
fn more(count: usize) -> String {
    match count {
        0 => String::new(),
        count => format!("; and {count} more, which data.undecided lists"),
    }
}

/// A node as Rudder shows it.
fn shown(record: &NodeRecord) -> Value {
    let Node {
        id,
        hostname,
        kind,
        state,
        policy_mode,
        policy_server_id,
        os,
        architecture_description,
        ram,
        agent,
        ip_addresses,
        properties,
        accepted,
        time_zone,
        ..
    } = &*record.node;
    let received = jiff::Timestamp::from_millisecond(record.received).unwrap_or_default();
    let status = match record.known.standing {
        NodeStatus::Pending => "pending",
        NodeStatus::Accepted => "accepted",
    };
    // Here Rudder's API has the names that people see.
    let management = match agent.name.as_str() {
        "dsc" => "Rudder Windows",
        _ => "Rudder",
    };
    let mut shown = json!({
        "id": id,
        "hostname": hostname,
        "status": status,
        "kind": kind,
        "state": state,
        "os": os,
        "architectureDescription": architecture_description,
        "ram": ram,
        "description": "",
        "ipAddresses": ip_addresses,
        "policyServerId": policy_server_id,
        "policyMode": policy_mode.map_or("default", |mode| mode.name()),
        "lastInventoryDate": Moment::utc(received).to_string(),
        "properties": properties,
        "managementTechnology": [{
            "name": management,
            "version": agent.version,
            "capabilities": agent.capabilities,
            "nodeKind": kind,
        }],
    });
    if let Some(accepted) = accepted {
        let accepted = jiff::Timestamp::from_second(*accepted).unwrap_or_default();
        shown["acceptanceDate"] = Moment::utc(accepted).to_string().into();
    }
    if let Some(zone) = time_zone {
        shown["timezone"] = json!(zone);
    }
    shown
}
