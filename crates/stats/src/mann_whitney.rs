//! Whether values of two samples of independent values differ in where they lie.

use crate::mid_ranks::{Exact, mid_ranks, two_sided};
use crate::student::normal_probability;

/// Up to so many values in both samples the distribution is computed, not approximated.
const EXACT_MOST: usize = 50;

/// What the test of Mann and Whitney says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MannWhitney {
    /// Pairs of a value of `b` and a smaller one of `a`, ties as halves.
    pub statistic: f64,
    /// How likely a statistic at least as far from its mean is, were both samples of one
    /// distribution.
    pub p_value: f64,
}

/// The test of Mann and Whitney (1947) of `b` beside `a`. With at most 50 values in both, the
/// distribution over all ways to deal them out is exact, given the ties; beyond, it is the
/// normal one with the corrections for ties and for continuity. Values must be independent:
/// [`rank_sum`](crate::rank_sum) is for series in which neighbours resemble each other.
///
/// `None` when a sample is empty or a value is NaN.
#[must_use]
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Option<MannWhitney> {
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    if a.is_empty() || b.is_empty() || all.iter().any(|value| value.is_nan()) {
        return None;
    }
    let ranked = mid_ranks(&all);
    let (n, m) = (a.len() as f64, b.len() as f64);
    let sum: f64 = ranked.ranks[a.len()..].iter().sum();
    let statistic = sum - m * (m + 1.0) / 2.0;
    let p_value = if all.len() <= EXACT_MOST {
        two_sided(sums_of_choices(&ranked.ranks, b.len()).tails(sum))
    } else {
        let size = n + m;
        let spread = n * m / 12.0 * (size + 1.0 - ranked.ties / (size * (size - 1.0)));
        let far = ((statistic - n * m / 2.0).abs() - 0.5).max(0.0);
        match spread > 0.0 {
            true => (2.0 * normal_probability(-far / spread.sqrt())).min(1.0),
            false => 1.0,
        }
    };
    Some(MannWhitney { statistic, p_value })
}

/// Sums of `chosen` of the ranks when every choice is as likely. Mid-ranks are halves, so they
/// are doubled.
pub(crate) fn sums_of_choices(ranks: &[f64], chosen: usize) -> Exact {
    let doubled: Vec<usize> = ranks.iter().map(|rank| (2.0 * rank) as usize).collect();
    let width = doubled.iter().sum::<usize>() + 1;
    // Ways to reach a sum with so many; below 2^53 for 50 values, so each is exact.
    let mut ways = vec![vec![0.0; width]; chosen + 1];
    ways[0][0] = 1.0;
    for rank in doubled {
        for count in (1..=chosen).rev() {
            let (fewer, more) = ways.split_at_mut(count);
            let reached = more[0][rank..].iter_mut().zip(&fewer[count - 1]);
            for (with, without) in reached {
                *with += without;
            }
        }
    }
    let mut shares = ways.swap_remove(chosen);
    let all: f64 = shares.iter().sum();
    for share in &mut shares {
        *share /= all;
    }
    Exact { shares }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix;

    #[test]
    fn all_above_is_one_choice() {
        let found = mann_whitney(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0, 7.0]).unwrap();
        assert_eq!(found.statistic, 12.0);
        assert!((found.p_value - 2.0 / 35.0).abs() < 1e-15);
    }

    #[test]
    fn equal_samples_are_called_different_as_often_as_stated() {
        let mut random = SplitMix::new(6);
        let mut alarms = |n: usize, shift: f64| {
            let draws = (0..400).filter(|_| {
                let a: Vec<f64> = (0..n).map(|_| random.normal()).collect();
                let b: Vec<f64> = (0..n).map(|_| random.normal() + shift).collect();
                mann_whitney(&a, &b).unwrap().p_value <= 0.05
            });
            draws.count()
        };
        // Five standard deviations around 5 %.
        assert!((2..=42).contains(&alarms(12, 0.0)));
        assert!((2..=42).contains(&alarms(40, 0.0)));
        assert!(alarms(12, 2.0) > 380);
    }

    #[test]
    fn what_says_nothing_is_none_or_one() {
        assert_eq!(mann_whitney(&[], &[1.0]), None);
        assert_eq!(mann_whitney(&[1.0], &[f64::NAN]), None);
        assert_eq!(mann_whitney(&[1.0; 4], &[1.0; 4]).unwrap().p_value, 1.0);
        assert_eq!(mann_whitney(&[1.0; 40], &[1.0; 40]).unwrap().p_value, 1.0);
    }
}
