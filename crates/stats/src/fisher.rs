//! Whether a share is larger than another by chance.

/// How likely `b` has at least as many as it has, if all of both fell on the two by chance:
/// the upper tail of the hypergeometric distribution (Fisher's exact test, one-sided). Each is
/// how many of how many, the first at most the second. 1 where nothing is to be told.
pub fn larger_by_chance(a: (u64, u64), b: (u64, u64)) -> f64 {
    let (all, some) = (a.1 + b.1, a.0 + b.0);
    // Below the mean the first term may be too small for a number, and those that follow are not:
    // the other tail is the short one there.
    if (b.0 as f64) * (all as f64) < (some as f64) * (b.1 as f64) {
        return match b.0 == 0 || a.0 == a.1 {
            true => 1.0,
            false => 1.0 - larger_by_chance((b.0 - 1, b.1), (a.0 + 1, a.1)),
        };
    }
    let mut here = b.0;
    let mut term =
        (ln_choices(some, here) + ln_choices(all - some, b.1 - here) - ln_choices(all, b.1)).exp();
    let mut sum = term;
    // Each term from the one before it; they only shrink beyond the mean.
    while here < some.min(b.1) && term > sum * f64::EPSILON {
        let more = ((some - here) * (b.1 - here)) as f64;
        let fewer = ((here + 1) * (a.1 - (some - here) + 1)) as f64;
        term *= more / fewer;
        sum += term;
        here += 1;
    }
    sum.min(1.0)
}

/// The logarithm of the number of ways to choose `some` of `all`.
fn ln_choices(all: u64, some: u64) -> f64 {
    ln_factorial(all) - ln_factorial(some) - ln_factorial(all - some)
}

/// By Stirling's series, to 1e-9 (Abramowitz and Stegun, "Handbook of Mathematical
/// Functions", 6.1.41); small ones as they are.
fn ln_factorial(number: u64) -> f64 {
    if number < 16 {
        return (1..=number).map(|one| (one as f64).ln()).sum();
    }
    let n = number as f64;
    let circle = (std::f64::consts::TAU * n).ln() / 2.0;
    n * n.ln() - n + circle + 1.0 / (12.0 * n) - 1.0 / (360.0 * n.powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_that_of_fishers_test() {
        let chance = |here, there| larger_by_chance(there, here);
        // The lady tasting tea: 1 and 17 of 70 ways.
        assert!((chance((4, 4), (0, 4)) - 1.0 / 70.0).abs() < 1e-9);
        assert!((chance((3, 4), (1, 4)) - 17.0 / 70.0).abs() < 1e-9);
        // All of k failures in one of two equal halves: about 2 to the power of -k.
        assert!((chance((1, 750), (0, 750)) - 0.5).abs() < 1e-9);
        assert!((chance((6, 750), (0, 750)) / 0.015_47 - 1.0).abs() < 0.01);
        assert!(chance((72, 750), (0, 750)) < 1e-20);
        for (requests, others) in [(0, 5), (5, 0), (5, 5)] {
            assert!((chance((0, requests), (0, others)) - 1.0).abs() < 1e-9);
        }
        assert!((chance((5, 5), (5, 5)) - 1.0).abs() < 1e-9);
    }

    /// Of 5,000 that failed hardly any is here: the chance of so few is too small for a number.
    #[test]
    fn a_share_that_is_far_smaller_is_larger_by_chance() {
        let chance = |here, there| larger_by_chance(there, here);
        for here in [0, 1, 10, 1_000] {
            let found = chance((here, 6_000), (5_000, 6_000));
            assert!((found - 1.0).abs() < 1e-9, "{here}: {found}");
        }
        // As by hand: all but one of seventy ways, and all where there is no other way.
        assert!((chance((1, 4), (3, 4)) - 69.0 / 70.0).abs() < 1e-9);
        assert!((chance((1, 5), (5, 5)) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn factorials_go_over_into_the_series_without_a_step() {
        let mut sum = 0.0;
        for number in 1..200_u64 {
            sum += (number as f64).ln();
            assert!((ln_factorial(number) - sum).abs() < 1e-8, "{number}");
        }
    }
}
