//! What a BBS that starts takes up: what had not come about when it ended.
//!
//! The records are all there is of it, so it is asked for again. Asking twice does no harm:
//! a cell that takes work which is under way elsewhere is told so when it reports.

use std::sync::Arc;
use std::time::Duration;

use diego::models::task::State as TaskState;
use telemetry::{Fields, Logger};
use tokio::time::Instant;

use super::{Outbound, Update};
use crate::bbs::presence::Presences;
use crate::bbs::state::{Process, State, Task};

/// Time between two looks at who is back.
const LOOK: Duration = Duration::from_millis(100);

/// Guids of records that something may have to be done about. To be taken before any request
/// is served: what comes later is taken up when it comes.
pub(super) struct Waiting {
    tasks: Vec<Arc<str>>,
    processes: Vec<Arc<str>>,
    on_cells: Vec<Arc<str>>,
    stopping: Vec<Arc<str>>,
    cells: Vec<Arc<str>>,
}

impl Waiting {
    /// What may wait as of now.
    pub(super) fn of(state: &State) -> Self {
        let task = |(guid, task): (&Arc<str>, &Task)| {
            let waits = task.state != TaskState::Running;
            waits.then(|| Arc::clone(guid))
        };
        let with = |has: fn(&str) -> bool| {
            let process = move |(guid, process): (&Arc<str>, &Process)| {
                let any = process.rows().any(|row| has(&row.cell));
                any.then(|| Arc::clone(guid))
            };
            state.processes.iter().filter_map(process).collect()
        };
        Self {
            tasks: state.tasks.iter().filter_map(task).collect(),
            processes: with(str::is_empty),
            on_cells: with(|cell| !cell.is_empty()),
            stopping: state.stopping().cloned().collect(),
            cells: state.cells().cloned().collect(),
        }
    }
}

/// Takes it up once the cells of before are back, or have had their time: those that come
/// first would else get all the work, and without any it would fail.
pub(super) async fn resume(
    waiting: Waiting,
    outbound: Arc<Outbound>,
    presences: Arc<Presences>,
    cells_within: Duration,
    logger: Logger,
) {
    // Results do not wait for cells.
    for guid in &waiting.tasks {
        outbound.callbacks.put(Arc::clone(guid), (), |(), ()| ());
    }
    let (tasks, processes) = (waiting.tasks.len(), waiting.processes.len());
    let something = tasks + processes + waiting.stopping.len() + waiting.on_cells.len() > 0;
    let until = Instant::now() + cells_within;
    while something && presences.missing(&waiting.cells) > 0 && Instant::now() < until {
        tokio::time::sleep(LOOK).await;
    }
    for guid in waiting.stopping {
        outbound.stop(guid, "".into(), false);
    }
    for guid in waiting.tasks {
        outbound.tasks.put(guid, (), |(), ()| ());
    }
    for guid in waiting.processes {
        outbound.place(guid, None, "".into());
    }
    for guid in waiting.on_cells {
        let update = Update {
            routes: true,
            tags: true,
            trace: "".into(),
            drifted: true,
        };
        outbound.update(guid, update);
    }
    if something {
        let missing = presences.missing(&waiting.cells);
        let fields = Fields::new()
            .and("tasks", tasks)
            .and("processes", processes);
        logger.info("resumed", fields.and("missing-cells", missing));
    }
}
