//! Spans for property tests.

use proptest::prelude::*;

use crate::{Span, SpanId, SpanKind, TraceId};

/// Any span that a service could record.
pub(crate) fn any_span() -> impl Strategy<Value = Span> {
    let ids = (1_u128.., 1_u64.., any::<u64>());
    let kind = prop_oneof![
        Just(SpanKind::Server),
        Just(SpanKind::Client),
        Just(SpanKind::Work),
        Just(SpanKind::Internal),
    ];
    let names = ("[a-z-]{1,9}", "\\PC{1,20}", "[a-z]{0,5}");
    let times = (
        0_u64..1 << 60,
        0_u64..1 << 40,
        0_u64..1 << 40,
        0_u64..1 << 40,
    );
    let rest = (any::<u16>(), any::<u8>(), any::<u32>());
    let cause = proptest::sample::select(&["", "timeout", "reset", "error"][..]);
    (ids, kind, names, times, rest, cause).prop_map(
        |(ids, kind, names, times, (status, attempt, revision), cause)| {
            // Of what others do inside there are no such figures.
            let ours = u8::from(kind != SpanKind::Internal);
            Span {
                trace: TraceId(ids.0),
                id: SpanId(ids.1),
                parent: SpanId(ids.2),
                kind,
                service: names.0.into(),
                name: names.1.into(),
                peer: match kind {
                    SpanKind::Client => names.2.into(),
                    _ => "".into(),
                },
                start: times.0,
                end: times.0 + times.1,
                cpu: times.2 * u64::from(ours),
                queue: times.3 * u64::from(ours),
                status,
                attempt,
                revision: revision * u32::from(ours),
                cause,
            }
        },
    )
}
