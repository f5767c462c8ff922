//! What is asked.

use bytes::Bytes;
use diego::error::Type;
use diego::json::{self, BadMessage, Shape, shapes};
use diego::models::{
    ActualLrPsRequest, ActualLrpGroupByProcessGuidAndIndexRequest,
    ActualLrpGroupsByProcessGuidRequest, ActualLrpGroupsRequest, CellPresence, DesiredLrPsRequest,
    DesiredLrpByProcessGuidRequest, TaskByGuidRequest, TasksRequest,
};
use diego::path;
use prost::Message;

use super::{Caller, Failure};

/// Records of one kind as they came.
#[derive(Debug, Clone)]
pub struct Rows {
    pub(super) shape: &'static Shape,
    pub(super) rows: Vec<Bytes>,
}

impl Rows {
    /// Each as JSON, without an end of line.
    pub fn lines(&self) -> impl Iterator<Item = Result<String, BadMessage>> {
        self.rows.iter().map(|row| json::print(self.shape, row))
    }
}

impl Caller {
    async fn list(
        &self,
        path: &str,
        request: &impl Message,
        shape: &'static Shape,
    ) -> Result<Rows, Failure> {
        let rows = self.rows(path, request).await?;
        Ok(Rows { shape, rows })
    }

    async fn one(
        &self,
        path: &str,
        request: &impl Message,
        shape: &'static Shape,
    ) -> Result<Rows, Failure> {
        let found = self.list(path, request, shape).await?;
        match found.rows.len() {
            1 => Ok(found),
            number => Err(Failure::bbs(
                Type::InvalidResponse,
                format!("{path}: expected one record, found {number}"),
            )),
        }
    }

    /// The fresh domains, each as a text in JSON.
    ///
    /// # Errors
    /// See [`Failure`], as for everything that is asked.
    pub async fn domains(&self) -> Result<Vec<String>, Failure> {
        let rows = self.rows(path::DOMAINS, &()).await?;
        let quoted = |row: Bytes| {
            let mut out = String::new();
            json::quote(&String::from_utf8_lossy(&row), &mut out);
            out
        };
        Ok(rows.into_iter().map(quoted).collect())
    }

    /// The cells that are present.
    pub async fn cells(&self) -> Result<Rows, Failure> {
        self.list(path::CELLS, &(), &shapes::CELL_PRESENCE).await
    }

    /// The presence of one cell.
    ///
    /// # Errors
    /// See [`Failure`]; also when there is none of this name.
    pub async fn cell(&self, cell_id: &str) -> Result<Rows, Failure> {
        let mut cells = self.cells().await?;
        let wanted = |row: &Bytes| {
            let cell = CellPresence::decode(row.clone());
            cell.is_ok_and(|cell| cell.cell_id == cell_id)
        };
        cells.rows.retain(wanted);
        // One name, one cell: were there more, the first would do.
        cells.rows.truncate(1);
        match cells.rows.is_empty() {
            true => Err(Failure::Other("Cell not found".into())),
            false => Ok(cells),
        }
    }

    /// Instances that fit all parts of the request that are not empty.
    pub async fn actual_lrps(&self, request: &ActualLrPsRequest) -> Result<Rows, Failure> {
        self.list(path::ACTUAL_LRPS, request, &shapes::ACTUAL_LRP)
            .await
    }

    /// Instances by process and index, as they were once listed.
    pub async fn actual_lrp_groups(
        &self,
        request: &ActualLrpGroupsRequest,
    ) -> Result<Rows, Failure> {
        self.list(path::ACTUAL_LRP_GROUPS, request, &shapes::ACTUAL_LRP_GROUP)
            .await
    }

    /// The same of one process, or of one index of it.
    ///
    /// # Errors
    /// See [`Failure`]; also when an index has no instance.
    pub async fn actual_lrp_groups_for_guid(
        &self,
        process_guid: &str,
        index: Option<i32>,
    ) -> Result<Rows, Failure> {
        let process_guid = process_guid.to_owned();
        let shape = &shapes::ACTUAL_LRP_GROUP;
        match index {
            None => {
                let request = ActualLrpGroupsByProcessGuidRequest { process_guid };
                self.list(path::ACTUAL_LRP_GROUPS_BY_PROCESS_GUID, &request, shape)
                    .await
            }
            Some(index) => {
                let request = ActualLrpGroupByProcessGuidAndIndexRequest {
                    process_guid,
                    index,
                };
                let path = path::ACTUAL_LRP_GROUP_BY_PROCESS_GUID_AND_INDEX;
                self.one(path, &request, shape).await
            }
        }
    }

    /// What is desired, of one domain or, if that is empty, of all.
    pub async fn desired_lrps(&self, domain: &str) -> Result<Rows, Failure> {
        let request = of_domain(domain);
        self.list(path::DESIRED_LRPS, &request, &shapes::DESIRED_LRP)
            .await
    }

    /// One that is desired.
    pub async fn desired_lrp(&self, process_guid: &str) -> Result<Rows, Failure> {
        let request = DesiredLrpByProcessGuidRequest {
            process_guid: process_guid.to_owned(),
        };
        let path = path::DESIRED_LRP_BY_PROCESS_GUID;
        self.one(path, &request, &shapes::DESIRED_LRP).await
    }

    /// What placing needs to know of what is desired.
    pub async fn desired_lrp_scheduling_infos(&self, domain: &str) -> Result<Rows, Failure> {
        let shape = &shapes::DESIRED_LRP_SCHEDULING_INFO;
        let path = path::DESIRED_LRP_SCHEDULING_INFOS;
        self.list(path, &of_domain(domain), shape).await
    }

    /// Tasks that fit both parts of the request that are not empty.
    pub async fn tasks(&self, request: &TasksRequest) -> Result<Rows, Failure> {
        self.list(path::TASKS, request, &shapes::TASK).await
    }

    /// One task.
    pub async fn task(&self, task_guid: &str) -> Result<Rows, Failure> {
        let request = TaskByGuidRequest {
            task_guid: task_guid.to_owned(),
        };
        self.one(path::TASK_BY_GUID, &request, &shapes::TASK).await
    }
}

fn of_domain(domain: &str) -> DesiredLrPsRequest {
    DesiredLrPsRequest {
        domain: domain.to_owned(),
        ..DesiredLrPsRequest::default()
    }
}
