//! Encoded records and the few parts of them that lookups need.

use std::collections::HashSet;
use std::sync::Arc;

use diego::models::{self, ActualLrp, DesiredLrp, DesiredLrpSchedulingInfo};
use prost::{DecodeError, Message};

use crate::bbs::model::slot::{Row, Slot};
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
}

impl Task {
    pub(crate) fn new(id: i64, task: &models::Task, names: &mut Names) -> Self {
        Self {
            id,
            bytes: encode(task),
            domain: names.shared(&task.domain),
            cell: names.shared(&task.cell_id),
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
}

impl Desired {
    pub(crate) fn new(id: i64, desired: DesiredLrp, names: &mut Names) -> Self {
        let domain = names.shared(&desired.domain);
        let (info, rest) = desired::split(desired);
        Self {
            id,
            info: encode(&info),
            rest: encode(&rest),
            domain,
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
        }
    }

    pub(crate) fn decode(&self) -> Result<ActualLrp, DecodeError> {
        ActualLrp::decode(&*self.bytes)
    }

    /// Index and presence, by which the rows of a process are sorted.
    pub(crate) fn place(&self) -> (i32, i32) {
        (self.index, self.presence)
    }
}

/// A process: what is desired of it, and its instances by index and presence.
#[derive(Debug, Clone, Default)]
pub(crate) struct Process {
    pub(crate) desired: Option<Desired>,
    /// Sorted by index, then presence.
    pub(crate) actual: Vec<Actual>,
}

impl Process {
    pub(crate) fn is_empty(&self) -> bool {
        self.desired.is_none() && self.actual.is_empty()
    }

    /// The records of one index.
    pub(crate) fn at(&self, index: i32) -> &[Actual] {
        let from = self.actual.partition_point(|row| row.index < index);
        let rows = self.actual[from..].iter();
        &self.actual[from..from + rows.take_while(|row| row.index == index).count()]
    }

    /// The records of one index, decoded.
    pub(crate) fn slot(&self, index: i32) -> Result<Slot, DecodeError> {
        let mut slot = Slot::default();
        for row in self.at(index) {
            let row = row.decode()?;
            let presence = row.presence();
            *slot.place(presence) = Some(Arc::new(row));
        }
        Ok(slot)
    }

    /// Puts a record in place of the one with its index and presence.
    pub(crate) fn put(&mut self, row: Actual) {
        match self.find(row.place()) {
            Ok(at) => self.actual[at] = row,
            Err(at) => self.actual.insert(at, row),
        }
    }

    /// Removes the record with this index and presence.
    pub(crate) fn remove(&mut self, index: i32, presence: i32) {
        if let Ok(at) = self.find((index, presence)) {
            self.actual.remove(at);
        }
    }

    fn find(&self, place: (i32, i32)) -> Result<usize, usize> {
        self.actual.binary_search_by_key(&place, Actual::place)
    }

    /// Rows that are not, as they are, among `others`, which are sorted as well.
    pub(crate) fn rows_not_in<'a>(
        &'a self,
        others: &'a [Actual],
    ) -> impl Iterator<Item = &'a Actual> {
        let mut others = others.iter().peekable();
        self.actual.iter().filter(move |row| {
            while others
                .next_if(|other| other.place() < row.place())
                .is_some()
            {}
            let twin = others.peek().filter(|other| other.place() == row.place());
            twin.is_none_or(|other| !Arc::ptr_eq(&other.bytes, &row.bytes))
        })
    }
}
