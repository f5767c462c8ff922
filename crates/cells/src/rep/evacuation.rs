//! Emptying the cells of a process, after which it ends.
//!
//! A cell that is evacuated takes no work. What does not run yet it gives back, and what
//! runs it keeps until the BBS says that it has been replaced; tasks run to their end.

use std::sync::Arc;
use std::time::Duration;

use diego::models::actual_lrp::Presence;
use diego::models::{
    ActualLrp, EvacuateClaimedActualLrpRequest, EvacuateCrashedActualLrpRequest,
    EvacuateRunningActualLrpRequest, EvacuateStoppedActualLrpRequest, EvacuationResponse, task,
};
use diego::{auction::Lrp, path};
use net::Shutdown;
use telemetry::Fields;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::bulk;
use super::calls::{log_answer, report};
use super::cell::{Cell, Subject};
use super::container::{Answer, Call};
use super::executor::Executor;
use super::work::keys;

/// Time from one look whether a cell is empty to the next.
const LOOK: Duration = Duration::from_millis(20);

/// Longest time for telling the BBS what was left on a cell at the time-out.
const SETTLE_WITHIN: Duration = Duration::from_secs(30);

/// What a crash is told as that gave no reason: the BBS takes none without one.
const NO_REASON: &str = "the process ended";

/// How long a task that is left at the time-out is told to have run.
const TASK_CUT: &str = "the cell was evacuated before the task had ended";

/// Asks the cells of a process to be evacuated.
#[derive(Debug, Clone)]
pub struct Evacuation {
    asked: Arc<watch::Sender<bool>>,
}

impl Evacuation {
    pub(super) fn new() -> (Self, watch::Receiver<bool>) {
        let (asked, evacuated) = watch::channel(false);
        let asked = Arc::new(asked);
        (Self { asked }, evacuated)
    }

    /// Begins it. Once begun it is not taken back.
    pub fn begin(&self) {
        self.asked.send_replace(true);
    }
}

/// Times of an evacuation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// From one time that the BBS is asked whether instances are replaced to the next.
    pub(super) interval: Duration,
    /// Longest time until the cell is empty.
    pub(super) within: Duration,
    /// Longest time for what is left then to end.
    pub(super) close_within: Duration,
}

/// Waits until the cells are to be evacuated, empties `cell`, and returns when nothing is
/// on it or its time is over; or with `shutdown`.
pub(super) async fn drain<E: Executor>(
    cell: Arc<Cell<E>>,
    mut asked: watch::Receiver<bool>,
    pace: Pace,
    mut shutdown: Shutdown,
) {
    tokio::select! {
        Ok(_) = asked.wait_for(|asked| *asked) => {}
        () = shutdown.requested() => return,
    }
    let logger = cell.logs.evacuation.clone();
    logger.info("started", Fields::new());
    let emptied = tokio::select! {
        emptied = timeout(pace.within, empty(&cell, pace.interval)) => emptied.is_ok(),
        () = shutdown.requested() => return,
    };
    if emptied {
        return logger.info("succeeded", Fields::new());
    }
    let cause = format!("something was left after {:?}: it ends now", pace.within);
    logger.error("timed-out", &cause, Fields::new());
    tokio::select! {
        () = cell.close(pace.close_within) => {}
        () = shutdown.requested() => return,
    }
    if timeout(SETTLE_WITHIN, settle(&cell)).await.is_err() {
        let cause = format!("the BBS did not answer within {SETTLE_WITHIN:?}");
        logger.error("failed-to-tell-what-was-left", &cause, Fields::new());
    }
}

/// Tells the containers to leave, and again after each interval, until there are none.
async fn empty<E: Executor>(cell: &Arc<Cell<E>>, interval: Duration) {
    loop {
        cell.evacuate();
        let next = Instant::now() + interval;
        while Instant::now() < next {
            if cell.is_empty() {
                return;
            }
            sleep(LOOK.min(interval)).await;
        }
        bulk::pass(cell).await;
    }
}

/// Gives away what the BBS still has as this cell's, all of which has ended: evacuating
/// records go, instances that nobody has taken over are placed anew, and tasks fail.
async fn settle<E: Executor>(cell: &Cell<E>) {
    let (lrps, tasks) = match bulk::records(cell).await {
        Ok(records) => records,
        Err(error) => {
            let logger = &cell.logs.evacuation;
            return logger.error("failed-to-list-records", &error, Fields::new());
        }
    };
    for lrp in lrps {
        if lrp.presence() == Presence::Evacuating {
            cell.metrics.counters.stranded.add(1);
            cell.remove_lost_lrp(lrp).await;
        } else {
            cell.give_back(lrp).await;
        }
    }
    let running = |task: &diego::models::Task| task.state() == task::State::Running;
    for task in tasks.into_iter().filter(running) {
        cell.complete_lost_task(task.task_guid, TASK_CUT).await;
    }
}

impl<E: Executor> Cell<E> {
    pub(super) async fn evacuate_lrp(&self, subject: &Subject, lrp: &Lrp, call: Call) -> Answer {
        let (key, instance_key) = keys(lrp, self.id());
        let (actual_lrp_key, actual_lrp_instance_key) = (Some(key), Some(instance_key));
        let logger = &self.logs.evacuation;
        match call {
            Call::EvacuateClaimed => {
                let request = EvacuateClaimedActualLrpRequest {
                    actual_lrp_key,
                    actual_lrp_instance_key,
                };
                let path = path::EVACUATE_CLAIMED_ACTUAL_LRP;
                let answer = self.bbs.call::<EvacuationResponse>(path, &request).await;
                log_answer(logger, "gave-back", subject, answer)
            }
            Call::EvacuateRunning => self.hand_over(subject, lrp).await,
            Call::EvacuateStopped => {
                let request = EvacuateStoppedActualLrpRequest {
                    actual_lrp_key,
                    actual_lrp_instance_key,
                };
                let path = path::EVACUATE_STOPPED_ACTUAL_LRP;
                let answer = self.bbs.call::<EvacuationResponse>(path, &request).await;
                log_answer(logger, "stopped", subject, answer)
            }
            Call::EvacuateCrashed(reason) => {
                let error_message = if reason.is_empty() {
                    NO_REASON.to_owned()
                } else {
                    reason
                };
                let request = EvacuateCrashedActualLrpRequest {
                    actual_lrp_key,
                    actual_lrp_instance_key,
                    error_message,
                };
                let path = path::EVACUATE_CRASHED_ACTUAL_LRP;
                let answer = self.bbs.call::<EvacuationResponse>(path, &request).await;
                log_answer(logger, "crashed", subject, answer)
            }
            // Only evacuation's calls come here.
            _ => Answer::Refused,
        }
    }

    async fn hand_over(&self, subject: &Subject, lrp: &Lrp) -> Answer {
        let says = self.start_request(subject, lrp);
        let request = EvacuateRunningActualLrpRequest {
            actual_lrp_key: says.actual_lrp_key,
            actual_lrp_instance_key: says.actual_lrp_instance_key,
            actual_lrp_net_info: says.actual_lrp_net_info,
            actual_lrp_internal_routes: says.actual_lrp_internal_routes,
            metric_tags: says.metric_tags,
            routable: says.routable,
            availability_zone: says.availability_zone,
        };
        let path = path::EVACUATE_RUNNING_ACTUAL_LRP;
        let fields = subject.work.fields();
        match self.bbs.call::<EvacuationResponse>(path, &request).await {
            Ok(answer) if answer.keep_container => {
                self.logs.evacuation.debug("kept", fields);
                Answer::Keep
            }
            Ok(_) => {
                self.logs.evacuation.info("replaced", fields);
                Answer::Done
            }
            // Whatever the BBS's trouble is, an instance that may be the only one stays.
            Err(error) => {
                report(&self.logs.evacuation, subject, &error);
                Answer::Failed
            }
        }
    }

    /// Has an instance placed anew whose container is gone.
    async fn give_back(&self, lrp: ActualLrp) {
        let key = lrp.actual_lrp_key.unwrap_or_default();
        let fields = Fields::new()
            .and("process-guid", &key.process_guid)
            .and("index", key.index);
        let request = EvacuateClaimedActualLrpRequest {
            actual_lrp_key: Some(key),
            actual_lrp_instance_key: lrp.actual_lrp_instance_key,
        };
        let path = path::EVACUATE_CLAIMED_ACTUAL_LRP;
        match self.bbs.call::<EvacuationResponse>(path, &request).await {
            Ok(_) => self.logs.evacuation.info("gave-back", fields),
            Err(error) => self
                .logs
                .evacuation
                .error("failed-to-give-back", &error, fields),
        }
    }
}
