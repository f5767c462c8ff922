//! What was seen: numbers of one span of time, which add up to those of longer spans,
//! of several threads and of several machines.

mod doubt;
mod failure;
mod kind;
mod latencies;
mod span;
mod tenths;
mod timeline;
mod tried;

use serde::{Deserialize, Serialize};

pub use doubt::{Delays, Doubt};
pub use failure::{Failure, NO_DESCRIPTORS, NO_PORTS, NONE_FREE, Phase};
pub use kind::Recording;
pub(crate) use latencies::BEYOND;
pub use latencies::Latencies;
pub use span::{ConnectionCounts, MachineNoise, Span};
pub use tenths::{Tenth, Tenths};
pub use timeline::Timeline;
pub use tried::Tried;

use crate::segment::Segment;

/// A segment as it went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// What was asked.
    pub segment: Segment,
    /// When it began, in nanoseconds of Unix time.
    pub began_unix_ns: i64,
    /// All of it.
    pub total: Span,
    /// The same in the order of time, as many spans as memory allows; see [`Timeline`].
    pub timeline: Timeline,
    /// Why it ended before its time; `None`: it did not.
    pub cut: Option<String>,
    /// Workers lost on the way, by name.
    pub lost: Vec<String>,
}

impl Recorded {
    /// The segment's own time: what happened until its end, without what came later.
    #[must_use]
    pub fn sending(&self) -> Span {
        match self.timeline.spans().is_empty() {
            true => self.total.clone(),
            false => self.sum(false),
        }
    }

    /// What came after the end: the last answers, and requests that were due before and
    /// sent late.
    #[must_use]
    pub fn after_end(&self) -> Span {
        self.sum(true)
    }

    fn sum(&self, after_end: bool) -> Span {
        let mut sum = Span::empty(self.total.kinds.len());
        let spans = self.timeline.spans().iter();
        for span in spans.filter(|span| span.after_end == after_end) {
            sum.append(span);
        }
        sum
    }
}

#[cfg(test)]
mod tests;
