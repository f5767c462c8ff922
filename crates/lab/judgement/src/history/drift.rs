//! Whether steps are none but a slope.

use stats::{mean, trend};

use super::steps::Steps;
use super::{Drift, HistorySettings, Series};

/// How sure a slope must be.
const CONFIDENCE: f64 = 0.999;

/// A slope over values `from..to`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slope {
    pub(super) from: usize,
    pub(super) to: usize,
    /// From the first to the last value, of scaled values.
    change: f64,
    low: f64,
    high: f64,
}

/// Separates steps from slopes: steps one after the other in the same direction that a
/// straight line explains better are one, and so is a level that goes on growing or falling.
pub(super) fn tell_apart(
    series: &Series,
    mut steps: Steps,
    settings: &HistorySettings,
) -> (Steps, Vec<Slope>) {
    let mut slopes: Vec<Slope> = Vec::new();
    let values = &series.smooth;
    let worth = steps.worth(series, settings);
    let bounds = steps.bounds(values.len());
    let level = |part: usize| mean(&values[bounds[part]..bounds[part + 1]]).unwrap_or_default();
    let rises: Vec<bool> = (0..steps.at.len())
        .map(|step| level(step + 1) > level(step))
        .collect();
    let mut kept = Vec::new();
    let mut first = 0;
    for run in rises.chunk_by(|one, next| one == next) {
        let last = first + run.len();
        let levels = &bounds[first..=last + 1];
        let (from, to) = (levels[0], levels[levels.len() - 1]);
        let slope = slope(series, from, to, settings);
        match slope.filter(|_| line_is_better(values, levels, worth)) {
            Some(slope) => slopes.push(slope),
            None => kept.extend_from_slice(&steps.at[first..last]),
        }
        first = last;
    }
    steps.at = kept;
    for two in steps.bounds(values.len()).windows(2) {
        let taken = slopes
            .iter()
            .any(|slope| slope.from < two[1] && slope.to > two[0]);
        if !taken {
            slopes.extend(slope(series, two[0], two[1], settings));
        }
    }
    slopes.sort_by_key(|slope| slope.from);
    (steps, slopes)
}

/// A slope that is none by chance, and large enough to matter.
fn slope(series: &Series, from: usize, to: usize, settings: &HistorySettings) -> Option<Slope> {
    let values = &series.smooth[from..to];
    let found = trend(values, CONFIDENCE)?;
    let runs = (values.len() - 1) as f64;
    let change = found.slope * runs;
    let level = mean(values)?;
    let sure = found.low > 0.0 || found.high < 0.0;
    (sure && series.matters(change, level, settings.least_share)).then_some(Slope {
        from,
        to,
        change,
        low: found.low * runs,
        high: found.high * runs,
    })
}

/// Whether a straight line explains values better than levels between bounds do, each
/// parameter at its price (Schwarz's criterion).
fn line_is_better(values: &[f64], bounds: &[usize], worth: f64) -> bool {
    let (from, to) = (bounds[0], bounds[bounds.len() - 1]);
    let squares_of_levels: f64 = bounds
        .windows(2)
        .map(|two| {
            let part = &values[two[0]..two[1]];
            let level = mean(part).unwrap_or_default();
            part.iter()
                .map(|value| (value - level).powi(2))
                .sum::<f64>()
        })
        .sum();
    let part = &values[from..to];
    let (centre, level) = (
        (part.len() - 1) as f64 / 2.0,
        mean(part).unwrap_or_default(),
    );
    let along = part.iter().enumerate();
    let (mut together, mut spread) = (0.0, 0.0);
    for (at, value) in along {
        let away = at as f64 - centre;
        together += away * (value - level);
        spread += away * away;
    }
    let around: f64 = part.iter().map(|value| (value - level).powi(2)).sum();
    let squares_of_line = around - together * together / spread;
    let n = part.len() as f64 * worth;
    let steps = (bounds.len() - 2) as f64;
    let price = |squares: f64, parameters: f64| {
        n * squares.max(f64::MIN_POSITIVE).ln() + parameters * n.max(2.0).ln()
    };
    // A level each, a place each step.
    price(squares_of_line, 2.0) < price(squares_of_levels, 2.0 * steps + 1.0)
}

impl Slope {
    pub(super) fn told(&self, series: &Series) -> Drift {
        let mut drift = Drift {
            first_index: series.places[self.from],
            last_index: series.places[self.to - 1],
            ratio: series.ratio(self.change),
            ratio_low: series.ratio(self.low),
            ratio_high: series.ratio(self.high),
            worse: series.worse(self.change),
            sentence: String::new(),
        };
        drift.sentence = drift.in_words();
        drift
    }
}
