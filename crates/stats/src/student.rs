//! The normal and Student's distribution: probabilities and quantiles.

use std::f64::consts::FRAC_1_SQRT_2;

/// The `q`-quantile of the standard normal distribution, to 15 digits (Wichura, "Algorithm AS
/// 241: the percentage points of the normal distribution", 1988). `q` strictly between 0 and 1.
pub fn normal_quantile(q: f64) -> f64 {
    const A: [f64; 8] = [
        3.387_132_872_796_366_5,
        133.141_667_891_784_38,
        1_971.590_950_306_551_3,
        13_731.693_765_509_46,
        45_921.953_931_549_87,
        67_265.770_927_008_7,
        33_430.575_583_588_13,
        2_509.080_928_730_122_7,
    ];
    const B: [f64; 8] = [
        1.0,
        42.313_330_701_600_91,
        687.187_007_492_057_9,
        5_394.196_021_424_751,
        21_213.794_301_586_597,
        39_307.895_800_092_71,
        28_729.085_735_721_943,
        5_226.495_278_852_854,
    ];
    const C: [f64; 8] = [
        1.423_437_110_749_683_5,
        4.630_337_846_156_546,
        5.769_497_221_460_691,
        3.647_848_324_763_204_5,
        1.270_458_252_452_368_4,
        0.241_780_725_177_450_6,
        0.022_723_844_989_269_184,
        0.000_774_545_014_278_341_4,
    ];
    const D: [f64; 8] = [
        1.0,
        2.053_191_626_637_759,
        1.676_384_830_183_803_8,
        0.689_767_334_985_1,
        0.148_103_976_427_480_08,
        0.015_198_666_563_616_457,
        0.000_547_593_808_499_534_5,
        1.050_750_071_644_416_9e-09,
    ];
    const E: [f64; 8] = [
        6.657_904_643_501_103,
        5.463_784_911_164_114,
        1.784_826_539_917_291_3,
        0.296_560_571_828_504_87,
        0.026_532_189_526_576_124,
        0.001_242_660_947_388_078_4,
        2.711_555_568_743_487_6e-05,
        2.010_334_399_292_288_1e-07,
    ];
    const F: [f64; 8] = [
        1.0,
        0.599_832_206_555_888,
        0.136_929_880_922_735_8,
        0.014_875_361_290_850_615,
        0.000_786_869_131_145_613_3,
        1.846_318_317_510_054_8e-05,
        1.421_511_758_316_446e-07,
        2.044_263_103_389_939_7e-15,
    ];
    let polynomial = |c: &[f64; 8], x: f64| c.iter().rev().fold(0.0, |sum, c| sum * x + c);
    let away = q - 0.5;
    if away.abs() <= 0.425 {
        let r = 0.180_625 - away * away;
        return away * polynomial(&A, r) / polynomial(&B, r);
    }
    let r = (-q.min(1.0 - q).ln()).sqrt();
    let distance = match r <= 5.0 {
        true => polynomial(&C, r - 1.6) / polynomial(&D, r - 1.6),
        false => polynomial(&E, r - 5.0) / polynomial(&F, r - 5.0),
    };
    distance.copysign(away)
}

/// Probability that a standard normal number is below `z`, to 15 digits in either tail.
pub fn normal_probability(z: f64) -> f64 {
    0.5 * libm::erfc(-z * FRAC_1_SQRT_2)
}

/// Probability that a number of Student's distribution is above `t`, to 1e-11 of itself.
/// `freedom` above 0.
pub fn student_tail(t: f64, freedom: f64) -> f64 {
    let beyond = 0.5 * incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t));
    if t < 0.0 { 1.0 - beyond } else { beyond }
}

/// The `q`-quantile of Student's distribution, to 1e-10 of itself. `q` strictly between 0 and
/// 1, `freedom` above 0.
pub fn student_quantile(q: f64, freedom: f64) -> f64 {
    let tail = q.min(1.0 - q);
    let (mut low, mut high) = (0.0, 1.0);
    while student_tail(high, freedom) > tail && high < 1e300 {
        (low, high) = (high, 2.0 * high);
    }
    while high - low > 1e-11 * high {
        let middle = f64::midpoint(low, high);
        match student_tail(middle, freedom) > tail {
            true => low = middle,
            false => high = middle,
        }
    }
    let distance = f64::midpoint(low, high);
    if q < 0.5 { -distance } else { distance }
}

/// The regularised incomplete beta function, by its continued fraction with Lentz's method
/// (Press et al., "Numerical Recipes", 2007, 6.4).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges fast only on this side of the mean.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let ln_beta = libm::lgamma(a) + libm::lgamma(b) - libm::lgamma(a + b);
    let front = (a * x.ln() + b * (-x).ln_1p() - ln_beta).exp() / a;
    let away_from_zero = |value: f64| match value.abs() < 1e-300 {
        true => 1e-300,
        false => value,
    };
    let (mut c, mut d) = (1.0, 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in 1..500_u32 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = fraction;
        for term in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + term * d);
            c = away_from_zero(1.0 + term / c);
            fraction *= c * d;
        }
        if (fraction / before - 1.0).abs() < 1e-15 {
            break;
        }
    }
    front * fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (q, z) in [(0.5, 0.0), (0.95, 1.6449), (0.975, 1.9600), (0.995, 2.5758)] {
            assert!((normal_quantile(q) - z).abs() < 5e-5, "{q}");
            assert!((normal_quantile(1.0 - q) + z).abs() < 5e-5, "{q}");
        }
        let table = [
            (0.95, 2.0, 2.920),
            (0.95, 5.0, 2.015),
            (0.975, 4.0, 2.776),
            (0.95, 30.0, 1.697),
        ];
        for (q, freedom, t) in table {
            assert!(
                (student_quantile(q, freedom) / t - 1.0).abs() < 5e-4,
                "{q} {freedom}"
            );
        }
    }
}
