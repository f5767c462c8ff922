//! How well a sample knows a quantile.

/// Ranks, counted from 1, between whose values the `q`-quantile of the population lies
/// with at least the given confidence, whatever the distribution: the number of
/// observations at or below it is binomial (n, q), and each tail gets half of what
/// confidence leaves (David and Nagaraja, "Order Statistics", 2003, 7.1).
///
/// An end that lies outside the sample is `None`: with few observations there is no
/// upper bound for a high quantile. `None` altogether when `n` is 0 or `q` or
/// `confidence` is not strictly between 0 and 1. Time grows with √n.
pub fn quantile_ranks(n: u64, q: f64, confidence: f64) -> Option<(Option<u64>, Option<u64>)> {
    let inside = |share: f64| share > 0.0 && share < 1.0;
    if n == 0 || !inside(q) || !inside(confidence) {
        return None;
    }
    let tail = (1.0 - confidence) / 2.0;
    // P(B = k) from the mode outwards by its recurrence, normalised at the end: no
    // factorials, and nothing underflows that matters.
    let mode = (((n + 1) as f64 * q).floor() as u64).min(n);
    let odds = q / (1.0 - q);
    let mut below = Vec::new();
    let (mut k, mut weight) = (mode, 1.0);
    while k > 0 && weight > 1e-18 {
        weight *= k as f64 / (n - k + 1) as f64 / odds;
        k -= 1;
        below.push(weight);
    }
    let mut above = Vec::new();
    (k, weight) = (mode, 1.0);
    while k < n && weight > 1e-18 {
        weight *= (n - k) as f64 / (k + 1) as f64 * odds;
        k += 1;
        above.push(weight);
    }
    let all = 1.0 + below.iter().sum::<f64>() + above.iter().sum::<f64>();

    // Largest l with P(B < l) <= tail, smallest u with P(B >= u) <= tail.
    let lowest = mode - below.len() as u64;
    let mut cumulated = 0.0;
    let mut low = lowest;
    let ascending = below
        .iter()
        .rev()
        .chain(std::iter::once(&1.0))
        .chain(&above);
    for share in ascending {
        cumulated += share / all;
        if cumulated > tail {
            break;
        }
        low += 1;
    }
    let highest = mode + above.len() as u64;
    cumulated = 0.0;
    let mut high = highest + 1;
    let descending = above
        .iter()
        .rev()
        .chain(std::iter::once(&1.0))
        .chain(below.iter());
    for share in descending {
        cumulated += share / all;
        if cumulated > tail {
            break;
        }
        high -= 1;
    }
    Some(((low > 0).then_some(low), (high <= n).then_some(high)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn medians_have_the_ranks_of_the_tables() {
        // Table of ranks for 95 % intervals of the median (Conover, 1999, A3).
        for (n, low, high) in [
            (6, 1, 6),
            (10, 2, 9),
            (20, 6, 15),
            (50, 18, 33),
            (100, 40, 61),
        ] {
            let found = quantile_ranks(n, 0.5, 0.95);
            assert_eq!(found, Some((Some(low), Some(high))), "{n}");
        }
    }

    #[test]
    fn a_small_sample_has_no_upper_bound_for_a_high_quantile() {
        let (low, high) = quantile_ranks(100, 0.99, 0.95).unwrap();
        assert!(low.is_some_and(|rank| rank >= 96));
        assert_eq!(high, None);
        assert_eq!(quantile_ranks(3, 0.5, 0.95), Some((None, None)));
        assert_eq!(quantile_ranks(0, 0.5, 0.95), None);
        assert_eq!(quantile_ranks(10, 1.0, 0.95), None);
        assert_eq!(quantile_ranks(10, 0.5, f64::NAN), None);
    }

    #[test]
    fn a_large_sample_agrees_with_the_normal_approximation() {
        let (low, high) = quantile_ranks(1_000_000_000, 0.999, 0.95).unwrap();
        let half = 1.96 * (1e9f64 * 0.999 * 0.001).sqrt();
        assert!((low.unwrap() as f64 - (0.999e9 - half)).abs() < 5.0);
        assert!((high.unwrap() as f64 - (0.999e9 + half)).abs() < 5.0);
    }

    proptest! {
        /// Checked against sums of the binomial distribution in the plain way.
        #[test]
        fn covers_with_the_confidence_asked_for(n in 1u64..60, q in 0.02f64..0.98, confidence in 0.5f64..0.99) {
            let (low, high) = quantile_ranks(n, q, confidence).unwrap();
            let probability = |k: u64| {
                let choose = (0..k).fold(1.0, |c, i| c * (n - i) as f64 / (i + 1) as f64);
                choose * q.powi(k as i32) * (1.0 - q).powi((n - k) as i32)
            };
            let tail = (1.0 - confidence) / 2.0 + 1e-9;
            let under: f64 = (0..low.unwrap_or(0)).map(probability).sum();
            let over: f64 = (high.unwrap_or(n + 1)..=n).map(probability).sum();
            prop_assert!(under <= tail && over <= tail, "{} {}", under, over);
            // And it is the shortest such interval: one rank less covers too little.
            let shorter: f64 = (0..=low.unwrap_or(0)).map(probability).sum();
            prop_assert!(shorter > tail - 2e-9);
        }
    }
}
