//! Encoded records and the few parts of them that lookups need.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

use commit::{Layer, Table};
use diego::models::task::State as TaskState;
use diego::models::{self, ActualLrp, DesiredLrp, DesiredLrpSchedulingInfo};
use prost::{DecodeError, Message};

use crate::bbs::model::slot::{Phase, Row};
use crate::bbs::model::{REASON_BYTES, desired, truncate};

/// Strings that many records share, each kept once.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: HashSet<Arc<str>>,
    sweep_at: usize,
}

impl Names {
    const SWEEP_LEAST: usize = 1024;

    /// The shared string that equals `name`.
    pub(crate) fn shared(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.known.get(name) {
            return Arc::clone(known);
        }
        // Names come from clients: those that no record uses any more must go.
        if self.known.len() >= self.sweep_at {
            self.known.retain(|name| Arc::strong_count(name) > 1);
            self.sweep_at = (self.known.len() * 2).max(Self::SWEEP_LEAST);
        }
        let name: Arc<str> = name.into();
        self.known.insert(Arc::clone(&name));
        name
    }
}

/// A message in the form in which it is stored and answered.
pub(crate) fn encode(message: &impl Message) -> Arc<[u8]> {
    message.encode_to_vec().into()
}

/// A task.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    /// Number of its row in the database.
    pub(crate) id: i64,
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) domain: Arc<str>,
    pub(crate) cell: Arc<str>,
    pub(crate) state: TaskState,
}

impl Task {
    pub(crate) fn new(id: i64, task: &models::Task, names: &mut Names) -> Self {
        Self {
            id,
            bytes: encode(task),
            domain: names.shared(&task.domain),
            cell: names.shared(&task.cell_id),
            state: task.state(),
        }
    }

    pub(crate) fn decode(&self) -> Result<models::Task, DecodeError> {
        models::Task::decode(&*self.bytes)
    }
}

/// A desired LRP: its scheduling info, and the rest of it.
#[derive(Debug, Clone)]
pub(crate) struct Desired {
    pub(crate) id: i64,
    pub(crate) info: Arc<[u8]>,
    pub(crate) rest: Arc<[u8]>,
    pub(crate) domain: Arc<str>,
    pub(crate) instances: i32,
}

impl Desired {
    pub(crate) fn new(id: i64, desired: DesiredLrp, names: &mut Names) -> Self {
        let domain = names.shared(&desired.domain);
        let instances = desired.instances;
        let (info, rest) = desired::split(desired);
        Self {
            id,
            info: encode(&info),
            rest: encode(&rest),
            domain,
            instances,
        }
    }

    pub(crate) fn info(&self) -> Result<DesiredLrpSchedulingInfo, DecodeError> {
        DesiredLrpSchedulingInfo::decode(&*self.info)
    }

    pub(crate) fn rest(&self) -> Result<DesiredLrp, DecodeError> {
        DesiredLrp::decode(&*self.rest)
    }

    pub(crate) fn decode(&self) -> Result<DesiredLrp, DecodeError> {
        Ok(desired::join(self.info()?, self.rest()?))
    }
}

/// An actual LRP.
#[derive(Debug, Clone)]
pub(crate) struct Actual {
    pub(crate) id: i64,
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) domain: Arc<str>,
    pub(crate) cell: Arc<str>,
    pub(crate) index: i32,
    pub(crate) presence: i32,
    pub(crate) phase: Phase,
    /// It runs and may be sent requests.
    pub(crate) routable: bool,
}

impl Actual {
    pub(crate) fn new(id: i64, row: &ActualLrp, names: &mut Names) -> Self {
        let long = |reason: &String| reason.len() >= REASON_BYTES;
        let bytes = if long(&row.crash_reason) || long(&row.placement_error) {
            let mut row = row.clone();
            row.crash_reason = truncate(row.crash_reason);
            row.placement_error = truncate(row.placement_error);
            encode(&row)
        } else {
            encode(row)
        };
        Self {
            id,
            bytes,
            domain: names.shared(&row.key().domain),
            cell: names.shared(&row.instance().cell_id),
            index: row.key().index,
            presence: row.presence,
            phase: Phase::of(row),
            routable: Phase::of(row) == Phase::Running && row.routable == Some(true),
        }
    }

    pub(crate) fn decode(&self) -> Result<ActualLrp, DecodeError> {
        ActualLrp::decode(&*self.bytes)
    }

    /// Where it stands in its process.
    pub(crate) fn place(&self) -> Place {
        (self.index, self.presence)
    }
}

/// Index and presence of a row, by which the rows of a process are sorted.
pub(crate) type Place = (i32, i32);

/// A process: what is desired of it, and its instances by index and presence. As a table it
/// is that of its rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Process {
    pub(crate) desired: Option<Desired>,
    /// Instances from this index on are to end, and some of them have not yet.
    pub(crate) stop_from: Option<i32>,
    /// Sorted by index, then presence.
    pub(crate) actual: Vec<Actual>,
}

impl Process {
    pub(crate) fn is_empty(&self) -> bool {
        self.desired.is_none() && self.actual.is_empty()
    }

    /// All rows.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Actual> {
        self.actual.iter()
    }

    /// The rows from one index on.
    pub(crate) fn rows_from(&self, index: i32) -> &[Actual] {
        &self.actual[self.actual.partition_point(|row| row.index < index)..]
    }

    /// Does a copy of this index run to which requests may be sent?
    pub(crate) fn serves(&self, index: i32) -> bool {
        let rows = self.rows_from(index).iter();
        let mut rows = rows.take_while(|row| row.index == index);
        rows.any(|row| row.routable)
    }

    /// The row at a place.
    pub(crate) fn row(&self, place: Place) -> Option<&Actual> {
        self.find(place).ok().map(|at| &self.actual[at])
    }

    /// Takes a layer over its rows over, in one walk whatever the number of changes: moving
    /// rows one by one would take a process of many instances the square of them.
    pub(crate) fn merge(&mut self, layer: Layer<Place, Actual>) {
        let (mut gone, mut new) = (Vec::new(), Vec::new());
        for (place, row) in layer {
            match (self.find(place), row) {
                (Ok(at), Some(row)) => self.actual[at] = row,
                (Ok(at), None) => gone.push(at),
                (Err(_), Some(row)) => new.push(row),
                (Err(_), None) => {}
            }
        }
        if !gone.is_empty() {
            let (mut at, mut gone) = (0, gone.into_iter().peekable());
            self.actual.retain(|_| {
                let goes = gone.next_if_eq(&at).is_some();
                at += 1;
                !goes
            });
        }
        if self.actual.is_empty() {
            // Most processes have a row or two for as long as they live.
            new.shrink_to_fit();
            self.actual = new;
            return;
        }
        let last = self.actual.last().map(Actual::place);
        let in_order = new.first().is_none_or(|first| last < Some(first.place()));
        self.actual.append(&mut new);
        if !in_order {
            // Two sorted runs, which this sort joins in one walk.
            self.actual.sort_by_key(Actual::place);
        }
    }

    fn find(&self, place: Place) -> Result<usize, usize> {
        self.actual.binary_search_by_key(&place, Actual::place)
    }
}

impl Table<Place, Actual> for Process {
    fn value<Q: Ord + Hash + ?Sized>(&self, key: &Q) -> Option<&Actual>
    where
        Place: Borrow<Q>,
    {
        let found = self
            .actual
            .binary_search_by(|row| Borrow::<Q>::borrow(&row.place()).cmp(key));
        found.ok().map(|at| &self.actual[at])
    }

    fn set(&mut self, key: Place, value: Option<Actual>) {
        match (self.find(key), value) {
            (Ok(at), Some(row)) => self.actual[at] = row,
            (Ok(at), None) => drop(self.actual.remove(at)),
            (Err(at), Some(row)) => self.actual.insert(at, row),
            (Err(_), None) => {}
        }
    }
}

/// What differs from a process below.
#[derive(Debug, Default)]
pub(crate) struct ProcessLayer {
    /// `None`: it is as below.
    pub(crate) desired: Option<Option<Desired>>,
    /// `None`: it is as below.
    pub(crate) stop_from: Option<Option<i32>>,
    pub(crate) rows: Layer<Place, Actual>,
}
