//! Spans put together: one request at a time, as a tree.

use std::cmp::Reverse;
use std::ops::Range;

use crate::Nanos;
use crate::SpanId;
use crate::{Span, SpanKind};

/// Spans by trace, and by id within each: of spans that came twice, both are there, as
/// neighbours.
pub(super) fn by_trace(spans: &[Span]) -> Vec<&Span> {
    let mut order: Vec<&Span> = spans.iter().collect();
    order.sort_unstable_by_key(|span| (span.trace, span.id));
    order
}

/// The spans of each trace, of those that [`by_trace`] gives.
pub(super) fn traces<'o, 'a>(order: &'o [&'a Span]) -> impl Iterator<Item = &'o [&'a Span]> {
    order.chunk_by(|one, next| one.trace == next.trace)
}

/// A span in its tree. Times of clipped spans are those of the span; who walks clips.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node<'a> {
    pub(super) span: &'a Span,
    /// Its own place is the root's.
    pub(super) parent: usize,
    /// Places in [`Tree::children`].
    first_child: usize,
    last_child: usize,
}

/// One request. Memory is used again for the next.
#[derive(Default)]
pub(super) struct Tree<'a> {
    nodes: Vec<Node<'a>>,
    children: Vec<usize>,
    order: Vec<(usize, Reverse<Nanos>, Nanos, SpanId, usize)>,
    /// Spans that stand below one that is missing, other than the root.
    pub(super) orphans: usize,
    /// Spans that came twice.
    pub(super) twice: usize,
}

impl<'a> Tree<'a> {
    /// Builds the tree of one trace, whose root is at the service `entry`, if that is known.
    /// `None`: its root is missing.
    pub(super) fn build(&mut self, spans: &[&'a Span], entry: Option<&str>) -> Option<usize> {
        self.nodes.clear();
        self.children.clear();
        self.order.clear();
        (self.orphans, self.twice) = (0, 0);
        for span in spans {
            let last = self.nodes.last().map(|node| node.span.id);
            match last == Some(span.id) {
                true => self.twice += 1,
                false => self.nodes.push(Node {
                    span,
                    parent: usize::MAX,
                    first_child: 0,
                    last_child: 0,
                }),
            }
        }
        let mut parentless = Vec::new();
        for at in 0..self.nodes.len() {
            let span = self.nodes[at].span;
            let found = self
                .nodes
                .binary_search_by_key(&span.parent, |node| node.span.id);
            match found {
                Ok(parent) if parent != at => {
                    self.nodes[at].parent = parent;
                    let rank = (parent, Reverse(span.end), span.start, span.id, at);
                    self.order.push(rank);
                }
                _ => parentless.push(at),
            }
        }
        self.order.sort_unstable();
        self.children.extend(self.order.iter().map(|rank| rank.4));
        let mut from = 0;
        while let Some((parent, ..)) = self.order.get(from) {
            let same = self.order[from..].iter();
            let to = from + same.take_while(|rank| rank.0 == *parent).count();
            let node = &mut self.nodes[*parent];
            (node.first_child, node.last_child) = (from, to);
            from = to;
        }
        let root = self.root(&parentless, entry)?;
        self.orphans = parentless.len() - 1;
        self.nodes[root].parent = root;
        Some(root)
    }

    /// One that names no parent, before one whose parent is missing (the client's own span);
    /// of several, the earliest.
    fn root(&self, parentless: &[usize], entry: Option<&str>) -> Option<usize> {
        let rank = |at: &usize| {
            let span = self.nodes[*at].span;
            (span.parent != SpanId(0), span.start, span.id)
        };
        let may = |at: &&usize| {
            let span = self.nodes[**at].span;
            let enters = match span.kind {
                SpanKind::Work | SpanKind::Internal => return false,
                SpanKind::Client => &span.peer,
                SpanKind::Server => &span.service,
            };
            entry.is_none_or(|entry| *entry == **enters)
        };
        parentless
            .iter()
            .filter(may)
            .min_by_key(|at| rank(at))
            .copied()
    }

    pub(super) fn node(&self, at: usize) -> Node<'a> {
        self.nodes[at]
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether no span of the trace is its parent.
    pub(super) fn is_parentless(&self, at: usize) -> bool {
        let parent = self.nodes[at].parent;
        parent == usize::MAX || parent == at
    }

    pub(super) fn spans(&self) -> impl Iterator<Item = &'a Span> {
        self.nodes.iter().map(|node| node.span)
    }

    /// Places of those below a span: the last to end first, and of those that end together
    /// the first to start.
    pub(super) fn children(&self, at: usize) -> Range<usize> {
        let node = self.nodes[at];
        node.first_child..node.last_child
    }

    /// The span at a place of [`Self::children`].
    pub(super) fn child(&self, place: usize) -> usize {
        self.children[place]
    }
}
