use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::SpanId;
use crate::SpanKind;
use crate::samples::server;

fn store(spans: usize, slowest: usize) -> Store {
    Store::new(StoreLimits {
        spans,
        slowest,
        ..StoreLimits::default()
    })
}

fn work(trace: u128, id: u64, start: u64, end: u64) -> Span {
    Span {
        kind: SpanKind::Work,
        parent: SpanId(1),
        ..server(trace, id, start, end)
    }
}

fn ids(found: &[Summary]) -> Vec<u128> {
    found.iter().map(|one| one.trace.0).collect()
}

#[test]
fn spans_are_joined_however_they_come() {
    let store = store(100, 0);
    store.extend([work(1, 3, 20, 30), server(2, 1, 5, 6)]);
    store.extend([server(1, 2, 15, 90), server(1, 1, 10, 100)]);
    let spans = store.trace(TraceId(1));
    assert_eq!(
        spans.iter().map(|span| span.id.0).collect::<Vec<_>>(),
        [1, 2, 3]
    );
    store.extend([work(2, 9, 5, 6), work(2, 8, 5, 7)]);
    let spans = store.trace(TraceId(2));
    assert_eq!(
        spans.iter().map(|span| span.id.0).collect::<Vec<_>>(),
        [8, 1, 9]
    );
    let slowest = store.slowest(10, 0);
    assert_eq!(ids(&slowest), [1, 2]);
    // The root is the server span that began first.
    assert_eq!((slowest[0].root.id, slowest[0].spans), (SpanId(1), 3));
    assert_eq!(ids(&store.slowest(1, 0)), [1]);
    assert_eq!(ids(&store.slowest(10, 10)), [1]);
    assert!(store.trace(TraceId(9)).is_empty());
    // Without a server span there is nothing to say about a request.
    store.extend([work(3, 1, 0, 1000)]);
    assert_eq!(ids(&store.slowest(10, 0)), [1, 2]);
}

#[test]
fn who_follows_sees_every_change() {
    let store = store(100, 0);
    store.extend([server(1, 1, 0, 9), server(2, 1, 0, 9), work(1, 2, 1, 2)]);
    let seen = store.since(0, 10);
    assert_eq!(ids(&seen), [1, 2]);
    let last = seen.last().unwrap().changed;
    assert_eq!(
        (store.since(last, 10).len(), store.counts().changes),
        (0, last)
    );
    // A late span of the trace that changed last.
    store.extend([work(2, 2, 1, 2)]);
    let seen = store.since(last, 10);
    assert_eq!((ids(&seen), seen[0].spans), (vec![2], 2));
    store.extend([server(3, 1, 0, 9)]);
    assert_eq!(ids(&store.since(0, 2)), [1, 2]);
    assert_eq!(ids(&store.recent(2)), [3, 2]);
}

#[test]
fn the_oldest_are_forgotten_and_the_slowest_of_them_last() {
    let store = store(16, 2);
    store.extend((0..40).map(|trace| {
        // The third and the sixth take longest.
        let length = [5, 5, 900, 5, 5, 800][trace as usize % 6] + u64::from(trace as u8);
        server(trace + 1, 1, 100, 100 + length * u64::from(trace < 6))
    }));
    let counts = store.counts();
    assert_eq!(
        (counts.traces, counts.spans, counts.forgotten),
        (16, 16, 24)
    );
    assert_eq!(ids(&store.slowest(3, 0))[..2], [3, 6]);
    assert_eq!(store.trace(TraceId(3)).len(), 1);
    assert!(store.trace(TraceId(1)).is_empty());
    // What is told of all requests is not bent by them.
    let ended = store.whole(&TraceFilter::ended(u64::MAX));
    assert_eq!(ended.len(), 16);
    assert!(ended.iter().all(|spans| spans[0].trace.0 > 24));
    // A late span of one that is remembered.
    store.extend([work(3, 2, 101, 102)]);
    assert_eq!(store.trace(TraceId(3)).len(), 2);
    assert_eq!(ids(&store.slowest(2, 0)), [3, 6]);
}

#[test]
fn its_memory_is_bounded_however_short_traces_are() {
    let store = Store::new(StoreLimits {
        bytes: 100_000,
        ..StoreLimits::default()
    });
    store.extend((1..5000).map(|trace| server(trace, 1, 0, 9)));
    let counts = store.counts();
    assert!(counts.bytes <= 100_000, "{counts:?}");
    // One span has a vector with room for several, and its trace a place in each map.
    assert!((50..250).contains(&counts.traces), "{counts:?}");
}

#[test]
fn a_trace_that_goes_on_and_on_does_not_fill_the_store() {
    let store = Store::new(StoreLimits {
        trace_spans: 10,
        ..StoreLimits::default()
    });
    store.extend((0..100).map(|id| work(1, id + 1, 0, 1)));
    let counts = store.counts();
    assert_eq!(
        (counts.spans, counts.dropped, counts.received),
        (10, 90, 100)
    );
}

#[test]
fn what_ended_later_than_now_has_another_clock_and_is_there() {
    let store = store(100, 0);
    store.extend([
        server(1, 1, 0, 10),
        server(2, 1, 0, 95),
        server(3, 1, 0, 1_000),
    ]);
    let whole = |now| {
        let wanted = TraceFilter {
            now,
            ..TraceFilter::ended(90)
        };
        store.whole(&wanted).len()
    };
    // Between both there was no time for late spans.
    assert_eq!(whole(100), 2);
    assert_eq!(whole(1_000), 1);
    let limits = StoreLimits {
        trace_spans: 2,
        ..StoreLimits::default()
    };
    let small = Store::new(limits);
    assert_eq!(small.extend([server(1, 1, 0, 10), server(1, 2, 0, 10)]), 0);
    assert_eq!(small.extend([server(1, 3, 0, 10), server(2, 1, 0, 10)]), 1);
}

#[test]
fn requests_under_way_are_not_whole() {
    let store = store(100, 0);
    store.extend([server(1, 1, 0, 10), server(2, 1, 0, 20), work(3, 1, 0, 1)]);
    let whole = |wanted: &TraceFilter<'_>| -> Vec<u128> {
        let traces = store.whole(wanted);
        traces.iter().map(|spans| spans[0].trace.0).collect()
    };
    let kept = store.all();
    let kept: Vec<u128> = kept.iter().map(|spans| spans[0].trace.0).collect();
    assert_eq!(kept, [1, 2, 3]);
    assert_eq!(whole(&TraceFilter::ended(10)), [1]);
    let all = TraceFilter::ended(20);
    assert_eq!(whole(&all), [1, 2]);
    assert_eq!(whole(&TraceFilter { traces: 1, ..all }), [2]);
    assert_eq!(whole(&TraceFilter { spans: 1, ..all }), [2]);
    assert_eq!(whole(&TraceFilter { from: 1, ..all }), [0; 0]);
    assert_eq!(
        whole(&TraceFilter {
            path: Some("/"),
            ..all
        }),
        [1, 2]
    );
    assert_eq!(
        whole(&TraceFilter {
            path: Some("/x"),
            ..all
        }),
        [0; 0]
    );
    // Beside many others its path is called `/users/{id}` where traces are shown.
    store.extend([Span {
        name: "/users/7".into(),
        ..server(4, 1, 0, 20)
    }]);
    for (path, found) in [("/users/7", 1), ("/users/{id}", 1), ("/users/8", 0)] {
        let path = Some(path);
        assert_eq!(whole(&TraceFilter { path, ..all }).len(), found, "{path:?}");
    }
}

proptest! {
    /// Against a plain map of all that came.
    #[test]
    fn it_agrees_with_a_map_within_its_bounds(
        batches in proptest::collection::vec(
            proptest::collection::vec((1_u128..12, 0_u64..50, 0_u64..50, any::<bool>()), 0..6),
            0..20,
        ),
        limit in 5_usize..40,
    ) {
        let store = store(limit, 0);
        let mut all = BTreeMap::<u128, usize>::new();
        let mut id = 0;
        for batch in batches {
            let spans: Vec<_> = batch.into_iter().map(|(trace, start, length, root)| {
                id += 1;
                *all.entry(trace).or_default() += 1;
                match root {
                    true => server(trace, id, start, start + length),
                    false => work(trace, id, start, start + length),
                }
            }).collect();
            store.extend(spans);
            let counts = store.counts();
            prop_assert!(counts.spans <= limit);
            let taken: usize = store.lock().traces.values().map(Entry::bytes).sum();
            prop_assert_eq!(counts.bytes, taken);
            prop_assert_eq!(counts.spans as u64 + counts.forgotten, counts.received);
        }
        let kept: usize = (1..12).map(|trace| store.trace(TraceId(trace)).len()).sum();
        let counts = store.counts();
        prop_assert_eq!(kept, counts.spans);
        let slowest = store.slowest(100, 0);
        let lengths: Vec<_> = slowest.iter().map(|one| one.root.end - one.root.start).collect();
        prop_assert!(lengths.is_sorted_by(|a, b| a >= b));
        for one in &slowest {
            let spans = store.trace(one.trace);
            let servers = spans.iter().filter(|span| span.kind == SpanKind::Server);
            prop_assert_eq!(servers.map(|span| span.start).min(), Some(one.root.start));
        }
        let inner = store.lock();
        prop_assert_eq!(inner.order.len(), inner.traces.len());
        let rooted = inner.traces.values().filter(|one| one.root().is_some()).count();
        prop_assert_eq!(inner.by_length.len(), rooted);
        if counts.forgotten == 0 {
            for (trace, spans) in all {
                prop_assert_eq!(inner.traces[&TraceId(trace)].spans.len(), spans);
            }
        }
    }
}
