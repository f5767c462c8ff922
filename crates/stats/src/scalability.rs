//! The universal scalability law.

use crate::minimise::minimise;
use crate::random::SplitMix;

/// Fewest points with different concurrency.
pub(crate) const FEWEST: usize = 5;
/// Smallest ratio of the largest to the smallest concurrency.
const SPREAD: f64 = 2.0;
/// A peak is told only when a point reaches this share of its concurrency.
const NEAR_PEAK: f64 = 0.7;
/// Resamples of the bootstrap.
const RESAMPLES: usize = 100;
/// What coherency adds to the denominator at the largest concurrency seen, as a share,
/// below which it cannot be told from nothing.
const NOTHING: f64 = 0.01;
/// Smallest coefficient; its logarithm must be finite.
const LEAST: f64 = 1e-12;

/// The law `X(N) = λN / (1 + α(N-1) + βN(N-1))`, fitted (Gunther, "Guerrilla Capacity
/// Planning", 2007).
#[derive(Debug, Clone, PartialEq)]
pub struct Scalability {
    /// Throughput at N = 1.
    pub lambda: f64,
    /// Contention, 0 to 1: the share of work that is serial.
    pub alpha: f64,
    /// Coherency, 0 or above: the cost of agreeing, per pair.
    pub beta: f64,
    /// Root mean square of the relative residuals.
    pub error: f64,
    /// Where throughput peaks, or why that is not told.
    pub scaling: Scaling,
}

/// Where throughput peaks.
#[derive(Debug, Clone, PartialEq)]
pub enum Scaling {
    /// Within reach of the points.
    Peak(Peak),
    /// The best fit peaks at `at`, but no point is beyond 70 % of that: a peak that was
    /// not approached cannot be told.
    NotReached {
        /// Largest concurrency seen.
        seen: f64,
    },
    /// The interval of β touches 0: there may be no peak at all.
    NoPeak {
        /// Largest concurrency seen.
        seen: f64,
    },
}

/// The peak, `N* = √((1-α)/β)`, with an interval from a bootstrap over the points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peak {
    /// Concurrency at the peak.
    pub at: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Throughput there.
    pub throughput: f64,
}

/// Why the law was not fitted.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum TooLittle {
    /// Too few points.
    #[error("{0} points with different concurrency; the law needs {FEWEST}")]
    Points(usize),
    /// Points too close to each other.
    #[error("concurrency from {0:.1} to {1:.1} only; the law needs a range of 1 to {SPREAD}")]
    Range(f64, f64),
}

/// Fits the law to `(concurrency, throughput, weight)` by weighted least squares of
/// the relative error, with α and β in logarithms so that neither is below 0. The peak
/// is told only where data reaches it; see [`Scaling`]. The interval comes from 100
/// resamples of the points, drawn with `random`. Points that are not positive and
/// finite are left out.
///
/// # Errors
/// With fewer than five points of different concurrency, or when they span less than a
/// factor of two.
pub fn scalability(
    points: &[(f64, f64, f64)],
    confidence: f64,
    random: &mut SplitMix,
) -> Result<Scalability, TooLittle> {
    let fine = |value: f64| value.is_finite() && value > 0.0;
    let points: Vec<(f64, f64, f64)> = points
        .iter()
        .copied()
        .filter(|(n, x, weight)| fine(*n) && fine(*x) && fine(*weight))
        .collect();
    let mut levels: Vec<f64> = points.iter().map(|p| p.0).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    let (Some(least), Some(most)) = (levels.first().copied(), levels.last().copied()) else {
        return Err(TooLittle::Points(0));
    };
    if levels.len() < FEWEST {
        return Err(TooLittle::Points(levels.len()));
    }
    if most < least * SPREAD {
        return Err(TooLittle::Range(least, most));
    }

    // Starts on both sides of "no contention" and "no coherency" at the scale of the
    // data; the best of them wins.
    let starts = [0.001, 0.1, 1.0].into_iter().flat_map(|a| {
        [0.001, 0.1, 1.0].map(|b| [(a / most).min(0.5).ln(), (b / (most * most)).ln()])
    });
    let best = starts
        .map(|start| Curve::fit(&points, &start))
        .min_by(|a, b| a.error.total_cmp(&b.error))
        .ok_or(TooLittle::Points(0))?;

    let mut resample = points.clone();
    let mut betas = Vec::with_capacity(RESAMPLES);
    let mut peaks = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        for point in &mut resample {
            *point = points[random.below(points.len())];
        }
        let start = [best.alpha.max(LEAST).ln(), best.beta.max(LEAST).ln()];
        let curve = Curve::fit(&resample, &start);
        betas.push(curve.beta);
        peaks.push(curve.peak());
    }
    betas.sort_by(f64::total_cmp);
    peaks.sort_by(f64::total_cmp);
    let tail = (1.0 - confidence.clamp(0.0, 1.0)) / 2.0;
    let at = |sorted: &[f64], q: f64| crate::nearest_rank(sorted, q).unwrap_or(f64::NAN);
    let share = at(&betas, tail) * most * (most - 1.0) / best.denominator(most);
    let peak = best.peak();
    let scaling = if share.is_nan() || share < NOTHING {
        Scaling::NoPeak { seen: most }
    } else if most < NEAR_PEAK * peak {
        Scaling::NotReached { seen: most }
    } else {
        Scaling::Peak(Peak {
            at: peak,
            low: at(&peaks, tail).min(peak),
            high: at(&peaks, 1.0 - tail).max(peak),
            throughput: best.lambda * peak / best.denominator(peak),
        })
    };
    Ok(Scalability {
        lambda: best.lambda,
        alpha: best.alpha,
        beta: best.beta,
        error: best.error,
        scaling,
    })
}

/// One fitted curve.
struct Curve {
    lambda: f64,
    alpha: f64,
    beta: f64,
    error: f64,
}

impl Curve {
    fn fit(points: &[(f64, f64, f64)], start: &[f64]) -> Self {
        let shape = |x: &[f64]| Self {
            lambda: 1.0,
            alpha: x[0].exp().min(1.0),
            beta: x[1].exp(),
            error: 0.0,
        };
        // For given α and β the best ln λ is the weighted mean of what is left over.
        let residuals = |curve: &Self| -> (f64, f64) {
            let (mut all, mut sum, mut squares) = (0.0, 0.0, 0.0);
            for (n, x, weight) in points {
                let left = (x / n * curve.denominator(*n)).ln();
                all += weight;
                sum += weight * left;
                squares += weight * left * left;
            }
            let mean = sum / all;
            (mean, (squares / all - mean * mean).max(0.0))
        };
        let cost = |x: &[f64]| {
            // Walls keep the simplex where logarithms mean something.
            let outside = x.iter().map(|v| (v - 1.0).max(LEAST.ln() - v).max(0.0));
            residuals(&shape(x)).1 + outside.sum::<f64>()
        };
        let mut curve = shape(&minimise(cost, start, 0.7));
        let (ln_lambda, variance) = residuals(&curve);
        curve.lambda = ln_lambda.exp();
        curve.error = variance.sqrt();
        curve
    }

    fn denominator(&self, n: f64) -> f64 {
        // Below one request in flight the law is a straight line.
        1.0 + self.alpha * (n - 1.0) + self.beta * n * (n - 1.0).max(0.0)
    }

    fn peak(&self) -> f64 {
        ((1.0 - self.alpha) / self.beta.max(LEAST)).sqrt().max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(n: f64) -> f64 {
        1000.0 * n / (1.0 + 0.02 * (n - 1.0) + 0.0002 * n * (n - 1.0))
    }

    fn sample(levels: &[f64], noise: f64, seed: u64) -> Vec<(f64, f64, f64)> {
        let mut random = SplitMix::new(seed);
        let points = levels.iter();
        points
            .map(|n| (*n, law(*n) * (noise * random.normal()).exp(), 1.0))
            .collect()
    }

    const WIDE: [f64; 8] = [1.0, 5.0, 10.0, 20.0, 40.0, 70.0, 100.0, 140.0];

    #[test]
    fn finds_the_coefficients_of_exact_points() {
        let found = scalability(&sample(&WIDE, 0.0, 1), 0.9, &mut SplitMix::new(1)).unwrap();
        assert!((found.lambda / 1000.0 - 1.0).abs() < 0.001, "{found:?}");
        assert!((found.alpha / 0.02 - 1.0).abs() < 0.02, "{found:?}");
        assert!((found.beta / 0.0002 - 1.0).abs() < 0.02, "{found:?}");
        let Scaling::Peak(peak) = found.scaling else {
            panic!("{found:?}")
        };
        assert!((peak.at - 70.0).abs() < 0.5, "{peak:?}");
        assert!((peak.throughput / law(70.0) - 1.0).abs() < 0.001);
    }

    #[test]
    fn with_noise_the_interval_covers_the_peak() {
        let (mut told, mut covered) = (0, 0);
        for seed in 0..40 {
            let points = sample(&WIDE, 0.05, seed);
            let found = scalability(&points, 0.9, &mut SplitMix::new(seed)).unwrap();
            if let Scaling::Peak(peak) = found.scaling {
                told += 1;
                covered += usize::from(peak.low <= 70.0 && 70.0 <= peak.high);
            }
        }
        assert!(told >= 36, "{told}");
        assert!(covered * 10 >= told * 7, "{covered} of {told}");
    }

    #[test]
    fn a_peak_that_was_not_approached_is_refused() {
        let near = [1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0];
        for seed in 0..20 {
            let points = sample(&near, 0.05, seed);
            let found = scalability(&points, 0.9, &mut SplitMix::new(seed)).unwrap();
            assert!(
                !matches!(found.scaling, Scaling::Peak(_)),
                "{seed}: {found:?}"
            );
        }
        let found = scalability(&sample(&near, 0.0, 1), 0.9, &mut SplitMix::new(1)).unwrap();
        assert_eq!(found.scaling, Scaling::NotReached { seen: 16.0 });
    }

    #[test]
    fn without_coherency_there_is_no_peak() {
        let points: Vec<_> = WIDE
            .iter()
            .map(|n| (*n, n / (1.0 + 0.05 * (n - 1.0)), 1.0))
            .collect();
        let found = scalability(&points, 0.9, &mut SplitMix::new(1)).unwrap();
        assert_eq!(found.scaling, Scaling::NoPeak { seen: 140.0 });
        assert!((found.alpha - 0.05).abs() < 0.002, "{found:?}");
    }

    #[test]
    fn too_little_is_refused() {
        let few = sample(&[1.0, 2.0, 4.0, 4.0, 8.0], 0.0, 1);
        let refused = scalability(&few, 0.9, &mut SplitMix::new(1)).unwrap_err();
        assert_eq!(refused, TooLittle::Points(4));
        let narrow = sample(&[10.0, 11.0, 12.0, 13.0, 14.0], 0.0, 1);
        let refused = scalability(&narrow, 0.9, &mut SplitMix::new(1)).unwrap_err();
        assert!(refused.to_string().contains("10.0 to 14.0"), "{refused}");
        let broken = [(f64::NAN, 1.0, 1.0), (0.0, 1.0, 1.0)];
        assert_eq!(
            scalability(&broken, 0.9, &mut SplitMix::new(1)),
            Err(TooLittle::Points(0))
        );
    }
}
