//! What happened to requests of any system: spans, the formats that carry them, where they are
//! kept, and the analysis of where latency comes from.
//!
//! ```text
//! OTLP, Zipkin, Jaeger ──read──▶ Vec<Span> ──▶ Store
//!                                    └───────▶ analysis (with what is known of the system)
//! ```
//!
//! Everything but the reading of clocks is pure.
//!
//! # What always holds
//!
//! - The parts of a latency add up: each request is cut along its critical path, to the nanosecond,
//!   and parts are averaged over the same requests.
//! - Nobody is accused by chance: a suspect or culprit is above what machine and chance do, and worth
//!   saying.

// Test code that `graph` shares names this crate as others do.
#[cfg(test)]
extern crate self as traces;

pub mod analysis;
mod any;
mod attributes;
mod clock;
pub mod context;
pub mod failure;
pub mod hex;
pub mod ids;
pub mod jaeger;
mod lenient;
pub mod names;
mod normalise;
pub mod otlp;
mod parts;
#[cfg(test)]
mod random_spans;
#[cfg(test)]
pub(crate) mod samples;
mod store;
pub mod zipkin;

pub use any::{Decoded, Form, decode, decode_posted, read};
pub use clock::{Epoch, Origin};
pub use ids::{SpanId, TraceId};
pub use normalise::{join_paths, normalise, part_requests};
pub use store::{Store, StoreCounts, StoreLimits, Summary, TraceFilter};

use std::sync::Arc;

/// Nanoseconds of a monotonic clock that all processes of a machine share, or since 1970
/// ([`Origin`] says which), or a length of time on it.
pub type Nanos = u64;

/// A text that many spans share: the name of a service, of a step, of a path.
pub type Name = Arc<str>;

/// What a span is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SpanKind {
    /// A service handles a request: from its first byte to the last one of the answer.
    Server,
    /// A service waits for another one: one attempt of a call, from the moment when the
    /// step wanted it to the end of the answer.
    Client,
    /// A service does work of its own, which was asked for by a profile.
    Work,
    /// A stretch within a service of another system: nothing is known of it but its name.
    Internal,
}

/// One thing that a service did for a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// The request of the client.
    pub trace: TraceId,
    /// Its own.
    pub id: SpanId,
    /// The span that caused it; zero: none. A server's parent is the client span of its
    /// caller.
    pub parent: SpanId,
    /// What it is about.
    pub kind: SpanKind,
    /// Who did it.
    pub service: Name,
    /// Server: the path. Client: the path asked for. Work: `cpu`, `sleep` and so on. Of other
    /// systems: what they call it.
    pub name: Name,
    /// Client: who was called. Otherwise empty.
    pub peer: Name,
    /// When it began.
    pub start: Nanos,
    /// When it ended; not before `start`.
    pub end: Nanos,
    /// Work: processor time that it used. Otherwise 0.
    pub cpu: Nanos,
    /// Of the time between both, what passed before it could begin. Work: until a worker
    /// was free. Client: until a connection was free and made. Server: from the moment
    /// when the kernel told of the request to when it was looked at.
    pub queue: Nanos,
    /// HTTP's status; 0: none (of a client span: there was no answer).
    pub status: u16,
    /// Client: counted from 0.
    pub attempt: u8,
    /// Which version of the profile was in force.
    pub revision: u32,
    /// Why it failed, if it did: `timeout`, `refused`, `reset`, … Otherwise empty.
    pub cause: &'static str,
}

impl Span {
    /// One of which nothing is told but its trace, its kind and the names of it: whose it is,
    /// what it is about, and who was called.
    pub fn blank(trace: TraceId, kind: SpanKind, names: [Name; 3]) -> Self {
        let [service, name, peer] = names;
        Self {
            trace,
            id: SpanId::default(),
            parent: SpanId::default(),
            kind,
            service,
            name,
            peer,
            start: 0,
            end: 0,
            cpu: 0,
            queue: 0,
            status: 0,
            attempt: 0,
            revision: 0,
            cause: "",
        }
    }

    /// How long it took.
    pub fn length(&self) -> Nanos {
        self.end.saturating_sub(self.start)
    }

    /// Whether it failed or was given up. Of an answer that blames the request (4xx) the
    /// status decides; a good one may still have failed after its head.
    pub fn has_failed(&self) -> bool {
        self.status >= 500 || self.status < 400 && !self.cause.is_empty()
    }
}

/// Why spans could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The text or message is not one of the format.
    #[error("read spans as {format}: {cause}")]
    Form {
        /// What was expected.
        format: &'static str,
        /// What is wrong with it, and where.
        cause: String,
    },
    /// A posted body has more spans, attributes and other values than are read at once.
    #[error(
        "read spans: they have more than {} attributes and other parts; send fewer at once",
        units::grouped(*.most as u64)
    )]
    Parts {
        /// How many it may have.
        most: usize,
    },
    /// An id is missing, zero or too long.
    #[error("read spans: {what} of span {place} is not an id; expected {}", expected(.what))]
    Id {
        /// Counted from 1.
        place: usize,
        /// Which of its ids.
        what: &'static str,
    },
}

impl ReadError {
    fn form<E: std::fmt::Display>(format: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Form {
            format,
            cause: error.to_string(),
        }
    }
}

fn expected(what: &str) -> &'static str {
    match what {
        "traceId" => "16 or 32 hexadecimal digits that are not all zero",
        _ => "16 hexadecimal digits that are not all zero",
    }
}
