//! Which nodes belong to the fleet: a node that sends its first inventory is pending until
//! somebody accepts it; only accepted nodes have policies.
//!
//! ```text
//! unknown ──inventory──▶ pending ──accept──▶ accepted ──delete──▶ unknown
//!                           └──────refuse──▶ unknown
//! ```

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use thiserror::Error;

use crate::model::node::ROOT;
use crate::reports::signature::NodeCertificate;

/// A key by which a node is known.
pub trait NodeKey {
    /// Is it the same key, in whatever certificate?
    fn is_same(&self, other: &Self) -> bool;
}

impl NodeKey for NodeCertificate {
    fn is_same(&self, other: &Self) -> bool {
        self.has_key_of(other)
    }
}

/// What of a checked inventory decides about its node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeCandidate<K> {
    /// Identity of the node.
    pub id: String,
    /// Its name in the network.
    pub hostname: String,
    /// The key that signed its inventory.
    pub key: K,
}

/// Where a known node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeStatus {
    /// Somebody has to decide.
    Pending,
    /// It belongs to the fleet.
    Accepted,
}

/// Is a node's key settled?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyStatus {
    /// The key of its next inventory is taken, whatever it is.
    Undefined,
    /// Another key is rejected.
    Certified,
}

/// A known node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known<K> {
    /// Pending or accepted.
    pub standing: NodeStatus,
    /// Its name in the network.
    pub hostname: String,
    /// Its key.
    pub key: K,
    /// Is the key settled?
    pub key_status: KeyStatus,
}

/// What an inventory changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arrival {
    /// The node was unknown and now is pending.
    NewPending,
    /// The node is pending as before.
    StillPending,
    /// The node is accepted; keep what its inventory tells.
    Updated,
}

/// Why an inventory is rejected.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum Rejected {
    /// It was signed with another key than the node is known by.
    #[error(
        "the inventory of node {id} is signed with another key than the node is known by; if it \
         has a new key, reset its key's status, or refuse it if it is pending"
    )]
    OtherKey {
        /// The node.
        id: String,
    },
    /// Somebody claims to be the root server, which is known from the start.
    #[error("an inventory of node root came, which is not known; only the server itself adds it")]
    Root,
    /// Too many nodes wait.
    #[error("{limit} nodes are pending, no more are taken; accept or refuse some")]
    Full {
        /// Most nodes that may wait.
        limit: usize,
    },
}

/// Why a decision about a node cannot be carried out.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum DecisionError {
    /// No such node is pending.
    #[error("node {id} is not pending; it may be decided already, or must send an inventory first")]
    NotPending {
        /// The node.
        id: String,
    },
    /// No such node is accepted.
    #[error("node {id} is not accepted; expected the id of an accepted node")]
    NotAccepted {
        /// The node.
        id: String,
    },
    /// An accepted node has the same name.
    #[error(
        "node {id} has the hostname {hostname} of an accepted node; delete that node or refuse \
         this one"
    )]
    DuplicateHostname {
        /// The node.
        id: String,
        /// The name.
        hostname: String,
    },
    /// The root server cannot be deleted.
    #[error("the root server cannot be deleted")]
    Root,
}

/// The nodes that are known.
#[derive(Debug, Clone)]
pub struct Nodes<K> {
    known: BTreeMap<String, Known<K>>,
    /// How many accepted nodes have a name, in small letters.
    hostnames: HashMap<String, usize>,
    pending: usize,
    pending_limit: usize,
}

impl<K: NodeKey> Nodes<K> {
    /// None yet. Anybody may send a first inventory: at most `pending_limit` nodes wait.
    pub fn new(pending_limit: usize) -> Self {
        Self {
            known: BTreeMap::new(),
            hostnames: HashMap::new(),
            pending: 0,
            pending_limit,
        }
    }

    /// Adds a node that was known before, or the root server.
    pub fn restore(&mut self, id: String, node: Known<K>) {
        self.forget(&id);
        match node.standing {
            NodeStatus::Pending => self.pending += 1,
            NodeStatus::Accepted => self.count(&node.hostname),
        }
        self.known.insert(id, node);
    }

    /// A node that is known.
    pub fn get(&self, id: &str) -> Option<&Known<K>> {
        self.known.get(id)
    }

    /// The key that an inventory of the node must be signed with; none if any will do.
    pub fn key(&self, id: &str) -> Option<&K> {
        let known = self.known.get(id)?;
        (known.key_status == KeyStatus::Certified).then_some(&known.key)
    }

    /// Takes an inventory whose signature, date and fields were found right. A pending node's
    /// key is settled like an accepted one's, so that nobody can take its place before somebody
    /// decides.
    ///
    /// # Errors
    /// Another key, a root server that is not known, too many pending nodes.
    pub fn receive(&mut self, newcomer: NodeCandidate<K>) -> Result<Arrival, Rejected> {
        let NodeCandidate { id, hostname, key } = newcomer;
        let Some(known) = self.known.get_mut(&id) else {
            if id == ROOT {
                return Err(Rejected::Root);
            }
            if self.pending >= self.pending_limit {
                let limit = self.pending_limit;
                return Err(Rejected::Full { limit });
            }
            let node = Known {
                standing: NodeStatus::Pending,
                hostname,
                key,
                key_status: KeyStatus::Certified,
            };
            self.restore(id, node);
            return Ok(Arrival::NewPending);
        };
        if known.key_status == KeyStatus::Certified && !known.key.is_same(&key) {
            return Err(Rejected::OtherKey { id });
        }
        known.key = key;
        known.key_status = KeyStatus::Certified;
        let before = std::mem::replace(&mut known.hostname, hostname.clone());
        if known.standing == NodeStatus::Pending {
            return Ok(Arrival::StillPending);
        }
        self.uncount(&before);
        self.count(&hostname);
        Ok(Arrival::Updated)
    }

    /// Accepts a pending node.
    ///
    /// # Errors
    /// It is not pending, or an accepted node has its name and duplicates are not allowed.
    pub fn accept(
        &mut self,
        id: &str,
        allow_duplicate_hostnames: bool,
    ) -> Result<&Known<K>, DecisionError> {
        let node = pending(&mut self.known, id)?;
        let name = node.hostname.to_lowercase();
        if !allow_duplicate_hostnames && self.hostnames.contains_key(&name) {
            return Err(DecisionError::DuplicateHostname {
                id: id.to_owned(),
                hostname: node.hostname.clone(),
            });
        }
        node.standing = NodeStatus::Accepted;
        self.pending -= 1;
        *self.hostnames.entry(name).or_default() += 1;
        Ok(node)
    }

    /// Refuses a pending node, which is forgotten: its next inventory makes it pending again.
    ///
    /// # Errors
    /// It is not pending.
    pub fn refuse(&mut self, id: &str) -> Result<Known<K>, DecisionError> {
        pending(&mut self.known, id)?;
        let found = self.forget(id);
        found.ok_or_else(|| DecisionError::NotPending { id: id.to_owned() })
    }

    /// Deletes an accepted node, which is forgotten.
    ///
    /// # Errors
    /// It is not accepted, or it is the root server.
    pub fn delete(&mut self, id: &str) -> Result<Known<K>, DecisionError> {
        if id == ROOT {
            return Err(DecisionError::Root);
        }
        let not_accepted = || DecisionError::NotAccepted { id: id.to_owned() };
        let known = self.known.get(id).ok_or_else(not_accepted)?;
        if known.standing != NodeStatus::Accepted {
            return Err(not_accepted());
        }
        self.forget(id).ok_or_else(not_accepted)
    }

    /// Lets the next inventory of an accepted node bring another key.
    ///
    /// # Errors
    /// It is not accepted.
    pub fn reset_key(&mut self, id: &str) -> Result<(), DecisionError> {
        match self.known.get_mut(id) {
            Some(node) if node.standing == NodeStatus::Accepted => {
                node.key_status = KeyStatus::Undefined;
                Ok(())
            }
            _ => Err(DecisionError::NotAccepted { id: id.to_owned() }),
        }
    }

    fn forget(&mut self, id: &str) -> Option<Known<K>> {
        let node = self.known.remove(id)?;
        match node.standing {
            NodeStatus::Pending => self.pending -= 1,
            NodeStatus::Accepted => self.uncount(&node.hostname),
        }
        Some(node)
    }

    fn count(&mut self, hostname: &str) {
        *self.hostnames.entry(hostname.to_lowercase()).or_default() += 1;
    }

    fn uncount(&mut self, hostname: &str) {
        let name = hostname.to_lowercase();
        if let Some(count) = self.hostnames.get_mut(&name) {
            *count -= 1;
            if *count == 0 {
                self.hostnames.remove(&name);
            }
        }
    }
}

fn pending<'k, K>(
    known: &'k mut BTreeMap<String, Known<K>>,
    id: &str,
) -> Result<&'k mut Known<K>, DecisionError> {
    match known.get_mut(id) {
        Some(node) if node.standing == NodeStatus::Pending => Ok(node),
        _ => Err(DecisionError::NotPending { id: id.to_owned() }),
    }
}
