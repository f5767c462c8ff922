//! The pass that compares what the BBS has recorded with what is there.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use diego::models::{self, ActualLrp, task};
use diego::{CallError, path};
use fleet::Agent;
use net::Shutdown;
use rand::RngExt;
use telemetry::Fields;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::cell::Cell;
use super::container::Event;
use super::executor::Executor;
use super::presence::Hold;

/// Repeats the pass for `cell` until `shutdown`, while it has its presence: without it the
/// records may be another rep's. The first one comes after a random part of the interval, so
/// that many cells do not make theirs at the same time.
pub(super) async fn repeat<E: Executor>(
    cell: Arc<Cell<E>>,
    mut agent: Agent,
    mut held: watch::Receiver<Hold>,
    interval: Duration,
    mut shutdown: Shutdown,
) {
    let mut pause = interval.mul_f64(rand::rng().random::<f64>());
    loop {
        tokio::select! {
            () = sleep(pause) => {}
            () = agent.recalled() => {}
            () = shutdown.requested() => return,
        }
        if agent.is_silent() {
            pause = interval;
            continue;
        }
        tokio::select! {
            // The error of a presence that is not kept any more comes with a shutdown.
            Ok(_) = held.wait_for(|held| *held == Hold::Held) => {}
            () = shutdown.requested() => return,
        }
        tokio::select! {
            () = pass(&cell) => {}
            () = shutdown.requested() => return,
        }
        pause = interval;
    }
}

/// Asks for the records of the cell and mends what differs. What a container did after the
/// BBS was asked is not in the answer, so of each container only what the BBS had
/// acknowledged before is compared, and only a record whose container was there neither
/// before nor after is lost.
pub(super) async fn pass<E: Executor>(cell: &Arc<Cell<E>>) {
    let began = Instant::now();
    let before = cell.acknowledged();
    let (lrps, tasks) = match records(cell).await {
        Ok(records) => records,
        Err(error) => {
            let logger = &cell.logs.bulk;
            return logger.error("failed-to-list-records", &error, Fields::new());
        }
    };
    if !cell.is_held() {
        return;
    }
    let records = Records::of(&lrps, &tasks);
    for guid in before
        .iter()
        .filter(|(_, known)| **known)
        .map(|(guid, _)| guid)
    {
        if let Some(report) = cell.report(guid) {
            if !records
                .lrps
                .get(guid.as_str())
                .is_some_and(|row| matches_report(row, &report))
            {
                cell.feed(guid, Event::Refresh);
            }
        } else if !records.tasks.contains(guid.as_str()) {
            cell.end_disowned_task(guid);
        }
    }
    let (lrps, tasks) = residual(lrps, tasks, |guid| {
        before.contains_key(guid) || cell.has(guid)
    });
    for lrp in lrps {
        cell.remove_lost_lrp(lrp).await;
    }
    for guid in tasks {
        cell.complete_lost_task(guid, "task container does not exist")
            .await;
    }
    let took = began.elapsed();
    cell.metrics.passed(took);
    cell.logs.bulk.debug(
        "finished",
        Fields::new()
            .and("containers", before.len())
            .and("duration-s", took.as_secs_f64()),
    );
}

/// What the BBS has recorded of the cell, by container.
struct Records<'a> {
    lrps: HashMap<&'a str, &'a ActualLrp>,
    /// Running ones.
    tasks: HashSet<&'a str>,
}

impl<'a> Records<'a> {
    fn of(lrps: &'a [ActualLrp], tasks: &'a [models::Task]) -> Self {
        let lrp = |row: &'a ActualLrp| {
            let key = row.actual_lrp_instance_key.as_ref()?;
            Some((key.instance_guid.as_str(), row))
        };
        let running = tasks
            .iter()
            .filter(|task| task.state() == task::State::Running);
        Self {
            lrps: lrps.iter().filter_map(lrp).collect(),
            tasks: running.map(|task| task.task_guid.as_str()).collect(),
        }
    }
}

/// Does the record say what was reported? Where it does not, the report is repeated.
fn matches_report(row: &ActualLrp, report: &models::StartActualLrpRequest) -> bool {
    row.state == "RUNNING"
        && row.actual_lrp_instance_key == report.actual_lrp_instance_key
        && row.actual_lrp_net_info == report.actual_lrp_net_info
        && row.actual_lrp_internal_routes == report.actual_lrp_internal_routes
        && row.metric_tags == report.metric_tags
        && row.routable == report.routable
        && row.availability_zone == report.availability_zone
}

pub(super) async fn records<E: Executor>(
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
