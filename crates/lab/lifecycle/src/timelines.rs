//! The times of many entities at the same points, in one block of memory.

use crate::interner::Interner;

/// Stands for "no line showed that point". No line has this time.
const NONE: i64 = i64::MIN;

/// One timeline for each number from 0 to [`Timelines::len`].
#[derive(Debug, Clone)]
pub(crate) struct Timelines {
    points: usize,
    at: Vec<i64>,
    groups: Vec<Option<GroupAt>>,
}

/// A group that a line named, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupAt {
    pub(crate) at: i64,
    pub(crate) group: u32,
}

impl Timelines {
    pub(crate) fn new(points: usize) -> Self {
        Self {
            points,
            at: Vec::new(),
            groups: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    /// Points of each timeline.
    pub(crate) fn points(&self) -> usize {
        self.points
    }

    /// Adds a copy of a row of others with the same points.
    pub(crate) fn push_copy(&mut self, of: &Self, row: u32) {
        self.at.extend_from_slice(of.slots(row));
        self.groups.push(of.groups[row as usize]);
    }

    pub(crate) fn grow_to(&mut self, len: usize) {
        if len > self.len() {
            self.at.resize(len * self.points, NONE);
            self.groups.resize(len, None);
        }
    }

    fn slots(&self, row: u32) -> &[i64] {
        let start = row as usize * self.points;
        &self.at[start..start + self.points]
    }

    /// The times of a row, point by point.
    pub(crate) fn times(&self, row: u32) -> impl Iterator<Item = Option<i64>> {
        self.slots(row)
            .iter()
            .map(|at| (*at != NONE).then_some(*at))
    }

    pub(crate) fn has(&self, row: u32, point: usize) -> bool {
        self.slots(row)[point] != NONE
    }

    pub(crate) fn is_empty(&self, row: u32) -> bool {
        self.slots(row).iter().all(|at| *at == NONE)
    }

    /// Notes that the row passed the point; the earliest time stays. Tells whether
    /// it is the first note of this point.
    pub(crate) fn pass(&mut self, row: u32, point: usize, at: i64) -> bool {
        let slot = &mut self.at[row as usize * self.points + point];
        let first = *slot == NONE;
        *slot = if first { at } else { at.min(*slot) };
        first
    }

    pub(crate) fn group(&self, row: u32) -> Option<u32> {
        self.groups[row as usize].map(|known| known.group)
    }

    /// Notes that the row was in a group; the earliest one stays, of equally early
    /// ones the first by name.
    pub(crate) fn join(&mut self, row: u32, new: GroupAt, names: &Interner) {
        let slot = &mut self.groups[row as usize];
        let earlier = match *slot {
            None => true,
            Some(known) if known.at == new.at => names.text(new.group) < names.text(known.group),
            Some(known) => new.at < known.at,
        };
        if earlier {
            *slot = Some(new);
        }
    }
}
