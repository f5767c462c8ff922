//! From single times to numbers.

use std::time::Duration;

/// Gaps below this are the work of interrupts, which no machine is without.
pub(crate) const GAP: Duration = Duration::from_micros(100);

/// Median and 99th percentile in seconds, by nearest rank; zeros for nothing.
pub(crate) fn two_quantiles(mut times: Vec<Duration>) -> (f64, f64) {
    times.sort_unstable();
    let at = |share| stats::nearest_rank(&times, share).map_or(0.0, |time| time.as_secs_f64());
    (at(0.5), at(0.99))
}

/// Times in which spinning threads did not run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Gaps {
    /// The longest.
    pub(crate) longest: Duration,
    /// Sum of those above [`GAP`].
    pub(crate) lost: Duration,
    /// Time that was looked at.
    pub(crate) seen: Duration,
}

impl Gaps {
    /// Counts the time between two neighbouring readings of the clock.
    pub(crate) fn count(&mut self, between: Duration) {
        self.seen += between;
        self.longest = self.longest.max(between);
        if between > GAP {
            self.lost += between;
        }
    }

    /// Adds those of another processor.
    pub(crate) fn add(&mut self, other: &Self) {
        self.seen += other.seen;
        self.lost += other.lost;
        self.longest = self.longest.max(other.longest);
    }

    /// Share of time lost to gaps, 0 to 1.
    pub(crate) fn share(&self) -> f64 {
        match self.seen.is_zero() {
            true => 0.0,
            false => self.lost.as_secs_f64() / self.seen.as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_are_by_nearest_rank() {
        let times = (1..=200).rev().map(Duration::from_secs).collect();
        assert_eq!(two_quantiles(times), (100.0, 198.0));
        assert_eq!(two_quantiles(Vec::new()), (0.0, 0.0));
    }

    #[test]
    fn only_long_gaps_are_lost_time() {
        let mut gaps = Gaps::default();
        for us in [25, 100, 375, 500] {
            gaps.count(Duration::from_micros(us));
        }
        assert_eq!(gaps.longest, Duration::from_micros(500));
        assert_eq!(gaps.share(), 0.875);
        assert_eq!(Gaps::default().share(), 0.0);
    }

    proptest! {
        #[test]
        fn processors_add_up(
            one in proptest::collection::vec(0u64..10_000, 0..50),
            other in proptest::collection::vec(0u64..10_000, 0..50),
        ) {
            let of = |all: &[u64]| {
                let mut gaps = Gaps::default();
                all.iter().for_each(|us| gaps.count(Duration::from_micros(*us)));
                gaps
            };
            let mut sum = of(&one);
            sum.add(&of(&other));
            prop_assert_eq!(sum, of(&[one, other].concat()));
            prop_assert!((0.0..=1.0).contains(&sum.share()));
        }
    }
}
