//! Where differences lie, and how surely, without a word on their distribution.

use crate::mann_whitney::sums_of_choices;
use crate::normal_quantile;
use crate::signed_rank::sums_of_ranks;

/// Up to so many values the ranks of an interval's ends are exact.
const EXACT_MOST: usize = 50;

/// An estimate of location and every interval of it (Hodges and Lehmann, "Estimates of location
/// based on rank tests", 1963; intervals as in Hollander, Wolfe and Chicken, "Nonparametric
/// Statistical Methods", 2014, 3.3 and 4.3): candidates in ascending order, of which the median
/// is the estimate, and those at a rank from either end are the ends of an interval.
#[derive(Debug, Clone)]
pub struct HodgesLehmann {
    candidates: Vec<f64>,
    ranks: Ranks,
}

/// Which candidate bounds an interval.
#[derive(Debug, Clone)]
enum Ranks {
    /// The probability that the test's statistic is at most 0, 1, 2 and so on.
    Exact(Vec<f64>),
    /// The statistic is normal.
    Normal { mean: f64, deviation: f64 },
}

impl HodgesLehmann {
    /// Where one sample lies, symmetric around its centre: candidates are the means of every
    /// two values, each with itself as well (Walsh averages), and intervals those of the
    /// signed-rank test. `None` without a value, or when one is not finite. Memory grows with
    /// the square of their number.
    #[must_use]
    pub fn of_one(values: &[f64]) -> Option<Self> {
        if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let each = values.iter().enumerate();
        let candidates =
            each.flat_map(|(at, one)| values[at..].iter().map(|other| one.midpoint(*other)));
        let n = values.len() as f64;
        let ranks = if values.len() <= EXACT_MOST {
            let ranks: Vec<f64> = (1..=values.len()).map(|rank| rank as f64).collect();
            Ranks::cumulated(&sums_of_ranks(&ranks).shares)
        } else {
            Ranks::Normal {
                mean: n * (n + 1.0) / 4.0,
                deviation: (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt(),
            }
        };
        Some(Self::of(candidates.collect(), ranks))
    }

    /// By how much `b` lies above `a`, both of one shape: candidates are all differences, and
    /// intervals those of the test of Mann and Whitney. `None` when a sample is empty or a value
    /// is not finite. Memory grows with the product of their numbers.
    #[must_use]
    pub fn of_two(a: &[f64], b: &[f64]) -> Option<Self> {
        let finite = a.iter().chain(b).all(|value| value.is_finite());
        if a.is_empty() || b.is_empty() || !finite {
            return None;
        }
        let candidates = b.iter().flat_map(|b| a.iter().map(move |a| b - a));
        let (n, m) = (a.len() as f64, b.len() as f64);
        let ranks = if a.len() + b.len() <= EXACT_MOST {
            let ranks: Vec<f64> = (1..=a.len() + b.len()).map(|rank| rank as f64).collect();
            let sums = sums_of_choices(&ranks, b.len()).shares;
            Ranks::cumulated(&sums[b.len() * (b.len() + 1)..])
        } else {
            Ranks::Normal {
                mean: n * m / 2.0,
                deviation: (n * m * (n + m + 1.0) / 12.0).sqrt(),
            }
        };
        Some(Self::of(candidates.collect(), ranks))
    }

    fn of(mut candidates: Vec<f64>, ranks: Ranks) -> Self {
        candidates.sort_by(f64::total_cmp);
        Self { candidates, ranks }
    }

    /// The median of the candidates.
    #[must_use]
    pub fn estimate(&self) -> f64 {
        let half = self.candidates.len() / 2;
        match self.candidates.len() % 2 {
            0 => self.candidates[half - 1].midpoint(self.candidates[half]),
            _ => self.candidates[half],
        }
    }

    /// The largest candidate above which the true value lies with all but the probability
    /// `tail`; `None` when there are too few values for that.
    #[must_use]
    pub fn low(&self, tail: f64) -> Option<f64> {
        Some(self.candidates[self.ranks.outside(tail)?])
    }

    /// The smallest candidate below which the true value lies with all but the probability
    /// `tail`; `None` when there are too few values for that.
    #[must_use]
    pub fn high(&self, tail: f64) -> Option<f64> {
        let last = self.candidates.len() - 1;
        Some(self.candidates[last - self.ranks.outside(tail)?])
    }
}

impl Ranks {
    /// Of the probabilities of a doubled statistic, whose every second one is 0.
    fn cumulated(doubled: &[f64]) -> Self {
        let mut sum = 0.0;
        let shares = doubled.iter().step_by(2);
        Self::Exact(
            shares
                .map(|share| {
                    sum += share;
                    sum
                })
                .collect(),
        )
    }

    /// How many candidates lie outside an end of the interval, at most half of them.
    fn outside(&self, tail: f64) -> Option<usize> {
        if tail.is_nan() {
            return None;
        }
        let tail = tail.min(0.5);
        let within = match self {
            // Probabilities are sums, rounded.
            Self::Exact(cumulated) => {
                cumulated.partition_point(|share| *share <= tail * (1.0 + 1e-12))
            }
            Self::Normal { mean, deviation } => {
                let rank = mean + 0.5 + deviation * normal_quantile(tail);
                rank.max(0.0) as usize
            }
        };
        within.checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix;

    #[test]
    fn one_sample_by_hand() {
        // Walsh averages of 1, 2, 6: 1, 1.5, 2, 3.5, 4, 6.
        let found = HodgesLehmann::of_one(&[6.0, 1.0, 2.0]).unwrap();
        assert_eq!(found.estimate(), 2.75);
        // One of eight choices of signs is beyond either end.
        assert_eq!(
            (found.low(0.125), found.high(0.125)),
            (Some(1.0), Some(6.0))
        );
        assert_eq!((found.low(0.12), found.high(0.12)), (None, None));
        assert!(found.low(0.9) <= Some(found.estimate()));
    }

    #[test]
    fn two_samples_by_hand() {
        let found = HodgesLehmann::of_two(&[1.0, 2.0], &[4.0, 8.0]).unwrap();
        assert_eq!(found.estimate(), 4.5);
        assert_eq!((found.low(0.17), found.high(0.17)), (Some(2.0), Some(7.0)));
        assert_eq!(found.low(0.16), None);
    }

    #[test]
    fn intervals_cover_as_often_as_they_say() {
        let mut random = SplitMix::new(11);
        for (n, m) in [(8, 9), (24, 20), (60, 70)] {
            let (mut one, mut two) = (0, 0);
            for _ in 0..400 {
                let a: Vec<f64> = (0..n).map(|_| random.normal()).collect();
                let b: Vec<f64> = (0..m).map(|_| random.normal() + 3.0).collect();
                let of_one = HodgesLehmann::of_one(&b).unwrap();
                let of_two = HodgesLehmann::of_two(&a, &b).unwrap();
                let holds = |of: &HodgesLehmann| {
                    of.low(0.05).unwrap() <= 3.0 && of.high(0.05).unwrap() >= 3.0
                };
                one += u32::from(holds(&of_one));
                two += u32::from(holds(&of_two));
            }
            // 90 % of 400, and what is discrete covers more; five standard deviations.
            assert!((330..=398).contains(&one), "{one} of {n}");
            assert!((330..=398).contains(&two), "{two} of {n} and {m}");
        }
    }

    #[test]
    fn what_says_nothing_is_none() {
        assert!(HodgesLehmann::of_one(&[]).is_none());
        assert!(HodgesLehmann::of_one(&[f64::NAN]).is_none());
        assert!(HodgesLehmann::of_two(&[1.0], &[]).is_none());
        assert!(HodgesLehmann::of_two(&[1.0], &[f64::INFINITY]).is_none());
    }
}
