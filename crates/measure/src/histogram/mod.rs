//! Distributions of durations, exact to three digits, that can be merged.

mod bins;
mod store;
mod v2;

use std::time::Duration;

use bins::{bin_of, middle_of, values_of};
use store::Store;

/// The longest duration that is told apart; longer ones count as this.
pub const HIGHEST: Duration = Duration::from_micros(bins::HIGHEST);

/// Why a histogram could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// It could not be written as text.
    #[error("write a histogram: {0}")]
    Write(String),
    /// The text is not a histogram of this form.
    #[error("read a histogram: {0}; expected HdrHistogram V2, deflated, in base64")]
    Read(String),
}

/// A distribution of durations up to one hour, in bins no wider than 1 µs or a
/// thousandth of the duration.
///
/// Counting takes some nanoseconds and allocates only when a duration falls into an
/// octave where none was before, at most 23 times over the histogram's life; a
/// histogram of the durations usual in practice takes about 40 KB, and a
/// [packed](Histogram::pack) one about 2 bytes for each bin in use.
#[derive(Debug, Clone)]
pub struct Histogram {
    store: Store,
    count: u64,
}

/// One bin of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bin {
    /// Shortest duration that it holds.
    pub lowest: Duration,
    /// Longest duration that it holds.
    pub highest: Duration,
    /// How many it holds; above 0.
    pub count: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count && self.store.counts().eq(other.store.counts())
    }
}

impl Histogram {
    /// An empty one.
    pub const fn new() -> Self {
        Self {
            store: Store::new(),
            count: 0,
        }
    }

    /// Counts one duration, to the nearest microsecond; longer ones than [`HIGHEST`]
    /// count as that.
    #[inline]
    pub fn record(&mut self, duration: Duration) {
        self.record_n(duration, 1);
    }

    /// Counts a duration in nanoseconds, as [`Histogram::record`] does.
    #[inline]
    pub fn record_ns(&mut self, nanos: u64) {
        self.add(
            bin_of((nanos / 1000 + u64::from(nanos % 1000 >= 500)).min(bins::HIGHEST)),
            1,
        );
    }

    /// Counts a duration so many times.
    #[inline]
    pub fn record_n(&mut self, duration: Duration, count: u64) {
        let us = duration.as_secs().saturating_mul(1_000_000);
        let us = us.saturating_add(u64::from((duration.subsec_nanos() + 500) / 1000));
        self.add(bin_of(us.min(bins::HIGHEST)), count);
    }

    #[inline]
    fn add(&mut self, bin: usize, count: u64) {
        let bin = self.store.count_mut(bin);
        *bin = bin.saturating_add(count);
        self.count = self.count.saturating_add(count);
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many durations lie in bins above that of `duration`.
    pub fn count_above(&self, duration: Duration) -> u64 {
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let limit = bin_of(us.min(bins::HIGHEST));
        let above = self.store.counts().filter(|(bin, _)| *bin > limit);
        above.map(|(_, count)| count).sum()
    }

    /// The duration that the share `quantile` (0 to 1) of all durations does not
    /// exceed: nearest rank, to three digits, the upper end of its bin. `None` when
    /// nothing was counted.
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        // 0.07 * 100.0 is a hair above 7; without the correction its rank would be 8.
        let exact = quantile.clamp(0.0, 1.0) * self.count as f64 * (1.0 - 4.0 * f64::EPSILON);
        let rank = (exact.ceil() as u64).clamp(1, self.count.max(1));
        let mut passed = 0;
        let found = self.store.counts().find(|(_, count)| {
            passed += count;
            passed >= rank
        });
        found.map(|(bin, _)| Duration::from_micros(values_of(bin).1))
    }

    /// The shortest duration, as the lower end of its bin.
    pub fn min(&self) -> Option<Duration> {
        self.bins().next().map(|bin| bin.lowest)
    }

    /// The longest duration, as the upper end of its bin.
    pub fn max(&self) -> Option<Duration> {
        self.bins().last().map(|bin| bin.highest)
    }

    /// The mean, to three digits.
    pub fn mean(&self) -> Option<Duration> {
        (self.count > 0).then(|| Duration::from_secs_f64(self.mean_us() * 1e-6))
    }

    /// The standard deviation, to three digits.
    pub fn stddev(&self) -> Option<Duration> {
        let mean = self.mean_us();
        let squares = self.store.counts().map(|(bin, count)| {
            let far = middle_of(bin) - mean;
            far * far * count as f64
        });
        let squares: f64 = squares.sum();
        let variance = squares / self.count as f64;
        (self.count > 0).then(|| Duration::from_secs_f64(variance.sqrt() * 1e-6))
    }

    /// The sum of all durations, in seconds, to three digits.
    pub fn sum_seconds(&self) -> f64 {
        self.mean_us() * self.count as f64 * 1e-6
    }

    fn mean_us(&self) -> f64 {
        let parts = self
            .store
            .counts()
            .map(|(bin, n)| middle_of(bin) * n as f64);
        parts.sum::<f64>() / self.count.max(1) as f64
    }

    /// The bins in which something was counted, from short to long.
    pub fn bins(&self) -> impl Iterator<Item = Bin> + '_ {
        self.store.counts().map(|(bin, count)| {
            let (lowest, highest) = values_of(bin);
            Bin {
                lowest: Duration::from_micros(lowest),
                highest: Duration::from_micros(highest),
                count,
            }
        })
    }

    /// Adds all durations of another histogram. Exact.
    pub fn merge(&mut self, other: &Self) {
        for (bin, count) in other.store.counts() {
            self.add(bin, count);
        }
    }

    /// Takes the durations of another histogram away, as far as they are here.
    pub fn subtract(&mut self, other: &Self) {
        for (bin, count) in other.store.counts() {
            let here = self.store.count_mut(bin);
            let less = count.min(*here);
            *here -= less;
            self.count -= less;
        }
    }

    /// Forgets every duration and keeps the memory for the next ones.
    pub fn reset(&mut self) {
        self.store.reset();
        self.count = 0;
    }

    /// Takes as little memory as it can. What is counted later unpacks it again.
    pub fn pack(&mut self) {
        self.store.pack();
    }
}

#[cfg(test)]
mod tests;
