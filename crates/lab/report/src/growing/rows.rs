//! The rows of one lifecycle at places that they keep.

use std::collections::HashMap;
use std::sync::Arc;

use lab_lifecycle::{Changes, NOT_SEEN};

use crate::ids;
use crate::timelines::scale_of;

/// Stands for "no place" and "no group".
pub(super) const NONE: u32 = u32::MAX;
/// Rows whose numbers have this bit are found in the second list of places.
const SECOND: u32 = 1 << 31;

/// One lifecycle. Entities are at the places from 0 on, without a gap: when one is no more, the last one
/// takes its place.
#[derive(Debug)]
pub(super) struct Rows {
    name: String,
    pub(super) points: Vec<String>,
    /// Row by row, in nanoseconds since the start of the run, or [`NOT_SEEN`].
    at_ns: Vec<i64>,
    pub(super) ids: Vec<Arc<str>>,
    /// Places in `groups`, or [`NONE`].
    pub(super) group: Vec<u32>,
    /// When a row changed last, and when its place got its id.
    pub(super) changed: Vec<u32>,
    pub(super) named: Vec<u32>,
    /// The number that a row is told by, and the place of each number.
    number: Vec<u32>,
    places: [Vec<u32>; 2],

    /// In the order in which they were seen first, each with the moment.
    pub(super) groups: Vec<(Arc<str>, u32)>,
    place_of_group: HashMap<Arc<str>, u32>,
    /// Of ids that are told by bytes; empty: none is.
    pub(super) form: Vec<u8>,

    /// The earliest and the latest time of all; `None`: there is none.
    span: Option<(i64, i64)>,
    pub(super) origin_ns: i128,
    pub(super) unit_ns: i128,
    /// Who has the picture of an earlier moment needs a whole one: all numbers are others.
    pub(super) whole_since: u32,
}

impl Rows {
    pub(super) fn new(changes: &Changes, stamp: u32) -> Self {
        let (origin_ns, unit_ns) = scale_of(None);
        Self {
            name: changes.name.clone(),
            points: changes.points.clone(),
            at_ns: Vec::new(),
            ids: Vec::new(),
            group: Vec::new(),
            changed: Vec::new(),
            named: Vec::new(),
            number: Vec::new(),
            places: [Vec::new(), Vec::new()],
            groups: Vec::new(),
            place_of_group: HashMap::new(),
            form: Vec::new(),
            span: None,
            origin_ns,
            unit_ns,
            whole_since: stamp,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The times of a row.
    pub(super) fn times(&self, place: usize) -> &[i64] {
        let points = self.points.len();
        &self.at_ns[place * points..][..points]
    }

    /// Takes in what has changed at this moment.
    pub(super) fn take(&mut self, changes: &Changes, stamp: u32) {
        let points = self.points.len();
        let mut shrunk = false;
        for (row, told) in changes.rows.iter().enumerate() {
            let times = &changes.at_ns[row * points..][..points];
            let shows = times.iter().any(|at| *at != NOT_SEEN);
            let known = self.place_of(told.number);
            let place = match (known, shows) {
                (NONE, false) => continue,
                (NONE, true) => self.add(told.number, &told.id, stamp),
                (place, false) => {
                    shrunk |= self.at_an_end(self.times(place as usize));
                    self.remove(place as usize, stamp);
                    continue;
                }
                (place, true) => place as usize,
            };
            let group = match &told.group {
                Some(group) => self.group_of(group, stamp),
                None => NONE,
            };
            if self.group[place] != group || self.times(place) != times {
                let gone = self.times(place).iter().zip(times);
                let gone = gone.filter(|(held, at)| held != at);
                shrunk |= self.at_an_end(gone.map(|(held, _)| held));
                self.at_ns[place * points..][..points].copy_from_slice(times);
                self.group[place] = group;
                self.changed[place] = stamp;
                for at in times.iter().filter(|at| **at != NOT_SEEN) {
                    let (first, last) = self.span.unwrap_or((*at, *at));
                    self.span = Some((first.min(*at), last.max(*at)));
                }
            }
        }
        if shrunk {
            let mut times = self.at_ns.iter().copied().filter(|at| *at != NOT_SEEN);
            self.span = times
                .next()
                .map(|at| times.fold((at, at), |(first, last), at| (first.min(at), last.max(at))));
        }
        let scale = scale_of(self.span);
        if scale != (self.origin_ns, self.unit_ns) {
            (self.origin_ns, self.unit_ns) = scale;
            self.whole_since = stamp;
        }
    }

    /// Is one of these the earliest or the latest time of all?
    fn at_an_end<'a>(&self, times: impl IntoIterator<Item = &'a i64>) -> bool {
        let Some((first, last)) = self.span else {
            return false;
        };
        let mut times = times.into_iter();
        times.any(|at| *at != NOT_SEEN && (*at == first || *at == last))
    }

    fn place_of(&self, number: u32) -> u32 {
        let list = &self.places[usize::from(number & SECOND != 0)];
        let place = list.get((number & !SECOND) as usize);
        place.copied().unwrap_or(NONE)
    }

    fn put(&mut self, number: u32, place: u32) {
        let list = &mut self.places[usize::from(number & SECOND != 0)];
        let at = (number & !SECOND) as usize;
        if at >= list.len() {
            list.resize((at + 1).max(list.len() * 2), NONE);
        }
        list[at] = place;
    }

    fn add(&mut self, number: u32, id: &Arc<str>, stamp: u32) -> usize {
        let place = self.len();
        if self.form.is_empty()
            && let Some(form) = ids::form(id)
        {
            self.form = form;
            // Who has ids as texts has them in another form.
            self.whole_since = stamp;
        }
        self.at_ns.resize((place + 1) * self.points.len(), NOT_SEEN);
        self.ids.push(Arc::clone(id));
        self.group.push(NONE);
        self.changed.push(stamp);
        self.named.push(stamp);
        self.number.push(number);
        // There are no more rows than a lifecycle has numbers.
        self.put(number, place as u32);
        place
    }

    fn remove(&mut self, place: usize, stamp: u32) {
        let points = self.points.len();
        let last = self.len() - 1;
        self.put(self.number[place], NONE);
        self.at_ns.copy_within(last * points.., place * points);
        self.at_ns.truncate(last * points);
        self.ids.swap_remove(place);
        self.group.swap_remove(place);
        self.changed.swap_remove(place);
        self.named.swap_remove(place);
        self.number.swap_remove(place);
        if place < last {
            self.put(self.number[place], place as u32);
            (self.changed[place], self.named[place]) = (stamp, stamp);
        }
    }

    fn group_of(&mut self, group: &Arc<str>, stamp: u32) -> u32 {
        if let Some(place) = self.place_of_group.get(group) {
            return *place;
        }
        let place = self.groups.len() as u32;
        self.groups.push((Arc::clone(group), stamp));
        self.place_of_group.insert(Arc::clone(group), place);
        place
    }
}
