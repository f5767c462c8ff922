//! Spans for the tests of this crate and of `graph`.

use traces::{Span, SpanId, SpanKind, TraceId};

/// A server span of the service `a` from `start` to `end`.
pub(crate) fn server(trace: u128, id: u64, start: u64, end: u64) -> Span {
    Span {
        trace: TraceId(trace),
        id: SpanId(id),
        parent: SpanId(0),
        kind: SpanKind::Server,
        service: "a".into(),
        name: "/".into(),
        peer: "".into(),
        start,
        end,
        cpu: 0,
        queue: 0,
        status: 200,
        attempt: 0,
        revision: 0,
        cause: "",
    }
}
