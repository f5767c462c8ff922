//! Commands about desired LRPs.

use std::sync::Arc;

use diego::error::{Type, error};
use diego::models::{ActualLrpKey, DesiredLrp, Error, UpdateDesiredLrpRequest};

use super::{Change, Reply, Transaction, Work, damaged, not_found};
use crate::bbs::model::actual::{self, Retire};
use crate::bbs::model::desired;
use crate::bbs::model::slot::Slot;
use crate::bbs::model::validate::routes_are_json;

impl Transaction<'_> {
    pub(super) fn desire_lrp(&mut self, lrp: DesiredLrp, trace: &Arc<str>) -> Result<Reply, Error> {
        if self.batch.desired(&lrp.process_guid).is_some() {
            return Err(error(Type::ResourceExists));
        }
        let lrp = desired::create(lrp, &mut self.context);
        let (guid, domain) = (lrp.process_guid.clone(), lrp.domain.clone());
        let indices = 0..lrp.instances;
        self.put_desired(None, lrp, trace);
        self.spare_indices(&guid, indices.end);
        Ok(Reply::Created(
            self.create_indices(&guid, &domain, indices, trace),
        ))
    }

    pub(super) fn update_lrp(
        &mut self,
        request: &UpdateDesiredLrpRequest,
        trace: &Arc<str>,
    ) -> Result<Reply, Error> {
        let before = self.desired(&request.process_guid)?;
        let update = request
            .update
            .as_ref()
            .ok_or_else(|| error(Type::InvalidRequest))?;
        routes_are_json(update.routes.as_ref())?;
        let after = desired::update(&before, update);
        self.put_desired(Some(before.clone()), after.clone(), trace);
        let mut created = Vec::new();
        if after.instances > before.instances {
            let indices = before.instances..after.instances;
            self.spare_indices(&after.process_guid, after.instances);
            created = self.create_indices(&after.process_guid, &after.domain, indices, trace);
        } else if after.instances < before.instances {
            // Only then: an instance beyond the count is otherwise convergence's matter.
            self.stop_indices(&after.process_guid, after.instances, trace)?;
        }
        self.update_instances(&before, &after, update.routes.is_some(), trace);
        Ok(Reply::Created(created))
    }

    pub(super) fn remove_lrp(&mut self, guid: &str, trace: &Arc<str>) -> Result<Reply, Error> {
        let before = self.desired(guid)?;
        self.batch.delete_desired(guid);
        if self.watched.lrps {
            self.changes.push(Change::Desired {
                before: Some(Arc::new(before)),
                after: None,
                trace: Arc::clone(trace),
            });
        }
        self.stop_indices(guid, 0, trace)?;
        Ok(Reply::Done)
    }

    pub(super) fn desired(&self, guid: &str) -> Result<DesiredLrp, Error> {
        let record = self.batch.desired(guid).ok_or_else(not_found)?;
        record.decode().map_err(|_| damaged())
    }

    fn put_desired(&mut self, before: Option<DesiredLrp>, after: DesiredLrp, trace: &Arc<str>) {
        if self.watched.lrps {
            self.changes.push(Change::Desired {
                before: before.map(Arc::new),
                after: Some(Arc::new(after.clone())),
                trace: Arc::clone(trace),
            });
        }
        self.batch.put_desired(after);
    }

    /// Creates the indices that have no record, and asks for cells.
    fn create_indices(
        &mut self,
        guid: &str,
        domain: &str,
        indices: std::ops::Range<i32>,
        trace: &Arc<str>,
    ) -> Vec<i32> {
        let mut created = Vec::new();
        for index in indices {
            // An index may still have a record, of an instance that outlived its
            // desired LRP: it then serves the new one.
            let Ok(before) = self.slot(guid, index) else {
                continue;
            };
            if before.ordinary.is_some() {
                continue;
            }
            let key = ActualLrpKey {
                process_guid: guid.to_owned(),
                index,
                domain: domain.to_owned(),
            };
            let row = Arc::new(actual::unclaimed(key, &mut self.context));
            let after = Slot {
                ordinary: Some(row),
                ..before.clone()
            };
            self.put_slot(guid, index, before, after, false, trace);
            created.push(index);
        }
        self.place(guid, created.clone(), trace);
        created
    }

    /// Asks for cells for indices of a desired LRP.
    ///
    /// Returns false when nobody desires the process.
    pub(super) fn place(&mut self, guid: &str, indices: Vec<i32>, trace: &Arc<str>) -> bool {
        if self.batch.desired(guid).is_none() {
            return false;
        }
        if !indices.is_empty() {
            self.work.push(Work::PlaceLrp {
                process_guid: guid.into(),
                indices,
                trace: Arc::clone(trace),
            });
        }
        true
    }

    /// Ends the instances from index `from` on: those on no cell go at once.
    pub(super) fn stop_indices(
        &mut self,
        guid: &str,
        from: i32,
        trace: &Arc<str>,
    ) -> Result<(), Error> {
        for index in self.batch.indices(guid, from) {
            let before = self.slot(guid, index)?;
            let mut after = before.clone();
            if let Ok(Retire::Gone) = actual::retire(&mut after) {
                self.put_slot(guid, index, before, after, false, trace);
            }
        }
        if self.batch.has_rows_from(guid, from) {
            self.batch.put_stop_from(guid, Some(from));
            self.work.push(Work::StopInstances {
                process_guid: guid.into(),
                trace: Arc::clone(trace),
            });
        }
        Ok(())
    }

    /// Of instances that were to end, those below `instances` are wanted again.
    fn spare_indices(&mut self, guid: &str, instances: i32) {
        if self.batch.stop_from(guid).is_some() {
            let rest = self.batch.has_rows_from(guid, instances);
            self.batch.put_stop_from(guid, rest.then_some(instances));
        }
    }

    /// Tells cells of changed internal routes and metric tags; and, as the original does, that
    /// there are still no such routes when an update `has_routes` of other kinds alone.
    fn update_instances(
        &mut self,
        before: &DesiredLrp,
        after: &DesiredLrp,
        has_routes: bool,
        trace: &Arc<str>,
    ) {
        let (old, new) = (
            desired::internal_routes(before),
            desired::internal_routes(after),
        );
        let routes = old != new;
        let tags = before.metric_tags != after.metric_tags;
        let still_none = has_routes && old.is_none() && new.is_none();
        // Routes in a form that no cell understands: nobody is told anything.
        if !routes && !tags && !still_none || routes && desired::hostnames(after).is_none() {
            return;
        }
        self.work.push(Work::UpdateInstances {
            process_guid: after.process_guid.as_str().into(),
            routes,
            tags,
            drifted: false,
            trace: Arc::clone(trace),
        });
    }
}
