//! The spans of several workers as those of one generator.

use std::collections::VecDeque;

use lab_load::Span;

/// Puts together the k-th spans of all workers, for k in order.
#[derive(Debug)]
pub(crate) struct Merge {
    workers: Vec<Part>,
}

#[derive(Debug, Default)]
struct Part {
    /// Not merged yet.
    spans: VecDeque<Span>,
    /// No more will come.
    ended: bool,
}

impl Merge {
    /// For so many workers.
    pub(crate) fn new(workers: usize) -> Self {
        let workers = std::iter::repeat_with(Part::default).take(workers).collect();
        Self { workers }
    }

    /// A worker's next span.
    pub(crate) fn push(&mut self, worker: usize, span: Span) {
        if let Some(part) = self.workers.get_mut(worker) {
            part.spans.push_back(span);
        }
    }

    /// A worker sends no more spans.
    pub(crate) fn end(&mut self, worker: usize) {
        if let Some(part) = self.workers.get_mut(worker) {
            part.ended = true;
        }
    }

    /// The next span of all, once everybody who still sends has sent theirs.
    pub(crate) fn pop(&mut self) -> Option<Span> {
        let waiting = |part: &Part| part.spans.is_empty() && !part.ended;
        if self.workers.iter().any(waiting) {
            return None;
        }
        let mut spans = self.workers.iter_mut().filter_map(|part| part.spans.pop_front());
        let mut all = spans.next()?;
        for span in spans {
            all.merge(&span);
        }
        Some(all)
    }
}
