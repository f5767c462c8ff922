//! What the writer is asked for, and what it answers.

use std::sync::Arc;

use super::TOKENS;
use crate::acceptance::{Arrival, DecisionError, Rejected};
use crate::definitions::{Definitions, Edit};
use crate::model::ModelError;
use crate::model::node::Node;
use crate::relay::tree::Misplaced;
use crate::reports::decision::UnixMillis;
use crate::reports::signature::NodeCertificate;
use crate::server::administered::Administered;
use crate::server::state::{HourOf, PolicyRecord, RefusedRecord, RunRecord, TokenRecord};

/// Something to be made durable.
#[derive(Debug)]
pub(crate) enum Request {
    /// A checked inventory.
    Inventory(Box<CheckedNode>),
    /// Decisions about pending nodes: accepted, or refused.
    Decide {
        /// Their identities.
        nodes: Vec<String>,
        accept: bool,
    },
    /// An accepted node is deleted.
    Delete(String),
    /// The next inventory of a node may bring another key.
    ResetKey(String),
    /// The definitions are others, unless they have another version than this.
    Definitions(Arc<Definitions>, i64),
    /// The definitions change by this, which fits them, unless they have another version than is
    /// given.
    Edit(Box<Edit>, Option<i64>),
    /// What an administrator sets for an accepted node is another.
    Administer { node: String, change: Administered },
    /// There is another token.
    Token(Arc<TokenRecord>),
    /// A token is no longer good.
    Revoke(String),
    /// Nodes have other policies.
    Policies(Vec<Arc<PolicyRecord>>),
    /// A run.
    Run(Box<RunRecord>),
    /// A refused upload.
    Refused(RefusedRecord),
    /// Compliance of things in hours, in the place of what was known of those hours.
    History(Vec<HourOf>),
}

/// A node as its checked inventory tells of it.
#[derive(Debug)]
pub(crate) struct CheckedNode {
    pub(crate) node: Node,
    /// Its certificate.
    pub(crate) key: NodeCertificate,
    /// The same, PEM.
    pub(crate) certificate: String,
    /// When it came.
    pub(crate) received: UnixMillis,
    /// The JSON of its inventory, packed.
    pub(crate) inventory: Vec<u8>,
}

/// What a request came to.
#[derive(Debug)]
pub(crate) enum Reply {
    /// It is done.
    Done,
    /// An inventory changed this.
    Arrived(Arrival, Arc<Node>),
    /// What became of each node.
    Decided(Vec<Result<Accepted, DecisionError>>),
    /// The definitions have this version.
    Version(i64),
    /// The run is kept under this number.
    Kept(i64),
    /// The run was kept before.
    Duplicate,
}

/// A node that was decided about.
#[derive(Debug, Clone)]
pub(crate) struct Accepted {
    pub(crate) node: Arc<Node>,
    /// The JSON of its inventory, packed; empty if it was refused.
    pub(crate) inventory: Vec<u8>,
}

/// Why a request was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The inventory is not accepted.
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// The decision cannot be carried out.
    #[error(transparent)]
    Decision(#[from] DecisionError),
    /// The definitions were changed meanwhile.
    #[error(
        "the definitions have version {found}, this changes version {base}; somebody was faster: \
         look at the plan again"
    )]
    Version {
        /// The version that there is.
        found: i64,
        /// The version that was to be changed.
        base: i64,
    },
    /// A property comes from elsewhere.
    #[error(
        "the property \"{name}\" comes from {provider}, which would set it again; change it there"
    )]
    Provided { name: String, provider: String },
    /// The node would be wrong.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The node cannot be behind that server.
    #[error(transparent)]
    Misplaced(#[from] Misplaced),
    /// The relay is needed.
    #[error(
        "nodes are behind the relay {relay} ({count}, {first} among them); put them behind another \
         with headroom compliance relays assign first"
    )]
    NodesBehind {
        relay: String,
        /// One of them.
        first: String,
        count: usize,
    },
    /// There is no such token.
    #[error("there is no token \"{0}\"; headroom compliance token list lists them")]
    UnknownToken(String),
    /// There is one already.
    #[error("there is a token \"{0}\" already; revoke it first, or choose another id")]
    KnownToken(String),
    /// There are too many.
    #[error("there are {TOKENS} tokens; revoke some first")]
    TooManyTokens,
    /// A run with the same start is kept, and says something else.
    #[error(
        "another run of this node with the same start is kept; a run's start is its identity, so \
         that of two with one start the first counts"
    )]
    OtherRun,
    /// The node is not accepted.
    #[error("node {0} is not accepted; accept it first")]
    UnknownNode(String),
    /// Nothing could be made durable.
    #[error("keeping it failed: {0}; send it again")]
    Store(String),
}
