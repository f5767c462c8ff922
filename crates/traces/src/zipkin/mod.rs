//! Spans as Zipkin's (JSON): version 2, and what is read of version 1.
//!
//! Zipkin counts microseconds. Processor time, queueing and the like go along as tags, and so
//! do the nanoseconds.

mod annotations;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use read::decode;
pub use write::write;

/// Where spans are posted.
pub const PATH: &str = "/api/v2/spans";

/// Content type of a list of spans.
pub const JSON: &str = "application/json";

/// The least time stamp and length, in microseconds: 0 means that it is not known.
const LEAST: u64 = 1;
