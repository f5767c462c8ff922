//! Desired LRPs, fetched once for many instances that start together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use diego::models::{DesiredLrp, DesiredLrpByProcessGuidRequest, DesiredLrpResponse};
use diego::{Bbs, CallError, path};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::bbs::model::versions::desired_v2;
use crate::mutex::lock;

/// How long a fetched LRP may be used. Short: it may be updated meanwhile.
const FRESH_FOR: Duration = Duration::from_secs(1);
/// LRPs kept at once; beyond that each instance fetches for itself.
const KEPT_MAX: usize = 1024;

type Fetched = Arc<OnceCell<Arc<DesiredLrp>>>;

/// Desired LRPs fetched a moment ago, shared by all cells of the process.
pub(super) struct DesiredLrps {
    bbs: Bbs,
    kept: Mutex<HashMap<String, (Instant, Fetched)>>,
}

impl DesiredLrps {
    pub(super) fn new(bbs: Bbs) -> Self {
        Self {
            bbs,
            kept: Mutex::default(),
        }
    }

    /// The LRP with this guid. Those who ask at the same time share one call; if
    /// it fails, the next in line makes the call again.
    pub(super) async fn get(&self, process_guid: &str) -> Result<Arc<DesiredLrp>, CallError> {
        let fetched = self.place(process_guid);
        fetched
            .get_or_try_init(|| self.fetch(process_guid))
            .await
            .cloned()
    }

    /// Has the LRP fetched anew from now on.
    pub(super) fn forget(&self, process_guid: &str) {
        let mut kept = lock(&self.kept);
        kept.remove(process_guid);
    }

    fn place(&self, process_guid: &str) -> Fetched {
        let mut kept = lock(&self.kept);
        if let Some((since, fetched)) = kept.get(process_guid)
            && since.elapsed() < FRESH_FOR
        {
            return Arc::clone(fetched);
        }
        if kept.len() >= KEPT_MAX {
            kept.retain(|_, (since, _)| since.elapsed() < FRESH_FOR);
        }
        let fetched = Fetched::default();
        if kept.len() < KEPT_MAX {
            kept.insert(
                process_guid.to_owned(),
                (Instant::now(), Arc::clone(&fetched)),
            );
        }
        fetched
    }

    async fn fetch(&self, process_guid: &str) -> Result<Arc<DesiredLrp>, CallError> {
        let request = DesiredLrpByProcessGuidRequest {
            process_guid: process_guid.to_owned(),
        };
        let answer: DesiredLrpResponse = self
            .bbs
            .call(path::DESIRED_LRP_BY_PROCESS_GUID, &request)
            .await?;
        // What is in its layers comes into containers as that of older clients does.
        Ok(Arc::new(desired_v2(answer.desired_lrp.unwrap_or_default())))
    }
}
