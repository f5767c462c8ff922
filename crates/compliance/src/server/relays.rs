//! What relays ask for: which nodes are behind them. Their right is checked here.

use std::collections::BTreeMap;

use http::request::Parts;
use http::{Response, StatusCode};
use net::Body;

use super::administered::place_of;
use super::service::{Service, shown, tagged};
use super::state::{NodeRecord, State};
use crate::acceptance::{KeyStatus, NodeStatus};
use crate::model::node::NodeKind;
use crate::relay::list::{self, ListedNode};
use crate::relay::tree::{Place, is_behind, relays_above};
use crate::reports::signature::NodeCertificate;

fn place<'s>(state: &'s State, id: &str) -> Option<Place<'s>> {
    place_of(state.nodes.get(id)?)
}

/// Is this the certificate of a relay that the node is behind? It hands the node's policy on.
pub(super) fn hands_on(state: &State, node: &str, shown: &NodeCertificate) -> bool {
    relays_above(node, |id| place(state, id)).any(|relay| {
        let relay = state.nodes.get(relay);
        relay.is_some_and(|relay| relay.known.key.has_key_of(shown))
    })
}

fn listed(record: &NodeRecord) -> ListedNode {
    ListedNode {
        hostname: record.node.hostname.clone(),
        policy_server: record.node.policy_server_id.clone(),
        relay: record.node.kind == NodeKind::Relay,
        key_undefined: record.known.key_status == KeyStatus::Undefined,
        certificate: record.certificate.to_string(),
    }
}

impl Service {
    /// The nodes behind a relay, for the one that has the relay's key.
    pub(super) async fn nodes_behind(&self, rest: &str, head: &Parts) -> Response<Body> {
        let Some(relay) = rest.strip_suffix("/nodes.json") else {
            let told = "expected /relays/RELAY/nodes.json\n";
            return net::plain_text(StatusCode::NOT_FOUND, told);
        };
        let Some(shown) = shown(head) else {
            return self.forbidden("show the relay's certificate to get its list");
        };
        let record = self.view.read().nodes.get(relay).cloned();
        let Some(record) = record else {
            let told = "the node is not known; send an inventory first\n";
            return net::plain_text(StatusCode::NOT_FOUND, told);
        };
        if !record.known.key.has_key_of(&shown) {
            return self.forbidden("the certificate that was shown is not that of the relay");
        }
        if record.known.standing != NodeStatus::Accepted {
            return self.forbidden("the node is pending: accept it, then make it a relay");
        }
        if record.node.kind != NodeKind::Relay {
            return self.forbidden(&format!(
                "the node is no relay; make it one with headroom compliance relays add {relay}"
            ));
        }
        let (view, relay) = (self.view.clone(), relay.to_owned());
        // Of a fleet it is megabytes.
        let made = tokio::task::spawn_blocking(move || {
            let state = view.read();
            let behind = state.nodes.iter().filter(|(id, record)| {
                let accepted = record.known.standing == NodeStatus::Accepted;
                let own = ***id == *relay;
                accepted && (own || is_behind(id, &relay, |id| place(&state, id)))
            });
            let behind = behind.map(|(id, record)| (&**id, listed(record)));
            list::write(&behind.collect::<BTreeMap<_, _>>())
        });
        match made.await {
            Ok((tag, json)) => tagged(head, &tag, "application/json", json).1,
            Err(error) => net::plain_text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        }
    }
}
