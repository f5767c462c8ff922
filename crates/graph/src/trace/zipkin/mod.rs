//! Spans as Zipkin's (version 2, JSON).
//!
//! Zipkin counts microseconds. Processor time, queueing and the like go along as tags.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::read;
pub use write::write;

/// Where spans are posted.
pub const PATH: &str = "/api/v2/spans";

/// Content type of a list of spans.
pub const JSON: &str = "application/json";

/// Names of tags.
mod tags {
    pub(super) const PATH: &str = "http.path";
    pub(super) const STATUS: &str = "http.status_code";
    pub(super) const ERROR: &str = "error";
    pub(super) const CPU: &str = "headroom.cpu_ns";
    pub(super) const QUEUE: &str = "headroom.queue_ns";
    pub(super) const REVISION: &str = "headroom.revision";
    pub(super) const ATTEMPT: &str = "headroom.attempt";
}
