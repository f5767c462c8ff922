//! The universal scalability law.

use crate::minimise::minimise;
use crate::random::SplitMix;

/// Fewest points with different concurrency.
pub(crate) const FEWEST: usize = 5;
/// Smallest ratio of the largest to the smallest concurrency.
const SPREAD: f64 = 4.0;
/// Smallest ratio of two concurrencies that are told apart.
const APART: f64 = 1.05;
/// Largest relative error of what is foretold of points that were held out.
const FORETOLD: f64 = 0.1;
/// A point that the law misses by more than so many of its usual errors speaks against a peak.
const MISSED: f64 = 2.5;
/// Sharpest bend of a fixed capacity.
const SHARPEST: f64 = 20.0;
/// A peak is told only when a point reaches this share of its concurrency.
const NEAR_PEAK: f64 = 0.7;
/// A peak is told only when throughput was seen below this share of it beyond it: up to its peak a
/// law that has one is as one that has none.
const FALLEN: f64 = 0.95;
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
    /// The best fit has a peak, but it was not passed: no point beyond it has a lower throughput.
    /// A peak that was not approached cannot be told.
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
pub enum FitError {
    /// Too few points.
    #[error("{0} points with different concurrency; the law needs {FEWEST}")]
    Points(usize),
    /// Points too close to each other.
    #[error("concurrency from {0:.1} to {1:.1} only; the law needs a range of 1 to {SPREAD}")]
    Range(f64, f64),
    /// The law does not foretell points that it was not fitted to.
    #[error("fitted without one of the points, the law misses it by {:.0} %", 100.0 * .0)]
    Unlike(f64),
    /// The law peaks at a throughput that the points exceed, or before the first of them, or
    /// far above all of them.
    #[error("the law would peak at {0:.0}/s, and {1:.0}/s were seen")]
    Exceeded(f64, f64),
    /// The law peaks, but a fixed capacity, which never falls, explains the points as well.
    #[error("a fixed capacity of {0:.0}/s explains what was seen as well, so no peak is told")]
    Fixed(f64),
}

/// Fits the law to `(concurrency, throughput, weight)` by weighted least squares of
/// the relative error, with α and β in logarithms so that neither is below 0. The peak
/// is told only where data reaches it; see [`Scaling`]. The interval comes from 100
/// resamples of the points, drawn with `random`. Points that are not positive and
/// finite are left out.
///
/// # Errors
/// With fewer than five points of clearly different concurrency, or when they span less
/// than a factor of four; when the law, fitted without the points of one concurrency, misses
/// these by more than a tenth (root mean square over all); when its peak contradicts what
/// was seen: the points exceed it, all of them are a tenth below it, the law misses one of them by
/// more than a tenth (and two and a half times its usual error), or a fixed capacity explains them as well.
pub fn scalability(
    points: &[(f64, f64, f64)],
    confidence: f64,
    random: &mut SplitMix,
) -> Result<Scalability, FitError> {
    let fine = |value: f64| value.is_finite() && value > 0.0;
    let points: Vec<(f64, f64, f64)> = points
        .iter()
        .copied()
        .filter(|(n, x, weight)| fine(*n) && fine(*x) && fine(*weight))
        .collect();
    let mut levels: Vec<f64> = points.iter().map(|p| p.0).collect();
    levels.sort_by(f64::total_cmp);
    // Holds of the same rate have nearly the same concurrency: they are one level.
    levels.dedup_by(|next, level| *next < *level * APART);
    let (Some(least), Some(most)) = (levels.first().copied(), levels.last().copied()) else {
        return Err(FitError::Points(0));
    };
    if levels.len() < FEWEST {
        return Err(FitError::Points(levels.len()));
    }
    if most < least * SPREAD {
        return Err(FitError::Range(least, most));
    }

    // Starts on both sides of "no contention" and "no coherency" at the scale of the
    // data; the best of them wins.
    let starts = [0.001, 0.1, 1.0].into_iter().flat_map(|a| {
        [0.001, 0.1, 1.0].map(|b| [(a / most).min(0.5).ln(), (b / (most * most)).ln()])
    });
    let best = starts
        .map(|start| Curve::fit(&points, &start))
        .min_by(|a, b| a.error.total_cmp(&b.error))
        .ok_or(FitError::Points(0))?;

    let missed = held_out(&points, &levels, &best);
    if missed.is_nan() || missed > FORETOLD {
        return Err(FitError::Unlike(missed));
    }
    let seen = points.iter().map(|p| p.1).fold(0.0, f64::max);
    let (peak, top) = (
        best.peak(),
        best.lambda * best.peak() / best.denominator(best.peak()),
    );
    if peak < most && (top < seen * (1.0 - FORETOLD) || peak < least) {
        return Err(FitError::Exceeded(top, seen));
    }

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
    if share >= NOTHING && most >= NEAR_PEAK * peak {
        contradicted(&points, &best)?;
    }
    let scaling = if share.is_nan() || share < NOTHING {
        Scaling::NoPeak { seen: most }
    } else if most < NEAR_PEAK * peak || !passed(&points, &best) {
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

/// Whether throughput was seen to fall beyond the peak that a law has.
fn passed(points: &[(f64, f64, f64)], law: &Curve) -> bool {
    let peak = law.peak();
    let top = law.lambda * peak / law.denominator(peak);
    points
        .iter()
        .any(|(n, x, _)| *n > peak && *x < top * FALLEN)
}

/// Whether points speak against a peak that the law has within their reach.
fn contradicted(points: &[(f64, f64, f64)], law: &Curve) -> Result<(), FitError> {
    let peak = law.peak();
    let top = law.lambda * peak / law.denominator(peak);
    let seen = points.iter().map(|p| p.1).fold(0.0, f64::max);
    if top > seen * (1.0 + FORETOLD) {
        return Err(FitError::Exceeded(top, seen));
    }
    let missed =
        |(n, x, _): &(f64, f64, f64)| (x / law.lambda / n * law.denominator(*n)).ln().abs();
    let most = points.iter().map(missed).fold(0.0, f64::max);
    if most > FORETOLD.max(MISSED * law.error) {
        return Err(FitError::Unlike(most));
    }
    let (capacity, error) = fixed(points);
    match error <= law.error {
        true => Err(FitError::Fixed(capacity)),
        false => Ok(()),
    }
}

/// The capacity of a system whose throughput rises to it and stays there, `X(N) = λN / (1 +
/// (λN/C)^p)^(1/p)`, and the root mean square of the relative residuals. It has as many
/// parameters as the law.
fn fixed(points: &[(f64, f64, f64)]) -> (f64, f64) {
    // For a given bend p and knee C/λ the best ln λ is the mean of what is left over.
    let left = |x: &[f64]| {
        let (bend, knee) = (x[0].exp(), x[1].exp());
        let (mut all, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for (n, x, weight) in points {
            let left = (x / n).ln() + (n / knee).powf(bend).ln_1p() / bend;
            all += weight;
            sum += weight * left;
            squares += weight * left * left;
        }
        let mean: f64 = sum / all;
        (mean, (squares / all - mean * mean).max(0.0))
    };
    // A bend between one that never ends and a corner.
    let outside = |x: &[f64]| (-x[0]).max(x[0] - SHARPEST.ln()).max(0.0);
    let middle = points.iter().map(|p| p.0.ln()).sum::<f64>() / points.len() as f64;
    let fits = [1.5_f64, 6.0].into_iter().map(|bend| {
        let found = minimise(|x| left(x).1 + outside(x), &[bend.ln(), middle], 0.7);
        let (ln_lambda, variance) = left(&found);
        ((ln_lambda + found[1]).exp(), variance.sqrt())
    });
    fits.min_by(|a, b| a.1.total_cmp(&b.1))
        .unwrap_or((f64::NAN, f64::INFINITY))
}

/// Root mean square of the relative error with which the law foretells the points of each
/// level between others, fitted to those of all others.
fn held_out(points: &[(f64, f64, f64)], levels: &[f64], best: &Curve) -> f64 {
    let start = [best.alpha.max(LEAST).ln(), best.beta.max(LEAST).ln()];
    let (mut squares, mut all) = (0.0, 0.0);
    for (level, end) in levels.iter().skip(1).zip(levels.iter().skip(2)) {
        let (level, end) = (*level, *end);
        let (own, others): (Vec<_>, Vec<_>) = points
            .iter()
            .copied()
            .partition(|p| p.0 >= level && p.0 < end);
        let curve = Curve::fit(&others, &start);
        for (n, x, weight) in own {
            let foretold = curve.lambda * n / curve.denominator(n);
            squares += weight * (x / foretold).ln().powi(2);
            all += weight;
        }
    }
    (squares / all).sqrt()
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
            let found = scalability(&points, 0.9, &mut SplitMix::new(seed));
            if let Ok(Scaling::Peak(peak)) = found.map(|found| found.scaling) {
                told += 1;
                covered += usize::from(peak.low <= 70.0 && 70.0 <= peak.high);
            }
        }
        assert!(told >= 34, "{told}");
        assert!(covered * 10 >= told * 7, "{covered} of {told}");
    }

    #[test]
    fn a_peak_that_was_not_approached_is_refused() {
        let near = [1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0];
        for seed in 0..20 {
            let points = sample(&near, 0.05, seed);
            let found = scalability(&points, 0.9, &mut SplitMix::new(seed));
            let scaling = found.map(|found| found.scaling);
            assert!(
                !matches!(scaling, Ok(Scaling::Peak(_))),
                "{seed}: {scaling:?}"
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

    /// A pool that collapses once it is full does not follow the law, and a fit to it foretells
    /// nothing.
    #[test]
    fn what_does_not_follow_the_law_is_refused() {
        let collapse: Vec<_> = [0.3, 1.0, 4.0, 19.0, 60.0, 300.0, 500.0]
            .map(|n: f64| (n, if n < 20.0 { 25.0 * n } else { 480.0 * 20.0 / n }, 1.0))
            .to_vec();
        let refused = scalability(&collapse, 0.9, &mut SplitMix::new(1)).unwrap_err();
        assert!(matches!(refused, FitError::Unlike(_)), "{refused}");
    }

    #[test]
    fn a_peak_below_what_was_seen_is_refused() {
        let falling: Vec<_> = [20.0, 40.0, 60.0, 80.0, 100.0]
            .map(|n: f64| (n, law(n) / n.powf(0.8), 1.0))
            .to_vec();
        let refused = scalability(&falling, 0.9, &mut SplitMix::new(1));
        assert!(refused.is_err(), "{refused:?}");
    }

    /// Throughput with so many in flight of a pool of so many places, each busy for 21 ms, as
    /// an open loop sees it (M/M/c, c places): the rate is what is chosen.
    fn pool(places: f64, random: &mut SplitMix) -> Vec<(f64, f64, f64)> {
        let most = places / 0.021;
        let mut points: Vec<_> = [0.25, 0.4, 0.4, 0.6, 0.7, 0.8, 0.8, 0.88, 0.93]
            .map(|busy: f64| {
                let waiting = busy.powf((2.0 * (places + 1.0)).sqrt()) / (1.0 - busy);
                let n = places * busy + waiting * (0.3 * random.normal()).exp();
                (n, most * busy * (0.01 * random.normal()).exp(), 3.0)
            })
            .to_vec();
        // Beyond its capacity more are in flight and no more are answered.
        for over in [5.0, 6.0, 9.0, 12.0, 15.0] {
            if random.uniform() < 0.6 {
                let n = places * over * (0.2 * random.normal()).exp();
                points.push((n, most * (0.01 * random.normal()).exp(), 3.0));
            }
        }
        points
    }

    #[test]
    fn a_fixed_pool_has_no_peak() {
        let mut peaks = String::new();
        let mut told = 0;
        for seed in 0..200 {
            let mut random = SplitMix::new(seed);
            let places = [2.0, 5.0, 20.0][random.below(3)];
            let points = pool(places, &mut random);
            let found = scalability(&points, 0.9, &mut SplitMix::new(seed));
            if let Ok(Scaling::Peak(peak)) = found.map(|found| found.scaling) {
                told += 1;
                peaks += &format!("{places} places, {seed}: {peak:?} of {points:?}\n");
            }
        }
        assert!(told <= 2, "{told} of 200\n{peaks}");
    }

    /// What a pool of five that answers 240/s was measured at.
    #[test]
    fn the_holds_of_a_pool_are_no_peak() {
        let of_one = [
            (2.14, 99.4, 3.0),
            (2.68, 124.0, 3.0),
            (53.3, 239.0, 3.0),
            (65.2, 238.0, 3.0),
            (3.75, 161.0, 5.0),
        ];
        let of_another = [
            (2.03, 96.0, 3.0),
            (5.406, 192.67, 3.0),
            (50.1, 239.0, 3.0),
            (3.81, 164.7, 4.25),
            (31.76, 239.3, 3.0),
            (4.635, 185.4, 4.25),
            (3.727, 160.9, 4.25),
            (8.845, 217.2, 3.6),
        ];
        for points in [&of_one[..], &of_another[..]] {
            let found = scalability(points, 0.9, &mut SplitMix::new(1));
            let scaling = found.map(|found| found.scaling);
            assert!(!matches!(scaling, Ok(Scaling::Peak(_))), "{scaling:?}");
        }
    }

    /// One server that does 250 a second, as a search holds it: six rates, all below its capacity,
    /// of which the highest was held twice. With so many in flight it answers 250 n / (1 + n), which
    /// rises for ever.
    #[test]
    fn a_single_server_has_no_peak() {
        let mut peaks = String::new();
        for seed in 0..200 {
            let mut random = SplitMix::new(seed);
            let holds = [
                (50.0, 9.0),
                (100.0, 9.0),
                (200.0, 9.0),
                (200.0, 3.0),
                (102.0, 3.0),
                (82.0, 3.0),
            ];
            let points = holds.map(|(rate, length): (f64, f64)| {
                let busy: f64 = rate / 250.0;
                // What is in flight goes up and down for long in so short a hold.
                let noise = 0.6 * busy / (1.0 - busy).sqrt() / length.sqrt();
                let n = busy / (1.0 - busy) * (noise * random.normal()).exp();
                let chance = (rate / length).sqrt() / 3.0;
                (n, rate + chance * random.normal(), length)
            });
            let found = scalability(&points, 0.9, &mut SplitMix::new(seed));
            if let Ok(Scaling::Peak(peak)) = found.map(|found| found.scaling) {
                peaks += &format!("{seed}: {peak:?} of {points:?}\n");
            }
        }
        let told = peaks.lines().count();
        assert!(told <= 2, "{told} of 200\n{peaks}");
    }

    #[test]
    fn a_straight_line_has_no_peak() {
        for seed in 0..50 {
            let mut random = SplitMix::new(seed);
            let points: Vec<_> = WIDE
                .iter()
                .map(|n| (*n, 50.0 * n * (0.02 * random.normal()).exp(), 1.0))
                .collect();
            let found = scalability(&points, 0.9, &mut SplitMix::new(seed));
            let scaling = found.map(|found| found.scaling);
            assert!(!matches!(scaling, Ok(Scaling::Peak(_))), "{scaling:?}");
        }
    }

    #[test]
    fn too_little_is_refused() {
        let few = sample(&[1.0, 2.0, 4.0, 4.0, 8.0], 0.0, 1);
        let refused = scalability(&few, 0.9, &mut SplitMix::new(1)).unwrap_err();
        assert_eq!(refused, FitError::Points(4));
        let narrow = sample(&[10.0, 11.0, 12.0, 13.0, 14.0], 0.0, 1);
        let refused = scalability(&narrow, 0.9, &mut SplitMix::new(1)).unwrap_err();
        assert!(refused.to_string().contains("10.0 to 14.0"), "{refused}");
        let broken = [(f64::NAN, 1.0, 1.0), (0.0, 1.0, 1.0)];
        assert_eq!(
            scalability(&broken, 0.9, &mut SplitMix::new(1)),
            Err(FitError::Points(0))
        );
    }
}
