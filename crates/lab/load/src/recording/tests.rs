use std::time::Duration;

use proptest::prelude::*;

use super::*;

/// A span of one second that begins at `at_s`, with `count` answers after `ms`.
fn second(at_s: u64, count: u64, ms: u64) -> Span {
    let mut span = Span::empty(2);
    span.start = Duration::from_secs(at_s);
    span.length = Duration::from_secs(1);
    span.planned = count + 2;
    span.in_flight_seconds = (count * ms) as f64 / 1e3;
    span.backlog = ms;
    span.in_flight = count;
    span.connections.opened = 3;
    span.connections.open = 1 + at_s % 5;
    span.threads_cpu = vec![Duration::from_millis(ms)];
    span.machine.steal = ms as f64 / 1e4;
    let kind = &mut span.kinds[1];
    kind.sent = count + 1;
    kind.answered = count;
    kind.intended.record_n(Duration::from_millis(ms), count);
    kind.actual.record_n(Duration::from_millis(ms / 2), count);
    kind.lateness.record_n(Duration::from_micros(30), count);
    kind.statuses.insert(200, count);
    kind.fail(Phase::Read, "reset");
    span
}

#[test]
fn threads_add_up_in_the_same_time() {
    let mut both = second(4, 10, 20);
    both.merge(&second(4, 5, 40));
    assert_eq!(both.start, Duration::from_secs(4));
    assert_eq!(both.length, Duration::from_secs(1));
    assert_eq!(both.planned, 19);
    assert_eq!(both.connections.open, 10);
    assert_eq!(both.in_flight, 15);
    assert_eq!(both.threads_cpu.len(), 2);
    assert_eq!(both.machine.steal, 0.004);
    let requests = both.requests();
    assert_eq!(requests.answered, 15);
    assert_eq!(requests.intended.count(), 15);
    assert_eq!(requests.failed(), 2);
}

/// A target that answers nothing any more: what was sent in the first second fails in the second.
#[test]
fn no_more_than_all_of_a_part_failed() {
    let mut later = second(1, 0, 0);
    for _ in 0..30 {
        later.kinds[0].fail(Phase::Timeout, "timeout");
    }
    assert!(later.tried().failed > later.tried().all);
    assert_eq!(later.tried().share(), Some(1.0));
    assert_eq!(Tried::default().share(), None);
}

#[test]
fn an_empty_span_takes_the_place_of_the_first() {
    let mut both = Span::empty(2);
    both.merge(&second(4, 10, 20));
    assert_eq!(both, second(4, 10, 20));
    let mut all = Span::empty(2);
    all.append(&second(4, 10, 20));
    assert_eq!(all, second(4, 10, 20));
}

#[test]
fn seconds_add_up_over_time() {
    let mut all = second(4, 10, 20);
    all.append(&second(5, 5, 40));
    assert_eq!(all.length, Duration::from_secs(2));
    assert_eq!(all.connections.opened, 6);
    assert_eq!(all.connections.open, 1);
    assert_eq!(all.in_flight, 10);
    assert_eq!(all.backlog, 40);
    assert_eq!(all.threads_cpu, [Duration::from_millis(60)]);
    assert!((all.machine.steal - 0.003).abs() < 1e-12);
}

#[test]
fn numbers_go_on_behind_those_of_the_busiest_thread() {
    let workload = crate::example::workload(&["get"]);
    let mut recorded = crate::example::recorded(1, 1, 100.0, Duration::from_millis(1));
    recorded.segment.first = 1_000;
    recorded.total.planned = 500;
    assert_eq!(recorded.next_number(&workload), 1_500);
    // One of two threads may have made 0, 2, 4 and so on up to 998.
    let think = Duration::ZERO;
    recorded.segment.model = Model::Closed { think };
    assert_eq!(recorded.next_number(&workload), 2_000);
    // Numbers are used up too where no connection came about.
    recorded.total.kinds[0].fail(Phase::Connect, "refused");
    assert_eq!(recorded.next_number(&workload), 2_002);
}

#[test]
fn a_cleared_span_is_an_empty_one() {
    let mut span = second(4, 10, 20);
    span.clear();
    assert_eq!(span, Span::empty(2));
}

#[test]
fn a_failure_is_told_by_phase_and_cause() {
    let mut kind = Recording::default();
    for (phase, cause) in [
        (Phase::Connect, "refused"),
        (Phase::Connect, NO_PORTS),
        (Phase::Connect, "refused"),
        (Phase::Read, "reset"),
    ] {
        kind.fail(phase, cause);
    }
    assert_eq!((kind.failed(), kind.unsendable()), (4, 3));
    let refused = Failure {
        phase: Phase::Connect,
        cause: "refused".into(),
    };
    assert_eq!(kind.errors[&refused], 2);
}

proptest! {
    // Thousands of histograms each.
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// However many spans come: few are kept, of equal length, and nothing is lost.
    #[test]
    fn a_timeline_is_bounded_and_whole(
        counts in proptest::collection::vec(0u64..20, 1..3000),
    ) {
        let mut timeline = Timeline::default();
        let mut total = Span::empty(2);
        for (at, count) in counts.iter().enumerate() {
            let span = second(at as u64, *count, 1 + count % 7);
            total.append(&span);
            timeline.push(span);
        }
        let spans = timeline.spans();
        prop_assert!(spans.len() <= Timeline::MOST);
        prop_assert!(counts.len() < Timeline::MOST || spans.len() >= Timeline::MOST / 2);
        let mut sum = Span::empty(2);
        spans.iter().for_each(|span| sum.append(span));
        prop_assert!((sum.machine.steal - total.machine.steal).abs() < 1e-9);
        sum.machine.steal = total.machine.steal;
        prop_assert!((sum.in_flight_seconds - total.in_flight_seconds).abs() < 1e-9);
        sum.in_flight_seconds = total.in_flight_seconds;
        prop_assert_eq!(sum, total);
        let lengths: Vec<_> = spans.iter().map(|span| span.length).collect();
        if let [all @ .., _] = lengths.as_slice() {
            prop_assert!(all.windows(2).all(|two| two[0] == two[1]), "{:?}", lengths);
        }
        prop_assert!(spans.windows(2).all(|two| two[0].end() == two[1].start));
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The order in which threads and workers are merged does not matter, and neither
    /// does a trip over the network.
    #[test]
    fn merging_is_exact(counts in proptest::collection::vec((0u64..50, 1u64..900), 1..6)) {
        let parts: Vec<Span> = counts.iter().map(|(n, ms)| second(0, *n, *ms)).collect();
        let mut ahead = Span::empty(2);
        parts.iter().for_each(|part| ahead.merge(part));
        let mut back = Span::empty(2);
        for part in parts.iter().rev() {
            let json = serde_json::to_string(part).unwrap();
            back.merge(&serde_json::from_str(&json).unwrap());
        }
        back.threads_cpu.reverse();
        prop_assert!((ahead.in_flight_seconds - back.in_flight_seconds).abs() < 1e-9);
        back.in_flight_seconds = ahead.in_flight_seconds;
        prop_assert_eq!(ahead, back);
    }
}
