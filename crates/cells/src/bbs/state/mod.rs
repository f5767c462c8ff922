//! What the BBS knows, in memory, with every record in its encoded form.
//!
//! A list is answered by joining encoded records; a record is decoded only to be
//! changed. The writer alone changes a [`State`], in [`Batch`]es, which lay what is not
//! durable yet over it.

mod batch;
mod counts;
mod record;

#[cfg(test)]
mod tests;

pub(crate) use batch::{Batch, NextIds, Overlay};
pub(crate) use counts::Counts;
pub(crate) use record::{Actual, Desired, Names, Place, Process, ProcessLayer, Task};

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use commit::Table;

/// What runs on one cell.
#[derive(Debug, Default)]
pub(crate) struct OnCell {
    /// Guids of tasks.
    pub(crate) tasks: HashSet<Arc<str>>,
    /// Processes and places of rows, in order.
    pub(crate) rows: BTreeSet<(Arc<str>, Place)>,
}

/// All records that are on the disk.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) tasks: HashMap<Arc<str>, Task>,
    pub(crate) processes: HashMap<Arc<str>, Process>,
    /// Domains with the time at which they stop being fresh, in ns since 1970.
    pub(crate) domains: HashMap<Arc<str>, i64>,
    cells: HashMap<Arc<str>, OnCell>,
    /// Processes of which instances are to end.
    stopping: BTreeSet<Arc<str>>,
    counts: Counts,
    /// How often a desired index lost its last routable copy since the start.
    gone_dark: u64,
}

impl State {
    /// What runs on `cell`; `None` for nothing.
    pub(crate) fn on_cell(&self, cell: &str) -> Option<&OnCell> {
        self.cells.get(cell)
    }

    /// Processes of which instances are to end, and some have not yet.
    pub(crate) fn stopping(&self) -> impl Iterator<Item = &Arc<str>> {
        self.stopping.iter()
    }

    /// Cells on which something runs by the records.
    pub(crate) fn cells(&self) -> impl Iterator<Item = &Arc<str>> {
        self.cells.keys()
    }

    /// How many records there are.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// How often an index that is desired lost the last of its copies that run and are
    /// routable, since the start.
    pub(crate) fn gone_dark(&self) -> u64 {
        self.gone_dark
    }

    /// The state with these records; the rows of a process may be in any order.
    pub(crate) fn of(
        tasks: HashMap<Arc<str>, Task>,
        mut processes: HashMap<Arc<str>, Process>,
        domains: HashMap<Arc<str>, i64>,
    ) -> Self {
        let (mut cells, mut stopping) = (HashMap::<_, OnCell>::new(), BTreeSet::new());
        let mut counts = Counts::default();
        tasks
            .values()
            .for_each(|task| counts.task(None, Some(task)));
        for (guid, task) in tasks.iter().filter(|(_, task)| !task.cell.is_empty()) {
            let on = cells.entry(Arc::clone(&task.cell)).or_default();
            on.tasks.insert(Arc::clone(guid));
        }
        for (guid, process) in &mut processes {
            process.actual.sort_by_key(Actual::place);
            counts.desired(None, process.desired.as_ref());
            let rows = process.actual.iter();
            rows.for_each(|row| counts.row(guid, None, Some(row)));
            let mut serving: Vec<i32> = process.rows().filter_map(serving).collect();
            serving.dedup();
            counts.routable += serving.len();
            for row in process.actual.iter().filter(|row| !row.cell.is_empty()) {
                let on = cells.entry(Arc::clone(&row.cell)).or_default();
                on.rows.insert((Arc::clone(guid), row.place()));
            }
            if process.stop_from.is_some() {
                stopping.insert(Arc::clone(guid));
            }
        }
        Self {
            tasks,
            processes,
            domains,
            cells,
            stopping,
            counts,
            gone_dark: 0,
        }
    }

    /// Takes a committed batch over.
    pub(crate) fn merge(&mut self, overlay: Overlay) {
        for (guid, task) in overlay.tasks {
            self.put_task(guid, task);
        }
        for (guid, process) in overlay.processes {
            self.merge_process(guid, process);
        }
        overlay.domains.merge_into(&mut self.domains);
    }

    fn put_task(&mut self, guid: Arc<str>, task: Option<Task>) {
        self.counts.task(self.tasks.get(&guid), task.as_ref());
        let old_cell = self.tasks.get(&guid).map(|task| Arc::clone(&task.cell));
        let new_cell = task.as_ref().map(|task| Arc::clone(&task.cell));
        if old_cell != new_cell {
            if let Some(cell) = old_cell.filter(|cell| !cell.is_empty()) {
                leave(&mut self.cells, &cell, |on| {
                    on.tasks.remove(&guid);
                });
            }
            if let Some(cell) = new_cell.filter(|cell| !cell.is_empty()) {
                let on = self.cells.entry(cell).or_default();
                on.tasks.insert(Arc::clone(&guid));
            }
        }
        self.tasks.set(guid, task);
    }

    fn merge_process(&mut self, guid: Arc<str>, layer: ProcessLayer) {
        let process = self.processes.entry(Arc::clone(&guid)).or_default();
        // Indices of which a copy begins or ceases to be routable, with whether one was.
        let mut turns = BTreeMap::new();
        for (place, row) in layer.rows.changes() {
            let old = process.row(*place);
            self.counts.row(&guid, old, row);
            if old.and_then(serving) != row.and_then(serving) {
                turns.insert(place.0, process.serves(place.0));
            }
            let old = old.map(|old| &old.cell);
            let new = row.map(|new| &new.cell);
            if old == new {
                continue;
            }
            let on_cell = || (Arc::clone(&guid), *place);
            if let Some(cell) = old.filter(|cell| !cell.is_empty()) {
                leave(&mut self.cells, cell, |on| {
                    on.rows.remove(&on_cell());
                });
            }
            if let Some(cell) = new.filter(|cell| !cell.is_empty()) {
                let on = self.cells.entry(Arc::clone(cell)).or_default();
                on.rows.insert(on_cell());
            }
        }
        process.merge(layer.rows);
        if let Some(desired) = layer.desired {
            self.counts
                .desired(process.desired.as_ref(), desired.as_ref());
            process.desired = desired;
        }
        let desired = process.desired.as_ref();
        let desired = desired.map_or(0, |desired| desired.instances);
        for (index, before) in turns {
            match (before, process.serves(index)) {
                (false, true) => self.counts.routable += 1,
                (true, false) => {
                    self.counts.routable -= 1;
                    self.gone_dark += u64::from(index < desired);
                }
                _ => {}
            }
        }
        if let Some(from) = layer.stop_from {
            process.stop_from = from;
            match from {
                Some(_) => self.stopping.insert(Arc::clone(&guid)),
                None => self.stopping.remove(&guid),
            };
        }
        if process.is_empty() {
            self.processes.remove(&guid);
            self.stopping.remove(&guid);
        }
    }
}

/// The index of a row that is routable.
fn serving(row: &Actual) -> Option<i32> {
    row.routable.then_some(row.index)
}

fn leave(cells: &mut HashMap<Arc<str>, OnCell>, cell: &str, leave: impl FnOnce(&mut OnCell)) {
    if let Some(on) = cells.get_mut(cell) {
        leave(on);
        if on.tasks.is_empty() && on.rows.is_empty() {
            cells.remove(cell);
        }
    }
}
