//! Whether more requests fail in B than in A.
//!
//! Who fails is in no latency: a side whose slow requests run out of time looks fast. So
//! failures are compared before latencies, and have to pass two tests. The first is
//! Fisher's exact test ("Statistical Methods for Research Workers", section 21.02): could
//! chance spread the failures over requests like that? The second is whether the runs agree:
//! failures come in bursts, and one bad run is not yet a bad side.

use serde::Serialize;
use stats::larger_by_chance;

use super::{CONFIDENT, Estimate, FEWEST_RUNS, Run, Verdict};

/// From this chance on, one-sided, a difference may well be none.
const POSSIBLE: f64 = 0.1;

/// How shares of failed requests differ.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Failing {
    /// Share of A's requests that failed, 0 to 1.
    pub a_share: f64,
    /// The same of B.
    pub b_share: f64,
    /// How likely so large a difference in this direction is by chance alone.
    pub by_chance: f64,
    /// Mean difference of the shares of runs, B less A, lies here with 95 % confidence;
    /// `None`: there are fewer than three runs of each side.
    pub interval: Option<(f64, f64)>,
    /// What that means.
    pub verdict: Verdict,
}

impl Failing {
    /// Of runs that are neighbours in time; `None`: a side has no requests.
    pub(super) fn of(a: &[Run], b: &[Run]) -> Option<Self> {
        let (all_a, all_b) = (counted(a), counted(b));
        let (a_share, b_share) = (share(all_a)?, share(all_b)?);
        let is_more = b_share > a_share;
        let by_chance = match is_more {
            true => larger_by_chance(all_a, all_b),
            false => larger_by_chance(all_b, all_a),
        };
        let runs = of_runs(a, b);
        let agree = runs.as_ref().is_none_or(Estimate::excludes_zero);
        let verdict = if by_chance < 1.0 - CONFIDENT && agree {
            match is_more {
                true => Verdict::Worse,
                false => Verdict::Better,
            }
        } else if is_more && by_chance < POSSIBLE {
            Verdict::PossiblyWorse
        } else {
            Verdict::NoDifferenceResolvable
        };
        Some(Self {
            a_share,
            b_share,
            by_chance,
            interval: runs.map(|runs| runs.interval()),
            verdict,
        })
    }
}

/// The mean difference over pairs of runs; `None`: too few of them.
fn of_runs(a: &[Run], b: &[Run]) -> Option<Estimate> {
    let share = |run: &Run| share(counted(std::slice::from_ref(run)));
    let pairs = a.iter().zip(b);
    let differences: Vec<f64> = pairs
        .filter_map(|(a, b)| Some(share(b)? - share(a)?))
        .collect();
    match differences.len() < FEWEST_RUNS {
        true => None,
        false => Estimate::of(&differences),
    }
}

/// Requests of a side that failed, and all of them.
fn counted(runs: &[Run]) -> (u64, u64) {
    let failed: u64 = runs.iter().map(Run::failed).sum();
    let succeeded: u64 = runs.iter().map(Run::succeeded).sum();
    (failed, failed + succeeded)
}

fn share((failed, requests): (u64, u64)) -> Option<f64> {
    (requests > 0).then(|| failed as f64 / requests as f64)
}
