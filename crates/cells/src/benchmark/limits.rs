//! What the generator is bounded by, and what it did to the numbers.

use std::time::Duration;

use measure::CpuTimes;
use serde::Serialize;

use super::Times;

/// What the generator itself did while the reps' bulk loops went on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Generator {
    /// Most calls that it had in flight at once.
    pub in_flight: u32,
    /// How late turns began.
    pub late: Times,
    /// How long calls waited for a place among those in flight, which is part of no call's time.
    pub waited: Times,
    /// Processors that it used, in the mean.
    pub cores: f64,
    /// Share of the machine's processor time in which nobody had anything to do, 0 to 1.
    pub idle: f64,
    /// Calls that were sent again because no answer came.
    pub resent: u64,
}

/// The use of processors since a moment.
pub(super) struct ProcessorUse {
    at: std::time::Instant,
    used: Duration,
    machine: CpuTimes,
}

impl ProcessorUse {
    /// From now on.
    pub(super) fn now(processor_time: &impl Fn() -> Duration) -> Self {
        Self {
            at: std::time::Instant::now(),
            used: processor_time(),
            machine: CpuTimes::now(),
        }
    }

    /// Processors used in the mean, and the machine's idle share.
    pub(super) fn used(&self, processor_time: &impl Fn() -> Duration) -> (f64, f64) {
        let used = processor_time().saturating_sub(self.used).as_secs_f64();
        let passed = self.at.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
        (
            used / passed,
            CpuTimes::now().share_idle_since(&self.machine),
        )
    }
}
