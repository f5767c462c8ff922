//! Level, spread and slope of which a few wild values change little.

use crate::nearest_rank;

/// What makes the median absolute deviation of normal values their standard deviation: one
/// over the normal distribution's third quartile.
const NORMAL: f64 = 1.4826;

/// Most values that a slope is taken over; of more, every nth counts. Time grows with
/// its square.
const SLOPE_VALUES: usize = 300;

/// Median of the values, and 1.4826 times the median absolute deviation from it, which is the
/// standard deviation where they are normal (Hampel, "The influence curve and its role in
/// robust estimation", 1974). Up to half of the values may be wild. `None` without values, or
/// when one is not a number.
#[must_use]
pub fn level_and_spread(values: &[f64]) -> Option<(f64, f64)> {
    let level = median(values.to_vec())?;
    let away = values.iter().map(|value| (value - level).abs()).collect();
    Some((level, NORMAL * median(away)?))
}

/// The median of the slopes between pairs of `(at, value)` (Theil 1950, Sen 1968): up to 29 %
/// of the values may be wild. `None` unless two of the instants differ.
#[must_use]
pub fn robust_slope(points: &[(f64, f64)]) -> Option<f64> {
    let stride = points.len().div_ceil(SLOPE_VALUES).max(1);
    let kept: Vec<(f64, f64)> = points.iter().copied().step_by(stride).collect();
    let pairs = kept.iter().enumerate().flat_map(|(first, one)| {
        let later = kept[first + 1..].iter();
        later.map(move |other| (other.1 - one.1) / (other.0 - one.0))
    });
    median(pairs.filter(|slope| slope.is_finite()).collect())
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    if values.iter().any(|value| value.is_nan()) {
        return None;
    }
    values.sort_by(f64::total_cmp);
    nearest_rank(&values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix;

    #[test]
    fn the_spread_of_normal_values_is_their_deviation() {
        let mut random = SplitMix::new(3);
        let values: Vec<f64> = (0..20_001).map(|_| 50.0 + 4.0 * random.normal()).collect();
        let (level, spread) = level_and_spread(&values).unwrap();
        assert!((level - 50.0).abs() < 0.1 && (spread - 4.0).abs() < 0.12);
    }

    #[test]
    fn wild_values_change_little() {
        let mut values = vec![1.0, 2.0, 3.0, 4.0, 5.0];
        assert_eq!(level_and_spread(&values), Some((3.0, NORMAL)));
        values[4] = 1e9;
        assert_eq!(level_and_spread(&values), Some((3.0, NORMAL)));
        assert_eq!(level_and_spread(&[]), None);
        assert_eq!(level_and_spread(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn a_line_has_its_slope_whatever_a_fifth_of_it_does() {
        let points: Vec<(f64, f64)> = (0..1000)
            .map(|at| {
                let at = f64::from(at);
                (
                    at,
                    if at % 5.0 == 1.0 {
                        -1e6
                    } else {
                        7.0 + 0.25 * at
                    },
                )
            })
            .collect();
        assert!((robust_slope(&points).unwrap() - 0.25).abs() < 1e-9);
        assert_eq!(robust_slope(&[(1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(robust_slope(&[]), None);
    }
}
