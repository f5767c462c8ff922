//! What is usual before a fault, and how far noise goes.

use stats::{
    autocorrelation, independent_values, level_and_spread, normal_quantile, robust_slope, trend,
};

use super::RecoveryError;

/// Fewest values of a window that says what is usual.
pub(super) const FEWEST: usize = 10;

/// Half the band, in standard deviations and as a share of the reference.
const DEVIATIONS: f64 = 3.0;
const SHARE: f64 = 0.01;

/// How often noise alone may be taken for an effect of a fault. Two rules share it, and each
/// is a bound that noise of other shapes than the normal one must not break: hence a third of the one in
/// a hundred that is promised.
const FALSE_CLAIMS: f64 = 0.003;

/// A trend counts when its interval of this confidence excludes 0.
const TREND_CONFIDENCE: f64 = 0.999;

/// How many times as far as the farthest value before the fault two neighbours must lie, for noise with tails
/// longer than the normal distribution's; and by how much of the reference where nothing ever changed.
const BEYOND_FARTHEST: f64 = 2.0;
const BEYOND_CONSTANT: f64 = 0.05;

/// Relative standard error of a deviation that was taken from the median absolute deviation of
/// one normal value; that of n values is this over √n.
const SPREAD_ERROR: f64 = 1.17;

/// What is usual.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reference {
    level: f64,
    slope: f64,
    /// Standard error of the slope.
    slope_error: f64,
    centre_s: f64,
    /// Standard deviation of one value.
    pub(super) spread: f64,
    /// Correlation of neighbours, and as how many independent ones the values count.
    alike: f64,
    independent: f64,
    half_band: f64,
    /// The largest distance of a value before the fault.
    farthest: f64,
}

/// From where on something is no noise.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// So many neighbouring values are beyond the band.
    pub(super) run: usize,
    /// Two neighbours are so far from the reference; `None`: nothing says how far noise goes.
    pub(super) once: Option<f64>,
}

impl Reference {
    /// Of the values before a fault. `until_s` is how far the reference must reach.
    pub(super) fn of(hold: &[(f64, f64)], until_s: f64) -> Result<Self, RecoveryError> {
        let values: Vec<f64> = hold.iter().map(|(_, value)| *value).collect();
        let short = RecoveryError::ShortHold {
            found: values.len(),
            needed: FEWEST,
        };
        let (Some((first, _)), Some((last, _))) = (hold.first(), hold.last()) else {
            return Err(short);
        };
        if hold.len() < FEWEST {
            return Err(short);
        }
        let (level, spread) = level_and_spread(&values).ok_or(short)?;
        let centre_s = (first + last) / 2.0;
        let flat = Self {
            level,
            slope: 0.0,
            slope_error: 0.0,
            centre_s,
            spread,
            alike: 0.0,
            independent: 0.0,
            half_band: half_band(level, spread),
            farthest: 0.0,
        };
        let reference = flat
            .with_trend(hold, &values, last - first, until_s)
            .unwrap_or(flat);
        let deviations: Vec<f64> = hold
            .iter()
            .map(|(at, value)| value - reference.at(*at))
            .collect();
        let seen = autocorrelation(&deviations).unwrap_or(0.0);
        // Neighbours may be more alike than they seemed to be, by one and a half standard errors.
        let count = deviations.len() as f64;
        let alike = (seen + 1.5 * ((1.0 - seen * seen) / count).sqrt()).min(0.98);
        Ok(Self {
            alike: seen,
            independent: independent_values(deviations.len(), alike).max(3.0),
            farthest: deviations
                .iter()
                .fold(0.0, |far, value| far.max(value.abs())),
            ..reference
        })
    }

    /// The same with a slope, where there is one that matters.
    fn with_trend(
        self,
        hold: &[(f64, f64)],
        values: &[f64],
        length_s: f64,
        until_s: f64,
    ) -> Option<Self> {
        let found = trend(values, TREND_CONFIDENCE)?;
        let step_s = length_s / (values.len() - 1) as f64;
        if step_s <= 0.0 || (found.low <= 0.0 && found.high >= 0.0) {
            return None;
        }
        let slope = robust_slope(hold)?;
        let level_of = |(at, value): &(f64, f64)| value - slope * (at - self.centre_s);
        let levelled: Vec<f64> = hold.iter().map(level_of).collect();
        let (level, spread) = level_and_spread(&levelled)?;
        let half_band = half_band(level, spread);
        if (slope * (until_s - self.centre_s)).abs() < half_band {
            return None;
        }
        Some(Self {
            level,
            slope,
            slope_error: (found.high - found.low)
                / 2.0
                / step_s
                / normal_quantile(0.5 + TREND_CONFIDENCE / 2.0),
            spread,
            half_band,
            ..self
        })
    }

    pub(super) fn at(&self, at_s: f64) -> f64 {
        self.level + self.slope * (at_s - self.centre_s)
    }

    /// Half the band at an instant; wider the further a trend is carried on.
    pub(super) fn band(&self, at_s: f64) -> f64 {
        self.half_band + self.carried_on(at_s)
    }

    /// By how much everything is wider at an instant, as a trend is not known exactly.
    pub(super) fn carried_on(&self, at_s: f64) -> f64 {
        DEVIATIONS * self.slope_error * (at_s - self.centre_s).abs()
    }

    pub(super) fn slope(&self) -> f64 {
        self.slope
    }

    /// Standard error of the mean of so many neighbouring values' distances from the
    /// reference around an instant: theirs, and that of the reference.
    pub(super) fn noise_of_mean(&self, count: usize, at_s: f64) -> f64 {
        let independent = independent_values(count, self.alike).max(1.0);
        let own = self.spread / independent.sqrt();
        // A median of normal values is known as well as the mean of two thirds of them.
        let level = self.spread * (1.57 / self.independent).sqrt();
        let carried_on = self.slope_error * (at_s - self.centre_s);
        (own * own + level * level + carried_on * carried_on).sqrt()
    }

    /// Limits that noise in so many values passes hardly ever.
    pub(super) fn limits(&self, count: usize) -> Limits {
        let count = count.max(1) as f64;
        if self.spread <= 0.0 {
            return self.limits_of_constant(count);
        }
        // The deviation may be larger than it seemed in the few values before the fault.
        let error = SPREAD_ERROR / self.independent.sqrt();
        let larger = 1.0 + 2.0 * error;
        let tested = normal_quantile(1.0 - FALSE_CLAIMS / count / 2.0);
        let once = (tested * larger * self.spread)
            .max(BEYOND_FARTHEST * self.farthest)
            .max(1.5 * self.half_band);
        // A first-order autoregression that is beyond a level by chance lies a third of a
        // deviation beyond it, and the next value is beyond it too with probability `again`.
        let level = (self.half_band / self.spread / larger).max(1.0);
        let alike = (self.alike + (1.0 - self.alike.powi(2)) * error).clamp(0.0, 0.98);
        let beyond = above(level);
        let next = (level - (level + 1.0 / (level + 1.0)) * alike) / (1.0 - alike * alike).sqrt();
        let again = above(next).max(beyond).min(0.97);
        let further = (FALSE_CLAIMS / (2.0 * beyond * count)).ln() / again.ln();
        let run = 1.0 + further.ceil().clamp(1.0, 1e6);
        Limits {
            run: run as usize,
            once: Some(once),
        }
    }

    /// Of a window in which nothing ever changed, which says only how seldom something does:
    /// in less than one of as many values as it has.
    fn limits_of_constant(&self, count: f64) -> Limits {
        let seldom = (self.independent + 1.0).max(2.0).ln();
        let run = ((count / FALSE_CLAIMS).ln() / seldom).ceil().max(1.0);
        let once = (BEYOND_CONSTANT * self.level.abs()).max(BEYOND_FARTHEST * self.farthest);
        Limits {
            run: run as usize,
            once: (once > 0.0).then_some(once),
        }
    }
}

fn half_band(level: f64, spread: f64) -> f64 {
    (DEVIATIONS * spread).max(SHARE * level.abs())
}

/// Probability that a standard normal number lies above `z`: a bound that is close from 1 on
/// (Abramowitz and Stegun, 7.1.13).
fn above(z: f64) -> f64 {
    let density = |z: f64| (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt();
    if z >= 0.0 {
        2.0 * density(z) / (z + (z * z + 8.0 / std::f64::consts::PI).sqrt())
    } else {
        1.0 - above(-z)
    }
}
