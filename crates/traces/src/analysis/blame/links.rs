//! Who answers which calls, and which spans must have been there and are not.
//!
//! A call whose callee left no span is one of the endpoint that answers its siblings, those of the
//! same caller with the same name: it was dropped, if it failed, and otherwise the callee's span
//! is missing. So is the span that others name as their parent. What is missing more often than it
//! is there is how the system is instrumented, and no loss.

use std::collections::{BTreeMap, BTreeSet};

use super::super::forest::Tree;
use super::places::{Endpoint, below, foreign, own};
use crate::{Name, Span, SpanId, SpanKind};

/// What a caller says of a call: its own name, and whom and what it called.
pub(super) type Call = (Name, Endpoint);

/// What became of the calls of one kind.
#[derive(Debug, Clone, Default)]
struct Answers {
    /// By the endpoint that left a span.
    by: BTreeMap<Endpoint, u64>,
    /// Calls that went well although nobody left a span.
    silent: u64,
}

impl Answers {
    /// Who answers most.
    fn usual(&self) -> Option<&Endpoint> {
        let most = self.by.iter().max_by_key(|(_, count)| **count)?;
        Some(most.0)
    }

    fn answered(&self) -> u64 {
        self.by.values().sum()
    }
}

/// How the spans of a run hang together.
#[derive(Debug, Clone, Default)]
pub(super) struct Links {
    calls: BTreeMap<Call, Answers>,
    /// Services that have spans of their calls.
    callers: BTreeSet<Name>,
    /// Of each endpoint, spans whose parent is there, and spans whose parent is missing.
    parents: BTreeMap<Endpoint, (u64, u64)>,
    /// Missing parents, by the service that they are of.
    missing: BTreeMap<Name, u64>,
    /// Spans, by service.
    spans: BTreeMap<Name, u64>,
    /// Traces that begin with a span that names no parent, and others.
    roots: (u64, u64),
}

/// What a client span says of its call.
pub(super) fn call(span: &Span) -> Call {
    let endpoint = Endpoint {
        service: span.peer.clone(),
        name: span.name.clone(),
    };
    (span.service.clone(), endpoint)
}

impl Links {
    /// Takes in one trace.
    pub(super) fn learn(&mut self, tree: &Tree<'_>, root: Option<usize>) {
        if let Some(root) = root {
            match tree.node(root).span.parent == SpanId(0) {
                true => self.roots.0 += 1,
                false => self.roots.1 += 1,
            }
        }
        for at in 0..tree.len() {
            let span = tree.node(at).span;
            *self.spans.entry(span.service.clone()).or_default() += 1;
            let parents = self.parents.entry(own(span)).or_default();
            match (span.parent == SpanId(0), tree.is_parentless(at)) {
                (true, _) => {}
                (false, false) => parents.0 += 1,
                (false, true) => parents.1 += 1,
            }
            if span.kind != SpanKind::Client {
                continue;
            }
            if !self.callers.contains(&span.service) {
                self.callers.insert(span.service.clone());
            }
            let answers = self.calls.entry(call(span)).or_default();
            match foreign(tree, at).next() {
                Some(callee) => *answers.by.entry(own(callee)).or_default() += 1,
                None => answers.silent += u64::from(is_well(span)),
            }
        }
    }

    /// Counts what is missing in one trace, when all are learned.
    pub(super) fn count(&mut self, tree: &Tree<'_>, root: Option<usize>) {
        let mut seen = BTreeSet::new();
        for at in 0..tree.len() {
            let span = tree.node(at).span;
            if self.is_orphan(tree, root, at) && seen.insert(span.parent) {
                let whose = match span.kind {
                    SpanKind::Server => self.caller(&own(span)),
                    _ => Some(span.service.clone()),
                };
                *self.missing.entry(whose.unwrap_or_default()).or_default() += 1;
            }
        }
    }

    /// Whether a trace lacks its beginning, as others do not.
    pub(super) fn lacks_root(&self, root: &Span) -> bool {
        root.parent != SpanId(0) && self.roots.1 < self.roots.0
    }

    /// Whether spans of a trace are missing.
    pub(super) fn is_torn(&self, tree: &Tree<'_>, root: usize) -> bool {
        (0..tree.len()).any(|at| self.is_orphan(tree, Some(root), at) || self.is_silent(tree, at))
    }

    /// Whether a span's parent must have been there.
    fn is_orphan(&self, tree: &Tree<'_>, root: Option<usize>, at: usize) -> bool {
        let span = tree.node(at).span;
        let is_known = |(there, missing): &(u64, u64)| there >= missing;
        let begins = root == Some(at) && !self.lacks_root(span);
        span.parent != SpanId(0)
            && tree.is_parentless(at)
            && !begins
            && self.parents.get(&own(span)).is_some_and(is_known)
    }

    /// Whether a span is a call that went well, and whose callee must have left a span.
    fn is_silent(&self, tree: &Tree<'_>, at: usize) -> bool {
        let span = tree.node(at).span;
        span.kind == SpanKind::Client
            && is_well(span)
            && foreign(tree, at).next().is_none()
            && below(tree, at).next().is_none()
            && self
                .calls
                .get(&call(span))
                .is_some_and(|one| one.answered() >= one.silent)
    }

    /// Whether what another service did below a span of this one is no part of it: who has spans of
    /// its calls has others for the messages that it sends, and waits for nobody who takes those.
    pub(super) fn is_sent(&self, tree: &Tree<'_>, at: usize) -> bool {
        let (span, parent) = (tree.node(at).span, tree.node(at).parent);
        // Some clients have spans for the parts of a call.
        let is_of_call =
            || !tree.is_parentless(at) && tree.node(parent).span.kind == SpanKind::Client;
        span.kind == SpanKind::Internal && self.callers.contains(&span.service) && !is_of_call()
    }

    /// Who answers calls of one kind, as far as any left a span.
    pub(super) fn answers(&self, call: &Call) -> Option<&Endpoint> {
        self.calls.get(call)?.usual()
    }

    fn caller(&self, callee: &Endpoint) -> Option<Name> {
        let calls = self.calls.iter();
        let of = calls.filter_map(|(call, one)| Some((*one.by.get(callee)?, &call.0)));
        of.max_by_key(|(count, _)| *count)
            .map(|(_, caller)| caller.clone())
    }

    /// Takes in what is known of another run of the same side.
    pub(super) fn extend(&mut self, other: &Self) {
        for (call, more) in &other.calls {
            let answers = self.calls.entry(call.clone()).or_default();
            answers.silent += more.silent;
            for (endpoint, count) in &more.by {
                *answers.by.entry(endpoint.clone()).or_default() += count;
            }
        }
        self.callers.extend(other.callers.iter().cloned());
        for (endpoint, (there, missing)) in &other.parents {
            let parents = self.parents.entry(endpoint.clone()).or_default();
            (parents.0, parents.1) = (parents.0 + there, parents.1 + missing);
        }
        for (all, more) in [
            (&mut self.missing, &other.missing),
            (&mut self.spans, &other.spans),
        ] {
            for (service, count) in more {
                *all.entry(service.clone()).or_default() += count;
            }
        }
        let (with, without) = other.roots;
        self.roots = (self.roots.0 + with, self.roots.1 + without);
    }

    /// Services whose calls one side lacks although the other has them: what they called is there,
    /// and no parent of it.
    pub(super) fn silenced(&self, other: &Self) -> BTreeSet<Name> {
        let both = [(self, other), (other, self)];
        let all = both
            .iter()
            .flat_map(|(one, other)| one.callers_without_calls(other));
        all.map(|(service, _)| service).collect()
    }

    /// Services none of whose calls of an endpoint are here although they are there, with how many
    /// are missing.
    fn callers_without_calls<'l>(
        &'l self,
        there: &'l Self,
    ) -> impl Iterator<Item = (Name, u64)> + 'l {
        let mostly_missing = |(parented, missing): &(u64, u64)| missing > parented;
        let here = self
            .parents
            .iter()
            .filter(move |(_, one)| mostly_missing(one));
        here.filter_map(move |(endpoint, (_, missing))| {
            let known = there.parents.get(endpoint)?;
            if mostly_missing(known) {
                return None;
            }
            let caller = there.caller(endpoint)?;
            Some((caller, *missing))
        })
    }

    /// What is missing, by service, in the light of what another side knows.
    pub(super) fn losses(&self, other: &Self) -> Losses {
        let mut lost = self.missing.clone();
        for (call, here) in &self.calls {
            let there = other.calls.get(call);
            let silent = |one: &Answers| one.silent <= one.answered();
            let Some(callee) = here.usual().or_else(|| there?.usual()) else {
                continue;
            };
            // Of a call that seldom leaves a span on either side, none is missing.
            if silent(here) || there.is_some_and(silent) {
                *lost.entry(callee.service.clone()).or_default() += here.silent;
            }
        }
        for (service, missing) in self.callers_without_calls(other) {
            *lost.entry(service).or_default() += missing;
        }
        lost.retain(|_, count| *count > 0);
        Losses {
            lost,
            spans: self.spans.clone(),
        }
    }
}

fn is_well(span: &Span) -> bool {
    !span.has_failed() && span.cause.is_empty()
}

/// Spans that are missing, and those that are there, by service.
#[derive(Debug, Clone, Default)]
pub(in crate::analysis) struct Losses {
    lost: BTreeMap<Name, u64>,
    spans: BTreeMap<Name, u64>,
}

impl Losses {
    /// How many spans of a service are missing, of how many.
    pub(super) fn of(&self, service: &Name) -> (u64, u64) {
        let count = |of: &BTreeMap<Name, u64>| of.get(service).copied().unwrap_or(0);
        let lost = count(&self.lost);
        (lost, lost + count(&self.spans))
    }

    /// How many are missing, of how many.
    pub(in crate::analysis) fn all(&self) -> (u64, u64) {
        let lost: u64 = self.lost.values().sum();
        (lost, lost + self.spans.values().sum::<u64>())
    }

    /// The service that lacks the largest share of its spans, and that share.
    pub(in crate::analysis) fn most(&self) -> Option<(&Name, f64)> {
        let share = |service: &Name| {
            let (lost, all) = self.of(service);
            lost as f64 / all.max(1) as f64
        };
        let known = self.lost.keys().filter(|name| !name.is_empty());
        known
            .map(|name| (name, share(name)))
            .max_by(|one, other| one.1.total_cmp(&other.1))
    }
}
