//! The pass that compares what the BBS has recorded with what is there.

use std::sync::Arc;
use std::time::Duration;

use diego::models::{self, ActualLrp, task};
use diego::{CallError, path};
use net::Shutdown;
use rand::RngExt;
use telemetry::Fields;
use tokio::time::{Instant, sleep};

use super::cell::Cell;
use super::container::Event;
use super::executor::Executor;

/// Repeats the pass for `cell` until `shutdown`. The first one comes after a random
/// part of the interval, so that many cells do not make theirs at the same time.
pub(super) async fn repeat<E: Executor>(
    cell: Arc<Cell<E>>,
    interval: Duration,
    mut shutdown: Shutdown,
) {
    let mut pause = interval.mul_f64(rand::rng().random::<f64>());
    loop {
        tokio::select! {
            () = sleep(pause) => {}
            () = shutdown.asked() => return,
        }
        tokio::select! {
            () = pass(&cell) => {}
            () = shutdown.asked() => return,
        }
        pause = interval;
    }
}

async fn pass<E: Executor>(cell: &Arc<Cell<E>>) {
    let began = Instant::now();
    match records(cell).await {
        Ok((lrps, tasks)) => {
            // The records are older than this look at the containers, so whatever
            // was taken on meanwhile is not among them.
            let (lrps, tasks) = residual(lrps, tasks, |guid| cell.has(guid));
            for lrp in lrps {
                cell.remove_lost_lrp(lrp).await;
            }
            for guid in tasks {
                cell.complete_lost_task(guid).await;
            }
        }
        Err(error) => cell
            .logs
            .bulk
            .error("failed-to-list-records", &error, Fields::new()),
    }
    let guids = cell.guids();
    let count = guids.len();
    for guid in guids {
        cell.feed(&guid, Event::Refresh);
    }
    let took = began.elapsed().as_secs_f64();
    cell.logs.bulk.debug(
        "finished",
        Fields::new()
            .and("containers", count)
            .and("duration-s", took),
    );
}

async fn records<E: Executor>(
    cell: &Cell<E>,
) -> Result<(Vec<ActualLrp>, Vec<models::Task>), CallError> {
    let cell_id = cell.id().to_owned();
    let request = models::ActualLrPsRequest {
        cell_id: cell_id.clone(),
        ..models::ActualLrPsRequest::default()
    };
    let lrps: models::ActualLrPsResponse = cell.bbs.call(path::ACTUAL_LRPS, &request).await?;
    let request = models::TasksRequest {
        cell_id,
        ..models::TasksRequest::default()
    };
    let tasks: models::TasksResponse = cell.bbs.call(path::TASKS, &request).await?;
    Ok((lrps.actual_lrps, tasks.tasks))
}

/// Records of instances, and guids of running tasks, that have no container.
fn residual(
    lrps: Vec<ActualLrp>,
    tasks: Vec<models::Task>,
    has: impl Fn(&str) -> bool,
) -> (Vec<ActualLrp>, Vec<String>) {
    let lost = |lrp: &ActualLrp| {
        let key = lrp.actual_lrp_instance_key.as_ref();
        key.is_some_and(|key| !key.instance_guid.is_empty() && !has(&key.instance_guid))
    };
    let running = |task: &models::Task| task.state() == task::State::Running;
    (
        lrps.into_iter().filter(lost).collect(),
        tasks
            .into_iter()
            .filter(|task| running(task) && !has(&task.task_guid))
            .map(|task| task.task_guid)
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use diego::models::{ActualLrpInstanceKey, Task};

    use super::*;

    #[test]
    fn only_records_without_a_container_are_residual() {
        let lrp = |guid: &str| ActualLrp {
            actual_lrp_instance_key: Some(ActualLrpInstanceKey {
                instance_guid: guid.into(),
                cell_id: "cell-0".into(),
            }),
            ..ActualLrp::default()
        };
        let task = |guid: &str, state: task::State| Task {
            task_guid: guid.into(),
            state: state.into(),
            ..Task::default()
        };
        let (lrps, tasks) = residual(
            vec![lrp("here"), lrp("gone"), lrp("")],
            vec![
                task("here", task::State::Running),
                task("gone", task::State::Running),
                task("done", task::State::Completed),
            ],
            |guid| guid == "here",
        );
        assert_eq!(lrps, [lrp("gone")]);
        assert_eq!(tasks, ["gone"]);
    }
}
