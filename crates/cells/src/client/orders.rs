//! What is changed.

use std::collections::BTreeMap;

use diego::error::Type;
use diego::models::{
    ActualLrpKey, DesireLrpRequest, DesireTaskRequest, DesiredLrp, DesiredLrpByProcessGuidRequest,
    DesiredLrpResponse, DesiredLrpUpdate, MetricTagValue, RemoveDesiredLrpRequest,
    RetireActualLrpRequest, Task, TaskGuidRequest, UpdateDesiredLrpRequest, UpsertDomainRequest,
};
use diego::path;
use prost::Message;

use super::{Caller, Failure};

impl Caller {
    async fn order(&self, path: &str, request: &impl Message) -> Result<(), Failure> {
        self.rows(path, request).await.map(drop)
    }

    /// Says that a domain is fresh for so many seconds; for 0: for ever.
    ///
    /// # Errors
    /// See [`Failure`], as for everything that is changed.
    pub async fn set_domain(&self, domain: &str, ttl: u32) -> Result<(), Failure> {
        let request = UpsertDomainRequest {
            domain: domain.to_owned(),
            ttl,
        };
        self.order(path::UPSERT_DOMAIN, &request).await
    }

    /// Desires an LRP.
    pub async fn create_desired_lrp(&self, lrp: DesiredLrp) -> Result<(), Failure> {
        tags_say_something(&lrp.metric_tags)?;
        let request = DesireLrpRequest {
            desired_lrp: Some(lrp),
        };
        self.order(path::DESIRE_LRP, &request).await
    }

    /// Changes what is desired.
    pub async fn update_desired_lrp(
        &self,
        process_guid: &str,
        update: DesiredLrpUpdate,
    ) -> Result<(), Failure> {
        tags_say_something(&update.metric_tags)?;
        let request = UpdateDesiredLrpRequest {
            process_guid: process_guid.to_owned(),
            update: Some(update),
        };
        self.order(path::UPDATE_DESIRED_LRP, &request).await
    }

    /// Desires an LRP no longer.
    pub async fn delete_desired_lrp(&self, process_guid: &str) -> Result<(), Failure> {
        let request = RemoveDesiredLrpRequest {
            process_guid: process_guid.to_owned(),
        };
        self.order(path::REMOVE_DESIRED_LRP, &request).await
    }

    /// Ends the instance of an index; one that is still desired starts anew.
    pub async fn retire_actual_lrp(&self, process_guid: &str, index: i32) -> Result<(), Failure> {
        let request = DesiredLrpByProcessGuidRequest {
            process_guid: process_guid.to_owned(),
        };
        let path = path::DESIRED_LRP_BY_PROCESS_GUID;
        let answer = self.bbs.call_traced(path, &request, &self.trace).await?;
        // The key of an instance includes its domain, which only its LRP tells.
        let DesiredLrpResponse { desired_lrp, .. } = answer;
        let request = RetireActualLrpRequest {
            actual_lrp_key: Some(ActualLrpKey {
                process_guid: process_guid.to_owned(),
                index,
                domain: desired_lrp.unwrap_or_default().domain,
            }),
        };
        self.order(path::RETIRE_ACTUAL_LRP, &request).await
    }

    /// Desires a task; of the record its guid, its domain and its definition count.
    pub async fn create_task(&self, task: Task) -> Result<(), Failure> {
        let request = DesireTaskRequest {
            task_definition: task.task_definition,
            task_guid: task.task_guid,
            domain: task.domain,
        };
        self.order(path::DESIRE_TASK, &request).await
    }

    /// Cancels a task.
    pub async fn cancel_task(&self, task_guid: &str) -> Result<(), Failure> {
        self.order(path::CANCEL_TASK, &task(task_guid)).await
    }

    /// Deletes a task that is completed, in two calls: its result is taken, then it goes.
    pub async fn delete_task(&self, task_guid: &str) -> Result<(), Failure> {
        self.order(path::RESOLVING_TASK, &task(task_guid)).await?;
        self.order(path::DELETE_TASK, &task(task_guid)).await
    }
}

/// A tag that is neither static nor dynamic, which every BBS refuses. It is not sent: an entry of a
/// map goes without an empty value, and Diego's BBS, which needs one, breaks the connection.
///
/// # Errors
/// InvalidRequest, as the BBS says it.
fn tags_say_something(tags: &BTreeMap<String, MetricTagValue>) -> Result<(), Failure> {
    match tags.values().any(|tag| *tag == MetricTagValue::default()) {
        true => Err(Failure::bbs(
            Type::InvalidRequest,
            "Invalid field: metric_tags, Invalid field: static, Invalid field: dynamic",
        )),
        false => Ok(()),
    }
}

fn task(task_guid: &str) -> TaskGuidRequest {
    TaskGuidRequest {
        task_guid: task_guid.to_owned(),
    }
}
