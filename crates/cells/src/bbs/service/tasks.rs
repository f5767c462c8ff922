//! Calls about tasks.

use std::sync::Arc;

use diego::error::{Type, error};
use diego::models::{
    CompleteTaskRequest, DesireTaskRequest, FailTaskRequest, RejectTaskRequest, StartTaskRequest,
    StartTaskResponse, TaskByGuidRequest, TaskGuidRequest, TasksRequest,
};
use net::Incoming;
use prost::Message;
use telemetry::Fields;

use super::{Answered, Service, answer};
use crate::bbs::apply::{Command, Reply};
use crate::bbs::model::versions;
use crate::bbs::state::Task;

fn task(guid: &str) -> Fields {
    Fields::new().and("task-guid", guid)
}

impl Service {
    pub(super) async fn tasks(&self, body: Incoming, second_form: bool) -> Answered {
        let request: TasksRequest = self.read(body).await?;
        let records = self.select_tasks(&request);
        if !second_form {
            return Ok(answer::list(records));
        }
        let converted = records.into_iter().filter_map(|record| {
            let task = diego::models::Task::decode(&*record).ok()?;
            Some(versions::task_v2(task).encode_to_vec())
        });
        Ok(answer::lazy_list(converted))
    }

    fn select_tasks(&self, request: &TasksRequest) -> Vec<Arc<[u8]>> {
        let state = self.state.read();
        let wanted = |task: &&Task| request.domain.is_empty() || *task.domain == *request.domain;
        let bytes = |task: &Task| Arc::clone(&task.bytes);
        if request.cell_id.is_empty() {
            return state.tasks.values().filter(wanted).map(bytes).collect();
        }
        let guids = state.on_cell(&request.cell_id).map(|on| on.tasks.iter());
        let tasks = guids
            .into_iter()
            .flatten()
            .filter_map(|guid| state.tasks.get(guid));
        tasks.filter(wanted).map(bytes).collect()
    }

    pub(super) async fn task(&self, body: Incoming, second_form: bool) -> Answered {
        let request: TaskByGuidRequest = self.read(body).await?;
        let record = {
            let state = self.state.read();
            state
                .tasks
                .get(request.task_guid.as_str())
                .map(|task| Arc::clone(&task.bytes))
        };
        let Some(record) = record else {
            return Ok(answer::error(error(Type::ResourceNotFound)));
        };
        if !second_form {
            return Ok(answer::record(&record));
        }
        Ok(match diego::models::Task::decode(&*record) {
            Ok(task) => answer::record(&versions::task_v2(task).encode_to_vec()),
            Err(_) => answer::error(error(Type::Deserialize)),
        })
    }

    pub(super) async fn desire_task(&self, body: Incoming) -> Answered {
        let request: DesireTaskRequest = self.read(body).await?;
        self.logs
            .desire_task
            .info("starting", task(&request.task_guid));
        self.order(Command::DesireTask(Box::new(request))).await
    }

    pub(super) async fn start_task(&self, body: Incoming) -> Answered {
        let request: StartTaskRequest = self.read(body).await?;
        let fields = task(&request.task_guid).and("cell-id", &request.cell_id);
        Ok(match self.commands.run(Command::StartTask(request)).await {
            Err(error) => answer::error(error),
            Ok(reply) => {
                self.logs.start_task.info("finished", fields);
                let should_start = matches!(reply, Reply::ShouldStart(true));
                answer::message(&StartTaskResponse {
                    error: None,
                    should_start,
                })
            }
        })
    }

    pub(super) async fn complete_task(&self, body: Incoming) -> Answered {
        let request: CompleteTaskRequest = self.read(body).await?;
        let fields = task(&request.task_guid).and("cell-id", &request.cell_id);
        let command = Command::CompleteTask(request);
        self.order_logged(command, &self.logs.complete_task, "finished", fields)
            .await
    }

    pub(super) async fn fail_task(&self, body: Incoming) -> Answered {
        let request: FailTaskRequest = self.read(body).await?;
        self.order(Command::FailTask(request)).await
    }

    pub(super) async fn cancel_task(&self, body: Incoming, trace: &str) -> Answered {
        let request: TaskGuidRequest = self.read(body).await?;
        let command = Command::CancelTask(request.task_guid, trace.into());
        self.order(command).await
    }

    pub(super) async fn reject_task(&self, body: Incoming) -> Answered {
        let request: RejectTaskRequest = self.read(body).await?;
        self.order(Command::RejectTask(request)).await
    }

    pub(super) async fn resolving_task(&self, body: Incoming) -> Answered {
        let request: TaskGuidRequest = self.read(body).await?;
        self.order(Command::ResolveTask(request.task_guid)).await
    }

    pub(super) async fn delete_task(&self, body: Incoming) -> Answered {
        let request: TaskGuidRequest = self.read(body).await?;
        let fields = task(&request.task_guid);
        let command = Command::DeleteTask(request.task_guid);
        self.order_logged(command, &self.logs.delete_task, "resolved-task", fields)
            .await
    }
}
