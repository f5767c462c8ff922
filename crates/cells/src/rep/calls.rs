//! The calls to the BBS that containers ask for.

use diego::auction::{Lrp, Task};
use diego::error::Type;
use diego::models::actual_lrp_net_info::PreferredAddress;
use diego::models::{self, ActualLrpLifecycleResponse, TaskLifecycleResponse};
use diego::{CallError, path};
use prost::Message;
use telemetry::Logger;

use super::cell::{Cell, Subject};
use super::container::{Answer, Call, Completion};
use super::executor::{Definition, Executor};
use super::work::{Work, keys};
use crate::bbs::model::versions::task_v2;

impl<E: Executor> Cell<E> {
    /// Makes `call` for the container of `subject`.
    pub(super) async fn call(&self, subject: &Subject, call: Call) -> Answer {
        self.identity.agent.may_speak().await;
        match &*subject.work {
            Work::Lrp(lrp) => self.call_for_lrp(subject, lrp, call).await,
            Work::Task(task) => self.call_for_task(subject, task, call).await,
        }
    }

    /// A call that changes an instance's record.
    async fn lifecycle(
        &self,
        path: &str,
        request: &impl Message,
    ) -> Result<ActualLrpLifecycleResponse, CallError> {
        self.bbs.call(path, request).await
    }

    async fn call_for_lrp(&self, subject: &Subject, lrp: &Lrp, call: Call) -> Answer {
        let (key, instance_key) = keys(lrp, self.id());
        match call {
            Call::ClaimLrp => {
                let request = models::ClaimActualLrpRequest {
                    process_guid: key.process_guid,
                    index: key.index,
                    actual_lrp_instance_key: Some(instance_key),
                };
                let answer = self.lifecycle(path::CLAIM_ACTUAL_LRP, &request).await;
                log_answer(&self.logs.claim, "succeeded", subject, answer)
            }
            Call::StartLrp => {
                let request = self.start_request(subject, lrp);
                match self.lifecycle(path::START_ACTUAL_LRP, &request).await {
                    Ok(_) if subject.announced => {
                        self.logs.start.debug("repeated", subject.work.fields());
                        Answer::Done
                    }
                    answer => log_answer(&self.logs.start, "succeeded", subject, answer),
                }
            }
            Call::RemoveLrp => {
                let request = models::RemoveActualLrpRequest {
                    process_guid: key.process_guid,
                    index: key.index,
                    actual_lrp_instance_key: Some(instance_key),
                };
                let answer = self.lifecycle(path::REMOVE_ACTUAL_LRP, &request).await;
                log_answer(&self.logs.remove, "succeeded", subject, answer)
            }
            Call::CrashLrp(error_message) => {
                let request = models::CrashActualLrpRequest {
                    actual_lrp_key: Some(key),
                    actual_lrp_instance_key: Some(instance_key),
                    error_message,
                };
                let answer = self.lifecycle(path::CRASH_ACTUAL_LRP, &request).await;
                log_answer(&self.logs.crash, "succeeded", subject, answer)
            }
            Call::EvacuateClaimed
            | Call::EvacuateRunning
            | Call::EvacuateStopped
            | Call::EvacuateCrashed(_) => self.evacuate_lrp(subject, lrp, call).await,
            Call::Fetch => match self.desired.get(&lrp.process_guid).await {
                Ok(desired) => {
                    self.fetched(&lrp.instance_guid, Definition::Lrp(desired, lrp.index))
                }
                Err(error) => report(&self.logs.lrp, subject, &error),
            },
            // The state machine asks for these with tasks only.
            Call::StartTask | Call::CompleteTask(_) | Call::RejectTask(_) => Answer::Refused,
        }
    }

    pub(super) fn start_request(
        &self,
        subject: &Subject,
        lrp: &Lrp,
    ) -> models::StartActualLrpRequest {
        let (key, instance_key) = keys(lrp, self.id());
        let mut request = models::StartActualLrpRequest {
            actual_lrp_key: Some(key),
            actual_lrp_instance_key: Some(instance_key),
            routable: Some(subject.routable),
            availability_zone: self.identity.state.zone.clone(),
            ..models::StartActualLrpRequest::default()
        };
        let Some(job) = &subject.job else {
            return request;
        };
        request.actual_lrp_net_info = Some(models::ActualLrpNetInfo {
            address: job.address.clone(),
            ports: job.ports.clone(),
            instance_address: job.address.clone(),
            preferred_address: PreferredAddress::Host.into(),
            ..models::ActualLrpNetInfo::default()
        });
        if let Definition::Lrp(desired, index) = &job.definition {
            request.actual_lrp_internal_routes = subject.update.routes(desired);
            request.metric_tags = subject.update.tags(desired, *index, &job.guid);
        }
        request
    }

    async fn call_for_task(&self, subject: &Subject, task: &Task, call: Call) -> Answer {
        match call {
            Call::StartTask => {
                let request = models::StartTaskRequest {
                    task_guid: task.task_guid.clone(),
                    cell_id: self.id().to_owned(),
                };
                type Answered = models::StartTaskResponse;
                // An answer of "should not start" means that it runs on this cell by
                // the BBS's books. This container has not run, so an earlier answer
                // was lost, and it is this container that must run.
                let answer = self.bbs.call::<Answered>(path::START_TASK, &request).await;
                log_answer(&self.logs.start_task, "succeeded", subject, answer)
            }
            Call::Fetch => self.fetch_task(subject, task).await,
            Call::CompleteTask(end) => self.complete_task(subject, task, end).await,
            Call::RejectTask(rejection_reason) => {
                let request = models::RejectTaskRequest {
                    task_guid: task.task_guid.clone(),
                    rejection_reason,
                };
                type Answered = TaskLifecycleResponse;
                let answer = self.bbs.call::<Answered>(path::REJECT_TASK, &request).await;
                log_answer(&self.logs.task, "succeeded-rejecting-task", subject, answer)
            }
            // The state machine asks for these with instances only.
            Call::ClaimLrp
            | Call::StartLrp
            | Call::RemoveLrp
            | Call::CrashLrp(_)
            | Call::EvacuateClaimed
            | Call::EvacuateRunning
            | Call::EvacuateStopped
            | Call::EvacuateCrashed(_) => Answer::Refused,
        }
    }

    async fn fetch_task(&self, subject: &Subject, task: &Task) -> Answer {
        let request = models::TaskByGuidRequest {
            task_guid: task.task_guid.clone(),
        };
        let answer = self
            .bbs
            .call::<models::TaskResponse>(path::TASK_BY_GUID, &request)
            .await;
        match answer {
            Ok(answer) => {
                let found = answer.task.map(task_v2);
                let definition = found.and_then(|task| task.task_definition);
                let definition = Definition::Task(Box::new(definition.unwrap_or_default()));
                self.fetched(&task.task_guid, definition)
            }
            Err(error) => report(&self.logs.task, subject, &error),
        }
    }

    async fn complete_task(&self, subject: &Subject, task: &Task, end: Completion) -> Answer {
        self.logs
            .task
            .info("completing-task", subject.work.fields());
        let request = models::CompleteTaskRequest {
            task_guid: task.task_guid.clone(),
            cell_id: self.id().to_owned(),
            failed: end.failed,
            failure_reason: end.reason,
            result: end.result,
        };
        type Answered = TaskLifecycleResponse;
        let answer = self
            .bbs
            .call::<Answered>(path::COMPLETE_TASK, &request)
            .await;
        log_answer(
            &self.logs.task,
            "succeeded-completing-task",
            subject,
            answer,
        )
    }
}

pub(super) fn log_answer<A>(
    logger: &Logger,
    event: &str,
    subject: &Subject,
    answer: Result<A, CallError>,
) -> Answer {
    match answer {
        Ok(_) => {
            logger.info(event, subject.work.fields());
            Answer::Done
        }
        Err(error) => report(logger, subject, &error),
    }
}

pub(super) fn report(logger: &Logger, subject: &Subject, error: &CallError) -> Answer {
    logger.error("failed", error, subject.work.fields());
    classify(error)
}

/// Is an error final, or may the same call succeed later?
fn classify(error: &CallError) -> Answer {
    match error.kind() {
        None
        | Some(
            Type::UnknownError
            | Type::Deadlock
            | Type::Unrecoverable
            | Type::Timeout
            | Type::RouterError
            | Type::LockCollision
            | Type::GuidGeneration,
        ) => Answer::Failed,
        Some(_) => Answer::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_that_may_pass_are_tried_again() {
        let refused = |kind| CallError::Refused {
            path: String::new(),
            error: diego::error::error(kind),
        };
        for kind in [
            Type::ActualLrpCannotBeClaimed,
            Type::ResourceNotFound,
            Type::InvalidStateTransition,
            Type::RunningOnDifferentCell,
            Type::InvalidRequest,
        ] {
            assert_eq!(classify(&refused(kind)), Answer::Refused, "{kind:?}");
        }
        for kind in [Type::UnknownError, Type::Deadlock, Type::Unrecoverable] {
            assert_eq!(classify(&refused(kind)), Answer::Failed, "{kind:?}");
        }
        let found = String::new();
        let error = CallError::NotABbs {
            path: String::new(),
            found,
        };
        assert_eq!(classify(&error), Answer::Failed);
    }
}
