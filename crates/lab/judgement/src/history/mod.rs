//! A metric over many commits: where it changed, where it drifts, and whether it just moved.

mod alarm;
mod drift;
mod exact;
mod steps;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::{Direction, Metric, Unit};
use steps::Steps;

/// Latest runs that are looked at; older ones are history.
const POINTS_MOST: usize = 5000;

/// How changes are found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HistorySettings {
    /// Runs that are looked at together; windows overlap by half. At least 10.
    pub window: usize,
    /// The largest p-value of a change's t-test. It is divided by the length of the history
    /// where that is stricter than the false alarms allowed for.
    pub p_most: f64,
    /// Candidates are found with this many times the p-value, and held to it afterwards.
    pub weak_factor: f64,
    /// How often a history without a change may have one, about.
    pub false_share: f64,
    /// A smaller change is not one.
    pub least_share: f64,
    /// Runs that must follow the first one after a change before it is certain.
    pub points_after: usize,
}

impl Default for HistorySettings {
    /// As Hunter has them (Fleming et al. 2023), and fewer than one false change in a hundred
    /// histories, some of whose runs are outliers.
    fn default() -> Self {
        Self {
            window: 50,
            p_most: 0.001,
            weak_factor: 10.0,
            false_share: 0.003,
            least_share: 0.01,
            points_after: 2,
        }
    }
}

/// What a history says. Indices are those of the values that were given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryJudgement {
    /// Values that were looked at.
    pub points: usize,
    /// Values that are missing, not finite or older than the 5,000 latest.
    pub skipped: usize,
    /// Where it changed, in order of time.
    pub changes: Vec<Change>,
    /// Where it went on growing or falling.
    pub drifts: Vec<Drift>,
    /// Whether the latest runs left the level before them; a change may be confirmed later.
    pub alarm: Option<FastAlarm>,
}

/// A step from one level to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The first value after it.
    pub index: usize,
    /// The first value after it may be as early as this, with 95 % confidence.
    pub earliest_index: usize,
    /// And as late as this.
    pub latest_index: usize,
    /// Median since the change before.
    pub before: f64,
    /// Median until the next change.
    pub after: f64,
    /// How many times as large it is since; `None` when values are not all above 0.
    pub ratio: Option<f64>,
    /// Lower end of its 95 % interval.
    pub ratio_low: Option<f64>,
    /// Upper end.
    pub ratio_high: Option<f64>,
    /// Whether it is a change for the worse.
    pub worse: bool,
    /// Of the t-test between both levels.
    pub p_value: f64,
    /// Whether enough runs have followed: nobody is to be alarmed before.
    pub certain: bool,
    /// All of this in a sentence.
    pub sentence: String,
}

/// Growth or decline over many runs, at no single one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// The first value of it.
    pub first_index: usize,
    /// The last.
    pub last_index: usize,
    /// How many times as large the end is as the start, along a line; `None` when values are
    /// not all above 0.
    pub ratio: Option<f64>,
    /// Lower end of its 99.9 % interval.
    pub ratio_low: Option<f64>,
    /// Upper end.
    pub ratio_high: Option<f64>,
    /// Whether it drifts for the worse.
    pub worse: bool,
    /// All of this in a sentence.
    pub sentence: String,
}

/// The latest runs lie elsewhere than those before them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FastAlarm {
    /// The value with which the alarm was raised.
    pub index: usize,
    /// The first value of the excursion.
    pub since_index: usize,
    /// Median before.
    pub before: f64,
    /// Median since.
    pub since: f64,
    /// Whether it moved for the worse.
    pub worse: bool,
    /// All of this in a sentence.
    pub sentence: String,
}

/// Judges the values of a metric in order of time; `None`, and what is not finite, is skipped.
#[must_use]
pub fn judge_history(
    metric: &Metric,
    values: &[Option<f64>],
    settings: &HistorySettings,
) -> HistoryJudgement {
    let finite = values.iter().enumerate();
    let finite = finite.filter_map(|(at, value)| Some((at, value.filter(|v| v.is_finite())?)));
    let (mut places, mut values_used): (Vec<usize>, Vec<f64>) = finite.unzip();
    let old = places.len().saturating_sub(POINTS_MOST);
    places.drain(..old);
    values_used.drain(..old);
    let series = Series::of(places, values_used, metric);
    let steps = Steps::find(&series, settings);
    let (steps, drifts) = drift::separate(&series, steps, settings);
    HistoryJudgement {
        points: series.values.len(),
        skipped: values.len() - series.values.len(),
        alarm: alarm::latest(&series, &steps, &drifts, settings),
        changes: steps.changes(&series, settings),
        drifts: drifts.iter().map(|drift| drift.describe(&series)).collect(),
    }
}

/// Usable values, and what is computed with instead of them.
struct Series {
    /// Index of each in what was given.
    places: Vec<usize>,
    values: Vec<f64>,
    /// Logarithms if all are above 0, the values themselves else.
    scaled: Vec<f64>,
    /// The same, with the neighbourhood in the place of outliers.
    smooth: Vec<f64>,
    logarithmic: bool,
    /// Whether most values equal the one before them, as counts do.
    mostly_equal: bool,
    direction: Direction,
    unit: Unit,
}

impl Series {
    fn of(places: Vec<usize>, values: Vec<f64>, metric: &Metric) -> Self {
        let logarithmic = values.iter().all(|value| *value > 0.0);
        let scaled: Vec<f64> = match logarithmic {
            true => values.iter().map(|value| value.ln()).collect(),
            false => values.clone(),
        };
        Self {
            smooth: steps::without_outliers(&scaled),
            mostly_equal: steps::usual_move(&scaled) <= 0.0,
            places,
            values,
            scaled,
            logarithmic,
            direction: metric.direction,
            unit: metric.unit,
        }
    }

    /// Whether a difference of scaled values is one for the worse.
    fn worse(&self, difference: f64) -> bool {
        match self.direction {
            Direction::LowerIsBetter => difference > 0.0,
            Direction::HigherIsBetter => difference < 0.0,
        }
    }

    /// Whether a difference from a level on is at least as large as a share.
    fn matters(&self, difference: f64, level: f64, least_share: f64) -> bool {
        match self.logarithmic {
            true => difference.abs().exp_m1() >= least_share,
            false => difference.abs() >= least_share * level.abs(),
        }
    }

    /// A difference of scaled values as a ratio.
    fn ratio(&self, difference: f64) -> Option<f64> {
        self.logarithmic.then(|| difference.exp())
    }
}
