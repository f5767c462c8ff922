//! The rate beyond which a system answers no more.

use crate::student::student_quantile;

/// Below this share of what was asked, a system is saturated.
const KEPT_UP: f64 = 0.97;

/// Fewest saturated points from which a rate with an interval can be told.
const FEWEST: usize = 3;

/// How much better than a plateau, in units of the scatter, a slope must fit.
const SLOPE_GAIN: f64 = 12.0;

/// How far beyond the corner, in logarithms, a point says something about the plateau
/// alone.
const CLEAR: f64 = 0.1;

/// Steps of the search for the corner over the range of rates.
const CELLS: usize = 2_000;

/// Where throughput stops to follow the rate asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Saturation {
    /// The largest throughput: where the two lines meet.
    pub rate: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Slope of throughput beyond, on logarithmic scales: 0 is a plateau; at -1,
    /// asking for twice as much halves what comes back. Never above 0.
    pub slope: f64,
}

/// Fits two lines to pairs of rate asked for and throughput, on logarithmic scales:
/// throughput equals the rate up to a corner, and from there has a slope of at most 0
/// (segmented regression with a known first segment). The corner is found by least
/// squares, the interval from the scatter of the saturated points around the second
/// line, with Student's distribution.
///
/// `None` when fewer than three points are saturated (throughput below 97 % of the
/// rate): then nothing says where the limit is. Points that are not positive are left
/// out. `confidence` is clamped to between 0.5 and 0.96.
pub fn saturation(points: &[(f64, f64)], confidence: f64) -> Option<Saturation> {
    let logs: Vec<(f64, f64)> = points
        .iter()
        .map(|(asked, answered)| (asked.ln(), answered.ln()))
        .filter(|(asked, answered)| asked.is_finite() && answered.is_finite())
        .collect();
    let saturated = |p: &&(f64, f64)| p.1 < p.0 + KEPT_UP.ln();
    let (first, last) = logs
        .iter()
        .filter(saturated)
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), p| {
            (low.min(p.1), high.max(p.0))
        });
    if logs.iter().filter(saturated).count() < FEWEST || first >= last {
        return None;
    }
    // The corner lies between the lowest throughput of a saturated point and the
    // highest rate asked for; the cost is cheap, so all of that is looked at.
    let best = |sloped: bool| {
        (0..CELLS)
            .map(|cell| first + (last - first) * (cell as f64 + 0.5) / CELLS as f64)
            .map(|corner| Fit::at(corner, sloped, &logs))
            .min_by(|a, b| a.cost.total_cmp(&b.cost))
    };
    // A slope is taken for true only when it explains much more than a plateau does:
    // scatter alone would otherwise bend the line and move the corner.
    let (plateau, collapse) = (best(false)?, best(true)?);
    let freedom = logs.iter().filter(saturated).count() as f64 - 2.0;
    let explained = (plateau.cost - collapse.cost) * freedom;
    let best = if explained > SLOPE_GAIN * collapse.cost {
        collapse
    } else {
        plateau
    };
    // Close to the corner both lines take part, which would pull the plateau down.
    let clear: Vec<f64> = logs
        .iter()
        .filter(|p| best.slope == 0.0 && p.0 > best.corner + CLEAR)
        .map(|p| p.1)
        .collect();
    let (corner, residuals) = match crate::mean(&clear) {
        Some(plateau) if clear.len() >= FEWEST => (
            plateau,
            clear.iter().map(|y| y - plateau).collect::<Vec<f64>>(),
        ),
        _ => (best.corner, best.residuals(&logs)),
    };
    let n = residuals.len() as f64;
    if residuals.len() < FEWEST {
        return None;
    }
    let freedom = (n - if best.slope < 0.0 { 2.0 } else { 1.0 }).max(1.5);
    let squares: f64 = residuals.iter().map(|r| r * r).sum();
    let quantile = student_quantile((1.0 + confidence.clamp(0.5, 0.96)) / 2.0, freedom);
    let half = quantile * (squares / freedom / n).sqrt();
    Some(Saturation {
        rate: corner.exp(),
        low: (corner - half).exp(),
        high: (corner + half).exp(),
        slope: best.slope,
    })
}

/// The best second line for one corner.
struct Fit {
    corner: f64,
    slope: f64,
    cost: f64,
}

impl Fit {
    fn at(corner: f64, sloped: bool, logs: &[(f64, f64)]) -> Self {
        let beyond = || {
            logs.iter()
                .map(|p| (p.0 - corner, p.1 - corner))
                .filter(|p| p.0 > 0.0)
        };
        // Two points beyond the corner would fit any slope.
        let slope = if sloped && beyond().count() > FEWEST {
            let (xy, xx) = beyond().fold((0.0, 0.0), |(xy, xx), (x, y)| (xy + x * y, xx + x * x));
            (xy / xx).clamp(-3.0, 0.0)
        } else {
            0.0
        };
        let before = logs
            .iter()
            .filter(|p| p.0 <= corner)
            .map(|p| (p.1 - p.0).powi(2));
        let after = beyond().map(|(x, y)| (y - slope * x).powi(2));
        Self {
            corner,
            slope,
            cost: before.sum::<f64>() + after.sum::<f64>(),
        }
    }

    /// What the second line leaves over.
    fn residuals(&self, logs: &[(f64, f64)]) -> Vec<f64> {
        logs.iter()
            .filter(|p| p.0 > self.corner)
            .map(|p| p.1 - self.corner - self.slope * (p.0 - self.corner))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix;

    fn system(limit: f64, slope: f64, noise: f64, seed: u64) -> Vec<(f64, f64)> {
        let mut random = SplitMix::new(seed);
        (0..12)
            .map(|i| {
                let asked = limit * 0.3 * 1.2f64.powi(i);
                let limit = limit * (noise * random.normal()).exp();
                let beyond = limit * (asked / limit).powf(slope);
                (asked, if asked <= limit { asked } else { beyond })
            })
            .collect()
    }

    #[test]
    fn a_plateau_is_found() {
        let found = saturation(&system(1000.0, 0.0, 0.0, 1), 0.9).unwrap();
        assert!((found.rate / 1000.0 - 1.0).abs() < 0.005, "{found:?}");
        assert!(found.slope > -0.02, "{found:?}");
    }

    #[test]
    fn so_is_a_collapse() {
        let found = saturation(&system(1000.0, -0.7, 0.0, 1), 0.9).unwrap();
        assert!((found.rate / 1000.0 - 1.0).abs() < 0.01, "{found:?}");
        assert!((found.slope + 0.7).abs() < 0.05, "{found:?}");
    }

    #[test]
    fn nothing_is_said_without_saturated_points() {
        let mut points = system(1000.0, 0.0, 0.0, 1);
        points.retain(|p| p.0 <= 1000.0);
        assert_eq!(saturation(&points, 0.9), None);
        points.push((1500.0, 1000.0));
        points.push((2000.0, 1000.0));
        assert_eq!(saturation(&points, 0.9), None);
        assert_eq!(
            saturation(&[(0.0, 1.0), (f64::NAN, 2.0), (-1.0, 1.0)], 0.9),
            None
        );
    }

    #[test]
    fn intervals_cover_most_often() {
        let (mut covered, mut errors) = (0, Vec::new());
        for seed in 0..200 {
            let found = saturation(&system(1000.0, 0.0, 0.03, seed), 0.9).unwrap();
            covered += usize::from(found.low <= 1000.0 && 1000.0 <= found.high);
            errors.push((found.rate / 1000.0 - 1.0).abs());
        }
        errors.sort_by(f64::total_cmp);
        assert!(errors[100] < 0.03, "{}", errors[100]);
        assert!(covered >= 165, "{covered} of 200");
    }
}
