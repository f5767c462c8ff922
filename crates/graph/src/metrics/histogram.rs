//! Histograms of time that one thread writes and any thread reads.

use serde::{Deserialize, Serialize};

use super::bounds::{BOUNDS, UPPER, bucket_of};
use super::count::Count;
use crate::Nanos;

/// Times that one thread has seen. Counting takes some nanoseconds, no lock and no memory.
#[derive(Debug)]
pub struct Histogram {
    /// The last: above all bounds.
    counts: [Count; BOUNDS + 1],
    sum: Count,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: std::array::from_fn(|_| Count::default()),
            sum: Count::default(),
        }
    }
}

impl Histogram {
    /// Counts a time. Only for the owning thread.
    pub fn record(&self, time: Nanos) {
        if let Some(count) = self.counts.get(bucket_of(time)) {
            count.add(1);
        }
        self.sum.add(time);
    }

    /// What it holds now.
    pub fn times(&self) -> Times {
        let counts = (0_u8..).zip(&self.counts).filter_map(|(bucket, count)| {
            let count = count.get();
            (count > 0).then_some((bucket, count))
        });
        Times {
            counts: counts.collect(),
            sum: self.sum.get(),
        }
    }
}

/// Times of one or several threads, or what came to them between two readings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// Buckets that are not empty, in order, and how many they hold.
    counts: Vec<(u8, u64)>,
    sum: Nanos,
}

impl Times {
    /// How many there are.
    pub fn count(&self) -> u64 {
        let counts = self.counts.iter().map(|(_, count)| *count);
        counts.fold(0, u64::wrapping_add)
    }

    /// Their sum.
    pub fn sum(&self) -> Nanos {
        self.sum
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Their mean. `None`: there is none.
    pub fn mean(&self) -> Option<Nanos> {
        self.sum.checked_div(self.count())
    }

    /// Adds those of another.
    pub fn add(&mut self, other: &Self) {
        for (bucket, count) in &other.counts {
            match self
                .counts
                .binary_search_by_key(bucket, |(known, _)| *known)
            {
                Ok(place) => self.counts[place].1 = self.counts[place].1.wrapping_add(*count),
                Err(place) => self.counts.insert(place, (*bucket, *count)),
            }
        }
        self.sum = self.sum.wrapping_add(other.sum);
    }

    /// What came since `before`, an earlier reading of the same. A bucket that shrank has
    /// started anew.
    pub fn since(&self, before: &Self) -> Self {
        let more = self.counts.iter().map(|(bucket, count)| {
            let old = before
                .counts
                .binary_search_by_key(bucket, |(known, _)| *known);
            let old = old.map_or(0, |place| before.counts[place].1);
            (*bucket, count.checked_sub(old).unwrap_or(*count))
        });
        Self {
            counts: more.filter(|(_, count)| *count > 0).collect(),
            sum: self.sum.checked_sub(before.sum).unwrap_or(self.sum),
        }
    }

    /// How many are at most `bound`, which should be the bound of a bucket.
    pub(super) fn up_to(&self, bound: Nanos) -> u64 {
        let buckets = UPPER.partition_point(|upper| *upper <= bound);
        let below = self.counts.iter();
        let below = below.take_while(|(bucket, _)| usize::from(*bucket) < buckets);
        below.map(|(_, count)| *count).fold(0, u64::wrapping_add)
    }

    /// The time that the share `share` (0 to 1) of all does not exceed, to about a tenth:
    /// buckets are up to 1.5 times as long as the one before, and times are taken as
    /// evenly spread in each. Times above the last bound count as that. `None`: there are
    /// none.
    pub fn quantile(&self, share: f64) -> Option<Nanos> {
        let rank = (share.clamp(0.0, 1.0) * self.count() as f64).max(1.0);
        let mut before = 0_u64;
        for (bucket, here) in &self.counts {
            let bucket = usize::from(*bucket);
            if before.wrapping_add(*here) as f64 >= rank {
                let low = bucket.checked_sub(1).and_then(|below| UPPER.get(below));
                let low = low.copied().unwrap_or(0);
                let high = UPPER.get(bucket).copied().unwrap_or(low);
                let part = (rank - before as f64) / *here as f64;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "between two bounds"
                )]
                let inside = ((high - low) as f64 * part) as u64;
                return Some(low + inside);
            }
            before = before.wrapping_add(*here);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(times: &[Nanos]) -> Times {
        let histogram = Histogram::default();
        for time in times {
            histogram.record(*time);
        }
        histogram.times()
    }

    #[test]
    fn nothing_has_no_quantile() {
        assert_eq!((of(&[]).quantile(0.5), of(&[]).mean()), (None, None));
        assert_eq!(of(&[u64::MAX]).quantile(0.5), Some(100_000_000_000));
    }

    proptest! {
        #[test]
        fn a_quantile_is_near_the_true_one(
            mut times in proptest::collection::vec(1_000_u64..50_000_000_000, 1..200),
            share in 0.0..=1.0,
        ) {
            let found = of(&times).quantile(share).unwrap() as f64;
            times.sort_unstable();
            let rank = (share * times.len() as f64).ceil().max(1.0) as usize;
            let exact = times[rank - 1] as f64;
            prop_assert!(found <= exact * 1.5 && found >= exact / 1.5, "{found} {exact}");
        }

        #[test]
        fn readings_add_up(
            first in proptest::collection::vec(any::<u64>(), 0..50),
            then in proptest::collection::vec(0_u64..1 << 40, 0..50),
        ) {
            let first: Vec<_> = first.iter().map(|time| time >> 12).collect();
            let all = of(&[first.as_slice(), &then].concat());
            let more = all.since(&of(&first));
            prop_assert_eq!(&more, &of(&then));
            let mut sum = of(&first);
            sum.add(&more);
            prop_assert_eq!(&sum, &all);
            for bound in [1_000_000, 100_000_000_000] {
                let below = then.iter().filter(|time| **time <= bound).count() as u64;
                prop_assert_eq!(more.up_to(bound), below);
            }
        }
    }
}
