//! Whether differences lie around zero.

use crate::mid_ranks::{Exact, mid_ranks, two_sided};
use crate::student::normal_probability;

/// Up to so many differences the distribution is computed, not approximated.
const EXACT_MOST: usize = 50;

/// What Wilcoxon's signed-rank test says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignedRank {
    /// Sum of the ranks of the differences above zero.
    pub statistic: f64,
    /// Differences that are not zero: those that count.
    pub counted: usize,
    /// How likely a sum at least as far from its mean is, were the differences symmetric
    /// around zero.
    pub p_value: f64,
    /// The same, of a sum as large or larger: small when the differences lie above zero.
    pub p_above: f64,
}

/// Wilcoxon's signed-rank test (1945) of differences against zero. Zeros are left out (as
/// `zero_method="wilcox"` of scipy), ties share their mean rank. With at most 50 differences
/// the distribution over all signs is exact, given the ties; beyond, it is the normal one with
/// the corrections for ties and for continuity.
///
/// `None` when a difference is NaN or all of them are zero.
#[must_use]
pub fn signed_rank(differences: &[f64]) -> Option<SignedRank> {
    if differences.iter().any(|value| value.is_nan()) {
        return None;
    }
    let counted: Vec<f64> = differences
        .iter()
        .copied()
        .filter(|value| *value != 0.0)
        .collect();
    let sizes: Vec<f64> = counted.iter().map(|value| value.abs()).collect();
    let ranked = mid_ranks(&sizes);
    let signs = counted.iter().zip(&ranked.ranks);
    let statistic = signs
        .filter(|(value, _)| **value > 0.0)
        .map(|(_, rank)| rank)
        .sum();
    let n = counted.len() as f64;
    let (p_value, p_above) = match counted.len() {
        0 => return None,
        1..=EXACT_MOST => {
            let tails = sums_of_ranks(&ranked.ranks).tails(statistic);
            (two_sided(tails), tails.1)
        }
        _ => {
            let mean = n * (n + 1.0) / 4.0;
            let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - ranked.ties / 48.0).sqrt();
            let far = ((statistic - mean).abs() - 0.5).max(0.0) / deviation;
            let above = normal_probability((mean + 0.5 - statistic) / deviation);
            ((2.0 * normal_probability(-far)).min(1.0), above)
        }
    };
    Some(SignedRank {
        statistic,
        counted: counted.len(),
        p_value,
        p_above,
    })
}

/// Sums of ranks when each has the sign of a coin. Mid-ranks are halves, so they are doubled.
pub(crate) fn sums_of_ranks(ranks: &[f64]) -> Exact {
    let doubled: Vec<usize> = ranks.iter().map(|rank| (2.0 * rank) as usize).collect();
    let mut shares = vec![0.0; doubled.iter().sum::<usize>() + 1];
    shares[0] = 1.0;
    let mut reached = 0;
    for rank in doubled {
        reached += rank;
        for sum in (0..=reached).rev() {
            let with = if sum >= rank { shares[sum - rank] } else { 0.0 };
            shares[sum] = 0.5 * (shares[sum] + with);
        }
    }
    Exact { shares }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix;

    #[test]
    fn small_samples_are_as_in_the_tables() {
        // All of n above zero: one of 2^n signs.
        for n in 1..20 {
            let values: Vec<f64> = (1..=n).map(f64::from).collect();
            let found = signed_rank(&values).unwrap();
            assert_eq!(found.p_above, 0.5_f64.powi(n));
            assert_eq!(found.p_value, (2.0 * found.p_above).min(1.0));
        }
    }

    #[test]
    fn both_sides_of_the_change_of_methods_agree() {
        let mut random = SplitMix::new(3);
        let values: Vec<f64> = (0..51).map(|_| random.normal() + 0.3).collect();
        let (exact, normal) = (signed_rank(&values[..50]), signed_rank(&values));
        let (exact, normal) = (exact.unwrap(), normal.unwrap());
        assert!((exact.p_above / normal.p_above).ln().abs() < 0.7);
    }

    #[test]
    fn equal_sides_are_called_different_as_often_as_stated() {
        let mut random = SplitMix::new(5);
        let mut alarms = |shift: f64| {
            let draws = (0..1000).filter(|_| {
                let values: Vec<f64> = (0..20).map(|_| random.normal() + shift).collect();
                signed_rank(&values).unwrap().p_value <= 0.05
            });
            draws.count()
        };
        assert!((20..=80).contains(&alarms(0.0)));
        assert!(alarms(1.0) > 950);
    }

    #[test]
    fn what_says_nothing_is_none() {
        assert_eq!(signed_rank(&[]), None);
        assert_eq!(signed_rank(&[0.0; 9]), None);
        assert_eq!(signed_rank(&[1.0, f64::NAN]), None);
        let endless = signed_rank(&[f64::INFINITY, 1.0, f64::NEG_INFINITY]).unwrap();
        assert_eq!((endless.statistic, endless.counted), (3.5, 3));
    }
}
