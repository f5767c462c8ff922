//! The three verdicts, and what they rest on.

use serde::{Deserialize, Serialize};
use stats::{HodgesLehmann, nearest_rank, normal_quantile};

use crate::Direction;

/// Whether a metric, or a gate of several, is worse than the limit allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Worse beyond chance, and by more than the limit.
    Worse,
    /// By less than the limit, if at all.
    NotWorse,
    /// Neither can be said.
    CannotTell,
}

impl Verdict {
    /// "worse", "not worse" or "cannot tell".
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::NotWorse => "not worse",
            Self::CannotTell => "cannot tell",
        }
    }
}

/// By how much the new program is worse, as shares of the base: 0.05 is 5 % worse, -0.05 is
/// 5 % better.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The estimate of Hodges and Lehmann.
    pub worse_by_share: f64,
    /// Lower end of its interval; `None`: too few runs for one.
    pub low_share: Option<f64>,
    /// Upper end.
    pub high_share: Option<f64>,
}

/// What would settle a verdict of "cannot tell"; each alone would.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Needs {
    /// About so many pairs (or runs of each group) in all, should the effect stay as it
    /// is estimated; without an interval, so many that there is one. `None`: the effect is so near to
    /// the limit, or the noise so large, that no reasonable number helps.
    pub runs: Option<usize>,
    /// The noise of these runs as a share of what it is.
    pub noise_share: Option<f64>,
    /// The smallest limit of which these runs would have said "not worse"; `None`: no limit below
    /// 100 % would do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_share: Option<f64>,
}

/// The chance that a verdict errs, half of it to either side, unless a gate's settings say
/// otherwise.
pub(crate) const ALPHA: f64 = 0.05;

/// How likely what is told as detectable is seen, unless a gate's settings say otherwise.
pub(crate) const POWER: f64 = 0.8;

/// More than so many times the runs that there are is no advice.
const RUNS_FACTOR_MOST: f64 = 20.0;

/// More runs than this of either side are not taken.
const RUNS_MOST: usize = 1_000;

/// Logarithms that are equal but for what arithmetic leaves of them: 105 is 5 % more than 100.
const EQUAL: f64 = 1e-9;

/// A limit is below 100 %, also as it is told.
const LIMIT_MOST: f64 = 0.99;

/// How the ends of an interval are chosen, and with which power an effect shall be seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tails {
    /// The chance that the true effect lies below the lower end.
    pub(crate) low: f64,
    /// The chance that it lies above the upper end.
    pub(crate) high: f64,
    /// How likely an effect as large as "detectable" shall be seen.
    pub(crate) power: f64,
}

/// What runs say about a metric, in logarithms of the ratio of new to base, oriented so that
/// above zero is worse.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Evidence {
    pub(crate) estimate: f64,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    /// The standard error that the width of the interval stands for.
    error: Option<f64>,
    /// The smallest slowdown that is shown to be one with the power.
    pub(crate) detectable: Option<f64>,
    reach: Reach,
}

/// How many standard errors lie between what is estimated and what is said of it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Reach {
    /// To the upper end of the interval.
    end: f64,
    /// To a slowdown that is shown to be one with the power. Among several metrics the lower end is
    /// farther away than the upper one.
    seen: f64,
    /// To the lower end.
    slower: f64,
}

impl Evidence {
    pub(crate) fn of(found: &HodgesLehmann, tails: Tails) -> Self {
        let (low, high) = (found.low(tails.low), found.high(tails.high));
        let slower = -normal_quantile(tails.low);
        let reach = Reach {
            end: -normal_quantile(tails.high),
            seen: slower + normal_quantile(tails.power),
            slower,
        };
        let width = high.zip(low).map(|(high, low)| high - low);
        // From the ranks and not from the deviation: one outlier makes that arbitrarily large.
        let error = width.map(|width| width / (reach.end + reach.slower));
        Self {
            estimate: found.estimate(),
            low,
            high,
            error,
            detectable: error.map(|error| reach.seen * error),
            reach,
        }
    }

    /// Whether there is a slowdown at all, beyond chance.
    pub(crate) fn slower(&self) -> bool {
        self.low.is_some_and(|low| low > 0.0)
    }

    /// Whether the estimate is more than it may be; `limit` is a logarithm as well.
    pub(crate) fn above(&self, limit: f64) -> bool {
        self.estimate > limit + EQUAL
    }

    /// `limit` is a logarithm as well.
    pub(crate) fn verdict(&self, limit: f64) -> Verdict {
        if self.slower() && self.above(limit) {
            return Verdict::Worse;
        }
        let exact = self.error.is_some_and(|error| error <= EQUAL);
        let most = if exact { limit + EQUAL } else { limit };
        let below = self.high.is_some_and(|high| high < most);
        let better = self.high.is_some_and(|high| high < 0.0);
        let seen = self
            .detectable
            .is_some_and(|detectable| detectable <= limit);
        match below && (seen || better) {
            true => Verdict::NotWorse,
            false => Verdict::CannotTell,
        }
    }

    pub(crate) fn effect(&self, direction: Direction) -> Effect {
        let share = |worse_by: f64| direction.share(worse_by);
        Effect {
            worse_by_share: share(self.estimate),
            low_share: self.low.map(share),
            high_share: self.high.map(share),
        }
    }

    /// What would settle it, with `runs` there are and `runs_least` that an interval takes;
    /// `None` where there is no noise.
    pub(crate) fn needs(
        &self,
        limit: f64,
        runs: usize,
        runs_least: usize,
        direction: Direction,
    ) -> Option<Needs> {
        let Some(error) = self.error else {
            return Some(Needs::of_runs(runs_least.max(runs + 1)));
        };
        if error <= 0.0 {
            return None;
        }
        let Reach { end, seen, slower } = self.reach;
        let enough = match self.estimate > limit {
            true => self.estimate / slower,
            false => ((limit - self.estimate) / end).min(limit / seen),
        };
        let noise = enough / error;
        let factor = noise.powi(-2);
        let reachable = factor.is_finite() && factor <= RUNS_FACTOR_MOST;
        let more = || ((runs as f64 * factor).ceil() as usize).max(runs + 1);
        let smallest = direction.share(self.high?.max(seen * error));
        Some(Needs {
            runs: reachable.then(more).filter(|runs| *runs <= RUNS_MOST),
            noise_share: reachable.then_some(noise.min(1.0)),
            limit_share: Some(smallest).filter(|share| *share <= LIMIT_MOST),
        })
    }
}

impl Needs {
    /// Nothing but more of them.
    pub(crate) fn of_runs(runs: usize) -> Self {
        Self {
            runs: Some(runs),
            noise_share: None,
            limit_share: None,
        }
    }
}

/// The lower of two in the middle.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    nearest_rank(&sorted, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(values: &[f64]) -> Evidence {
        evidence_among(1, values)
    }

    /// Of one of several metrics, none of which is shown to be slower yet.
    fn evidence_among(metrics: u32, values: &[f64]) -> Evidence {
        let tails = Tails {
            low: 0.025 / f64::from(metrics),
            high: 0.025,
            power: 0.8,
        };
        Evidence::of(&HodgesLehmann::of_one(values).unwrap(), tails)
    }

    #[test]
    fn each_verdict_has_its_case() {
        let around = |centre: f64, spread: f64| -> Vec<f64> {
            (0..21)
                .map(|at| centre + spread * (f64::from(at) - 10.0) / 10.0)
                .collect()
        };
        assert_eq!(evidence(&around(0.06, 0.02)).verdict(0.03), Verdict::Worse);
        assert_eq!(
            evidence(&around(0.0, 0.02)).verdict(0.03),
            Verdict::NotWorse
        );
        assert_eq!(
            evidence(&around(0.0, 0.2)).verdict(0.03),
            Verdict::CannotTell
        );
        // Slower beyond doubt, by less than the limit.
        let little = evidence(&around(0.02, 0.005));
        assert!(little.slower());
        assert_eq!(little.verdict(0.03), Verdict::NotWorse);
        // Much better, with noise in which the limit alone could not have been seen.
        assert_eq!(
            evidence(&around(-0.5, 0.2)).verdict(0.03),
            Verdict::NotWorse
        );
        assert_eq!(evidence(&[0.0; 3]).verdict(0.03), Verdict::CannotTell);
        assert_eq!(evidence(&[0.0; 9]).verdict(0.03), Verdict::NotWorse);
    }

    #[test]
    fn what_is_detectable_is_that_of_the_formula() {
        let mut random = stats::SplitMix::new(1);
        let mut sum = 0.0;
        for _ in 0..400 {
            let values: Vec<f64> = (0..24).map(|_| random.normal()).collect();
            sum += evidence(&values).detectable.unwrap();
        }
        // Wilcoxon's test needs 5 % more values than Student's.
        let reach = stats::student_quantile(0.975, 23.0) + stats::student_quantile(0.8, 23.0);
        let (mean, formula) = (sum / 400.0, reach * (1.05_f64 / 24.0).sqrt());
        assert!((mean / formula - 1.0).abs() < 0.05, "{mean} {formula}");
    }

    /// Of slowdowns as large as is told, four in five are shown, whatever else is gated.
    #[test]
    fn what_is_detectable_is_seen_as_often_as_is_said() {
        let mut random = stats::SplitMix::new(3);
        let mut sample =
            |slower: f64| -> Vec<f64> { (0..40).map(|_| slower + random.normal()).collect() };
        for metrics in [1, 2, 7] {
            let told = (0..200).map(|_| evidence_among(metrics, &sample(0.0)).detectable.unwrap());
            let told: Vec<f64> = told.collect();
            let mean = stats::mean(&told).unwrap();
            let seen = (0..600).filter(|_| evidence_among(metrics, &sample(mean)).slower());
            let share = seen.count() as f64 / 600.0;
            assert!((0.74..0.86).contains(&share), "{share} of {metrics}");
        }
    }

    #[test]
    fn as_many_runs_as_are_needed_settle_it() {
        let mut random = stats::SplitMix::new(2);
        let mut sample =
            |runs: usize| -> Vec<f64> { (0..runs).map(|_| 0.05 * random.normal()).collect() };
        let (mut settled, mut asked) = (0, 0);
        for _ in 0..300 {
            let found = evidence(&sample(12));
            let needs = found.needs(0.03, 12, 6, Direction::LowerIsBetter).unwrap();
            let Some(runs) = needs
                .runs
                .filter(|_| found.verdict(0.03) == Verdict::CannotTell)
            else {
                continue;
            };
            asked += 1;
            settled += u32::from(evidence(&sample(runs)).verdict(0.03) != Verdict::CannotTell);
        }
        // An estimate from twelve runs is often wrong; more often than not it helps.
        assert!(asked > 200 && settled * 2 > asked, "{settled} of {asked}");
    }
}
