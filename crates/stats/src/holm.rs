//! Several tests at once.

/// Adjusts p-values for their number (Holm, "A simple sequentially rejective multiple test
/// procedure", 1979): those that are at most `alpha` afterwards may all be believed, and the
/// chance that any of them is wrong is at most `alpha`. In the order of the input.
#[must_use]
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|one, other| p_values[*one].total_cmp(&p_values[*other]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (before, at) in order.into_iter().enumerate() {
        let left = (p_values.len() - before) as f64;
        largest = largest.max(p_values[at] * left).min(1.0);
        adjusted[at] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_is_multiplied_by_all_and_none_falls_below_one_before() {
        // 0.005 x 4, 0.01 x 3, 0.02 x 2; 0.03 x 1 is below the one before it.
        let found = holm(&[0.01, 0.02, 0.03, 0.005]);
        let expected = [0.03, 0.04, 0.04, 0.02];
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-15);
        }
        assert_eq!(holm(&[0.7, 0.9]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }
}
