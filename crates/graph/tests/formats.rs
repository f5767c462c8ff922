//! The spans of a real run say the same in every format, and so do those of other systems,
//! which name callees by addresses and tell nothing of what goes on inside.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use crate::running::{Running, graph};
use graph::analysis::Question;
use graph::topology::Topology;
use traces::SpanId;
use traces::analysis::Cause;
use traces::{Epoch, Origin, Span, SpanKind, jaeger, otlp, read, zipkin};

const GRAPH: &str = r#"
seed = 3
[defaults]
timeout = "60s"
[services.root]
entry = true
steps = [
  { cpu = "50us" },
  { parallel = [ { call = "price" }, { call = "stock", retries = 2 } ] },
]
[services.price]
steps = [{ sleep = "200us" }, { call = "store" }]
[services.stock]
faults = { error = 0.3 }
steps = [{ call = "store" }]
[services.store]
steps = [{ lock = "row", cpu = "20us" }]
"#;

type Writer = fn(&[Span], &Origin) -> Vec<u8>;

const FORMATS: [(&str, Writer); 4] = [
    ("OTLP in protobuf", otlp::write_protobuf),
    ("OTLP in JSON", otlp::write_json),
    ("Zipkin", zipkin::write),
    ("Jaeger", jaeger::write),
];

/// A machine that began in 2023: spans count from its beginning, files from 1970.
fn origin() -> Origin {
    Origin {
        epoch: Epoch::ahead(1_700_000_000_000_000_000),
        ..Origin::unix()
    }
}

fn sorted(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| (span.trace, span.id));
    spans
}

fn run() -> (Arc<Topology>, Vec<Span>) {
    let topology = graph(GRAPH);
    let spans = Running::start(&topology, 1).spans(200);
    (topology, sorted(spans))
}

#[test]
fn a_run_is_the_same_in_every_format() {
    let (topology, spans) = run();
    let said = Question::of(&topology).analyse(&spans).to_string();
    assert!(!said.contains("100 % of their time"), "{said}");
    for (format, write) in FORMATS {
        let again = sorted(read(&write(&spans, &origin()), &origin()).unwrap());
        assert_eq!(again, spans, "{format}");
        let again = Question::of(&topology).analyse(&again).to_string();
        assert_eq!(again, said, "{format}");
    }
}

/// The spans as another system would have them: callees are addresses, one in ten servers
/// left nothing, and what goes on inside has a name and no more.
fn foreign(spans: &[Span]) -> Vec<Span> {
    let kept = spans.iter().filter(|span| {
        let lost =
            span.kind == SpanKind::Server && &*span.service == "store" && span.parent.0 % 10 == 0;
        !lost
    });
    let addressed = kept.map(|span| Span {
        kind: match span.kind {
            SpanKind::Work => SpanKind::Internal,
            kind => kind,
        },
        attempt: 0,
        peer: match &*span.peer {
            "price" => "10.0.0.1".into(),
            "stock" => "10.0.0.2".into(),
            "store" => "10.0.0.3".into(),
            _ => "".into(),
        },
        ..span.clone()
    });
    addressed.collect()
}

/// As that system would write them: nothing of ours, and callees under the name that
/// OpenTelemetry has for addresses.
fn without_ours(format: &str, written: Vec<u8>) -> Vec<u8> {
    fn strip(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Array(all) => {
                let ours = |one: &serde_json::Value| {
                    let key = one.get("key").and_then(serde_json::Value::as_str);
                    key.is_some_and(|key| key.starts_with("headroom."))
                };
                all.retain(|one| !ours(one));
                all.iter_mut().for_each(strip);
            }
            serde_json::Value::Object(fields) => {
                fields.retain(|key, _| !key.starts_with("headroom."));
                if let Some(key) = fields.get_mut("key").filter(|key| *key == "peer.service") {
                    *key = "server.address".into();
                }
                if let Some(mut other) = fields.remove("remoteEndpoint") {
                    other["ipv4"] = other["serviceName"].take();
                    fields.insert("remoteEndpoint".to_owned(), other);
                }
                fields.values_mut().for_each(strip);
            }
            _ => {}
        }
    }
    if format == "OTLP in protobuf" {
        return written;
    }
    let mut json = serde_json::from_slice(&written).unwrap();
    strip(&mut json);
    serde_json::to_vec(&json).unwrap()
}

#[test]
fn spans_of_others_are_the_same_graph_in_every_format() {
    let (_, spans) = run();
    // Microseconds are all that others keep.
    let micros = |time: u64| time / 1000 * 1000;
    let spans: Vec<Span> = foreign(&spans)
        .into_iter()
        .map(|span| Span {
            start: micros(span.start),
            end: micros(span.end).max(micros(span.start) + 1000),
            cpu: 0,
            queue: 0,
            revision: 0,
            ..span
        })
        .collect();
    let mut said = Vec::new();
    for (format, write) in FORMATS {
        let written = without_ours(format, write(&spans, &origin()));
        let again = read(&written, &origin()).unwrap();
        let analysis = traces::analysis::analyse(&again);
        let edges: Vec<_> = analysis
            .edges
            .iter()
            .map(|edge| format!("{}>{}", edge.from, edge.to))
            .collect();
        assert_eq!(
            edges,
            ["price>store", "root>price", "root>stock", "stock>store"],
            "{format}"
        );
        // Nobody knows what went on inside.
        let worked = |cause| analysis.causes.iter().any(|one| one.cause == cause);
        assert!(!worked(Cause::Cpu) && !worked(Cause::Stolen), "{format}");
        assert!(worked(Cause::Own), "{format}");
        assert!(again.iter().all(|span| span.id != SpanId(0)));
        said.push(analysis.to_string());
    }
    said.dedup();
    assert_eq!(said.len(), 1, "{said:#?}");
}
