//! What is kept of a run.

use std::collections::BTreeMap;

use super::super::blame::Places;
use super::super::cause::Cause;
use super::super::forest::{Tree, by_trace, traces};
use super::super::report::{Component, report};
use super::super::{Entered, Question, text};
use crate::analysis::Known;
use crate::{Name, Nanos, Span};

/// One run of a side: the requests that succeeded, and what their time went into.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// In order of their beginnings.
    latencies: Vec<Nanos>,
    failed: u64,
    parts: BTreeMap<(String, Cause), Share>,
    /// Work wherever it ran, on the critical path or not, in nanoseconds a request.
    done: BTreeMap<(String, Cause), f64>,
    pub(super) places: Places,
    /// Where the requests above entered; `None`: it is not told.
    pub(super) entry: Option<Entered>,
    /// Requests that entered elsewhere.
    pub(super) elsewhere: u64,
}

/// The path at which requests of every one of these runs entered: of several, the one that the
/// run with fewest of it has most of. `None`: there is none.
pub fn shared_path(runs: &[Vec<Span>], known: Option<&Known>) -> Option<String> {
    let mut least: Option<BTreeMap<Name, u64>> = None;
    for run in runs {
        let mut own = paths(run, known);
        least = Some(match least {
            None => own,
            Some(mut least) => {
                least.retain(|path, count| {
                    let here = own.remove(path);
                    *count = here.unwrap_or(0).min(*count);
                    *count > 0
                });
                least
            }
        });
    }
    let most = least?.into_iter().max_by(|(one, count), (other, more)| {
        // Of as many, the first by name.
        count.cmp(more).then_with(|| other.cmp(one))
    });
    most.map(|(path, _)| path.to_string())
}

/// The paths at which requests entered, with how many did; the most frequent first.
pub fn entered_paths(spans: &[Span]) -> Vec<(String, u64)> {
    let all = paths(spans, None).into_iter();
    let mut all: Vec<(String, u64)> = all.map(|(path, count)| (path.to_string(), count)).collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    all
}

/// How many requests entered at each path.
fn paths(spans: &[Span], known: Option<&Known>) -> BTreeMap<Name, u64> {
    let entry = known.and_then(|one| one.entry.as_deref());
    let order = by_trace(spans);
    let mut tree = Tree::default();
    let mut paths = BTreeMap::new();
    for trace in traces(&order) {
        if let Some(root) = tree.build(trace, entry) {
            *paths.entry(tree.node(root).span.name.clone()).or_default() += 1;
        }
    }
    paths
}

/// How much a part is of typical requests and of those of the tail, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub(super) typical: f64,
    pub(super) tail: Option<f64>,
}

impl Run {
    /// Of a run's spans. Latencies, failures and parts are of the requests that entered at
    /// `path`, of several services the one with most; without it, at the most frequent entry.
    /// Runs that are compared have one path ([`shared_path`]).
    pub fn of_spans(spans: &[Span], known: Option<&Known>, path: Option<&str>) -> Self {
        let question = Question {
            known,
            path,
            ..Question::default()
        };
        let (analysis, course) = report(&question, spans);
        let done = course.done.into_iter().map(|(part, mean)| {
            let place = format!("{} {}", part.service, part.work);
            ((place, part.cause), mean)
        });
        let share = |one: &Component| {
            let share = Share {
                typical: one.figures.typical_ns,
                tail: one.figures.tail_ns,
            };
            ((text::place(one), one.cause), share)
        };
        Self {
            latencies: course.latencies,
            failed: analysis.counts.failed,
            parts: analysis.components.iter().map(share).collect(),
            done: done.collect(),
            places: Places::of(spans),
            elsewhere: analysis.other_entries.iter().map(|one| one.requests).sum(),
            entry: analysis.entry,
        }
    }

    /// Of latencies alone, in the order of the requests' beginnings.
    pub fn of_latencies(latencies: Vec<Nanos>) -> Self {
        Self {
            latencies,
            ..Self::default()
        }
    }

    /// With so many requests that failed beside them.
    #[must_use]
    pub fn with_failed(self, failed: u64) -> Self {
        Self { failed, ..self }
    }

    pub(super) fn succeeded(&self) -> u64 {
        self.latencies.len() as u64
    }

    pub(super) fn failed(&self) -> u64 {
        self.failed
    }

    pub(super) fn parts(&self) -> impl Iterator<Item = &(String, Cause)> {
        self.parts.keys()
    }

    pub(super) fn share(&self, place: &(String, Cause)) -> Option<&Share> {
        self.parts.get(place)
    }

    /// Places of work.
    pub(super) fn works(&self) -> impl Iterator<Item = &(String, Cause)> {
        self.done.keys()
    }

    /// Work wherever it ran; none of what there was not.
    pub(super) fn done(&self, place: &(String, Cause)) -> f64 {
        self.done.get(place).copied().unwrap_or(0.0)
    }

    /// Its latencies in so many stretches of time, each in ascending order.
    pub(super) fn stretches(&self, count: usize) -> Vec<Vec<Nanos>> {
        let length = self.latencies.len();
        let stretch = |at: usize| {
            let from = length * at / count;
            let to = length * (at + 1) / count;
            let mut sorted = self.latencies[from..to].to_vec();
            sorted.sort_unstable();
            sorted
        };
        (0..count).map(stretch).collect()
    }
}
