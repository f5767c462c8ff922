//! Mean, variance and what a part contributes to the variance of a sum.

/// Arithmetic mean; `None` for an empty sample. The mean of equal values is their value.
pub fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let count = values.len() as f64;
    let (sum, lost) = total(values);
    let mean = sum / count;
    if !mean.is_finite() {
        return Some(mean);
    }
    let rest = (-mean).mul_add(count, sum) + lost;
    Some(mean + rest / count)
}

/// The sum, as good as one that is rounded once.
pub fn sum(values: &[f64]) -> f64 {
    let (sum, lost) = total(values);
    // An infinite sum has lost what is no number.
    if sum.is_finite() { sum + lost } else { sum }
}

/// A sum, and what rounding took from it (Neumaier, "Rundungsfehleranalyse einiger Verfahren zur
/// Summation endlicher Summen", 1974).
fn total(values: &[f64]) -> (f64, f64) {
    let (mut sum, mut lost) = (0.0_f64, 0.0_f64);
    for value in values {
        let next = sum + value;
        lost += match sum.abs() >= value.abs() {
            true => (sum - next) + value,
            false => (value - next) + sum,
        };
        sum = next;
    }
    (sum, lost)
}

/// Covariance of the population, `1/n * sum (x - mean x)(y - mean y)`, in two
/// passes so that large values with small differences keep their digits
/// (Chan, Golub and LeVeque, "Algorithms for Computing the Sample Variance", 1983).
///
/// `None` when the samples are empty or differ in length.
pub fn covariance(xs: &[f64], ys: &[f64]) -> Option<f64> {
    if xs.len() != ys.len() {
        return None;
    }
    let (mean_x, mean_y) = (mean(xs)?, mean(ys)?);
    let products = xs.iter().zip(ys).map(|(x, y)| (x - mean_x) * (y - mean_y));
    Some(products.sum::<f64>() / xs.len() as f64)
}

/// Variance of the population; `None` for an empty sample.
pub fn variance(values: &[f64]) -> Option<f64> {
    covariance(values, values)
}

/// How much of the differences between totals comes from one part:
/// `cov(part, total) / var(total)`. When the totals are the sums of several
/// parts, the shares of these parts add up to 1, because covariance is linear.
/// A share is negative when the part is short where the total is long.
///
/// `None` when the samples are empty, differ in length, or all totals are equal.
pub fn share_of_variance(part: &[f64], total: &[f64]) -> Option<f64> {
    let whole = variance(total)?;
    if whole <= 0.0 {
        return None;
    }
    Some(covariance(part, total)? / whole)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn moments_of_a_known_sample() {
        let xs = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(mean(&xs), Some(5.0));
        assert_eq!(variance(&xs), Some(4.0));
        assert_eq!(
            covariance(&[1.0, 2.0, 3.0], &[6.0, 4.0, 2.0]),
            Some(-4.0 / 3.0)
        );
    }

    #[test]
    fn equal_values_have_their_mean() {
        for value in [0.1, 0.7, 1.1, 1e-9, 123.456] {
            for count in [3, 10, 1_000] {
                assert_eq!(mean(&vec![value; count]), Some(value), "{value} {count}");
            }
        }
        assert_eq!(sum(&[1.0, 1e100, 1.0, -1e100]), 2.0);
        assert_eq!(sum(&[1.0, f64::INFINITY]), f64::INFINITY);
    }

    #[test]
    fn nothing_can_be_said_about_nothing() {
        assert_eq!(mean(&[]), None);
        assert_eq!(variance(&[]), None);
        assert_eq!(covariance(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(share_of_variance(&[1.0, 2.0], &[3.0, 3.0]), None);
    }

    #[test]
    fn a_constant_part_explains_nothing() {
        let total = [11.0, 12.0, 13.0];
        assert_eq!(share_of_variance(&[10.0; 3], &total), Some(0.0));
        assert_eq!(share_of_variance(&[1.0, 2.0, 3.0], &total), Some(1.0));
    }

    proptest! {
        #[test]
        fn shares_of_all_parts_add_up_to_one(
            rows in prop::collection::vec([0u32..1_000_000, 0u32..1_000_000, 0u32..1_000_000], 2..50)
        ) {
            let part = |i: usize| rows.iter().map(|row| f64::from(row[i])).collect::<Vec<_>>();
            let total: Vec<f64> = rows.iter().map(|row| row.iter().copied().map(f64::from).sum()).collect();
            prop_assume!(variance(&total) > Some(0.0));
            let sum: f64 = (0..3).filter_map(|i| share_of_variance(&part(i), &total)).sum();
            prop_assert!((sum - 1.0).abs() < 1e-6, "{}", sum);
        }
    }
}
