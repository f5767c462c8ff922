//! Where answers turn from yes to no, when answers are noisy.

/// How answers come about.
#[derive(Debug, Clone, PartialEq)]
pub enum Noise {
    /// The answer is right with this probability wherever one asks, as in the
    /// probabilistic bisection of Waeber, Frazier and Henderson ("Bisection search
    /// with noisy responses", SIAM J. Control Optim. 2013). Above 0.5, below 1.
    Constant(f64),
    /// A response rises through 0 at the threshold: at rate `r` it is
    /// `s·ln(r/θ)` plus noise of a logistic distribution with scale `σ`. Neither is
    /// known; each pair of those given is as likely as the others beforehand, and the
    /// answers decide (as Kontsevich and Tyler do for thresholds of perception,
    /// "Bayesian adaptive estimation of psychometric slope and threshold", 1999).
    /// Close to the threshold answers are then a coin toss, as they are in truth.
    Response {
        /// Possible slopes `s`, above 0.
        slopes: Vec<f64>,
        /// Possible scales `σ`, above 0.
        scales: Vec<f64>,
        /// Share of answers that have nothing to do with the rate; below 0.5.
        lapse: f64,
        /// How much of an independent answer each one counts for, above 0 and at most
        /// 1: below 1 where the form above is not quite that of the truth, so that
        /// intervals do not claim too much (Grünwald and van Ommen, "Inconsistency of
        /// Bayesian inference for misspecified linear models", 2017).
        weight: f64,
    },
}

/// What was seen at a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Answer {
    /// The response was below this value, at or below 0: the threshold lies above.
    Under(f64),
    /// The response itself.
    Exactly(f64),
    /// The response was above this value, at or above 0: the threshold lies below.
    Over(f64),
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
    /// One row of cells per pair of slope and scale (one row for constant noise). They
    /// sum to 1.
    rows: Vec<Vec<f64>>,
}

/// Number of cells over the range; about 0.3 % of the value for a range of one to ten.
const CELLS: usize = 800;

impl Bisection {
    /// Nothing is known but that the threshold lies between two positive values, with
    /// each ratio as likely as any other. `None` unless `0 < low < high < ∞` and the
    /// noise is within its bounds.
    pub fn new(low: f64, high: f64, noise: Noise) -> Option<Self> {
        let (from, to) = (low.ln(), high.ln());
        let rows = match &noise {
            Noise::Constant(right) if *right > 0.5 && *right < 1.0 => 1,
            Noise::Response {
                slopes,
                scales,
                lapse,
                weight,
            } if slopes.iter().chain(scales).all(|x| *x > 0.0)
                && (0.0..0.5).contains(lapse)
                && *weight > 0.0
                && *weight <= 1.0 =>
            {
                slopes.len() * scales.len()
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

    /// Takes in what was seen at `rate`. With constant noise a response counts by its
    /// sign. A rate that is not positive and finite, or a value that is no number,
    /// changes nothing.
    pub fn update(&mut self, rate: f64, answer: Answer) {
        let at = rate.ln();
        let (Answer::Under(seen) | Answer::Exactly(seen) | Answer::Over(seen)) = answer;
        if !at.is_finite() || !seen.is_finite() {
            return;
        }
        let (low, step) = (self.low, self.step);
        let threshold = |cell: usize| low + (cell as f64 + 0.5) * step;
        match &self.noise {
            Noise::Constant(right) => {
                let above = match answer {
                    Answer::Under(_) => true,
                    Answer::Exactly(response) => response < 0.0,
                    Answer::Over(_) => false,
                };
                for (cell, share) in self.rows.iter_mut().flatten().enumerate() {
                    let agrees = (threshold(cell) > at) == above;
                    *share *= if agrees { *right } else { 1.0 - right };
                }
            }
            Noise::Response {
                slopes,
                scales,
                lapse,
                weight,
            } => {
                let pairs = slopes
                    .iter()
                    .flat_map(|s| scales.iter().map(move |c| (s, c)));
                for (row, (slope, scale)) in self.rows.iter_mut().zip(pairs) {
                    for (cell, share) in row.iter_mut().enumerate() {
                        if *share < NEGLIGIBLE {
                            *share = 0.0;
                            continue;
                        }
                        let z = (seen - slope * (at - threshold(cell))) / scale;
                        let likely = likelihood(answer, z, *scale);
                        *share *= ((1.0 - lapse) * likely + lapse * STRAY).powf(*weight);
                    }
                }
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
}

/// A share of belief that no later answer could make matter.
const NEGLIGIBLE: f64 = 1e-18;

/// Likelihood of an answer that has nothing to do with the rate: a density over the
/// few units of response that matter.
const STRAY: f64 = 0.25;

/// Likelihood of an answer `z` scales above what was expected.
fn likelihood(answer: Answer, z: f64, scale: f64) -> f64 {
    // Beyond this the exponential overflows, and the likelihood is 0 to all digits.
    let e = z.clamp(-700.0, 700.0).exp();
    match answer {
        Answer::Under(_) => e / (1.0 + e),
        Answer::Over(_) => 1.0 / (1.0 + e),
        Answer::Exactly(_) => {
            let falling = (-z.abs()).exp();
            falling / (scale * (1.0 + falling) * (1.0 + falling))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::SplitMix;

    const YES: Answer = Answer::Under(0.0);
    const NO: Answer = Answer::Over(0.0);

    fn response() -> Noise {
        Noise::Response {
            slopes: vec![1.5, 3.0, 6.0, 12.0, 24.0, 48.0, 96.0],
            scales: vec![0.05, 0.1, 0.2, 0.4, 0.8, 1.6],
            lapse: 0.01,
            weight: 1.0,
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
        belief.update(100.0, YES);
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
            assert!(Bisection::new(low, high, response()).is_none());
        }
        assert!(Bisection::new(1.0, 2.0, Noise::Constant(0.5)).is_none());
        let empty = Noise::Response {
            slopes: vec![],
            scales: vec![1.0],
            lapse: 0.0,
            weight: 1.0,
        };
        assert!(Bisection::new(1.0, 2.0, empty).is_none());
    }

    #[test]
    fn a_rate_that_is_none_changes_nothing() {
        let mut belief = Bisection::new(1.0, 2.0, response()).unwrap();
        let before = belief.quantile(0.3);
        belief.update(0.0, YES);
        belief.update(f64::NAN, YES);
        belief.update(1.5, Answer::Exactly(f64::NAN));
        assert_eq!(belief.quantile(0.3), before);
    }

    /// Intervals cover as often as they claim, for exact and scattered responses.
    #[test]
    fn intervals_are_honest() {
        for (slope, deviation) in [(20.0, 0.0), (20.0, 0.03), (20.0, 0.08), (5.0, 0.05)] {
            let (mut covered, mut errors) = (0, Vec::new());
            for seed in 0..200 {
                let mut random = SplitMix::new(seed);
                let truth: f64 = 100.0 * (1.0 + random.uniform());
                let mut belief = Bisection::new(50.0, 400.0, response()).unwrap();
                for _ in 0..15 {
                    let rate = belief.quantile(0.5);
                    let seen = truth * (deviation * random.normal()).exp();
                    let response = slope * (rate / seen).ln();
                    belief.update(
                        rate,
                        match response {
                            y if y < -1.5 => Answer::Under(-1.5),
                            y if y > 1.5 => Answer::Over(1.5),
                            y => Answer::Exactly(y),
                        },
                    );
                }
                let (low, high) = belief.interval(0.9);
                covered += usize::from(low <= truth && truth <= high);
                errors.push((belief.quantile(0.5) / truth - 1.0).abs());
            }
            errors.sort_by(f64::total_cmp);
            assert!(covered >= 174, "{slope} {deviation}: {covered} of 200");
            let limit = 0.002 + 0.25 * deviation;
            assert!(errors[100] < limit, "{slope} {deviation}: {}", errors[100]);
        }
    }

    /// Answers of yes and no alone are enough, only more of them.
    #[test]
    fn intervals_are_honest_for_signs_alone() {
        let mut covered = 0;
        for seed in 0..200 {
            let mut random = SplitMix::new(seed);
            let truth = 100.0 * (1.0 + random.uniform());
            let mut belief = Bisection::new(50.0, 400.0, response()).unwrap();
            for _ in 0..25 {
                let rate = belief.quantile(0.5);
                let seen = truth * (0.03 * random.normal()).exp();
                belief.update(rate, if rate < seen { YES } else { NO });
            }
            let (low, high) = belief.interval(0.9);
            covered += usize::from(low <= truth && truth <= high);
        }
        assert!(covered >= 174, "{covered} of 200");
    }

    proptest! {
        #[test]
        fn quantiles_ascend_and_stay_in_the_range(
            answers in prop::collection::vec((0.5f64..20.0, any::<bool>()), 0..30),
            a in 0.0f64..1.0,
            b in 0.0f64..1.0,
        ) {
            let mut belief = Bisection::new(1.0, 10.0, response()).unwrap();
            for (rate, above) in answers {
                belief.update(rate, if above { YES } else { NO });
            }
            let (low, high) = (belief.quantile(a.min(b)), belief.quantile(a.max(b)));
            prop_assert!(low <= high && low >= 1.0 - 1e-9 && high <= 10.0 + 1e-9);
        }
    }
}
