//! Looking at a test more than once.

use crate::{normal_probability, normal_quantile};

/// Points of a grid over which a density is summed; even.
const GRID: usize = 200;

/// How far below zero a density is followed, in deviations.
const DEPTH: f64 = 8.0;

/// How the chance of a false alarm is spent over looks at growing data (Lan and DeMets,
/// "Discrete sequential boundaries for clinical trials", 1983).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spending {
    /// About as much at each look, as with the boundaries of Pocock (1977): ends early.
    Pocock,
    /// Little at first, most at the end, as with those of O'Brien and Fleming (1979): costs
    /// little at the last look.
    OBrienFleming,
}

impl Spending {
    /// What of `alpha` is spent once the share `time` of all data is there.
    fn spent(self, alpha: f64, time: f64) -> f64 {
        match self {
            Self::Pocock => alpha * (1.0 + (std::f64::consts::E - 1.0) * time).ln(),
            Self::OBrienFleming => {
                2.0 * normal_probability(normal_quantile(alpha / 2.0) / time.sqrt())
            }
        }
    }
}

/// The tail probability to test with at each look, so that the chance of at least one false
/// alarm on one side is `alpha` over all of them. `times` are the shares of all data at the
/// looks, ascending, above 0 and at most 1. By numerical integration of the density of a sum
/// that has not crossed yet (Armitage, McPherson and Rowe, 1969), to about 1e-6.
///
/// `None` when times do not ascend from above 0 to at most 1, or alpha is not above 0 and
/// at most a half.
#[must_use]
pub fn sequential_tails(spending: Spending, alpha: f64, times: &[f64]) -> Option<Vec<f64>> {
    let ascending = times.windows(2).all(|two| two[0] < two[1]);
    let within = times.iter().all(|time| *time > 0.0 && *time <= 1.0);
    if !(ascending && within && alpha > 0.0 && alpha <= 0.5) {
        return None;
    }
    let mut tails = Vec::with_capacity(times.len());
    let mut density = Density::at_zero();
    let (mut spent, mut before) = (0.0, 0.0);
    for time in times {
        let now = spending.spent(alpha, *time);
        let step = (time - before).sqrt();
        let boundary = density.exceeded_with(now - spent, step, time.sqrt());
        tails.push(normal_probability(-boundary / time.sqrt()));
        density = density.after(step, boundary, time.sqrt());
        (spent, before) = (now, *time);
    }
    Some(tails)
}

/// The density of a sum that has crossed no boundary so far: points, each with its weight in a
/// sum over them.
struct Density(Vec<(f64, f64)>);

impl Density {
    fn at_zero() -> Self {
        Self(vec![(0.0, 1.0)])
    }

    /// The boundary that is crossed with a probability in a step of this deviation.
    fn exceeded_with(&self, probability: f64, step: f64, deviation: f64) -> f64 {
        let crossing = |boundary: f64| -> f64 {
            let points = self.0.iter();
            points
                .map(|(at, weight)| weight * normal_probability((at - boundary) / step))
                .sum()
        };
        let (mut low, mut high) = (-DEPTH * deviation, 4.0 * DEPTH * deviation);
        // Each halves the error: to 1e-10 of the deviation.
        for _ in 0..40 {
            let middle = f64::midpoint(low, high);
            match crossing(middle) > probability {
                true => low = middle,
                false => high = middle,
            }
        }
        f64::midpoint(low, high)
    }

    /// The density after a step, below a boundary; its weights are Simpson's.
    fn after(&self, step: f64, boundary: f64, deviation: f64) -> Self {
        let (from, to) = (-DEPTH * deviation, boundary.min(DEPTH * deviation));
        let width = (to - from) / GRID as f64;
        let scale = 1.0 / (std::f64::consts::TAU.sqrt() * step);
        let points = (0..=GRID).map(|at| {
            let simpson = match at {
                0 | GRID => 1.0,
                _ if at % 2 == 1 => 4.0,
                _ => 2.0,
            };
            let point = from + at as f64 * width;
            let arriving = self.0.iter().map(|(at, weight)| {
                let away = (point - at) / step;
                weight * scale * (-0.5 * away * away).exp()
            });
            (point, simpson / 3.0 * width * arriving.sum::<f64>())
        });
        Self(points.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix;

    const FIVE: [f64; 5] = [0.2, 0.4, 0.6, 0.8, 1.0];

    #[test]
    fn boundaries_are_the_published_ones() {
        // Of five equal looks at 0.025 on one side, as in the documentation of R's ldbounds
        // and gsDesign.
        let published = [
            (
                Spending::OBrienFleming,
                [4.8769, 3.3569, 2.6803, 2.2898, 2.0310],
            ),
            (Spending::Pocock, [2.4380, 2.4268, 2.4101, 2.3966, 2.3859]),
        ];
        for (spending, expected) in published {
            let tails = sequential_tails(spending, 0.025, &FIVE).unwrap();
            for (tail, expected) in tails.iter().zip(expected) {
                let found = -normal_quantile(*tail);
                assert!((found - expected).abs() < 2e-4, "{found} {expected}");
            }
        }
    }

    #[test]
    fn all_looks_together_raise_as_many_false_alarms_as_stated() {
        let times = [0.25, 0.3, 0.7, 0.95];
        for spending in [Spending::Pocock, Spending::OBrienFleming] {
            let tails = sequential_tails(spending, 0.1, &times).unwrap();
            let mut random = SplitMix::new(4);
            let alarms = (0..20_000).filter(|_| {
                let (mut sum, mut before) = (0.0, 0.0);
                let mut looks = times.iter().zip(&tails);
                looks.any(|(time, tail)| {
                    let step: f64 = time - before;
                    sum += step.sqrt() * random.normal();
                    before = *time;
                    normal_probability(-sum / time.sqrt()) < *tail
                })
            });
            let share = alarms.count() as f64 / 20_000.0;
            let truth = spending.spent(0.1, 0.95);
            assert!((share - truth).abs() < 0.01, "{share} {truth}");
        }
    }

    #[test]
    fn one_look_is_a_test_as_usual() {
        for spending in [Spending::Pocock, Spending::OBrienFleming] {
            let tails = sequential_tails(spending, 0.025, &[1.0]).unwrap();
            assert!((tails[0] - 0.025).abs() < 1e-8);
        }
    }

    #[test]
    fn wrong_looks_make_nothing() {
        let tails = |alpha, times: &[f64]| sequential_tails(Spending::Pocock, alpha, times);
        assert_eq!(tails(0.05, &[0.5, 0.5]), None);
        assert_eq!(tails(0.05, &[0.0, 0.5]), None);
        assert_eq!(tails(0.05, &[0.5, 1.5]), None);
        assert_eq!(tails(0.05, &[f64::NAN]), None);
        assert_eq!(tails(0.0, &[1.0]), None);
        assert_eq!(tails(0.6, &[1.0]), None);
    }
}
