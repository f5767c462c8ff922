//! Where a warm-up ends: the MSER rule.

/// Fewest batches that say anything; with fewer, [`mser`] answers `None`.
pub const FEWEST_BATCHES: usize = 10;

/// Fewest batches that may be left after the cut.
const SHORTEST_REST: usize = 5;

/// How much better a cut beyond the middle must be than the best one before it. White
/// noise of 30 batches would be called unsteady in one case of ten without it, and in
/// one of fifty with it.
const CLEARLY_BETTER: f64 = 0.5;

/// What the MSER rule says about a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmUp {
    /// So many batches at the start are warm-up; the rest is steady.
    Cut(usize),
    /// The best cut lies in the second half: the series has not settled.
    NotSteady,
}

/// The MSER rule on batch means: the cut `d` that minimises
/// `s²(d) / (n - d)`, where `s²(d)` is the variance of what is left. It weighs what
/// bias a warm-up adds against what precision its removal costs (White, "An effective
/// truncation heuristic for bias reduction in simulation output", 1997). With a best
/// cut in the second half of the series, and clearly better there, nothing can be
/// called steady. Of equally good cuts the earliest is taken.
///
/// `None` with fewer than [`FEWEST_BATCHES`] means, or when one is not finite.
pub fn mser(means: &[f64]) -> Option<WarmUp> {
    let n = means.len();
    if n < FEWEST_BATCHES || means.iter().any(|mean| !mean.is_finite()) {
        return None;
    }
    // Sums over suffixes, of values with the overall mean taken off: large values with
    // small differences keep their digits.
    let centre = crate::mean(means)?;
    let mut scores = vec![f64::INFINITY; n];
    let (mut sum, mut squares) = (0.0, 0.0);
    for (cut, mean) in means.iter().enumerate().rev() {
        let value = mean - centre;
        sum += value;
        squares += value * value;
        let left = (n - cut) as f64;
        if n - cut >= SHORTEST_REST {
            // Rounding must not make one constant series better than another.
            let spread = squares - sum * sum / left;
            let noise = squares * 1e-12;
            scores[cut] = if spread > noise { spread } else { 0.0 } / (left * left);
        }
    }
    let best = |range: std::ops::Range<usize>| {
        range.fold((0, f64::INFINITY), |best, cut| {
            if scores[cut] < best.1 {
                (cut, scores[cut])
            } else {
                best
            }
        })
    };
    let (early, early_score) = best(0..n / 2 + 1);
    let (_, late_score) = best(n / 2 + 1..n);
    Some(if late_score < early_score * CLEARLY_BETTER {
        WarmUp::NotSteady
    } else {
        WarmUp::Cut(early)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::SplitMix;

    fn noise(seed: u64, n: usize) -> Vec<f64> {
        let mut random = SplitMix::new(seed);
        (0..n).map(|_| 10.0 + random.normal()).collect()
    }

    #[test]
    fn a_warm_up_is_cut_where_it_ends() {
        let mut series = noise(1, 100);
        for (i, value) in series.iter_mut().take(20).enumerate() {
            *value += 40.0 - 2.0 * i as f64;
        }
        let Some(WarmUp::Cut(cut)) = mser(&series) else {
            panic!("not steady")
        };
        assert!((16..=22).contains(&cut), "{cut}");
    }

    #[test]
    fn a_constant_series_has_no_warm_up() {
        assert_eq!(mser(&[3.0; 40]), Some(WarmUp::Cut(0)));
        assert_eq!(mser(&[3.0; 9]), None);
        assert_eq!(mser(&[f64::NAN; 40]), None);
    }

    #[test]
    fn a_series_that_grows_is_not_steady() {
        for n in [20, 30, 100] {
            let series: Vec<f64> = (0..n).map(|i| 10.0 * f64::from(i)).collect();
            assert_eq!(mser(&series), Some(WarmUp::NotSteady), "{n}");
        }
    }

    #[test]
    fn a_step_late_in_the_series_is_not_steady() {
        let mut series = noise(3, 60);
        series[42..].iter_mut().for_each(|value| *value += 20.0);
        assert_eq!(mser(&series), Some(WarmUp::NotSteady));
    }

    #[test]
    fn noise_alone_is_seldom_called_unsteady_and_seldom_cut_deep() {
        let found: Vec<WarmUp> = (0..500)
            .map(|seed| mser(&noise(seed, 30)).unwrap())
            .collect();
        let unsteady = found.iter().filter(|w| **w == WarmUp::NotSteady).count();
        let deep = |w: &&WarmUp| matches!(w, WarmUp::Cut(cut) if *cut > 10);
        assert!(unsteady <= 25, "{unsteady}");
        assert!(found.iter().filter(deep).count() <= 75);
    }

    proptest! {
        #[test]
        fn units_do_not_matter(seed in 0u64..1000, scale in 1e-6f64..1e6, shift in -1e3f64..1e3) {
            let series = noise(seed, 50);
            let other: Vec<f64> = series.iter().map(|x| (x + shift) * scale).collect();
            prop_assert_eq!(mser(&series), mser(&other));
        }
    }
}
