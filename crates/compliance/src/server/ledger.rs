//! What the one thread does that makes changes: requests become writes, durable before anything
//! is answered.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use commit::{Applied, Layer, Limits, Model, NotDone, Requests, StoreError};
use telemetry::{Fields, Logger};

use super::administered::{Administered, administer, keep_set};
use super::state::{
    HourOf, NodeRecord, PolicyRecord, RefusedRecord, RunRecord, State, TokenRecord, Write,
};
use super::store::{Loaded, Store};
use crate::acceptance::{Arrival, DecisionError, Newcomer, Nodes, Rejected, Standing};
use crate::definitions::{Definitions, Edit};
use crate::model::ModelError;
use crate::model::node::Node;
use crate::reports::decision::UnixMillis;
use crate::reports::signature::NodeCertificate;

/// Bounds of the writer. A batch holds 16 MB of runs, a sync of which takes milliseconds.
pub(crate) const LIMITS: Limits = Limits {
    queue: 1_024,
    batch: 512,
    weight: 16 << 20,
    within: None,
};

/// Nodes that may wait to be accepted.
const PENDING: usize = 100_000;

/// Tokens that there may be.
const TOKENS: usize = 1_000;

/// The way to the writer.
pub(crate) type Commands = Requests<Ledger>;

/// Something to be made durable.
#[derive(Debug)]
pub(crate) enum Request {
    /// A checked inventory.
    Inventory(Box<Newcome>),
    /// Decisions about pending nodes: accepted, or refused.
    Decide {
        /// Their identities.
        nodes: Vec<String>,
        /// Are they accepted?
        accept: bool,
    },
    /// An accepted node is deleted.
    Delete(String),
    /// The next inventory of a node may bring another key.
    ResetKey(String),
    /// The definitions are others, unless they have another version than this.
    Definitions {
        /// The new ones.
        definitions: Arc<Definitions>,
        /// The version that they change.
        base: i64,
        /// When.
        at: UnixMillis,
    },
    /// A single definition is another.
    Edit {
        /// The change, which fits the definitions.
        edit: Box<Edit>,
        /// When.
        at: UnixMillis,
    },
    /// What an administrator sets for an accepted node is another.
    Administer {
        /// The node.
        node: String,
        /// What is set.
        change: Administered,
    },
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
pub(crate) struct Newcome {
    /// The node.
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
    /// The node.
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
    Provided {
        /// The property.
        name: String,
        /// Where it comes from.
        provider: String,
    },
    /// The node would be wrong.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// There is no such token.
    #[error("there is no token \"{0}\"; headroom compliance token list lists them")]
    UnknownToken(String),
    /// There is one already.
    #[error("there is a token \"{0}\" already; revoke it first, or choose another id")]
    KnownToken(String),
    /// There are too many.
    #[error("there are {TOKENS} tokens; revoke some first")]
    TooManyTokens,
    /// The node is not accepted.
    #[error("node {0} is not accepted; accept it first")]
    UnknownNode(String),
    /// Nothing could be made durable.
    #[error("keeping it failed: {0}; send it again")]
    Store(String),
}

/// What the writer owns.
pub(crate) struct Ledger {
    pub(crate) store: Store,
    nodes: Nodes<NodeCertificate>,
    next_node: i64,
    next_run: i64,
    /// The last run of each node that counts.
    last_runs: HashMap<i64, i64>,
    /// Did a commit fail, so that `nodes` is ahead of the state?
    stale: bool,
    logger: Logger,
}

/// What a batch does, on top of what is durable.
pub(super) struct Batch<'a> {
    pub(super) state: &'a State,
    pub(super) records: Layer<Arc<str>, Arc<NodeRecord>>,
    runs: BTreeSet<(i64, UnixMillis)>,
    version: i64,
    /// Tokens that come and go.
    tokens: Layer<Arc<str>, Arc<TokenRecord>>,
    pub(super) writes: Vec<Write>,
}

impl Ledger {
    /// A writer over what was loaded.
    pub(crate) fn new(
        store: Store,
        loaded: &Loaded,
        last_runs: HashMap<i64, i64>,
        logger: Logger,
    ) -> Self {
        Self {
            store,
            nodes: nodes_of(&loaded.state),
            next_node: loaded.next_node,
            next_run: loaded.next_run,
            last_runs,
            stale: false,
            logger,
        }
    }

    /// After a commit that failed: what the disk has is what holds.
    fn renew(&mut self, state: &State) -> Result<(), StoreError> {
        if self.stale {
            self.nodes = nodes_of(state);
            self.last_runs = self.store.last_run_numbers()?;
            self.stale = false;
        }
        Ok(())
    }

    /// Removes runs that came before this time; says whether there may be more.
    pub(crate) fn purge(&mut self, before: UnixMillis) -> rusqlite::Result<bool> {
        let last = &self.last_runs;
        self.store
            .purge(before, |node, run| last.get(&node) == Some(&run))
    }

    fn one(&mut self, batch: &mut Batch<'_>, request: Request) -> Result<Reply, Refusal> {
        match request {
            Request::Inventory(newcome) => self.inventory(batch, *newcome),
            Request::Decide { nodes, accept } => {
                let decided = nodes.iter().map(|id| self.decide(batch, id, accept));
                Ok(Reply::Decided(decided.collect()))
            }
            Request::Delete(id) => {
                self.nodes.delete(&id)?;
                self.forget(batch, &id);
                Ok(Reply::Done)
            }
            Request::ResetKey(id) => {
                self.nodes.reset_key(&id)?;
                self.put(batch, &id);
                Ok(Reply::Done)
            }
            Request::Definitions {
                definitions,
                base,
                at,
            } => {
                let found = batch.version;
                if found != base {
                    return Err(Refusal::Version { found, base });
                }
                batch.version += 1;
                let version = batch.version;
                batch
                    .writes
                    .push(Write::Definitions(definitions, version, at));
                Ok(Reply::Version(version))
            }
            Request::Edit { edit, at } => {
                batch.version += 1;
                let version = batch.version;
                batch.writes.push(Write::Edit(edit, version, at));
                Ok(Reply::Version(version))
            }
            Request::Administer { node, change } => administer(batch, &node, change),
            Request::Token(record) => {
                let (id, known) = (Arc::clone(&record.id), &batch.state.tokens);
                if batch.tokens.get(known, &*id).is_some() {
                    return Err(Refusal::KnownToken(id.to_string()));
                }
                if known.len() >= TOKENS {
                    return Err(Refusal::TooManyTokens);
                }
                batch.tokens.put(id, Some(Arc::clone(&record)));
                batch.writes.push(Write::Token(record));
                Ok(Reply::Done)
            }
            Request::Revoke(id) => {
                let known = batch.tokens.get(&batch.state.tokens, &*id).is_some();
                if !known {
                    return Err(Refusal::UnknownToken(id));
                }
                let id: Arc<str> = id.into();
                batch.tokens.put(Arc::clone(&id), None);
                batch.writes.push(Write::Revoke(id));
                Ok(Reply::Done)
            }
            Request::Policies(policies) => {
                self.policies(batch, policies);
                Ok(Reply::Done)
            }
            Request::Run(record) => self.run(batch, record),
            Request::Refused(record) => {
                batch.writes.push(Write::Refused(record));
                Ok(Reply::Done)
            }
            Request::History(hours) => {
                batch.writes.push(Write::History(hours));
                Ok(Reply::Done)
            }
        }
    }

    fn inventory(&mut self, batch: &mut Batch<'_>, newcome: Newcome) -> Result<Reply, Refusal> {
        let Newcome {
            mut node,
            key,
            certificate,
            received,
            inventory,
        } = newcome;
        let id: Arc<str> = node.id.as_str().into();
        let arrival = self.nodes.receive(Newcomer {
            id: node.id.clone(),
            hostname: node.hostname.clone(),
            key,
        })?;
        let before = batch.records.get(&batch.state.nodes, &*id).cloned();
        if let Some(before) = &before {
            keep_set(&before.node, &mut node);
        }
        let Some(known) = self.nodes.get(&id).cloned() else {
            return Ok(Reply::Done);
        };
        let number = before.map_or(self.next_node, |before| before.number);
        self.next_node = self.next_node.max(number + 1);
        let node = Arc::new(node);
        let record = Arc::new(NodeRecord {
            number,
            known,
            certificate: certificate.into(),
            node: Arc::clone(&node),
            received,
        });
        batch
            .records
            .put(Arc::clone(&id), Some(Arc::clone(&record)));
        batch.writes.push(Write::Node(id, record, Some(inventory)));
        Ok(Reply::Arrived(arrival, node))
    }

    fn decide(
        &mut self,
        batch: &mut Batch<'_>,
        id: &str,
        accept: bool,
    ) -> Result<Accepted, DecisionError> {
        let record = batch.records.get(&batch.state.nodes, id).cloned();
        let not_pending = || DecisionError::NotPending { id: id.to_owned() };
        let record = record.ok_or_else(not_pending)?;
        if !accept {
            self.nodes.refuse(id)?;
            self.forget(batch, id);
            return Ok(Accepted {
                node: Arc::clone(&record.node),
                inventory: Vec::new(),
            });
        }
        self.nodes.accept(id, false)?;
        self.put(batch, id);
        // An inventory of this very batch is not on the disk yet.
        let coming = batch.writes.iter().rev().find_map(|write| match write {
            Write::Node(node, _, Some(inventory)) if **node == *id => Some(inventory.clone()),
            _ => None,
        });
        let inventory = coming.or_else(|| self.store.inventory(record.number).ok());
        Ok(Accepted {
            node: Arc::clone(&record.node),
            inventory: inventory.unwrap_or_default(),
        })
    }

    /// Writes a node as it now stands.
    fn put(&self, batch: &mut Batch<'_>, id: &str) {
        let record = batch.records.get(&batch.state.nodes, id);
        let (Some(record), Some(known)) = (record, self.nodes.get(id)) else {
            return;
        };
        let mut record = NodeRecord::clone(record);
        record.known = known.clone();
        let (id, record): (Arc<str>, _) = (id.into(), Arc::new(record));
        batch
            .records
            .put(Arc::clone(&id), Some(Arc::clone(&record)));
        batch.writes.push(Write::Node(id, record, None));
    }

    fn forget(&mut self, batch: &mut Batch<'_>, id: &str) {
        if let Some(record) = batch.records.get(&batch.state.nodes, id).cloned() {
            let id: Arc<str> = id.into();
            batch.records.put(Arc::clone(&id), None);
            batch.writes.push(Write::Forget(id, record.number));
            self.last_runs.remove(&record.number);
        }
    }

    fn policies(&self, batch: &mut Batch<'_>, policies: Vec<Arc<PolicyRecord>>) {
        for record in policies {
            // A node may have gone while its policy was made.
            if let Some(node) = batch.records.get(&batch.state.nodes, &*record.node) {
                let number = node.number;
                batch.writes.push(Write::Policy(record, number));
            }
        }
    }

    fn run(&mut self, batch: &mut Batch<'_>, record: Box<RunRecord>) -> Result<Reply, Refusal> {
        let node = batch.records.get(&batch.state.nodes, &*record.node);
        let accepted = node.filter(|node| node.known.standing == Standing::Accepted);
        let unknown = || Refusal::UnknownNode(record.node.to_string());
        let node = accepted.ok_or_else(unknown)?.number;
        let known = self.store.has_run(node, record.start);
        let known = known.map_err(|error| Refusal::Store(error.to_string()))?;
        if known || !batch.runs.insert((node, record.start)) {
            return Ok(Reply::Duplicate);
        }
        let number = self.next_run;
        self.next_run += 1;
        if record.whole {
            self.last_runs.insert(node, number);
        }
        batch.writes.push(Write::Run(record, number, node));
        Ok(Reply::Kept(number))
    }
}

fn nodes_of(state: &State) -> Nodes<NodeCertificate> {
    let mut nodes = Nodes::new(PENDING);
    for (id, record) in &state.nodes {
        nodes.restore(id.to_string(), record.known.clone());
    }
    nodes
}

impl commit::Ledger for Ledger {
    type State = State;
    type Request = Request;
    type Reply = Reply;
    type Refusal = Refusal;
    type Changes = Vec<Write>;
    type News = ();
    type Error = rusqlite::Error;

    fn weight(request: &Request) -> usize {
        match request {
            Request::Run(record) => record.message.len() + record.exceptions.len() * 512,
            Request::Inventory(newcome) => newcome.inventory.len(),
            Request::Refused(record) => record.body.len(),
            Request::History(hours) => hours.len() * 256,
            _ => 1,
        }
    }

    fn apply(&mut self, state: &State, requests: Vec<Request>) -> Applied<Self> {
        if let Err(error) = self.renew(state) {
            let refusal = |_| Err(Refusal::Store(error.to_string()));
            return Applied {
                answers: requests.iter().map(refusal).collect(),
                changes: None,
                news: (),
            };
        }
        let mut batch = Batch {
            state,
            records: Layer::default(),
            runs: BTreeSet::new(),
            version: state.version,
            tokens: Layer::default(),
            writes: Vec::new(),
        };
        let answers = requests.into_iter();
        let answers = answers
            .map(|request| self.one(&mut batch, request))
            .collect();
        Applied {
            answers,
            changes: (!batch.writes.is_empty()).then_some(batch.writes),
            news: (),
        }
    }

    async fn commit(&mut self, _: &Model<State>, writes: &Vec<Write>) -> rusqlite::Result<()> {
        self.store.commit(writes)
    }

    fn merge(state: &mut State, writes: Vec<Write>) {
        state.merge(writes);
    }

    fn tell(&mut self, (): ()) {}

    fn failed(&mut self, error: &rusqlite::Error, requests: usize) {
        self.stale = true;
        let fields = Fields::new().and("requests", requests);
        self.logger.error("failed-to-commit", error, fields);
    }

    fn refusal(why: NotDone<'_, rusqlite::Error>) -> Refusal {
        Refusal::Store(match why {
            NotDone::Stopping => "the server stops".to_owned(),
            NotDone::Late => "the disk is too slow".to_owned(),
            NotDone::Failed(error) => error.to_string(),
        })
    }
}
