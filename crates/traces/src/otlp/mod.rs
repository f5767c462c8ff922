//! Spans as OpenTelemetry's (OTLP over HTTP, protobuf or JSON).
//!
//! What OpenTelemetry has no name for goes along under `headroom.…`, so that spans which
//! are written here and read here are the same, to the nanosecond.

mod answer;
mod json;
mod message;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use answer::{Partial, rejected, status_protobuf};
pub(crate) use read::{decode_json, decode_json_lines, decode_protobuf, decode_protobuf_bodies};
pub use write::{write_json, write_protobuf};

/// Where spans are posted.
pub const PATH: &str = "/v1/traces";

/// Keys with which a file in JSON begins: OTLP's own, Tempo's for the same, and those under which
/// the APIs of Tempo and of Jaeger put a whole body.
pub const KEYS: [&str; 4] = ["resourceSpans", "batches", "trace", "result"];

/// Content type of protobuf.
pub const PROTOBUF: &str = "application/x-protobuf";

/// Names of attributes of resources.
mod names {
    pub(super) const SERVICE: &str = "service.name";
    /// `host.id` would have to outlast a restart of the machine.
    pub(super) const BOOT: &str = "headroom.boot_id";
    pub(super) const AHEAD: &str = "headroom.clock_ahead_ns";
}
