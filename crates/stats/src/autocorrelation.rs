//! How much values of a series have in common with those before them.

use crate::mean;

/// The correlation of a series with itself one step later, corrected for its bias in short
/// series (Kendall, "Note on bias in the estimation of autocorrelation", 1954), between 0 and
/// 0.99. `deviations` are distances from the series' level, or from its line. `None` with fewer than three,
/// or when they are all 0.
#[must_use]
pub fn autocorrelation(deviations: &[f64]) -> Option<f64> {
    let squares: f64 = deviations.iter().map(|value| value * value).sum();
    if deviations.len() < 3 || !(squares > 0.0 && squares.is_finite()) {
        return None;
    }
    let together: f64 = deviations.windows(2).map(|two| two[0] * two[1]).sum();
    let seen = together / squares;
    Some((seen + (1.0 + 4.0 * seen) / deviations.len() as f64).clamp(0.0, 0.99))
}

/// As how many independent values so many count whose neighbours have this correlation: that
/// of a first-order autoregression.
#[must_use]
pub fn independent_values(count: usize, correlation: f64) -> f64 {
    count as f64 * (1.0 - correlation) / (1.0 + correlation)
}

/// The integrated autocorrelation time `1 + 2 * sum of correlations`: so many values of the
/// series are worth one independent value. The sum ends where two neighbouring correlations add
/// up to nothing (the initial positive sequence of Geyer, "Practical Markov chain Monte Carlo",
/// 1992). At least 1; 1 as well for a constant series.
///
/// `None` with fewer than four values or when one is not finite. Time grows with the square of
/// their number if they all resemble each other.
#[must_use]
pub fn autocorrelation_time(values: &[f64]) -> Option<f64> {
    let centre = mean(values)?;
    if values.len() < 4 || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let away: Vec<f64> = values.iter().map(|value| value - centre).collect();
    let together = |lag: usize| {
        let later = away.iter().skip(lag);
        away.iter().zip(later).map(|(a, b)| a * b).sum::<f64>()
    };
    let square = together(0);
    if square <= 0.0 {
        return Some(1.0);
    }
    let pairs = (0..values.len() / 2).map(|pair| together(2 * pair) + together(2 * pair + 1));
    let sum: f64 = pairs.take_while(|pair| *pair > 0.0).sum();
    Some((2.0 * sum / square - 1.0).max(1.0))
}

/// Means of consecutive batches of `size` values; what is left at the end is no batch. Empty for
/// a size of 0.
#[must_use]
pub fn batch_means(values: &[f64], size: usize) -> Vec<f64> {
    match size {
        0 => Vec::new(),
        size => values.chunks_exact(size).filter_map(mean).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix;

    /// A first-order autoregression, whose coefficient is `alike` and whose time is
    /// `(1 + alike) / (1 - alike)`.
    fn series(seed: u64, n: usize, alike: f64) -> Vec<f64> {
        let mut random = SplitMix::new(seed);
        let mut value = random.normal();
        let fresh = (1.0 - alike * alike).sqrt();
        (0..n)
            .map(|_| {
                value = alike * value + fresh * random.normal();
                value
            })
            .collect()
    }

    #[test]
    fn a_first_order_autoregression_shows_its_coefficient() {
        for alike in [0.0, 0.5, 0.9] {
            let found = autocorrelation(&series(11, 20_000, alike)).unwrap();
            assert!((found - alike).abs() < 0.02, "{found} for {alike}");
        }
        assert_eq!(autocorrelation(&[0.0; 9]), None);
        assert_eq!(autocorrelation(&[1.0, 2.0]), None);
        assert!((independent_values(190, 0.9) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn the_time_is_that_of_the_process() {
        for (alike, truth) in [(0.0, 1.0), (0.5, 3.0), (0.9, 19.0)] {
            let found = autocorrelation_time(&series(3, 20_000, alike)).unwrap();
            assert!((found / truth - 1.0).abs() < 0.2, "{alike}: {found}");
        }
        assert_eq!(autocorrelation_time(&[5.0; 9]), Some(1.0));
        assert_eq!(autocorrelation_time(&[1.0, 2.0, 3.0]), None);
        assert_eq!(autocorrelation_time(&[1.0, 2.0, 3.0, f64::NAN]), None);
    }

    #[test]
    fn batches_are_whole() {
        let values = [1.0, 3.0, 5.0, 7.0, 100.0];
        assert_eq!(batch_means(&values, 2), [2.0, 6.0]);
        assert!(batch_means(&values, 0).is_empty());
        assert!(batch_means(&values, 6).is_empty());
    }
}
