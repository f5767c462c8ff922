//! What the BBS asks of others: bounded queues and the loops that empty them.

mod auction;
mod callback;
mod rep;
mod resume;

pub(crate) use rep::Reps;

use std::sync::Arc;

use commit::View;
use diego::auction::{LrpStartRequest, Task as TaskStartRequest};
use diego::models::Task;
use net::Client;
use telemetry::{Fields, Logger};
use tokio::sync::mpsc::{Receiver, Sender, WeakSender, channel};
use tokio::task::JoinSet;

use super::apply::Work;
use super::ledger::Commands;
use super::metrics::Metrics;
use super::state::State;

/// Requests of one kind that may wait. What does not fit is dropped and counted:
/// convergence asks again for whatever was forgotten.
const QUEUE: usize = 65_536;

/// Instances to place, with the trace id of the request.
type LrpRequest = (LrpStartRequest, Arc<str>);

/// Where the writer leaves work.
pub(crate) struct Outbound {
    lrps: Sender<LrpRequest>,
    tasks: Sender<TaskStartRequest>,
    callbacks: Sender<Arc<Task>>,
    reps: Sender<Work>,
    metrics: Arc<Metrics>,
}

/// The other ends, for [`Inbox::start`].
pub(crate) struct Inbox {
    lrps: Receiver<LrpRequest>,
    tasks: Receiver<TaskStartRequest>,
    callbacks: Receiver<Arc<Task>>,
    reps: Receiver<Work>,
    metrics: Arc<Metrics>,
}

/// What the loops need.
pub(crate) struct Means {
    pub(crate) auctioneer: Option<String>,
    pub(crate) client: Client,
    pub(crate) reps: Arc<Reps>,
    pub(crate) state: View<State>,
    pub(crate) lengths: Arc<Lengths>,
    pub(crate) commands: Commands,
    pub(crate) callback_workers: usize,
    pub(crate) logger: Logger,
}

/// The queues.
pub(crate) fn queues(metrics: &Arc<Metrics>) -> (Outbound, Inbox) {
    let (lrps, lrps_inbox) = channel(QUEUE);
    let (tasks, tasks_inbox) = channel(QUEUE);
    let (callbacks, callbacks_inbox) = channel(QUEUE);
    let (reps, reps_inbox) = channel(QUEUE);
    let outbound = Outbound {
        lrps,
        tasks,
        callbacks,
        reps,
        metrics: Arc::clone(metrics),
    };
    let inbox = Inbox {
        lrps: lrps_inbox,
        tasks: tasks_inbox,
        callbacks: callbacks_inbox,
        reps: reps_inbox,
        metrics: Arc::clone(metrics),
    };
    (outbound, inbox)
}

fn length<T>(queue: &WeakSender<T>) -> usize {
    // A queue without senders is one that is being given up.
    queue
        .upgrade()
        .map_or(0, |queue| queue.max_capacity() - queue.capacity())
}

/// The lengths of the queues, seen without keeping them open.
pub(crate) struct Lengths {
    lrps: WeakSender<LrpRequest>,
    tasks: WeakSender<TaskStartRequest>,
    callbacks: WeakSender<Arc<Task>>,
    reps: WeakSender<Work>,
}

impl Lengths {
    /// Each queue's name with what waits in it.
    pub(crate) fn now(&self) -> [(&'static str, usize); 4] {
        [
            ("lrp-auctions", length(&self.lrps)),
            ("task-auctions", length(&self.tasks)),
            ("callbacks", length(&self.callbacks)),
            ("reps", length(&self.reps)),
        ]
    }
}

impl Outbound {
    /// A view of how much waits.
    pub(crate) fn lengths(&self) -> Arc<Lengths> {
        Arc::new(Lengths {
            lrps: self.lrps.downgrade(),
            tasks: self.tasks.downgrade(),
            callbacks: self.callbacks.downgrade(),
            reps: self.reps.downgrade(),
        })
    }

    /// Takes work over; never waits.
    pub(crate) fn dispatch(&self, work: Work) {
        let taken = match work {
            Work::PlaceLrp(request, trace) => self.lrps.try_send((request, trace)).is_ok(),
            Work::PlaceTask(task) => self.tasks.try_send(task).is_ok(),
            Work::Callback(task) => self.callbacks.try_send(task).is_ok(),
            call => self.reps.try_send(call).is_ok(),
        };
        if !taken {
            Metrics::count(&self.metrics.dropped_work);
        }
    }
}

impl Inbox {
    /// Starts the loops; they end with the returned set. No request may have been
    /// served yet.
    pub(crate) fn start(self, means: Means) -> JoinSet<()> {
        let mut loops = JoinSet::new();
        let auctioneer = auction::Auctioneer {
            url: means.auctioneer,
            client: means.client.clone(),
            metrics: Arc::clone(&self.metrics),
            logger: means.logger.clone(),
        };
        if auctioneer.url.is_some() {
            let (lrps, tasks) = (means.lengths.lrps.clone(), means.lengths.tasks.clone());
            let logger = means.logger.session("resume");
            let waiting = resume::Waiting::of(&means.state.read());
            loops.spawn(net::boxed(resume::resume(
                waiting,
                means.state,
                lrps,
                tasks,
                logger,
            )));
        }
        loops.spawn(net::boxed(auction::place_lrps(
            auctioneer.clone(),
            self.lrps,
        )));
        loops.spawn(net::boxed(auction::place_tasks(auctioneer, self.tasks)));
        let callbacks = callback::Callbacks {
            client: means.client,
            commands: means.commands,
            metrics: Arc::clone(&self.metrics),
            logger: means.logger.clone(),
        };
        loops.spawn(net::boxed(callback::call_back(
            callbacks,
            self.callbacks,
            means.callback_workers,
        )));
        loops.spawn(net::boxed(rep::call_reps(
            means.reps,
            self.reps,
            means.logger,
        )));
        loops
    }
}

fn lines(logger: &Logger, event: &str, guids: impl IntoIterator<Item = String>) {
    for guid in guids {
        logger.info(event, Fields::new().and("task-guid", guid));
    }
}
