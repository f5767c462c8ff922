//! The conversation on one connection: when an answer is whole, and what it is.

use lab_load::Protocol;
use lab_load::recording::Phase;
use wire::http1::{Expect, Limits, ResponseError, ResponseScanner, Sink};

/// Most bytes of fields, and of body, that are kept of an answer for assertions and
/// values; the rest is counted and let go.
const MOST_KEPT: usize = 1024 * 1024;

/// Memory that each connection may keep for the next answer.
const USUAL: usize = 16 * 1024;

/// Parts of an answer that are looked at after its end.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) want_fields: bool,
    pub(super) want_body: bool,
    pub(super) fields: Vec<u8>,
    pub(super) body: Vec<u8>,
}

impl Kept {
    /// Begins a new answer.
    pub(super) fn begin(&mut self, want_fields: bool, want_body: bool) {
        (self.want_fields, self.want_body) = (want_fields, want_body);
        self.fields.clear();
        self.body.clear();
    }

    /// Gives back the memory of an answer that was larger than usual.
    pub(super) fn forget(&mut self) {
        if self.fields.capacity() + self.body.capacity() > USUAL {
            (self.fields, self.body) = (Vec::new(), Vec::new());
        }
    }
}

impl Sink for Kept {
    fn head(&mut self, _status: u16, fields: &[u8]) {
        if self.want_fields {
            keep(&mut self.fields, fields);
        }
    }

    fn body(&mut self, part: &[u8]) {
        if self.want_body {
            keep(&mut self.body, part);
        }
    }
}

fn keep(kept: &mut Vec<u8>, part: &[u8]) {
    let room = MOST_KEPT - kept.len().min(MOST_KEPT);
    kept.extend_from_slice(&part[..part.len().min(room)]);
}

/// A whole answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whole {
    /// Its status, where the protocol has one; else 0.
    pub(super) status: u16,
    /// Whether the connection can carry another request.
    pub(super) keep_alive: bool,
    /// Bytes of its body.
    pub(super) body_bytes: u64,
}

/// What a piece of input came to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken {
    /// Bytes that are done with; the rest is to be given again with more behind it.
    pub(super) consumed: usize,
    pub(super) whole: Option<Whole>,
}

/// Why there will be no whole answer.
pub(super) type Broken = (Phase, &'static str);

/// The conversation on one connection.
#[derive(Debug)]
pub(super) enum Talk {
    /// HTTP/1.1.
    Http1(ResponseScanner),
}

impl Talk {
    pub(super) fn new(_protocol: Protocol) -> Self {
        Self::Http1(ResponseScanner::new(Limits::default()))
    }

    /// Says that a request was sent, and whether its answer can have no body.
    #[inline]
    pub(super) fn asked(&mut self, no_body: bool) {
        match self {
            Self::Http1(scanner) => scanner.expect(match no_body {
                true => Expect::NoBody,
                false => Expect::Body,
            }),
        }
    }

    #[inline]
    pub(super) fn take(&mut self, input: &[u8], kept: &mut Kept) -> Result<Taken, Broken> {
        match self {
            Self::Http1(scanner) => {
                let scan = scanner.scan(input, kept).map_err(broken)?;
                let whole = scan.complete.map(|complete| Whole {
                    status: complete.status,
                    keep_alive: complete.keep_alive && !complete.upgraded,
                    body_bytes: complete.body_bytes,
                });
                Ok(Taken {
                    consumed: scan.consumed,
                    whole,
                })
            }
        }
    }

    /// Says that the target sends no more.
    pub(super) fn end(&mut self, kept: &mut Kept) -> Result<Whole, Broken> {
        match self {
            Self::Http1(scanner) => {
                let complete = scanner.end(kept).map_err(broken)?;
                Ok(Whole {
                    status: complete.status,
                    keep_alive: false,
                    body_bytes: complete.body_bytes,
                })
            }
        }
    }
}

fn broken(error: ResponseError) -> Broken {
    let phase = match error {
        ResponseError::ClosedBefore | ResponseError::ClosedEarly => Phase::Read,
        _ => Phase::Protocol,
    };
    (phase, error.cause())
}
