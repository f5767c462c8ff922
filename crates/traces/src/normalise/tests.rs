use proptest::prelude::*;

use super::*;
use crate::TraceId;
use crate::random_spans::any_span;
use crate::samples::server;

fn span(kind: SpanKind, trace: u128, id: u64, parent: u64, service: &str) -> Span {
    Span {
        kind,
        parent: SpanId(parent),
        service: service.into(),
        ..server(trace, id, id * 10, 1000 - id * 10)
    }
}

fn call(trace: u128, id: u64, parent: u64, service: &str, peer: &str) -> Span {
    Span {
        peer: peer.into(),
        ..span(SpanKind::Client, trace, id, parent, service)
    }
}

fn peers(spans: &[Span]) -> Vec<&str> {
    let calls = spans.iter().filter(|span| span.kind == SpanKind::Client);
    calls.map(|span| &*span.peer).collect()
}

#[test]
fn a_callee_is_the_service_that_answered_whatever_it_is_called() {
    let mut spans = vec![
        span(SpanKind::Server, 1, 1, 0, "front"),
        call(1, 2, 1, "front", "10.0.0.7:80"),
        span(SpanKind::Server, 1, 3, 2, "store"),
        // Its server left no span: the same address as above, and one that nobody knows.
        span(SpanKind::Server, 2, 1, 0, "front"),
        call(2, 2, 1, "front", "10.0.0.7:80"),
        call(2, 3, 1, "front", "10.0.0.8:80"),
        // Another host's localhost is not ours.
        call(2, 4, 1, "price", "10.0.0.7:80"),
        // As Kubernetes and people write a name.
        call(2, 5, 1, "price", "store.shop.svc.cluster.local:80"),
        call(2, 6, 1, "price", "store:8080"),
        call(2, 7, 1, "price", "store.example.com"),
    ];
    normalise(&mut spans);
    assert_eq!(
        peers(&spans),
        [
            "store",
            "store",
            "10.0.0.8:80",
            "10.0.0.7:80",
            "store",
            "store",
            "store.example.com"
        ]
    );
}

#[test]
fn an_address_of_which_several_answer_is_nobodys() {
    let mut spans = vec![
        call(1, 2, 1, "front", "gateway"),
        span(SpanKind::Server, 1, 3, 2, "store"),
        call(2, 2, 1, "front", "gateway"),
        span(SpanKind::Server, 2, 3, 2, "price"),
        call(3, 2, 1, "front", "gateway"),
    ];
    normalise(&mut spans);
    assert_eq!(peers(&spans), ["store", "price", "gateway"]);
}

#[test]
fn a_call_that_names_nobody_is_known_by_what_it_asks_for() {
    let named = |trace, name: &str| Span {
        name: name.into(),
        ..call(trace, 2, 1, "front", "")
    };
    let mut spans = vec![
        named(1, "GET /price"),
        span(SpanKind::Server, 1, 3, 2, "price"),
        named(2, "GET /price"),
        named(3, "GET /other"),
    ];
    normalise(&mut spans);
    assert_eq!(peers(&spans), ["price", "price", ""]);
}

#[test]
fn spans_without_a_kind_are_servers_where_a_service_is_entered() {
    let inner = |trace, id, parent, service| span(SpanKind::Internal, trace, id, parent, service);
    let mut spans = vec![
        inner(1, 1, 0, "front"),
        inner(1, 2, 1, "front"),
        inner(1, 3, 2, "store"),
        inner(1, 4, 3, "store"),
        // Its root came not: the first is the best that there is.
        inner(2, 2, 9, "front"),
        inner(2, 3, 9, "front"),
        // It has a server: what stands beside is lost below a missing span.
        span(SpanKind::Server, 3, 1, 0, "front"),
        inner(3, 2, 9, "front"),
        // Work is ours, and says what it is.
        span(SpanKind::Work, 4, 1, 0, "front"),
    ];
    normalise(&mut spans);
    let kinds: Vec<SpanKind> = spans.iter().map(|span| span.kind).collect();
    use SpanKind::{Internal, Server, Work};
    assert_eq!(
        kinds,
        [
            Server, Internal, Server, Internal, Server, Internal, Server, Internal, Work
        ]
    );
}

#[test]
fn a_shared_span_is_parted_however_its_halves_come() {
    let halves = [
        call(1, 2, 1, "root", "leaf"),
        span(SpanKind::Server, 1, 2, 1, "leaf"),
        span(SpanKind::Internal, 1, 3, 2, "leaf"),
        span(SpanKind::Internal, 1, 4, 2, "root"),
    ];
    let own = SpanId(2).of_server();
    for turn in 0..halves.len() {
        let mut spans = halves.to_vec();
        spans.rotate_left(turn);
        normalise(&mut spans);
        spans.rotate_right(turn);
        let ids: Vec<_> = spans.iter().map(|span| (span.id, span.parent)).collect();
        assert_eq!(
            ids,
            [
                (SpanId(2), SpanId(1)),
                (own, SpanId(2)),
                (SpanId(3), own),
                (SpanId(4), SpanId(2)),
            ]
        );
    }
}

/// Spans whose ids and names meet.
fn some_span() -> impl Strategy<Value = Span> {
    let ids = (1_u128..3, 1_u64..6, 0_u64..6);
    (any_span(), ids, "[ab]", "[ab]?").prop_map(|(span, ids, service, peer)| Span {
        trace: TraceId(ids.0),
        id: SpanId(ids.1),
        parent: SpanId(ids.2),
        peer: match span.kind {
            SpanKind::Client => peer.into(),
            _ => "".into(),
        },
        service: service.into(),
        ..span
    })
}

proptest! {
    #[test]
    fn what_is_normal_stays_as_it_is(spans in proptest::collection::vec(some_span(), 0..20)) {
        let mut once = spans;
        normalise(&mut once);
        let mut twice = once.clone();
        normalise(&mut twice);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn the_order_does_not_matter(
        spans in proptest::collection::vec(some_span(), 0..12).prop_shuffle(),
    ) {
        let key = |span: &Span| format!("{span:?}");
        let mut one = spans.clone();
        // Of spans with one id the first to come may win.
        one.sort_by_key(|span| (span.trace, span.id));
        one.dedup_by_key(|span| (span.trace, span.id));
        let mut other = one.clone();
        other.reverse();
        normalise(&mut one);
        normalise(&mut other);
        one.sort_by_key(key);
        other.sort_by_key(key);
        prop_assert_eq!(one, other);
    }
}

#[test]
fn a_call_that_follows_a_failed_one_of_its_kind_is_that_one_made_again() {
    let at = |id: u64, start, end, cause| Span {
        start,
        end,
        cause,
        status: 0,
        ..call(1, id, 1, "front", "store")
    };
    let front = Span {
        start: 0,
        end: 90_000,
        ..span(SpanKind::Server, 1, 1, 0, "front")
    };
    let mut spans = vec![
        front,
        // Two at once; one fails, is made again, fails again and is made a third time.
        at(2, 0, 10_000, "reset"),
        at(3, 0, 12_000, ""),
        at(4, 20_000, 30_000, "reset"),
        at(5, 40_000, 50_000, ""),
        // One after those that went well is another call.
        at(6, 60_000, 70_000, ""),
        Span {
            name: "/other".into(),
            ..at(7, 80_000, 85_000, "")
        },
    ];
    let plain = spans.clone();
    normalise(&mut spans);
    let attempts = |spans: &[Span]| spans.iter().map(|one| one.attempt).collect::<Vec<_>>();
    assert_eq!(attempts(&spans), [0, 0, 0, 1, 2, 0, 0]);
    let mut told = plain;
    told[6].attempt = 3;
    normalise(&mut told);
    assert_eq!(
        attempts(&told),
        [0, 0, 0, 0, 0, 0, 3],
        "who tells is believed"
    );
}
