//! How much: a constant or a distribution, of nanoseconds, bytes or a count.
//!
//! An amount is drawn by its inverse distribution function from one uniform number, so a
//! draw needs no state, and a quantile is a draw at a known place.

use stats::normal_quantile;

/// Standard normal quantile at 0.99.
const Z99: f64 = 2.326_347_874_040_841;

/// A quantity that may differ from request to request. All values are finite and not
/// negative; units are those of the place that holds it.
#[derive(Debug, Clone, PartialEq)]
pub enum Amount {
    /// Always the same.
    Constant(f64),
    /// Any value of a range with equal probability.
    Uniform {
        /// The lowest.
        from: f64,
        /// The highest; not below `from`.
        to: f64,
    },
    /// Memoryless.
    Exponential {
        /// Mean.
        mean: f64,
    },
    /// Most near the median, some far above it.
    LogNormal {
        /// Half are smaller; above zero.
        median: f64,
        /// One in a hundred is larger; not below the median.
        p99: f64,
    },
    /// Known quantiles, joined by straight lines: from zero at quantile 0 to the last
    /// value, which is the largest.
    Quantiles(Vec<(f64, f64)>),
}

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self::Constant(0.0);

    /// The value below which the share `u` (0 to 1) of all draws lies. A uniform `u` makes
    /// it a draw. Never above `most`, which also bounds what a heavy tail can ask for.
    pub fn at(&self, u: f64, most: f64) -> f64 {
        let u = u.clamp(0.0, 1.0);
        let value = match self {
            Self::Constant(value) => *value,
            Self::Uniform { from, to } => from + u * (to - from),
            Self::Exponential { mean } => -mean * (1.0 - u).ln(),
            Self::LogNormal { median, p99 } => {
                let width = (p99 / median).ln() / Z99;
                match u {
                    0.0 => 0.0,
                    1.0 => f64::INFINITY,
                    _ => median * (width * normal_quantile(u)).exp(),
                }
            }
            Self::Quantiles(points) => along(points, u),
        };
        value.min(most)
    }

    /// The mean of all draws.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Uniform { from, to } => f64::midpoint(*from, *to),
            Self::Exponential { mean } => *mean,
            Self::LogNormal { median, p99 } => {
                let width = (p99 / median).ln() / Z99;
                median * (width * width / 2.0).exp()
            }
            Self::Quantiles(points) => {
                let mut before = (0.0, 0.0);
                let mut mean = 0.0;
                for &(quantile, value) in points {
                    mean += (quantile - before.0) * f64::midpoint(before.1, value);
                    before = (quantile, value);
                }
                mean + (1.0 - before.0) * before.1
            }
        }
    }

    /// Whether every draw is zero.
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }
}

/// The value at `u` on the line through `points`, which begins at the origin and is flat
/// behind the last.
fn along(points: &[(f64, f64)], u: f64) -> f64 {
    let mut before = (0.0, 0.0);
    for &(quantile, value) in points {
        if u <= quantile {
            let width = quantile - before.0;
            let part = if width > 0.0 {
                (u - before.0) / width
            } else {
                1.0
            };
            return before.1 + part * (value - before.1);
        }
        before = (quantile, value);
    }
    before.1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stats::SplitMix;

    use super::*;

    fn any_amount() -> impl Strategy<Value = Amount> {
        prop_oneof![
            (0.0..1e9).prop_map(Amount::Constant),
            (0.0..1e6, 0.0..1e6).prop_map(|(from, more)| Amount::Uniform {
                from,
                to: from + more
            }),
            (0.0..1e6).prop_map(|mean| Amount::Exponential { mean }),
            (1.0..1e6, 1.0..5.0).prop_map(|(median, times)| Amount::LogNormal {
                median,
                p99: median * times
            }),
            Just(Amount::Quantiles(vec![(0.5, 1e6), (0.9, 3e6), (0.99, 9e6)])),
        ]
    }

    proptest! {
        #[test]
        fn a_higher_place_gives_no_lower_value(amount in any_amount(), u in 0.0..1.0, v in 0.0..1.0) {
            let (low, high) = if u < v { (u, v) } else { (v, u) };
            prop_assert!(amount.at(low, 1e12) <= amount.at(high, 1e12) + 1e-6);
            prop_assert!(amount.at(1.0, 1e12) <= 1e12);
        }

        #[test]
        fn the_mean_is_that_of_many_draws(amount in any_amount(), seed: u64) {
            let mut random = SplitMix::new(seed);
            let draws = 20_000;
            let sum: f64 = (0..draws).map(|_| amount.at(random.uniform(), 1e15)).sum();
            let mean = sum / f64::from(draws);
            prop_assert!((mean - amount.mean()).abs() <= 0.06 * amount.mean() + 1e-9, "{mean} {amount:?} {}", amount.mean());
        }
    }

    #[test]
    fn known_quantiles_are_met() {
        let amount = Amount::LogNormal {
            median: 900.0,
            p99: 4000.0,
        };
        // The normal quantile is good to 5e-4.
        assert!((amount.at(0.5, 1e9) / 900.0 - 1.0).abs() < 1e-3);
        assert!((amount.at(0.99, 1e9) / 4000.0 - 1.0).abs() < 1e-3);
        let points = Amount::Quantiles(vec![(0.5, 10.0), (0.9, 30.0), (0.99, 90.0)]);
        for (u, expected) in [
            (0.0, 0.0),
            (0.25, 5.0),
            (0.5, 10.0),
            (0.7, 20.0),
            (1.0, 90.0),
        ] {
            assert!((points.at(u, 1e9) - expected).abs() < 1e-9, "{u}");
        }
    }
}
