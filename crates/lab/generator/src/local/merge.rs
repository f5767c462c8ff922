//! Spans of several threads, put together second by second.

use std::collections::BTreeMap;
use std::time::Duration;

use lab_load::Span;

/// See the module.
pub(super) struct Merge {
    /// The place of each thread's last span; `None` before the first.
    reached: Vec<Option<Place>>,
    ended: Vec<bool>,
    pending: BTreeMap<Place, Span>,
}

/// Where a span stands among others: whether it came after the end of the segment, and
/// the second in which it ended.
type Place = (bool, u128);

const SECOND_NS: u128 = 1_000_000_000;

impl Merge {
    pub(super) fn new(threads: usize) -> Self {
        Self {
            reached: vec![None; threads],
            ended: vec![false; threads],
            pending: BTreeMap::new(),
        }
    }

    /// Adds a thread's span, and gives it back empty. Memory is bounded by how far the
    /// threads are apart, and a thread that is behind is waited for by none.
    pub(super) fn add(&mut self, thread: usize, mut span: Box<Span>) -> Box<Span> {
        let place = (span.after_end, span.end().as_nanos().div_ceil(SECOND_NS));
        // Threads tell in any order, yet each one's processor time has its own place: of
        // spans in a row, place by place, that makes the time of each thread.
        let cpu: Duration = span.threads_cpu.drain(..).sum();
        let (kinds, threads) = (span.kinds.len(), self.reached.len());
        let merged = self.pending.entry(place).or_insert_with(|| {
            let mut merged = Span::empty(kinds);
            merged.threads_cpu = vec![Duration::ZERO; threads];
            merged
        });
        merged.merge(&span);
        merged.threads_cpu[thread] += cpu;
        self.reached[thread] = Some(place);
        span.clear();
        span
    }

    /// A thread has told everything.
    pub(super) fn end(&mut self, thread: usize) {
        self.ended[thread] = true;
    }

    /// Whether every thread has ended.
    pub(super) fn ended(&self) -> bool {
        self.ended.iter().all(|ended| *ended)
    }

    /// The next span to which no thread will add anything.
    pub(super) fn next(&mut self) -> Option<Span> {
        let place = *self.pending.keys().next()?;
        let done = |(reached, ended): (&Option<Place>, &bool)| *ended || *reached >= Some(place);
        let all = self.reached.iter().zip(&self.ended).all(done);
        all.then(|| self.pending.remove(&place)).flatten()
    }
}

#[cfg(test)]
mod tests {
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
        let mut merge = Merge::new(2);
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
        let mut merge = Merge::new(2);
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
        let mut merge = Merge::new(2);
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
        let mut merge = Merge::new(2);
        merge.add(0, span(0, 1000, 1));
        merge.add(1, span(0, 2000, 10));
        merge.end(1);
        assert_eq!(sent(merge.next()), Some((1000, 1)));
        merge.add(0, span(1000, 1000, 2));
        merge.end(0);
        assert_eq!(sent(merge.next()), Some((2000, 12)));
    }
}
