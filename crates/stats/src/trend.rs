//! Whether a series goes on growing or falling.

use crate::{autocorrelation, independent_values, mean, student_quantile};

/// Fewest values that say something of a trend.
const FEWEST: usize = 10;
/// Fewest independent ones that they are taken to be worth, however alike neighbours are: one more
/// than a line has parameters. Its interval is then so wide that only what stays near its line has a trend.
const INDEPENDENT: f64 = 3.0;

/// The slope of a series for each step, with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Least squares.
    pub slope: f64,
    /// Ends of the interval.
    pub low: f64,
    /// See `low`.
    pub high: f64,
}

/// The straight line of least squares through a series of equal steps, and the interval of
/// its slope at a confidence. Neighbours that are alike count as fewer values: the
/// residuals are taken for a process whose values depend on the one before, and the number
/// of values is that of as many independent ones (Santer et al., "Statistical
/// significance of trends and trend differences in layer-average atmospheric temperature
/// time series", 2000), the correlation corrected for its bias in short series.
///
/// `None` with fewer than ten values or when one is not finite.
#[must_use]
pub fn trend(values: &[f64], confidence: f64) -> Option<Trend> {
    let n = values.len() as f64;
    if values.len() < FEWEST || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let (centre, level) = ((n - 1.0) / 2.0, mean(values)?);
    let along = |at: usize| at as f64 - centre;
    let spread: f64 = (0..values.len()).map(|at| along(at) * along(at)).sum();
    let together = values.iter().enumerate();
    let slope = together
        .map(|(at, value)| along(at) * (value - level))
        .sum::<f64>()
        / spread;
    let residuals: Vec<f64> = values
        .iter()
        .enumerate()
        .map(|(at, value)| value - level - slope * along(at))
        .collect();
    let squares: f64 = residuals.iter().map(|residual| residual * residual).sum();
    if squares <= 1e-18 * level * level * n {
        let (low, high) = (slope, slope);
        return Some(Trend { slope, low, high });
    }
    let independent = independent_values(values.len(), autocorrelation(&residuals)?);
    let independent = independent.max(INDEPENDENT);
    let error = (squares / (independent - 2.0) / spread).sqrt();
    let reach = error * student_quantile(0.5 + confidence / 2.0, independent - 2.0);
    Some(Trend {
        slope,
        low: slope - reach,
        high: slope + reach,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix;

    /// A series around `slope * step` whose noise depends on the one before by `alike`.
    fn series(seed: u64, n: usize, slope: f64, alike: f64) -> Vec<f64> {
        let mut random = SplitMix::new(seed);
        let mut noise = random.normal();
        let fresh = (1.0 - alike * alike).sqrt();
        (0..n)
            .map(|step| {
                noise = alike * noise + fresh * random.normal();
                100.0 + slope * step as f64 + noise
            })
            .collect()
    }

    #[test]
    fn a_line_is_its_own_slope() {
        let line: Vec<f64> = (0..20).map(|step| 3.0 + 0.5 * f64::from(step)).collect();
        let found = trend(&line, 0.95).unwrap();
        assert!((found.slope - 0.5).abs() < 1e-9 && found.high - found.low < 1e-6);
        assert_eq!(trend(&line[..9], 0.95), None);
        assert_eq!(trend(&[f64::NAN; 20], 0.95), None);
        let flat = trend(&[7.0; 30], 0.95).unwrap();
        assert!(flat.slope.abs() < 1e-12);
    }

    #[test]
    fn the_interval_holds_the_slope_whatever_neighbours_have_in_common() {
        for alike in [0.0, 0.4, 0.7] {
            for n in [15, 30, 100] {
                let missed = (0..400).filter(|seed| {
                    let values = series(*seed, n, 0.1, alike);
                    let found = trend(&values, 0.95);
                    found.is_some_and(|found| found.low > 0.1 || found.high < 0.1)
                });
                let missed = missed.count();
                assert!(missed <= 50, "{missed} of 400 at {alike}, {n}");
            }
        }
    }
}
