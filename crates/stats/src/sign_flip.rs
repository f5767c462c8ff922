//! Whether a sum of differences could have come from signs by chance.

use crate::SplitMix;

/// Up to so many differences every choice of signs is counted.
const EXACT_MOST: usize = 30;

/// Random choices of signs beyond.
const DRAWS: u32 = 20_000;

/// The permutation test of paired differences (Fisher, "The Design of Experiments", 1935): how
/// likely their sum would be at least as far from zero, had each the sign of a coin. With at
/// most 30 differences all `2^n` choices are counted; beyond, 20,000 are drawn from `seed`, the
/// one that was seen counted with them.
///
/// `None` when there is no difference, or one is not finite.
#[must_use]
pub fn sign_flip(differences: &[f64], seed: u64) -> Option<f64> {
    if differences.is_empty() || differences.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let all: f64 = differences.iter().map(|value| value.abs()).sum();
    // Sums that are equal but for rounding are equal.
    let reached = differences.iter().sum::<f64>().abs() - 1e-12 * all;
    if differences.len() <= EXACT_MOST {
        let (one, other) = differences.split_at(differences.len() / 2);
        let share = share_reaching(&signed_sums(one), &signed_sums(other), reached);
        return Some((2.0 * share).min(1.0));
    }
    let mut random = SplitMix::new(seed);
    let as_far = (0..DRAWS).filter(|_| {
        let signs = differences.chunks(64).map(|some| {
            let bits = random.bits();
            let signed = some.iter().enumerate();
            let sum = signed.map(|(at, value)| match bits >> at & 1 {
                0 => *value,
                _ => -value,
            });
            sum.sum::<f64>()
        });
        signs.sum::<f64>().abs() >= reached
    });
    let as_far = as_far.count() as f64;
    Some((as_far + 1.0) / f64::from(DRAWS + 1))
}

/// The sum of every choice of signs, ascending.
fn signed_sums(values: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0];
    for value in values {
        sums = sums
            .iter()
            .flat_map(|sum| [sum - value, sum + value])
            .collect();
    }
    sums.sort_by(f64::total_cmp);
    sums
}

/// The share of pairs of one and other whose sum is at least `reached`.
fn share_reaching(ones: &[f64], others: &[f64], reached: f64) -> f64 {
    let mut from = others.len();
    let mut reaching = 0;
    for one in ones {
        while from > 0 && one + others[from - 1] >= reached {
            from -= 1;
        }
        reaching += others.len() - from;
    }
    reaching as f64 / (ones.len() * others.len()) as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn all_on_one_side_is_one_choice_of_two_to_the_n() {
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(sign_flip(&values, 0), Some(0.5_f64.powi(19)));
        assert_eq!(sign_flip(&[0.0; 4], 0), Some(1.0));
        assert_eq!(sign_flip(&[], 0), None);
        assert_eq!(sign_flip(&[f64::INFINITY], 0), None);
    }

    #[test]
    fn drawing_agrees_with_counting() {
        let mut random = SplitMix::new(8);
        let mut values: Vec<f64> = (0..30).map(|_| random.normal() + 0.4).collect();
        let counted = sign_flip(&values, 1).unwrap();
        // One more that weighs nothing is beyond what is counted.
        values.push(0.0);
        let drawn = sign_flip(&values, 1).unwrap();
        assert_eq!(sign_flip(&values, 1), Some(drawn));
        assert!((drawn / counted).ln().abs() < 0.5, "{drawn} {counted}");
    }

    proptest! {
        #[test]
        fn counts_as_going_through_all_choices_does(values in prop::collection::vec(-9i32..9, 1..10)) {
            let sum: i32 = values.iter().sum();
            let far = (0..1u32 << values.len()).filter(|choice| {
                let signed = values.iter().enumerate();
                let sums: i32 = signed.map(|(at, v)| if choice >> at & 1 == 1 { *v } else { -v }).sum();
                sums.abs() >= sum.abs()
            });
            let share = far.count() as f64 / f64::from(1u32 << values.len());
            let values: Vec<f64> = values.iter().copied().map(f64::from).collect();
            prop_assert!((sign_flip(&values, 0).unwrap() - share).abs() < 1e-12);
        }
    }
}
