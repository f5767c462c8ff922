//! The small language of conditions and expectations.
//!
//! ```text
//! task.desired..resolved p99 < 5s and (task.complete == 100% or task.entities == 0)
//! ```
//!
//! A comparison is a metric, an operator and a quantity; comparisons are joined by
//! `and` (which binds tighter) and `or`, and grouped by parentheses. Every name and
//! unit is checked against the file before a run; see [`check`](crate::check()).

mod faults;
mod growth;
mod lexer;
mod loads;
mod metric;
mod parser;
mod probes;
mod quantity;
mod resolve;

use std::collections::BTreeMap;

use serde::Serialize;

pub use faults::{Affected, FaultNumber, ProbeSeries};
pub use growth::Growing;
pub(crate) use lexer::in_name;
pub(crate) use loads::LoadUse;
pub use metric::{Dimension, KneeEnd, LoadQuantity, Metric, Stat};
pub(crate) use metric::{WATCHES, watch_name};
pub use probes::ProbeNumber;
pub(crate) use probes::ProbeUse;
pub(crate) use resolve::{Names, RESERVED, Use, compile, compile_metric};

/// A checked expression.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Expr {
    /// The expression as written, with names filled in.
    pub text: String,
    /// What it means.
    #[serde(skip)]
    pub root: Node,
}

/// A part of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// A metric against a quantity.
    Compare(Comparison),
    /// Holds when every part holds.
    All(Vec<Node>),
    /// Holds when some part holds.
    Any(Vec<Node>),
}

/// A metric against a quantity.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The left side.
    pub metric: Metric,
    /// How the sides are compared.
    pub op: Op,
    /// The right side, in the unit of [`Metric::dimension`]; as a factor if it is
    /// [`of`](Self::of) another metric.
    pub quantity: f64,
    /// The metric that the right side is a share of: `< 110% of 'soak': traffic p99`.
    pub of: Option<Metric>,
    /// The right side as it is written, without white space.
    pub written: String,
}

impl Comparison {
    /// The right side in the unit of the left; `None` when it was not measured, or is
    /// infinite: nothing can be compared with what never ended.
    fn bound(&self, value: &dyn Fn(&Metric) -> Option<f64>) -> Option<f64> {
        match &self.of {
            None => Some(self.quantity),
            Some(of) => {
                let found = value(of).filter(|value| value.is_finite());
                found.map(|value| self.quantity * value)
            }
        }
    }
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// `==`, to the last bit: meant for counts.
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Op {
    /// Is the comparison true?
    pub fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Equal => left == right,
            Self::NotEqual => left != right,
            Self::Less => left < right,
            Self::LessOrEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterOrEqual => left >= right,
        }
    }
}

/// Where measured values come from.
pub trait Metrics {
    /// The value of a metric in the unit of its [`Metric::dimension`]; `None` when
    /// nothing was measured. An infinite length of time is longer than any other; else a
    /// value that is not finite counts as not measured.
    fn value(&self, metric: &Metric) -> Option<f64>;
}

/// What became of an expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Did it hold? `None`: a value that would decide it is missing.
    pub holds: Option<bool>,
    /// The measured values with their units. A single one stands alone (`1.27 s`),
    /// several follow their names. Empty when nothing was measured.
    ///
    /// Values have three significant digits, or as many as it takes to be on the
    /// same side of the expression's quantity as the exact value.
    pub measured: String,
    /// The metrics without a value, as the expression names them.
    pub missing: Vec<String>,
}

impl Expr {
    /// Judges the expression by measured values.
    ///
    /// A missing value makes its comparison undecided. `and` is false if one side
    /// is, `or` is true if one side is, whatever the other side would have been.
    pub fn eval(&self, metrics: &dyn Metrics) -> Judgement {
        let value = |metric: &Metric| {
            let endless = metric.dimension() == Dimension::Seconds;
            let known = |value: &f64| value.is_finite() || endless && *value == f64::INFINITY;
            metrics.value(metric).filter(known)
        };
        let mut shown: Vec<(String, String)> = Vec::new();
        let mut missing = Vec::new();
        let mut grouped: BTreeMap<&Metric, Vec<&Comparison>> = BTreeMap::new();
        let comparisons = self.comparisons();
        for comparison in &comparisons {
            grouped
                .entry(&comparison.metric)
                .or_default()
                .push(comparison);
        }
        for comparison in &comparisons {
            let metric = &comparison.metric;
            // Taken out at its first place, so that each metric is shown once.
            let Some(group) = grouped.remove(metric) else {
                continue;
            };
            match value(metric) {
                Some(found) => {
                    let bounds = group.iter().filter_map(|c| Some((c.op, c.bound(&value)?)));
                    let bounds: Vec<_> = bounds.collect();
                    let dimension = metric.dimension();
                    let text = show_honestly(found, dimension, &bounds);
                    shown.push((metric.to_string(), text));
                }
                None => missing.push(metric.to_string()),
            }
        }
        for of in comparisons.iter().filter_map(|c| c.of.as_ref()) {
            let name = of.to_string();
            match value(of) {
                _ if shown.iter().any(|(known, _)| *known == name) => {}
                Some(value) => shown.push((name, of.dimension().show(value))),
                None if missing.contains(&name) => {}
                None => missing.push(name),
            }
        }
        let measured = match shown.as_slice() {
            [(_, alone)] if missing.is_empty() => alone.clone(),
            several => {
                let named = several
                    .iter()
                    .map(|(name, value)| format!("{name} {value}"));
                named.collect::<Vec<_>>().join(", ")
            }
        };
        Judgement {
            holds: holds(&self.root, &value),
            measured,
            missing,
        }
    }

    /// The metrics in order of the text; one that is used twice comes twice.
    pub fn metrics(&self) -> impl Iterator<Item = &Metric> {
        self.comparisons()
            .into_iter()
            .flat_map(|comparison| [Some(&comparison.metric), comparison.of.as_ref()])
            .flatten()
    }

    /// The comparisons in order of the text.
    pub fn comparisons(&self) -> Vec<&Comparison> {
        fn collect<'n>(node: &'n Node, into: &mut Vec<&'n Comparison>) {
            match node {
                Node::Compare(comparison) => into.push(comparison),
                Node::All(parts) | Node::Any(parts) => {
                    parts.iter().for_each(|part| collect(part, into));
                }
            }
        }
        let mut comparisons = Vec::new();
        collect(&self.root, &mut comparisons);
        comparisons
    }
}

/// Three-valued logic: `None` is "cannot be told".
fn holds(node: &Node, value: &dyn Fn(&Metric) -> Option<f64>) -> Option<bool> {
    let decided_by = |parts: &[Node], decisive: bool| {
        let mut all_known = true;
        for part in parts {
            match holds(part, value) {
                Some(held) if held == decisive => return Some(decisive),
                Some(_) => {}
                None => all_known = false,
            }
        }
        all_known.then_some(!decisive)
    };
    match node {
        Node::Compare(comparison) => {
            let (left, right) = (value(&comparison.metric)?, comparison.bound(value)?);
            Some(comparison.op.holds(left, right))
        }
        Node::All(parts) => decided_by(parts, false),
        Node::Any(parts) => decided_by(parts, true),
    }
}

/// Shows a value with so many digits that each comparison reads as it was judged:
/// 30.04 s is not shown as `30 s` beside `< 30s`.
fn show_honestly(value: f64, dimension: Dimension, bounds: &[(Op, f64)]) -> String {
    let agrees = |shown: f64| {
        bounds
            .iter()
            .all(|(op, bound)| op.holds(shown, *bound) == op.holds(value, *bound))
    };
    (3..=17)
        .map(|digits| dimension.shown(value, digits))
        .find(|shown| agrees(shown.value))
        .map_or_else(|| dimension.show(value), |shown| shown.text)
}
