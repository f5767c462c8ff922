//! Requests about tasks.

use diego::models::{
    CompleteTaskRequest, DesireTaskRequest, Error, FailTaskRequest, RejectTaskRequest,
    StartTaskRequest, TaskByGuidRequest, TaskDefinition, TaskGuidRequest,
};

use super::action::action;
use super::{ANNOTATION_BYTES, Problems, Validate, egress, fits, is_guid, is_root_fs, parts};

impl Validate for DesireTaskRequest {
    fn check(&self, problems: &mut Problems) {
        problems.field_if(!is_guid(&self.task_guid), "task_guid");
        problems.field_if(self.domain.is_empty(), "domain");
        match &self.task_definition {
            None => problems.field("task_definition"),
            Some(found) => definition(problems, found),
        }
    }

    fn storable(&self) -> Result<(), Error> {
        let definition = self.task_definition.as_ref();
        let root_fs = definition.map_or("", |found| found.root_fs.as_str());
        fits([&self.task_guid, &self.domain], root_fs)
    }
}

fn definition(problems: &mut Problems, task: &TaskDefinition) {
    problems.field_if(!is_root_fs(&task.root_fs), "rootfs");
    match &task.action {
        None => problems.text("invalid action type"),
        Some(found) => problems.within("action", action(found)),
    }
    problems.field_if(task.memory_mb < 0, "memory_mb");
    problems.field_if(task.disk_mb < 0, "disk_mb");
    let rate = task.log_rate_limit.as_ref();
    problems.field_if(parts::is_bad_rate(rate), "log_rate_limit");
    problems.field_if(task.max_pids < 0, "max_pids");
    problems.field_if(task.annotation.len() > ANNOTATION_BYTES, "annotation");
    for rule in &task.egress_rules {
        problems.field_if(!egress::rule(rule).none(), "egress_rules");
    }
    let (username, password) = (&task.image_username, &task.image_password);
    parts::credentials(problems, !username.is_empty(), !password.is_empty());
    parts::cached(problems, &task.cached_dependencies);
    parts::layers(problems, &task.image_layers, &task.legacy_download_user);
}

fn task_and_cell(problems: &mut Problems, task_guid: &str, cell_id: &str) {
    problems.field_if(!is_guid(task_guid), "task_guid");
    problems.field_if(cell_id.is_empty(), "cell_id");
}

fn task_and_reason(problems: &mut Problems, task_guid: &str, reason: &str) {
    problems.field_if(!is_guid(task_guid), "task_guid");
    problems.field_if(reason.is_empty(), "failure_reason");
}

impl Validate for StartTaskRequest {
    fn check(&self, problems: &mut Problems) {
        task_and_cell(problems, &self.task_guid, &self.cell_id);
    }
}

impl Validate for CompleteTaskRequest {
    fn check(&self, problems: &mut Problems) {
        task_and_cell(problems, &self.task_guid, &self.cell_id);
    }
}

impl Validate for FailTaskRequest {
    fn check(&self, problems: &mut Problems) {
        task_and_reason(problems, &self.task_guid, &self.failure_reason);
    }
}

impl Validate for RejectTaskRequest {
    fn check(&self, problems: &mut Problems) {
        task_and_reason(problems, &self.task_guid, &self.rejection_reason);
    }
}

impl Validate for TaskGuidRequest {
    fn check(&self, problems: &mut Problems) {
        problems.field_if(!is_guid(&self.task_guid), "task_guid");
    }
}

impl Validate for TaskByGuidRequest {
    fn check(&self, problems: &mut Problems) {
        problems.field_if(!is_guid(&self.task_guid), "task_guid");
    }
}
