//! What the one thread does that makes changes: requests become writes, durable before anything
//! is answered.
//!
//! A batch whose transaction broke off with the connection to the database is neither taken nor
//! refused until the database says what became of it: what is in memory is always what is there.

mod batch;
mod recovery;
mod request;

use std::collections::HashMap;
use std::time::Duration;

use commit::postgres::Found;
use commit::{Applied, CommitFailure, Layer, Limits, Model, Requests, StoreError};
use telemetry::{Fields, Logger};
use tokio::sync::oneshot;

use super::state::{Exception, RunKey, State, Write};
use super::store::{Loaded, Store};
use crate::acceptance::Nodes;
use crate::reports::decision::UnixMillis;
use crate::reports::signature::NodeCertificate;

pub(super) use batch::Batch;
pub(crate) use recovery::{Absence, Recovery};
pub(crate) use request::{Accepted, CheckedNode, Refusal, Reply, Request};

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
/// Times that a batch is written whose transactions end with the connection: it may be what ends
/// them.
const TRIES: usize = 3;
/// Time between two looks whether a database that may go away is there.
const LOOK: Duration = Duration::from_millis(500);

/// The way to the writer.
pub(crate) type Commands = Requests<Ledger>;

/// Why the writer cannot go on with the database that it comes back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// Another server has it, or had it meanwhile.
    Displaced,
    /// Transactions are missing that were confirmed.
    Behind,
}

/// What the writer owns.
pub(crate) struct Ledger {
    pub(crate) store: Store,
    pub(crate) recovery: Recovery,
    /// Told once when the database cannot be gone on with.
    lost: Option<oneshot::Sender<Lost>>,
    nodes: Nodes<NodeCertificate>,
    next_node: i64,
    next_run: i64,
    /// The last run of each node that counts.
    last_runs: HashMap<i64, i64>,
    /// What the store has of that which a batch asks for.
    found: LookedUp,
    /// Did a commit fail, so that `nodes` is ahead of the state?
    stale: bool,
    logger: Logger,
}

/// What the store has of that which a batch asks for.
#[derive(Default)]
struct LookedUp {
    /// Runs that are kept, with their digests where these are known.
    runs: HashMap<RunKey, Option<i64>>,
    /// Inventories of nodes that are decided about, packed.
    inventories: HashMap<i64, Vec<u8>>,
}

/// Has the writer look for the database, for ever.
pub(crate) async fn look_after(commands: Commands) {
    loop {
        tokio::time::sleep(LOOK).await;
        commands.tend(|_| ()).await;
    }
}

impl Ledger {
    /// A writer over what was loaded, and who hears that it cannot go on.
    pub(crate) fn new(
        store: Store,
        loaded: &mut Loaded,
        recovery: Recovery,
        logger: Logger,
    ) -> (Self, oneshot::Receiver<Lost>) {
        let (lost, hear) = oneshot::channel();
        let ledger = Self {
            store,
            recovery,
            lost: Some(lost),
            nodes: nodes_of(&loaded.state),
            next_node: loaded.next_node,
            next_run: loaded.next_run,
            last_runs: std::mem::take(&mut loaded.last_runs),
            found: LookedUp::default(),
            stale: false,
            logger,
        };
        (ledger, hear)
    }

    /// After a commit that failed: what the store has is what holds.
    async fn renew(&mut self, model: &Model<State>) -> Result<(), StoreError> {
        if self.stale {
            self.last_runs = self.store.last_run_numbers().await?;
            self.nodes = nodes_of(&model.read());
            self.stale = false;
        }
        Ok(())
    }

    /// Removes runs that came before this time; says whether there may be more.
    pub(crate) async fn purge(&mut self, before: UnixMillis) -> Result<bool, StoreError> {
        let last = &self.last_runs;
        let is_last = |node, run| last.get(&node) == Some(&run);
        self.store.purge(before, is_last).await
    }

    /// Is what the database says on coming back what is known here?
    fn check_found(&mut self, found: Result<Found, StoreError>) -> Result<Found, StoreError> {
        let lost = match &found {
            Ok(Found::AsLeft | Found::Done) => return found,
            Ok(Found::Behind) => Lost::Behind,
            Ok(Found::First | Found::Others) | Err(StoreError::Locked { .. }) => Lost::Displaced,
            Err(_) => return found,
        };
        if let Some(tell) = self.lost.take() {
            // Who would hear it is gone when the server stops.
            let _ = tell.send(lost);
        }
        Err(gone())
    }
}

fn gone() -> StoreError {
    StoreError::Database {
        doing: "reach",
        cause: "it is not as this server left it; the server ends".to_owned(),
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
    type Notifications = ();
    type Error = StoreError;

    fn weight(request: &Request) -> usize {
        match request {
            Request::Run(record) => {
                let exceptions = record.exceptions.iter();
                let texts = |one: &Exception| {
                    one.message.len()
                        + one.component.len()
                        + one.key.len()
                        + one.rule.len()
                        + one.directive.len()
                };
                let bytes: usize = exceptions.map(|one| 512 + texts(one)).sum();
                record.message.len() + bytes
            }
            Request::Inventory(newcome) => newcome.inventory.len(),
            Request::Refused(record) => record.body.len(),
            Request::History(hours) => hours.len() * 256,
            _ => 1,
        }
    }

    async fn ready(&mut self, _: &Model<State>) -> Result<(), StoreError> {
        if self.lost.is_none() {
            return Err(gone());
        }
        if self.store.lost() {
            let found = self.recovery.reach(&mut self.store).await;
            // Of what is done without a batch, as a purge, memory knows nothing.
            self.check_found(found)?;
        }
        Ok(())
    }

    async fn look_up(
        &mut self,
        model: &Model<State>,
        requests: &[Request],
    ) -> Result<(), StoreError> {
        self.renew(model).await?;
        let (mut runs, mut nodes) = (Vec::new(), Vec::new());
        {
            let state = model.read();
            let number = |id: &str| state.nodes.get(id).map(|record| record.number);
            for request in requests {
                match request {
                    Request::Run(run) => {
                        runs.extend(number(&run.node).map(|node| run.key(node)));
                    }
                    Request::Decide { nodes: ids, accept } if *accept => {
                        nodes.extend(ids.iter().filter_map(|id| number(id)));
                    }
                    _ => {}
                }
            }
        }
        self.found = LookedUp {
            runs: self.store.known_runs(&runs).await?,
            inventories: self.store.inventories(&nodes).await?,
        };
        Ok(())
    }

    fn apply(&mut self, state: &State, requests: Vec<Request>) -> Applied<Self> {
        let mut batch = Batch {
            state,
            records: Layer::default(),
            runs: HashMap::new(),
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
            notifications: (),
        }
    }

    async fn commit(&mut self, _: &Model<State>, writes: &Vec<Write>) -> Result<(), StoreError> {
        let mut tries = 0;
        loop {
            let Err(error) = self.store.commit(writes).await else {
                return Ok(());
            };
            tries += 1;
            if !self.store.lost() {
                return Err(error);
            }
            let found = self.recovery.settle(&mut self.store).await;
            match self.check_found(found)? {
                Found::Done => return Ok(()),
                // It did not take place: once more.
                _ if tries < TRIES => {}
                _ => return Err(error),
            }
        }
    }

    fn merge(state: &mut State, writes: Vec<Write>) {
        state.merge(writes);
    }

    fn notify(&mut self, (): ()) {}

    fn failed(&mut self, error: &StoreError, requests: usize) {
        self.stale = true;
        let fields = Fields::new().and("requests", requests);
        self.logger.error("failed-to-commit", error, fields);
    }

    fn refusal(why: CommitFailure<'_, StoreError>) -> Refusal {
        Refusal::Store(match why {
            CommitFailure::Stopping => "the server stops".to_owned(),
            CommitFailure::Late => "it took too long".to_owned(),
            CommitFailure::Failed(error) => error.to_string(),
        })
    }
}
