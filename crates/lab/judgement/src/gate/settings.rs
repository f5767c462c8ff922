//! What a gate judges, and how strictly.

use std::collections::BTreeSet;

use stats::Spending;
use thiserror::Error;

use crate::Metric;
use crate::verdict::{ALPHA, POWER};

/// More metrics than this are for looking at, not for gating.
const METRICS_MOST: usize = 32;

/// Nobody runs more; memory grows with the square of it.
const PAIRS_MOST: usize = 1000;

/// A metric of a gate.
#[derive(Debug, Clone, PartialEq)]
pub struct Gated {
    /// Which.
    pub metric: Metric,
    /// Up to this share of the base it may be worse: 0.05 is 5 %. Above 0, below 1.
    pub limit_share: f64,
}

/// How a gate decides.
#[derive(Debug, Clone, PartialEq)]
pub struct GateSettings {
    /// What is judged.
    pub metrics: Vec<Gated>,
    /// Fixes which of each pair runs first.
    pub seed: u64,
    /// The budget: pairs that are tried, those without values counted.
    pub pairs_most: usize,
    /// Pairs before the first look.
    pub pairs_first: usize,
    /// Pairs from look to look.
    pub pairs_each: usize,
    /// The chance, over all looks and metrics, that one is called slower that is not, and that
    /// one at its limit passes: half of it each.
    pub alpha: f64,
    /// How likely a slowdown as large as the one that is told as detectable is seen.
    pub power: f64,
    /// How alpha is spent over the looks.
    pub spending: Spending,
}

impl GateSettings {
    /// The usual strictness: at most 24 pairs, looked at after 8 and every 4, an alpha of 5 %
    /// spent as O'Brien and Fleming do, a power of 80 %.
    #[must_use]
    pub fn new(metrics: Vec<Gated>, seed: u64) -> Self {
        Self {
            metrics,
            seed,
            pairs_most: 24,
            pairs_first: 8,
            pairs_each: 4,
            alpha: ALPHA,
            power: POWER,
            spending: Spending::OBrienFleming,
        }
    }

    /// Numbers of pairs at which the gate looks, ascending; the budget is the last.
    pub(super) fn looks(&self) -> Vec<usize> {
        let before = (self.pairs_first..self.pairs_most).step_by(self.pairs_each);
        before.chain([self.pairs_most]).collect()
    }

    pub(super) fn check(&self) -> Result<(), GateError> {
        if self.metrics.is_empty() || self.metrics.len() > METRICS_MOST {
            let found = self.metrics.len();
            return Err(GateError::Metrics { found });
        }
        let mut names = BTreeSet::new();
        for Gated {
            metric,
            limit_share,
        } in &self.metrics
        {
            let name = metric.name.clone();
            if !(*limit_share > 0.0 && *limit_share < 1.0) {
                let found = *limit_share;
                return Err(GateError::Limit { name, found });
            }
            if !names.insert(&metric.name) {
                return Err(GateError::Twice { name });
            }
        }
        let pairs = 1..=PAIRS_MOST;
        let ascending = self.pairs_first <= self.pairs_most && self.pairs_each > 0;
        if !(pairs.contains(&self.pairs_first) && pairs.contains(&self.pairs_most) && ascending) {
            return Err(GateError::Pairs {
                first: self.pairs_first,
                each: self.pairs_each,
                most: self.pairs_most,
            });
        }
        let chances = [
            ("alpha", self.alpha, (1e-6, 0.5)),
            ("power", self.power, (0.5, 0.999)),
        ];
        for (what, found, (least, most)) in chances {
            if !(least..=most).contains(&found) {
                return Err(GateError::Chance {
                    what,
                    found,
                    least,
                    most,
                });
            }
        }
        Ok(())
    }
}

/// Why there is no gate, or why it does not take a pair.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum GateError {
    /// None or too many metrics.
    #[error(
        "a gate judges 1 to {METRICS_MOST} metrics, found {found}: gate the few that matter, show the others"
    )]
    Metrics {
        /// How many.
        found: usize,
    },
    /// A metric stands twice in a gate.
    #[error("gate: \"{name}\" is listed twice; list it once, with one limit")]
    Twice {
        /// Its name.
        name: String,
    },
    /// A limit that no comparison has.
    #[error(
        "gate on \"{name}\": the limit must be above 0 % and below 100 %, found {} %",
        found * 100.0
    )]
    Limit {
        /// The metric.
        name: String,
        /// As a share.
        found: f64,
    },
    /// Numbers of pairs that do not fit together.
    #[error(
        "gate: expected 1 <= first look <= budget <= {PAIRS_MOST} pairs and at least 1 pair from look to look, found {first}, {most} and {each}"
    )]
    Pairs {
        /// Before the first look.
        first: usize,
        /// From look to look.
        each: usize,
        /// In all.
        most: usize,
    },
    /// A chance out of range.
    #[error("gate: {what} must be from {least} to {most}, found {found}")]
    Chance {
        /// Which.
        what: &'static str,
        /// What was asked for.
        found: f64,
        /// The least it can be.
        least: f64,
        /// The most it can be.
        most: f64,
    },
    /// A pair with values of other metrics than the gate's.
    #[error(
        "a pair of the gate must have one entry for each of its {expected} metrics, found {found}; use none for a missing value"
    )]
    Values {
        /// Metrics of the gate.
        expected: usize,
        /// Entries of the pair.
        found: usize,
    },
    /// A pair after the end.
    #[error("the gate ended after {pairs} pairs: read its judgement, and run no more pairs")]
    Ended {
        /// How many it took.
        pairs: usize,
    },
}
