//! A gate: takes pairs of runs until it can say whether the new program is worse.

mod judgement;
mod settings;
#[cfg(test)]
mod tests;

use stats::{HodgesLehmann, sequential_tails};

pub use judgement::{GateJudgement, MetricJudgement};
pub use settings::{GateError, GateSettings, Gated};

use crate::pairs::{Missing, Order, PairValues, is_negative, usable, worse_by};
use crate::verdict::{Evidence, Tails, Verdict};

/// What a gate wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// So many more pairs until it looks at them.
    Pairs(usize),
    /// Nothing: it knows.
    Decided,
    /// Nothing: the budget is spent, and it does not know.
    BudgetSpent,
}

/// Takes pairs of runs and decides; see [`GateSettings`] for how.
///
/// A gate ends as soon as one metric is worse, or all are not worse. At each look a metric is
/// tested for a slowdown with what Holm's procedure leaves it: alpha over the number of
/// metrics that have not been shown to be slower yet. That none is worse needs every metric to
/// say so, which needs no correction for their number (Berger, "Multiparameter hypothesis
/// testing and acceptance sampling", 1982).
#[derive(Debug, Clone)]
pub struct Gate {
    settings: GateSettings,
    /// Numbers of pairs.
    looks: Vec<usize>,
    /// What to test each look with, by the number of metrics that alpha is divided among, less 1.
    tails: Vec<Vec<f64>>,
    /// In the order of the settings' metrics.
    measured: Vec<Measured>,
    tried: usize,
}

/// What has been seen of a metric.
#[derive(Debug, Clone, Default)]
struct Measured {
    base: Vec<f64>,
    new: Vec<f64>,
    /// Logarithms, above 0 is worse.
    worse_by: Vec<f64>,
    missing: Missing,
    /// Shown to be slower, by whatever.
    slower: bool,
    /// What was concluded for good.
    concluded: Option<Verdict>,
    evidence: Option<Evidence>,
}

impl Gate {
    /// A gate before its first pair.
    ///
    /// # Errors
    /// Settings out of their ranges.
    pub fn new(settings: GateSettings) -> Result<Self, GateError> {
        settings.check()?;
        let looks = settings.looks();
        let times: Vec<f64> = looks
            .iter()
            .map(|pairs| *pairs as f64 / settings.pairs_most as f64)
            .collect();
        let divided = 1..=settings.metrics.len();
        let tails = divided.map(|among| {
            let alpha = settings.alpha / 2.0 / among as f64;
            sequential_tails(settings.spending, alpha, &times)
        });
        // Never none: looks ascend to 1 and alpha was checked.
        let tails = tails.collect::<Option<_>>().ok_or(GateError::Pairs {
            first: settings.pairs_first,
            each: settings.pairs_each,
            most: settings.pairs_most,
        })?;
        Ok(Self {
            tails,
            measured: vec![Measured::default(); settings.metrics.len()],
            looks,
            settings,
            tried: 0,
        })
    }

    /// A fresh gate with another seed, spared the sums that its looks need: for simulations of
    /// many.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// Which program of the next pair runs first.
    #[must_use]
    pub fn order(&self) -> Order {
        Order::of_pair(self.settings.seed, self.tried as u64)
    }

    /// What the gate wants now.
    #[must_use]
    pub fn next(&self) -> Next {
        if self.verdict() != Verdict::CannotTell {
            return Next::Decided;
        }
        let look = self.looks.iter().find(|look| **look > self.tried);
        look.map_or(Next::BudgetSpent, |look| Next::Pairs(look - self.tried))
    }

    /// Takes what a pair measured, in the order of the settings' metrics.
    ///
    /// # Errors
    /// Another number of values than of metrics, or a gate that has ended.
    pub fn take(&mut self, pair: &[PairValues]) -> Result<Next, GateError> {
        if pair.len() != self.measured.len() {
            return Err(GateError::Values {
                expected: self.measured.len(),
                found: pair.len(),
            });
        }
        let Next::Pairs(left) = self.next() else {
            return Err(GateError::Ended { pairs: self.tried });
        };
        self.tried += 1;
        for (at, values) in pair.iter().enumerate() {
            let direction = self.settings.metrics[at].metric.direction;
            let measured = &mut self.measured[at];
            if is_negative(values.base) || is_negative(values.new) {
                measured.missing.negative += 1;
            }
            match (usable(values.base), usable(values.new)) {
                (Some(base), Some(new)) => {
                    measured.base.push(base);
                    measured.new.push(new);
                    measured.worse_by.push(worse_by(direction, base, new));
                }
                (Some(_), None) => measured.missing.in_new += 1,
                (None, Some(_)) => measured.missing.in_base += 1,
                (None, None) => measured.missing.in_both += 1,
            }
        }
        if left == 1 {
            self.look();
        }
        Ok(self.next())
    }

    /// Of the whole gate, so far.
    fn verdict(&self) -> Verdict {
        let concluded = |verdict| move |measured: &Measured| measured.concluded == Some(verdict);
        if self.measured.iter().any(concluded(Verdict::Worse)) {
            Verdict::Worse
        } else if self.measured.iter().all(concluded(Verdict::NotWorse)) {
            Verdict::NotWorse
        } else {
            Verdict::CannotTell
        }
    }

    fn look(&mut self) {
        let Some(look) = self.looks.iter().position(|look| *look == self.tried) else {
            return;
        };
        let found: Vec<Option<HodgesLehmann>> = self
            .measured
            .iter()
            .map(|measured| HodgesLehmann::of_one(&measured.worse_by))
            .collect();
        // Whoever is shown to be slower leaves more of alpha to the others.
        loop {
            let left = self.measured.iter().filter(|measured| !measured.slower);
            let among = left.count().max(1);
            let tails = Tails {
                low: self.tails[among - 1][look],
                high: self.tails[0][look],
                power: self.settings.power,
            };
            let mut more = false;
            for (measured, found) in self.measured.iter_mut().zip(&found) {
                let Some(found) = found.as_ref().filter(|_| measured.concluded.is_none()) else {
                    continue;
                };
                let evidence = Evidence::of(found, tails);
                more |= evidence.slower() && !measured.slower;
                measured.slower |= evidence.slower();
                measured.evidence = Some(evidence);
            }
            if !more {
                break;
            }
        }
        for (measured, gated) in self.measured.iter_mut().zip(&self.settings.metrics) {
            if measured.concluded.is_none() {
                let limit = gated.metric.direction.logarithm(gated.limit_share);
                measured.concluded = measured.conclude(limit);
            }
        }
    }
}

impl Measured {
    /// What can be said for good; `limit` is a logarithm.
    fn conclude(&self, limit: f64) -> Option<Verdict> {
        let evidence = self.evidence?;
        if self.slower && evidence.above(limit) {
            return Some(Verdict::Worse);
        }
        // What a new program failed to do is not left out of what it is judged by.
        let verdict = match evidence.verdict(limit) {
            Verdict::NotWorse if self.missing.in_new > 0 => Verdict::CannotTell,
            verdict => verdict,
        };
        (verdict != Verdict::CannotTell).then_some(verdict)
    }
}
