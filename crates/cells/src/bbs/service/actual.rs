//! Calls about actual LRPs.

use std::sync::Arc;
use std::time::Instant;

use diego::error::{Type, error, with_text};
use diego::models::{
    ActualLrPsByProcessGuidsRequest, ActualLrPsRequest, ActualLrpGroup,
    ActualLrpGroupByProcessGuidAndIndexRequest, ActualLrpGroupsByProcessGuidRequest,
    ActualLrpGroupsRequest, ActualLrpInstanceKey, ActualLrpKey, ClaimActualLrpRequest,
    CrashActualLrpRequest, Error, FailActualLrpRequest, RemoveActualLrpRequest,
    RetireActualLrpRequest, StartActualLrpRequest,
};
use net::Incoming;
use prost::Message;
use telemetry::Fields;

use super::logs::created;
use super::{Answered, Service, answer};
use crate::bbs::apply::{Command, Reply};
use crate::bbs::model::actual::Retire;
use crate::bbs::model::group;
use crate::bbs::model::slot::Slot;
use crate::bbs::state::{Actual, Process};

/// Times that retiring an index is tried.
const RETIRE_ATTEMPTS: u32 = 5;

fn fields(process_guid: &str, index: i32, instance: Option<&ActualLrpInstanceKey>) -> Fields {
    let fields = Fields::new()
        .and("process-guid", process_guid)
        .and("index", index);
    match instance {
        None => fields,
        Some(key) => fields
            .and("instance-guid", &key.instance_guid)
            .and("cell-id", &key.cell_id),
    }
}

fn key_fields(key: Option<&ActualLrpKey>, instance: Option<&ActualLrpInstanceKey>) -> Fields {
    let (guid, index) = key.map_or(("", 0), |key| (key.process_guid.as_str(), key.index));
    fields(guid, index, instance)
}

impl Service {
    pub(super) async fn actual_lrps(&self, body: Incoming) -> Answered {
        let request: ActualLrPsRequest = self.read(body).await?;
        let index = request.index;
        let wanted = |row: &Actual| {
            (request.domain.is_empty() || *row.domain == *request.domain)
                && (request.cell_id.is_empty() || *row.cell == *request.cell_id)
                && index.is_none_or(|index| row.index == index)
        };
        let bytes = |row: &Actual| Arc::clone(&row.bytes);
        let (guid, cell) = (&request.process_guid, &request.cell_id);
        Ok(answer::list(self.select_rows(guid, cell, wanted, bytes)))
    }

    /// What `pick` takes of the rows of one process (of all, when empty) that may be
    /// on one cell (on any, when empty).
    fn select_rows<T>(
        &self,
        guid: &str,
        cell: &str,
        wanted: impl Fn(&Actual) -> bool,
        pick: impl Fn(&Actual) -> T,
    ) -> Vec<T> {
        let state = self.state.read();
        let mut rows = Vec::new();
        let mut take = |row| {
            if wanted(row) {
                rows.push(pick(row));
            }
        };
        if !guid.is_empty() {
            let process = state.processes.get(guid).into_iter();
            process.flat_map(Process::rows).for_each(take);
        } else if !cell.is_empty() {
            let places = state.on_cell(cell).map(|on| on.rows.iter());
            for (guid, place) in places.into_iter().flatten() {
                let process = state.processes.get(guid);
                process
                    .and_then(|process| process.row(*place))
                    .map(&mut take);
            }
        } else {
            state
                .processes
                .values()
                .flat_map(Process::rows)
                .for_each(take);
        }
        rows
    }

    pub(super) async fn actual_lrps_by_process_guids(&self, body: Incoming) -> Answered {
        let request: ActualLrPsByProcessGuidsRequest = self.read(body).await?;
        let mut guids = request.process_guids;
        guids.sort_unstable();
        guids.dedup();
        let rows = guids.iter().filter(|guid| !guid.is_empty());
        let bytes = |row: &Actual| Arc::clone(&row.bytes);
        let rows = rows.flat_map(|guid| self.select_rows(guid, "", |_| true, bytes));
        Ok(answer::list(rows.collect()))
    }

    pub(super) async fn groups(&self, body: Incoming) -> Answered {
        let request: ActualLrpGroupsRequest = self.read(body).await?;
        let wanted = |row: &Actual| {
            (request.domain.is_empty() || *row.domain == *request.domain)
                && (request.cell_id.is_empty() || *row.cell == *request.cell_id)
        };
        let groups = groups_of(self.select_rows("", &request.cell_id, wanted, Actual::clone));
        Ok(answer::lazy_list(
            groups.into_iter().map(|group| group.encode_to_vec()),
        ))
    }

    pub(super) async fn groups_by_process_guid(&self, body: Incoming) -> Answered {
        let request: ActualLrpGroupsByProcessGuidRequest = self.read(body).await?;
        let groups =
            groups_of(self.select_rows(&request.process_guid, "", |_| true, Actual::clone));
        Ok(answer::lazy_list(
            groups.into_iter().map(|group| group.encode_to_vec()),
        ))
    }

    pub(super) async fn group(&self, body: Incoming) -> Answered {
        let request: ActualLrpGroupByProcessGuidAndIndexRequest = self.read(body).await?;
        let wanted = |row: &Actual| row.index == request.index;
        let groups = groups_of(self.select_rows(&request.process_guid, "", wanted, Actual::clone));
        Ok(match groups.first() {
            None => answer::error(error(Type::ResourceNotFound)),
            Some(group) => answer::record(&group.encode_to_vec()),
        })
    }

    pub(super) async fn claim(&self, body: Incoming) -> Answered {
        let request: ClaimActualLrpRequest = self.read(body).await?;
        let instance = request.actual_lrp_instance_key.as_ref();
        let fields = fields(&request.process_guid, request.index, instance);
        let command = Command::Claim(request);
        self.order_logged(command, &self.logs.claim, "complete", fields)
            .await
    }

    pub(super) async fn start(&self, body: Incoming, old_form: bool) -> Answered {
        let mut request: StartActualLrpRequest = self.read(body).await?;
        if old_form {
            request.actual_lrp_internal_routes.clear();
            request.metric_tags.clear();
        }
        let instance = request.actual_lrp_instance_key.as_ref();
        let fields = key_fields(request.actual_lrp_key.as_ref(), instance);
        let command = Command::Start(Box::new(request));
        self.order_logged(command, &self.logs.start, "complete", fields)
            .await
    }

    pub(super) async fn crash(&self, body: Incoming) -> Answered {
        let request: CrashActualLrpRequest = self.read(body).await?;
        let instance = request.actual_lrp_instance_key.as_ref();
        let fields = key_fields(request.actual_lrp_key.as_ref(), instance);
        let key = request.actual_lrp_key.clone().unwrap_or_default();
        let reply = match self.commands.run(Command::Crash(request)).await {
            Ok(Reply::Refused(error)) | Err(error) => return Ok(answer::error(error)),
            Ok(reply) => reply,
        };
        if let Reply::Created(indices) = reply {
            created(&self.logs.crash_create, &key.process_guid, &indices);
        }
        self.logs.crash.info("complete", fields);
        Ok(answer::done())
    }

    pub(super) async fn fail(&self, body: Incoming) -> Answered {
        let request: FailActualLrpRequest = self.read(body).await?;
        self.order(Command::Fail(request)).await
    }

    pub(super) async fn remove(&self, body: Incoming) -> Answered {
        let request: RemoveActualLrpRequest = self.read(body).await?;
        let instance = request.actual_lrp_instance_key.as_ref();
        let fields = fields(&request.process_guid, request.index, instance);
        let command = Command::Remove(request);
        self.order_logged(command, &self.logs.remove, "complete", fields)
            .await
    }

    pub(super) async fn retire(&self, body: Incoming, trace: &str) -> Answered {
        let request: RetireActualLrpRequest = self.read(body).await?;
        let key = request.actual_lrp_key.unwrap_or_default();
        let mut result = Ok(());
        for _ in 0..RETIRE_ATTEMPTS {
            result = self.try_retire(&key, trace).await;
            match &result {
                Err(error) if error.r#type() != Type::ResourceNotFound => {}
                _ => break,
            }
        }
        if let Err(error) = &result {
            let fields = key_fields(Some(&key), None);
            self.logs.retire.error("failed", &error.message, fields);
        }
        Ok(answer::lifecycle(result))
    }

    async fn try_retire(&self, key: &ActualLrpKey, trace: &str) -> Result<(), Error> {
        let retire = Command::Retire(key.clone(), trace.into());
        let Reply::Retire(Retire::Stop(instance)) = self.commands.run(retire).await? else {
            return Ok(());
        };
        let cell = self.presences.cell(&instance.cell_id, Instant::now());
        if cell.is_none() {
            let request = RemoveActualLrpRequest {
                process_guid: key.process_guid.clone(),
                index: key.index,
                actual_lrp_instance_key: Some(instance),
            };
            return self.run(Command::Remove(request)).await;
        }
        let stopped = self.reps.stop(&key.process_guid, &instance, trace).await;
        stopped.map_err(|cause| with_text(Type::UnknownError, cause.to_string()))
    }
}

/// The groups that rows make, in the rows' order.
fn groups_of(rows: Vec<Actual>) -> Vec<ActualLrpGroup> {
    let mut slots: Vec<(String, Slot)> = Vec::new();
    for row in rows {
        let Ok(row) = row.decode() else { continue };
        let key = row.actual_lrp_key.clone().unwrap_or_default();
        let same = slots.last().is_some_and(|(guid, slot)| {
            let index = slot
                .rows()
                .next()
                .and_then(|row| row.actual_lrp_key.as_ref());
            *guid == key.process_guid && index.map(|key| key.index) == Some(key.index)
        });
        if !same {
            slots.push((key.process_guid, Slot::default()));
        }
        if let Some((_, slot)) = slots.last_mut() {
            let presence = row.presence();
            *slot.place(presence) = Some(Arc::new(row));
        }
    }
    slots
        .iter()
        .filter_map(|(_, slot)| group::group(slot))
        .collect()
}
