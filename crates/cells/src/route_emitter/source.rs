//! What is asked of the BBS.

use std::collections::BTreeSet;
use std::sync::Arc;

use diego::models::{
    ActualLrPsRequest, ActualLrPsResponse, DesiredLrPsRequest, DesiredLrPsResponse, DesiredLrp,
    DomainsResponse, EventsByCellId,
};
use diego::{Bbs, CallError, Subscription, path};

use super::table::Snapshot;

/// Processes that one call asks for.
const PROCESSES_PER_CALL: usize = 1000;

/// The BBS, and whose instances are asked for.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) bbs: Bbs,
    /// Only those of this cell; empty: all.
    pub(super) cell_id: String,
}

/// An answer, with the processes whose routes cannot be read and why.
pub(super) struct Answered {
    pub(super) snapshot: Snapshot,
    pub(super) unreadable: Vec<(String, String)>,
}

impl Source {
    /// Subscribes to what happens from now on.
    pub(super) async fn subscribe(&self) -> Result<Subscription, CallError> {
        let request = EventsByCellId {
            cell_id: self.cell_id.clone(),
        };
        self.bbs.subscribe(path::INSTANCE_EVENTS, &request).await
    }

    /// Everything that matters for routes. `running`: processes of which the table has instances;
    /// of a cell they are asked for as well, so that it is known whether they are still desired.
    pub(super) async fn snapshot(
        &self,
        running: BTreeSet<Arc<str>>,
    ) -> Result<Answered, CallError> {
        let request = ActualLrPsRequest {
            cell_id: self.cell_id.clone(),
            ..ActualLrPsRequest::default()
        };
        // Freshness first: what is fresh now was complete before the lists were made.
        let domains: DomainsResponse = self.bbs.call(path::DOMAINS, &()).await?;
        let actual: ActualLrPsResponse = self.bbs.call(path::ACTUAL_LRPS, &request).await?;
        let (desired, asked) = match self.cell_id.is_empty() {
            true => (self.desired(Vec::new()).await?, None),
            false => {
                let mut asked = running;
                let keys = actual.actual_lrps.iter();
                let keys = keys.filter_map(|lrp| lrp.actual_lrp_key.as_ref());
                asked.extend(keys.map(|key| key.process_guid.as_str().into()));
                (self.desired_of(&asked).await?, Some(asked))
            }
        };
        let mut snapshot = Snapshot::new(domains.domains, asked);
        let mut unreadable = Vec::new();
        for lrp in &desired {
            if let Err(error) = snapshot.desired(lrp) {
                unreadable.push((lrp.process_guid.clone(), error.to_string()));
            }
        }
        for lrp in &actual.actual_lrps {
            snapshot.instance(lrp);
        }
        Ok(Answered {
            snapshot,
            unreadable,
        })
    }

    /// The routing infos of these processes, as far as they are desired.
    pub(super) async fn desired_of(
        &self,
        processes: &BTreeSet<Arc<str>>,
    ) -> Result<Vec<DesiredLrp>, CallError> {
        let guids: Vec<String> = processes.iter().map(ToString::to_string).collect();
        let mut all = Vec::new();
        for guids in guids.chunks(PROCESSES_PER_CALL) {
            all.extend(self.desired(guids.to_vec()).await?);
        }
        Ok(all)
    }

    /// Routing infos; of no process in particular: of all.
    async fn desired(&self, process_guids: Vec<String>) -> Result<Vec<DesiredLrp>, CallError> {
        let request = DesiredLrPsRequest {
            process_guids,
            ..DesiredLrPsRequest::default()
        };
        let infos = path::DESIRED_LRP_ROUTING_INFOS;
        let answer: Result<DesiredLrPsResponse, _> = self.bbs.call(infos, &request).await;
        let answer = match answer {
            // A BBS from before routing infos has the whole records.
            Err(CallError::NotABbs { .. }) => self.bbs.call(path::DESIRED_LRPS, &request).await?,
            answer => answer?,
        };
        Ok(answer.desired_lrps)
    }
}
