//! Steps: found in windows by E-divisive, then held to what is left of each beside its
//! neighbours (Fleming et al., "Hunter: using change point detection to hunt for performance
//! regressions", 2023).

use stats::{HodgesLehmann, divisive, independent_values, mean, t_test};

use super::{Change, HistorySettings, Series};
use crate::verdict::median;

/// Fewer values than this on either side are no level.
const LEAST: usize = 3;

/// Values that an outlier's neighbourhood has: with three outliers in a hundred values, four of
/// seven are rare.
const NEIGHBOURS: usize = 7;

/// The same at either end, where three new values must be able to be a level.
const NEIGHBOURS_AT_ENDS: usize = 5;

/// Deviations from the neighbourhood beyond which a value is an outlier.
const OUTLIER: f64 = 5.0;

/// Outliers that a series may have whose values mostly equal the one before: a share of them, and
/// as many always.
const OUTLIERS_MOST_SHARE: f64 = 0.03;
const OUTLIERS_MOST_ALWAYS: f64 = 3.0;

/// By so much may the logarithm of the likelihood, doubled, be below its maximum for a place
/// to be held possible at 95 %: `(1 - exp(-x / 2))^2 = 0.95` (Siegmund, "Confidence sets in
/// change-point problems", 1988).
const LIKELIHOOD_95: f64 = 7.35;

/// Steps of a series, in order: the first value after each.
#[derive(Debug, Clone)]
pub(super) struct Steps {
    pub(super) at: Vec<usize>,
}

impl Steps {
    pub(super) fn find(series: &Series, settings: &HistorySettings) -> Self {
        let mut steps = Self {
            at: candidates(&series.smooth, settings),
        };
        let points = series.smooth.len().max(1) as f64;
        let p_most = settings.p_most.min(settings.false_share / points);
        steps.settle(&series.smooth);
        // The weakest goes first, as its neighbours gain what it leaves.
        while let Some((weakest, p)) = steps.weakest(series, settings) {
            let small = (0..steps.at.len()).find(|step| {
                let (before, after) = steps.levels(*step, &series.smooth);
                !series.matters(after - before, before, settings.least_share)
            });
            let Some(step) = Some(weakest).filter(|_| p > p_most).or(small) else {
                break;
            };
            steps.at.remove(step);
            steps.settle(&series.smooth);
        }
        steps
    }

    /// Bounds of all levels: 0, each step, the end.
    pub(super) fn bounds(&self, points: usize) -> Vec<usize> {
        let first = std::iter::once(0);
        first
            .chain(self.at.iter().copied())
            .chain([points])
            .collect()
    }

    fn sides<'a>(&self, step: usize, values: &'a [f64]) -> (&'a [f64], &'a [f64]) {
        let bounds = self.bounds(values.len());
        let (from, at, to) = (bounds[step], bounds[step + 1], bounds[step + 2]);
        (&values[from..at], &values[at..to])
    }

    fn levels(&self, step: usize, values: &[f64]) -> (f64, f64) {
        let (before, after) = self.sides(step, values);
        (
            mean(before).unwrap_or_default(),
            mean(after).unwrap_or_default(),
        )
    }

    fn p_value(&self, step: usize, series: &Series, worth: f64, settings: &HistorySettings) -> f64 {
        let (before, after) = self.sides(step, &series.smooth);
        if before.len().min(after.len()) < LEAST {
            return 1.0;
        }
        let bounds = self.bounds(series.smooth.len());
        let tested = || t_test(before, after, worth).unwrap_or(1.0);
        match series.by_counts(&bounds, step) {
            Some(counted)
                if series.mostly_equal && series.flat(before, after, settings.least_share) =>
            {
                counted
            }
            Some(counted) => counted.max(tested()),
            None => tested(),
        }
    }

    fn weakest(&self, series: &Series, settings: &HistorySettings) -> Option<(usize, f64)> {
        let worth = self.worth(series, settings);
        let each =
            (0..self.at.len()).map(|step| (step, self.p_value(step, series, worth, settings)));
        each.max_by(|one, other| one.1.total_cmp(&other.1))
    }

    /// As what share of itself a value counts beside those that resemble it: neighbours'
    /// correlation around their levels, corrected for its bias in short series. What is too little
    /// to be noise resembles nothing.
    pub(super) fn worth(&self, series: &Series, settings: &HistorySettings) -> f64 {
        let values = &series.smooth;
        let levels = self.bounds(values.len());
        let parts = levels.windows(2).map(|two| &values[two[0]..two[1]]);
        let (mut squares, mut products) = (0.0, 0.0);
        for part in parts.clone() {
            let level = mean(part).unwrap_or_default();
            let away = part
                .windows(2)
                .map(|two| (two[0] - level) * (two[1] - level));
            products += away.sum::<f64>();
            squares += part
                .iter()
                .map(|value| (value - level).powi(2))
                .sum::<f64>();
        }
        let n = values.len() as f64;
        let largest = values
            .iter()
            .fold(0.0, |most: f64, value| most.max(value.abs()));
        if (squares / n).sqrt() <= series.nothing(largest, settings.least_share) {
            return 1.0;
        }
        let seen = products / squares;
        let alike = (seen + parts.count() as f64 * (1.0 + 4.0 * seen) / n).clamp(0.0, 0.95);
        independent_values(1, alike)
    }

    /// Moves each step to where it fits best between its neighbours.
    fn settle(&mut self, values: &[f64]) {
        for step in 0..self.at.len() {
            let bounds = self.bounds(values.len());
            let fits = fits(values, bounds[step], bounds[step + 2]);
            if let Some(best) = fits.into_iter().min_by(|a, b| a.1.total_cmp(&b.1)) {
                self.at[step] = best.0;
            }
        }
    }

    pub(super) fn changes(&self, series: &Series, settings: &HistorySettings) -> Vec<Change> {
        let worth = self.worth(series, settings);
        let each = 0..self.at.len();
        each.map(|step| self.change(step, series, worth, settings))
            .collect()
    }

    fn change(
        &self,
        step: usize,
        series: &Series,
        worth: f64,
        settings: &HistorySettings,
    ) -> Change {
        let at = self.at[step];
        let (before, after) = self.sides(step, &series.scaled);
        let found = HodgesLehmann::of_two(before, after);
        let shift = found.as_ref().map_or(0.0, HodgesLehmann::estimate);
        // The interval is that of independent values: it widens with what they are worth.
        let widened = |end: f64| shift + (end - shift) / worth.sqrt();
        let low = found
            .as_ref()
            .and_then(|found| found.low(0.025))
            .map(widened);
        let high = found
            .as_ref()
            .and_then(|found| found.high(0.025))
            .map(widened);
        // Where most values are what they were before, the estimate sees nothing of what the others do.
        let way = match shift == 0.0 {
            true => {
                let (before, after) = self.levels(step, &series.smooth);
                after - before
            }
            false => shift,
        };
        let (earliest, latest) = self.places(step, &series.smooth, worth);
        let (old, new) = self.sides(step, &series.values);
        let mut change = Change {
            index: series.places[at],
            earliest_index: series.places[earliest],
            latest_index: series.places[latest],
            before: median(old).unwrap_or_default(),
            after: median(new).unwrap_or_default(),
            ratio: series.ratio(shift),
            ratio_low: low.and_then(|low| series.ratio(low)),
            ratio_high: high.and_then(|high| series.ratio(high)),
            worse: series.worse(way),
            p_value: self.p_value(step, series, worth, settings),
            certain: series.values.len() - at > settings.points_after,
            sentence: String::new(),
        };
        change.sentence = change.in_words(series.unit);
        change
    }

    /// The first and the last place that the step may well have.
    fn places(&self, step: usize, values: &[f64], worth: f64) -> (usize, usize) {
        let bounds = self.bounds(values.len());
        let fits = fits(values, bounds[step], bounds[step + 2]);
        let best = fits.iter().map(|fit| fit.1).fold(f64::INFINITY, f64::min);
        let spread = best / (bounds[step + 2] - bounds[step]) as f64;
        let possible = fits
            .iter()
            .filter(|fit| fit.1 - best <= LIKELIHOOD_95 * spread / worth);
        let possible = possible.map(|fit| fit.0);
        let at = self.at[step];
        (
            possible.clone().min().unwrap_or(at),
            possible.max().unwrap_or(at),
        )
    }
}

/// Sums of squares around two levels for each place of a step between `from` and `to` that leaves
/// levels on both sides.
fn fits(values: &[f64], from: usize, to: usize) -> Vec<(usize, f64)> {
    let part = &values[from..to];
    // Around their mean, so that sums of squares keep their digits.
    let centre = mean(part).unwrap_or_default();
    let away = || part.iter().map(|value| value - centre);
    let (all, squares): (f64, f64) = (away().sum(), away().map(|value| value * value).sum());
    let mut before = 0.0;
    let each = away().enumerate().map(|(at, value)| {
        before += value;
        let (n, m) = ((at + 1) as f64, (part.len() - at - 1) as f64);
        let left = squares - before * before / n - (all - before).powi(2) / m;
        (from + at + 1, left.max(0.0))
    });
    each.filter(|(at, _)| at - from >= LEAST && to - at >= LEAST)
        .collect()
}

/// Candidates of all windows.
fn candidates(values: &[f64], settings: &HistorySettings) -> Vec<usize> {
    let window = settings.window.max(10);
    let p_weak = (settings.p_most * settings.weak_factor).min(0.5);
    let (mut found, mut start) = (Vec::new(), 0);
    while start < values.len() {
        let end = (start + window).min(values.len());
        let changes = divisive(&values[start..end], p_weak);
        let last = changes.last().map_or(0, |at| start + at);
        found.extend(changes.iter().map(|at| start + at));
        start = last.max(start + window / 2);
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Values that lie far from the median of those around them are replaced by it (Hampel's
/// filter): up to three outliers in a row are no step, and a step stays where it is. Where most
/// values equal the one before them, all that differ from their neighbourhood lie far from it.
pub(super) fn without_outliers(values: &[f64]) -> Vec<f64> {
    // The median move of independent normal values is 0.954 of their deviation.
    let deviation = usual_move(values) / 0.954;
    // One that the values on either side agree about does not reach into the median of a step
    // near it.
    let agreed: Vec<f64> = (0..values.len())
        .map(|at| match (at.checked_sub(1), values.get(at + 1)) {
            (Some(last), Some(next)) if deviation <= 0.0 && values[last] == *next => *next,
            _ => values[at],
        })
        .collect();
    let around = |at: usize| {
        let half = NEIGHBOURS / 2;
        let inside = at >= half && at + half < values.len();
        let length = if inside {
            NEIGHBOURS
        } else {
            NEIGHBOURS_AT_ENDS
        };
        let from = at.saturating_sub(length / 2);
        let from = from.min(values.len().saturating_sub(length));
        median(&agreed[from..(from + length).min(values.len())])
    };
    let each = values.iter().enumerate();
    let smooth: Vec<f64> = each
        .map(|(at, value)| match around(at) {
            Some(middle) if (value - middle).abs() > OUTLIER * deviation => middle,
            _ => *value,
        })
        .collect();
    // Without a usual move to measure by, what is too frequent is no outlier but the noise.
    let replaced = smooth.iter().zip(values).filter(|(a, b)| a != b).count();
    let most = (values.len() as f64 * OUTLIERS_MOST_SHARE).max(OUTLIERS_MOST_ALWAYS);
    match deviation > 0.0 || replaced as f64 <= most {
        true => smooth,
        false => values.to_vec(),
    }
}

/// By how much a value usually differs from the one before it: the median.
pub(super) fn usual_move(values: &[f64]) -> f64 {
    let moves = values.windows(2).map(|two| (two[1] - two[0]).abs());
    median(&moves.collect::<Vec<f64>>()).unwrap_or_default()
}
