//! Time of a run: monotonic inside, tied to the wall clock once.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The time axis of a run.
///
/// Durations come from the monotonic clock. The wall clock is read once, at the
/// start, so that time stamps found in logs can be put on the same axis; a step of
/// the wall clock during the run shifts those, and never a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    start: Instant,
    start_unix_ns: i64,
}

impl Clock {
    /// A clock whose zero is now.
    pub fn start() -> Self {
        let (now, unix_ns) = both();
        Self::at(now, unix_ns)
    }

    /// A clock whose zero is `start`, which the wall clock called `start_unix_ns`
    /// (nanoseconds since the Unix epoch).
    pub fn at(start: Instant, start_unix_ns: i64) -> Self {
        Self {
            start,
            start_unix_ns,
        }
    }

    /// The moment that is zero.
    pub fn origin(&self) -> Instant {
        self.start
    }

    /// The moment that is zero, in nanoseconds since the Unix epoch.
    pub fn origin_unix_ns(&self) -> i64 {
        self.start_unix_ns
    }

    /// By how many nanoseconds the wall clock is ahead of the time that has passed since the
    /// start: other than 0 where it was set, or the machine slept.
    pub fn wall_ahead_ns(&self) -> i64 {
        let (now, unix_ns) = both();
        self.ahead_ns(now, unix_ns)
    }

    fn ahead_ns(&self, now: Instant, unix_ns: i64) -> i64 {
        let passed = now.saturating_duration_since(self.start).as_nanos();
        let passed = i64::try_from(passed).unwrap_or(i64::MAX);
        unix_ns
            .saturating_sub(self.start_unix_ns)
            .saturating_sub(passed)
    }

    /// Seconds from the start to `moment`; 0 for a moment before it.
    pub fn seconds(&self, moment: Instant) -> f64 {
        moment.saturating_duration_since(self.start).as_secs_f64()
    }

    /// Seconds from the start to now.
    pub fn now_s(&self) -> f64 {
        self.seconds(Instant::now())
    }
}

/// Both clocks at one moment. A thread that loses its processor between them has them apart: of
/// several looks the shortest counts.
fn both() -> (Instant, i64) {
    let look = || {
        let before = Instant::now();
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = Instant::now();
        // A machine set to a time before 1970 still gets a usable axis.
        let unix_ns = since_epoch.map_or(0, |since| {
            i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
        });
        (now.saturating_duration_since(before), now, unix_ns)
    };
    let mut best = look();
    for _ in 0..2 {
        let next = look();
        if next.0 < best.0 {
            best = next;
        }
    }
    (best.1, best.2)
}

/// Evenly spaced deadlines that do not drift with the time that the work takes.
#[derive(Debug, Clone, Copy)]
pub struct Ticks {
    next: Instant,
    period: Duration,
}

impl Ticks {
    /// Deadlines at `start`, `start + period` and so on. A period of zero is taken
    /// as one nanosecond.
    pub fn new(start: Instant, period: Duration) -> Self {
        Self {
            next: start,
            period: period.max(Duration::from_nanos(1)),
        }
    }

    /// The deadline to wait for, given that it is `now`. Deadlines that have passed
    /// by more than a period are skipped, so that a delay is not followed by a burst.
    pub fn next_deadline(&mut self, now: Instant) -> Instant {
        let late = now.saturating_duration_since(self.next);
        let skipped = late.as_nanos() / self.period.as_nanos();
        self.next += self.period * u32::try_from(skipped).unwrap_or(u32::MAX);
        let deadline = self.next;
        self.next += self.period;
        deadline
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PERIOD: Duration = Duration::from_millis(100);

    #[test]
    fn a_clock_counts_from_its_start() {
        let start = Instant::now();
        let clock = Clock::at(start, 7);
        assert_eq!(clock.seconds(start + Duration::from_millis(1500)), 1.5);
        assert_eq!(clock.seconds(start - Duration::from_millis(1)), 0.0);
        assert_eq!(clock.origin_unix_ns(), 7);
    }

    #[test]
    fn a_wall_clock_that_was_set_is_noticed() {
        let start = Instant::now();
        let clock = Clock::at(start, 1_000_000_000);
        let later = start + Duration::from_secs(10);
        assert_eq!(clock.ahead_ns(later, 11_000_000_000), 0);
        assert_eq!(clock.ahead_ns(later, 14_000_000_000), 3_000_000_000);
        assert_eq!(clock.ahead_ns(later, 4_000_000_000), -7_000_000_000);
        assert_eq!(clock.ahead_ns(start, i64::MIN), i64::MIN);
    }

    #[test]
    fn work_shorter_than_a_period_does_not_shift_the_deadlines() {
        let start = Instant::now();
        let mut ticks = Ticks::new(start, PERIOD);
        assert_eq!(ticks.next_deadline(start), start);
        assert_eq!(ticks.next_deadline(start + PERIOD / 3), start + PERIOD);
        assert_eq!(
            ticks.next_deadline(start + PERIOD * 4 / 3),
            start + PERIOD * 2
        );
    }

    #[test]
    fn a_delay_skips_deadlines_and_keeps_their_phase() {
        let start = Instant::now();
        let mut ticks = Ticks::new(start, PERIOD);
        ticks.next_deadline(start);
        assert_eq!(
            ticks.next_deadline(start + PERIOD * 11 / 2),
            start + PERIOD * 5
        );
        assert_eq!(
            ticks.next_deadline(start + PERIOD * 11 / 2),
            start + PERIOD * 6
        );
    }

    proptest! {
        #[test]
        fn deadlines_are_multiples_of_the_period_and_rise(
            delays in proptest::collection::vec(0u64..1000, 1..50),
        ) {
            let start = Instant::now();
            let mut ticks = Ticks::new(start, PERIOD);
            let mut now = start;
            let mut last = None;
            for delay in delays {
                let deadline = ticks.next_deadline(now);
                prop_assert_eq!((deadline - start).as_nanos() % PERIOD.as_nanos(), 0);
                prop_assert!(last.is_none_or(|last| deadline > last));
                prop_assert!(now.saturating_duration_since(deadline) < PERIOD);
                last = Some(deadline);
                now = now.max(deadline) + Duration::from_millis(delay);
            }
        }
    }
}
