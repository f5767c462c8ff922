//! What happened to requests: spans, how their context travels, where they are kept.

pub mod context;
pub mod hex;
mod recorder;
mod sampling;

pub use recorder::Recorder;
pub use sampling::Sampler;

use std::sync::Arc;

use crate::Nanos;
use crate::draw::{SpanId, TraceId};

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
    /// A service does work of its own.
    Work,
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
    /// Server: the path. Client: the path asked for. Work: `cpu`, `sleep` and so on.
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
