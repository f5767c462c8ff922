//! The spans of several workers as those of one generator.

use std::collections::VecDeque;
use std::time::Duration;

use lab_load::Span;

/// Puts together what all workers saw in the same second, second by second.
#[derive(Debug)]
pub(crate) struct Merge {
    workers: Vec<Part>,
}

#[derive(Debug, Default)]
struct Part {
    /// Not merged yet, in order of time.
    spans: VecDeque<Span>,
    /// The place of its last span.
    reached: Option<Place>,
    /// No more will come.
    ended: bool,
    /// Threads of this worker, as its last span had them.
    threads: usize,
}

impl Merge {
    /// For so many workers.
    pub(crate) fn new(workers: usize) -> Self {
        let workers = std::iter::repeat_with(Part::default)
            .take(workers)
            .collect();
        Self { workers }
    }

    /// A worker's next span. Most have a second each; a worker that was busy may tell of
    /// two at once.
    pub(crate) fn push(&mut self, worker: usize, span: Span) {
        if let Some(part) = self.workers.get_mut(worker) {
            part.threads = span.threads_cpu.len();
            part.reached = Some(place(&span));
            part.spans.push_back(span);
        }
    }

    /// A worker sends no more spans.
    pub(crate) fn end(&mut self, worker: usize) {
        if let Some(part) = self.workers.get_mut(worker) {
            part.ended = true;
        }
    }

    /// The next span of all, once nobody can add anything to it. Threads keep their
    /// places: those of a worker without a span used no processor.
    pub(crate) fn pop(&mut self) -> Option<Span> {
        let firsts = self.workers.iter().filter_map(|part| part.spans.front());
        let next = firsts.map(place).min()?;
        let done = |part: &Part| part.ended || part.reached >= Some(next);
        if !self.workers.iter().all(done) {
            return None;
        }
        let mut all = Span::empty(0);
        for part in &mut self.workers {
            let before = all.threads_cpu.len();
            while let Some(span) = part.spans.pop_front_if(|span| place(span) <= next) {
                all.merge(&span);
            }
            all.threads_cpu
                .resize(before + part.threads, Duration::ZERO);
        }
        Some(all)
    }
}

/// Whether a span came after the end of the segment, and the second in which it ends,
/// from 1.
type Place = (bool, u64);

fn place(span: &Span) -> Place {
    let end = span.end();
    let second = end.as_secs() + u64::from(end.subsec_nanos() > 0);
    (span.after_end, second)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn span(second: u64, sent: u64, latencies: &[u64]) -> Span {
        let mut span = Span::empty(1);
        span.start = Duration::from_secs(second);
        span.length = Duration::from_secs(1);
        span.planned = sent;
        span.kinds[0].sent = sent;
        for us in latencies {
            span.kinds[0].intended.record(Duration::from_micros(*us));
            span.kinds[0].intended_doubt.record_ns(us * 1_000, us * 500);
            span.delays.waited += Duration::from_micros(*us);
        }
        span.threads_cpu = vec![Duration::from_millis(sent); 2];
        span
    }

    fn pop_all(merge: &mut Merge) -> Vec<Span> {
        std::iter::from_fn(|| merge.pop()).collect()
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
            let mut merge = Merge::new(workers.len());
            let mut next = vec![0; workers.len()];
            let mut merged = Vec::new();
            let everyone = (0..workers.len()).flat_map(|worker| vec![worker; 7]);
            let order = order.iter().map(|index| index.index(workers.len())).chain(everyone);
            for worker in order {
                match workers[worker].get(next[worker]) {
                    Some((sent, latencies)) => {
                        merge.push(worker, span(next[worker] as u64, *sent, latencies));
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
                let whole = span(second as u64, parts.iter().map(|part| part.0).sum(), &latencies);
                prop_assert_eq!(&all.kinds, &whole.kinds);
                prop_assert_eq!(all.planned, whole.planned);
                prop_assert_eq!(all.delays, whole.delays);
                prop_assert_eq!((all.start, all.length), (whole.start, whole.length));
            }
        }
    }

    #[test]
    fn a_worker_may_tell_of_two_seconds_at_once() {
        let mut merge = Merge::new(2);
        let mut long = span(0, 5, &[]);
        long.length = Duration::from_secs(2);
        merge.push(0, long);
        merge.push(1, span(0, 1, &[]));
        let seen = |merge: &mut Merge| merge.pop().map(|span| (span.end().as_secs(), span.planned));
        assert_eq!(seen(&mut merge), Some((1, 1)));
        assert_eq!(seen(&mut merge), None);
        merge.push(1, span(1, 2, &[]));
        assert_eq!(seen(&mut merge), Some((2, 7)));
        assert_eq!(seen(&mut merge), None);
    }

    #[test]
    fn threads_keep_their_places_when_a_worker_ends() {
        let mut merge = Merge::new(2);
        merge.push(0, span(0, 1, &[]));
        assert_eq!(merge.pop(), None, "the other may still send");
        merge.push(1, span(0, 2, &[]));
        merge.end(0);
        merge.push(1, span(1, 3, &[]));
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
}
