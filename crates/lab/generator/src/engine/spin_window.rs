//! When to stop sleeping before something is due.
//!
//! The kernel ends a sleep some tens of microseconds after the moment that was asked for.
//! A thread that sleeps until a little before that moment, and then looks at the clock
//! until it is there, is on time. The little before is learned from how late sleeps end,
//! and it is never more than a tenth of what is left: so watching costs a tenth of a
//! processor at most, and less than that where moments are far apart.

/// Share of the time until a moment that may be spent awake: one in so many.
const SHARE: u64 = 10;
/// A sleep ends later than learned one time in so many.
const ONE_IN: u64 = 20;
/// How fast is learned: nanoseconds for each sleep that ended later than expected.
const STEP_NS: u64 = 2_000;
/// Where learning begins, and what is never exceeded.
const FIRST_NS: u64 = 60_000;
const MOST_NS: u64 = 150_000;

/// Decides on sleeps. Knows no clock; times are nanoseconds of one clock.
#[derive(Debug)]
pub(super) struct SpinWindow {
    /// How late sleeps end, all but one in [`ONE_IN`].
    late: u64,
    /// The moment that is waited for, and how long before it sleep ends.
    until: u64,
    before: u64,
}

impl SpinWindow {
    pub(super) fn new() -> Self {
        Self {
            late: FIRST_NS,
            until: 0,
            before: 0,
        }
    }

    /// When to wake for a moment: `now` or earlier means not to sleep any more.
    pub(super) fn wake_at(&mut self, now: u64, until: u64) -> u64 {
        if until != self.until {
            self.until = until;
            self.before = self.late.min(until.saturating_sub(now) / SHARE);
        }
        until.saturating_sub(self.before)
    }

    /// Takes note of a sleep that nothing interrupted: it was to end at `wake_at`.
    pub(super) fn slept(&mut self, wake_at: u64, now: u64) {
        self.late = match now.saturating_sub(wake_at) > self.late {
            true => (self.late + STEP_NS).min(MOST_NS),
            false => self.late.saturating_sub(STEP_NS / (ONE_IN - 1)),
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn learns_how_late_sleeps_end() {
        let mut window = SpinWindow::new();
        for turn in 0..10_000_u64 {
            // Sleeps end 0 to 99 µs late.
            window.slept(0, turn * 37 % 100 * 1_000);
        }
        assert!((85_000..=99_000).contains(&window.late), "{}", window.late);
    }

    #[test]
    fn one_moment_has_one_wake_up() {
        let mut window = SpinWindow::new();
        let wake = window.wake_at(0, 1_000_000);
        assert_eq!(wake, 1_000_000 - FIRST_NS);
        // An answer woke the thread in between: the rest of the sleep is not shortened,
        // and once awake for the moment it stays awake.
        assert_eq!(window.wake_at(500_000, 1_000_000), wake);
        assert!(window.wake_at(970_000, 1_000_000) <= 970_000);
    }

    proptest! {
        #[test]
        fn is_awake_a_tenth_of_the_time_at_most(
            left in 0_u64..2_000_000,
            sleeps in proptest::collection::vec(0_u64..1_000_000, 0..500),
        ) {
            let mut window = SpinWindow::new();
            for late in sleeps {
                window.slept(0, late);
            }
            let now = 5_000_000;
            let wake = window.wake_at(now, now + left);
            prop_assert!(wake >= now && wake <= now + left);
            let awake = now + left - wake;
            prop_assert!(awake <= left / SHARE && awake <= MOST_NS);
        }
    }
}
