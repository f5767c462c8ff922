//! The machine's noise beside what was seen.

use serde::Serialize;

use super::cause::Cause;
use super::report::CauseTime;
use crate::Nanos;
use crate::noise::Noise;

/// What the machine takes when nothing of ours disturbs it, beside what requests lost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Floor {
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
    /// What the work of a request loses to gaps, in the mean.
    pub expected_ns: f64,
    /// What it lost.
    pub stolen_ns: f64,
}

impl Floor {
    pub(super) fn of(noise: &Noise, causes: &[CauseTime]) -> Self {
        let gaps = noise.all_gaps();
        let late = noise.lateness.first();
        let mean = |cause| {
            let found = causes.iter().find(|one| one.cause == cause);
            found.map_or(0.0, |one| one.figures.mean_ns)
        };
        Self {
            lost_share: gaps.lost_share(),
            gaps_per_second: gaps.per_second(),
            longest_gap_ns: gaps.longest_ns,
            wake_p50_ns: late.map_or(0, |late| late.p50_ns),
            wake_p99_ns: late.map_or(0, |late| late.p99_ns),
            expected_ns: noise.lost_in(mean(Cause::Cpu) as Nanos) as f64,
            stolen_ns: mean(Cause::Stolen),
        }
    }
}
