//! Brings what is actual to what is desired, whatever was lost on the way.
//!
//! The rules are [`super::model::convergence`]'s: each record is judged alone. A [`Tracker`]
//! knows which records are to be judged again, so that a pass costs what has changed since the
//! last one; [`all_keys`] is the full pass, which says the same. What a pass finds goes to the
//! writer, which judges again what it is about to change.

mod metrics;
mod rounds;
#[cfg(test)]
mod tests;
mod tracker;

pub(crate) use metrics::Passes;
pub(crate) use rounds::{Convergence, Touches, converge};
pub(crate) use tracker::{Touched, Tracker, keys_on};

use std::collections::HashSet;
use std::sync::Arc;

use diego::models::actual_lrp::Presence;
use diego::models::{ActualLrp, DesiredLrp};

use super::model::convergence::{self as rules, Cell, ConvergenceAges, Index, Instance, Verdict};
use super::model::desired;
use super::model::slot::{Phase, Row};
use super::state::{Actual, Batch, Desired, Place, State, Task};

/// A record that is judged alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    /// A task, by its guid.
    Task(Arc<str>),
    /// An index of a process.
    Index(Arc<str>, i32),
}

/// Who is present.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cells {
    present: HashSet<String>,
    empty_is_lost: bool,
    /// Those of which it is known that they were there and are not any more; `None`: that holds
    /// for all that are not present.
    lost: Option<HashSet<String>>,
}

impl Cells {
    /// These cells. `empty_is_lost`: if there is none, then all are lost, as Diego has it.
    pub(crate) fn new(present: HashSet<String>, empty_is_lost: bool) -> Self {
        Self {
            present,
            empty_is_lost,
            lost: None,
        }
    }

    /// These cells soon after a start, when others may not have come back yet: only those `lost`
    /// are.
    pub(crate) fn losing(self, lost: HashSet<String>) -> Self {
        Self {
            lost: Some(lost),
            ..self
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.present.len()
    }

    /// Whether a cell does not hold its presence.
    pub(crate) fn is_absent(&self, cell: &str) -> bool {
        !self.present.contains(cell)
    }

    pub(crate) fn status(&self, cell: &str) -> Cell {
        if self.present.contains(cell) {
            Cell::Present
        } else if self.present.is_empty() && !self.empty_is_lost
            || self.lost.as_ref().is_some_and(|lost| !lost.contains(cell))
        {
            Cell::Unknown
        } else {
            Cell::Lost
        }
    }
}

/// Records by name, as they are now.
pub(crate) trait Records {
    fn task(&self, guid: &str) -> Option<&Task>;
    fn desired(&self, guid: &str) -> Option<&Desired>;
    fn stop_from(&self, guid: &str) -> Option<i32>;
    fn row(&self, guid: &str, place: Place) -> Option<&Actual>;
    /// When a domain stops being fresh, in ns since 1970.
    fn domain(&self, domain: &str) -> Option<i64>;
}

impl Records for State {
    fn task(&self, guid: &str) -> Option<&Task> {
        self.tasks.get(guid)
    }

    fn desired(&self, guid: &str) -> Option<&Desired> {
        self.processes.get(guid)?.desired.as_ref()
    }

    fn stop_from(&self, guid: &str) -> Option<i32> {
        self.processes.get(guid)?.stop_from
    }

    fn row(&self, guid: &str, place: Place) -> Option<&Actual> {
        self.processes.get(guid)?.row(place)
    }

    fn domain(&self, domain: &str) -> Option<i64> {
        self.domains.get(domain).copied()
    }
}

impl Records for Batch<'_> {
    fn task(&self, guid: &str) -> Option<&Task> {
        self.task(guid)
    }

    fn desired(&self, guid: &str) -> Option<&Desired> {
        self.desired(guid)
    }

    fn stop_from(&self, guid: &str) -> Option<i32> {
        self.stop_from(guid)
    }

    fn row(&self, guid: &str, place: Place) -> Option<&Actual> {
        self.row(guid, place)
    }

    fn domain(&self, domain: &str) -> Option<i64> {
        self.domain(domain)
    }
}

/// What a judge looks at beside the records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConvergenceContext<'a> {
    pub(crate) cells: &'a Cells,
    pub(crate) ages: &'a ConvergenceAges,
    /// In ns since 1970.
    pub(crate) now: i64,
}

/// Judges records, best in their order: what is desired of a process is decoded once for all of
/// its indices that come one after the other.
#[derive(Default)]
pub(crate) struct Judge {
    desired: Option<(Desired, DesiredLrp)>,
}

impl Judge {
    /// The verdict on a record, and the domain that it is in; of a record that is not there,
    /// nothing is to be done.
    pub(crate) fn judge(
        &mut self,
        records: &impl Records,
        key: &Key,
        by: ConvergenceContext<'_>,
    ) -> (Verdict, Option<Arc<str>>) {
        match key {
            Key::Task(guid) => {
                let record = records.task(guid);
                let facts = record.and_then(|task| task_facts(task, by.cells));
                let verdict = facts.map(|task| rules::task(&task, by.ages, by.now));
                (verdict.unwrap_or_default(), None)
            }
            Key::Index(guid, number) => {
                let (index, domain) = self.index_facts(records, guid, *number, by);
                (rules::index(&index, by.ages, by.now), domain)
            }
        }
    }

    fn index_facts(
        &mut self,
        records: &impl Records,
        guid: &str,
        number: i32,
        by: ConvergenceContext<'_>,
    ) -> (Index, Option<Arc<str>>) {
        let row = |presence: Presence| records.row(guid, (number, presence.into()));
        let desired = records.desired(guid);
        let (ordinary, suspect) = (row(Presence::Ordinary), row(Presence::Suspect));
        let domain = match (desired, ordinary.or(suspect)) {
            (Some(desired), _) => Some(&desired.domain),
            (None, row) => row.map(|row| &row.domain),
        };
        let expires = domain.and_then(|domain| records.domain(domain));
        let index = Index {
            number,
            desired: desired.map(|desired| desired.instances),
            stop_from: records.stop_from(guid),
            fresh: expires.is_some_and(|expires| expires > by.now),
            ordinary: ordinary.map(|row| self.instance(row, desired, by.cells)),
            suspect: suspect.map(|row| self.instance(row, None, by.cells)),
            evacuating: row(Presence::Evacuating).map(|row| by.cells.status(&row.cell)),
        };
        (index, domain.cloned())
    }

    /// Facts of a row. It is decoded only where they depend on it.
    fn instance(&mut self, row: &Actual, desired: Option<&Desired>, cells: &Cells) -> Instance {
        let mut instance = Instance {
            phase: row.phase,
            cell: cells.status(&row.cell),
            since: 0,
            crash_count: 0,
            drifted: false,
        };
        match row.phase {
            Phase::Claimed => {}
            Phase::Unclaimed | Phase::Crashed => {
                if let Ok(row) = row.decode() {
                    instance.since = row.since;
                    instance.crash_count = row.crash_count;
                }
            }
            Phase::Running => {
                if instance.cell == Cell::Present
                    && let Some(desired) = desired
                    && let Some(desired) = self.decoded(desired)
                {
                    instance.drifted = row.decode().is_ok_and(|row| drifted(&row, desired));
                }
            }
        }
        instance
    }

    fn decoded(&mut self, record: &Desired) -> Option<&DesiredLrp> {
        let same = self.desired.as_ref().is_some_and(|(last, _)| {
            Arc::ptr_eq(&last.info, &record.info) && Arc::ptr_eq(&last.rest, &record.rest)
        });
        if !same {
            let decoded = record.decode().ok()?;
            self.desired = Some((record.clone(), decoded));
        }
        self.desired.as_ref().map(|(_, desired)| desired)
    }
}

/// Has the instance other routes or tags than it shall have? One that reported no tags comes of
/// a rep that knows of none, and would be told in vain in each pass.
fn drifted(row: &ActualLrp, desired: &DesiredLrp) -> bool {
    let names = row.actual_lrp_internal_routes.iter();
    let names = names.map(|route| route.hostname.as_str());
    let wanted = desired::hostnames(desired);
    if wanted.is_some_and(|wanted| !names.eq(wanted.iter().map(String::as_str))) {
        return true;
    }
    let (number, instance) = (row.key().index, row.instance());
    !row.metric_tags.is_empty()
        && row.metric_tags
            != desired::metric_tags(&desired.metric_tags, number, &instance.instance_guid)
}

fn task_facts(record: &Task, cells: &Cells) -> Option<rules::Task> {
    let task = record.decode().ok()?;
    let definition = task.task_definition.as_ref();
    Some(rules::Task {
        state: task.state(),
        cell: cells.status(&task.cell_id),
        created_at: task.created_at,
        updated_at: task.updated_at,
        completed_at: task.first_completed_at,
        called_back: definition.is_some_and(|task| !task.completion_callback_url.is_empty()),
    })
}

/// All records that are there, and all that should be, in any order and some more than once.
pub(crate) fn all_keys(state: &State) -> impl Iterator<Item = Key> {
    let tasks = state.tasks.keys().map(|guid| Key::Task(Arc::clone(guid)));
    let processes = state.processes.keys();
    tasks.chain(processes.flat_map(|guid| keys_of(state, guid)))
}

/// The indices of a process that are there, and those that should be.
fn keys_of(state: &State, guid: &Arc<str>) -> impl Iterator<Item = Key> {
    let process = state.processes.get(guid);
    let wanted = process.and_then(|process| process.desired.as_ref());
    let wanted = 0..wanted.map_or(0, |desired| desired.instances);
    let beyond = process.map_or(&[][..], |process| process.rows_from(wanted.end));
    let numbers = wanted.chain(beyond.iter().map(|row| row.index));
    numbers.map(|number| Key::Index(Arc::clone(guid), number))
}
