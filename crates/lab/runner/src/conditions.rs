//! Conditions on what is counted and seen now, and what the laboratory itself may have done to that.

use lab_experiment::expr::{Expr, Judgement, Metric, Metrics};

use crate::drivers::Counts;
use crate::loads::{Bound, Loads};
use crate::probes::Probes;
use crate::standstill::Span;

/// What is counted and seen now.
pub(crate) struct Now<'a> {
    pub(crate) counts: Counts,
    pub(crate) loads: &'a Loads<'a>,
    pub(crate) probes: &'a Probes<'a>,
    /// When the laboratory stood still.
    pub(crate) stood: Vec<Span>,
}

/// What a condition comes to.
pub(crate) struct Look {
    /// As it was measured.
    pub(crate) measured: Judgement,
    /// Whether it holds.
    pub(crate) holds: Holds,
}

/// Whether a condition holds.
#[derive(Debug, PartialEq)]
pub(crate) enum Holds {
    Yes,
    No,
    /// A value is missing.
    Unknown,
    /// Only with, or only without, what the laboratory may have added to a number; which, and what helps.
    Doubtful(String),
}

impl Now<'_> {
    /// What a condition comes to now.
    pub(crate) fn look(&self, condition: &Expr) -> Look {
        let at = |bound| At { now: self, bound };
        let (measured, best) = (at(Bound::Measured), at(Bound::AtBest));
        let judgement = condition.eval(&measured);
        let holds = match judgement.holds {
            None => Holds::Unknown,
            held if condition.eval(&best).holds != held => {
                Holds::Doubtful(doubt(condition, &best, &measured))
            }
            Some(true) => Holds::Yes,
            Some(false) => Holds::No,
        };
        Look {
            measured: judgement,
            holds,
        }
    }
}

/// What is seen now, at one of its bounds.
struct At<'a> {
    now: &'a Now<'a>,
    bound: Bound,
}

impl Metrics for At<'_> {
    fn value(&self, metric: &Metric) -> Option<f64> {
        let now = self.now;
        match metric {
            Metric::Entities { what, state } => {
                let count = now.counts.get(&(what.clone(), state.clone()))?;
                Some(*count as f64)
            }
            Metric::Load { load, quantity, .. } => now.loads.value(load, *quantity, self.bound),
            Metric::Probe { probe, number, .. } => match self.bound {
                Bound::Measured => now.probes.value(probe, number, &[]),
                Bound::AtBest => now.probes.value(probe, number, &now.stood),
            },
            _ => None,
        }
    }
}

/// Which number it is that the laboratory may have changed, and what helps.
fn doubt(condition: &Expr, best: &At<'_>, measured: &At<'_>) -> String {
    let bounds = |metric: &Metric| (best.value(metric), measured.value(metric));
    let mut metrics = condition.metrics();
    let Some(metric) = metrics.find(|metric| {
        let (best, measured) = bounds(metric);
        best != measured
    }) else {
        return String::new();
    };
    match bounds(metric) {
        (Some(best), Some(measured)) => between(metric, best, measured),
        _ => format!("{metric} is not known: {}", whose_doing(metric)),
    }
}

/// Between which two values a number lies that the laboratory may have changed, and what helps.
pub(crate) fn between(metric: &Metric, best: f64, measured: f64) -> String {
    let show = |value: f64| metric.dimension().show(value);
    let (low, high) = (show(best.min(measured)), show(best.max(measured)));
    format!("{metric} may be {low} to {high}: {}", whose_doing(metric))
}

/// What it is of a laboratory that may have changed a number, and what helps.
fn whose_doing(metric: &Metric) -> &'static str {
    match metric {
        Metric::Load { .. } => {
            "the generator was late itself; give it a processor of its own, or another machine"
        }
        _ => {
            "the laboratory itself stood still; give it a processor of its own, or another machine"
        }
    }
}
