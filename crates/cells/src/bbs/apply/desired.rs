//! Commands about desired LRPs.

use std::sync::Arc;

use diego::error::{Type, error};
use diego::models::{
    ActualLrpInstanceKey, ActualLrpKey, DesiredLrp, Error, UpdateDesiredLrpRequest,
};

use super::{Change, Reply, Transaction, Work, damaged, not_found};
use crate::bbs::model::actual::{self, Retire};
use crate::bbs::model::desired;
use crate::bbs::model::slot::{CLAIMED, RUNNING, Row, Slot};

impl Transaction<'_> {
    pub(super) fn desire_lrp(&mut self, lrp: DesiredLrp, trace: &Arc<str>) -> Result<Reply, Error> {
        let known = self.batch.process(&lrp.process_guid);
        if known.is_some_and(|process| process.desired.is_some()) {
            return Err(error(Type::ResourceExists));
        }
        let lrp = desired::create(lrp, &mut self.context);
        let (guid, domain) = (lrp.process_guid.clone(), lrp.domain.clone());
        let indices = 0..lrp.instances;
        self.put_desired(None, lrp, trace);
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
        let after = desired::update(&before, update);
        self.put_desired(Some(before.clone()), after.clone(), trace);
        let mut created = Vec::new();
        if after.instances > before.instances {
            let indices = before.instances..after.instances;
            created = self.create_indices(&after.process_guid, &after.domain, indices, trace);
        } else if after.instances < before.instances {
            // Only then: an instance beyond the count is otherwise convergence's matter.
            self.stop_indices(&after.process_guid, after.instances, trace)?;
        }
        self.update_instances(&before, &after, trace)?;
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
        let process = self.batch.process(guid).ok_or_else(not_found)?;
        let record = process.desired.as_ref().ok_or_else(not_found)?;
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
        let process = self.batch.process(guid);
        let record = process.and_then(|process| process.desired.as_ref());
        let Some(info) = record.and_then(|record| record.info().ok()) else {
            return false;
        };
        if !indices.is_empty() {
            let request = desired::auction(&info, indices);
            self.work.push(Work::PlaceLrp(request, Arc::clone(trace)));
        }
        true
    }

    /// Ends the instances from index `from` on: those on no cell go at once.
    fn stop_indices(&mut self, guid: &str, from: i32, trace: &Arc<str>) -> Result<(), Error> {
        for index in self.indices(guid, from) {
            let before = self.slot(guid, index)?;
            let mut stop = |instance: ActualLrpInstanceKey| {
                self.work.push(Work::StopInstance {
                    process_guid: guid.to_owned(),
                    instance,
                    trace: Arc::clone(trace),
                });
            };
            if let Some(suspect) = &before.suspect {
                stop(suspect.instance().clone());
            }
            let mut after = before.clone();
            match actual::retire(&mut after) {
                Ok(Retire::Gone) => self.put_slot(guid, index, before, after, false, trace),
                Ok(Retire::Stop(instance)) => stop(instance),
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Tells cells of changed internal routes and metric tags.
    fn update_instances(
        &mut self,
        before: &DesiredLrp,
        after: &DesiredLrp,
        trace: &Arc<str>,
    ) -> Result<(), Error> {
        let routes_changed = desired::internal_routes(before) != desired::internal_routes(after);
        let tags_changed = before.metric_tags != after.metric_tags;
        if !routes_changed && !tags_changed {
            return Ok(());
        }
        let routes = match routes_changed.then(|| desired::hostnames(after)) {
            None => None,
            Some(Some(hostnames)) => Some(hostnames),
            // Routes in a form that no cell understands: nobody is told anything.
            Some(None) => return Ok(()),
        };
        let guid = &after.process_guid;
        for index in self.indices(guid, 0) {
            let slot = self.slot(guid, index)?;
            let Some(row) = slot.ordinary else {
                continue;
            };
            if index >= after.instances || !matches!(row.state.as_str(), CLAIMED | RUNNING) {
                continue;
            }
            let instance = row.instance().clone();
            let tags = || desired::metric_tags(after, index, &instance.instance_guid);
            self.work.push(Work::UpdateInstance {
                key: row.key().clone(),
                internal_routes: routes.clone(),
                metric_tags: tags_changed.then(tags),
                instance,
                trace: Arc::clone(trace),
            });
        }
        Ok(())
    }

    /// The indices of a process that have records, from `from` on.
    fn indices(&self, guid: &str, from: i32) -> Vec<i32> {
        let rows = self
            .batch
            .process(guid)
            .map_or(&[][..], |process| &process.actual);
        let mut indices: Vec<i32> = rows.iter().map(|row| row.index).collect();
        indices.retain(|index| *index >= from);
        indices.dedup();
        indices
    }
}
