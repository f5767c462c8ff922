//! What this machine can tell apart. A latency below the floor says something about the
//! machine and nothing about a target; so the floor is measured once, kept, and shown
//! beside results.

mod analysis;
mod gaps;
mod keep;
mod ping_pong;
mod timer;

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use lab_load::summary::Floor;
use measure::{Clock, CpuTimes};
use thiserror::Error;

pub use keep::{FloorError, keep, recall};

/// Why the floor could not be measured or kept.
#[derive(Debug, Error)]
pub enum CalibrateError {
    /// The system refused something that a measurement needs.
    #[error("measure this machine: {doing}: {found}")]
    Measure {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        found: io::Error,
    },
    /// There is no folder to keep it in.
    #[error(
        "keep the floor of this machine: neither XDG_STATE_HOME nor HOME is set to an absolute path; set one"
    )]
    NoFolder,
    /// The file could not be written.
    #[error("keep the floor of this machine in {}: {found}", path.display())]
    Keep {
        /// The file or its folder.
        path: PathBuf,
        /// What the system said.
        found: io::Error,
    },
}

/// The floor of this machine, if it was measured in the last thirty days; [`recall`]
/// says why not.
pub fn stored() -> Option<Floor> {
    recall().ok()
}

/// Measures this machine for about `length`; at least half a second, or there is too
/// little to see.
///
/// Times are taken one after the other, so that none disturbs another: the clock, a
/// ping-pong sleeping and one spinning, timers, gaps. Steal is counted over all of it.
///
/// # Errors
/// When the system refuses a thread, a socket or a timer.
pub fn measure(length: Duration) -> Result<Floor, CalibrateError> {
    let length = length.max(Duration::from_millis(500));
    let measured_unix_ns = Clock::start().origin_unix_ns();
    let times_before = CpuTimes::now();
    let clock = clock_cost(length / 50);
    let sleeping = analysis::two_quantiles(ping_pong::sleeping(length / 4)?);
    let spinning = analysis::two_quantiles(ping_pong::spinning(length / 4)?);
    let timer = analysis::two_quantiles(timer::lateness(length / 5)?);
    let gaps = gaps::on_each_processor(length * 7 / 25)?;
    Ok(Floor {
        measured_unix_ns,
        ping_pong_p50: sleeping.0,
        ping_pong_p99: sleeping.1,
        ping_pong_spin_p50: spinning.0,
        timer_p50: timer.0,
        timer_p99: timer.1,
        longest_gap: gaps.longest.as_secs_f64(),
        gap_share: gaps.share(),
        steal: CpuTimes::now().share_stolen_since(&times_before),
        clock,
    })
}

/// Seconds for one reading of the clock: the median over batches, so that a gap in one
/// of them does not count.
fn clock_cost(length: Duration) -> f64 {
    const BATCH: u32 = 1000;
    let begin = Instant::now();
    let mut costs = Vec::new();
    while costs.is_empty() || begin.elapsed() < length {
        let before = Instant::now();
        for _ in 0..BATCH {
            std::hint::black_box(Instant::now());
        }
        costs.push(before.elapsed() / BATCH);
    }
    analysis::two_quantiles(costs).0
}
