//! When to look at something again.
//!
//! Most patience does not run out: a call with a timeout of a second is answered within
//! one hundred microseconds. So a connection has at most one alarm in the heap, which
//! stays there when its deadline moves on, and is set anew when it rings too early: see
//! [`Armed`]. A request then costs no change of the heap. Alarms that do not count any more
//! stay too, until they are the most of it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use wire::slab::Key;

use super::link::PoolId;
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
    /// A caller's connection of HTTP/2 did, or a request that it carries.
    Front(Key),
    /// A call over a connection of HTTP/2 did.
    Channel(Key),
    /// A sleep or a pause of a request is over.
    Ticket(Key, Ticket),
    /// One of those who wait for a connection has waited too long.
    Pool(PoolId),
    /// Listeners that were paused may be tried again.
    Accept,
}

/// Alarms that do not count any more, from which on it is worth to look for them.
const MANY: usize = 1024;

/// Alarms by time; those of the same time in no order.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    heap: BinaryHeap<Reverse<(Nanos, Alarm)>>,
    /// How many of them do not count any more.
    spent: usize,
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

    /// One of them does not count any more.
    pub(super) fn spend(&mut self) {
        self.spent += 1;
    }

    /// One that did not count has rung.
    pub(super) fn rang_for_nothing(&mut self) {
        self.spent = self.spent.saturating_sub(1);
    }

    /// Whether most of them do not count any more.
    pub(super) fn wants_sweep(&self) -> bool {
        self.spent > MANY && self.spent > self.heap.len() / 2
    }

    /// Takes away those that do not count any more.
    pub(super) fn sweep(&mut self, mut counts: impl FnMut(Nanos, Alarm) -> bool) {
        self.heap.retain(|Reverse((at, alarm))| counts(*at, *alarm));
        self.spent = 0;
    }
}

/// The alarm that a connection has in the heap.
#[derive(Debug, PartialEq, Eq)]
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
            self.disarm(alarms);
            self.at = deadline;
            alarms.set(deadline, alarm);
        }
    }

    /// No alarm is wanted any more.
    pub(super) fn disarm(&mut self, alarms: &mut Alarms) {
        if self.at != NEVER {
            self.at = NEVER;
            alarms.spend();
        }
    }

    /// Whether an alarm of this time is the one that counts.
    pub(super) fn counts(&self, at: Nanos) -> bool {
        self.at == at
    }

    /// Whether an alarm that rings is the one that counts.
    pub(super) fn rings(&mut self, at: Nanos, alarms: &mut Alarms) -> bool {
        let counts = self.counts(at);
        if counts {
            self.at = NEVER;
        } else {
            alarms.rang_for_nothing();
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::slab::Slab;

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
        assert!(armed.rings(100, &mut alarms));
        armed.arm(900, alarm, &mut alarms);
        // An earlier one takes its place; the later one does not count any more.
        armed.arm(500, alarm, &mut alarms);
        assert_eq!(alarms.ringing(2000), Some((500, alarm)));
        assert!(armed.rings(500, &mut alarms));
        assert_eq!(alarms.spent, 1);
        assert_eq!(alarms.ringing(2000), Some((900, alarm)));
        assert!(!armed.rings(900, &mut alarms));
        assert_eq!(alarms.spent, 0);
        assert_eq!((alarms.next(), alarms.ringing(2000)), (NEVER, None));
        armed.arm(NEVER, alarm, &mut alarms);
        assert_eq!(alarms.next(), NEVER);
    }

    #[test]
    fn what_does_not_count_does_not_pile_up() {
        let mut slab = Slab::default();
        let mut alarms = Alarms::default();
        let kept = slab.insert(());
        let mut kept_alarm = Armed::default();
        kept_alarm.arm(7_000_000, Alarm::Session(kept), &mut alarms);
        let mut most = 0;
        for at in 0..100_000 {
            let key = slab.insert(());
            let mut armed = Armed::default();
            armed.arm(1_000_000 + at, Alarm::Session(key), &mut alarms);
            armed.disarm(&mut alarms);
            slab.release(key);
            if alarms.wants_sweep() {
                alarms.sweep(|_, alarm| alarm == Alarm::Session(kept));
            }
            most = most.max(alarms.heap.len());
        }
        assert!(most <= 2 * MANY + 2, "{most}");
        alarms.sweep(|at, alarm| alarm == Alarm::Session(kept) && kept_alarm.counts(at));
        assert_eq!(
            alarms.ringing(NEVER - 1),
            Some((7_000_000, Alarm::Session(kept)))
        );
        assert_eq!(alarms.next(), NEVER);
    }
}
