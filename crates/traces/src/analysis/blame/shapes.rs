//! What visits of an endpoint do, each thing once: their calls and their work, whichever stretches
//! of the service they are within.

use std::collections::{BTreeMap, BTreeSet};

use super::super::forest::Tree;
use super::links::Links;
use super::places::{Endpoint, below, callee, own};
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
            for child in below(tree, at).take(left) {
                left -= 1;
                let span = tree.node(child).span;
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

/// Shapes of the visits of one endpoint.
#[derive(Debug, Clone, Default)]
pub(super) struct Shapes(BTreeMap<Shape, u64>);

impl Shapes {
    pub(super) fn add(&mut self, shape: Shape, count: u64) {
        if self.0.len() < MOST || self.0.contains_key(&shape) {
            *self.0.entry(shape).or_default() += count;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Shape, u64)> {
        self.0.iter().map(|(shape, count)| (shape, *count))
    }

    /// Stretches of the service, of any visit.
    pub(super) fn inner(&self) -> BTreeSet<&Endpoint> {
        self.0.keys().flat_map(|shape| &shape.inner).collect()
    }

    /// What visits do, without stretches that `is_known` does not know: more instrumentation is
    /// nothing that they do. Calls get the names that `links` of the other side know.
    pub(super) fn doings(
        &self,
        service: &Name,
        is_known: impl Fn(&Endpoint) -> bool,
        links: &Links,
    ) -> Doings {
        let named = |one: &Endpoint| -> Endpoint {
            let call = (service.clone(), one.clone());
            links.answers(&call).unwrap_or(one).clone()
        };
        let mut doings = Doings::default();
        for (shape, count) in &self.0 {
            let inner = shape.inner.iter().filter(|one| is_known(one)).cloned();
            let mut below: Vec<Endpoint> = shape.below.iter().map(named).chain(inner).collect();
            below.sort();
            below.dedup();
            let is_hidden = |last: &&Endpoint| !shape.inner.contains(last) || is_known(last);
            let last = shape.last.as_ref().filter(is_hidden);
            let last = last.or(shape.last_call.as_ref()).map(named);
            let (all, lasts) = doings.0.entry(below).or_default();
            *all += count;
            *lasts.entry(last).or_default() += count;
        }
        doings
    }
}

/// How often visits did what, and what ended last.
type Done = (u64, BTreeMap<Option<Endpoint>, u64>);

/// What visits of an endpoint did.
#[derive(Debug, Clone, Default)]
pub(super) struct Doings(BTreeMap<Vec<Endpoint>, Done>);

impl Doings {
    pub(super) fn visits(&self) -> u64 {
        self.0.values().map(|(count, _)| count).sum()
    }

    /// Each thing that visits did, with how many did it.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[Endpoint], u64)> {
        self.0
            .iter()
            .map(|(below, (count, _))| (below.as_slice(), *count))
    }

    pub(super) fn count(&self, below: &[Endpoint]) -> u64 {
        self.0.get(below).map_or(0, |(count, _)| *count)
    }

    /// What ends most of those visits.
    pub(super) fn last(&self, below: &[Endpoint]) -> Option<&Endpoint> {
        let (_, lasts) = self.0.get(below)?;
        lasts.iter().max_by_key(|(_, count)| **count)?.0.as_ref()
    }

    /// What visits leave out of the most frequent doing here that has all of theirs and more.
    pub(super) fn left_out(&self, below: &[Endpoint]) -> Vec<Endpoint> {
        let has_all = |other: &[Endpoint]| below.iter().all(|one| other.contains(one));
        let longer = self
            .iter()
            .filter(|(other, _)| other.len() > below.len() && has_all(other));
        let usual = longer.max_by_key(|(_, count)| *count);
        let left = usual.into_iter().flat_map(|(usual, _)| usual);
        left.filter(|one| !below.contains(one)).cloned().collect()
    }

    /// What visits do beyond the doing here that is the most like theirs.
    pub(super) fn added(&self, below: &[Endpoint]) -> Vec<Endpoint> {
        let more = |other: &[Endpoint]| -> Vec<Endpoint> {
            let new = below.iter().filter(|one| !other.contains(one));
            new.cloned().collect()
        };
        let others = self.iter().filter(|(other, _)| *other != below);
        let added = others.map(|(other, _)| more(other));
        added.min_by_key(Vec::len).unwrap_or_else(|| below.to_vec())
    }
}
