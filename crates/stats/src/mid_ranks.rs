//! Ranks, ties sharing the mean of theirs, and exact distributions of their sums.

/// The rank of each value, counted from 1, where equal values share the mean of their ranks.
pub(crate) struct MidRanks {
    /// In the order of the values.
    pub(crate) ranks: Vec<f64>,
    /// The sum of `t^3 - t` over groups of `t` equal values: what corrections for ties need.
    pub(crate) ties: f64,
}

/// Ranks values of which none is NaN.
pub(crate) fn mid_ranks(values: &[f64]) -> MidRanks {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
    let mut ranks = vec![0.0; order.len()];
    let (mut ties, mut before) = (0.0, 0);
    for same in order.chunk_by(|one, next| values[*one] == values[*next]) {
        let count = same.len() as f64;
        for at in same {
            ranks[*at] = before as f64 + (count + 1.0) / 2.0;
        }
        ties += count.powi(3) - count;
        before += same.len();
    }
    MidRanks { ranks, ties }
}

/// A null distribution over whole numbers, and where a statistic lies in it.
pub(crate) struct Exact {
    /// Probability of each value of the doubled statistic.
    pub(crate) shares: Vec<f64>,
}

impl Exact {
    /// Probabilities that the statistic is at most, and at least, `value`.
    pub(crate) fn tails(&self, value: f64) -> (f64, f64) {
        let at = ((2.0 * value).round().max(0.0) as usize).min(self.shares.len() - 1);
        let below: f64 = self.shares[..=at].iter().sum();
        let above: f64 = self.shares[at..].iter().rev().sum();
        (below.min(1.0), above.min(1.0))
    }
}

/// Twice the smaller tail, as tests with two sides have it.
pub(crate) fn two_sided((below, above): (f64, f64)) -> f64 {
    (2.0 * below.min(above)).min(1.0)
}
