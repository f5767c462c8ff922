//! Whether steps are none but a slope.

use stats::{mean, trend};

use super::steps::Steps;
use super::{Drift, HistorySettings, Series};

/// How sure a slope must be.
const CONFIDENCE: f64 = 0.999;

/// Fewer values on a slope are a step that took a while.
const LEAST: usize = 20;

/// As how many parameters a step beside a slope counts: it is the one of many places at which the
/// slope fits worst.
const BESIDE: f64 = 4.0;

/// Values on either side of a step that show whether it is sudden.
const NEAR: usize = 7;

/// Places at which a slope may begin or end; between them lie as many values each.
const KNOTS: usize = 60;

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
/// straight line, or one between two levels, explains better are one, and so is a level that
/// goes on growing or falling.
pub(super) fn separate(
    series: &Series,
    mut steps: Steps,
    settings: &HistorySettings,
) -> (Steps, Vec<Slope>) {
    let values = &series.smooth;
    let bounds = steps.bounds(values.len());
    let level = |part: usize| mean(&values[bounds[part]..bounds[part + 1]]).unwrap_or_default();
    let rises: Vec<bool> = (0..steps.at.len())
        .map(|step| level(step + 1) > level(step))
        .collect();
    let worth = steps.worth(series, settings);
    let mut found = StepClassifier {
        series,
        settings,
        worth,
        kept: Vec::new(),
        slopes: Vec::new(),
    };
    let mut first = 0;
    for run in rises.chunk_by(|one, next| one == next) {
        let last = first + run.len();
        found.classify(&bounds[first..=last + 1], false);
        first = last;
    }
    let StepClassifier {
        kept, mut slopes, ..
    } = found;
    steps.at = kept;
    for two in steps.bounds(values.len()).windows(2) {
        let taken = slopes
            .iter()
            .any(|slope| slope.from < two[1] && slope.to > two[0]);
        if !taken {
            let whole = slope(series, two[0], two[1], settings);
            slopes.extend(whole.or_else(|| within(series, two[0], two[1], worth, settings)));
        }
    }
    slopes.sort_by_key(|slope| slope.from);
    (steps, slopes)
}

/// What steps have turned out to be so far.
struct StepClassifier<'a> {
    series: &'a Series,
    settings: &'a HistorySettings,
    worth: f64,
    kept: Vec<usize>,
    slopes: Vec<Slope>,
}

impl StepClassifier<'_> {
    /// Of steps between these bounds, all in one direction, those neighbours become a slope that
    /// together with what stays explains the values best (Schwarz's criterion: each parameter has
    /// its price). `beside` a slope, which need not be straight, a step has to be one also to those
    /// who only see its neighbourhood.
    fn classify(&mut self, bounds: &[usize], beside: bool) {
        let parts = bounds.len() - 1;
        let values = &self.series.smooth;
        let n = (bounds[parts] - bounds[0]) as f64 * self.worth;
        let around: Vec<f64> = bounds
            .windows(2)
            .map(|two| squares_around_mean(&values[two[0]..two[1]]))
            .collect();
        let all: f64 = around.iter().sum();
        // A level each, a place each step.
        let mut best = (price(n, all, (2 * parts - 1) as f64), None);
        for first in 0..parts {
            for last in first + 2..=parts {
                let rest = all - around[first..last].iter().sum::<f64>();
                let begin = bounds[first];
                for ramp in Ramps::of(&values[begin..bounds[last]]) {
                    let beside = BESIDE * (parts - (last - first)) as f64;
                    let found = price(n, rest + ramp.squares, beside + ramp.parameters);
                    if found >= best.0 {
                        continue;
                    }
                    let (from, to) = (begin + ramp.from, begin + ramp.to);
                    if let Some(slope) = slope(self.series, from, to, self.settings) {
                        best = (found, Some((first, last, slope)));
                    }
                }
            }
        }
        let Some((first, last, slope)) = best.1 else {
            let steps = bounds.windows(3);
            let steps = steps.filter(|three| !beside || is_sudden(values, three));
            self.kept.extend(steps.map(|three| three[1]));
            return;
        };
        // The levels at the slope's ends are those of the steps beside it, too.
        self.classify(&bounds[..=first + 1], true);
        self.slopes.push(slope);
        self.classify(&bounds[last - 1..], true);
    }
}

/// Whether the nearest values on both sides of a step are at least half as far apart as the levels.
fn is_sudden(values: &[f64], bounds: &[usize]) -> bool {
    let (before, after) = (&values[bounds[0]..bounds[1]], &values[bounds[1]..bounds[2]]);
    let near = (
        &before[before.len().saturating_sub(NEAR)..],
        &after[..after.len().min(NEAR)],
    );
    let apart = |a: &[f64], b: &[f64]| mean(b).zip(mean(a)).map_or(0.0, |(b, a)| b - a);
    apart(near.0, near.1) / apart(before, after) >= 0.5
}

fn squares_around_mean(values: &[f64]) -> f64 {
    let level = mean(values).unwrap_or_default();
    values.iter().map(|value| (value - level).powi(2)).sum()
}

/// A level, a straight line to another one, and that.
#[derive(Debug, Clone, Copy)]
struct Ramp {
    /// The first value of the line.
    from: usize,
    /// The first one behind it.
    to: usize,
    /// Sum of squares around all three.
    squares: f64,
    /// Two levels, and a place for each end that is not an end of the values.
    parameters: f64,
}

/// Sums over the beginning of a series, so that any ramp is fitted in one look.
struct Ramps {
    /// Of values, from their mean, and of these times their places.
    sums: Vec<(f64, f64)>,
    squares: f64,
}

impl Ramps {
    /// The best for each of so many beginnings and ends that the work stays bounded.
    fn of(values: &[f64]) -> Vec<Ramp> {
        let centre = mean(values).unwrap_or_default();
        let mut sums = vec![(0.0, 0.0)];
        let (mut all, mut placed) = (0.0, 0.0);
        for (at, value) in values.iter().enumerate() {
            all += value - centre;
            placed += (value - centre) * at as f64;
            sums.push((all, placed));
        }
        let ramps = Self {
            sums,
            squares: squares_around_mean(values),
        };
        let Some(last) = values.len().checked_sub(1) else {
            return Vec::new();
        };
        let knots = last.min(KNOTS);
        let knot = |of: usize| of * last / knots.max(1);
        let pairs = (0..knots).flat_map(|a| (a + 1..=knots).map(move |b| (a, b)));
        pairs
            .map(|(a, b)| (knot(a), knot(b)))
            .filter(|(a, b)| b - a + 1 >= LEAST)
            .map(|(a, b)| ramps.between(a, b))
            .collect()
    }

    /// The one whose line goes from the value at `a` to that at `b`, by least squares.
    fn between(&self, a: usize, b: usize) -> Ramp {
        let n = self.sums.len() - 1;
        let length = (b - a) as f64;
        let ((sum_a, placed_a), (sum_b, placed_b)) = (self.sums[a], self.sums[b]);
        // The share of the way that each value has gone: its sum, that of its square, and with values.
        let behind = (n - b) as f64;
        let way = (length - 1.0) / 2.0 + behind;
        let squared = (length - 1.0) * (2.0 * length - 1.0) / (6.0 * length) + behind;
        let with =
            (placed_b - placed_a - a as f64 * (sum_b - sum_a)) / length + (self.sums[n].0 - sum_b);
        let spread = squared - way * way / n as f64;
        let explained = if spread > 0.0 {
            with * with / spread
        } else {
            0.0
        };
        let ends = usize::from(a > 0) + usize::from(b + 1 < n);
        Ramp {
            from: a,
            to: b + 1,
            squares: (self.squares - explained).max(0.0),
            parameters: 2.0 + ends as f64,
        }
    }
}

/// A slope between two levels that explains values better than one level does. Where there is little
/// noise no step is left of it: what is around its levels resembles its neighbours.
fn within(
    series: &Series,
    from: usize,
    to: usize,
    worth: f64,
    settings: &HistorySettings,
) -> Option<Slope> {
    let values = &series.smooth[from..to];
    let n = values.len() as f64 * worth;
    let ramps = Ramps::of(values).into_iter();
    let prices = ramps.map(|ramp| (price(n, ramp.squares, ramp.parameters), ramp));
    let (best, ramp) = prices.min_by(|one, other| one.0.total_cmp(&other.0))?;
    if best >= price(n, squares_around_mean(values), 1.0) {
        return None;
    }
    slope(series, from + ramp.from, from + ramp.to, settings)
}

/// What so many values' sum of squares is worth with so many parameters (Schwarz's criterion).
fn price(n: f64, squares: f64, parameters: f64) -> f64 {
    n * squares.max(f64::MIN_POSITIVE).ln() + parameters * n.max(2.0).ln()
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

impl Slope {
    pub(super) fn describe(&self, series: &Series) -> Drift {
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
