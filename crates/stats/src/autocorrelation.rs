//! How much neighbours in a series have in common.

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix;

    #[test]
    fn a_first_order_autoregression_shows_its_coefficient() {
        for alike in [0.0_f64, 0.5, 0.9] {
            let mut random = SplitMix::new(11);
            let mut value = 0.0;
            let fresh = (1.0 - alike * alike).sqrt();
            let series: Vec<f64> = (0..20_000)
                .map(|_| {
                    value = alike * value + fresh * random.normal();
                    value
                })
                .collect();
            let found = autocorrelation(&series).unwrap();
            assert!((found - alike).abs() < 0.02, "{found} for {alike}");
        }
        assert_eq!(autocorrelation(&[0.0; 9]), None);
        assert_eq!(autocorrelation(&[1.0, 2.0]), None);
        assert!((independent_values(190, 0.9) - 10.0).abs() < 1e-9);
    }
}
