//! When to look at something again.
//!
//! Most patience does not run out: a call with a timeout of a second is answered within
//! one hundred microseconds. So a connection has at most one alarm in the heap, which
//! stays there when its deadline moves on, and is set anew when it rings too early: see
//! [`Armed`]. A request then costs no change of the heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::slab::Key;
use crate::Nanos;
use crate::script::Ticket;

/// No deadline.
pub(super) const NEVER: Nanos = Nanos::MAX;

/// What an alarm is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Alarm {
    /// A caller's connection ran out of patience, or the request that it carries.
    Session(Key),
    /// A call did.
    Link(Key),
    /// Something that a request waits for has come: a sleep, a pause, a place in a queue.
    Ticket(Key, Ticket),
    /// Listeners that were paused may be tried again.
    Accept,
}

/// Alarms by time; those of the same time in no order.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    heap: BinaryHeap<Reverse<(Nanos, Alarm)>>,
}

impl Alarms {
    pub(super) fn set(&mut self, at: Nanos, alarm: Alarm) {
        if at != NEVER {
            self.heap.push(Reverse((at, alarm)));
        }
    }

    /// When the next one rings.
    pub(super) fn next(&self) -> Nanos {
        self.heap.peek().map_or(NEVER, |Reverse((at, _))| *at)
    }

    /// Takes one that rings by `now`.
    pub(super) fn ringing(&mut self, now: Nanos) -> Option<(Nanos, Alarm)> {
        if self.next() > now {
            return None;
        }
        self.heap.pop().map(|Reverse(alarm)| alarm)
    }
}

/// The alarm that a connection has in the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Armed {
    /// When it rings; later ones of the same connection do not count.
    at: Nanos,
}

impl Default for Armed {
    fn default() -> Self {
        Self { at: NEVER }
    }
}

impl Armed {
    /// Makes sure that an alarm rings not after a deadline.
    pub(super) fn arm(&mut self, deadline: Nanos, alarm: Alarm, alarms: &mut Alarms) {
        if deadline < self.at {
            self.at = deadline;
            alarms.set(deadline, alarm);
        }
    }

    /// Whether an alarm that rings is the one that counts, which is then out of the heap.
    pub(super) fn rings(&mut self, at: Nanos) -> bool {
        let counts = self.at == at;
        if counts {
            self.at = NEVER;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::super::slab::Slab;
    use super::*;

    #[test]
    fn a_deadline_that_moves_on_changes_nothing_in_the_heap() {
        let mut slab = Slab::default();
        let key = slab.insert(());
        let (mut alarms, mut armed) = (Alarms::default(), Armed::default());
        let alarm = Alarm::Link(key);
        for deadline in [100, 150, 900] {
            armed.arm(deadline, alarm, &mut alarms);
        }
        assert_eq!((alarms.heap.len(), alarms.next()), (1, 100));
        assert_eq!(alarms.ringing(99), None);
        // Too early: it is set anew, for the deadline that holds now.
        assert_eq!(alarms.ringing(100), Some((100, alarm)));
        assert!(armed.rings(100));
        armed.arm(900, alarm, &mut alarms);
        // An earlier one takes its place; the later one does not count any more.
        armed.arm(500, alarm, &mut alarms);
        assert_eq!(alarms.ringing(2000), Some((500, alarm)));
        assert!(armed.rings(500));
        assert_eq!(alarms.ringing(2000), Some((900, alarm)));
        assert!(!armed.rings(900));
        assert_eq!((alarms.next(), alarms.ringing(2000)), (NEVER, None));
        armed.arm(NEVER, alarm, &mut alarms);
        assert_eq!(alarms.next(), NEVER);
    }
}
