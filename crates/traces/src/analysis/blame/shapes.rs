//! What visits of an endpoint do, each thing once: their calls and their work, whichever stretches
//! of the service they are within.

use std::collections::{BTreeMap, BTreeSet};

use super::super::forest::Tree;
use super::links::Links;
use super::places::{Endpoint, VisitOrigin, below, callee, own};
use crate::{Name, SpanKind};

/// Most shapes of an endpoint that are told apart; visits of further ones are counted only.
const MOST: usize = 256;

/// Spans below one that are looked at: what comes after is not told apart.
const LOOKED_AT: usize = 1024;

/// What a span had below it, and which of it ended last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Shape {
    /// What it called or did.
    below: Vec<Endpoint>,
    /// Stretches of its own service.
    inner: Vec<Endpoint>,
    last: Option<Endpoint>,
    /// Likewise, of the calls.
    last_call: Option<Endpoint>,
}

impl Shape {
    pub(super) fn of(tree: &Tree<'_>, at: usize, links: &Links) -> Self {
        let mut shape = Self::default();
        let (mut last, mut last_call) = (0, 0);
        let mut open = vec![at];
        let mut left = LOOKED_AT;
        while let Some(at) = open.pop() {
            let service = &tree.node(at).span.service;
            let is_sent = links.is_sent(tree, at);
            for child in below(tree, at).take(left) {
                left -= 1;
                let span = tree.node(child).span;
                if is_sent && span.service != *service {
                    continue;
                }
                let called = callee(tree, child, links);
                let is_inner = called.is_none() && span.kind == SpanKind::Internal;
                let endpoint = called.unwrap_or_else(|| own(span));
                if span.end > last || shape.last.is_none() {
                    (last, shape.last) = (span.end, Some(endpoint.clone()));
                }
                if is_inner {
                    open.push(child);
                    shape.inner.push(endpoint);
                    continue;
                }
                if span.end > last_call || shape.last_call.is_none() {
                    (last_call, shape.last_call) = (span.end, Some(endpoint.clone()));
                }
                shape.below.push(endpoint);
            }
        }
        for list in [&mut shape.below, &mut shape.inner] {
            list.sort();
            list.dedup();
        }
        shape
    }
}

/// Shapes of the visits of one endpoint, by their origin.
#[derive(Debug, Clone, Default)]
pub(super) struct Shapes(BTreeMap<Shape, BTreeMap<VisitOrigin, u64>>);

impl Shapes {
    pub(super) fn add(&mut self, shape: Shape, origin: VisitOrigin, count: u64) {
        if self.0.len() < MOST || self.0.contains_key(&shape) {
            *self.0.entry(shape).or_default().entry(origin).or_default() += count;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Shape, &VisitOrigin, u64)> {
        let shapes = self.0.iter();
        shapes.flat_map(|(shape, counts)| {
            let counts = counts.iter();
            counts.map(move |(origin, count)| (shape, origin, *count))
        })
    }

    /// Stretches of the service, of any visit.
    pub(super) fn inner(&self) -> BTreeSet<&Endpoint> {
        self.0.keys().flat_map(|shape| &shape.inner).collect()
    }

    /// What visits do, without stretches that `is_known` does not know: more instrumentation is
    /// nothing that they do. Calls get the names that `links` of the other side know.
    pub(super) fn actions(
        &self,
        service: &Name,
        is_known: impl Fn(&Endpoint) -> bool,
        links: &Links,
    ) -> VisitActions {
        let named = |one: &Endpoint| -> Endpoint {
            let call = (service.clone(), one.clone());
            links.answers(&call).unwrap_or(one).clone()
        };
        let mut actions = VisitActions::default();
        for (shape, counts) in &self.0 {
            let inner = shape.inner.iter().filter(|one| is_known(one)).cloned();
            let mut below: Vec<Endpoint> = shape.below.iter().map(named).chain(inner).collect();
            below.sort();
            below.dedup();
            let is_hidden = |last: &&Endpoint| !shape.inner.contains(last) || is_known(last);
            let last = shape.last.as_ref().filter(is_hidden);
            let last = last.or(shape.last_call.as_ref()).map(named);
            let done = actions.0.entry(below).or_default();
            let count: u64 = counts.values().sum();
            *done.lasts.entry(last).or_default() += count;
            let last_call = shape.last_call.as_ref().map(named);
            *done.last_calls.entry(last_call).or_default() += count;
            for (origin, count) in counts {
                *done.counts.entry(origin.clone()).or_default() += count;
                *actions.1.entry(origin.clone()).or_default() += count;
            }
        }
        actions
    }
}

/// How often visits did one thing, by their origin, and what ended last.
#[derive(Debug, Clone, Default)]
struct Done {
    counts: BTreeMap<VisitOrigin, u64>,
    lasts: Lasts,
    last_calls: Lasts,
}

/// How many visits ended with what.
type Lasts = BTreeMap<Option<Endpoint>, u64>;

impl Done {
    fn visits(&self) -> u64 {
        self.counts.values().sum()
    }
}

fn most(lasts: &Lasts) -> Option<&Endpoint> {
    lasts.iter().max_by_key(|(_, count)| **count)?.0.as_ref()
}

/// What visits of an endpoint did, and how many there were, by their origin.
#[derive(Debug, Clone, Default)]
pub(super) struct VisitActions(BTreeMap<Vec<Endpoint>, Done>, BTreeMap<VisitOrigin, u64>);

/// What visits do beside what is most like it on the other side.
#[derive(Debug, Clone, Default)]
pub(super) struct Difference {
    /// What they do beyond it.
    pub(super) added: Vec<Endpoint>,
    /// What they do not do of it.
    pub(super) missing: Vec<Endpoint>,
}

impl VisitActions {
    pub(super) fn visits(&self) -> u64 {
        self.1.values().sum()
    }

    /// Each thing that visits did, with how many did it.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[Endpoint], u64)> {
        let all = self.0.iter();
        all.map(|(below, done)| (below.as_slice(), done.visits()))
    }

    pub(super) fn count(&self, below: &[Endpoint]) -> u64 {
        self.0.get(below).map_or(0, Done::visits)
    }

    /// How many of how many visits did that, by their origin.
    pub(super) fn counts(&self, below: &[Endpoint]) -> BTreeMap<VisitOrigin, (u64, u64)> {
        let done = self.0.get(below);
        let some = |origin: &VisitOrigin| done.and_then(|done| done.counts.get(origin)).copied();
        let all = self.1.iter();
        all.map(|(origin, all)| (origin.clone(), (some(origin).unwrap_or(0), *all)))
            .collect()
    }

    /// What ends most of those visits.
    pub(super) fn last(&self, below: &[Endpoint]) -> Option<&Endpoint> {
        most(&self.0.get(below)?.lasts)
    }

    /// The call that ends most of those visits, whatever stretches are around it.
    pub(super) fn last_call(&self, below: &[Endpoint]) -> Option<&Endpoint> {
        most(&self.0.get(below)?.last_calls)
    }

    /// The most frequent doing here that has all of what visits do, and more.
    pub(super) fn whole(&self, below: &[Endpoint]) -> Option<&[Endpoint]> {
        let has_all = |other: &[Endpoint]| below.iter().all(|one| other.contains(one));
        let longer = self
            .iter()
            .filter(|(other, _)| other.len() > below.len() && has_all(other));
        longer
            .max_by_key(|(_, count)| *count)
            .map(|(whole, _)| whole)
    }

    /// How visits differ from the doing here that lacks least of theirs, and has least else.
    pub(super) fn difference(&self, below: &[Endpoint]) -> Difference {
        let beyond = |these: &[Endpoint], those: &[Endpoint]| -> Vec<Endpoint> {
            let new = these.iter().filter(|one| !those.contains(one));
            new.cloned().collect()
        };
        let others = self.iter().filter(|(other, _)| *other != below);
        let differences = others.map(|(other, _)| Difference {
            added: beyond(below, other),
            missing: beyond(other, below),
        });
        let least = differences.min_by_key(|one| (one.added.len(), one.missing.len()));
        least.unwrap_or_else(|| Difference {
            added: below.to_vec(),
            missing: Vec::new(),
        })
    }
}
