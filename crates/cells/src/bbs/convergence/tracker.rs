//! Which records are to be judged again.
//!
//! A verdict follows from the record itself, from the cells it is on, from its domain's freshness
//! and from the time. So a record is looked at again when it was touched, when one of its cells
//! came or went, when its domain became fresh and it waited for that, and when it is due.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::{Cells, ConvergenceContext, Judge, Key, all_keys, keys_of};
use crate::bbs::model::convergence::{Action, Cell};
use crate::bbs::state::{Overlay, State};

/// Most records that are told apart; when more were touched, all count as such.
const TOUCHED: usize = 1 << 20;

/// Records that changed.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    all: bool,
    keys: HashSet<Key>,
    /// Of these all indices changed.
    processes: HashSet<Arc<str>>,
}

impl Touched {
    /// All of them, as after a start.
    pub(crate) fn all() -> Self {
        Self {
            all: true,
            ..Self::default()
        }
    }

    /// What a batch changes.
    pub(crate) fn of(overlay: &Overlay) -> Self {
        let mut touched = Self::default();
        let tasks = overlay.tasks.changes();
        let tasks = tasks.map(|(guid, _)| Key::Task(Arc::clone(guid)));
        touched.keys.extend(tasks);
        for (guid, layer) in &overlay.processes {
            if layer.desired.is_some() || layer.stop_from.is_some() {
                touched.processes.insert(Arc::clone(guid));
            }
            let rows = layer.rows.changes();
            let rows = rows.map(|((number, _), _)| Key::Index(Arc::clone(guid), *number));
            touched.keys.extend(rows);
        }
        touched
    }

    /// These as well.
    pub(crate) fn add(&mut self, other: Self) {
        self.all |= other.all;
        if !self.all {
            self.keys.extend(other.keys);
            self.processes.extend(other.processes);
            self.all = self.keys.len() + self.processes.len() > TOUCHED;
        }
        if self.all {
            *self = Self::all();
        }
    }
}

#[derive(Debug)]
struct Watch {
    due: Option<i64>,
    domain: Option<Arc<str>>,
}

/// Records on a cell.
pub(crate) fn keys_on<'a>(state: &'a State, cell: &str) -> impl Iterator<Item = Key> + 'a {
    let on = state.on_cell(cell).into_iter();
    on.flat_map(|on| {
        let tasks = on.tasks.iter();
        let rows = on.rows.iter();
        tasks
            .map(|guid| Key::Task(Arc::clone(guid)))
            .chain(rows.map(|(guid, (number, _))| Key::Index(Arc::clone(guid), *number)))
    })
}

/// Records to be judged in a pass, some of them named twice.
#[derive(Debug)]
pub(crate) struct Candidates(Vec<Key>);

impl Candidates {
    /// Each once, in order.
    pub(crate) fn in_order(self) -> Vec<Key> {
        let Self(mut keys) = self;
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    watched: HashMap<Key, Watch>,
    due: BTreeSet<(i64, Key)>,
    held: HashMap<Arc<str>, HashSet<Key>>,
    cells: HashMap<Arc<str>, Cell>,
    fresh: HashSet<Arc<str>>,
}

impl Tracker {
    /// The records to be judged in a pass. Of all of them this is so many keys and no more work,
    /// for changes wait for whoever reads the state, and others wait for the changes.
    pub(crate) fn candidates(
        &mut self,
        state: &State,
        touched: Touched,
        cells: &Cells,
        now: i64,
    ) -> Candidates {
        let mut keys = Vec::from_iter(touched.keys);
        for guid in &touched.processes {
            keys.extend(keys_of(state, guid));
        }
        let due = self.due.iter().take_while(|(at, _)| *at <= now);
        keys.extend(due.map(|(_, key)| key.clone()));
        self.of_cells(state, cells, &mut keys);
        self.of_domains(state, now, &mut keys);
        if touched.all {
            // Also those watched that are not there any more: they are looked at and let go.
            keys.extend(self.watched.keys().cloned());
            keys.extend(all_keys(state));
        }
        Candidates(keys)
    }

    /// Records on cells that came or went.
    fn of_cells(&mut self, state: &State, cells: &Cells, keys: &mut Vec<Key>) {
        let status = |cell: &Arc<str>| (Arc::clone(cell), cells.status(cell));
        let now: HashMap<_, _> = state.cells().map(status).collect();
        for (cell, _) in now
            .iter()
            .filter(|(cell, is)| self.cells.get(*cell) != Some(is))
        {
            keys.extend(keys_on(state, cell));
        }
        self.cells = now;
    }

    /// Records that waited for a domain to become fresh.
    fn of_domains(&mut self, state: &State, now: i64, keys: &mut Vec<Key>) {
        let fresh = state.domains.iter().filter(|(_, expires)| **expires > now);
        let fresh: HashSet<_> = fresh.map(|(domain, _)| Arc::clone(domain)).collect();
        for domain in fresh.difference(&self.fresh) {
            keys.extend(self.held.get(domain).into_iter().flatten().cloned());
        }
        self.fresh = fresh;
    }

    /// Judges a record: what is to be done about it, which is looked at again in the next pass,
    /// as it may come to nothing.
    pub(crate) fn judge(
        &mut self,
        judge: &mut Judge,
        state: &State,
        key: &Key,
        by: ConvergenceContext<'_>,
    ) -> Vec<Action> {
        let (verdict, domain) = judge.judge(state, key, by);
        // A domain that was fresh when this pass began: nobody tells when it is so again.
        let waits_for = domain.as_ref().filter(|_| verdict.once_fresh);
        let turned = waits_for.is_some_and(|domain| self.fresh.contains(domain));
        let due = if verdict.actions.is_empty() && !turned {
            verdict.due
        } else {
            Some(by.now)
        };
        let domain = domain.filter(|_| verdict.once_fresh);
        self.watch(key, due, domain);
        verdict.actions
    }

    fn watch(&mut self, key: &Key, due: Option<i64>, domain: Option<Arc<str>>) {
        if let Some(old) = self.watched.remove(key) {
            if let Some(at) = old.due {
                self.due.remove(&(at, key.clone()));
            }
            if let Some(domain) = old.domain
                && let Some(held) = self.held.get_mut(&domain)
            {
                held.remove(key);
                if held.is_empty() {
                    self.held.remove(&domain);
                }
            }
        }
        if due.is_none() && domain.is_none() {
            return;
        }
        if let Some(at) = due {
            self.due.insert((at, key.clone()));
        }
        if let Some(domain) = &domain {
            let held = self.held.entry(Arc::clone(domain)).or_default();
            held.insert(key.clone());
        }
        self.watched.insert(key.clone(), Watch { due, domain });
    }

    /// Records that are looked at again without being touched.
    pub(crate) fn watched(&self) -> usize {
        self.watched.len()
    }
}
