//! Where answers turn from yes to no, when answers are noisy.

/// How often an answer is wrong.
#[derive(Debug, Clone, PartialEq)]
pub enum Noise {
    /// The answer is right with this probability wherever one asks, as in the
    /// probabilistic bisection of Waeber, Frazier and Henderson ("Bisection search
    /// with noisy responses", SIAM J. Control Optim. 2013). Above 0.5, below 1.
    Constant(f64),
    /// Answers become a coin toss near the threshold: at rate `r` the answer is yes
    /// with probability `ε + (1 - 2ε) / (1 + (r/θ)^(1/w))`. The width `w` is not known;
    /// each of those given is as likely as the others beforehand, and the answers
    /// decide (Kontsevich and Tyler, "Bayesian adaptive estimation of psychometric
    /// slope and threshold", 1999).
    Transition {
        /// Possible widths, in relative rate: at `θ(1 + w)` 27 % say yes.
        widths: Vec<f64>,
        /// Share of answers that are wrong even far from the threshold, `ε`.
        lapse: f64,
    },
}

/// What is believed about a threshold on a positive scale: a distribution over its
/// logarithm, updated by Bayes' rule with each answer.
#[derive(Debug, Clone)]
pub struct Bisection {
    noise: Noise,
    /// Logarithm of the scale at the lower end of the first cell.
    low: f64,
    /// Width of a cell.
    step: f64,
    /// One row of cells per width (one row for constant noise). They sum to 1.
    rows: Vec<Vec<f64>>,
}

/// Number of cells over the range; about 0.2 % of the value for a range of one to ten.
const CELLS: usize = 1_200;

impl Bisection {
    /// Nothing is known but that the threshold lies between two positive values, with
    /// each ratio as likely as any other. `None` unless `0 < low < high < ∞` and the
    /// noise is within its bounds.
    pub fn new(low: f64, high: f64, noise: Noise) -> Option<Self> {
        let (from, to) = (low.ln(), high.ln());
        let rows = match &noise {
            Noise::Constant(right) if *right > 0.5 && *right < 1.0 => 1,
            Noise::Transition { widths, lapse }
                if widths.iter().all(|w| *w > 0.0) && (0.0..0.5).contains(lapse) =>
            {
                widths.len()
            }
            _ => 0,
        };
        let fine = from.is_finite() && to.is_finite() && from < to && rows > 0;
        fine.then(|| Self {
            noise,
            low: from,
            step: (to - from) / CELLS as f64,
            rows: vec![vec![1.0 / (CELLS * rows) as f64; CELLS]; rows],
        })
    }

    /// Takes in the answer at `rate`: whether the threshold was said to lie above it.
    /// `weight` is how many independent answers this one is worth; 1 for a plain one.
    /// A rate that is not positive and finite changes nothing.
    pub fn update(&mut self, rate: f64, above: bool, weight: f64) {
        let at = rate.ln();
        if !at.is_finite() {
            return;
        }
        for (index, row) in self.rows.iter_mut().enumerate() {
            for (cell, share) in row.iter_mut().enumerate() {
                let threshold = self.low + (cell as f64 + 0.5) * self.step;
                let yes = match &self.noise {
                    Noise::Constant(right) if threshold > at => *right,
                    Noise::Constant(right) => 1.0 - right,
                    Noise::Transition { widths, lapse } => {
                        let odds = ((at - threshold) / widths[index]).exp();
                        lapse + (1.0 - 2.0 * lapse) / (1.0 + odds)
                    }
                };
                let likelihood = if above { yes } else { 1.0 - yes };
                *share *= if weight == 1.0 {
                    likelihood
                } else {
                    likelihood.powf(weight)
                };
            }
        }
        let total: f64 = self.rows.iter().flatten().sum();
        // Answers that no threshold in the range can explain leave the belief as it is
        // but for rounding; the lapse keeps every likelihood above 0.
        if total > 0.0 {
            self.rows
                .iter_mut()
                .flatten()
                .for_each(|share| *share /= total);
        }
    }

    /// The value that the threshold does not exceed with probability `q`; the median
    /// is where the next question tells most.
    pub fn quantile(&self, q: f64) -> f64 {
        let wanted = q.clamp(0.0, 1.0);
        let mut cumulated = 0.0;
        for cell in 0..CELLS {
            let share: f64 = self.rows.iter().map(|row| row[cell]).sum();
            if cumulated + share >= wanted && share > 0.0 {
                let inside = (wanted - cumulated) / share;
                return (self.low + (cell as f64 + inside) * self.step).exp();
            }
            cumulated += share;
        }
        (self.low + CELLS as f64 * self.step).exp()
    }

    /// The interval with equal tails that holds the threshold with this probability.
    pub fn interval(&self, confidence: f64) -> (f64, f64) {
        let tail = (1.0 - confidence.clamp(0.0, 1.0)) / 2.0;
        (self.quantile(tail), self.quantile(1.0 - tail))
    }

    /// The mean width of the transition; `None` for constant noise.
    pub fn width(&self) -> Option<f64> {
        match &self.noise {
            Noise::Constant(_) => None,
            Noise::Transition { widths, .. } => {
                let share = |row: &Vec<f64>| row.iter().sum::<f64>();
                Some(
                    widths
                        .iter()
                        .zip(&self.rows)
                        .map(|(w, row)| w * share(row))
                        .sum(),
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::SplitMix;

    fn transition() -> Noise {
        Noise::Transition {
            widths: vec![0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16],
            lapse: 0.01,
        }
    }

    #[test]
    fn nothing_known_means_every_ratio_is_as_likely() {
        let belief = Bisection::new(1.0, 10_000.0, Noise::Constant(0.75)).unwrap();
        assert!((belief.quantile(0.5) - 100.0).abs() < 1e-9);
        let (low, high) = belief.interval(0.5);
        assert!((low - 10.0).abs() < 1e-9 && (high - 1000.0).abs() < 1e-6);
    }

    #[test]
    fn one_answer_moves_the_belief_as_bayes_has_it() {
        let mut belief = Bisection::new(1.0, 10_000.0, Noise::Constant(0.75)).unwrap();
        belief.update(100.0, true, 1.0);
        assert!((1.0 - belief.quantile(0.25) / 100.0).abs() < 1e-9);
    }

    #[test]
    fn wrong_bounds_make_nothing() {
        for (low, high) in [
            (0.0, 1.0),
            (2.0, 1.0),
            (1.0, f64::INFINITY),
            (f64::NAN, 1.0),
        ] {
            assert!(Bisection::new(low, high, transition()).is_none());
        }
        assert!(Bisection::new(1.0, 2.0, Noise::Constant(0.5)).is_none());
        let empty = Noise::Transition {
            widths: vec![],
            lapse: 0.0,
        };
        assert!(Bisection::new(1.0, 2.0, empty).is_none());
    }

    #[test]
    fn a_rate_that_is_none_changes_nothing() {
        let mut belief = Bisection::new(1.0, 2.0, transition()).unwrap();
        let before = belief.quantile(0.3);
        belief.update(0.0, true, 1.0);
        belief.update(f64::NAN, true, 1.0);
        assert_eq!(belief.quantile(0.3), before);
    }

    /// Intervals cover as often as they claim, for narrow and wide transitions.
    #[test]
    fn intervals_are_honest_when_answers_become_a_coin_toss() {
        for deviation in [0.0, 0.03, 0.08] {
            let (mut covered, mut errors) = (0, Vec::new());
            for seed in 0..300 {
                let mut random = SplitMix::new(seed);
                let truth = 100.0 * (1.0 + random.uniform());
                let mut belief = Bisection::new(50.0, 400.0, transition()).unwrap();
                for _ in 0..25 {
                    let rate = belief.quantile(0.5);
                    let seen = truth * (deviation * random.normal()).exp();
                    belief.update(rate, rate < seen, 1.0);
                }
                let (low, high) = belief.interval(0.9);
                covered += usize::from(low <= truth && truth <= high);
                errors.push((belief.quantile(0.5) / truth - 1.0).abs());
            }
            errors.sort_by(f64::total_cmp);
            assert!(covered >= 265, "{deviation}: {covered} of 300");
            assert!(
                errors[150] < 0.002 + 0.25 * deviation,
                "{deviation}: {}",
                errors[150]
            );
        }
    }

    proptest! {
        #[test]
        fn quantiles_ascend_and_stay_in_the_range(
            answers in prop::collection::vec((0.5f64..20.0, any::<bool>()), 0..30),
            a in 0.0f64..1.0,
            b in 0.0f64..1.0,
        ) {
            let mut belief = Bisection::new(1.0, 10.0, transition()).unwrap();
            for (rate, above) in answers {
                belief.update(rate, above, 1.0);
            }
            let (low, high) = (belief.quantile(a.min(b)), belief.quantile(a.max(b)));
            prop_assert!(low <= high && low >= 1.0 - 1e-9 && high <= 10.0 + 1e-9);
        }
    }
}
