//! Requests in virtual time are those of the real thing: the same spans, but for times.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;

use crate::running::{Running, graph};
use graph::topology::Topology;
use graph::topology::budget::{Costs, Simulation};
use traces::Span;
use traces::ids::Run;

/// Chances, repeats, branches, attempts and faults; no time-out is near.
const GRAPH: &str = r#"
seed = 11
[defaults]
timeout = "60s"
response = "64B"
[services.root]
entry = true
steps = [
  { cpu = "lognormal 5us p99=20us" },
  { parallel = [
      { call = "price", count = "uniform 0 3" },
      { steps = [{ ops = 100 }, { call = "stock", probability = 0.3, retries = 2, backoff = "100us" }] },
    ] },
  { call = "store", path = "/cold", probability = 0.5 },
]
[services.price]
faults = { delay = { rate = 0.2, by = "200us" } }
steps = [{ call = "store" }, { sleep = "50us" }]
[services.stock]
faults = { error = 0.4, status = 500 }
steps = [{ call = "store", probability = 0.7 }]
[services.store]
steps = [{ cpu = "2us" }]
[services.store.endpoints."/cold"]
steps = [{ cpu = "4us" }]
"#;

const REQUESTS: u64 = 300;

/// What of a span does not depend on time.
type Fact = (u128, u64, u64, String, String, String, String, u16, u8);

fn facts(spans: &[Span]) -> BTreeSet<Fact> {
    let fact = |span: &Span| {
        (
            span.trace.0,
            span.id.0,
            span.parent.0,
            format!("{:?}", span.kind),
            span.service.to_string(),
            span.name.to_string(),
            span.peer.to_string(),
            span.status,
            span.attempt,
        )
    };
    spans.iter().map(fact).collect()
}

fn virtual_spans(topology: &Topology) -> Vec<Span> {
    let costs = Costs::default();
    let mut simulation = Simulation::new(topology, "/", &costs).unwrap();
    let mut spans = Vec::new();
    for number in 0..REQUESTS {
        simulation.request(number, &mut spans).unwrap();
    }
    spans
}

#[test]
fn virtual_requests_have_the_spans_of_real_ones() {
    let topology = graph(GRAPH);
    let expected = facts(&virtual_spans(&topology));
    assert!(expected.len() > 3000, "{}", expected.len());

    let seen = facts(&Running::start(&topology, 1).spans(REQUESTS));
    let missing: Vec<_> = expected.difference(&seen).take(5).collect();
    let more: Vec<_> = seen.difference(&expected).take(5).collect();
    assert!(
        missing.is_empty() && more.is_empty(),
        "missing {missing:#?}\nmore {more:#?}"
    );
}

/// The number of a run is in its trace ids, and nowhere else; and a service that calls another
/// endpoint of its own comes to an end.
#[test]
fn another_run_does_the_same_under_other_ids() {
    const ITSELF: &str = r#"
seed = 5
[services.root]
entry = true
steps = [{ call = "root", path = "/inner", count = "uniform 0 3" }]
[services.root.endpoints."/inner"]
steps = [{ cpu = "lognormal 5us p99=20us" }, { call = "leaf", path = "/", probability = 0.5 }]
[services.leaf]
steps = [{ ops = 100 }]
"#;
    for text in [GRAPH, ITSELF] {
        let topology = graph(text);
        let expected = virtual_spans(&topology);
        let seen = Running::start_as(&topology, 1, Run(7)).spans(REQUESTS);
        let traces =
            |spans: &[Span]| -> BTreeSet<u128> { spans.iter().map(|one| one.trace.0).collect() };
        assert!(traces(&expected).is_disjoint(&traces(&seen)));
        // The lower half is the request's.
        let request = |mut fact: Fact| {
            fact.0 &= u128::from(u64::MAX);
            fact
        };
        let expected: BTreeSet<_> = facts(&expected).into_iter().map(request).collect();
        let seen: BTreeSet<_> = facts(&seen).into_iter().map(request).collect();
        assert!(
            expected == seen,
            "{:#?}",
            expected
                .symmetric_difference(&seen)
                .take(5)
                .collect::<Vec<_>>()
        );
    }
}
