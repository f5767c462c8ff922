//! What is compared between two variants of an experiment.

use std::collections::BTreeMap;

use lab_judgement::Direction;
use serde::Serialize;

use super::Plan;
use crate::expr::{Metric, Op};

/// A named set of constants that take the place of those of `[let]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// Names and values, as [`check`](crate::check()) takes overrides.
    pub set: Vec<(String, String)>,
}

/// All gates of a file: they are judged by the same pairs of runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gates {
    /// The variants that are compared, the base first; `None`: the file has none, and whoever runs
    /// the gate says what the sides are.
    pub sides: Option<[String; 2]>,
    /// Most pairs of runs.
    pub pairs: u32,
    /// What is compared.
    pub metrics: Vec<Gated>,
}

/// A metric of a gate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gated {
    /// Which.
    pub metric: Metric,
    /// Which way it gets better.
    pub direction: Direction,
    /// The share of the base that it may be worse by; above 0, below 1.
    pub limit_share: f64,
}

impl Plan {
    /// Every metric that gates and expectations are about, by name, and which way it gets better.
    /// A gate says that itself; of an expectation it is the side that it wants the metric on.
    pub fn metrics(&self) -> BTreeMap<String, (Metric, Direction)> {
        let mut metrics = BTreeMap::new();
        let gated = self.gates.iter().flat_map(|gates| &gates.metrics);
        for gated in gated {
            let known = (gated.metric.clone(), gated.direction);
            metrics.insert(gated.metric.to_string(), known);
        }
        for comparison in self
            .expects
            .iter()
            .flat_map(|expect| expect.that.comparisons())
        {
            let metric = &comparison.metric;
            let direction = match comparison.op {
                Op::Less | Op::LessOrEqual => Direction::LowerIsBetter,
                Op::Greater | Op::GreaterOrEqual => Direction::HigherIsBetter,
                Op::Equal | Op::NotEqual => metric.direction(),
            };
            let known = metrics.entry(metric.to_string());
            known.or_insert_with(|| (metric.clone(), direction));
        }
        for metric in self.expects.iter().flat_map(|expect| expect.that.metrics()) {
            let known = metrics.entry(metric.to_string());
            known.or_insert_with(|| (metric.clone(), metric.direction()));
        }
        metrics
    }
}
