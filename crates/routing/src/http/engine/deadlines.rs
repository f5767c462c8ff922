//! When each connection's patience ends: one number for each place of a slab.
//!
//! Setting one is a store into an array, so a request that begins and ends sets several
//! at no cost worth naming. What has run out is found by walking over the array, which
//! is done only when something may have: fifty thousand places take about twenty
//! microseconds.

use crate::table::Nanos;

/// No deadline.
pub(super) const NEVER: Nanos = Nanos::MAX;
/// Walks are at least so far apart: deadlines are late by up to this.
const PAUSE: Nanos = 10_000_000;

/// Deadlines by place. See the module.
#[derive(Debug)]
pub(super) struct Deadlines {
    at: Vec<Nanos>,
    /// Not later than the earliest.
    earliest: Nanos,
    walked: Nanos,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            at: Vec::new(),
            earliest: NEVER,
            walked: 0,
        }
    }
}

impl Deadlines {
    /// Sets the deadline of a place, in the stead of the one before.
    pub(super) fn set(&mut self, index: u32, at: Nanos) {
        let index = index as usize;
        if index >= self.at.len() {
            self.at.resize(index + 1, NEVER);
        }
        if let Some(place) = self.at.get_mut(index) {
            *place = at;
        }
        self.earliest = self.earliest.min(at);
    }

    /// When to look at [`Deadlines::expired`] next.
    pub(super) fn next(&self) -> Nanos {
        self.earliest.max(self.walked.saturating_add(PAUSE))
    }

    /// The place whose deadline is the earliest. It walks over all.
    pub(super) fn first(&self) -> Option<u32> {
        let set = (0..).zip(&self.at).filter(|(_, at)| **at != NEVER);
        set.min_by_key(|(_, at)| **at).map(|(index, _)| index)
    }

    /// Fills `into` with the places whose deadline has run out, and takes these away.
    pub(super) fn expired(&mut self, now: Nanos, into: &mut Vec<u32>) {
        into.clear();
        if now < self.next() {
            return;
        }
        self.walked = now;
        self.earliest = NEVER;
        for (index, at) in self.at.iter_mut().enumerate() {
            if *at <= now {
                *at = NEVER;
                into.push(index as u32);
            } else {
                self.earliest = self.earliest.min(*at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_out_is_told_once() {
        let mut deadlines = Deadlines::default();
        let mut found = Vec::new();
        assert_eq!(deadlines.next(), NEVER);
        deadlines.set(2, 5 * PAUSE);
        deadlines.set(0, 9 * PAUSE);
        deadlines.set(1, 5 * PAUSE);
        deadlines.set(1, NEVER);
        assert_eq!(deadlines.next(), 5 * PAUSE);
        deadlines.expired(5 * PAUSE - 1, &mut found);
        assert!(found.is_empty());
        deadlines.expired(5 * PAUSE, &mut found);
        assert_eq!(found, [2]);
        deadlines.expired(6 * PAUSE, &mut found);
        assert!(found.is_empty());
        assert_eq!(deadlines.next(), 9 * PAUSE);
        deadlines.set(3, 6 * PAUSE);
        // Behind already, and still not before the pause is over.
        assert_eq!(deadlines.next(), 6 * PAUSE);
        deadlines.expired(10 * PAUSE, &mut found);
        assert_eq!(found, [0, 3]);
        assert_eq!(deadlines.next(), NEVER);
    }
}
