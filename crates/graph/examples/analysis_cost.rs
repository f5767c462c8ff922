//! What analysing the spans of many requests costs: three services in a row, seven spans
//! each.
//!
//! `cargo run --release -p graph --example analysis_cost [REQUESTS]` (default 100,000).
#![allow(clippy::unwrap_used, reason = "an example may panic")]

use std::sync::Arc;
use std::time::Instant;

use stats::SplitMix;
use traces::analysis::analyse;
use traces::ids::Run;
use traces::{Name, Span, SpanKind};
use traces::{SpanId, TraceId};

fn main() {
    let requests = std::env::args()
        .nth(1)
        .map_or(100_000, |text| text.parse().unwrap());
    let spans = chain(requests);
    let begun = Instant::now();
    let analysis = analyse(&spans);
    let took = begun.elapsed();
    println!("{analysis}");
    println!(
        "{} spans of {requests} requests in {took:.2?}: {:.0} ns a span",
        spans.len(),
        took.as_nanos() as f64 / spans.len() as f64
    );
}

/// Requests whose leaf loses its processor to others now and then.
fn chain(requests: u64) -> Vec<Span> {
    let mut random = SplitMix::new(1);
    let names: Vec<Name> = ["", "root", "branch", "leaf", "/busywork", "cpu"]
        .map(Name::from)
        .to_vec();
    let name = |at: usize| Arc::clone(&names[at]);
    let mut spans = Vec::new();
    for number in 0..requests {
        let trace = TraceId::of_request(1, Run(0), number);
        let start = number * 40_000_000;
        let mut now = start;
        let mut after = |length: u64| {
            now += length + random.below(20_000) as u64;
            now
        };
        let worked = [after(10_000_000), after(10_100_000), after(10_100_000)];
        let hit = random.below(15) == 0;
        let late = if hit { random.below(9_000_000) } else { 0 };
        let leaf = worked[2] + late as u64;
        let span = |id: u64, parent: u64, kind, service, (start, end)| Span {
            trace,
            id: SpanId(id.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            parent: SpanId(parent.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            kind,
            service: name(service),
            name: name(if kind == SpanKind::Work { 5 } else { 4 }),
            peer: name(if kind == SpanKind::Client {
                service + 1
            } else {
                0
            }),
            start,
            end,
            cpu: if kind == SpanKind::Work {
                10_000_000
            } else {
                0
            },
            queue: 0,
            status: if kind == SpanKind::Work { 0 } else { 200 },
            attempt: 0,
            revision: 1,
            cause: "",
        };
        let called = worked[0];
        spans.extend([
            span(1, 0, SpanKind::Server, 1, (start, leaf + 300_000)),
            span(2, 1, SpanKind::Work, 1, (start, worked[0])),
            span(3, 1, SpanKind::Client, 1, (called, leaf + 290_000)),
            span(4, 3, SpanKind::Server, 2, (called + 80_000, leaf + 150_000)),
            span(5, 4, SpanKind::Client, 2, (worked[1], leaf + 140_000)),
            span(6, 5, SpanKind::Server, 3, (worked[1] + 80_000, leaf)),
            span(7, 6, SpanKind::Work, 3, (worked[1] + 90_000, leaf)),
        ]);
    }
    spans
}
