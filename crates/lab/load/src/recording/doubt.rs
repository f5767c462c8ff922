//! What the generator itself may have added to latencies.

use std::time::Duration;

use measure::Histogram;
use serde::{Deserialize, Serialize};

/// Answers whose latency the generator may have made longer: by sending late, by
/// reading late, or by sending together what should have been sent one by one.
///
/// Each stands in both histograms: as it was measured, and as short as it may have been
/// in truth. All other answers were measured as they were. As every latency lies between
/// two known ones, so does every percentile.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Doubt {
    /// As measured.
    pub seen: Histogram,
    /// The least that it may have been.
    pub least: Histogram,
}

impl Doubt {
    /// Takes an answer of `seen` nanoseconds of which the generator may have made
    /// `added`.
    pub fn record_ns(&mut self, seen: u64, added: u64) {
        self.seen.record_ns(seen);
        self.least.record_ns(seen.saturating_sub(added));
    }

    /// All answers, each as short as it may have been.
    pub fn least_of(&self, all: &Histogram) -> Histogram {
        let mut least = all.clone();
        if self.seen.count() > 0 {
            least.subtract(&self.seen);
            least.merge(&self.least);
        }
        least
    }

    /// Adds what was seen elsewhere.
    pub fn merge(&mut self, other: &Self) {
        self.seen.merge(&other.seen);
        self.least.merge(&other.least);
    }
}

/// How the generator's threads were kept from running, in one span of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Delays {
    /// Time in which threads could have run and had no processor; of all threads
    /// together.
    pub waited: Duration,
    /// Time in which threads did not run although they neither slept nor waited for a
    /// processor: they were stopped, by a signal, a quota or a hypervisor.
    pub stopped: Duration,
    /// The longest time that an answer may have waited to be read.
    pub longest: Duration,
}

impl Delays {
    /// Adds those of other threads or of another time.
    pub fn merge(&mut self, other: &Self) {
        self.waited += other.waited;
        self.stopped += other.stopped;
        self.longest = self.longest.max(other.longest);
    }
}
