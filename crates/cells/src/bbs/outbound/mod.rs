//! What the BBS asks of others.
//!
//! What is to be done follows from the records: which task or instance has no cell, which
//! instance is to end, which result is to be sent. Here only the guids of records wait that
//! something is to be done about, so what waits is bounded by the records and nothing is
//! dropped; a request is made from the record as it is when it is sent.

mod auction;
mod callback;
mod instances;
mod rep;
mod resume;
#[cfg(test)]
mod tests;
mod waiting;

pub(crate) use rep::Reps;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use commit::View;
use net::Client;
use telemetry::{Fields, Logger};
use tokio::task::JoinSet;

use super::apply::Work;
use super::ledger::Commands;
use super::metrics::Metrics;
use super::pools::Pools;
use super::presence::Presences;
use super::state::State;
use crate::mutex::lock;
use crate::pool::{Pool, PoolCounts};
use waiting::Waiting;

/// Cancellations that may wait. Of these the record tells nothing any more, so a further one
/// is left to its cell, which finds in its next pass that the task is not running.
const CANCELLATIONS: usize = 65_536;

/// Instances to place, of one process.
#[derive(Debug, Clone)]
struct Instances {
    /// `None`: all that have no cell.
    indices: Option<Vec<i32>>,
    trace: Arc<str>,
}

/// Instances to stop, of one process: its record says from which index on.
struct Stop {
    trace: Arc<str>,
    /// They were asked to stop before and have had their time.
    again: bool,
}

/// Instances to update, of one process.
struct Update {
    routes: bool,
    tags: bool,
    trace: Arc<str>,
    /// Only those that have not what they shall have.
    drifted: bool,
}

struct Cancel {
    cell: String,
    trace: Arc<str>,
}

/// What waits to be asked of others.
pub(crate) struct Outbound {
    lrps: Waiting<Instances>,
    tasks: Waiting<()>,
    callbacks: Waiting<()>,
    stops: Waiting<Stop>,
    updates: Waiting<Update>,
    cancels: Waiting<Cancel>,
    /// Tasks whose results are being sent.
    called_back: Mutex<HashSet<Arc<str>>>,
    pools: Pools,
    metrics: Arc<Metrics>,
    logger: Logger,
}

/// What the loops need.
pub(crate) struct OutboundContext {
    pub(crate) auctioneer: Option<String>,
    pub(crate) client: Client,
    /// For those who get results of tasks.
    pub(crate) receivers: Client,
    pub(crate) reps: Arc<Reps>,
    pub(crate) presences: Arc<Presences>,
    pub(crate) state: View<State>,
    pub(crate) commands: Commands,
    /// Longest wait, after a start, for cells that were there before.
    pub(crate) cells_within: Duration,
    /// Time until what has not come about is asked for again.
    pub(crate) again_after: Duration,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) logger: Logger,
}

impl Outbound {
    pub(crate) fn new(pools: Pools, metrics: &Arc<Metrics>, logger: &Logger) -> Arc<Self> {
        Arc::new(Self {
            lrps: Waiting::default(),
            tasks: Waiting::default(),
            callbacks: Waiting::default(),
            stops: Waiting::default(),
            updates: Waiting::default(),
            cancels: Waiting::default(),
            called_back: Mutex::default(),
            pools,
            metrics: Arc::clone(metrics),
            logger: logger.session("outbound"),
        })
    }

    /// Kinds of requests with the number of records that wait for one.
    pub(crate) fn lengths(&self) -> [(&'static str, usize); 4] {
        let reps = self.stops.len() + self.updates.len() + self.cancels.len();
        [
            ("lrp-auctions", self.lrps.len()),
            ("task-auctions", self.tasks.len()),
            ("callbacks", self.callbacks.len()),
            ("reps", reps),
        ]
    }

    /// Workers.
    pub(crate) fn pools(&self) -> &Pools {
        &self.pools
    }

    /// What is known of each pool, with what waits before it.
    pub(crate) fn pool_counts(&self) -> [PoolCounts; 6] {
        let pools = &self.pools;
        let first = [self.stops.first(), self.cancels.first()];
        let deletes = self.stops.len() + self.cancels.len();
        let of = |pool: &Pool, queued, first| pool.counts(queued, first);
        [
            of(
                &pools.callbacks,
                self.callbacks.len(),
                self.callbacks.first(),
            ),
            of(&pools.lrp_creates, self.lrps.len(), self.lrps.first()),
            of(&pools.task_creates, self.tasks.len(), self.tasks.first()),
            of(&pools.deletes, deletes, first.into_iter().flatten().min()),
            of(&pools.updates, self.updates.len(), self.updates.first()),
            of(&pools.convergence, 0, None),
        ]
    }

    /// Takes work over; never waits.
    pub(crate) fn dispatch(&self, work: Work) {
        match work {
            Work::PlaceLrp {
                process_guid,
                indices,
                trace,
            } => self.place(process_guid, Some(indices), trace),
            Work::PlaceTask(guid) => self.tasks.put(guid, (), |(), ()| ()),
            Work::Callback(guid) => self.callbacks.put(guid, (), |(), ()| ()),
            Work::StopInstances {
                process_guid,
                trace,
            } => self.stop(process_guid, trace, false),
            Work::UpdateInstances {
                process_guid,
                routes,
                tags,
                drifted,
                trace,
            } => {
                let update = Update {
                    routes,
                    tags,
                    trace,
                    drifted,
                };
                self.update(process_guid, update);
            }
            Work::CancelTask {
                task_guid,
                cell,
                trace,
            } => self.cancel(task_guid, cell, trace),
        }
    }

    fn place(&self, process_guid: Arc<str>, indices: Option<Vec<i32>>, trace: Arc<str>) {
        let instances = Instances { indices, trace };
        self.lrps.put(process_guid, instances, |old, new| {
            old.indices = old.indices.take().zip(new.indices).map(|(mut old, new)| {
                old.extend(new);
                old
            });
            old.trace = new.trace;
        });
    }

    fn stop(&self, process_guid: Arc<str>, trace: Arc<str>, again: bool) {
        let stop = Stop { trace, again };
        self.stops.put(process_guid, stop, |old, new| {
            old.trace = new.trace;
            old.again |= new.again;
        });
    }

    fn update(&self, process_guid: Arc<str>, update: Update) {
        self.updates.put(process_guid, update, |old, new| {
            old.routes |= new.routes;
            old.tags |= new.tags;
            old.drifted &= new.drifted;
            old.trace = new.trace;
        });
    }

    fn cancel(&self, task_guid: Arc<str>, cell: String, trace: Arc<str>) {
        if self.cancels.len() >= CANCELLATIONS {
            self.metrics.dropped_work.add(1);
            let fields = Fields::new()
                .and("task-guid", task_guid)
                .and("cell-id", cell);
            let cause = format!("{CANCELLATIONS} wait already; its cell ends it in its next pass");
            self.logger.error("cancellation-left-out", &cause, fields);
            return;
        }
        self.cancels
            .put(task_guid, Cancel { cell, trace }, |old, new| *old = new);
    }

    /// Is the task's result being sent?
    pub(crate) fn is_called_back(&self, guid: &str) -> bool {
        lock(&self.called_back).contains(guid)
    }

    /// Starts the loops; they end with the returned set. No request may have been
    /// served yet: what waits by the records is taken up.
    pub(crate) fn start(self: &Arc<Self>, means: OutboundContext) -> JoinSet<()> {
        let mut loops = JoinSet::new();
        let before = resume::Waiting::of(&means.state.read());
        loops.spawn(net::boxed(resume::resume(
            before,
            Arc::clone(self),
            means.presences,
            means.cells_within,
            means.logger.session("resume"),
        )));
        let auctioneer = auction::Auctioneer {
            url: means.auctioneer,
            client: means.client,
            state: means.state.clone(),
            metrics: Arc::clone(&means.metrics),
            logger: means.logger.clone(),
        };
        for _ in 0..self.pools.lrp_creates.workers() {
            let auctioneer = auctioneer.clone();
            loops.spawn(net::boxed(auction::place_lrps(
                auctioneer,
                Arc::clone(self),
            )));
        }
        for _ in 0..self.pools.task_creates.workers() {
            let auctioneer = auctioneer.clone();
            loops.spawn(net::boxed(auction::place_tasks(
                auctioneer,
                Arc::clone(self),
            )));
        }
        let callbacks = callback::Callbacks {
            client: means.receivers,
            state: means.state.clone(),
            commands: means.commands.clone(),
            metrics: means.metrics,
            logger: means.logger.session("task-callback"),
        };
        loops.spawn(net::boxed(callback::call_back(callbacks, Arc::clone(self))));
        let calls = instances::Calls {
            reps: means.reps,
            outbound: Arc::clone(self),
            state: means.state,
            commands: means.commands,
            logger: means.logger.session("rep-client"),
        };
        loops.spawn(net::boxed(calls.clone().stop()));
        loops.spawn(net::boxed(calls.clone().update()));
        loops.spawn(net::boxed(calls.clone().cancel()));
        loops.spawn(net::boxed(calls.again(means.again_after)));
        loops
    }
}
