//! The states of our instances, and how to get from what is desired to what shall be.

use std::collections::{BTreeMap, HashMap, HashSet};

/// How instances are grouped into desired LRPs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// One desired LRP with all instances.
    One,
    /// A desired LRP of one instance each.
    Many,
}

impl Shape {
    /// Reads `as` of the file.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "one desired" => Ok(Self::One),
            "many" | "many desired" => Ok(Self::Many),
            other => Err(format!(
                "`as` is \"one desired\" or \"many desired\", not {other:?}"
            )),
        }
    }
}

/// A call that changes what is desired. LRP 0 is the one of [`Shape::One`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Desire { lrp: u64, instances: i32 },
    Update { lrp: u64, instances: i32 },
    Remove { lrp: u64 },
}

impl Operation {
    pub(super) fn lrp(self) -> u64 {
        match self {
            Self::Desire { lrp, .. } | Self::Update { lrp, .. } | Self::Remove { lrp } => lrp,
        }
    }
}

/// State of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Unclaimed,
    Claimed,
    Running,
    Crashed,
}

impl State {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "UNCLAIMED" => Some(Self::Unclaimed),
            "CLAIMED" => Some(Self::Claimed),
            "RUNNING" => Some(Self::Running),
            "CRASHED" => Some(Self::Crashed),
            _ => None,
        }
    }
}

/// What an event or a list says about a record of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Report {
    /// Number of the desired LRP.
    pub(super) lrp: u64,
    /// Index of the instance.
    pub(super) index: i32,
    /// The protocol's word; empty: the record was removed.
    pub(super) state: String,
    /// Names the record.
    pub(super) epoch: String,
    /// Counts the record's changes.
    pub(super) change: u32,
}

impl Report {
    /// Name of the record. Servers that do not name theirs have one by instance.
    fn record(&self) -> String {
        match self.epoch.as_str() {
            "" => format!("{}/{}", self.lrp, self.index),
            epoch => epoch.to_owned(),
        }
    }
}

/// States that are counted, in order of a life; what is desired is known without events.
pub(super) const STATES: [&str; 6] = [
    "desired",
    "unclaimed",
    "claimed",
    "running",
    "crashed",
    "alive",
];

/// All instances of what the driver desired.
///
/// An instance may have several records at once, for instance while a cell
/// evacuates. It counts once, with the best of their states.
#[derive(Debug, Default)]
pub(super) struct LrpBook {
    desired: BTreeMap<u64, i32>,
    /// By epoch. Records that were removed stay, so that a late event cannot bring
    /// them back; they go with the next list.
    records: HashMap<String, Record>,
    instances: HashMap<(u64, i32), [u32; 4]>,
    /// How many instances count as unclaimed, claimed, running, crashed.
    totals: [u64; 4],
    blind: bool,
}

#[derive(Debug, Clone)]
struct Record {
    instance: (u64, i32),
    change: u32,
    state: Option<State>,
}

/// From best to worst.
const BEST: [State; 4] = [
    State::Running,
    State::Claimed,
    State::Unclaimed,
    State::Crashed,
];

fn best(records: &[u32; 4]) -> Option<State> {
    BEST.into_iter().find(|state| records[*state as usize] > 0)
}

impl LrpBook {
    /// What to do so that `count` instances are desired. Without a shape the
    /// earlier one is kept; at first it is [`Shape::Many`].
    pub(super) fn operations(
        &self,
        count: u64,
        shape: Option<Shape>,
    ) -> Result<Vec<Operation>, String> {
        let most = i32::MAX as u64;
        if count > most {
            return Err(format!(
                "{count} instances are too many, at most {most} are possible"
            ));
        }
        let earlier = if self.desired.contains_key(&0) {
            Shape::One
        } else {
            Shape::Many
        };
        let shall = match (count, shape.unwrap_or(earlier)) {
            (0, _) => BTreeMap::new(),
            (_, Shape::One) => BTreeMap::from([(0, count as i32)]),
            (_, Shape::Many) => (1..=count).map(|lrp| (lrp, 1)).collect(),
        };
        let surplus = self.desired.keys().filter(|lrp| !shall.contains_key(lrp));
        let mut operations: Vec<Operation> =
            surplus.map(|lrp| Operation::Remove { lrp: *lrp }).collect();
        operations.extend(shall.into_iter().filter_map(|(lrp, instances)| {
            match self.desired.get(&lrp) {
                None => Some(Operation::Desire { lrp, instances }),
                Some(now) if *now != instances => Some(Operation::Update { lrp, instances }),
                Some(_) => None,
            }
        }));
        Ok(operations)
    }

    /// The BBS accepted a change.
    pub(super) fn accepted(&mut self, operation: Operation) {
        match operation {
            Operation::Desire { lrp, instances } | Operation::Update { lrp, instances } => {
                self.desired.insert(lrp, instances);
            }
            Operation::Remove { lrp } => {
                self.desired.remove(&lrp);
            }
        }
    }

    /// An event shows a record. Events may come in any order: one that is older
    /// than what is known changes nothing.
    pub(super) fn seen(&mut self, report: Report) {
        let state = match report.state.as_str() {
            "" => None,
            text => match State::parse(text) {
                Some(state) => Some(state),
                None => return,
            },
        };
        let name = report.record();
        let new = Record {
            instance: (report.lrp, report.index),
            change: report.change,
            state,
        };
        let old = self.records.get(&name);
        // A removal carries the number of the last change, so of two equal numbers
        // it is the newer. A record that lost its cell is told as removed with the
        // old number and as created with the next, in any order.
        if old.is_some_and(|old| {
            let removed = old.state.is_none() && !report.epoch.is_empty();
            new.change < old.change || (new.change == old.change && removed)
        }) {
            return;
        }
        let before = old.and_then(|old| Some((old.instance, old.state?)));
        let after = state.map(|state| (new.instance, state));
        self.records.insert(name, new);
        self.shift(before, -1);
        self.shift(after, 1);
    }

    fn shift(&mut self, at: Option<((u64, i32), State)>, by: i32) {
        let Some((instance, state)) = at else { return };
        let records = self.instances.entry(instance).or_default();
        let before = best(records);
        let slot = &mut records[state as usize];
        *slot = slot.saturating_add_signed(by);
        let after = best(records);
        if after.is_none() {
            self.instances.remove(&instance);
        }
        if let Some(state) = before {
            self.totals[state as usize] -= 1;
        }
        if let Some(state) = after {
            self.totals[state as usize] += 1;
        }
    }

    /// Records that a list taken from now on must show, or else are gone.
    pub(super) fn expected(&self) -> Vec<String> {
        let present = self
            .records
            .iter()
            .filter(|(_, record)| record.state.is_some());
        present.map(|(name, _)| name.clone()).collect()
    }

    /// Takes in a whole list, asked for after `expected` was drawn up.
    pub(super) fn reconcile(&mut self, expected: &[String], listed: Vec<Report>) {
        self.records.retain(|_, record| record.state.is_some());
        let shown: HashSet<String> = listed.iter().map(Report::record).collect();
        for name in expected.iter().filter(|name| !shown.contains(*name)) {
            if let Some(record) = self.records.get_mut(name) {
                let at = record.state.take().map(|state| (record.instance, state));
                self.shift(at, -1);
            }
        }
        for report in listed {
            self.seen(report);
        }
    }

    /// While events are missed, what follows from them is not told.
    pub(super) fn set_blind(&mut self, blind: bool) {
        self.blind = blind;
    }

    /// How many are in each state.
    pub(super) fn counts(&self) -> Vec<(&'static str, u64)> {
        let desired = self
            .desired
            .values()
            .map(|instances| u64::from(instances.unsigned_abs()));
        let [unclaimed, claimed, running, crashed] = self.totals;
        let alive = self.totals.iter().sum();
        let counts = [desired.sum(), unclaimed, claimed, running, crashed, alive];
        let known = if self.blind { 1 } else { STATES.len() };
        STATES.into_iter().zip(counts).take(known).collect()
    }
}
