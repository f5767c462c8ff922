//! What is asked of the BBS.

use std::collections::BTreeSet;
use std::sync::Arc;

use diego::models::{
    ActualLrPsRequest, ActualLrp, DesiredLrPsRequest, DesiredLrp, DomainsResponse, EventsByCellId,
};
use diego::{Bbs, CallError, Subscription, path};

use super::table::{Desired, Instance, RoutesError, Snapshot};

/// Processes that one call asks for.
const PROCESSES_PER_CALL: usize = 1000;

/// A process that is desired, and its routes, if they can be read.
pub(super) type Routed = (String, Result<Desired, RoutesError>);

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
        let by_cell = !self.cell_id.is_empty();
        let fresh = || (Vec::new(), BTreeSet::new());
        let list = self.bbs.list(
            path::ACTUAL_LRPS,
            &request,
            fresh,
            |(instances, processes), lrp: ActualLrp| {
                instances.extend(Instance::of(&lrp));
                if let Some(key) = lrp.actual_lrp_key.filter(|_| by_cell) {
                    processes.insert(key.process_guid.into());
                }
            },
        );
        let (instances, processes): (Vec<Instance>, BTreeSet<Arc<str>>) = list.await?;
        let (desired, asked) = match by_cell {
            false => (self.desired(Vec::new()).await?, None),
            true => {
                let mut asked = running;
                asked.extend(processes);
                (self.desired_of(&asked).await?, Some(asked))
            }
        };
        let mut snapshot = Snapshot::new(domains.domains, asked);
        let mut unreadable = Vec::new();
        for (process, desired) in desired {
            match desired {
                Ok(desired) => snapshot.desired(desired),
                Err(error) => {
                    snapshot.unreadable(&process);
                    unreadable.push((process, error.to_string()));
                }
            }
        }
        for instance in instances {
            snapshot.instance(instance);
        }
        Ok(Answered {
            snapshot,
            unreadable,
        })
    }

    /// The routes of these processes, as far as they are desired.
    pub(super) async fn desired_of(
        &self,
        processes: &BTreeSet<Arc<str>>,
    ) -> Result<Vec<Routed>, CallError> {
        let guids: Vec<String> = processes.iter().map(ToString::to_string).collect();
        let mut all = Vec::new();
        for guids in guids.chunks(PROCESSES_PER_CALL) {
            all.extend(self.desired(guids.to_vec()).await?);
        }
        Ok(all)
    }

    /// The routes of these processes; of none in particular: of all.
    async fn desired(&self, process_guids: Vec<String>) -> Result<Vec<Routed>, CallError> {
        let request = DesiredLrPsRequest {
            process_guids,
            ..DesiredLrPsRequest::default()
        };
        let list = |path| {
            let each = |all: &mut Vec<Routed>, lrp: DesiredLrp| {
                let desired = Desired::of(&lrp);
                all.push((lrp.process_guid, desired));
            };
            self.bbs.list(path, &request, Vec::new, each)
        };
        match list(path::DESIRED_LRP_ROUTING_INFOS).await {
            // A BBS from before routing infos has the whole records.
            Err(CallError::NotABbs { .. }) => list(path::DESIRED_LRPS).await,
            answer => answer,
        }
    }
}
