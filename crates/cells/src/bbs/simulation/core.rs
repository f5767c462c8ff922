//! The BBS's core without its disk and sockets: what was applied is durable.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use diego::locket::{LockRequest, Resource, TypeCode};
use diego::models::Error;
use diego::models::actual_lrp::Presence;

use crate::bbs::apply::{Command, Converge, Reply, Transaction, Watched, Work};
use crate::bbs::convergence::{
    Cells, ConvergenceContext, Judge, Key, Touched, Tracker, all_keys, keys_on,
};
use crate::bbs::model::Context;
use crate::bbs::model::convergence::{Action, ConvergenceAges};
use crate::bbs::model::slot::{Phase, Row, Slot};
use crate::bbs::presence::{Change as Held, Presences, Refusal, StoredLock};
use crate::bbs::state::{Batch, Names, NextIds, State};

pub(crate) const SECOND: i64 = 1_000_000_000;

/// Those of Diego.
pub(crate) const AGES: ConvergenceAges = ConvergenceAges {
    again: 30 * SECOND,
    pending: 1800 * SECOND,
    completed: 120 * SECOND,
    began: 0,
};

/// Time to live of a cell's presence.
const TTL_S: i64 = 15;

pub(crate) struct Core {
    pub(crate) state: State,
    ages: ConvergenceAges,
    names: Names,
    next: NextIds,
    tracker: Tracker,
    touched: Touched,
    guids: u64,
    presences: Presences,
    /// The presences on the disk.
    kept: Vec<StoredLock>,
    /// The time 0 of the simulation.
    origin: Instant,
    /// Every instance has a guid of its own, so records can be held against that.
    pub(crate) own_guids: bool,
}

impl Core {
    pub(crate) fn new() -> Self {
        Self {
            ages: AGES,
            state: State::default(),
            names: Names::default(),
            next: NextIds::default(),
            tracker: Tracker::default(),
            touched: Touched::all(),
            guids: 0,
            presences: Presences::default(),
            kept: Vec::new(),
            origin: Instant::now(),
            own_guids: false,
        }
    }

    /// Does what the writer does with a batch of one command, and looks whether the records
    /// that changed are sound.
    pub(crate) fn apply(
        &mut self,
        command: Command,
        now: i64,
    ) -> (Result<Reply, Error>, Vec<Work>) {
        let mut new_guid = || {
            self.guids += 1;
            format!("guid-{}", self.guids)
        };
        let mut transaction = Transaction {
            batch: Batch::new(&self.state, &mut self.names, &mut self.next),
            context: Context {
                now,
                new_guid: &mut new_guid,
            },
            task_retries_max: 3,
            watched: Watched {
                tasks: false,
                lrps: false,
            },
            changes: Vec::new(),
            work: Vec::new(),
        };
        let answer = transaction.apply(command);
        let Transaction { batch, work, .. } = transaction;
        let overlay = batch.into_overlay();
        let changed: Vec<(Arc<str>, i32)> = overlay
            .processes
            .iter()
            .flat_map(|(guid, layer)| {
                let rows = layer.rows.changes();
                rows.map(|((number, _), _)| (Arc::clone(guid), *number))
            })
            .collect();
        self.touched.add(Touched::of(&overlay));
        self.state.merge(overlay);
        for (guid, number) in changed {
            self.assert_sound(&guid, number);
        }
        (answer, work)
    }

    pub(crate) fn slot(&self, guid: &str, number: i32) -> Slot {
        let mut slot = Slot::default();
        for presence in [Presence::Ordinary, Presence::Evacuating, Presence::Suspect] {
            let process = self.state.processes.get(guid);
            let row = process.and_then(|process| process.row((number, presence.into())));
            *slot.place(presence) = row.map(|row| Arc::new(row.decode().unwrap()));
        }
        slot
    }

    fn assert_sound(&self, guid: &str, number: i32) {
        let slot = self.slot(guid, number);
        for row in slot.rows() {
            let on_cell = !row.instance().cell_id.is_empty();
            let phase = Phase::of(row);
            let needs_cell = matches!(phase, Phase::Claimed | Phase::Running);
            assert_eq!(on_cell, needs_cell, "state and cell of {row:?}");
            assert_eq!(
                (row.key().process_guid.as_str(), row.key().index),
                (guid, number)
            );
            let same = slot
                .rows()
                .filter(|other| other.has_instance(row.instance()));
            let sound = !self.own_guids || same.count() <= 1;
            assert!(sound, "an instance has two records: {slot:?}");
        }
        let running = slot
            .ordinary
            .as_ref()
            .is_some_and(|row| Phase::of(row) == Phase::Running);
        assert!(
            !running || slot.suspect.is_none(),
            "a suspect beside its running successor: {slot:?}"
        );
    }

    /// Forgets what is in memory alone. The numbers of records are counted anew.
    pub(crate) fn restart(&mut self, now: i64) {
        let State {
            tasks,
            processes,
            domains,
            ..
        } = &self.state;
        let state = State::of(tasks.clone(), processes.clone(), domains.clone());
        assert_eq!(state.counts(), self.state.counts(), "numbers of records");
        self.state = state;
        self.ages.began = now;
        self.tracker = Tracker::default();
        self.touched = Touched::all();
        self.presences = Presences::of(self.kept.clone(), self.instant(now));
    }

    fn instant(&self, now: i64) -> Instant {
        self.origin + Duration::from_nanos(now.unsigned_abs())
    }

    /// A cell takes or renews its presence.
    pub(crate) fn heartbeat(&mut self, cell: &str, owner: &str, now: i64) -> Result<(), Refusal> {
        let resource = Resource {
            key: cell.into(),
            owner: owner.into(),
            value: format!(r#"{{"cell_id":"{cell}"}}"#),
            r#type: String::new(),
            type_code: TypeCode::Presence.into(),
        };
        let request = LockRequest {
            resource: Some(resource),
            ttl_in_seconds: TTL_S,
        };
        let instant = self.instant(now);
        if let Some(kept) = self.presences.lock(request, instant)? {
            self.kept.retain(|old| old.resource.key != cell);
            self.presences.stored(cell, kept.id);
            self.apply(Command::Presences(vec![Held::Held(kept.clone())]), now)
                .0
                .unwrap();
            self.kept.push(kept);
        }
        Ok(())
    }

    /// Forgets presences that have expired; whose?
    pub(crate) fn sweep(&mut self, now: i64) -> Vec<String> {
        let gone = self.presences.sweep(self.instant(now));
        self.kept
            .retain(|kept| !gone.iter().any(|gone| gone.id == kept.id));
        gone.into_iter().map(|kept| kept.resource.key).collect()
    }

    pub(crate) fn cells(&self, now: i64) -> Cells {
        let cells = self.presences.cells(self.instant(now));
        Cells::new(
            cells.iter().map(|cell| cell.cell_id.clone()).collect(),
            false,
        )
    }

    /// The pass: what is to be done, which a full pass must find as well.
    pub(crate) fn pass(&mut self, cells: &Cells, now: i64) -> Vec<Key> {
        let found = self.long_pass(cells, now, now);
        let by = ConvergenceContext {
            cells,
            ages: &self.ages,
            now,
        };
        assert_eq!(
            found,
            full(&self.state, by),
            "an incremental pass and a full one"
        );
        found.into_iter().map(|(key, _)| key).collect()
    }

    /// A pass that finds its records at one time and judges them at another, as one over many does.
    pub(crate) fn long_pass(
        &mut self,
        cells: &Cells,
        begin: i64,
        now: i64,
    ) -> Vec<(Key, Vec<Action>)> {
        let touched = std::mem::take(&mut self.touched);
        let keys = self.tracker.candidates(&self.state, touched, cells, begin);
        let keys = keys.in_order();
        let by = ConvergenceContext {
            cells,
            ages: &self.ages,
            now,
        };
        let mut judge = Judge::default();
        let mut found: Vec<(Key, Vec<Action>)> = Vec::new();
        for key in keys {
            let actions = self.tracker.judge(&mut judge, &self.state, &key, by);
            if !actions.is_empty() {
                found.push((key, actions));
            }
        }
        found
    }

    /// What there is to do about records on cells that were lost since the start: what a pass does
    /// before the first whole one.
    pub(crate) fn losses(&mut self, lost: &HashSet<String>, cells: &Cells, now: i64) -> Vec<Key> {
        let keys: BTreeSet<Key> = lost
            .iter()
            .flat_map(|cell| keys_on(&self.state, cell))
            .collect();
        let by = ConvergenceContext {
            cells,
            ages: &self.ages,
            now,
        };
        let mut judge = Judge::default();
        let mut keys: Vec<Key> = keys.into_iter().collect();
        let (tracker, state) = (&mut self.tracker, &self.state);
        keys.retain(|key| !tracker.judge(&mut judge, state, key, by).is_empty());
        keys
    }

    /// What the writer makes of a pass.
    pub(crate) fn converge(&mut self, keys: Vec<Key>, cells: Cells, now: i64) -> Vec<Work> {
        let request = Converge {
            keys,
            cells: Arc::new(cells),
            ages: self.ages,
        };
        self.apply(Command::Converge(Box::new(request)), now).1
    }

    /// The records that a pass would look at now, if none had been touched.
    pub(crate) fn candidates(&mut self, cells: &Cells, now: i64) -> Vec<Key> {
        let untouched = Touched::default();
        let keys = self.tracker.candidates(&self.state, untouched, cells, now);
        keys.in_order()
    }

    /// Plants a fault: what was touched is not looked at.
    pub(crate) fn forget_touches(&mut self) {
        self.touched = Touched::default();
    }
}

/// The full pass.
pub(crate) fn full(state: &State, by: ConvergenceContext<'_>) -> Vec<(Key, Vec<Action>)> {
    let mut judge = Judge::default();
    let mut found = Vec::new();
    for key in BTreeSet::from_iter(all_keys(state)) {
        let (verdict, _) = judge.judge(state, &key, by);
        if !verdict.actions.is_empty() {
            found.push((key, verdict.actions));
        }
    }
    found
}
