//! Nodes: who is pending, who is accepted, and decisions about them.

use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answers::ApiError;
use super::{Call, Service};
use crate::acceptance::{DecisionError, Standing};
use crate::model::node::Node;
use crate::reports::moment::Moment;
use crate::server::ledger::{Refusal, Request};
use crate::server::state::NodeRecord;

/// Most nodes that one decision is about.
const DECIDED: usize = 100_000;

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

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeyChange {
    key_status: String,
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let status = match &refusal {
            Refusal::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
            Refusal::Decision(DecisionError::NotAccepted { .. }) | Refusal::UnknownNode(_) => {
                StatusCode::NOT_FOUND
            }
            _ => StatusCode::CONFLICT,
        };
        Self::new(status, refusal)
    }
}

impl Service {
    pub(super) async fn nodes(&self, call: &Call<'_>) -> Result<Value, ApiError> {
        match (call.method, &call.path[1..]) {
            (&Method::GET, []) => Ok(json!({"nodes": self.list(Standing::Accepted)})),
            (&Method::GET, ["pending"]) => Ok(json!({"nodes": self.list(Standing::Pending)})),
            (&Method::GET, ["pending", id]) => self.one(id, Standing::Pending),
            (&Method::GET, ["status"]) => Ok(self.statuses(call.query.get("ids"))),
            (&Method::GET, [id]) => self.one(id, Standing::Accepted),
            (&Method::POST, ["pending"]) => {
                let decision: Decision = read(&call.body)?;
                self.decide(decision.node_id, decision.status).await
            }
            (&Method::POST, ["pending", id]) => {
                let decision: Decision = read(&call.body)?;
                self.decide(vec![(*id).to_owned()], decision.status).await
            }
            (&Method::POST, [id]) => {
                let change: KeyChange = read(&call.body)?;
                if change.key_status != "undefined" {
                    let found = change.key_status;
                    return Err(ApiError::bad(format!(
                        "keyStatus is {found:?}; expected undefined, after which the node's next \
                         inventory may bring another key"
                    )));
                }
                let request = Request::ResetKey((*id).to_owned());
                self.commands.run(request).await?;
                self.one(id, Standing::Accepted)
            }
            (&Method::DELETE, [id]) => {
                let found = self.one(id, Standing::Accepted)?;
                self.intake.delete(id).await?;
                Ok(found)
            }
            _ => Err(ApiError::no_such_call(call.method, &call.path)),
        }
    }

    fn list(&self, standing: Standing) -> Vec<Value> {
        let state = self.view.read();
        let all = state.nodes.values();
        let all = all.filter(|node| node.known.standing == standing);
        all.map(|node| shown(node)).collect()
    }

    fn one(&self, id: &str, standing: Standing) -> Result<Value, ApiError> {
        let state = self.view.read();
        let node = state.nodes.get(id);
        let node = node.filter(|node| node.known.standing == standing);
        let node = node.ok_or_else(|| ApiError::not_found("node", id))?;
        Ok(json!({"nodes": [shown(node)]}))
    }

    fn statuses(&self, ids: Option<&str>) -> Value {
        let state = self.view.read();
        let ids = ids.unwrap_or_default().split(',');
        let ids = ids.filter(|id| !id.is_empty());
        let nodes = ids.map(|id| {
            let status = match state.nodes.get(id).map(|node| node.known.standing) {
                None => "unknown",
                Some(Standing::Pending) => "pending",
                Some(Standing::Accepted) => "accepted",
            };
            json!({"id": id, "status": status})
        });
        json!({"nodes": nodes.collect::<Vec<_>>()})
    }

    async fn decide(&self, nodes: Vec<String>, status: Status) -> Result<Value, ApiError> {
        if nodes.is_empty() || nodes.len() > DECIDED {
            let found = nodes.len();
            return Err(ApiError::bad(format!(
                "nodeId lists {found} nodes; expected 1 to {DECIDED}"
            )));
        }
        let accept = status == Status::Accepted;
        let word = if accept { "accepted" } else { "refused" };
        let decided = self.intake.decide(nodes, accept).await?;
        let mut shown = Vec::with_capacity(decided.len());
        for one in decided {
            let node = one.map_err(ApiError::conflict)?;
            shown.push(json!({"id": node.id, "hostname": node.hostname, "status": word}));
        }
        Ok(json!({"nodes": shown}))
    }
}

fn read<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, ApiError> {
    serde_json::from_slice(body).map_err(|error| ApiError::bad(format!("the body: {error}")))
}

/// A node as Rudder shows it.
fn shown(record: &NodeRecord) -> Value {
    let Node {
        id,
        hostname,
        state,
        policy_mode,
        policy_server_id,
        os,
        architecture_description,
        ram,
        agent,
        ip_addresses,
        properties,
        ..
    } = &*record.node;
    let received = jiff::Timestamp::from_millisecond(record.received).unwrap_or_default();
    let status = match record.known.standing {
        Standing::Pending => "pending",
        Standing::Accepted => "accepted",
    };
    json!({
        "id": id,
        "hostname": hostname,
        "status": status,
        "state": state,
        "os": os,
        "architectureDescription": architecture_description,
        "ram": ram,
        "ipAddresses": ip_addresses,
        "policyServerId": policy_server_id,
        "policyMode": policy_mode.map_or("default", |mode| mode.name()),
        "lastInventoryDate": Moment::utc(received).to_string(),
        "properties": properties,
        "managementTechnology": [{"name": agent.name, "version": agent.version}],
    })
}
