//! The analysis of requests that were really made.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::running::{Running, graph};
use graph::analysis::{Analysis, Cause, analyse, critical_path};
use graph::trace::{Span, SpanKind};

/// Branches, work in the loop and on workers, a call without `wait`, failures.
const GRAPH: &str = r#"
seed = 5
[defaults]
timeout = "60s"
response = "64B"
[services.root]
entry = true
steps = [
  { cpu = "300us" },
  { parallel = [
      { call = "price" },
      { steps = [{ cpu = "20us" }, { call = "stock" }] },
    ] },
  { call = "audit", wait = false },
]
[services.price]
steps = [{ sleep = "1ms" }, { call = "store" }]
[services.stock]
steps = [{ sleep = "3ms" }, { call = "store" }]
[services.store]
faults = { error = "2%", status = 503 }
steps = [{ cpu = "200us" }]
[services.audit]
steps = [{ sleep = "2ms" }]
"#;

const REQUESTS: u64 = 300;

fn typical(analysis: &Analysis, cause: Cause) -> f64 {
    let found = analysis.causes.iter().find(|one| one.cause == cause);
    found.map_or(0.0, |one| one.figures.typical_ns)
}

#[test]
fn real_requests_are_taken_apart_to_the_nanosecond() {
    let topology = graph(GRAPH);
    let spans = Running::start(&topology, 2).spans(REQUESTS);
    let analysis = analyse(&spans, Some(&topology), None);
    println!("{analysis}");
    let counts = &analysis.counts;
    assert_eq!((counts.traces, counts.without_root), (REQUESTS, 0));
    assert_eq!(counts.analysed + counts.failed, REQUESTS);
    assert_eq!(
        (counts.incomplete, counts.moved_spans),
        (0, 0),
        "{counts:?}"
    );
    assert_eq!(analysis.conservation.worst_ns, 0);
    assert_eq!(analysis.failures.len(), 1);
    assert_eq!(analysis.failures[0].place, "store");

    // What was asked for was done, and is seen as what it is.
    assert!(typical(&analysis, Cause::Cpu) >= 500_000.0 * 0.98);
    assert!(typical(&analysis, Cause::Sleep) >= 1_000_000.0);
    assert_eq!(typical(&analysis, Cause::Unseen), 0.0);
    let edge = |id: &str| analysis.edges.iter().find(|one| one.id == id).unwrap();
    assert_eq!(edge("root>audit").on_path, 0.0);
    assert!(edge("root>price").on_path + edge("root>stock").on_path >= 1.0);
    let expected = analysis.expected.as_ref().unwrap();
    assert!(expected.min_ns >= 3_000_000, "{expected:?}");

    // The path of each request covers it and nothing else.
    let roots = spans
        .iter()
        .filter(|span| &*span.service == "root" && span.kind == SpanKind::Server);
    for root in roots {
        let trace = spans.iter().filter(|span| span.trace == root.trace);
        let trace: Vec<Span> = trace.cloned().collect();
        let path = critical_path(&trace, Some(&topology));
        let own = path.iter().flat_map(|one| &one.own);
        let sum: u64 = own.map(|(_, length)| length).sum();
        assert_eq!(sum, root.end - root.start);
    }
}
