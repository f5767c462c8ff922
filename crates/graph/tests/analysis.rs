//! The analysis of requests that were really made.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::running::{Running, graph};
use graph::analysis::Question;
use graph::topology::Topology;
use traces::analysis::{Analysis, Cause, SuspectKind, critical_path};
use traces::{Span, SpanKind};

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
    let analysis = Question::of(&topology).analyse(&spans);
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
        let path = critical_path(&trace, Some(&graph::analysis::known(&topology)));
        let own = path.iter().flat_map(|one| &one.own);
        let sum: u64 = own.map(|(_, length)| length).sum();
        assert_eq!(sum, root.end - root.start);
    }
}

const CHAIN: &str = r#"
[defaults]
timeout = "60s"
response = "64B"
[services.root]
entry = true
steps = [{ cpu = "200us" }, { call = "mid" }]
[services.mid]
steps = [{ cpu = "500us" }, { call = "leaf" }]
[services.leaf]
steps = [{ cpu = "500us" }]
"#;

/// What is said of a graph that runs with one profile and is held to another.
fn held(runs: &str, asked: &str, requests: u64) -> Analysis {
    let spans = Running::start(&graph(runs), 2).spans(requests);
    Question::of(&graph(asked)).analyse(&spans)
}

/// Those that are accused; the machine is nobody, and may be busy.
fn accused(analysis: &Analysis) -> Vec<(SuspectKind, &str)> {
    let suspects = analysis.suspects.iter();
    let suspects = suspects.filter(|one| one.kind != SuspectKind::Machine);
    suspects.map(|one| (one.kind, one.place.as_str())).collect()
}

#[test]
fn nobody_is_accused_in_real_runs_without_a_fault() {
    let runs: Vec<Analysis> = (0..5).map(|_| held(CHAIN, CHAIN, 200)).collect();
    let accused: Vec<_> = runs.iter().flat_map(accused).collect();
    assert!(accused.len() <= 1, "{accused:?}");
}

#[test]
fn work_that_takes_longer_than_asked_is_named() {
    let slower = CHAIN.replace(
        "[services.mid]\nsteps = [{ cpu = \"500us\" }",
        "[services.mid]\nsteps = [{ cpu = \"3ms\" }",
    );
    let analysis = held(&slower, CHAIN, 200);
    let named = accused(&analysis);
    assert!(
        named.contains(&(SuspectKind::Work, "mid cpu")),
        "{analysis}"
    );
}

#[test]
fn attempts_that_failed_are_named_with_how_they_failed() {
    for (leaf, call, kind) in [
        (
            "faults = { error = \"20%\" }",
            "retries = 3, backoff = \"10ms\"",
            SuspectKind::Retries,
        ),
        (
            "faults = { drop = \"5%\" }",
            "retries = 3",
            SuspectKind::Drops,
        ),
        (
            "faults = { delay = { rate = \"5%\", by = \"30s\" } }",
            "retries = 3, timeout = \"300ms\"",
            SuspectKind::Timeouts,
        ),
    ] {
        let text = format!(
            "[services.root]\nentry = true\nsteps = [{{ parallel = [{{ call = \"leaf\", {call} }}, {{ call = \"other\" }}] }}]\n\
             [services.leaf]\n{leaf}\nsteps = [{{ cpu = \"100us\" }}]\n\
             [services.other]\nsteps = [{{ sleep = \"2ms\" }}]\n"
        );
        let analysis = held(&text, &text, 200);
        let named = accused(&analysis);
        assert!(named.contains(&(kind, "root>leaf")), "{kind:?}: {analysis}");
        assert_eq!(analysis.conservation.worst_ns, 0);
        // Without the fault nothing is said of it.
        let well = text.replace(leaf, "");
        let analysis = held(&well, &well, 100);
        assert!(
            !accused(&analysis).iter().any(|one| one.0 == kind),
            "{analysis}"
        );
    }
}

#[test]
fn a_profile_that_is_swapped_is_told_with_before_and_after() {
    let slower = CHAIN.replace(
        "[services.mid]\nsteps = [{ cpu = \"500us\" }",
        "[services.mid]\nsteps = [{ cpu = \"8ms\" }",
    );
    let slower: std::sync::Arc<Topology> = graph(&slower);
    let spans = Running::start(&graph(CHAIN), 2).spans_with_changes(&[&slower], 100);
    let analysis = Question::of(&slower).analyse(&spans);
    assert_eq!(analysis.revisions.len(), 2);
    assert_eq!(analysis.latency.count, 100);
    let named = accused(&analysis);
    assert!(
        named.contains(&(SuspectKind::Profile, "mid cpu")),
        "{analysis}"
    );
    assert!(
        analysis.sentences[0]
            .contains("The profile changed while requests came: 100 under revision 1"),
        "{analysis}"
    );
}

/// What changed last is told against what ran just before it, not against an older profile.
#[test]
fn of_two_swaps_the_second_is_held_against_the_first() {
    let mid = CHAIN.replace(
        "[services.mid]\nsteps = [{ cpu = \"500us\" }",
        "[services.mid]\nsteps = [{ cpu = \"8ms\" }",
    );
    let leaf = CHAIN.replace(
        "[services.leaf]\nsteps = [{ cpu = \"500us\" }",
        "[services.leaf]\nsteps = [{ cpu = \"8ms\" }",
    );
    assert!(mid != CHAIN && leaf != CHAIN);
    let (first, last) = (graph(CHAIN), graph(&leaf));
    let spans = Running::start(&graph(&mid), 2).spans_with_changes(&[&first, &last], 100);
    let analysis = Question::of(&last).analyse(&spans);
    let revisions = analysis.revisions.iter();
    let revisions: Vec<_> = revisions
        .map(|one| (one.revision, one.requests, one.chosen))
        .collect();
    assert_eq!(
        revisions,
        [(1, 100, false), (2, 100, false), (3, 100, true)]
    );
    let profiles: Vec<_> = accused(&analysis)
        .into_iter()
        .filter(|one| one.0 == SuspectKind::Profile)
        .collect();
    assert_eq!(profiles, [(SuspectKind::Profile, "leaf cpu")], "{analysis}");
    assert!(
        analysis.sentences[0].contains("Since revision 2 a request takes"),
        "{analysis}"
    );
}
