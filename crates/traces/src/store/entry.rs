//! One trace in a store.

use super::Summary;
use crate::Nanos;
use crate::{Span, SpanKind};
use crate::{SpanId, TraceId};

/// What a trace takes in the store's maps, about: they keep room for as much again as they
/// hold, and two of them order the traces.
const IN_MAPS: usize = 2 * (size_of::<(TraceId, Entry)>() + 2 * size_of::<(Nanos, TraceId)>());

/// Spans of one trace, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Entry {
    pub(super) spans: Vec<Span>,
    /// The place of the server span that began first.
    root: Option<usize>,
    /// Place in the order of change; 0: none yet.
    pub(super) changed: u64,
}

impl Entry {
    pub(super) fn add(&mut self, span: Span) {
        let earlier = self.root().is_none_or(|root| {
            // Of two that began together the longer one holds the other.
            (span.start, std::cmp::Reverse(span.end)) < (root.start, std::cmp::Reverse(root.end))
        });
        // What says no kind may be where the request entered.
        let enters = match span.kind {
            SpanKind::Server => true,
            SpanKind::Internal => span.parent == SpanId::default(),
            SpanKind::Client | SpanKind::Work => false,
        };
        if enters && earlier {
            self.root = Some(self.spans.len());
        }
        self.spans.push(span);
    }

    /// Memory that it takes, in bytes; none before its first span.
    pub(super) fn bytes(&self) -> usize {
        match self.spans.capacity() {
            0 => 0,
            room => IN_MAPS + room * size_of::<Span>(),
        }
    }

    pub(super) fn root(&self) -> Option<&Span> {
        self.spans.get(self.root?)
    }

    /// How long the root took.
    pub(super) fn length(&self) -> Option<Nanos> {
        self.root().map(|root| root.end.saturating_sub(root.start))
    }

    /// `None`: no server span is known.
    pub(super) fn summary(&self) -> Option<Summary> {
        let root = self.root()?.clone();
        Some(Summary {
            trace: root.trace,
            spans: self.spans.len(),
            changed: self.changed,
            root,
        })
    }
}
