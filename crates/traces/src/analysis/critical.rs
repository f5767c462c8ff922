//! The critical path of one request, for people.

use super::cause::Cause;
use super::forest::{Tree, by_trace, traces};
use super::known::Known;
use super::path::{Sink, Unawaited, Walk};
use crate::Nanos;
use crate::SpanId;
use crate::{Name, Span};

/// A span on the critical path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Which.
    pub span: SpanId,
    /// From here on its parent could not go on without it.
    pub from: Nanos,
    /// To here.
    pub to: Nanos,
    /// What no span below it covers, by cause. Those of all segments add up to the root.
    pub own: Vec<(Cause, Nanos)>,
}

#[derive(Default)]
struct Path(Vec<Segment>);

impl<'a> Sink<'a> for Path {
    fn on_path(&mut self, span: &'a Span, from: Nanos, to: Nanos) {
        self.0.push(Segment {
            span: span.id,
            from,
            to,
            own: Vec::new(),
        });
    }

    fn spend(&mut self, _: &'a Span, _: &'a Name, cause: Cause, length: Nanos) {
        if let (1.., Some(segment)) = (length, self.0.last_mut()) {
            segment.own.push((cause, length));
        }
    }
}

/// The critical path of a trace: its root first, then in order of time. Spans of other
/// traces than the first are left out; without a root there is none.
pub fn critical_path(spans: &[Span], known: Option<&Known>) -> Vec<Segment> {
    let unawaited = known.map(Unawaited::of).unwrap_or_default();
    let order = by_trace(spans);
    let mut tree = Tree::default();
    let Some(root) = traces(&order)
        .next()
        .and_then(|trace| tree.build(trace, None))
    else {
        return Vec::new();
    };
    let mut path = Path::default();
    Walk::default().request(&tree, root, &unawaited, &mut path);
    path.0
        .sort_by_key(|one| (one.from, std::cmp::Reverse(one.to)));
    path.0
}
