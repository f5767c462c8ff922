//! Histograms of time that one thread writes and any thread reads.

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
}

/// Times of several threads, or what came to them between two readings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Times {
    /// Not cumulative; the last: above all bounds.
    pub(super) counts: [u64; BOUNDS + 1],
    pub(super) sum: Nanos,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            counts: [0; BOUNDS + 1],
            sum: 0,
        }
    }
}

impl Times {
    /// Adds what a thread has counted.
    pub fn add(&mut self, of: &Histogram) {
        for (all, one) in self.counts.iter_mut().zip(&of.counts) {
            *all += one.get();
        }
        self.sum = self.sum.wrapping_add(of.sum.get());
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Their sum.
    pub fn sum(&self) -> Nanos {
        self.sum
    }

    /// How many are at most `bound`, which should be the bound of a bucket.
    pub(super) fn up_to(&self, bound: Nanos) -> u64 {
        let buckets = UPPER.partition_point(|upper| *upper <= bound);
        self.counts[..buckets].iter().sum()
    }

    /// The time that the share `share` (0 to 1) of all does not exceed, to about a tenth:
    /// buckets are up to 1.5 times as long as the one before, and times are taken as
    /// evenly spread in each. Times above the last bound count as that. `None`: there are
    /// none.
    pub fn quantile(&self, share: f64) -> Option<Nanos> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = (share.clamp(0.0, 1.0) * count as f64).max(1.0);
        let mut before = 0;
        for (bucket, here) in self.counts.iter().enumerate() {
            if *here > 0 && (before + here) as f64 >= rank {
                let low = bucket.checked_sub(1).map_or(0, |below| UPPER[below]);
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
            before += here;
        }
        None
    }
}
