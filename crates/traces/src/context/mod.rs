//! The context of a trace in the header fields of requests: W3C Trace Context
//! (`traceparent`, `tracestate`) and Zipkin's B3, in one field or in several.
//!
//! Both forms are always read. What is malformed counts as not there, as both
//! specifications ask: the request then starts a trace of its own.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::{PASSED_BYTES, read};
pub use write::{Forms, Outgoing, write};

use crate::{SpanId, TraceId};

/// What a request says about the trace that it belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Context {
    /// The trace; zero: the request has none.
    pub trace: TraceId,
    /// The span of the caller; zero together with the trace.
    pub parent: SpanId,
    /// Whether the caller wants the trace recorded; `None`: it leaves that to us. A
    /// caller may decide without naming a trace.
    pub sampled: Option<bool>,
    /// Whether the caller marked the trace as one to look at (B3's debug flag). It is then
    /// recorded too.
    pub debug: bool,
}
