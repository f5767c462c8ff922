//! A load over time, in bounded memory.

use serde::{Deserialize, Serialize};

use super::span::Span;

/// Spans in order of time, in bounded memory: when there are [`Timeline::MOST`] and
/// another comes, neighbours are merged in pairs, and from then on twice as many spans
/// make one. Spans are packed: some kilobytes each. What came after the end of the segment
/// is never merged with what came before it, and makes one span more.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    spans: Vec<Span>,
    /// Binary logarithm of the number of spans that make one here.
    doublings: u32,
    /// How many the last one is made of.
    in_last: u64,
}

impl Timeline {
    /// Most spans that are kept.
    pub const MOST: usize = 600;

    /// Adds the span that follows in time.
    pub fn push(&mut self, mut span: Span) {
        if let Some(last) = self.spans.last_mut()
            && last.after_end == span.after_end
            && (self.in_last < 1 << self.doublings || span.after_end)
        {
            last.append(&span);
            last.pack();
            self.in_last += 1;
            return;
        }
        if self.spans.len() == Self::MOST && !span.after_end {
            self.halve();
        }
        span.pack();
        self.spans.push(span);
        self.in_last = 1;
    }

    /// Merges neighbours in pairs. [`Timeline::MOST`] is even: none is left over.
    fn halve(&mut self) {
        let mut kept = Vec::with_capacity(Self::MOST);
        let mut spans = std::mem::take(&mut self.spans).into_iter();
        while let Some(mut span) = spans.next() {
            if let Some(next) = spans.next() {
                span.append(&next);
            }
            span.pack();
            kept.push(span);
        }
        self.spans = kept;
        self.doublings += 1;
    }

    /// The spans, in order of time.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }
}
