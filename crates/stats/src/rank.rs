//! The one definition of a percentile.

/// The `q`-quantile of a sample by nearest rank: the value at rank `ceil(q * n)`,
/// counted from 1 (type 1 of Hyndman and Fan, "Sample Quantiles in Statistical
/// Packages", 1996). It is always a value that was measured, never a mixture.
///
/// `sorted` must be in ascending order. `q` is a share from 0 to 1; values
/// outside are taken as 0 and 1, and 0 gives the smallest value. `None` when the
/// sample is empty or `q` is not a number.
pub fn nearest_rank<T: Copy>(sorted: &[T], q: f64) -> Option<T> {
    if q.is_nan() {
        return None;
    }
    // 0.07 * 100.0 is a hair above 7; without the correction its rank would be 8.
    let exact = q.clamp(0.0, 1.0) * sorted.len() as f64 * (1.0 - 4.0 * f64::EPSILON);
    let rank = (exact.ceil() as usize).clamp(1, sorted.len().max(1));
    sorted.get(rank - 1).copied()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn follows_the_definition_on_small_samples() {
        let five = [15, 20, 35, 40, 50];
        assert_eq!(nearest_rank(&five, 0.05), Some(15));
        assert_eq!(nearest_rank(&five, 0.30), Some(20));
        assert_eq!(nearest_rank(&five, 0.40), Some(20));
        assert_eq!(nearest_rank(&five, 0.50), Some(35));
        assert_eq!(nearest_rank(&five, 1.00), Some(50));
        assert_eq!(nearest_rank(&[7], 0.99), Some(7));
    }

    #[test]
    fn stays_inside_the_sample() {
        assert_eq!(nearest_rank::<i64>(&[], 0.5), None);
        assert_eq!(nearest_rank(&[1, 2], f64::NAN), None);
        assert_eq!(nearest_rank(&[1, 2], -1.0), Some(1));
        assert_eq!(nearest_rank(&[1, 2], 0.0), Some(1));
        assert_eq!(nearest_rank(&[1, 2], 2.0), Some(2));
    }

    proptest! {
        /// With q = k/1000 the rank can be computed in whole numbers.
        #[test]
        fn has_the_rank_that_whole_numbers_give(n in 1usize..5000, k in 1usize..=1000) {
            let sorted: Vec<usize> = (1..=n).collect();
            let rank = (k * n).div_ceil(1000);
            prop_assert_eq!(nearest_rank(&sorted, k as f64 / 1000.0), Some(rank));
        }
    }
}
