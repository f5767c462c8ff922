//! Short ways to write spans down, for the tests of this crate and of `graph`.

use traces::{Span, SpanId, SpanKind, TraceId};

/// A span of the trace 1. Ids are small numbers; parent 0 is none.
pub(crate) fn span(
    kind: SpanKind,
    (id, parent): (u64, u64),
    who: &str,
    (start, end): (u64, u64),
) -> Span {
    let (service, peer) = who.split_once('>').unwrap_or((who, ""));
    let (service, name) = service.split_once(' ').unwrap_or((service, "/"));
    Span {
        trace: TraceId(1),
        id: SpanId(id),
        parent: SpanId(parent),
        kind,
        service: service.into(),
        name: name.into(),
        peer: peer.into(),
        start,
        end,
        cpu: 0,
        queue: 0,
        status: if kind == SpanKind::Work { 0 } else { 200 },
        attempt: 0,
        revision: 0,
        cause: "",
    }
}

pub(crate) fn server(ids: (u64, u64), who: &str, times: (u64, u64)) -> Span {
    span(SpanKind::Server, ids, who, times)
}

pub(crate) fn client(ids: (u64, u64), who: &str, times: (u64, u64)) -> Span {
    span(SpanKind::Client, ids, who, times)
}

pub(crate) fn work(ids: (u64, u64), who: &str, times: (u64, u64), cpu: u64) -> Span {
    Span {
        cpu,
        ..span(SpanKind::Work, ids, who, times)
    }
}
