//! What was seen: numbers of one span of time, which add up to those of longer spans,
//! of several threads and of several machines.

mod doubt;
mod failure;
mod kind;
mod latencies;
mod span;
mod starved;
mod tenths;
mod timeline;
mod tried;

use serde::{Deserialize, Serialize};

pub use doubt::{Delays, Doubt};
pub use failure::{Failure, KEPT, NO_DESCRIPTORS, NO_PORTS, NONE_FREE, Phase, UNFIT};
pub use kind::Recording;
pub(crate) use latencies::BEYOND;
pub use latencies::Latencies;
pub use span::{ConnectionCounts, MachineNoise, Span};
pub use tenths::{Tenth, Tenths};
pub use timeline::Timeline;
pub use tried::Tried;

use crate::segment::{Model, Segment};
use crate::workload::Workload;

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
    /// What a reader should know of how it was sent.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// What is told of a load that has not ended.
const GOES_ON: &str = "the load goes on; these are its numbers so far";

impl Recorded {
    /// Of a segment that is about to begin.
    #[must_use]
    pub fn begun(segment: Segment) -> Self {
        Self {
            segment,
            began_unix_ns: 0,
            total: Span::empty(0),
            timeline: Timeline::default(),
            cut: Some(GOES_ON.to_owned()),
            lost: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Takes in a span that has just passed, now in nanoseconds of Unix time. The generator says
    /// when it began, and all that it recorded, once it has ended.
    pub fn pass(&mut self, span: &Span, now_unix_ns: i64) {
        if self.timeline.spans().is_empty() {
            let length = i64::try_from(span.end().as_nanos()).unwrap_or(0);
            self.began_unix_ns = now_unix_ns.saturating_sub(length);
            self.total = Span::empty(span.kinds.len());
        }
        self.total.append(span);
        self.timeline.push(span.clone());
    }

    /// Number for the first request after the segment: no request of it has that or a higher one.
    #[must_use]
    pub fn next_number(&self, workload: &Workload) -> u64 {
        let planned = self.total.planned;
        let used = match self.segment.model {
            Model::Open(_) => planned,
            // Each thread counts for its users alone, and those of one may have made all of them,
            // also the ones that found no connection.
            Model::Closed { .. } => {
                let threads = workload.share.threads.max(workload.threads);
                let made = planned + self.total.requests().unsendable();
                made.saturating_mul(threads.into())
            }
        };
        self.segment.first.saturating_add(used)
    }

    /// The segment's own time: what happened until its end, without what came later. A segment
    /// that is given by a number of requests may have had all of its answers before its time was
    /// over, and did not wait for that: it is as long all the same.
    #[must_use]
    pub fn sending(&self) -> Span {
        let mut own = match self.timeline.spans().is_empty() {
            true => self.total.clone(),
            false => self.sum(false),
        };
        let length = &self.segment.length;
        let by_number = length.requests.is_some() || length.duration.is_none();
        if by_number
            && self.cut.is_none()
            && self.segment.model.is_open()
            && let Some(lasts) = self.segment.lasts()
        {
            own.length = own.length.max(lasts.saturating_sub(own.start));
        }
        own
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
