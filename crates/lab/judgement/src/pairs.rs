//! Pairs of runs: which runs first, and by how much the new one is worse.

use serde::{Deserialize, Serialize};
use stats::SplitMix;

use crate::Direction;

/// Ratios beyond this, and those of zero to anything else, count as it: a logarithm must be
/// finite, and only ranks are looked at.
const LARGEST_RATIO: f64 = 1e6;

/// Which program of a pair runs first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The base, then the new one.
    BaseFirst,
    /// The new one, then the base.
    NewFirst,
}

impl Order {
    /// That of a pair, counted from 0: a coin of the seed. A machine that drifts, and whatever
    /// the first run leaves behind for the second, so falls on either program by chance.
    pub(crate) fn of_pair(seed: u64, pair: u64) -> Self {
        // The number of this pair in the sequence of the seed, without those before it.
        let at = seed.wrapping_add(pair.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        match SplitMix::new(at).bits() >> 63 {
            0 => Self::BaseFirst,
            _ => Self::NewFirst,
        }
    }
}

/// What a pair of runs measured of one metric.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PairValues {
    /// Of the base; `None` when the run has no value for it or is invalid.
    pub base: Option<f64>,
    /// The same of the new program.
    pub new: Option<f64>,
}

/// Pairs of which a metric cannot be judged. A value that is negative or not finite is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Pairs of which only the base has no value.
    pub in_base: usize,
    /// Pairs of which only the new program has no value.
    pub in_new: usize,
    /// Pairs without both.
    pub in_both: usize,
    /// Of all these, pairs with a value below zero: there is one, but no ratio of it.
    #[serde(default)]
    pub negative: usize,
}

/// A value of which a ratio can be taken.
pub(crate) fn usable(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite() && *value >= 0.0)
}

/// A value of which no ratio can be taken, though there is one.
pub(crate) fn is_negative(value: Option<f64>) -> bool {
    value.is_some_and(|value| value.is_finite() && value < 0.0)
}

/// By how much new is worse, as a logarithm. Two zeros are equal.
pub(crate) fn worse_by(direction: Direction, base: f64, new: f64) -> f64 {
    if base == new {
        return 0.0;
    }
    let most = LARGEST_RATIO.ln();
    direction.worse_by(base, new).clamp(-most, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_those_of_the_seed_and_as_often_one_as_the_other() {
        for seed in 0..50 {
            let orders: Vec<Order> = (0..400).map(|pair| Order::of_pair(seed, pair)).collect();
            let again: Vec<Order> = (0..400).map(|pair| Order::of_pair(seed, pair)).collect();
            assert_eq!(orders, again);
            let first = orders.iter().filter(|order| **order == Order::BaseFirst);
            // Five standard deviations of fair coins.
            assert!((150..=250).contains(&first.count()));
            let turns = orders.windows(2).filter(|two| two[0] != two[1]).count();
            assert!((150..=250).contains(&turns));
        }
        let orders = |seed| (0..64).map(move |pair| Order::of_pair(seed, pair));
        assert!(!orders(1).eq(orders(2)));
    }

    #[test]
    fn zeros_have_ratios() {
        let lower = |base, new| worse_by(Direction::LowerIsBetter, base, new);
        assert_eq!(lower(0.0, 0.0), 0.0);
        assert_eq!(lower(0.0, 1.0), 1e6_f64.ln());
        assert_eq!(lower(1.0, 0.0), -(1e6_f64.ln()));
        assert_eq!(worse_by(Direction::HigherIsBetter, 5.0, 0.0), 1e6_f64.ln());
        assert_eq!(lower(1e-300, 1e300), 1e6_f64.ln());
    }

    #[test]
    fn what_is_no_quantity_is_no_value() {
        assert_eq!(usable(Some(0.0)), Some(0.0));
        for value in [f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(usable(Some(value)), None);
        }
    }
}
