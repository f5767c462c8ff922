//! Spans of several sources, threads or workers, put together second by second.

use std::collections::BTreeMap;
use std::time::Duration;

use lab_load::Span;

/// See the module.
#[derive(Debug)]
pub(crate) struct Merge {
    sources: Vec<Source>,
    /// Threads of each source.
    threads: usize,
    pending: BTreeMap<Place, Span>,
}

#[derive(Debug, Clone, Default)]
struct Source {
    /// The place of its last span; `None` before the first.
    reached: Option<Place>,
    /// No more will come.
    ended: bool,
}

/// Where a span stands among others: whether it came after the end of the segment, and
/// the second in which it ended.
type Place = (bool, u128);

const SECOND_NS: u128 = 1_000_000_000;

impl Merge {
    /// For so many sources of so many threads each.
    pub(crate) fn new(sources: usize, threads: usize) -> Self {
        Self {
            sources: vec![Source::default(); sources],
            threads,
            pending: BTreeMap::new(),
        }
    }

    /// Adds a source's next span, and gives it back empty. Most have a second each; a source
    /// that was busy may tell of two at once. Memory is bounded by how far the sources are
    /// apart, and one that is behind is waited for by none.
    pub(crate) fn add(&mut self, source: usize, mut span: Box<Span>) -> Box<Span> {
        let place = (span.after_end, span.end().as_nanos().div_ceil(SECOND_NS));
        let (kinds, threads) = (span.kinds.len(), self.sources.len() * self.threads);
        let merged = self.pending.entry(place).or_insert_with(|| {
            let mut merged = Span::empty(kinds);
            merged.threads_cpu = vec![Duration::ZERO; threads];
            merged
        });
        // Sources tell in any order, yet each thread's processor time has its own place: of
        // spans in a row, place by place, that makes the time of each thread.
        let own = merged.threads_cpu.iter_mut().skip(source * self.threads);
        for (sum, cpu) in own.zip(span.threads_cpu.drain(..).take(self.threads)) {
            *sum += cpu;
        }
        merged.merge(&span);
        self.sources[source].reached = Some(place);
        span.clear();
        span
    }

    /// A source has told everything.
    pub(crate) fn end(&mut self, source: usize) {
        self.sources[source].ended = true;
    }

    /// Whether every source has ended.
    pub(crate) fn ended(&self) -> bool {
        self.sources.iter().all(|source| source.ended)
    }

    /// The next span to which no source will add anything.
    pub(crate) fn next(&mut self) -> Option<Span> {
        let place = *self.pending.keys().next()?;
        let done = |source: &Source| source.ended || source.reached >= Some(place);
        let all = self.sources.iter().all(done);
        all.then(|| self.pending.remove(&place)).flatten()
    }
}

#[cfg(test)]
mod tests;
