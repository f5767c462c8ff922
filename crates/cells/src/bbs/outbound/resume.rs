//! What a BBS that starts asks the auctioneer for: work that waited when it ended.
//!
//! Requests that had not been handed on are lost with the process. The records are
//! not, so they are asked for again. Asking twice does no harm: a cell that takes
//! work which is under way elsewhere is told so when it reports.

use std::sync::Arc;

use commit::View;
use diego::models::task::State as TaskState;
use telemetry::{Fields, Logger};
use tokio::sync::mpsc::WeakSender;

use super::{LrpRequest, TaskStartRequest};
use crate::bbs::apply::placement;
use crate::bbs::model::desired;
use crate::bbs::model::slot::UNCLAIMED;
use crate::bbs::state::{Process, State, Task};

/// Guids of what may wait for a cell. To be taken before any request is served: what
/// comes later is asked for when it comes.
pub(super) struct Waiting {
    tasks: Vec<Arc<str>>,
    processes: Vec<Arc<str>>,
}

impl Waiting {
    /// What may wait as of now.
    pub(super) fn of(state: &State) -> Self {
        let task = |(guid, task): (&Arc<str>, &Task)| {
            let waits = task.cell.is_empty();
            waits.then(|| Arc::clone(guid))
        };
        let process = |(guid, process): (&Arc<str>, &Process)| {
            let waits = process.actual.iter().any(|row| row.cell.is_empty());
            waits.then(|| Arc::clone(guid))
        };
        Self {
            tasks: state.tasks.iter().filter_map(task).collect(),
            processes: state.processes.iter().filter_map(process).collect(),
        }
    }
}

/// Asks for cells for what waits, as fast as the queues take it.
pub(super) async fn resume(
    waiting: Waiting,
    state: View<State>,
    lrps: WeakSender<LrpRequest>,
    tasks: WeakSender<TaskStartRequest>,
    logger: Logger,
) {
    let (mut resumed_tasks, mut resumed_lrps) = (0, 0);
    for guid in waiting.tasks {
        let request = state.read().tasks.get(&guid).and_then(of_task);
        // Without senders the BBS is ending.
        if let (Some(request), Some(queue)) = (request, tasks.upgrade()) {
            resumed_tasks += 1;
            let _ = queue.send(request).await;
        }
    }
    for guid in waiting.processes {
        let request = state.read().processes.get(&guid).and_then(of_process);
        if let (Some(request), Some(queue)) = (request, lrps.upgrade()) {
            resumed_lrps += request.0.indices.len();
            let _ = queue.send(request).await;
        }
    }
    if resumed_tasks + resumed_lrps > 0 {
        let fields = Fields::new().and("tasks", resumed_tasks);
        logger.info("resumed-auctions", fields.and("lrps", resumed_lrps));
    }
}

fn of_task(task: &Task) -> Option<TaskStartRequest> {
    let task = task.decode().ok()?;
    let pending = task.state() == TaskState::Pending && task.cell_id.is_empty();
    pending
        .then(|| Some(placement(&task, task.task_definition.as_ref()?)))
        .flatten()
}

fn of_process(process: &Process) -> Option<LrpRequest> {
    let info = process.desired.as_ref()?.info().ok()?;
    let rows = process.actual.iter().filter(|row| row.cell.is_empty());
    let rows = rows.filter_map(|row| row.decode().ok());
    let indices: Vec<i32> = rows
        .filter(|row| row.state == UNCLAIMED)
        .filter_map(|row| row.actual_lrp_key.map(|key| key.index))
        .collect();
    (!indices.is_empty()).then(|| (desired::auction(&info, indices), "".into()))
}
