//! Whether a sample comes from a given distribution.

/// What the Kolmogorov-Smirnov test says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goodness {
    /// Largest distance between the sample's distribution function and the given one.
    pub distance: f64,
    /// Probability of such a distance or a larger one, if the sample does come from
    /// the distribution.
    pub p_value: f64,
}

/// The one-sample Kolmogorov-Smirnov test. `sorted` is ascending; `cdf` is the
/// distribution function, continuous and fixed before the sample was seen (estimated
/// parameters make the p-value too large).
///
/// The p-value is the asymptotic one at `(√n + 0.12 + 0.11/√n) D`, good to three
/// digits from n = 5 on (Stephens, "Use of the Kolmogorov-Smirnov, Cramér-von Mises
/// and related statistics without extensive tables", 1970).
///
/// `None` for an empty sample, or when `cdf` gives no number.
pub fn kolmogorov_smirnov(sorted: &[f64], cdf: impl Fn(f64) -> f64) -> Option<Goodness> {
    let n = sorted.len() as f64;
    let mut distance: f64 = 0.0;
    for (below, value) in sorted.iter().enumerate() {
        let expected = cdf(*value);
        if expected.is_nan() {
            return None;
        }
        let before = expected - below as f64 / n;
        let after = (below + 1) as f64 / n - expected;
        distance = distance.max(before).max(after);
    }
    (n > 0.0).then(|| {
        let root = n.sqrt();
        let p_value = kolmogorov_tail((root + 0.12 + 0.11 / root) * distance);
        Goodness { distance, p_value }
    })
}

/// Probability that Kolmogorov's distribution exceeds `x`:
/// `2 Σ (-1)^(k-1) exp(-2 k² x²)`.
fn kolmogorov_tail(x: f64) -> f64 {
    // The series converges too slowly here, and the probability is 1 to 12 digits.
    if x < 0.2 {
        return 1.0;
    }
    let mut sum = 0.0;
    let mut sign = 1.0;
    for k in 1..=50 {
        let term = (-2.0 * f64::from(k * k) * x * x).exp();
        sum += sign * term;
        sign = -sign;
        if term < 1e-16 {
            break;
        }
    }
    (2.0 * sum).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix;

    fn sorted(mut sample: Vec<f64>) -> Vec<f64> {
        sample.sort_by(f64::total_cmp);
        sample
    }

    #[test]
    fn critical_values_are_those_of_the_tables() {
        for (x, p) in [(1.2238, 0.10), (1.3581, 0.05), (1.6276, 0.01)] {
            assert!((kolmogorov_tail(x) - p).abs() < 1e-4, "{x}");
        }
        assert_eq!(kolmogorov_tail(0.0), 1.0);
        assert!((kolmogorov_tail(0.2) - 1.0).abs() < 1e-6);
        assert!(kolmogorov_tail(40.0) < 1e-300);
    }

    #[test]
    fn the_distance_counts_both_sides_of_a_step() {
        let found = kolmogorov_smirnov(&[0.5], |x| x).unwrap();
        assert_eq!(found.distance, 0.5);
        let found = kolmogorov_smirnov(&[0.1, 0.2, 0.9], |x| x).unwrap();
        assert!((found.distance - (2.0 / 3.0 - 0.2)).abs() < 1e-12);
        assert_eq!(kolmogorov_smirnov(&[], |x| x), None);
        assert_eq!(kolmogorov_smirnov(&[0.1], |_| f64::NAN), None);
    }

    #[test]
    fn p_values_of_true_samples_are_uniform() {
        let p_values = sorted(
            (0..400)
                .map(|seed| {
                    let mut random = SplitMix::new(seed);
                    let sample = sorted((0..200).map(|_| random.exponential()).collect());
                    let found = kolmogorov_smirnov(&sample, |x| 1.0 - (-x).exp());
                    found.unwrap().p_value
                })
                .collect(),
        );
        assert!(kolmogorov_smirnov(&p_values, |p| p).unwrap().p_value > 0.001);
    }

    #[test]
    fn another_distribution_is_found_out() {
        let mut random = SplitMix::new(1);
        let gaps = sorted((0..1000).map(|_| 1.15 * random.exponential()).collect());
        let found = kolmogorov_smirnov(&gaps, |x| 1.0 - (-x).exp()).unwrap();
        assert!(found.p_value < 0.01, "{}", found.p_value);
    }
}
