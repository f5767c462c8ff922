//! Calls about records whose containers are gone.

use diego::models::{self, ActualLrpLifecycleResponse, TaskLifecycleResponse};
use diego::{CallError, path};
use telemetry::{Fields, Logger};

use super::cell::Cell;
use super::executor::Executor;

impl<E: Executor> Cell<E> {
    /// Completes a task whose container is gone, as failed for this reason; the answer does
    /// not matter beyond the log, because the next pass looks again.
    pub(super) async fn complete_lost_task(&self, task_guid: String, reason: &str) {
        let request = models::CompleteTaskRequest {
            task_guid: task_guid.clone(),
            cell_id: self.id().to_owned(),
            failed: true,
            failure_reason: reason.into(),
            ..models::CompleteTaskRequest::default()
        };
        type Answered = TaskLifecycleResponse;
        let answer = self
            .bbs
            .call::<Answered>(path::COMPLETE_TASK, &request)
            .await;
        let fields = Fields::new().and("task-guid", task_guid);
        let events = (
            "completed-residual-task",
            "failed-to-complete-residual-task",
        );
        note(&self.logs.bulk, events, fields, answer);
    }

    /// Removes the record of an instance whose container is gone.
    pub(super) async fn remove_lost_lrp(&self, lrp: models::ActualLrp) {
        let (Some(key), Some(instance_key)) = (lrp.actual_lrp_key, lrp.actual_lrp_instance_key)
        else {
            return;
        };
        let fields = Fields::new()
            .and("process-guid", &key.process_guid)
            .and("index", key.index)
            .and("instance-guid", &instance_key.instance_guid);
        let events = ("removed-residual-lrp", "failed-to-remove-residual-lrp");
        if lrp.presence == i32::from(models::actual_lrp::Presence::Evacuating) {
            let request = models::RemoveEvacuatingActualLrpRequest {
                actual_lrp_key: Some(key),
                actual_lrp_instance_key: Some(instance_key),
            };
            type Answered = models::RemoveEvacuatingActualLrpResponse;
            let path = path::REMOVE_EVACUATING_ACTUAL_LRP;
            let answer = self.bbs.call::<Answered>(path, &request).await;
            note(&self.logs.bulk, events, fields, answer);
        } else {
            let request = models::RemoveActualLrpRequest {
                process_guid: key.process_guid,
                index: key.index,
                actual_lrp_instance_key: Some(instance_key),
            };
            type Answered = ActualLrpLifecycleResponse;
            let answer = self
                .bbs
                .call::<Answered>(path::REMOVE_ACTUAL_LRP, &request)
                .await;
            note(&self.logs.bulk, events, fields, answer);
        }
    }
}

/// `events`: of success and of failure.
fn note<A>(logger: &Logger, events: (&str, &str), fields: Fields, answer: Result<A, CallError>) {
    match answer {
        Ok(_) => logger.info(events.0, fields),
        Err(error) => logger.error(events.1, &error, fields),
    }
}
