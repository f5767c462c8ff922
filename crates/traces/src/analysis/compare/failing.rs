//! Whether more requests fail in B than in A.
//!
//! Who fails is in no latency: a side whose slow requests run out of time looks fast. So
//! failures are compared before latencies, and have to pass two tests. The first is
//! Fisher's exact test ("Statistical Methods for Research Workers", section 21.02): could
//! chance spread the failures over requests like that? The second is whether the runs agree:
//! failures come in bursts, and one bad run is not yet a bad side.

use serde::Serialize;

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
        let (all_a, all_b) = (Counted::of(a), Counted::of(b));
        let (a_share, b_share) = (all_a.share()?, all_b.share()?);
        let is_more = b_share > a_share;
        let by_chance = match is_more {
            true => all_b.by_chance(&all_a),
            false => all_a.by_chance(&all_b),
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
    let share = |run: &Run| Counted::of(std::slice::from_ref(run)).share();
    let pairs = a.iter().zip(b);
    let differences: Vec<f64> = pairs
        .filter_map(|(a, b)| Some(share(b)? - share(a)?))
        .collect();
    if differences.len() < FEWEST_RUNS {
        return None;
    }
    let count = differences.len();
    let error = (stats::variance(&differences)? / count as f64).sqrt();
    Some(Estimate::new(stats::mean(&differences)?, error, count))
}

/// Requests of a side, and those of them that failed.
struct Counted {
    failed: u64,
    requests: u64,
}

impl Counted {
    fn of(runs: &[Run]) -> Self {
        let failed = runs.iter().map(Run::failed).sum();
        let succeeded: u64 = runs.iter().map(Run::succeeded).sum();
        Self {
            failed,
            requests: succeeded + failed,
        }
    }

    fn share(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.failed as f64 / self.requests as f64)
    }

    /// How likely at least so many of all failures would be here if they fell on the
    /// requests of both sides by chance: the upper tail of the hypergeometric distribution.
    fn by_chance(&self, other: &Self) -> f64 {
        let all = self.requests + other.requests;
        let failed = self.failed + other.failed;
        let mut here = self.failed;
        let mut term = (ln_choices(failed, here) + ln_choices(all - failed, self.requests - here)
            - ln_choices(all, self.requests))
        .exp();
        let mut sum = term;
        // Each term from the one before it; they only shrink beyond the mean.
        while here < failed.min(self.requests) && term > sum * f64::EPSILON {
            let more = ((failed - here) * (self.requests - here)) as f64;
            let fewer = ((here + 1) * (other.requests - (failed - here) + 1)) as f64;
            term *= more / fewer;
            sum += term;
            here += 1;
        }
        sum.min(1.0)
    }
}

/// The logarithm of the number of ways to choose `some` of `all`.
fn ln_choices(all: u64, some: u64) -> f64 {
    ln_factorial(all) - ln_factorial(some) - ln_factorial(all - some)
}

/// By Stirling's series, to 1e-9 (Abramowitz and Stegun, "Handbook of Mathematical
/// Functions", 6.1.41); small ones as they are.
fn ln_factorial(number: u64) -> f64 {
    if number < 16 {
        return (1..=number).map(|one| (one as f64).ln()).sum();
    }
    let n = number as f64;
    let circle = (std::f64::consts::TAU * n).ln() / 2.0;
    n * n.ln() - n + circle + 1.0 / (12.0 * n) - 1.0 / (360.0 * n.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_that_of_fishers_test() {
        let chance = |(failed, requests), (other_failed, others)| {
            let one = Counted { failed, requests };
            let other = Counted {
                failed: other_failed,
                requests: others,
            };
            one.by_chance(&other)
        };
        // The lady tasting tea: 1 and 17 of 70 ways.
        assert!((chance((4, 4), (0, 4)) - 1.0 / 70.0).abs() < 1e-9);
        assert!((chance((3, 4), (1, 4)) - 17.0 / 70.0).abs() < 1e-9);
        // All of k failures in one of two equal halves: about 2 to the power of -k.
        assert!((chance((1, 750), (0, 750)) - 0.5).abs() < 1e-9);
        assert!((chance((6, 750), (0, 750)) / 0.015_47 - 1.0).abs() < 0.01);
        assert!(chance((72, 750), (0, 750)) < 1e-20);
        for (requests, others) in [(0, 5), (5, 0), (5, 5)] {
            assert!((chance((0, requests), (0, others)) - 1.0).abs() < 1e-9);
        }
        assert!((chance((5, 5), (5, 5)) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn factorials_go_over_into_the_series_without_a_step() {
        let mut sum = 0.0;
        for number in 1..200_u64 {
            sum += (number as f64).ln();
            assert!((ln_factorial(number) - sum).abs() < 1e-8, "{number}");
        }
    }
}
