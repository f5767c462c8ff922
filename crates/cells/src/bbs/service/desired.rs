//! Calls about desired LRPs and domains, and the list of cells.

use std::sync::Arc;
use std::time::Instant;

use diego::error::{Type, error};
use diego::models::{
    CellPresence, CellsResponse, DesireLrpRequest, DesiredLrPsRequest, DesiredLrp,
    DesiredLrpByProcessGuidRequest, DomainsResponse, MetricTagValue, RemoveDesiredLrpRequest,
    UpdateDesiredLrpRequest, UpsertDomainRequest,
};
use http::Response;
use net::{Body, Incoming};
use prost::Message;
use telemetry::Logger;

use super::logs::created;
use super::{Answered, Service, answer};
use crate::bbs::apply::{Command, Reply};
use crate::bbs::ledger::now_ns;
use crate::bbs::model::{desired, versions};
use crate::bbs::state::Desired;

impl Service {
    pub(super) fn domains(&self) -> Response<Body> {
        let now = now_ns();
        let state = self.state.read();
        let fresh = state.domains.iter().filter(|(_, expires)| **expires > now);
        let mut domains: Vec<String> = fresh.map(|(domain, _)| domain.to_string()).collect();
        // People compare what they see.
        domains.sort_unstable();
        answer::message(&DomainsResponse {
            error: None,
            domains,
        })
    }

    pub(super) async fn upsert_domain(&self, body: Incoming) -> Answered {
        let request: UpsertDomainRequest = self.read(body).await?;
        self.order(Command::UpsertDomain(request)).await
    }

    pub(super) fn cells(&self) -> Response<Body> {
        let cells = self.presences.cells(Instant::now());
        let cells = cells.iter().map(|cell| CellPresence::clone(cell)).collect();
        answer::message(&CellsResponse { error: None, cells })
    }

    pub(super) async fn desire_lrp(&self, body: Incoming, trace: &str) -> Answered {
        let complete = |request: &mut DesireLrpRequest| {
            if let Some(lrp) = request.desired_lrp.as_mut().filter(|_| self.old_clients) {
                name_source(lrp);
            }
        };
        let request: DesireLrpRequest = self.read_with(body, complete).await?;
        let lrp = request.desired_lrp.unwrap_or_default();
        let guid = lrp.process_guid.clone();
        let command = Command::DesireLrp(Box::new(lrp), trace.into());
        self.create(command, &self.logs.desire_lrp, &guid).await
    }

    pub(super) async fn update_lrp(&self, body: Incoming, trace: &str) -> Answered {
        let request: UpdateDesiredLrpRequest = self.read(body).await?;
        let guid = request.process_guid.clone();
        let command = Command::UpdateLrp(Box::new(request), trace.into());
        self.create(command, &self.logs.update_lrp, &guid).await
    }

    /// Answers a command that may create indices of a process, with a line for each.
    async fn create(&self, command: Command, logger: &Logger, guid: &str) -> Answered {
        Ok(match self.commands.run(command).await {
            Err(error) => answer::error(error),
            Ok(reply) => {
                if let Reply::Created(indices) = reply {
                    created(logger, guid, &indices);
                }
                answer::done()
            }
        })
    }

    pub(super) async fn remove_lrp(&self, body: Incoming, trace: &str) -> Answered {
        let request: RemoveDesiredLrpRequest = self.read(body).await?;
        let command = Command::RemoveLrp(request.process_guid, trace.into());
        self.order(command).await
    }

    pub(super) async fn desired_lrps(&self, body: Incoming, second_form: bool) -> Answered {
        let request: DesiredLrPsRequest = self.read(body).await?;
        let app_guids = &request.app_guids;
        let wanted = |guid: &str| {
            app_guids.is_empty()
                || app_guids
                    .iter()
                    .any(|prefix| guid.starts_with(prefix.as_str()))
        };
        let (domain, guids) = (&request.domain, &request.process_guids);
        let selected = self.select_desired(domain, guids, wanted, Desired::clone);
        let records = selected.into_iter().filter_map(move |record| {
            let lrp = record.decode().ok()?;
            Some(answered(lrp, second_form).encode_to_vec())
        });
        Ok(answer::lazy_list(records))
    }

    pub(super) async fn scheduling_infos(&self, body: Incoming) -> Answered {
        let request: DesiredLrPsRequest = self.read(body).await?;
        let (domain, guids) = (&request.domain, &request.process_guids);
        let info = |record: &Desired| Arc::clone(&record.info);
        Ok(answer::list(self.select_desired(
            domain,
            guids,
            |_| true,
            info,
        )))
    }

    pub(super) async fn routing_infos(&self, body: Incoming) -> Answered {
        let request: DesiredLrPsRequest = self.read(body).await?;
        let guids = &request.process_guids;
        let selected = self.select_desired("", guids, |_| true, Desired::clone);
        let records = selected.into_iter().filter_map(|record| {
            let (info, rest) = (record.info().ok()?, record.rest().ok()?);
            Some(desired::routing_info(info, rest).encode_to_vec())
        });
        Ok(answer::lazy_list(records))
    }

    pub(super) async fn desired_lrp(&self, body: Incoming, second_form: bool) -> Answered {
        let request: DesiredLrpByProcessGuidRequest = self.read(body).await?;
        let record = self.find_desired(&request.process_guid);
        Ok(match record.map(|record| record.decode()) {
            None => answer::error(error(Type::ResourceNotFound)),
            Some(Err(_)) => answer::error(error(Type::Deserialize)),
            Some(Ok(lrp)) => answer::record(&answered(lrp, second_form).encode_to_vec()),
        })
    }

    pub(super) async fn scheduling_info(&self, body: Incoming) -> Answered {
        let request: DesiredLrpByProcessGuidRequest = self.read(body).await?;
        Ok(match self.find_desired(&request.process_guid) {
            None => answer::error(error(Type::ResourceNotFound)),
            Some(record) => answer::record(&record.info),
        })
    }

    fn find_desired(&self, guid: &str) -> Option<Desired> {
        let state = self.state.read();
        state.processes.get(guid)?.desired.clone()
    }

    /// What `pick` takes of the desired LRPs of a domain (all, when empty) among
    /// these guids (all, when there are none).
    fn select_desired<T>(
        &self,
        domain: &str,
        guids: &[String],
        wanted: impl Fn(&str) -> bool,
        pick: impl Fn(&Desired) -> T,
    ) -> Vec<T> {
        let state = self.state.read();
        let fits = |guid: &str, desired: &Desired| {
            (domain.is_empty() || *desired.domain == *domain) && wanted(guid)
        };
        if guids.is_empty() {
            let all = state.processes.iter();
            return all
                .filter_map(|(guid, process)| Some((guid, process.desired.as_ref()?)))
                .filter(|(guid, desired)| fits(guid, desired))
                .map(|(_, desired)| pick(desired))
                .collect();
        }
        let mut guids: Vec<&str> = guids.iter().map(String::as_str).collect();
        guids.sort_unstable();
        guids.dedup();
        guids
            .into_iter()
            .filter_map(|guid| Some((guid, state.processes.get(guid)?.desired.as_ref()?)))
            .filter(|(guid, desired)| fits(guid, desired))
            .map(|(_, desired)| pick(desired))
            .collect()
    }
}

fn answered(lrp: DesiredLrp, second_form: bool) -> DesiredLrp {
    let lrp = desired::answered(lrp);
    if second_form {
        versions::desired_v2(lrp)
    } else {
        lrp
    }
}

/// Gives an LRP without metric tags the one that none may be without. With a `metrics_guid` it has
/// to be that.
fn name_source(lrp: &mut DesiredLrp) {
    if !lrp.metric_tags.is_empty() {
        return;
    }
    let names = [&lrp.metrics_guid, &lrp.log_guid, &lrp.process_guid];
    let name = names.into_iter().find(|name| !name.is_empty());
    let tag = MetricTagValue {
        r#static: name.cloned().unwrap_or_default(),
        ..MetricTagValue::default()
    };
    lrp.metric_tags.insert("source_id".into(), tag);
}
