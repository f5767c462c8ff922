//! Commands about tasks.

use std::sync::Arc;

use diego::auction;
use diego::error::{Type, error};
use diego::models::{
    CompleteTaskRequest, DesireTaskRequest, Error, RejectTaskRequest, StartTaskRequest, Task,
    TaskDefinition,
};

use super::{Change, Reply, Transaction, Work, damaged, not_found};
use crate::bbs::model::desired::volume_drivers;
use crate::bbs::model::task::{self, Outcome};

impl Transaction<'_> {
    pub(super) fn desire_task(&mut self, request: DesireTaskRequest) -> Result<Reply, Error> {
        if self.batch.task(&request.task_guid).is_some() {
            return Err(error(Type::ResourceExists));
        }
        let task = task::desire(request, self.context.now);
        if task.task_definition.is_some() {
            let guid = task.task_guid.as_str().into();
            self.work.push(Work::PlaceTask(guid));
        }
        self.put(None, task);
        Ok(Reply::Done)
    }

    pub(super) fn start_task(&mut self, request: &StartTaskRequest) -> Result<Reply, Error> {
        let before = self.task(&request.task_guid)?;
        match task::start(&before, &request.cell_id, self.context.now)? {
            None => Ok(Reply::ShouldStart(false)),
            Some(after) => {
                self.put(Some(before), after);
                Ok(Reply::ShouldStart(true))
            }
        }
    }

    pub(super) fn complete_task(&mut self, request: CompleteTaskRequest) -> Result<Reply, Error> {
        let before = self.task(&request.task_guid)?;
        let outcome = Outcome {
            failed: request.failed,
            failure_reason: request.failure_reason,
            result: request.result,
        };
        let after = task::complete(&before, &request.cell_id, outcome, self.context.now)?;
        let after = self.put(Some(before), after);
        self.call_back(&after);
        Ok(Reply::Done)
    }

    pub(super) fn fail_task(&mut self, guid: &str, reason: &str) -> Result<Reply, Error> {
        let before = self.task(guid)?;
        let after = task::fail(&before, reason, self.context.now)?;
        let after = self.put(Some(before), after);
        self.call_back(&after);
        Ok(Reply::Done)
    }

    pub(super) fn cancel_task(&mut self, guid: &str, trace: Arc<str>) -> Result<Reply, Error> {
        let cell = self.task(guid)?.cell_id;
        self.fail_task(guid, task::CANCELLED)?;
        if !cell.is_empty() {
            self.work.push(Work::CancelTask {
                task_guid: guid.into(),
                cell,
                trace,
            });
        }
        Ok(Reply::Done)
    }

    pub(super) fn reject_task(&mut self, request: &RejectTaskRequest) -> Result<Reply, Error> {
        let task = self.task(&request.task_guid)?;
        let rejection = task::reject(
            &task,
            &request.rejection_reason,
            self.task_retries_max,
            self.context.now,
        )?;
        let after = self.put(Some(rejection.before), rejection.after);
        self.call_back(&after);
        Ok(Reply::Done)
    }

    pub(super) fn resolve_task(&mut self, guid: &str) -> Result<Reply, Error> {
        let before = self.task(guid)?;
        let after = task::resolve(&before, self.context.now)?;
        self.put(Some(before), after);
        Ok(Reply::Done)
    }

    /// Takes the claim on a result back and sends the result again.
    pub(super) fn unresolve_task(&mut self, guid: &str) -> Result<Reply, Error> {
        let before = self.task(guid)?;
        let after = task::unresolve(&before, self.context.now)?;
        let after = self.put(Some(before), after);
        self.call_back(&after);
        Ok(Reply::Done)
    }

    pub(super) fn delete_task(&mut self, guid: &str) -> Result<Reply, Error> {
        let before = self.task(guid)?;
        task::delete(&before)?;
        self.drop_task(before);
        Ok(Reply::Done)
    }

    /// Deletes a task whose result nobody has read.
    pub(super) fn forget_task(&mut self, guid: &str) -> Result<(), Error> {
        let before = self.task(guid)?;
        self.drop_task(before);
        Ok(())
    }

    fn drop_task(&mut self, before: Task) {
        self.batch.delete_task(&before.task_guid);
        if self.watched.tasks {
            self.changes.push(Change::Task {
                before: Some(Arc::new(before)),
                after: None,
            });
        }
    }

    pub(super) fn task(&self, guid: &str) -> Result<Task, Error> {
        let record = self.batch.task(guid).ok_or_else(not_found)?;
        record.decode().map_err(|_| damaged())
    }

    fn put(&mut self, before: Option<Task>, after: Task) -> Arc<Task> {
        self.batch.put_task(&after);
        let after = Arc::new(after);
        if self.watched.tasks {
            self.changes.push(Change::Task {
                before: before.map(Arc::new),
                after: Some(Arc::clone(&after)),
            });
        }
        after
    }

    /// Asks for the callback of a task that is Completed and has one.
    pub(super) fn call_back(&mut self, task: &Task) {
        let url = task
            .task_definition
            .as_ref()
            .map(|task| &task.completion_callback_url);
        let completed = task.state() == diego::models::task::State::Completed;
        if completed && url.is_some_and(|url| !url.is_empty()) {
            let guid = task.task_guid.as_str().into();
            self.work.push(Work::Callback(guid));
        }
    }
}

/// What the auctioneer must know to place the task.
pub(crate) fn placement(task: &Task, definition: &TaskDefinition) -> auction::Task {
    auction::Task {
        task_guid: task.task_guid.clone(),
        domain: task.domain.clone(),
        placement: auction::Placement {
            placement_tags: definition.placement_tags.clone(),
            volume_drivers: volume_drivers(&definition.volume_mounts),
            root_fs: definition.root_fs.clone(),
        },
        resource: auction::Resource {
            memory_mb: definition.memory_mb,
            disk_mb: definition.disk_mb,
            max_pids: definition.max_pids,
        },
        state: "Invalid".into(),
        failed: false,
    }
}
