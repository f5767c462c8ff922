//! Steps by counts of values, which see outliers as they were, and metrics without noise: counts,
//! bytes, allocations. Their levels have no spread that a t-test could measure a step by, and what
//! arithmetic leaves of equal numbers is none.

use stats::{mean, variance};

use super::Series;

/// Spread below this share of the smallest change that matters is none.
const NOTHING_SHARE: f64 = 0.01;

impl Series {
    /// The deviation around a level below which there is no noise, only rounding.
    pub(super) fn nothing(&self, level: f64, least_share: f64) -> f64 {
        let unit = if self.logarithmic { 1.0 } else { level.abs() };
        NOTHING_SHARE * least_share * unit
    }

    /// How likely a step between levels is by chance, by counts alone: a new level may be made of
    /// values that lie off their level for another reason. If a share of all does so, this is how
    /// likely as many of the shorter side do. It sees outliers and second modes as they were.
    pub(super) fn by_counts(&self, bounds: &[usize], step: usize) -> Option<f64> {
        let (from, at, to) = (bounds[step], bounds[step + 1], bounds[step + 2]);
        let level = |from: usize, to: usize| mean(&self.smooth[from..to]);
        let rise = level(at, to)? - level(from, at)?;
        let (shorter, towards) = match at - from < to - at {
            true => ((from, at), -rise),
            false => ((at, to), rise),
        };
        // So many lie as far from their level as half the way to the other one.
        let off = |(from, to): (usize, usize), way: f64| {
            let level = level(from, to).unwrap_or_default();
            let part = self.scaled[from..to].iter();
            part.filter(|value| (*value - level) * way.signum() >= way.abs() / 2.0)
                .count()
        };
        let parts = bounds.windows(2).map(|two| (two[0], two[1]));
        let all: usize = parts.map(|part| off(part, towards)).sum();
        let share = all as f64 / self.scaled.len() as f64;
        let runs = shorter.1 - shorter.0;
        Some(at_least(runs - off(shorter, -towards), runs, share))
    }

    /// Whether the smooth values on both sides of a step have no noise.
    pub(super) fn flat(&self, before: &[f64], after: &[f64], least_share: f64) -> bool {
        let flat = |side: &[f64]| {
            let level = mean(side).unwrap_or_default();
            let spread = variance(side).unwrap_or_default().sqrt();
            spread <= self.nothing(level, least_share)
        };
        flat(before) && flat(after)
    }
}

/// The chance of at least `least` of `count` that have a share each: a tail of the binomial
/// distribution.
pub(super) fn at_least(least: usize, count: usize, share: f64) -> f64 {
    if share <= 0.0 {
        return if least == 0 { 1.0 } else { 0.0 };
    }
    if share >= 1.0 {
        return 1.0;
    }
    let chance = |hits: usize| {
        let ways: f64 = (0..hits)
            .map(|at| ((count - at) as f64 / (at + 1) as f64).ln())
            .sum();
        let (hits, misses) = (hits as f64, (count - hits) as f64);
        (ways + hits * share.ln() + misses * (1.0 - share).ln()).exp()
    };
    (least..=count).map(chance).sum::<f64>().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::at_least;

    #[test]
    fn tails_are_those_of_the_binomial_distribution() {
        // scipy.stats.binom.sf(least - 1, count, share)
        for (least, count, share, expected) in [
            (0, 5, 0.3, 1.0),
            (3, 3, 0.1, 0.001),
            (3, 4, 0.1, 0.0037),
            (5, 10, 0.5, 0.623_046_875),
        ] {
            let found = at_least(least, count, share);
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        }
        assert_eq!(at_least(3, 3, 0.0), 0.0);
        assert_eq!(at_least(0, 3, 0.0), 1.0);
    }
}
