//! Moments in which a thread that never sleeps does not run.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::work::WorkError;

/// A time between two readings of the clock is a gap from here on: far above the tens of
/// nanoseconds that a turn of the loop takes, and about what a tick of the kernel costs.
pub const GAP_NS: Nanos = 10_000;

/// Upper bounds of the sizes that are counted apart, in nanoseconds; larger ones count in
/// one more.
pub const BOUNDS_NS: [Nanos; 8] = [
    20_000, 50_000, 100_000, 500_000, 1_000_000, 5_000_000, 10_000_000, 50_000_000,
];

/// The gaps that a processor had, or several.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gaps {
    /// Counted from 0; `None`: several.
    pub cpu: Option<u32>,
    /// Time that was looked at.
    pub seen_ns: Nanos,
    /// Sum of all gaps.
    pub lost_ns: Nanos,
    /// The longest.
    pub longest_ns: Nanos,
    /// How many, by size: below each of [`BOUNDS_NS`], and beyond.
    pub sizes: [u64; BOUNDS_NS.len() + 1],
}

impl Gaps {
    /// How many.
    pub fn count(&self) -> u64 {
        self.sizes.iter().sum()
    }

    /// How many in a second of one processor.
    pub fn per_second(&self) -> f64 {
        match self.seen_ns {
            0 => 0.0,
            seen => self.count() as f64 * 1e9 / seen as f64,
        }
    }

    /// Share of the time that was lost, 0 to 1.
    pub fn lost_share(&self) -> f64 {
        match self.seen_ns {
            0 => 0.0,
            seen => self.lost_ns as f64 / seen as f64,
        }
    }

    /// How many are of a size or larger; the size counts as the bound at or above it.
    pub fn at_least(&self, size: Nanos) -> u64 {
        let first = match size <= GAP_NS {
            true => 0,
            false => BOUNDS_NS.partition_point(|bound| *bound < size) + 1,
        };
        self.sizes.iter().skip(first).sum()
    }

    /// Adds those of another processor.
    pub(crate) fn add(&mut self, other: &Self) {
        self.seen_ns += other.seen_ns;
        self.lost_ns += other.lost_ns;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        for (sum, more) in self.sizes.iter_mut().zip(other.sizes) {
            *sum += more;
        }
    }

    /// Takes note of the time between two neighbouring readings of the clock.
    fn note(&mut self, between: Nanos) {
        self.seen_ns += between;
        if between >= GAP_NS {
            self.lost_ns += between;
            self.longest_ns = self.longest_ns.max(between);
            let size = BOUNDS_NS.partition_point(|bound| *bound <= between);
            if let Some(count) = self.sizes.get_mut(size) {
                *count += 1;
            }
        }
    }
}

/// Spins on every processor that this process may use, on all at once.
pub(super) fn on_each_processor(length: Duration) -> Result<Vec<Gaps>, WorkError> {
    super::on_each_processor(move |cpu| {
        let mut gaps = Gaps {
            cpu: Some(cpu),
            ..Gaps::default()
        };
        wire::floor::spin(length, |between| gaps.note(between));
        Ok(gaps)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(times: &[Nanos]) -> Gaps {
        let mut gaps = Gaps::default();
        times.iter().for_each(|between| gaps.note(*between));
        gaps
    }

    #[test]
    fn only_what_is_no_turn_of_the_loop_is_a_gap() {
        let gaps = of(&[30, 9_970, 10_000, 20_000, 60_000, 900_000_000]);
        assert_eq!(gaps.seen_ns, 900_100_000);
        assert_eq!(gaps.lost_ns, 900_090_000);
        assert_eq!(gaps.sizes, [1, 1, 1, 0, 0, 0, 0, 0, 1]);
        assert_eq!(gaps.longest_ns, 900_000_000);
        assert_eq!(gaps.at_least(0), 4);
        assert_eq!(gaps.at_least(20_000), 3);
        assert_eq!(gaps.at_least(20_001), 2, "as if it were 50 µs");
        assert_eq!(gaps.at_least(1_000_000), 1);
        assert_eq!(gaps.at_least(60_000_000), 0, "there is no bound above it");
        let share = gaps.lost_share();
        assert!((share - 0.999_988_89).abs() < 1e-7, "{share}");
    }

    proptest! {
        #[test]
        fn processors_add_up(
            one in proptest::collection::vec(1u64..100_000_000, 0..50),
            other in proptest::collection::vec(1u64..100_000_000, 0..50),
        ) {
            let mut sum = of(&one);
            sum.add(&of(&other));
            prop_assert_eq!(&sum, &of(&[one, other].concat()));
            prop_assert!((0.0..=1.0).contains(&sum.lost_share()));
            prop_assert_eq!(sum.at_least(0), sum.count());
        }
    }
}
