//! What the BBS knows, in memory, with every record in its encoded form.
//!
//! A list is answered by joining encoded records; a record is decoded only to be
//! changed. The writer alone changes a [`State`], in [`Batch`]es, which lay what is not
//! durable yet over it.

mod batch;
mod record;

pub(crate) use batch::{Batch, NextIds, Overlay};
pub(crate) use record::{Actual, Desired, Names, Process, Task};

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use commit::Table;

/// What runs on one cell.
#[derive(Debug, Default)]
pub(crate) struct OnCell {
    /// Guids of tasks.
    pub(crate) tasks: HashSet<Arc<str>>,
    /// Processes with their number of records on the cell.
    pub(crate) processes: HashMap<Arc<str>, usize>,
}

/// All records that are on the disk.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) tasks: HashMap<Arc<str>, Task>,
    pub(crate) processes: HashMap<Arc<str>, Process>,
    /// Domains with the time at which they stop being fresh, in ns since 1970.
    pub(crate) domains: HashMap<Arc<str>, i64>,
    cells: HashMap<Arc<str>, OnCell>,
}

impl State {
    /// What runs on `cell`; `None` for nothing.
    pub(crate) fn on_cell(&self, cell: &str) -> Option<&OnCell> {
        self.cells.get(cell)
    }

    /// Takes a committed batch over.
    pub(crate) fn merge(&mut self, overlay: Overlay) {
        for (guid, task) in overlay.tasks {
            self.put_task(guid, task);
        }
        for (guid, process) in overlay.processes {
            self.put_process(guid, process.unwrap_or_default());
        }
        overlay.domains.merge_into(&mut self.domains);
    }

    fn put_task(&mut self, guid: Arc<str>, task: Option<Task>) {
        let old_cell = self.tasks.get(&guid).map(|task| Arc::clone(&task.cell));
        let new_cell = task.as_ref().map(|task| Arc::clone(&task.cell));
        if old_cell != new_cell {
            if let Some(cell) = old_cell.filter(|cell| !cell.is_empty()) {
                self.leave(&cell, |on| {
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

    fn put_process(&mut self, guid: Arc<str>, process: Process) {
        let old = self.processes.remove(&guid).unwrap_or_default();
        for row in process
            .rows_not_in(&old.actual)
            .filter(|row| !row.cell.is_empty())
        {
            let on = self.cells.entry(Arc::clone(&row.cell)).or_default();
            *on.processes.entry(Arc::clone(&guid)).or_default() += 1;
        }
        for row in old
            .rows_not_in(&process.actual)
            .filter(|row| !row.cell.is_empty())
        {
            self.leave(&row.cell, |on| {
                if let Some(count) = on.processes.get_mut(&guid) {
                    *count -= 1;
                    if *count == 0 {
                        on.processes.remove(&guid);
                    }
                }
            });
        }
        let process = (!process.is_empty()).then_some(process);
        self.processes.set(guid, process);
    }

    fn leave(&mut self, cell: &str, leave: impl FnOnce(&mut OnCell)) {
        if let Some(on) = self.cells.get_mut(cell) {
            leave(on);
            if on.tasks.is_empty() && on.processes.is_empty() {
                self.cells.remove(cell);
            }
        }
    }
}
