//! The fast alarm: whether the latest runs left the level of those before them.

use stats::{cusum, level_and_spread, mean, variance};

use super::drift::Slope;
use super::exact::at_least;
use super::steps::Steps;
use super::{FastAlarm, HistorySettings, Series};
use crate::verdict::median;

/// Runs in which an excursion is looked for.
const LATEST: usize = 10;

/// An excursion is none that the runs before, were they to come again, would show this often.
const CHANCE_MOST: f64 = 0.001;

/// Fewer runs than this before them know no level.
const LEVEL_LEAST: usize = 20;

/// Of the cumulative sums, in deviations.
const SLACK: f64 = 0.5;
const LIMIT: f64 = 7.0;

/// A value counts as so many deviations at most: one is no alarm, two may be.
const OUTLIER: f64 = 4.5;

/// None while the history is too short since its last step, or drifts: a drift has no level.
pub(super) fn latest(
    series: &Series,
    steps: &Steps,
    slopes: &[Slope],
    settings: &HistorySettings,
) -> Option<FastAlarm> {
    let points = series.scaled.len();
    let from = steps.at.last().copied().unwrap_or(0);
    let split = points
        .checked_sub(LATEST)
        .filter(|split| *split >= from + LEVEL_LEAST)?;
    if slopes.iter().any(|slope| slope.to > split) {
        return None;
    }
    let before = &series.scaled[from..split];
    let (level, spread) = level_and_spread(before)?;
    // Where most values are equal, what the others add to the spread counts; where all are, the
    // smallest change that matters stands for it.
    let (level, spread) = match spread > series.nothing(level, settings.least_share) {
        true => (level, spread),
        false => {
            let unit = if series.logarithmic { 1.0 } else { level.abs() };
            let least = settings.least_share * unit;
            (mean(before)?, variance(before)?.sqrt().max(least))
        }
    };
    // Runs that resemble each other go astray together.
    let deviation = spread / steps.worth(series, settings).sqrt();
    let latest = series.scaled[split..].iter();
    // One outlier alone is none.
    let latest: Vec<f64> = latest
        .map(|value| value.clamp(level - OUTLIER * deviation, level + OUTLIER * deviation))
        .collect();
    let alarm = cusum(&latest, level, deviation, SLACK, LIMIT)?;
    let difference = if alarm.up { 1.0 } else { -1.0 };
    let since = &series.scaled[split + alarm.since..];
    let apart = (median(since)? - level) * difference;
    let away = |values: &[f64]| {
        let far = |value: &&f64| (**value - level) * difference >= apart / 2.0;
        values.iter().filter(far).count()
    };
    let usual = away(before) as f64 / before.len() as f64;
    // Outliers and second modes do not show in the spread.
    if apart <= 0.0 || at_least(away(since), since.len(), usual) > CHANCE_MOST {
        return None;
    }
    let mut found = FastAlarm {
        index: series.places[split + alarm.at],
        since_index: series.places[split + alarm.since],
        before: median(&series.values[from..split])?,
        since: median(&series.values[split + alarm.since..])?,
        worse: series.worse(difference),
        sentence: String::new(),
    };
    found.sentence = found.in_words(series.unit);
    Some(found)
}
