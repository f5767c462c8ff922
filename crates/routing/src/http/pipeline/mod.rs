//! What happens to a request and to its answer, without any socket.
//!
//! ```text
//! admit ──▶ refused: write_refusal, write_health
//!   │
//!   ▼
//! write_request (each attempt) ──▶ failed: retry::judge
//!   │
//!   ▼
//! write_answer, write_trailers ──▶ access_log::write_line
//! ```

mod client;
mod exchange;
mod refusal;
pub mod retry;

use std::sync::Arc;

use rand::Rng;
use wire::http1::RequestHead;

pub use client::{Client, TlsFacts};
pub use exchange::{Exchange, Instance, Progress, Sticky, Times, Upgrade};
pub use refusal::Refusal;

use super::settings::HttpSettings;
use crate::table::{Endpoint, Lookup, Table};

/// What to do with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Answer it with [`Pipeline::write_refusal`].
    Answer(Refusal),
    /// Answer it with [`Pipeline::write_health`].
    HealthCheck,
    /// Send it to an endpoint of [`Exchange::pool`].
    Forward,
}

/// How the body of a backend's answer ends, as its head says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerBody {
    /// After so many bytes; 0: there is none.
    Exactly(u64),
    /// With the last chunk.
    Chunked,
    /// With the connection.
    UntilClose,
}

/// A backend's answer.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// Its status.
    pub status: u16,
    /// Its reason; used for 101 alone, as the client is told the standard ones.
    pub reason: &'a [u8],
    /// Its field lines, as they came.
    pub fields: &'a [u8],
    /// How its body ends.
    pub body: AnswerBody,
}

/// How the body is written to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientBody {
    /// There is none: `HEAD`, 204, 304.
    None,
    /// As it is, so many bytes.
    Exactly(u64),
    /// In chunks.
    Chunked,
    /// As it is, and then the connection is closed.
    UntilClose,
    /// The connection is a tunnel from here on.
    Tunnel,
}

/// What was promised to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promise {
    /// How the body is to be written.
    pub body: ClientBody,
    /// Whether the client's connection goes on behind the answer.
    pub keep_alive: bool,
}

/// The rules for requests and answers of one router.
#[derive(Debug)]
pub struct Pipeline {
    settings: Arc<HttpSettings>,
}

impl Pipeline {
    /// The rules that the settings ask for.
    pub fn new(settings: Arc<HttpSettings>) -> Self {
        Self { settings }
    }

    /// The settings.
    pub fn settings(&self) -> &Arc<HttpSettings> {
        &self.settings
    }

    /// Looks at a request: begins the exchange anew, finds its pool, prepares its fields.
    pub fn admit(
        &self,
        head: &RequestHead,
        client: &Client,
        table: &Table,
        now: Times,
        random: &mut impl Rng,
        exchange: &mut Exchange,
    ) -> Admission {
        let _ = (client, random);
        exchange.progress = Progress::default();
        exchange.start = now;
        match table.lookup(head.field("Host").unwrap_or_default(), head.target()) {
            Lookup::Found(pool) => {
                exchange.pool = Some(pool);
                Admission::Forward
            }
            Lookup::Empty(_) => Admission::Answer(Refusal::NoEndpoints),
            Lookup::Nothing => Admission::Answer(Refusal::UnknownRoute),
        }
    }

    /// Appends the head of the request as the endpoint is to see it. May be called again
    /// for the next attempt. `endpoint` is `None` on the way to a route service.
    pub fn write_request(
        &self,
        head: &RequestHead,
        exchange: &mut Exchange,
        endpoint: Option<&Endpoint>,
        out: &mut Vec<u8>,
    ) {
        let _ = (exchange, endpoint);
        out.extend_from_slice(head.bytes());
    }

    /// Appends the head of a backend's answer as the client is to see it. `keep_alive`:
    /// whether the router would let the client's connection go on.
    pub fn write_answer(
        &self,
        head: &RequestHead,
        exchange: &mut Exchange,
        answer: &Answer<'_>,
        keep_alive: bool,
        now: Times,
        out: &mut Vec<u8>,
    ) -> Promise {
        let _ = (head, now);
        exchange.status = answer.status;
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        out.extend_from_slice(answer.fields);
        out.extend_from_slice(b"\r\n");
        let body = match answer.body {
            AnswerBody::Exactly(length) => ClientBody::Exactly(length),
            AnswerBody::Chunked => ClientBody::Chunked,
            AnswerBody::UntilClose => ClientBody::UntilClose,
        };
        Promise { body, keep_alive }
    }

    /// Appends an interim answer (1xx, not 101) as the client is to see it.
    pub fn write_interim(&self, status: u16, fields: &[u8], out: &mut Vec<u8>) {
        let _ = (status, fields, out);
    }

    /// Appends the field lines of a trailer section, of a request or of an answer, as the
    /// other side is to see them, without the empty line.
    pub fn write_trailers(&self, fields: &[u8], exchange: &mut Exchange, out: &mut Vec<u8>) {
        let _ = exchange;
        out.extend_from_slice(fields);
    }

    /// Appends a whole answer that the router makes itself, and notes status, router error
    /// and length for the log. Says whether the client's connection goes on.
    pub fn write_refusal(
        &self,
        head: &RequestHead,
        exchange: &mut Exchange,
        refusal: Refusal,
        keep_alive: bool,
        now: Times,
        out: &mut Vec<u8>,
    ) -> bool {
        let _ = (head, exchange, refusal, now);
        out.extend_from_slice(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        keep_alive
    }

    /// Appends the answer to a health check: 200, or 503 when the router is not healthy.
    /// Says whether the client's connection goes on.
    pub fn write_health(
        &self,
        head: &RequestHead,
        exchange: &mut Exchange,
        healthy: bool,
        keep_alive: bool,
        now: Times,
        out: &mut Vec<u8>,
    ) -> bool {
        let _ = (head, exchange, healthy, now);
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n");
        keep_alive
    }
}
