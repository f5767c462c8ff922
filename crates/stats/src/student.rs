//! Quantiles of the normal and of Student's distribution.

/// The `q`-quantile of the standard normal distribution, to 5e-4 (Abramowitz and
/// Stegun, "Handbook of Mathematical Functions", 26.2.23). `q` strictly between 0 and 1.
pub fn normal_quantile(q: f64) -> f64 {
    let tail = q.min(1.0 - q);
    let t = (-2.0 * tail.ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    let distance = t - above / below;
    if q < 0.5 { -distance } else { distance }
}

/// Probability that a standard normal number is below `z`, to 1e-7 (26.2.17 of the same
/// book).
pub(crate) fn normal_probability(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let terms = [
        0.319_381_530,
        -0.356_563_782,
        1.781_477_937,
        -1.821_255_978,
        1.330_274_429,
    ];
    let sum = terms.iter().rev().fold(0.0, |sum, term| (sum + term) * t);
    let tail = sum * (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt();
    if z < 0.0 { tail } else { 1.0 - tail }
}

/// The `q`-quantile of Student's distribution with at least two degrees of freedom, to
/// 2 % for 0.02 < q < 0.98 (expansion 26.7.5 of the same book).
pub fn student_quantile(q: f64, freedom: f64) -> f64 {
    let z = normal_quantile(q);
    let z2 = z * z;
    let first = z * (z2 + 1.0) / 4.0;
    let second = z * (z2 * (5.0 * z2 + 16.0) + 3.0) / 96.0;
    let third = z * (z2 * (z2 * (3.0 * z2 + 19.0) + 17.0) - 15.0) / 384.0;
    z + (first + (second + third / freedom) / freedom) / freedom
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (q, z) in [(0.5, 0.0), (0.95, 1.6449), (0.975, 1.9600), (0.995, 2.5758)] {
            assert!((normal_quantile(q) - z).abs() < 5e-4, "{q}");
            assert!((normal_quantile(1.0 - q) + z).abs() < 5e-4, "{q}");
        }
        let table = [
            (0.95, 2.0, 2.920),
            (0.95, 5.0, 2.015),
            (0.975, 4.0, 2.776),
            (0.95, 30.0, 1.697),
        ];
        for (q, freedom, t) in table {
            assert!(
                (student_quantile(q, freedom) / t - 1.0).abs() < 0.02,
                "{q} {freedom}"
            );
        }
    }
}
