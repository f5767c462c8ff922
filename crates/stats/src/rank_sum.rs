//! Whether values of two samples differ in where they lie.

use crate::mid_ranks::{MidRanks, mid_ranks};

/// The rank-sum statistic of `b` beside `a` (Mann and Whitney 1947), as a standard normal
/// deviate with the correction for ties: above 0, `b` tends to be larger. Both are in the
/// order of time: where neighbours resemble each other, as in bursts, a sample counts as
/// fewer values, by the correlation of neighbours' ranks. `None`: a sample has fewer than 4
/// values, for which the normal distribution stands in badly, or all values are equal.
pub fn rank_sum(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len().min(b.len()) < 4 {
        return None;
    }
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    let MidRanks { ranks, ties } = mid_ranks(&all);
    let (of_a, of_b) = ranks.split_at(a.len());
    let (n, m) = (a.len() as f64, b.len() as f64);
    let all = n + m;
    let variance = n * m / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
    let sum: f64 = of_b.iter().sum();
    let deviate = (sum - m * (m + 1.0) / 2.0 - n * m / 2.0) / variance.sqrt();
    let (fewer_n, fewer_m) = (n * independent(of_a), m * independent(of_b));
    let weight = |n: f64, m: f64| n * m / (n + m);
    let deviate = deviate * (weight(fewer_n, fewer_m) / weight(n, m)).sqrt();
    deviate.is_finite().then_some(deviate)
}

/// As what share of themselves values count, by the correlation of neighbours: that of a
/// first-order autoregression. Never above 1.
fn independent(values: &[f64]) -> f64 {
    let Some(mean) = crate::mean(values) else {
        return 1.0;
    };
    let square: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let products = values
        .windows(2)
        .map(|two| (two[0] - mean) * (two[1] - mean));
    let correlation = products.sum::<f64>() / square;
    // As many as this are chance.
    let by_chance = 2.0 / (values.len() as f64).sqrt();
    match correlation > by_chance {
        true => (1.0 - correlation).max(0.0) / (1.0 + correlation),
        false => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix;

    #[test]
    fn the_textbook_example_is_as_in_the_textbook() {
        // U = 10 of 5 x 6 by hand: ranks of b are 2, 4, 5, 6, 8, 11, without ties.
        let a = [1.0, 3.0, 7.0, 9.0, 10.0];
        let b = [2.0, 4.0, 5.0, 6.0, 8.0, 11.0];
        let found = rank_sum(&a, &b).unwrap();
        let expected = (36.0 - 21.0 - 15.0) / (5.0 * 6.0 * 12.0 / 12.0_f64).sqrt();
        assert!((found - expected).abs() < 1e-12, "{found}");
    }

    #[test]
    fn equal_samples_do_not_differ_and_shifted_ones_do() {
        let mut random = SplitMix::new(7);
        let mut draw =
            |shift: f64| -> Vec<f64> { (0..200).map(|_| random.exponential() + shift).collect() };
        let mut false_alarms = 0;
        for _ in 0..1000 {
            let (a, b) = (draw(0.0), draw(0.0));
            false_alarms += u32::from(rank_sum(&a, &b).unwrap().abs() > 1.96);
        }
        // Five standard deviations about 5 %.
        assert!((16..=84).contains(&false_alarms), "{false_alarms}");
        assert!(rank_sum(&draw(0.0), &draw(0.5)).unwrap() > 4.0);
        assert!(rank_sum(&draw(0.5), &draw(0.0)).unwrap() < -4.0);
    }

    #[test]
    fn bursts_count_as_fewer_values() {
        let mut random = SplitMix::new(9);
        let mut bursts = || -> Vec<f64> {
            let levels: Vec<f64> = (0..20).map(|_| random.exponential()).collect();
            (0..400)
                .map(|at| levels[at / 20] + 0.01 * random.uniform())
                .collect()
        };
        let far = (0..500).filter(|_| rank_sum(&bursts(), &bursts()).unwrap().abs() > 3.0);
        // Taken as independent, more than half of them would be that far apart.
        assert!(far.count() < 10);
    }

    #[test]
    fn what_says_nothing_is_none() {
        assert_eq!(rank_sum(&[1.0; 3], &[2.0; 9]), None);
        assert_eq!(rank_sum(&[1.0; 9], &[1.0; 9]), None);
    }
}
