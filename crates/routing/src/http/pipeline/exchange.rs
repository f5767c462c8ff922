//! What a router knows of one request while it is under way.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::table::{Endpoint, Nanos, Pool};

/// One moment on two clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// The monotonic clock: for differences.
    pub mono: Nanos,
    /// Nanoseconds since 1970, UTC: for what people read.
    pub wall: u64,
}

/// The protocol that a request asks to change to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Upgrade {
    /// It asks for none.
    #[default]
    None,
    /// WebSocket.
    WebSocket,
    /// Another one; it is passed on like a WebSocket.
    Other,
}

/// The instance that `X-CF-App-Instance` or `X-CF-Process-Instance` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instance<'a> {
    /// Guid of the application and index of the instance.
    App(&'a str, &'a str),
    /// Guid of the process (tag `process_id`), and the index if one is named.
    Process(&'a str, Option<&'a str>),
}

/// The instance that a cookie asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sticky<'a> {
    /// Its `private_instance_id`.
    pub instance: &'a [u8],
    /// No other will do.
    pub must: bool,
}

/// What the engine tells the log line of. All times are monotonic; 0: it did not happen.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// Bytes of the request's body that came from the client.
    pub request_body: u64,
    /// Bytes of the answer's body that were given to the client; 0 behind an upgrade.
    pub answer_body: u64,
    /// Attempts that failed.
    pub failed_attempts: u32,
    /// The first attempt began.
    pub backend_started: Nanos,
    /// The answer's head came, or the last attempt failed.
    pub backend_finished: Nanos,
    /// The last failed attempt ended.
    pub failed_finished: Nanos,
    /// Nanoseconds that the successful attempt took to connect; 0: the connection was there.
    pub dial: Nanos,
    /// Nanoseconds that its TLS handshake took.
    pub tls: Nanos,
    /// The router's own end of the connection to the endpoint.
    pub local: Option<SocketAddr>,
    /// The endpoint of the latest attempt.
    pub endpoint: Option<Arc<Endpoint>>,
}

/// What a router knows of one request. Made to be used again for the next request, so
/// that nothing is allocated once its buffers have grown.
#[derive(Debug, Default)]
pub struct Exchange {
    /// What the engine tells the log line of.
    pub progress: Progress,
    pub(crate) start: Times,
    pub(crate) status: u16,
    pub(crate) pool: Option<Arc<Pool>>,
    pub(crate) upgrade: Upgrade,
    pub(crate) idempotent: bool,
    pub(crate) router_error: String,
}

impl Exchange {
    /// The pool that serves the request; there is one when it is forwarded.
    pub fn pool(&self) -> Option<&Arc<Pool>> {
        self.pool.as_ref()
    }

    /// When the request's head was there.
    pub fn started(&self) -> Times {
        self.start
    }

    /// The status that was answered; 0: none yet.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The protocol that it asks to change to.
    pub fn upgrade(&self) -> Upgrade {
        self.upgrade
    }

    /// Whether it may be sent twice: no body and `GET`, `HEAD`, `OPTIONS` or `TRACE`, or a
    /// field `Idempotency-Key` or `X-Idempotency-Key`.
    pub fn idempotent(&self) -> bool {
        self.idempotent
    }

    /// The instance that the client names by header: no other will do.
    pub fn instance(&self) -> Option<Instance<'_>> {
        None
    }

    /// The instance that a cookie names.
    pub fn sticky(&self) -> Option<Sticky<'_>> {
        None
    }

    /// The value to hash, if the pool hashes a field and the request has it.
    pub fn hash_value<'h>(&self, head: &'h wire::http1::RequestHead) -> Option<&'h [u8]> {
        let name = &self.pool.as_ref()?.settings().hash_header;
        (!name.is_empty()).then(|| head.field(name)).flatten()
    }

    /// `X-Cf-RouterError`; empty: there is none.
    pub fn router_error(&self) -> &str {
        &self.router_error
    }
}
