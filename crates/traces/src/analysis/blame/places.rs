//! Where the spans of a run spent their time, place by place, whatever request they are of.

use std::collections::{BTreeMap, HashMap};

use super::super::cause::Cause;
use super::super::forest::{Tree, by_trace, traces};
use super::super::path::{Sink, Unawaited, Walk};
use crate::{Name, Nanos, Span, SpanId, SpanKind};

/// Most shapes of an endpoint that are told apart; visits of further ones are counted only.
const MOST_SHAPES: usize = 256;

/// Where time passes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// In a service, in spans of one name, without what is below those.
    Within(Endpoint),
    /// On calls from one service to an endpoint of another, without the callee's time.
    Between(Name, Endpoint),
}

/// Spans of one name in one service.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Endpoint {
    pub(super) service: Name,
    pub(super) name: Name,
}

/// One request at one place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passage {
    /// When the request began.
    begin: Nanos,
    /// All of its time there, in nanoseconds.
    pub(super) spent: f64,
    /// What of that is on its critical path.
    pub(super) waited: f64,
    /// How long the request took.
    pub(super) latency: f64,
}

/// What a span had below it: what it called or did, each once; and which of it ended last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Shape {
    pub(super) below: Vec<Endpoint>,
    pub(super) last: Option<Endpoint>,
}

/// What happened at a place.
#[derive(Debug, Clone, Default)]
pub(super) struct Stay {
    /// One for each request, in the order of their beginnings.
    pub(super) passages: Vec<Passage>,
    pub(super) visits: u64,
    /// Visits that failed for a reason of their own: nothing below them did.
    pub(super) failed: u64,
}

/// A run, by place and by shape.
#[derive(Debug, Clone, Default)]
pub(in crate::analysis) struct Places {
    pub(super) stays: BTreeMap<Place, Stay>,
    pub(super) shapes: BTreeMap<Endpoint, BTreeMap<Shape, u64>>,
}

impl Places {
    /// Takes in the spans of any number of requests, in any order.
    pub(in crate::analysis) fn of(spans: &[Span]) -> Self {
        let mut places = Self::default();
        let order = by_trace(spans);
        let (mut tree, mut walk) = (Tree::default(), Walk::default());
        for trace in traces(&order) {
            if let Some(root) = tree.build(trace, None) {
                places.add(&tree, root, &mut walk);
            }
        }
        for stay in places.stays.values_mut() {
            stay.passages.sort_by_key(|one| one.begin);
        }
        places
    }

    /// Takes in another run of the same side, which came later.
    pub(super) fn extend(&mut self, later: &Self) {
        for (place, more) in &later.stays {
            let stay = self.stays.entry(place.clone()).or_default();
            stay.passages.extend(&more.passages);
            stay.visits += more.visits;
            stay.failed += more.failed;
        }
        for (endpoint, more) in &later.shapes {
            let shapes = self.shapes.entry(endpoint.clone()).or_default();
            for (shape, count) in more {
                *shapes.entry(shape.clone()).or_default() += count;
            }
        }
    }

    fn add(&mut self, tree: &Tree<'_>, root: usize, walk: &mut Walk) {
        let root_span = tree.node(root).span;
        let (begin, latency) = (root_span.start, root_span.length() as f64);
        let mut path = OnPath::default();
        walk.request(tree, root, &Unawaited::default(), &mut path);
        let mut times: BTreeMap<Place, (f64, f64)> = BTreeMap::new();
        let mut open = vec![root];
        while let Some(at) = open.pop() {
            open.extend(below(tree, at));
            let callee = callee(tree, at);
            if callee.is_none() && tree.node(at).span.kind != SpanKind::Work {
                self.add_shape(tree, at);
            }
            let (place, time) = visit(tree, at, callee);
            let stay = self.stays.entry(place.clone()).or_default();
            stay.visits += 1;
            stay.failed += u64::from(has_failed_itself(tree, at));
            let times = times.entry(place).or_default();
            times.0 += time as f64;
            times.1 += path.of(tree.node(at).span);
        }
        for (place, (spent, waited)) in times {
            let passages = &mut self.stays.entry(place).or_default().passages;
            passages.push(Passage {
                begin,
                spent,
                waited,
                latency,
            });
        }
    }

    fn add_shape(&mut self, tree: &Tree<'_>, at: usize) {
        let mut shape = Shape::default();
        for child in below(tree, at) {
            let endpoint = callee(tree, child).unwrap_or_else(|| own(tree.node(child).span));
            // Children come the last to end first.
            shape.last.get_or_insert_with(|| endpoint.clone());
            shape.below.push(endpoint);
        }
        shape.below.sort();
        shape.below.dedup();
        let shapes = self.shapes.entry(own(tree.node(at).span)).or_default();
        if shapes.len() < MOST_SHAPES || shapes.contains_key(&shape) {
            *shapes.entry(shape).or_default() += 1;
        }
    }
}

/// How much of each span is on the critical path.
#[derive(Default)]
struct OnPath(HashMap<SpanId, Nanos>);

impl OnPath {
    fn of(&self, span: &Span) -> f64 {
        self.0.get(&span.id).copied().unwrap_or(0) as f64
    }
}

impl<'a> Sink<'a> for OnPath {
    fn on_path(&mut self, _: &'a Span, _: Nanos, _: Nanos) {}

    fn spend(&mut self, span: &'a Span, _: &'a Name, _: Cause, length: Nanos) {
        *self.0.entry(span.id).or_default() += length;
    }
}

fn own(span: &Span) -> Endpoint {
    Endpoint {
        service: span.service.clone(),
        name: span.name.clone(),
    }
}

fn below(tree: &Tree<'_>, at: usize) -> impl Iterator<Item = usize> {
    tree.children(at).map(|place| tree.child(place))
}

/// Spans of other services below one.
fn foreign<'a>(tree: &Tree<'a>, at: usize) -> impl Iterator<Item = &'a Span> {
    let own = &tree.node(at).span.service;
    below(tree, at)
        .map(|child| tree.node(child).span)
        .filter(move |child| child.service != *own)
}

/// What a span calls, if it is a call: one that says so, or that holds nothing but what
/// happened in another service.
fn callee(tree: &Tree<'_>, at: usize) -> Option<Endpoint> {
    let span = tree.node(at).span;
    match (span.kind, foreign(tree, at).next()) {
        (SpanKind::Server | SpanKind::Work, _) => None,
        (_, Some(callee)) => Some(own(callee)),
        (SpanKind::Client, None) => Some(Endpoint {
            service: span.peer.clone(),
            name: span.name.clone(),
        }),
        (SpanKind::Internal, None) => None,
    }
}

/// Where a span, which may be a call, spent how long, without what is below it.
fn visit(tree: &Tree<'_>, at: usize, callee: Option<Endpoint>) -> (Place, Nanos) {
    let span = tree.node(at).span;
    match callee {
        None => (Place::Within(own(span)), alone(tree, at)),
        Some(callee) => {
            let mut foreign = foreign(tree, at);
            // Lengths alone: the other end may have another clock.
            let time = match (foreign.next(), foreign.next()) {
                (Some(one), None) => span.length().saturating_sub(one.length()),
                _ => alone(tree, at),
            };
            (Place::Between(span.service.clone(), callee), time)
        }
    }
}

/// How long a span lasted while nothing below it did.
fn alone(tree: &Tree<'_>, at: usize) -> Nanos {
    let span = tree.node(at).span;
    let mut covered = 0;
    let mut from = span.end;
    // The last to end first: what is left of each is before all that were seen.
    for child in below(tree, at).map(|child| tree.node(child).span) {
        let end = child.end.min(from);
        let start = child.start.clamp(span.start, span.end);
        if start < end {
            covered += end - start;
            from = start;
        }
    }
    span.length().saturating_sub(covered)
}

fn has_failed_itself(tree: &Tree<'_>, at: usize) -> bool {
    let failed = |span: &Span| span.has_failed() || !span.cause.is_empty();
    failed(tree.node(at).span) && !below(tree, at).any(|child| failed(tree.node(child).span))
}
