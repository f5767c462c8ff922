//! What is durable, as readers see it: nodes, definitions and the policies that are given out.
//! Runs stay on the disk; what follows of them is kept by [`super::fleet`].

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;

use crate::acceptance::Known;
use crate::definitions::{Definitions, Edit};
use crate::model::node::Node;
use crate::policy::digest::Digest;
use crate::reports::decision::UnixMillis;
use crate::reports::history::HourAggregate;
use crate::reports::signature::NodeCertificate;

/// A node that is known, pending or accepted.
#[derive(Debug, Clone)]
pub(crate) struct NodeRecord {
    /// Its number in the store.
    pub(crate) number: i64,
    /// Where it stands, and its key.
    pub(crate) known: Known<NodeCertificate>,
    /// Its certificate, PEM.
    pub(crate) certificate: Arc<str>,
    /// What it is, and what an administrator set for it.
    pub(crate) node: Arc<Node>,
    /// When its last inventory came.
    pub(crate) received: UnixMillis,
}

/// A policy as a node fetches it.
#[derive(Debug, Clone)]
pub(crate) struct ServedPolicy {
    /// Which configuration it is, and its ETag.
    pub(crate) config_id: Arc<str>,
    /// Hash of what the agent sees, whatever its config id.
    pub(crate) digest: Digest,
    /// The document, packed by gzip.
    pub(crate) document: Bytes,
}

/// All that is durable but runs.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Nodes by their identities.
    pub(crate) nodes: BTreeMap<Arc<str>, Arc<NodeRecord>>,
    /// What administrators define.
    pub(crate) definitions: Arc<Definitions>,
    /// How often that was changed.
    pub(crate) version: i64,
    /// Policies by their nodes.
    pub(crate) policies: HashMap<Arc<str>, ServedPolicy>,
    /// Tokens of the REST API by their identities, beside the administrator's.
    pub(crate) tokens: BTreeMap<Arc<str>, Arc<TokenRecord>>,
}

/// What somebody may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    /// What anybody may.
    Open,
    /// Read.
    Read,
    /// Change things too.
    Write,
    /// Decide who else may, too.
    Admin,
}

/// SHA-256 of a token. Tokens are random, so that nothing slower is needed.
pub(crate) type TokenHash = [u8; 32];

/// A token of the REST API; only its hash is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TokenRecord {
    pub(crate) id: Arc<str>,
    /// What it is for.
    pub(crate) name: String,
    /// [`Access::Read`] or [`Access::Write`].
    pub(crate) access: Access,
    /// What it is recognised by.
    pub(crate) hash: TokenHash,
    /// Since when.
    pub(crate) created: UnixMillis,
}

/// A change of what is durable, in the order in which it is written.
#[derive(Debug)]
pub(crate) enum Write {
    /// A node is so; with its inventory, packed, if that is new.
    Node(Arc<str>, Arc<NodeRecord>, Option<Vec<u8>>),
    /// A node is forgotten, with all that it reported.
    Forget(Arc<str>, i64),
    /// The definitions are these, as of this time.
    Definitions(Arc<Definitions>, i64, UnixMillis),
    /// A single definition is another, as of this time.
    Edit(Box<Edit>, i64, UnixMillis),
    /// There is this token.
    Token(Arc<TokenRecord>),
    /// A token is gone.
    Revoke(Arc<str>),
    /// A node has this policy; with its number, and that of its last run that counts.
    Policy(Arc<PolicyRecord>, i64, Option<i64>),
    /// A run came.
    Run(Box<RunRecord>, i64, i64),
    /// An upload was refused and is kept aside.
    Refused(RefusedRecord),
    /// Compliance of things in hours.
    History(Vec<HourOf>),
}

/// The compliance of a thing in an hour; the fleet is the thing without a name.
pub(crate) type HourOf = (Arc<str>, HourAggregate);

/// A policy, and what is expected of it.
#[derive(Debug, Clone)]
pub(crate) struct PolicyRecord {
    pub(crate) node: Arc<str>,
    /// Since when.
    pub(crate) begin: UnixMillis,
    /// The policy; none if the node gets none any more.
    pub(crate) served: Option<ServedPolicy>,
    /// The JSON of what is expected, packed by gzip.
    pub(crate) expected: Vec<u8>,
}

/// A run as it is kept.
#[derive(Debug, Clone)]
pub(crate) struct RunRecord {
    pub(crate) node: Arc<str>,
    /// When it started: with the node its identity.
    pub(crate) start: UnixMillis,
    /// When it came.
    pub(crate) received: UnixMillis,
    /// The configuration that it was made with.
    pub(crate) config_id: Option<String>,
    /// Has it a start, so that it counts?
    pub(crate) whole: bool,
    /// What tells its log from others of the same run.
    pub(crate) digest: i64,
    /// How many reports it has.
    pub(crate) reports: u32,
    /// The signed message as it came, packed by gzip; of one that is not signed its log.
    pub(crate) message: Bytes,
    /// Did it come with a signature?
    pub(crate) signed: bool,
    /// Reports of which something is to be told.
    pub(crate) exceptions: Vec<Exception>,
}

/// A node's number, a start, and a part of what the node did then: 0 is the run itself; any number
/// of logs without a start may come beside it, each told by its digest.
pub(crate) type RunKey = (i64, UnixMillis, i64);

impl RunRecord {
    /// Which run it is of the node with this number.
    pub(crate) fn key(&self, node: i64) -> RunKey {
        (node, self.start, self.part())
    }

    /// What another log of the same run must have to be the same. One that came over syslog is put
    /// together of what was heard, so that the same run may be there otherwise.
    pub(crate) fn repeat_digest(&self) -> Option<i64> {
        self.signed.then_some(self.digest)
    }

    /// Which part of what its node did.
    pub(crate) fn part(&self) -> i64 {
        if self.whole { 0 } else { self.digest }
    }
}

/// A report of something that was repaired, failed or does not comply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exception {
    pub(crate) rule: String,
    pub(crate) directive: String,
    pub(crate) component: String,
    /// Its value.
    pub(crate) key: String,
    /// The type of report.
    pub(crate) kind: &'static str,
    pub(crate) message: String,
}

/// An upload that was refused.
#[derive(Debug, Clone)]
pub(crate) struct RefusedRecord {
    /// When it came.
    pub(crate) at: UnixMillis,
    /// Its file's name.
    pub(crate) name: String,
    pub(crate) why: String,
    /// Its first bytes.
    pub(crate) body: Bytes,
}

impl State {
    /// Takes what is durable now.
    pub(crate) fn merge(&mut self, writes: Vec<Write>) {
        for write in writes {
            match write {
                Write::Node(id, record, _) => drop(self.nodes.insert(id, record)),
                Write::Forget(id, _) => {
                    self.nodes.remove(&id);
                    self.policies.remove(&id);
                }
                Write::Definitions(definitions, version, _) => {
                    (self.definitions, self.version) = (definitions, version);
                }
                Write::Edit(edit, version, _) => {
                    Arc::make_mut(&mut self.definitions).edit(&edit);
                    self.version = version;
                }
                Write::Token(record) => {
                    drop(self.tokens.insert(Arc::clone(&record.id), record));
                }
                Write::Revoke(id) => drop(self.tokens.remove(&id)),
                Write::Policy(record, ..) => match &record.served {
                    Some(served) => {
                        let node = Arc::clone(&record.node);
                        self.policies.insert(node, served.clone());
                    }
                    None => drop(self.policies.remove(&record.node)),
                },
                Write::Run(..) | Write::Refused(_) | Write::History(_) => {}
            }
        }
    }
}
