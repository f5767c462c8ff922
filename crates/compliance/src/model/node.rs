//! Nodes: what they are, and what an administrator set for them.

use serde::{Deserialize, Serialize};

use super::mode::{PolicyMode, or_default};
use super::property::{Property, check_properties};
use super::schedule::AgentRun;
use super::{ModelError, check_id, check_name};

/// The root server's identity.
pub const ROOT: &str = "root";
/// Most addresses or accounts of one node.
pub const LIST_ENTRIES: usize = 4_096;

/// What a node is in the tree of servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeKind {
    /// It only has policies.
    #[default]
    Node,
    /// It serves policies to nodes behind it.
    Relay,
    /// The server.
    Root,
}

impl NodeKind {
    /// Does it serve policies?
    pub fn is_policy_server(self) -> bool {
        self != Self::Node
    }
}

words! {
    /// Where a node stands in its life.
    #[derive(Default)]
    NodeState {
        /// Being set up.
        Initializing "initializing",
        /// In service.
        #[default]
        Enabled "enabled",
        /// It gets system policies only.
        EmptyPolicies "empty-policies",
        /// It gets no policy and counts in no compliance.
        Ignored "ignored",
        /// Soon to go; policies are still made.
        PreparingEndOfLife "preparing-eol",
    }
}

/// An operating system.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OperatingSystem {
    /// Kernel: `Linux`, `Windows`.
    #[serde(rename = "type")]
    pub kernel: String,
    /// `Debian`, `Redhat`.
    pub name: String,
    /// `12.5`.
    pub version: String,
    /// `Debian GNU/Linux 12 (bookworm)`.
    pub full_name: String,
    /// Of Windows and SUSE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_pack: Option<String>,
    /// `6.1.0-18-amd64`.
    pub kernel_version: String,
}

/// The zone of a node's clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeTimeZone {
    /// `Europe/Paris`; on Windows `Romance Standard Time`.
    pub name: String,
    /// `+0200`.
    pub offset: String,
}

/// The agent of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Agent {
    /// `cfengine-community` or `dsc`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The account it runs as: the node's administrator.
    pub owner: String,
    /// What it is able to do, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
}

impl Default for Agent {
    fn default() -> Self {
        Self {
            name: "cfengine-community".into(),
            version: String::new(),
            owner: "root".into(),
            capabilities: Vec::new(),
        }
    }
}

/// A node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Node {
    /// Uuid; [`ROOT`] for the root server.
    pub id: String,
    /// Its full name in the network.
    pub hostname: String,
    /// Root, relay or node.
    pub kind: NodeKind,
    /// Where it stands in its life.
    pub state: NodeState,
    /// Audit or enforce, if set for it.
    #[serde(with = "or_default")]
    pub policy_mode: Option<PolicyMode>,
    /// Identity of the server it has its policies from.
    pub policy_server_id: String,
    /// Its operating system.
    pub os: OperatingSystem,
    /// `x86_64`.
    pub architecture_description: String,
    /// Memory in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ram: Option<u64>,
    /// Swap in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap: Option<u64>,
    /// Its agent.
    pub agent: Agent,
    /// Its addresses.
    pub ip_addresses: Vec<String>,
    /// Local accounts.
    pub accounts: Vec<String>,
    /// When its last inventory came, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_inventory: Option<i64>,
    /// When it was accepted, in seconds since 1970; none if that was before this was noted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted: Option<i64>,
    /// The zone of its clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<NodeTimeZone>,
    /// Its own properties.
    pub properties: Vec<Property>,
    /// Its own schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_run: Option<AgentRun>,
}

impl Default for Node {
    fn default() -> Self {
        Self {
            id: String::new(),
            hostname: String::new(),
            kind: NodeKind::Node,
            state: NodeState::Enabled,
            policy_mode: None,
            policy_server_id: ROOT.into(),
            os: OperatingSystem::default(),
            architecture_description: String::new(),
            ram: None,
            swap: None,
            agent: Agent::default(),
            ip_addresses: Vec::new(),
            accounts: Vec::new(),
            last_inventory: None,
            accepted: None,
            time_zone: None,
            properties: Vec::new(),
            agent_run: None,
        }
    }
}

impl Node {
    /// A node of this identity and name, behind the root server.
    pub fn new(id: impl Into<String>, hostname: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            hostname: hostname.into(),
            ..Self::default()
        }
    }

    /// Checks identity, name, properties and schedule.
    pub fn check(&self) -> Result<(), ModelError> {
        let wrong = |message: String| Err(ModelError::new("node", &self.id, message));
        check_id("node", &self.id)?;
        check_name("node", &self.id, &self.hostname)?;
        check_id("node", &self.policy_server_id)?;
        check_properties("node", &self.id, &self.properties)?;
        if (self.kind == NodeKind::Root) != (self.id == ROOT) {
            return wrong("the root server, and it alone, has the identity \"root\"".into());
        }
        if self.kind != NodeKind::Root && self.policy_server_id == self.id {
            return wrong("the node is its own policy server; name another".into());
        }
        for (what, list) in [
            ("addresses", &self.ip_addresses),
            ("accounts", &self.accounts),
        ] {
            if list.len() > LIST_ENTRIES {
                let found = list.len();
                return wrong(format!("{found} {what}; at most {LIST_ENTRIES} are kept"));
            }
        }
        match self.agent_run.map_or(Ok(()), |run| run.check()) {
            Ok(()) => Ok(()),
            Err(error) => wrong(error.to_string()),
        }
    }
}
