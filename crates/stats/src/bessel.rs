//! A modified Bessel function.

/// Logarithm of the modified Bessel function of the first kind and order 1, for `x` above
/// 0 (Abramowitz and Stegun, "Handbook of Mathematical Functions", 9.8.3 and 9.8.4; the
/// relative error is below 1e-6).
pub(crate) fn ln_bessel_i1(x: f64) -> f64 {
    let polynomial = |t: f64, c: &[f64]| c.iter().rev().fold(0.0, |sum, c| sum * t + c);
    if x < 3.75 {
        let t = (x / 3.75).powi(2);
        let c = [
            0.5,
            0.878_905_94,
            0.514_988_69,
            0.150_849_34,
            0.026_587_33,
            0.003_015_32,
            0.000_324_11,
        ];
        (x * polynomial(t, &c)).ln()
    } else {
        let c = [
            0.398_942_28,
            -0.039_880_24,
            -0.003_620_18,
            0.001_638_01,
            -0.010_315_55,
            0.022_829_67,
            -0.028_953_12,
            0.017_876_54,
            -0.004_200_59,
        ];
        x + polynomial(3.75 / x, &c).ln() - 0.5 * x.ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_tables() {
        for (x, value) in [
            (0.1, 0.050_062_53),
            (1.0, 0.565_159_1),
            (5.0, 24.335_642),
            (20.0, 42_454_973.4),
        ] {
            let found = ln_bessel_i1(x).exp();
            assert!((found / value - 1.0).abs() < 1e-5, "{x}: {found}");
        }
    }
}
