//! Where a series changes: E-divisive (Matteson and James, "A nonparametric approach for
//! multiple change point analysis of multivariate data", 2014), with a t-test in place of
//! random permutations (Fleming et al., "Hunter", 2023), so that the same series has the same
//! changes every time.

use crate::t_test;

/// Indices at which a series changes, ascending: each is that of the first value after a change.
/// Where two parts differ most in energy distance (of exponent 1) the series is divided, as
/// long as Student's test tells the parts from each other with a p-value of at most `p_most`.
///
/// The place is chosen for its p-value, which is therefore smaller than chance alone would make
/// it: a change found here is a candidate, to be tested against its neighbours.
///
/// Empty when a value is not finite. Memory grows with the square of the length, time with that
/// and the number of changes: give it windows of long series.
#[must_use]
pub fn divisive(values: &[f64], p_most: f64) -> Vec<usize> {
    if values.iter().any(|value| !value.is_finite()) {
        return Vec::new();
    }
    let distances = Distances::of(values);
    let mut changes: Vec<usize> = Vec::new();
    loop {
        let starts = std::iter::once(0).chain(changes.iter().copied());
        let ends = changes.iter().copied().chain([values.len()]);
        let parts = starts.zip(ends);
        let candidates = parts.filter_map(|(from, to)| distances.divide(from, to));
        let Some(division) = candidates.max_by(|a, b| a.distance.total_cmp(&b.distance)) else {
            return changes;
        };
        let left = &values[division.from..division.at];
        let right = &values[division.at..division.end];
        if t_test(left, right, 1.0).is_none_or(|p| p > p_most) {
            return changes;
        }
        let place = changes.partition_point(|at| *at < division.at);
        changes.insert(place, division.at);
    }
}

/// A place to divide a series at, and how far apart the parts `from..at` and `at..end` are.
struct Division {
    from: usize,
    at: usize,
    end: usize,
    distance: f64,
}

/// Sums of distances between values, of every rectangle of pairs.
struct Distances {
    width: usize,
    /// At `i, j` the sum of distances of the first `i` values from the first `j`.
    sums: Vec<f64>,
}

impl Distances {
    fn of(values: &[f64]) -> Self {
        let width = values.len() + 1;
        let mut sums = vec![0.0; width * width];
        for i in 1..width {
            let mut row = 0.0;
            for j in 1..width {
                row += (values[i - 1] - values[j - 1]).abs();
                sums[i * width + j] = sums[(i - 1) * width + j] + row;
            }
        }
        Self { width, sums }
    }

    fn between(&self, (a, b): (usize, usize), (c, d): (usize, usize)) -> f64 {
        let sum = |i: usize, j: usize| self.sums[i * self.width + j];
        sum(b, d) - sum(a, d) - sum(b, c) + sum(a, c)
    }

    /// Where values `from..to` differ most from what follows, not necessarily up to `to`: the
    /// end of the second part varies as well, so that a change back does not hide one. (Hunter
    /// looks for it in the same way but tests all up to `to`, and so misses some of these.)
    fn divide(&self, from: usize, to: usize) -> Option<Division> {
        let mut best: Option<Division> = None;
        for end in from + 2..=to {
            for at in from + 1..end {
                let (n, m) = ((at - from) as f64, (end - at) as f64);
                let within = |part, size: f64, other: f64| {
                    // Each pair stands twice in the rectangle; one value has no pair.
                    let sum = self.between(part, part);
                    sum * other / (size - 1.0).max(1.0)
                };
                let apart = 2.0 * self.between((from, at), (at, end))
                    - within((from, at), n, m)
                    - within((at, end), m, n);
                let distance = apart / (n + m);
                if best.as_ref().is_none_or(|best| distance > best.distance) {
                    best = Some(Division {
                        from,
                        at,
                        end,
                        distance,
                    });
                }
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix;

    #[test]
    fn the_distance_is_that_of_its_definition() {
        // X = 0, 0, 1 and Y = 5, 6: between 31, within X 2, within Y 1 (each pair once).
        let distances = Distances::of(&[0.0, 0.0, 1.0, 5.0, 6.0]);
        let found = distances.divide(0, 5).unwrap();
        // mn/(m+n) * (2/(mn) * 31 - 2/(n(n-1)) * 2 - 2/(m(m-1)) * 1)
        let expected = 6.0 / 5.0 * (62.0 / 6.0 - 4.0 / 6.0 - 1.0);
        assert_eq!(found.at, 3);
        assert!(
            (found.distance - expected).abs() < 1e-12,
            "{}",
            found.distance
        );
    }

    #[test]
    fn planted_changes_are_found_where_they_are() {
        let mut random = SplitMix::new(2);
        let mut more = 0;
        for _ in 0..50 {
            let level = |at| match at {
                0..17 => 100.0,
                17..35 => 110.0,
                _ => 95.0,
            };
            let values: Vec<f64> = (0..50).map(|at| level(at) + random.normal()).collect();
            let found = divisive(&values, 0.001);
            assert!(found.contains(&17) && found.contains(&35), "{found:?}");
            more += found.len() - 2;
        }
        assert!(more <= 15, "{more}");
    }

    #[test]
    fn a_series_that_says_nothing_has_no_changes() {
        assert!(divisive(&[], 0.001).is_empty());
        assert!(divisive(&[1.0], 0.001).is_empty());
        assert!(divisive(&[1.0, 9.0], 0.001).is_empty());
        assert!(divisive(&[7.0; 40], 0.001).is_empty());
        assert!(divisive(&[1.0, 1.0, f64::NAN, 9.0, 9.0, 9.0], 0.5).is_empty());
        assert_eq!(divisive(&[1.0, 1.0, 1.0, 9.0, 9.0, 9.0], 0.001), [3]);
    }
}
