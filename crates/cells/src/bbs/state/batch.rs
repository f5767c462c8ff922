//! Changes that are not durable yet, as a layer over the state.

use std::sync::Arc;

use commit::Layer;
use diego::models::{self, ActualLrp, DesiredLrp};

use super::State;
use super::record::{Actual, Desired, Names, Process, Task};
use crate::bbs::model::slot::Slot;

/// Numbers of the next new rows, one sequence for each table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NextIds {
    pub(crate) task: i64,
    pub(crate) desired: i64,
    pub(crate) actual: i64,
}

/// The layers themselves; without them the state is unchanged.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    pub(crate) tasks: Layer<Arc<str>, Task>,
    /// Processes, whole; one without anything is one that is gone.
    pub(crate) processes: Layer<Arc<str>, Process>,
    pub(crate) domains: Layer<Arc<str>, i64>,
}

impl Overlay {
    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.processes.is_empty() && self.domains.is_empty()
    }
}

/// A state with a layer of changes over it.
pub(crate) struct Batch<'a> {
    base: &'a State,
    names: &'a mut Names,
    next: &'a mut NextIds,
    overlay: Overlay,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(base: &'a State, names: &'a mut Names, next: &'a mut NextIds) -> Self {
        Self {
            base,
            names,
            next,
            overlay: Overlay::default(),
        }
    }

    /// The layer, to be written and merged.
    pub(crate) fn into_overlay(self) -> Overlay {
        self.overlay
    }

    pub(crate) fn task(&self, guid: &str) -> Option<&Task> {
        self.overlay.tasks.get(&self.base.tasks, guid)
    }

    pub(crate) fn put_task(&mut self, task: &models::Task) {
        let guid = task.task_guid.as_str();
        let id = match self.task(guid) {
            Some(old) => old.id,
            None => take(&mut self.next.task),
        };
        let record = Task::new(id, task, self.names);
        let guid = self.task_key(guid);
        self.overlay.tasks.put(guid, Some(record));
    }

    pub(crate) fn delete_task(&mut self, guid: &str) {
        let guid = self.task_key(guid);
        self.overlay.tasks.put(guid, None);
    }

    fn task_key(&self, guid: &str) -> Arc<str> {
        match self.base.tasks.get_key_value(guid) {
            Some((guid, _)) => Arc::clone(guid),
            None => guid.into(),
        }
    }

    pub(crate) fn process(&self, guid: &str) -> Option<&Process> {
        self.overlay.processes.get(&self.base.processes, guid)
    }

    pub(crate) fn put_desired(&mut self, desired: DesiredLrp) {
        let guid = desired.process_guid.clone();
        let old = self
            .process(&guid)
            .and_then(|process| process.desired.as_ref());
        let id = match old {
            Some(old) => old.id,
            None => take(&mut self.next.desired),
        };
        let record = Desired::new(id, desired, self.names);
        self.edit(&guid).desired = Some(record);
    }

    pub(crate) fn delete_desired(&mut self, guid: &str) {
        self.edit(guid).desired = None;
    }

    /// Writes the records of one index that differ from what they were.
    pub(crate) fn put_slot(&mut self, guid: &str, index: i32, before: &mut Slot, after: &mut Slot) {
        use models::actual_lrp::Presence::{Evacuating, Ordinary, Suspect};
        for presence in [Ordinary, Evacuating, Suspect] {
            let (before, after) = (before.place(presence), after.place(presence));
            match (&before, &after) {
                (Some(old), Some(new)) if Arc::ptr_eq(old, new) => {}
                (_, Some(new)) => self.put_actual(guid, new),
                (Some(_), None) => self.edit(guid).remove(index, presence.into()),
                (None, None) => {}
            }
        }
    }

    pub(crate) fn put_actual(&mut self, guid: &str, row: &ActualLrp) {
        let key = row.actual_lrp_key.as_ref().map_or(0, |key| key.index);
        let rows = self
            .process(guid)
            .map_or(&[][..], |process| process.at(key));
        let old = rows.iter().find(|old| old.presence == row.presence);
        let id = match old {
            Some(old) => old.id,
            None => take(&mut self.next.actual),
        };
        let record = Actual::new(id, row, self.names);
        self.edit(guid).put(record);
    }

    /// The process in the layer, copied there if it is not yet.
    fn edit(&mut self, guid: &str) -> &mut Process {
        let key = match self.base.processes.get_key_value(guid) {
            Some((guid, _)) => Arc::clone(guid),
            None => guid.into(),
        };
        self.overlay.processes.edit(&self.base.processes, key)
    }

    pub(crate) fn put_domain(&mut self, domain: &str, expires: i64) {
        let domain = self.names.shared(domain);
        self.overlay.domains.put(domain, Some(expires));
    }

    /// Forgets the domains that are not fresh any more.
    pub(crate) fn prune_domains(&mut self, now: i64) {
        for (domain, expires) in &self.base.domains {
            if *expires <= now && !self.overlay.domains.touches(domain) {
                self.overlay.domains.put(Arc::clone(domain), None);
            }
        }
    }
}

fn take(next: &mut i64) -> i64 {
    let id = *next;
    *next += 1;
    id
}
