//! Deadlines of the connections, requests and pauses of an event loop: at most one for each
//! place of a [`Slab`](crate::slab::Slab).
//!
//! Most deadlines are moved on long before they run out: a call with a timeout of a second is
//! answered within a hundred microseconds. So a place has one entry in a heap, which stays
//! there when its deadline moves on or is cleared, and is put back behind the deadline that
//! holds when its own time has come. To move a deadline on is a store into an array; the
//! heap changes about once in the length of a deadline, and not once for each request.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// No deadline.
pub const NEVER: u64 = u64::MAX;

/// Entries that do not count any more, from which on it is worth to look for them.
const MANY: usize = 1024;

/// Deadlines by place, in nanoseconds of [`clock::now`](crate::clock::now). See the module.
#[derive(Debug)]
pub struct Deadlines {
    places: Vec<Place>,
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    /// How many places have a deadline.
    set: usize,
    grain: u64,
    /// Until when deadlines were told; entries are behind it.
    told: u64,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    at: u64,
    /// The time of the entry in the heap that counts; [`NEVER`]: there is none.
    armed: u64,
}

impl Default for Deadlines {
    /// Exact to the nanosecond.
    fn default() -> Self {
        Self::with_grain(Duration::ZERO)
    }
}

impl Deadlines {
    /// Deadlines that may be told up to `grain` too late, so that a thread with many of them
    /// wakes for several at once.
    pub fn with_grain(grain: Duration) -> Self {
        Self {
            places: Vec::new(),
            heap: BinaryHeap::new(),
            set: 0,
            grain: u64::try_from(grain.as_nanos()).unwrap_or(NEVER).max(1),
            told: 0,
        }
    }

    /// Sets the deadline of a place, instead of the one before; [`NEVER`] takes it away.
    /// Memory grows to the highest place.
    #[inline]
    pub fn set(&mut self, place: u32, at: u64) {
        let index = place as usize;
        if index >= self.places.len() {
            if at == NEVER {
                return;
            }
            let none = Place {
                at: NEVER,
                armed: NEVER,
            };
            self.places.resize(index + 1, none);
        }
        let Some(of) = self.places.get_mut(index) else {
            return;
        };
        self.set = self.set + usize::from(at != NEVER) - usize::from(of.at != NEVER);
        of.at = at;
        if at < of.armed {
            self.arm(place);
        }
    }

    /// Sets the deadline of a place, unless it has an earlier one.
    #[inline]
    pub fn lower(&mut self, place: u32, at: u64) {
        let of = self.places.get(place as usize);
        if of.is_none_or(|of| at < of.at) {
            self.set(place, at);
        }
    }

    /// Takes the deadline of a place away.
    #[inline]
    pub fn clear(&mut self, place: u32) {
        self.set(place, NEVER);
    }

    /// When to look at [`Deadlines::expired`] next: not later than the first deadline runs
    /// out, but for the grain. [`NEVER`]: there is none.
    #[inline]
    pub fn next(&self) -> u64 {
        self.heap.peek().map_or(NEVER, |Reverse((at, _))| *at)
    }

    /// Takes away a deadline that has run out by `now`: its place, and when it was. Those of
    /// one moment come in no order. One that is set meanwhile is told at a later moment, even
    /// if it has run out already: so there is an end to what one moment tells.
    #[inline]
    pub fn expired(&mut self, now: u64) -> Option<(u32, u64)> {
        self.told = self.told.max(now);
        while self.next() <= now {
            let Reverse((entry, place)) = self.heap.pop()?;
            let Some(of) = self.places.get_mut(place as usize) else {
                continue;
            };
            if of.armed != entry {
                continue;
            }
            of.armed = NEVER;
            let at = of.at;
            if at <= now && at != NEVER {
                of.at = NEVER;
                self.set -= 1;
                return Some((place, at));
            }
            self.arm(place);
        }
        None
    }

    /// Whether no place has a deadline.
    pub fn is_empty(&self) -> bool {
        self.set == 0
    }

    /// The places that have a deadline, with it.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> {
        let all = (0..).zip(&self.places);
        all.filter(|(_, of)| of.at != NEVER)
            .map(|(place, of)| (place, of.at))
    }

    /// Gives a place whose deadline is before its entry another one.
    fn arm(&mut self, place: u32) {
        let Some(of) = self.places.get_mut(place as usize) else {
            return;
        };
        let at = of.at.max(self.told.saturating_add(1));
        let at = at.div_ceil(self.grain).saturating_mul(self.grain);
        if at >= of.armed {
            return;
        }
        of.armed = at;
        self.heap.push(Reverse((at, place)));
        if self.heap.len() > MANY + 2 * self.places.len() {
            let places = &self.places;
            let counts = |at, place: u32| {
                let of = places.get(place as usize);
                of.is_some_and(|of| of.armed == at)
            };
            self.heap.retain(|Reverse((at, place))| counts(*at, *place));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_deadline_that_moves_on_changes_nothing_in_the_heap() {
        let mut deadlines = Deadlines::default();
        for at in [100, 150, 900, NEVER, 800] {
            deadlines.set(3, at);
        }
        assert_eq!((deadlines.heap.len(), deadlines.next()), (1, 100));
        // Nothing has run out; the entry is put back to where it counts.
        assert_eq!(deadlines.expired(100), None);
        assert_eq!((deadlines.heap.len(), deadlines.next()), (1, 800));
        assert_eq!(deadlines.expired(800), Some((3, 800)));
        assert_eq!(deadlines.expired(900), None);
        assert_eq!(deadlines.next(), NEVER);
    }

    #[test]
    fn what_does_not_count_does_not_pile_up() {
        let mut deadlines = Deadlines::default();
        deadlines.set(1, 7_000_000);
        let mut most = 0;
        // Each earlier than the one before, so that each needs an entry.
        for at in (0..100_000).rev() {
            deadlines.set(0, at + 1);
            most = most.max(deadlines.heap.len());
        }
        assert!(most <= MANY + 6, "{most}");
        assert_eq!(deadlines.expired(1), Some((0, 1)));
        assert_eq!(deadlines.expired(6_999_999), None);
        assert_eq!(deadlines.expired(7_000_000), Some((1, 7_000_000)));
    }

    #[test]
    fn a_grain_tells_several_at_once_and_never_too_early() {
        let mut deadlines = Deadlines::with_grain(Duration::from_nanos(10));
        for place in 0..10 {
            deadlines.set(place, 91 + u64::from(place));
        }
        assert_eq!((deadlines.next(), deadlines.expired(99)), (100, None));
        let told = std::iter::from_fn(|| deadlines.expired(100));
        assert_eq!(told.count(), 10);
        deadlines.set(0, NEVER - 1);
        assert_eq!((deadlines.next(), deadlines.is_empty()), (NEVER, false));
    }

    #[test]
    fn there_is_an_end_to_what_one_moment_tells() {
        let mut deadlines = Deadlines::default();
        deadlines.set(0, 5);
        assert_eq!(deadlines.expired(9), Some((0, 5)));
        deadlines.set(0, 6);
        assert_eq!((deadlines.expired(9), deadlines.next()), (None, 10));
        assert_eq!(deadlines.expired(10), Some((0, 6)));
    }

    proptest! {
        #[test]
        fn each_runs_out_once_when_its_time_has_come(
            actions in proptest::collection::vec((0..4_u8, 0..8_u32, 1..20_u64), 0..300),
            grain in 1..5_u64,
        ) {
            let mut deadlines = Deadlines::with_grain(Duration::from_nanos(grain));
            let mut model = BTreeMap::new();
            let mut now = 0;
            for (action, place, length) in actions {
                match action {
                    0 => {
                        deadlines.set(place, now + length);
                        model.insert(place, now + length);
                    }
                    1 => {
                        deadlines.clear(place);
                        model.remove(&place);
                    }
                    2 => {
                        deadlines.lower(place, now + length);
                        let at = model.entry(place).or_insert(now + length);
                        *at = (now + length).min(*at);
                    }
                    _ => {
                        now += length;
                        while let Some((place, at)) = deadlines.expired(now) {
                            prop_assert_eq!(model.remove(&place), Some(at));
                            prop_assert!(at <= now);
                        }
                        let late = model.values().filter(|at| now.saturating_sub(**at) >= grain);
                        prop_assert_eq!(late.count(), 0);
                    }
                }
                let earliest = model.values().min().copied().unwrap_or(NEVER);
                prop_assert!(earliest == NEVER || deadlines.next() < earliest + grain);
                prop_assert_eq!(deadlines.is_empty(), model.is_empty());
                let all: BTreeMap<_, _> = deadlines.iter().collect();
                prop_assert_eq!(&all, &model);
            }
        }
    }
}
