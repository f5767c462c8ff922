//! How many records of each kind there are, kept up to date with every change.

use std::collections::BTreeMap;
use std::sync::Arc;

use diego::models::actual_lrp::Presence;

use super::record::{Actual, Desired, Task};
use crate::bbs::model::slot::Phase;

/// Numbers of records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Tasks by the number of their state.
    pub(crate) tasks: [usize; 5],
    /// Instances by the number of their presence, then of their phase.
    rows: [[usize; 4]; 3],
    /// Desired instances of all processes.
    pub(crate) desired: i64,
    /// Indices of which a copy runs to which requests may be sent: ordinary, suspect or
    /// evacuating.
    pub(crate) routable: usize,
    /// Processes with CRASHED instances, with how many.
    crashed: BTreeMap<Arc<str>, usize>,
}

impl Counts {
    /// Instances of a presence, in a phase.
    pub(crate) fn rows(&self, presence: Presence, phase: Phase) -> usize {
        self.rows[presence as usize][phase as usize]
    }

    /// Suspect instances.
    pub(crate) fn suspects(&self) -> usize {
        self.rows[Presence::Suspect as usize].iter().sum()
    }

    /// Processes of which instances wait after a crash.
    pub(crate) fn crashing(&self) -> usize {
        self.crashed.len()
    }

    pub(super) fn task(&mut self, old: Option<&Task>, new: Option<&Task>) {
        let slot = |task: &Task| task.state as usize;
        if let Some(count) = new.and_then(|new| self.tasks.get_mut(slot(new))) {
            *count += 1;
        }
        if let Some(count) = old.and_then(|old| self.tasks.get_mut(slot(old))) {
            *count -= 1;
        }
    }

    pub(super) fn desired(&mut self, old: Option<&Desired>, new: Option<&Desired>) {
        let instances = |desired: Option<&Desired>| desired.map_or(0, |one| one.instances);
        self.desired += i64::from(instances(new)) - i64::from(instances(old));
    }

    pub(super) fn row(&mut self, guid: &Arc<str>, old: Option<&Actual>, new: Option<&Actual>) {
        if let Some(new) = new {
            *self.place(new) += 1;
            if new.phase == Phase::Crashed {
                *self.crashed.entry(Arc::clone(guid)).or_default() += 1;
            }
        }
        if let Some(old) = old {
            *self.place(old) -= 1;
            if old.phase == Phase::Crashed
                && let Some(count) = self.crashed.get_mut(guid)
            {
                *count -= 1;
                if *count == 0 {
                    self.crashed.remove(guid);
                }
            }
        }
    }

    fn place(&mut self, row: &Actual) -> &mut usize {
        // The presence of a record is one of three; anything else counts as ordinary.
        let presence = usize::try_from(row.presence).unwrap_or(0);
        let presence = if presence < self.rows.len() {
            presence
        } else {
            0
        };
        &mut self.rows[presence][row.phase as usize]
    }
}
