//! Critical paths that were computed by hand.

use super::*;
use crate::analysis::{Cause, Known, KnownCall, critical_path};

use Cause::{Backoff, Cpu, Own, Queue, Retry, Sibling, Stolen, Unseen, WireBack, WireOut};

type Expected<'a> = &'a [(u64, u64, u64, &'a [(Cause, u64)])];

/// Spans on the path in order of time: id, from, to, and what is its own.
fn assert_path(spans: &[Span], expected: Expected<'_>) {
    let path = critical_path(spans, None);
    let seen: Vec<_> = path
        .iter()
        .map(|one| (one.span.0, one.from, one.to, one.own.as_slice()))
        .collect();
    assert_eq!(seen, expected);
    let sum: u64 = path.iter().flat_map(|one| &one.own).map(|own| own.1).sum();
    assert_eq!(sum, path[0].to - path[0].from);
}

#[test]
fn a_chain_is_its_own_critical_path() {
    // The seed's busy chain, as its own trace has it, in microseconds scaled to nanoseconds.
    let queued = Span {
        queue: 1_000,
        ..client((3, 1), "root>leaf", (12_000, 40_000))
    };
    assert_path(
        &[
            server((1, 0), "root", (0, 43_000)),
            work((2, 1), "root cpu", (2_000, 12_000), 9_000),
            queued,
            server((4, 3), "leaf", (16_000, 35_000)),
            work((5, 4), "leaf cpu", (17_000, 30_000), 10_000),
        ],
        &[
            (1, 0, 43_000, &[(Own, 5_000)]),
            (2, 2_000, 12_000, &[(Cpu, 9_000), (Stolen, 1_000)]),
            (
                3,
                12_000,
                40_000,
                &[(Queue, 1_000), (WireOut, 3_000), (WireBack, 5_000)],
            ),
            (4, 16_000, 35_000, &[(Own, 6_000)]),
            (5, 17_000, 30_000, &[(Cpu, 10_000), (Stolen, 3_000)]),
        ],
    );
}

#[test]
fn of_branches_at_once_the_last_to_end_counts_and_before_it_what_ended_before_it_began() {
    assert_path(
        &[
            server((1, 0), "root", (0, 100_000)),
            client((2, 1), "root>a", (10_000, 40_000)),
            client((3, 1), "root>b", (10_000, 60_000)),
            server((4, 3), "b", (15_000, 55_000)),
            client((5, 1), "root>c", (60_000, 90_000)),
        ],
        &[
            (1, 0, 100_000, &[(Own, 20_000)]),
            (3, 10_000, 60_000, &[(WireOut, 5_000), (WireBack, 5_000)]),
            (4, 15_000, 55_000, &[(Own, 40_000)]),
            (5, 60_000, 90_000, &[(Unseen, 30_000)]),
        ],
    );
}

#[test]
fn a_child_that_outlasts_its_parent_was_not_waited_for() {
    let spans = [
        server((1, 0), "root", (0, 50_000)),
        work((2, 1), "root cpu", (0, 30_000), 30_000),
        // A call without `wait`, and one that a quorum left behind.
        client((3, 1), "root>audit", (5_000, 90_000)),
        client((4, 1), "root>slow", (30_000, 60_000)),
        client((5, 1), "root>fast", (30_000, 45_000)),
    ];
    assert_path(
        &spans,
        &[
            (1, 0, 50_000, &[(Own, 5_000)]),
            (2, 0, 30_000, &[(Cpu, 30_000)]),
            (5, 30_000, 45_000, &[(Unseen, 15_000)]),
        ],
    );
    // An answer that the callee believes to have sent after it was read is cut off.
    assert_path(
        &[
            server((1, 0), "root", (0, 50_000)),
            client((2, 1), "root>leaf", (10_000, 40_000)),
            server((3, 2), "leaf", (15_000, 47_000)),
        ],
        &[
            (1, 0, 50_000, &[(Own, 20_000)]),
            (2, 10_000, 40_000, &[(WireOut, 5_000)]),
            (3, 15_000, 40_000, &[(Own, 25_000)]),
        ],
    );
}

#[test]
fn what_a_caller_gave_up_ends_with_it_all_the_way_down() {
    let given_up = |one| Span {
        status: 0,
        cause: "timeout",
        ..one
    };
    assert_path(
        &[
            server((1, 0), "root", (0, 30_000)),
            given_up(client((2, 1), "root>a", (0, 20_000))),
            server((3, 2), "a", (5_000, 80_000)),
            work((4, 3), "a cpu", (5_000, 45_000), 20_000),
            client((5, 3), "a>b", (45_000, 75_000)),
            client((6, 1), "root>a", (20_000, 30_000)),
        ],
        &[
            (1, 0, 30_000, &[]),
            (2, 0, 20_000, &[(WireOut, 5_000)]),
            (3, 5_000, 20_000, &[]),
            // Half of its time was processor time, and 15 of its 40 count.
            (4, 5_000, 20_000, &[(Cpu, 7_500), (Stolen, 7_500)]),
            (6, 20_000, 30_000, &[(Unseen, 10_000)]),
        ],
    );
}

#[test]
fn a_small_overlap_is_none_and_a_larger_one_is_parallel() {
    let spans = |second| {
        [
            server((1, 0), "root", (0, 50_000)),
            client((2, 1), "root>a", (0, 20_000)),
            client((3, 1), "root>b", (second, 50_000)),
        ]
    };
    assert_path(
        &spans(18_500),
        &[
            (1, 0, 50_000, &[]),
            (2, 0, 18_500, &[(Unseen, 18_500)]),
            (3, 18_500, 50_000, &[(Unseen, 31_500)]),
        ],
    );
    assert_path(
        &spans(17_000),
        &[
            (1, 0, 50_000, &[(Own, 17_000)]),
            (3, 17_000, 50_000, &[(Unseen, 33_000)]),
        ],
    );
}

#[test]
fn of_children_that_end_together_the_first_to_start_counts() {
    assert_path(
        &[
            server((1, 0), "root", (0, 50_000)),
            client((4, 1), "root>b", (30_000, 50_000)),
            client((3, 1), "root>a", (10_000, 50_000)),
            client((2, 1), "root>c", (30_000, 50_000)),
        ],
        &[
            (1, 0, 50_000, &[(Own, 10_000)]),
            (3, 10_000, 50_000, &[(Unseen, 40_000)]),
        ],
    );
}

#[test]
fn own_work_of_another_branch_that_keeps_an_answer_waiting_is_told() {
    // The call is sent, then the thread works until 40; the answer was there at 20.
    assert_path(
        &[
            server((1, 0), "root", (0, 50_000)),
            client((2, 1), "root>leaf", (0, 45_000)),
            server((3, 2), "leaf", (10_000, 20_000)),
            work((4, 1), "root cpu", (5_000, 40_000), 35_000),
        ],
        &[
            (1, 0, 50_000, &[(Own, 5_000)]),
            (
                2,
                0,
                45_000,
                // Out: 5 of the way out, back: 20 of 25.
                &[(WireOut, 5_000), (WireBack, 5_000), (Sibling, 25_000)],
            ),
            (3, 10_000, 20_000, &[(Own, 10_000)]),
        ],
    );
}

#[test]
fn a_pause_before_another_attempt_is_no_handling() {
    let attempt = |one: Span, attempt, status| Span {
        attempt,
        status,
        ..one
    };
    assert_path(
        &[
            server((1, 0), "root", (0, 50_000)),
            attempt(client((2, 1), "root>leaf", (1_000, 5_000)), 0, 503),
            attempt(client((3, 1), "root>leaf", (15_000, 25_000)), 1, 200),
            // Another call, not another attempt.
            client((4, 1), "root>leaf", (30_000, 50_000)),
        ],
        &[
            (1, 0, 50_000, &[(Backoff, 10_000), (Own, 6_000)]),
            (2, 1_000, 5_000, &[(Retry, 4_000)]),
            (3, 15_000, 25_000, &[(Unseen, 10_000)]),
            (4, 30_000, 50_000, &[(Unseen, 20_000)]),
        ],
    );
}

#[test]
fn another_machines_clock_is_moved_into_the_call() {
    let path = critical_path(
        &[
            server((1, 0), "root", (100_000, 200_000)),
            client((2, 1), "root>leaf", (110_000, 190_000)),
            server((3, 2), "leaf", (20_000, 80_000)),
            work((4, 3), "leaf cpu", (30_000, 60_000), 30_000),
        ],
        None,
    );
    let times: Vec<_> = path
        .iter()
        .map(|one| (one.span.0, one.from, one.to))
        .collect();
    let expected = [
        (1, 100_000, 200_000),
        (2, 110_000, 190_000),
        (3, 120_000, 180_000),
        (4, 130_000, 160_000),
    ];
    assert_eq!(times, expected);
}

#[test]
fn a_call_that_nobody_waits_for_is_never_critical() {
    let known = Known {
        calls: vec![KnownCall {
            from: "root".to_owned(),
            to: "audit".to_owned(),
            connections: 1,
            awaited: false,
        }],
        ..Known::default()
    };
    let spans = [
        server((1, 0), "root", (0, 50_000)),
        client((2, 1), "root>audit", (0, 49_000)),
    ];
    assert_eq!(critical_path(&spans, None).len(), 2);
    assert_eq!(critical_path(&spans, Some(&known)).len(), 1);
}

#[test]
fn broken_traces_are_borne() {
    // Spans that are each other's parents, one that is its own, one that came twice, one
    // whose parent is missing.
    let spans = [
        server((1, 0), "root", (10_000, 20_000)),
        server((1, 0), "root", (10_000, 20_000)),
        client((2, 3), "a>b", (0, 5_000)),
        server((3, 2), "b", (0, 5_000)),
        work((4, 99), "c cpu", (0, 90_000), 1),
        work((5, 1), "root cpu", (19_000, 12_000), 1),
    ];
    assert_path(&spans, &[(1, 10_000, 20_000, &[(Own, 10_000)])]);
    assert_eq!(critical_path(&spans[2..4], None), []);
    assert_eq!(critical_path(&[], None), []);
}

#[test]
fn a_very_deep_trace_needs_no_stack() {
    let deep = |id: u64| server((id, id - 1), "s", (id, 1_000_000 - id));
    let spans: Vec<Span> = (1..=200_000).map(deep).collect();
    let path = critical_path(&spans, None);
    assert_eq!(path.len(), 200_000);
}

#[test]
fn a_pause_within_a_call_is_told_once() {
    let again = |one: Span, attempt, status| Span {
        attempt,
        status,
        ..one
    };
    // A client's own span around both attempts, as libraries that retry write it.
    assert_path(
        &[
            server((1, 0), "root", (0, 30_000)),
            client((2, 1), "root>leaf", (0, 30_000)),
            again(client((3, 2), "root>leaf", (0, 5_000)), 0, 503),
            again(client((4, 2), "root>leaf", (15_000, 30_000)), 1, 200),
        ],
        &[
            (1, 0, 30_000, &[]),
            (2, 0, 30_000, &[(Backoff, 10_000)]),
            (3, 0, 5_000, &[(Retry, 5_000)]),
            (4, 15_000, 30_000, &[(Unseen, 15_000)]),
        ],
    );
}

#[test]
fn another_service_that_begins_before_its_cause_has_another_clock() {
    let seen = |leaf: Span| -> Vec<(u64, u64, u64)> {
        let spans = [server((1, 0), "root", (100_000, 200_000)), leaf];
        let path = critical_path(&spans, None);
        path.iter()
            .map(|one| (one.span.0, one.from, one.to))
            .collect()
    };
    // No span of the call: it lies where none can tell better.
    let early = seen(server((2, 1), "leaf", (20_000, 80_000)));
    assert_eq!(early, [(1, 100_000, 200_000), (2, 120_000, 180_000)]);
    // One that goes on after its cause may be waited for by nobody.
    let late = seen(server((2, 1), "leaf", (150_000, 210_000)));
    assert_eq!(late, [(1, 100_000, 200_000)]);
}

#[test]
fn a_span_that_came_twice_runs_once() {
    let once = [
        server((1, 0), "root", (0, 30_000)),
        client((2, 1), "root>leaf", (0, 20_000)),
        server((3, 2), "leaf", (1_000, 19_000)),
    ];
    let of = |spans: &[Span]| {
        let found = crate::analysis::analyse(spans).concurrency;
        found.iter().map(|one| one.maximum).collect::<Vec<_>>()
    };
    assert_eq!(of(&once), [1, 1]);
    assert_eq!(of(&[once.clone(), once.clone()].concat()), [1, 1]);
}
