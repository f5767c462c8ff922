//! The rate at which something starts to happen too often, when it happens in groups.

use crate::bessel::ln_bessel_i1;
use crate::student::normal_probability;

/// What a hold at one rate says.
///
/// A *response* is the logarithm of what happens over what is allowed (of their odds
/// where both are shares): above 0, it is too much.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// What was seen in all of the hold. Parts of it would not be independent: a congestion
    /// lasts.
    Counted {
        /// So many slow requests.
        seen: f64,
        /// So many would just be allowed.
        allowed: f64,
        /// Share that is allowed, below 1; 0 where it is no share.
        share: f64,
    },
    /// The response was below this value.
    Under {
        /// The value.
        response: f64,
        /// What would have been allowed in all of the hold; 0 where nothing was counted.
        allowed: f64,
    },
    /// The response was above this value.
    Over {
        /// The value.
        response: f64,
        /// What would have been allowed in all of the hold; 0 where nothing was counted.
        allowed: f64,
    },
}

/// What is believed of the threshold: the rate at which the response is 0.
///
/// The response at rate `r` is `s·ln(r/θ)` plus a normal deviation `τ` of the hold as a
/// whole: the capacity drifts. Given the response, what happens comes in groups: slow
/// requests are those of one congestion. The number of groups is Poisson's, their sizes
/// are exponential with mean `c`, which grows with the load. So a short hold sees a few
/// groups or none; it sees too few more often than too many, and that is no
/// news. Threshold, `s`, `τ` and `c` are all unknown; every combination of those
/// given is possible beforehand, and the answers decide.
///
/// (Learning slope and threshold together: Kontsevich and Tyler, "Bayesian adaptive
/// estimation of psychometric slope and threshold", 1999. Sums of exponential groups:
/// Jørgensen, "The theory of dispersion models", 1997, with power 3/2.)
#[derive(Debug, Clone)]
pub struct Threshold {
    low: f64,
    step: f64,
    /// For each slope, and each deviation, size and floor: one cell per threshold; none
    /// where that was given up. They sum to 1.
    rows: Vec<Vec<f64>>,
}

/// Number of cells over the range; about 0.5 % of the value for a range of one to ten.
const CELLS: usize = 500;

/// Possible slopes. The share of M/M/1's requests above its 99th percentile rises with
/// 4.6 ρ / (1 - ρ).
const SLOPES: [f64; 8] = [1.5, 3.0, 6.0, 12.0, 24.0, 48.0, 96.0, 192.0];
/// Possible deviations of the response from hold to hold.
const DEVIATIONS: [f64; 4] = [0.05, 0.3, 0.8, 2.0];
/// Possible mean sizes of groups at the threshold. At a half, requests are independent.
const SIZES: [f64; 6] = [0.5, 2.5, 12.0, 50.0, 150.0, 450.0];
/// Possible shares of what is allowed that happen at any rate: a service has slow requests
/// of its own.
const FLOORS: [f64; 3] = [0.0, 0.5, 0.8];
/// How the logarithm of a size follows the response.
const GROWTH: f64 = 0.5;
/// Slope below which one is the less likely beforehand the flatter it is: queues are steep
/// where they become slow.
const STEEP: f64 = 12.0;
const TABLES: usize = DEVIATIONS.len() * SIZES.len() * FLOORS.len();
/// Response beyond which groups grow no more: they are no larger than the hold.
const LARGEST: f64 = 1.5;
/// Share of holds that have nothing to do with their rate.
const LAPSE: f64 = 0.02;

/// How much of an independent answer each one counts for: below 1 because the form above is
/// not quite that of the truth (Grünwald and van Ommen, "Inconsistency of Bayesian inference
/// for misspecified linear models", 2017).
const WEIGHT: f64 = 0.65;

/// Responses that are looked at: from minus this to this.
const WIDEST: f64 = 8.0;
const STEPS: usize = 128;

impl Threshold {
    /// Nothing is known but that it lies between two positive values, each ratio as
    /// likely as any other. `None` unless `0 < low < high < ∞`.
    pub fn new(low: f64, high: f64) -> Option<Self> {
        let (from, to) = (low.ln(), high.ln());
        let fine = from.is_finite() && to.is_finite() && from < to;
        // Small groups and low floors are the usual; the others take answers to be believed.
        let prior = FLOORS
            .iter()
            .flat_map(|floor| SIZES.map(|size| (1.0 - floor) * (SIZES[0] / size).sqrt()));
        let prior: Vec<f64> = prior.collect();
        let steep = |slope: &f64| (slope / STEEP).min(1.0);
        let tables = || DEVIATIONS.iter().flat_map(|_| prior.iter());
        let of_slope = |slope: f64| tables().map(move |prior| slope * prior);
        let weights: Vec<f64> = SLOPES.iter().map(steep).flat_map(of_slope).collect();
        let all = weights.iter().sum::<f64>() * CELLS as f64;
        fine.then(|| Self {
            low: from,
            step: (to - from) / CELLS as f64,
            rows: weights
                .iter()
                .map(|weight| vec![weight / all; CELLS])
                .collect(),
        })
    }

    /// Takes in what was seen at `rate`. A rate that is not positive and finite, or an
    /// answer with a value that is no number, changes nothing.
    pub fn update(&mut self, rate: f64, answer: &Answer) {
        let at = rate.ln();
        if !at.is_finite() || !answer.is_sound() {
            return;
        }
        let (low, step) = (self.low, self.step);
        let tables = tables(answer);
        let mut rows = self.rows.iter_mut();
        for slope in SLOPES {
            for table in &tables {
                let Some(row) = rows.next() else { return };
                let mut place = place(slope * (at - low - 0.5 * step));
                let back = slope * step * STEPS as f64 / (2.0 * WIDEST);
                for share in row {
                    *share *= between(table, place);
                    place -= back;
                }
            }
        }
        let total: f64 = self.rows.iter().flatten().sum();
        if total > 0.0 {
            for row in &mut self.rows {
                if row.iter().sum::<f64>() < NEGLIGIBLE * total {
                    row.clear();
                }
                row.iter_mut().for_each(|share| *share /= total);
            }
        }
    }

    /// The value that the threshold does not exceed with probability `q`.
    pub fn quantile(&self, q: f64) -> f64 {
        let wanted = q.clamp(0.0, 1.0);
        let mut cumulated = 0.0;
        for cell in 0..CELLS {
            let share: f64 = self.rows.iter().filter_map(|row| row.get(cell)).sum();
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

/// Belief in a slope and a table below which they are given up.
const NEGLIGIBLE: f64 = 1e-7;

impl Answer {
    fn is_sound(&self) -> bool {
        let fine = |value: f64| value.is_finite() && value >= 0.0;
        match self {
            Self::Counted {
                seen,
                allowed,
                share,
            } => (0.0..1.0).contains(share) && fine(*seen) && fine(*allowed) && *allowed > 0.0,
            Self::Under { response, allowed } | Self::Over { response, allowed } => {
                response.is_finite() && fine(*allowed)
            }
        }
    }

    /// Logarithm of the likelihood, given the response and the size of groups at 0.
    fn ln_likelihood(&self, response: f64, size: f64, floor: f64) -> f64 {
        let size = size * (GROWTH * response.min(LARGEST)).exp();
        let excess = |response: f64| floor + (1.0 - floor) * response.exp();
        match self {
            Self::Counted {
                seen,
                allowed,
                share,
            } => {
                let odds = excess(response);
                let ratio = odds / (1.0 - share + share * odds);
                ln_density(*seen, allowed * ratio, size)
            }
            Self::Under {
                response: limit,
                allowed,
            } => ln_below(excess(response), limit.exp(), *allowed, size),
            Self::Over {
                response: limit,
                allowed,
            } => ln_below(limit.exp(), excess(response), *allowed, size),
        }
    }
}

/// Logarithm of the probability that one excess comes out below the other: the root of a
/// sum of exponential groups has a deviation of √(size / 2), whatever the sum.
fn ln_below(one: f64, other: f64, allowed: f64, size: f64) -> f64 {
    let z = if allowed > 0.0 {
        (other.sqrt() - one.sqrt()) * (2.0 * allowed / size).sqrt()
    } else {
        (other / one).ln() / ALONE
    };
    normal_probability(z).max(1e-12).ln()
}

/// Deviation of a response of which only the side is known.
const ALONE: f64 = 0.3;

/// Logarithm of the density of a sum of exponential groups with this mean.
fn ln_density(seen: f64, mean: f64, size: f64) -> f64 {
    let groups = mean / size;
    if seen <= 0.0 {
        return -groups;
    }
    let x = 2.0 * (groups * seen / size).sqrt();
    0.5 * (groups / (seen * size)).ln() - groups - seen / size + ln_bessel_i1(x)
}

/// For each deviation and size, the likelihood at each response, up to a factor.
fn tables(answer: &Answer) -> Vec<Vec<f64>> {
    let step = 2.0 * WIDEST / STEPS as f64;
    let pairs = FLOORS
        .iter()
        .flat_map(|floor| SIZES.map(|size| (*floor, size)));
    let exact: Vec<Vec<f64>> = pairs
        .map(|(floor, size)| {
            let responses = (0..=STEPS).map(|at| at as f64 * step - WIDEST);
            responses
                .map(|response| answer.ln_likelihood(response, size, floor))
                .collect()
        })
        .collect();
    // One scale for all, so that sizes can be told apart.
    let most = exact.iter().flatten().copied().fold(f64::MIN, f64::max);
    let exact: Vec<Vec<f64>> = exact
        .iter()
        .map(|row| row.iter().map(|ln| (ln - most).exp()).collect())
        .collect();
    let mut tables = Vec::with_capacity(TABLES);
    for deviation in DEVIATIONS {
        let reach = (3.0 * deviation / step).ceil() as usize;
        let weight = |away: usize| (-0.5 * (away as f64 * step / deviation).powi(2)).exp();
        let weights: Vec<f64> = (0..=reach).map(weight).collect();
        let all = 2.0 * weights.iter().sum::<f64>() - weights[0];
        for row in &exact {
            let at = |at: isize| row[at.clamp(0, STEPS as isize) as usize];
            let smooth: Vec<f64> = (0..=STEPS as isize)
                .map(|middle| {
                    let sides = (1..=reach as isize).map(|away| {
                        weights[away as usize] * (at(middle - away) + at(middle + away))
                    });
                    (weights[0] * at(middle) + sides.sum::<f64>()) / all
                })
                .collect();
            let stray = smooth.iter().sum::<f64>() / smooth.len() as f64;
            tables.push(
                smooth
                    .iter()
                    .map(|likely| ((1.0 - LAPSE) * likely + LAPSE * stray).powf(WEIGHT))
                    .collect(),
            );
        }
    }
    tables
}

/// Where a response lies in a table.
fn place(response: f64) -> f64 {
    (response + WIDEST) * STEPS as f64 / (2.0 * WIDEST)
}

fn between(table: &[f64], place: f64) -> f64 {
    let place = place.clamp(0.0, STEPS as f64 - 1e-9);
    let (cell, inside) = (place as usize, place.fract());
    table[cell] + (table[cell + 1] - table[cell]) * inside
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::SplitMix;

    fn under(response: f64) -> Answer {
        Answer::Under {
            response,
            allowed: 0.0,
        }
    }

    fn over(response: f64) -> Answer {
        Answer::Over {
            response,
            allowed: 0.0,
        }
    }

    #[test]
    fn nothing_known_means_every_ratio_is_as_likely() {
        let belief = Threshold::new(1.0, 10_000.0).unwrap();
        assert!((belief.quantile(0.5) - 100.0).abs() < 1e-6);
        let (low, high) = belief.interval(0.5);
        assert!((low - 10.0).abs() < 1e-6 && (high - 1000.0).abs() < 1e-3);
    }

    #[test]
    fn wrong_bounds_make_nothing() {
        for (low, high) in [
            (0.0, 1.0),
            (2.0, 1.0),
            (1.0, f64::INFINITY),
            (f64::NAN, 1.0),
        ] {
            assert!(Threshold::new(low, high).is_none());
        }
    }

    #[test]
    fn what_is_no_number_changes_nothing() {
        let mut belief = Threshold::new(1.0, 2.0).unwrap();
        let before = belief.quantile(0.3);
        belief.update(0.0, &under(0.0));
        belief.update(f64::NAN, &under(0.0));
        belief.update(1.5, &over(f64::NAN));
        let unsound = Answer::Counted {
            seen: f64::NAN,
            allowed: 1.0,
            share: 0.01,
        };
        belief.update(1.5, &unsound);
        assert_eq!(belief.quantile(0.3), before);
    }

    /// Poisson's number of groups, each of exponential size.
    fn grouped(random: &mut SplitMix, mean: f64, size: f64) -> f64 {
        let (mut sum, mut at) = (0.0, random.exponential());
        while at < mean / size {
            sum += size * random.exponential();
            at += random.exponential();
        }
        sum
    }

    #[test]
    fn the_density_is_that_of_grouped_sums() {
        let mut random = SplitMix::new(1);
        let (mean, size) = (10.0, 4.0);
        let all = 200_000;
        let drawn: Vec<f64> = (0..all).map(|_| grouped(&mut random, mean, size)).collect();
        let none = drawn.iter().filter(|sum| **sum == 0.0).count() as f64 / f64::from(all);
        assert!((none / ln_density(0.0, mean, size).exp() - 1.0).abs() < 0.05);
        for (from, to) in [(0, 5), (5, 15), (15, 30)] {
            let within = |sum: &&f64| **sum > f64::from(from) && **sum <= f64::from(to);
            let seen = drawn.iter().filter(within).count() as f64 / f64::from(all);
            let steps = (from * 20..to * 20).map(|at| (f64::from(at) + 0.5) / 20.0);
            let told: f64 = steps
                .map(|at| ln_density(at, mean, size).exp() / 20.0)
                .sum();
            assert!((seen / told - 1.0).abs() < 0.04, "{from}: {seen} {told}");
        }
    }

    /// Intervals cover as often as they claim, though a hold sees a few groups or none.
    #[test]
    fn intervals_are_honest() {
        for (slope, deviation, size) in [(15.0, 0.0, 30.0), (40.0, 0.5, 10.0)] {
            let (mut covered, mut above) = (0, 0);
            for seed in 0..40 {
                let mut random = SplitMix::new(seed);
                let truth: f64 = 100.0 * (1.0 + random.uniform());
                let mut belief = Threshold::new(50.0, 400.0).unwrap();
                for hold in 0..18 {
                    let rate = belief.quantile([0.5, 0.1, 0.9][hold % 3]);
                    let response = slope * (rate / truth).ln() + deviation * random.normal();
                    // Far beyond the threshold, groups are too many to be drawn one by one.
                    let seen = grouped(&mut random, 60.0 * response.min(5.0).exp(), size);
                    let answer = match seen > 60.0 * 4.5 {
                        true => Answer::Over {
                            response: 1.5,
                            allowed: 60.0,
                        },
                        false => Answer::Counted {
                            seen,
                            allowed: 60.0,
                            share: 0.0,
                        },
                    };
                    belief.update(rate, &answer);
                }
                let (low, high) = belief.interval(0.9);
                covered += usize::from(low <= truth && truth <= high);
                above += usize::from(low > truth);
            }
            // By chance, fewer than this in 2 % of cases.
            assert!(covered >= 32, "{slope} {deviation} {size}: {covered} of 40");
            assert!(above <= 7, "{slope} {deviation} {size}: {above} too high");
        }
    }

    /// Answers of yes and no alone are enough, only more of them.
    #[test]
    fn intervals_are_honest_for_signs_alone() {
        let mut covered = 0;
        for seed in 0..60 {
            let mut random = SplitMix::new(seed);
            let truth = 100.0 * (1.0 + random.uniform());
            let mut belief = Threshold::new(50.0, 400.0).unwrap();
            for _ in 0..25 {
                let rate = belief.quantile(0.5);
                let seen = truth * (0.03 * random.normal()).exp();
                let answer = if rate < seen { under(0.0) } else { over(0.0) };
                belief.update(rate, &answer);
            }
            let (low, high) = belief.interval(0.9);
            covered += usize::from(low <= truth && truth <= high);
        }
        assert!(covered >= 49, "{covered} of 60");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn quantiles_ascend_and_stay_in_the_range(
            answers in prop::collection::vec((0.5f64..20.0, any::<bool>()), 0..10),
            a in 0.0f64..1.0,
            b in 0.0f64..1.0,
        ) {
            let mut belief = Threshold::new(1.0, 10.0).unwrap();
            for (rate, above) in answers {
                belief.update(rate, &if above { under(0.0) } else { over(0.0) });
            }
            let (low, high) = (belief.quantile(a.min(b)), belief.quantile(a.max(b)));
            prop_assert!(low <= high && low >= 1.0 - 1e-9 && high <= 10.0 + 1e-9);
        }
    }
}
