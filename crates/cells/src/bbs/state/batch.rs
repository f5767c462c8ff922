//! Changes that are not durable yet, as a layer over the state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use commit::Layer;
use diego::models::actual_lrp::Presence;
use diego::models::{self, ActualLrp, DesiredLrp};
use prost::DecodeError;

use super::State;
use super::record::{Actual, Desired, Names, Place, Process, ProcessLayer, Task};
use crate::bbs::model::slot::Slot;
use crate::bbs::presence;

/// Every presence that a row can have.
const PRESENCES: [Presence; 3] = [Presence::Ordinary, Presence::Evacuating, Presence::Suspect];

/// Numbers of the next new rows, one sequence for each table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NextIds {
    pub(crate) task: i64,
    pub(crate) desired: i64,
    pub(crate) actual: i64,
}

impl Default for NextIds {
    /// Those of empty tables.
    fn default() -> Self {
        Self {
            task: 1,
            desired: 1,
            actual: 1,
        }
    }
}

/// The layers themselves; without them the state is unchanged.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    pub(crate) tasks: Layer<Arc<str>, Task>,
    /// Of each process that changed no more than what did: it may have very many rows.
    pub(crate) processes: BTreeMap<Arc<str>, ProcessLayer>,
    pub(crate) domains: Layer<Arc<str>, i64>,
    /// In their order. For the disk alone: in memory they have a table of their own.
    pub(crate) presences: Vec<presence::Change>,
}

impl Overlay {
    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
            && self.processes.is_empty()
            && self.domains.is_empty()
            && self.presences.is_empty()
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

    fn layers(&self, guid: &str) -> (Option<&Process>, Option<&ProcessLayer>) {
        (
            self.base.processes.get(guid),
            self.overlay.processes.get(guid),
        )
    }

    /// What is desired of a process.
    pub(crate) fn desired(&self, guid: &str) -> Option<&Desired> {
        match self.layers(guid) {
            (
                _,
                Some(ProcessLayer {
                    desired: Some(desired),
                    ..
                }),
            ) => desired.as_ref(),
            (below, _) => below?.desired.as_ref(),
        }
    }

    pub(crate) fn put_desired(&mut self, desired: DesiredLrp) {
        let guid = desired.process_guid.clone();
        let id = match self.desired(&guid) {
            Some(old) => old.id,
            None => take(&mut self.next.desired),
        };
        let record = Desired::new(id, desired, self.names);
        self.edit(&guid).desired = Some(Some(record));
    }

    pub(crate) fn delete_desired(&mut self, guid: &str) {
        self.edit(guid).desired = Some(None);
    }

    /// The index from which on the instances of a process are to end.
    pub(crate) fn stop_from(&self, guid: &str) -> Option<i32> {
        match self.layers(guid) {
            (
                _,
                Some(ProcessLayer {
                    stop_from: Some(from),
                    ..
                }),
            ) => *from,
            (below, _) => below?.stop_from,
        }
    }

    pub(crate) fn put_stop_from(&mut self, guid: &str, from: Option<i32>) {
        if self.stop_from(guid) != from {
            self.edit(guid).stop_from = Some(from);
        }
    }

    pub(crate) fn row(&self, guid: &str, place: Place) -> Option<&Actual> {
        match self.layers(guid) {
            (Some(below), Some(layer)) => layer.rows.get(below, &place),
            (None, Some(layer)) => layer.rows.get(&NOTHING, &place),
            (below, None) => below?.row(place),
        }
    }

    /// The records of one index, decoded.
    pub(crate) fn slot(&self, guid: &str, index: i32) -> Result<Slot, DecodeError> {
        let mut slot = Slot::default();
        for presence in PRESENCES {
            if let Some(row) = self.row(guid, (index, presence.into())) {
                *slot.place(presence) = Some(Arc::new(row.decode()?));
            }
        }
        Ok(slot)
    }

    /// The indices of a process that have records, from `from` on.
    pub(crate) fn indices(&self, guid: &str, from: i32) -> Vec<i32> {
        let (below, layer) = self.layers(guid);
        let below = below.map_or(&[][..], |process| process.rows_from(from));
        let kept = below.iter().map(Actual::place);
        let kept = kept.filter(|place| layer.is_none_or(|layer| !layer.rows.touches(place)));
        let changed = layer.into_iter().flat_map(|layer| layer.rows.changes());
        let put = changed.filter(|(place, row)| place.0 >= from && row.is_some());
        let all: BTreeSet<i32> = kept
            .chain(put.map(|(place, _)| *place))
            .map(|place| place.0)
            .collect();
        all.into_iter().collect()
    }

    /// Has the process a record from `from` on that does not go by itself, as that of an
    /// evacuating instance does?
    pub(crate) fn has_rows_from(&self, guid: &str, from: i32) -> bool {
        let lasting = |place: &Place| place.0 >= from && place.1 != i32::from(Presence::Evacuating);
        let (below, layer) = self.layers(guid);
        let changed = layer.into_iter().flat_map(|layer| layer.rows.changes());
        let mut put = changed.filter(|(place, row)| lasting(place) && row.is_some());
        let below = below.map_or(&[][..], |process| process.rows_from(from));
        let mut kept = below.iter().map(Actual::place);
        put.next().is_some()
            || kept.any(|place| {
                lasting(&place) && layer.is_none_or(|layer| !layer.rows.touches(&place))
            })
    }

    /// Writes the records of one index that differ from what they were.
    pub(crate) fn put_slot(&mut self, guid: &str, index: i32, before: &mut Slot, after: &mut Slot) {
        let mut removed = false;
        for presence in PRESENCES {
            let (before, after) = (before.place(presence), after.place(presence));
            match (&before, &after) {
                (Some(old), Some(new)) if Arc::ptr_eq(old, new) => {}
                (_, Some(new)) => self.put_actual(guid, new),
                (Some(_), None) => {
                    self.edit(guid).rows.put((index, presence.into()), None);
                    removed = true;
                }
                (None, None) => {}
            }
        }
        if removed
            && let Some(from) = self.stop_from(guid)
            && !self.has_rows_from(guid, from)
        {
            self.put_stop_from(guid, None);
        }
    }

    fn put_actual(&mut self, guid: &str, row: &ActualLrp) {
        let index = row.actual_lrp_key.as_ref().map_or(0, |key| key.index);
        let place = (index, row.presence);
        let id = match self.row(guid, place) {
            Some(old) => old.id,
            None => take(&mut self.next.actual),
        };
        let record = Actual::new(id, row, self.names);
        self.edit(guid).rows.put(place, Some(record));
    }

    /// The layer over the process.
    fn edit(&mut self, guid: &str) -> &mut ProcessLayer {
        let key = match self.base.processes.get_key_value(guid) {
            Some((guid, _)) => Arc::clone(guid),
            None => guid.into(),
        };
        self.overlay.processes.entry(key).or_default()
    }

    pub(crate) fn put_presences(&mut self, changes: Vec<presence::Change>) {
        self.overlay.presences.extend(changes);
    }

    /// When a domain stops being fresh, in ns since 1970.
    pub(crate) fn domain(&self, domain: &str) -> Option<i64> {
        let expires = self.overlay.domains.get(&self.base.domains, domain);
        expires.copied()
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

/// What is below a process that is new.
static NOTHING: Process = Process {
    desired: None,
    stop_from: None,
    actual: Vec::new(),
};

fn take(next: &mut i64) -> i64 {
    let id = *next;
    *next += 1;
    id
}
