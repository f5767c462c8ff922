//! Whether the means of two samples differ.

use crate::moments::{mean, variance};
use crate::student_tail;

/// Student's test with a common variance ("The probable error of a mean", 1908), both sides:
/// how likely means at least as far apart are, were both samples of one normal distribution.
/// `worth` is as how many independent values each value counts, 1 unless neighbours resemble
/// each other.
///
/// `None` when a sample is empty, a value is not finite, or too few values are left to know
/// their spread from.
#[must_use]
pub fn t_test(a: &[f64], b: &[f64], worth: f64) -> Option<f64> {
    if a.iter().chain(b).any(|value| !value.is_finite()) {
        return None;
    }
    let apart = (mean(a)? - mean(b)?).abs();
    let (n, m) = (a.len() as f64, b.len() as f64);
    let squares = variance(a)? * n + variance(b)? * m;
    let freedom = (n + m) * worth - 2.0;
    if freedom <= 0.0 {
        return None;
    }
    // Among independent values, the sum of squares has n + m - 2 degrees of freedom.
    let spread = squares / (n + m - 2.0).max(1.0) * (1.0 / n + 1.0 / m) / worth;
    Some(match (apart > 0.0, spread > 0.0) {
        (false, _) => 1.0,
        (true, false) => 0.0,
        (true, true) => (2.0 * student_tail(apart / spread.sqrt(), freedom)).min(1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degenerate_samples_have_an_answer() {
        assert_eq!(t_test(&[1.0, 1.0], &[1.0, 1.0], 1.0), Some(1.0));
        assert_eq!(t_test(&[1.0, 1.0], &[2.0, 2.0], 1.0), Some(0.0));
        assert_eq!(t_test(&[1.0], &[2.0], 1.0), None);
        assert_eq!(t_test(&[], &[2.0, 3.0], 1.0), None);
        assert_eq!(t_test(&[1.0, f64::NAN], &[2.0, 3.0], 1.0), None);
        assert_eq!(t_test(&[1.0, 2.0], &[2.0, 3.0], 0.5), None);
    }

    #[test]
    fn values_that_count_for_less_say_less() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0], [3.0, 4.0, 5.0, 6.0, 7.0]);
        let (all, half) = (t_test(&a, &b, 1.0), t_test(&a, &b, 0.5));
        assert!(half > all);
    }
}
