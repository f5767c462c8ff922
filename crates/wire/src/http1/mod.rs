//! Answers and requests of HTTP/1.1 (RFC 9112), scanned in place.
//!
//! A [`ResponseScanner`] is given the bytes that a connection received, tells its
//! [`Sink`] what they hold, and says where an answer ends. It owns no buffer: what it
//! cannot use yet, a head or a chunk's size in part, stays with the caller, who calls
//! again with more.
//!
//! What is accepted beyond the letter: a bare LF ends a line of the head and of the
//! trailers (RFC 9112 section 2.2 allows it), and empty lines before a status line are
//! skipped. What is refused although some accept it: folded lines, space before a
//! field's colon, a bare LF in the framing of chunks, a CR alone anywhere.
//!
//! A [`RequestScanner`] does the same for a server, and is stricter: whoever sends
//! requests on must not read them in another way than the next one.

use std::mem::MaybeUninit;

use httparse::Header;

mod chunked;
mod error;
mod fields;
mod known;
mod length;
mod request;
mod scanner;
#[cfg(test)]
mod tests;
pub mod write;

pub use chunked::ChunkError;
pub use error::ResponseError;
pub use fields::{field, fields};
pub use known::KnownHead;
pub use length::BodyLength;
pub use request::{BodyScan, RequestBody, RequestError, RequestHead, RequestScanner};
pub use scanner::ResponseScanner;

/// Most header fields that [`Limits::fields`] can allow. A field costs its reader many times
/// the three bytes that it may consist of.
pub const MOST_FIELDS: usize = 16 * 1024;

/// Header fields that stand on the stack while they are read. Heads with more are rare, and
/// read twice; trailers cannot have more.
const FIELDS_ON_STACK: usize = 256;

/// Bounds of what a target may send beside the body, which has none: it is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one head, and of one trailer section. Default 64 KiB.
    pub head_bytes: usize,
    /// Fields of one head; at most [`MOST_FIELDS`]. Of a trailer section 256 at most, which
    /// is the default.
    pub fields: usize,
    /// Bytes of the line before a chunk: its size and extensions. Default 4 KiB.
    pub chunk_line_bytes: usize,
    /// Interim answers (status 1xx) before the final one. Default 32.
    pub interim: u32,
    /// Read an answer as Go's client does: a list of lengths is none, not even of equal ones;
    /// the only coding is `chunked`, which HTTP/1.0 has not, whatever it says; what an answer
    /// without a body says of one has to be right too; lengths that are written in two ways
    /// differ; a `Trailer` before chunks names nothing that frames them; and several spaces may
    /// stand around the status. Default false.
    pub as_go: bool,
}

impl Limits {
    /// Those of [`Default`].
    pub const DEFAULT: Self = Self {
        head_bytes: 64 * 1024,
        fields: FIELDS_ON_STACK,
        chunk_line_bytes: 4 * 1024,
        interim: 32,
        as_go: false,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Room for the fields of a head that has more of them than stand on the stack; `bytes` is
/// what came of the head.
fn room_for_fields<'h>(limits: &Limits, bytes: usize) -> Vec<MaybeUninit<Header<'h>>> {
    // `a:` and a line end; one more, so that a head of nothing else is not one too many.
    let most = limits.fields.min(MOST_FIELDS).min(bytes / 3 + 1);
    std::iter::repeat_with(MaybeUninit::uninit)
        .take(most)
        .collect()
}

/// What is told of an answer, in the order of the bytes. Everything is ignored unless
/// a method is written; `()` ignores all.
pub trait Sink {
    /// An interim head (status 1xx, but not 101): its status, and its field lines as they
    /// came.
    fn interim(&mut self, status: u16, fields: &[u8]) {
        let _ = (status, fields);
    }

    /// How the body ends whose head is told next.
    fn length(&mut self, length: BodyLength) {
        let _ = length;
    }

    /// A final head: its status, and its field lines as they came, each with its line
    /// end. See [`fields`].
    fn head(&mut self, status: u16, fields: &[u8]) {
        let _ = (status, fields);
    }

    /// A part of the body, not empty, free of chunk framing.
    fn body(&mut self, part: &[u8]) {
        let _ = part;
    }

    /// The trailer fields of a chunked body, if there are any, in the same form.
    fn trailers(&mut self, fields: &[u8]) {
        let _ = fields;
    }
}

impl Sink for () {}

/// What the request lets its answer be (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Expect {
    /// An answer whose head says how its body ends.
    #[default]
    Body,
    /// An answer without a body, whatever its head says: the request was `HEAD`.
    NoBody,
    /// A tunnel, if the status is 2xx: the request was `CONNECT`.
    Tunnel,
}

impl Expect {
    /// What a method lets its answer be. Methods are case-sensitive.
    pub fn of_method(method: &str) -> Self {
        match method {
            "HEAD" => Self::NoBody,
            "CONNECT" => Self::Tunnel,
            _ => Self::Body,
        }
    }
}

/// How far a scan came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scan {
    /// Bytes of the input that are done with. The rest has to be given again: with
    /// more behind it, or, after an answer's end, as the start of the next one.
    pub consumed: usize,
    /// The answer that ended, if one did.
    pub complete: Option<Complete>,
}

/// A whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Complete {
    /// Its status.
    pub status: u16,
    /// Whether another request may be sent on the connection.
    pub keep_alive: bool,
    /// Bytes of the body, chunk framing not counted.
    pub body_bytes: u64,
    /// The bytes that follow are another protocol's: the status was 101, or 2xx to
    /// `CONNECT`.
    pub upgraded: bool,
}
