//! The smallest value of a function of a few variables.

/// Most evaluations of the function.
const MOST_STEPS: usize = 2_000;

/// Minimises `f` from `start` with the simplex of Nelder and Mead ("A simplex method
/// for function minimization", 1965): no derivatives, good for two to five variables.
/// `scale` is the size of the first simplex; the search ends when the values at its
/// corners differ by less than `1e-12` of themselves or after 2,000 steps. A value
/// that is no number counts as infinitely large. An empty `start` comes back as it is.
pub(crate) fn minimise(f: impl Fn(&[f64]) -> f64, start: &[f64], scale: f64) -> Vec<f64> {
    let value = |x: &[f64]| Some(f(x)).filter(|y| !y.is_nan()).unwrap_or(f64::INFINITY);
    let mut simplex: Vec<(Vec<f64>, f64)> = Vec::with_capacity(start.len() + 1);
    for corner in 0..=start.len() {
        let mut x = start.to_vec();
        if let Some(axis) = corner.checked_sub(1) {
            x[axis] += scale;
        }
        let y = value(&x);
        simplex.push((x, y));
    }
    let towards = |from: &[f64], to: &[f64], by: f64| -> Vec<f64> {
        from.iter().zip(to).map(|(a, b)| a + by * (b - a)).collect()
    };
    for _ in 0..MOST_STEPS {
        simplex.sort_by(|a, b| a.1.total_cmp(&b.1));
        let worst = simplex.len() - 1;
        let (best, limit) = (simplex[0].1, simplex[worst].1);
        if worst == 0 || limit - best <= 1e-12 * best.abs() + 1e-300 {
            break;
        }
        let mut centre = vec![0.0; start.len()];
        for (x, _) in &simplex[..worst] {
            for (sum, value) in centre.iter_mut().zip(x) {
                *sum += value / worst as f64;
            }
        }
        let attempt = |by: f64| {
            let x = towards(&centre, &simplex[worst].0, by);
            let y = value(&x);
            (x, y)
        };
        let reflected = attempt(-1.0);
        simplex[worst] = if reflected.1 < best {
            let expanded = attempt(-2.0);
            if expanded.1 < reflected.1 {
                expanded
            } else {
                reflected
            }
        } else if reflected.1 < simplex[worst - 1].1 {
            reflected
        } else {
            let contracted = attempt(if reflected.1 < limit { -0.5 } else { 0.5 });
            if contracted.1 >= limit.min(reflected.1) {
                let best = simplex[0].0.clone();
                for (x, y) in &mut simplex[1..] {
                    *x = towards(&best, x, 0.5);
                    *y = value(x);
                }
                continue;
            }
            contracted
        };
    }
    simplex.sort_by(|a, b| a.1.total_cmp(&b.1));
    simplex.swap_remove(0).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_bottom_of_a_curved_valley() {
        let rosenbrock = |x: &[f64]| (1.0 - x[0]).powi(2) + 100.0 * (x[1] - x[0] * x[0]).powi(2);
        let found = minimise(rosenbrock, &[-1.2, 1.0], 0.5);
        assert!(
            (found[0] - 1.0).abs() < 1e-4 && (found[1] - 1.0).abs() < 1e-4,
            "{found:?}"
        );
    }

    #[test]
    fn stands_what_is_no_number() {
        let found = minimise(|x| (x[0] - 2.0).powi(2) + x[0].sqrt() * 0.0, &[1.0], 0.5);
        assert!((found[0] - 2.0).abs() < 1e-4, "{found:?}");
        assert_eq!(minimise(|_| f64::NAN, &[1.0], 0.5), [1.0]);
        assert!(minimise(|_| 0.0, &[], 1.0).is_empty());
    }
}
