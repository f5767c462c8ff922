//! Trace ids of which some services know the lower 64 bits alone: those that speak B3 among others
//! that speak W3C's contexts.

use std::collections::{HashMap, HashSet};

use crate::{Span, TraceId};

/// Gives spans whose trace id has 64 bits the one of 128 bits that ends with it, as Zipkin does. If
/// several do, nobody knows whose they are, and they stay apart.
pub(super) fn widen(spans: &mut [&mut Span]) {
    let all = spans.iter().map(|span| span.trace);
    let short: HashSet<TraceId> = all.filter(|trace| lower(*trace) == *trace).collect();
    if short.is_empty() {
        return;
    }
    // The least and the greatest that end with each.
    let mut wide: HashMap<TraceId, (TraceId, TraceId)> = HashMap::new();
    for trace in spans.iter().map(|span| span.trace) {
        let end = lower(trace);
        if end != trace && short.contains(&end) {
            let known = wide.entry(end).or_insert((trace, trace));
            *known = (known.0.min(trace), known.1.max(trace));
        }
    }
    for span in spans {
        if let Some((least, greatest)) = wide.get(&span.trace)
            && least == greatest
        {
            span.trace = *least;
        }
    }
}

fn lower(trace: TraceId) -> TraceId {
    TraceId(trace.0 & u128::from(u64::MAX))
}

#[cfg(test)]
mod tests {
    use crate::samples::server;
    use crate::{Span, SpanId, SpanKind, TraceId, normalise, part_requests};

    const WIDE: u128 = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736;
    const SHORT: u128 = 0xa3ce_929d_0e0e_4736;

    fn traces(spans: &[Span]) -> Vec<u128> {
        spans.iter().map(|span| span.trace.0).collect()
    }

    #[test]
    fn a_trace_of_which_a_service_knows_half_of_the_id_is_one() {
        let below = Span {
            parent: SpanId(1),
            service: "store".into(),
            ..server(SHORT, 2, 10, 20)
        };
        let mut spans = vec![server(WIDE, 1, 0, 100), below, server(7, 1, 0, 100)];
        let before = spans.clone();
        normalise(&mut spans);
        assert_eq!(traces(&spans), [WIDE, WIDE, 7]);
        // A root of its own is still a request of its own.
        spans = before;
        spans[1].parent = SpanId(0);
        assert_eq!(part_requests(&mut spans), 1);
        assert_ne!(spans[1].trace, TraceId(SHORT));
        assert_ne!(spans[0].trace, spans[1].trace);
    }

    #[test]
    fn half_an_id_with_which_several_end_is_nobodys() {
        let other = 1 << 127 | SHORT;
        let mut spans = vec![server(WIDE, 1, 0, 9), server(other, 1, 0, 9)];
        spans.push(server(SHORT, 2, 0, 9));
        normalise(&mut spans);
        assert_eq!(traces(&spans), [WIDE, other, SHORT]);
    }

    #[test]
    fn what_a_reader_parted_from_its_client_is_still_found() {
        let text = format!(
            r#"[{{"traceId":"{WIDE:032x}","id":"2","kind":"CLIENT","timestamp":10,"duration":90,"localEndpoint":{{"serviceName":"root"}}}},
            {{"traceId":"{SHORT:016x}","id":"2","kind":"SERVER","shared":true,"timestamp":20,"duration":70,"localEndpoint":{{"serviceName":"leaf"}}}},
            {{"traceId":"{SHORT:016x}","id":"3","parentId":"2","timestamp":30,"duration":10,"localEndpoint":{{"serviceName":"leaf"}}}}]"#
        );
        let spans = crate::read(text.as_bytes(), &crate::Origin::unix()).unwrap();
        let [client, leaf, inner] = &spans[..] else {
            panic!("{spans:?}");
        };
        assert_eq!(traces(&spans), [WIDE; 3]);
        assert_eq!(
            (client.kind, leaf.kind),
            (SpanKind::Client, SpanKind::Server)
        );
        assert_eq!((leaf.parent, inner.parent), (client.id, leaf.id));
    }
}
