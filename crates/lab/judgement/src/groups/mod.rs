//! Runs that were not made in pairs: two groups of them, or one beside another.

use serde::{Deserialize, Serialize};
use stats::{HodgesLehmann, autocorrelation_time, batch_means, mann_whitney};

use crate::pairs::{is_negative, usable};
use crate::verdict::{ALPHA, Effect, Evidence, Needs, POWER, Tails, Verdict, median};
use crate::{Direction, Metric};

/// A share of the smallest value that a zero counts as.
const ZERO_SHARE: f64 = 1e-6;

/// A batch is this many times as long as values resemble each other (Flyvbjerg and Petersen,
/// "Error estimates on averages of correlated data", 1989).
const BATCH_TIMES: f64 = 10.0;

/// Fewer batches than this of a run show nothing.
const BATCHES_LEAST: usize = 8;

/// Batches of a long run are longer, so that there are no more than about this.
const BATCHES_MOST: usize = 200;

/// Latest runs of a group that are looked at: memory grows with the product of both.
const RUNS_MOST: usize = 1000;

/// Fewer runs of each than this have no interval at 95 %: all of one group above all of the other
/// has a chance of one in 70 with four, and one in 20 with three.
const RUNS_LEAST: usize = 4;

/// What a comparison can be held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparisonBasis {
    /// Several runs of each, not made in random pairs: what the machine did in between counts as
    /// a difference.
    Unpaired,
    /// One run of each: only the two runs are compared, not the programs.
    WithinRun,
    /// Nothing can be concluded.
    Nothing,
}

/// What two groups of runs, or two runs, say of a metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Which.
    #[serde(flatten)]
    pub metric: Metric,
    /// The share of the base that it may be worse by.
    pub limit_share: f64,
    /// What can be said, under the licence.
    pub verdict: Verdict,
    /// What it can be held to.
    pub licence: ComparisonBasis,
    /// Runs, or batches of one run, of the base that count.
    pub base_count: usize,
    /// The same of the new program.
    pub new_count: usize,
    /// Runs or values of the base without a usable value.
    pub base_missing: usize,
    /// The same of the new program.
    pub new_missing: usize,
    /// Values of both that are below zero; they are missing, for there is no ratio of them.
    #[serde(default)]
    pub negative: usize,
    /// Values of a batch, of one run beside one.
    pub batch_length: Option<usize>,
    /// Median of the base.
    pub base_median: Option<f64>,
    /// Median of the new program.
    pub new_median: Option<f64>,
    /// By how much it is worse.
    pub effect: Option<Effect>,
    /// The smallest slowdown that as many and as noisy values would have shown.
    pub detectable_share: Option<f64>,
    /// Of the test of Mann and Whitney.
    pub mann_whitney_p_value: Option<f64>,
    /// What would settle it, when nothing can be told.
    pub needs: Option<Needs>,
    /// All of this in a sentence, its licence in another.
    pub sentence: String,
}

/// Compares two groups of runs, one value a run; negative values and those that are not finite
/// count as missing. Of each group, the last 1,000 are looked at.
#[must_use]
pub fn compare_groups(metric: &Metric, limit_share: f64, base: &[f64], new: &[f64]) -> Comparison {
    let latest = |runs: &[f64]| runs[runs.len().saturating_sub(RUNS_MOST)..].to_vec();
    let (base, new) = (latest(base), latest(new));
    compare(metric, limit_share, ComparisonBasis::Unpaired, &base, &new).finish()
}

/// Compares one run with another by values from within them (one for each second, say, in
/// order of time). Neighbours resemble each other, so what counts are means of batches that are
/// ten times as long as they do; with fewer than eight such batches in either run nothing is
/// concluded.
#[must_use]
pub fn compare_runs(metric: &Metric, limit_share: f64, base: &[f64], new: &[f64]) -> Comparison {
    let (base_used, new_used) = (used(base), used(new));
    let times = [&base_used, &new_used].map(|values| autocorrelation_time(values).unwrap_or(1.0));
    let longest = base_used.len().max(new_used.len());
    let alike = (BATCH_TIMES * times[0].max(times[1])).ceil() as usize;
    let length = alike.max(longest / BATCHES_MOST);
    let (base_batches, new_batches) = (
        batch_means(&base_used, length),
        batch_means(&new_used, length),
    );
    let licence = match base_batches.len().min(new_batches.len()) >= BATCHES_LEAST {
        true => ComparisonBasis::WithinRun,
        false => ComparisonBasis::Nothing,
    };
    let found = compare(metric, limit_share, licence, &base_batches, &new_batches);
    let comparison = Comparison {
        base_missing: base.len() - base_used.len(),
        new_missing: new.len() - new_used.len(),
        negative: negative(base, new),
        batch_length: Some(length),
        ..found
    };
    comparison.finish()
}

fn compare(
    metric: &Metric,
    limit_share: f64,
    licence: ComparisonBasis,
    base: &[f64],
    new: &[f64],
) -> Comparison {
    let direction = metric.direction;
    let limit = direction.logarithm(limit_share);
    let (base_badness, new_badness) = badness(direction, base, new);
    let shift = match licence {
        ComparisonBasis::Nothing => None,
        ComparisonBasis::Unpaired | ComparisonBasis::WithinRun => {
            HodgesLehmann::of_two(&base_badness, &new_badness)
        }
    };
    let tails = Tails {
        low: ALPHA / 2.0,
        high: ALPHA / 2.0,
        power: POWER,
    };
    let evidence = shift.map(|shift| Evidence::of(&shift, tails));
    let fewer = base_badness.len().min(new_badness.len());
    let detectable = evidence.and_then(|evidence| evidence.detectable);
    let test = evidence.and_then(|_| mann_whitney(&base_badness, &new_badness));
    Comparison {
        metric: metric.clone(),
        limit_share,
        verdict: evidence.map_or(Verdict::CannotTell, |evidence| evidence.verdict(limit)),
        licence,
        base_count: base_badness.len(),
        new_count: new_badness.len(),
        base_missing: base.len() - base_badness.len(),
        new_missing: new.len() - new_badness.len(),
        negative: negative(base, new),
        batch_length: None,
        base_median: median(&used(base)),
        new_median: median(&used(new)),
        effect: evidence.map(|evidence| evidence.effect(direction)),
        detectable_share: detectable.map(|worse_by| direction.share(worse_by)),
        mann_whitney_p_value: test.map(|test| test.p_value),
        needs: match evidence {
            Some(evidence) => evidence.needs(limit, fewer, RUNS_LEAST, direction),
            // Parts of one run each are judged by other rules than their number.
            None if licence == ComparisonBasis::Unpaired => Some(Needs::of_runs(RUNS_LEAST)),
            None => None,
        },
        sentence: String::new(),
    }
}

impl Comparison {
    /// What failed more often with the new program is not left out of what it is judged by.
    fn finish(mut self) -> Self {
        if self.verdict == Verdict::NotWorse && self.new_missing > self.base_missing {
            self.verdict = Verdict::CannotTell;
        }
        if self.verdict != Verdict::CannotTell {
            self.needs = None;
        }
        self.sentence = self.in_words();
        self
    }
}

fn negative(base: &[f64], new: &[f64]) -> usize {
    let values = base.iter().chain(new);
    values.filter(|value| is_negative(Some(**value))).count()
}

fn used(values: &[f64]) -> Vec<f64> {
    let values = values.iter().map(|value| usable(Some(*value)));
    values.flatten().collect()
}

/// Logarithms of the usable values of both, above zero is worse. A zero counts as a millionth
/// of the smallest other value.
fn badness(direction: Direction, base: &[f64], new: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let (base, new) = (used(base), used(new));
    let above_zero = base.iter().chain(&new).filter(|value| **value > 0.0);
    let floor = above_zero.copied().fold(f64::INFINITY, f64::min) * ZERO_SHARE;
    // All of them zero: nothing to compare with, and all equal.
    let floor = if floor.is_finite() {
        floor.max(f64::MIN_POSITIVE)
    } else {
        1.0
    };
    let logarithms = |values: Vec<f64>| -> Vec<f64> {
        let floored = values.into_iter().map(|value| value.max(floor));
        floored
            .map(|value| direction.worse_by(1.0, value))
            .collect()
    };
    (logarithms(base), logarithms(new))
}

#[cfg(test)]
mod tests;
