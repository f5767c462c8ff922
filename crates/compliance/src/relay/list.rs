//! The nodes behind a relay, as its upstream lists them: who may fetch what follows of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::tree::{Place, is_behind, relays_above};
use crate::reports::signature::NodeCertificate;

/// A node in the list: Rudder's `nodeslist.json`, with the certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ListedNode {
    /// Its name in the network.
    pub(crate) hostname: String,
    /// The relay that it is directly behind; of the relay itself what it is behind.
    pub(crate) policy_server: String,
    /// Is it a relay?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) relay: bool,
    /// May its next inventory bring another key?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) key_undefined: bool,
    /// Its certificate, PEM.
    pub(crate) certificate: String,
}

/// Writes a list, and its tag: equal lists have equal tags.
pub(crate) fn write(nodes: &BTreeMap<&str, ListedNode>) -> (String, Vec<u8>) {
    // What it is made of has only texts for keys.
    let json = serde_json::to_vec(nodes).unwrap_or_default();
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &json);
    let tag = hash.as_ref().iter().take(16);
    let tag = tag.map(|byte| format!("{byte:02x}")).collect();
    (tag, json)
}

/// Why a list cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListError {
    /// It is none.
    #[error("read the list of nodes: {0}; expected JSON as a compliance server writes it")]
    Json(#[from] serde_json::Error),
    /// It has an identity that no node can have here.
    #[error(
        "read the list of nodes: it names a node {0:?}; expected letters, digits, - and _, as in \
         a UUID"
    )]
    Identity(String),
    /// It does not name the relay.
    #[error("read the list of nodes: it does not name the relay {0}, whose list it is to be")]
    NotOurs(String),
}

/// A node behind this relay, or the relay.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) listed: ListedNode,
    /// None if its certificate cannot be read: it can be served nothing.
    pub(crate) key: Option<NodeCertificate>,
}

/// All nodes behind a relay, and the relay.
#[derive(Debug)]
pub(crate) struct Children {
    /// The tag of the list.
    pub(crate) tag: String,
    nodes: BTreeMap<String, Arc<Child>>,
}

impl Children {
    /// Reads a list.
    ///
    /// # Errors
    /// It is damaged, or of another relay.
    pub(crate) fn read(relay: &str, tag: String, json: &[u8]) -> Result<Self, ListError> {
        let listed: BTreeMap<String, ListedNode> = serde_json::from_slice(json)?;
        let fits = |id: &str| {
            let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            !id.is_empty() && id.len() <= 64 && id.bytes().all(letter)
        };
        if let Some(id) = listed.keys().find(|id| !fits(id)) {
            return Err(ListError::Identity(id.chars().take(64).collect()));
        }
        if !listed.contains_key(relay) {
            return Err(ListError::NotOurs(relay.to_owned()));
        }
        let nodes = listed.into_iter().map(|(id, listed)| {
            let key = NodeCertificate::from_pem(listed.certificate.as_bytes()).ok();
            (id, Arc::new(Child { listed, key }))
        });
        let nodes = nodes.collect();
        Ok(Self { tag, nodes })
    }

    /// A node that is listed.
    pub(crate) fn get(&self, node: &str) -> Option<&Arc<Child>> {
        self.nodes.get(node)
    }

    /// How many are directly behind this relay, and how many at all.
    pub(crate) fn counts(&self, relay: &str) -> (usize, usize) {
        let direct = self.nodes.values();
        let direct = direct.filter(|one| one.listed.policy_server == relay);
        (direct.count(), self.nodes.len().saturating_sub(1))
    }

    fn place(&self, node: &str) -> Option<Place<'_>> {
        let listed = &self.nodes.get(node)?.listed;
        Some(Place {
            server: &listed.policy_server,
            relay: listed.relay,
        })
    }

    /// May who showed this certificate fetch the policy of this node? It may if it is the node,
    /// or a relay that the node is behind.
    pub(crate) fn may_fetch(&self, node: &str, shown: &NodeCertificate) -> bool {
        let has_key = |id: &str| {
            let key = self.nodes.get(id).and_then(|one| one.key.as_ref());
            key.is_some_and(|key| key.has_key_of(shown))
        };
        has_key(node) || relays_above(node, |id| self.place(id)).any(has_key)
    }

    /// The list for a relay behind this one, if the one that showed this certificate is that.
    pub(crate) fn behind(&self, relay: &str, shown: &NodeCertificate) -> Option<(String, Vec<u8>)> {
        let own = self.nodes.get(relay)?;
        let key = own.key.as_ref()?;
        if !own.listed.relay || !key.has_key_of(shown) {
            return None;
        }
        let behind = self
            .nodes
            .iter()
            .filter(|(id, _)| *id == relay || is_behind(id, relay, |id| self.place(id)));
        let behind = behind.map(|(id, child)| (&**id, child.listed.clone()));
        Some(write(&behind.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::Identity;

    fn identity(node: &str) -> (String, NodeCertificate) {
        let identity = Identity::make(Some(node), &[]).unwrap();
        let key = NodeCertificate::from_pem(identity.certificate.as_bytes()).unwrap();
        (identity.certificate, key)
    }

    fn listed(server: &str, relay: bool, certificate: &str) -> ListedNode {
        ListedNode {
            hostname: "h".into(),
            policy_server: server.into(),
            relay,
            key_undefined: false,
            certificate: certificate.into(),
        }
    }

    /// Relay `r1`; behind it node `n1` and relay `r2`, behind which is `n2`.
    fn all() -> (Children, BTreeMap<&'static str, NodeCertificate>) {
        let mut keys = BTreeMap::new();
        let mut list = BTreeMap::new();
        for (id, server, relay) in [
            ("r1", "root", true),
            ("n1", "r1", false),
            ("r2", "r1", true),
            ("n2", "r2", false),
        ] {
            let (pem, key) = identity(id);
            list.insert(id, listed(server, relay, &pem));
            keys.insert(id, key);
        }
        let (tag, json) = write(&list);
        (Children::read("r1", tag, &json).unwrap(), keys)
    }

    #[test]
    fn a_node_and_the_relays_it_is_behind_may_fetch_its_policy_and_nobody_else() {
        let (children, keys) = all();
        let allowed = |node: &str| {
            let may = keys.iter().filter(|(_, key)| children.may_fetch(node, key));
            may.map(|(id, _)| *id).collect::<Vec<_>>()
        };
        assert_eq!(allowed("n1"), ["n1", "r1"]);
        assert_eq!(allowed("n2"), ["n2", "r1", "r2"]);
        assert_eq!(allowed("r2"), ["r1", "r2"]);
        assert_eq!(allowed("r1"), ["r1"]);
        assert_eq!(allowed("nobody"), [""; 0]);
        // A certificate of the same name, of another key.
        assert!(!children.may_fetch("n1", &identity("n1").1));
        assert_eq!(children.counts("r1"), (2, 3));
    }

    #[test]
    fn a_relay_behind_gets_the_part_that_is_its() {
        let (children, keys) = all();
        assert!(children.behind("r2", &keys["n2"]).is_none());
        assert!(children.behind("n2", &keys["n2"]).is_none());
        let (tag, json) = children.behind("r2", &keys["r2"]).unwrap();
        let own = Children::read("r2", tag.clone(), &json).unwrap();
        assert_eq!(own.nodes.keys().collect::<Vec<_>>(), ["n2", "r2"]);
        assert!(own.may_fetch("n2", &keys["r2"]) && own.may_fetch("n2", &keys["n2"]));
        assert_eq!(own.tag, tag);
        assert_ne!(own.tag, children.tag);
    }

    #[test]
    fn a_list_that_is_damaged_or_anothers_is_refused() {
        let (children, keys) = all();
        let (tag, json) = children.behind("r2", &keys["r2"]).unwrap();
        let read = |relay: &str, json: &[u8]| Children::read(relay, tag.clone(), json).unwrap_err();
        assert!(matches!(read("r1", &json), ListError::NotOurs(_)));
        assert!(matches!(read("r2", &json[1..]), ListError::Json(_)));
        for id in ["../r2", "", "a b", &"x".repeat(65)] {
            let list = BTreeMap::from([(id, listed("root", true, ""))]);
            let error = read(id, &write(&list).1);
            assert!(matches!(error, ListError::Identity(_)), "{error}");
        }
        // One certificate that cannot be read serves that node nothing, and leaves the others.
        let list = BTreeMap::from([
            ("r2", listed("root", true, "no certificate")),
            ("n2", listed("r2", false, "")),
        ]);
        let broken = Children::read("r2", "t".into(), &write(&list).1).unwrap();
        assert!(!broken.may_fetch("n2", &keys["r2"]));
    }
}
