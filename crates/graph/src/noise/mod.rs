//! The floor of this machine: what work and wake-ups meet when nothing of ours disturbs
//! them. To be shown beside every spread of latencies.
//!
//! There are two floors. **Gaps** hit what runs: a thread that never sleeps is not running
//! for a moment, by a tick of the kernel, an interrupt, other work, the hypervisor. Work of
//! 10 ms meets those. **Lateness** hits what waits: a timer ends later than it was set to,
//! and every hop of a request pays such a wake-up. A request without work meets only these.

mod facts;
mod gaps;
mod late;
mod text;

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use measure::CpuTimes;
use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::work::WorkError;

pub use facts::{Facts, Limits, Load, Pressure};
pub use gaps::{BOUNDS_NS, GAP_NS, Gaps};
pub use late::Lateness;

/// The floor of a machine at a moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// When it was measured, in seconds since 1970.
    pub measured_unix_s: u64,
    /// What each processor that may be used kept from a thread that never sleeps.
    pub gaps: Vec<Gaps>,
    /// How late sleeps ended, for each length.
    pub lateness: Vec<Lateness>,
    /// Share of the processors' time that the hypervisor gave to others meanwhile, 0 to 1;
    /// 0 also where the guest is not told.
    pub steal: f64,
    /// What may explain it.
    pub facts: Facts,
}

impl Noise {
    /// Measures for about `length` (at least 200 ms), with a thread on each processor that
    /// this process may use: first gaps, then lateness, so that neither disturbs the other.
    /// What runs beside counts as noise.
    ///
    /// # Errors
    /// When the system gives no thread or no timer.
    pub fn measure(length: Duration) -> Result<Self, WorkError> {
        let length = length.max(Duration::from_millis(200));
        let facts = Facts::read(Path::new("/"));
        let before = CpuTimes::now();
        let gaps = gaps::on_each_processor(length / 2)?;
        let lateness = late::of_sleeps(length / 2)?;
        let steal = CpuTimes::now().share_stolen_since(&before);
        let measured = SystemTime::now().duration_since(UNIX_EPOCH);
        Ok(Self {
            measured_unix_s: measured.map_or(0, |time| time.as_secs()),
            gaps,
            lateness,
            steal,
            facts,
        })
    }

    /// Gaps of all processors together.
    pub fn all_gaps(&self) -> Gaps {
        let mut all = Gaps::default();
        for gaps in &self.gaps {
            all.add(gaps);
        }
        all
    }

    /// What work of `length` loses to gaps, in the mean.
    pub fn lost_in(&self, length: Nanos) -> Nanos {
        self.summary().lost_in(length)
    }

    /// What an analysis of requests needs of it.
    pub fn summary(&self) -> traces::analysis::Noise {
        let gaps = self.all_gaps();
        let late = self.lateness.first();
        traces::analysis::Noise {
            lost_share: gaps.lost_share(),
            gaps_per_second: gaps.per_second(),
            longest_gap_ns: gaps.longest_ns,
            wake_p50_ns: late.map_or(0, |late| late.p50_ns),
            wake_p99_ns: late.map_or(0, |late| late.p99_ns),
        }
    }

    /// The probability that work of `length` meets a gap of at least `gap`, 0 to 1. Gaps are
    /// taken to come independently of each other; `gap` counts as the bound of
    /// [`BOUNDS_NS`] at or above it.
    pub fn chance_of_gap(&self, length: Nanos, gap: Nanos) -> f64 {
        let all = self.all_gaps();
        match all.seen_ns {
            0 => 0.0,
            seen => {
                let rate = all.at_least(gap) as f64 / seen as f64;
                1.0 - (-rate * length as f64).exp()
            }
        }
    }

    /// What makes this machine a bad place to measure on, and what to do about it. Each is
    /// a sentence or two.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.facts.warnings();
        let lost = self.all_gaps().lost_share();
        if lost > 0.01 {
            warnings.push(format!(
                "Gaps take {} of the time: other work runs here, or the kernel's ticks are expensive. Measure when it is quiet.",
                units::show_share(lost)
            ));
        }
        if self.steal > 0.01 {
            warnings.push(format!(
                "The hypervisor gave {} of the processors' time to others. Measure elsewhere, or take the best of many rounds.",
                units::show_share(self.steal)
            ));
        }
        warnings
    }
}

/// Does something on every processor that this process may use, on all at once, by threads
/// that are pinned.
fn on_each_processor<T: Send + 'static>(
    act: impl Fn(u32) -> Result<T, WorkError> + Clone + Send + 'static,
) -> Result<Vec<T>, WorkError> {
    let each = wire::floor::on_each_processor("noise", move |cpu, pinned| {
        pinned.map_err(WorkError::system("pin to a processor"))?;
        act(cpu)
    });
    let each = each.map_err(|(doing, found)| WorkError::system(doing)(found))?;
    each.into_iter().collect()
}

#[cfg(test)]
mod tests;
