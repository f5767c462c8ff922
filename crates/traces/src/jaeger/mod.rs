//! Spans as Jaeger's query service and its page give and take them: JSON, a list of traces or
//! one alone (`model/json` of jaegertracing/jaeger).
//!
//! Times are in microseconds; the nanoseconds go along as tags. A span names its service by a
//! process of its trace, and its parent by a reference.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use read::decode;
pub use write::write;

/// Keys with which such a file begins, unlike OTLP's.
pub const KEYS: [&str; 8] = [
    "data",
    "total",
    "limit",
    "offset",
    "errors",
    "traceID",
    "spans",
    "processes",
];
