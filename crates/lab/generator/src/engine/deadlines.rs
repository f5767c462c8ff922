//! Deadlines of equal length, in the order in which they run out.
//!
//! Every request waits equally long for its answer, so the one sent first runs out
//! first, and a queue suffices. It is linked through an array with one place for each
//! exchange: an answer in time takes its deadline out again in constant time, and no
//! memory is needed beyond the array, however many requests there are.

/// No place.
const NONE: u32 = u32::MAX;

/// Deadlines by place. See the module.
#[derive(Debug)]
pub(super) struct Deadlines {
    /// Time from setting a deadline to its running out, in nanoseconds.
    length: u64,
    places: Vec<Place>,
    first: u32,
    last: u32,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    at: u64,
    before: u32,
    after: u32,
    set: bool,
}

impl Deadlines {
    pub(super) fn new(length: u64) -> Self {
        Self {
            length,
            places: Vec::new(),
            first: NONE,
            last: NONE,
        }
    }

    /// Makes room for places up to `count`.
    pub(super) fn grow(&mut self, count: usize) {
        let unset = Place {
            at: 0,
            before: NONE,
            after: NONE,
            set: false,
        };
        self.places.resize(count.max(self.places.len()), unset);
    }

    /// Sets the deadline of a place that has none, from `now` on, which must not lie
    /// before earlier ones. Without effect on a place that is not there or has one.
    pub(super) fn set(&mut self, place: u32, now: u64) {
        let at = now.saturating_add(self.length);
        let last = self.last;
        match self.places.get_mut(place as usize) {
            Some(slot) if !slot.set => {
                *slot = Place {
                    at,
                    before: last,
                    after: NONE,
                    set: true,
                };
            }
            _ => return,
        }
        match self.places.get_mut(last as usize) {
            Some(before) => before.after = place,
            None => self.first = place,
        }
        self.last = place;
    }

    /// Takes the deadline of a place away, if it has one.
    pub(super) fn clear(&mut self, place: u32) {
        let (before, after) = match self.places.get_mut(place as usize) {
            Some(slot) if slot.set => {
                slot.set = false;
                (slot.before, slot.after)
            }
            _ => return,
        };
        match self.places.get_mut(before as usize) {
            Some(slot) => slot.after = after,
            None => self.first = after,
        }
        match self.places.get_mut(after as usize) {
            Some(slot) => slot.before = before,
            None => self.last = before,
        }
    }

    /// When the next deadline runs out.
    pub(super) fn next(&self) -> Option<u64> {
        self.places.get(self.first as usize).map(|place| place.at)
    }

    /// Takes a deadline that has run out by `now`.
    pub(super) fn expired(&mut self, now: u64) -> Option<u32> {
        let place = self.first;
        if self.next()? > now {
            return None;
        }
        self.clear(place);
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn deadlines_run_out_in_the_order_in_which_they_were_set(
            actions in proptest::collection::vec((0..3_u8, 0..8_u32, 0..5_u64), 0..200),
        ) {
            let mut deadlines = Deadlines::new(10);
            deadlines.grow(8);
            let mut model: VecDeque<(u32, u64)> = VecDeque::new();
            let mut now = 0;
            for (action, place, passed) in actions {
                now += passed;
                match action {
                    0 => {
                        deadlines.set(place, now);
                        if !model.iter().any(|(other, _)| *other == place) {
                            model.push_back((place, now + 10));
                        }
                    }
                    1 => {
                        deadlines.clear(place);
                        model.retain(|(other, _)| *other != place);
                    }
                    _ => {
                        let expected = model.front().copied().filter(|(_, at)| *at <= now);
                        prop_assert_eq!(deadlines.expired(now), expected.map(|(place, _)| place));
                        if expected.is_some() {
                            model.pop_front();
                        }
                    }
                }
                prop_assert_eq!(deadlines.next(), model.front().map(|(_, at)| *at));
            }
        }
    }
}
