use proptest::prelude::*;

use super::*;

fn span(start: u64, length: u64, sent: u64) -> Box<Span> {
    let mut span = Span::empty(1);
    span.start = Duration::from_millis(start);
    span.length = Duration::from_millis(length);
    span.kinds[0].sent = sent;
    Box::new(span)
}

fn sent(span: Option<Span>) -> Option<(u128, u64)> {
    span.map(|span| (span.end().as_millis(), span.kinds[0].sent))
}

#[test]
fn a_second_is_whole_when_every_thread_has_told_of_it() {
    let mut merge = Merge::new(2, 1);
    assert_eq!(merge.add(0, span(0, 1000, 1)).kinds[0].sent, 0);
    merge.add(0, span(1000, 1000, 2));
    assert_eq!(sent(merge.next()), None);
    merge.add(1, span(0, 1000, 10));
    assert_eq!(sent(merge.next()), Some((1000, 11)));
    assert_eq!(sent(merge.next()), None);
    merge.add(1, span(1000, 1000, 20));
    merge.end(1);
    assert_eq!(sent(merge.next()), Some((2000, 22)));
    assert!(!merge.ended());
    merge.add(0, span(2000, 500, 4));
    merge.end(0);
    assert!(merge.ended());
    assert_eq!(sent(merge.next()), Some((2500, 4)));
    assert_eq!(sent(merge.next()), None);
}

#[test]
fn what_came_after_the_end_stays_apart_in_the_same_second() {
    let mut merge = Merge::new(2, 1);
    let after = |start, length, sent| {
        let mut span = span(start, length, sent);
        span.after_end = true;
        span
    };
    merge.add(0, span(0, 500, 1));
    merge.add(0, after(500, 20, 2));
    merge.end(0);
    assert_eq!(sent(merge.next()), None);
    merge.add(1, span(0, 500, 10));
    merge.add(1, after(500, 1200, 20));
    merge.end(1);
    let spans: Vec<Span> = std::iter::from_fn(|| merge.next()).collect();
    let told = |span: &Span| (span.after_end, span.kinds[0].sent);
    assert_eq!(
        spans.iter().map(told).collect::<Vec<_>>(),
        [(false, 11), (true, 2), (true, 20)]
    );
    assert_eq!(spans[0].end(), Duration::from_millis(500));
}

#[test]
fn processor_time_stays_at_the_place_of_its_thread() {
    let took = |start, length, ms| {
        let mut span = span(start, length, 1);
        span.threads_cpu = vec![Duration::from_millis(ms)];
        span
    };
    let mut merge = Merge::new(2, 1);
    merge.add(0, took(0, 1000, 900));
    merge.add(1, took(0, 1000, 10));
    // Now the other one tells first.
    merge.add(1, took(1000, 500, 20));
    merge.end(1);
    merge.add(0, took(1000, 500, 400));
    merge.end(0);
    let mut total = Span::empty(1);
    while let Some(span) = merge.next() {
        total.append(&span);
    }
    assert_eq!(
        total.threads_cpu,
        [1300, 30].map(Duration::from_millis),
        "of each thread, over both spans"
    );
}

#[test]
fn a_thread_that_could_not_tell_in_time_adds_to_a_later_second() {
    let mut merge = Merge::new(2, 1);
    merge.add(0, span(0, 1000, 1));
    merge.add(1, span(0, 2000, 10));
    merge.end(1);
    assert_eq!(sent(merge.next()), Some((1000, 1)));
    merge.add(0, span(1000, 1000, 2));
    merge.end(0);
    assert_eq!(sent(merge.next()), Some((2000, 12)));
}

fn second(second: u64, sent: u64, latencies: &[u64]) -> Box<Span> {
    let mut span = span(second * 1000, 1000, sent);
    span.planned = sent;
    for us in latencies {
        span.kinds[0].intended.record(Duration::from_micros(*us));
        span.kinds[0].intended_doubt.record_ns(us * 1_000, us * 500);
        span.delays.waited += Duration::from_micros(*us);
    }
    span.threads_cpu = vec![Duration::from_millis(sent); 2];
    span
}

fn pop_all(merge: &mut Merge) -> Vec<Span> {
    std::iter::from_fn(|| merge.next()).collect()
}

proptest! {
    #[test]
    fn the_parts_add_up_whatever_order_they_come_in(
        workers in proptest::collection::vec(
            proptest::collection::vec(
                (0u64..1000, proptest::collection::vec(1u64..1_000_000, 0..8)), 0..6),
            1..5),
        order in proptest::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let mut merge = Merge::new(workers.len(), 2);
        let mut next = vec![0; workers.len()];
        let mut merged = Vec::new();
        let everyone = (0..workers.len()).flat_map(|worker| vec![worker; 7]);
        let order = order.iter().map(|index| index.index(workers.len())).chain(everyone);
        for worker in order {
            match workers[worker].get(next[worker]) {
                Some((sent, latencies)) => {
                    merge.add(worker, second(next[worker] as u64, *sent, latencies));
                    next[worker] += 1;
                }
                None => merge.end(worker),
            }
            merged.extend(pop_all(&mut merge));
        }
        let seconds = workers.iter().map(Vec::len).max().unwrap_or(0);
        prop_assert_eq!(merged.len(), seconds);
        for (second, all) in merged.iter().enumerate() {
            let parts: Vec<_> = workers.iter().filter_map(|spans| spans.get(second)).collect();
            let latencies: Vec<u64> = parts.iter().flat_map(|part| part.1.clone()).collect();
            let whole = self::second(second as u64, parts.iter().map(|part| part.0).sum(), &latencies);
            prop_assert_eq!(&all.kinds, &whole.kinds);
            prop_assert_eq!(all.planned, whole.planned);
            prop_assert_eq!(all.delays, whole.delays);
            prop_assert_eq!((all.start, all.length), (whole.start, whole.length));
        }
    }
}

#[test]
fn a_worker_may_tell_of_two_seconds_at_once() {
    let mut merge = Merge::new(2, 2);
    let mut long = second(0, 5, &[]);
    long.length = Duration::from_secs(2);
    merge.add(0, long);
    merge.add(1, second(0, 1, &[]));
    let seen = |merge: &mut Merge| {
        merge
            .next()
            .map(|span| (span.end().as_secs(), span.planned))
    };
    assert_eq!(seen(&mut merge), Some((1, 1)));
    assert_eq!(seen(&mut merge), None);
    merge.add(1, second(1, 2, &[]));
    assert_eq!(seen(&mut merge), Some((2, 7)));
    assert_eq!(seen(&mut merge), None);
}

#[test]
fn threads_keep_their_places_when_a_worker_ends() {
    let mut merge = Merge::new(2, 2);
    merge.add(0, second(0, 1, &[]));
    assert_eq!(merge.next(), None, "the other may still send");
    merge.add(1, second(0, 2, &[]));
    merge.end(0);
    merge.add(1, second(1, 3, &[]));
    let ms = Duration::from_millis;
    let cpu: Vec<_> = pop_all(&mut merge)
        .into_iter()
        .map(|span| span.threads_cpu)
        .collect();
    assert_eq!(
        cpu,
        [
            vec![ms(1), ms(1), ms(2), ms(2)],
            vec![ms(0), ms(0), ms(3), ms(3)]
        ]
    );
}
