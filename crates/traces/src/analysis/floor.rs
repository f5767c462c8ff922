//! The machine's noise beside what was seen.

use serde::Serialize;

use super::cause::Cause;
use super::report::CauseTime;
use crate::Nanos;

/// What a machine takes when nothing of ours disturbs it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Noise {
    /// Share of the time that a thread which never sleeps does not run, 0 to 1.
    pub lost_share: f64,
    /// How often such gaps come, for each processor.
    pub gaps_per_second: f64,
    /// The longest of them.
    pub longest_gap_ns: Nanos,
    /// How late a short sleep ends, half of the time.
    pub wake_p50_ns: Nanos,
    /// How late all but one in a hundred end.
    pub wake_p99_ns: Nanos,
}

impl Noise {
    /// What work of `length` loses to gaps, in the mean.
    pub fn lost_in(&self, length: Nanos) -> Nanos {
        // Work goes on for longer than it takes, and that meets gaps too.
        (length as f64 * self.lost_share / (1.0 - self.lost_share).max(0.01)) as Nanos
    }
}

/// The machine's noise beside what requests lost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Floor {
    /// The machine's.
    #[serde(flatten)]
    pub noise: Noise,
    /// What the work of a request loses to gaps, in the mean.
    pub expected_ns: f64,
    /// What it lost.
    pub stolen_ns: f64,
}

impl Floor {
    pub(super) fn of(noise: &Noise, causes: &[CauseTime]) -> Self {
        let mean = |cause| {
            let found = causes.iter().find(|one| one.cause == cause);
            found.map_or(0.0, |one| one.figures.mean_ns)
        };
        Self {
            noise: *noise,
            expected_ns: noise.lost_in(mean(Cause::Cpu) as Nanos) as f64,
            stolen_ns: mean(Cause::Stolen),
        }
    }
}
