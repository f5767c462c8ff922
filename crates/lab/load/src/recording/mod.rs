//! What was seen: numbers of one span of time, which add up to those of longer spans,
//! of several threads and of several machines.

mod doubt;
mod failure;
mod kind;
mod span;
mod timeline;

use serde::{Deserialize, Serialize};

pub use doubt::{Delays, Doubt};
pub use failure::{Failure, NO_DESCRIPTORS, NO_PORTS, NONE_FREE, Phase};
pub use kind::Recording;
pub use span::{ConnectionCounts, MachineNoise, Span};
pub use timeline::Timeline;

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

#[cfg(test)]
mod tests;
