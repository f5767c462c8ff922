//! A body of HTTP/2 on its way to HTTP/1.1.

use super::ROOM;
use crate::http1::write;
use crate::http2::codec::{Connection, Reading, StreamKey};

/// How the body is framed in HTTP/1.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// There is none.
    None,
    /// Its length was told; HTTP/2 has checked it.
    Exactly,
    /// In chunks.
    Chunked,
}

/// The stream failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Failed;

/// One message on its way: bytes that wait to be taken, and the body that follows.
#[derive(Debug)]
pub(super) struct Inward {
    framing: Framing,
    /// The head, or chunks, of which the first bytes were taken.
    out: Vec<u8>,
    taken: usize,
    /// All of the body was taken over.
    whole: bool,
    failed: bool,
}

impl Inward {
    /// A message whose head, in HTTP/1.1, is `head`. `whole`: it has no body.
    pub(super) fn new(head: Vec<u8>, framing: Framing, whole: bool) -> Self {
        Self {
            framing,
            out: head,
            taken: 0,
            whole,
            failed: false,
        }
    }

    /// Whether all of it was taken.
    pub(super) fn ended(&self) -> bool {
        self.whole && self.out.is_empty()
    }

    /// Takes as many bytes as there are, and says how many. If they do not fill `into`, the
    /// stream is touched when there are more.
    ///
    /// # Errors
    /// When the stream has failed; what came before was taken.
    pub(super) fn take(
        &mut self,
        into: &mut [u8],
        connection: &mut Connection,
        key: StreamKey,
    ) -> Result<usize, Failed> {
        let mut filled = 0;
        loop {
            let (from, to) = (&self.out[self.taken..], &mut into[filled..]);
            let length = from.len().min(to.len());
            to[..length].copy_from_slice(&from[..length]);
            (self.taken, filled) = (self.taken + length, filled + length);
            if self.taken == self.out.len() {
                self.out.clear();
                self.taken = 0;
                // Bodies rest: their memory need not.
                self.out.shrink_to(ROOM);
            }
            if filled == into.len() || self.whole {
                return Ok(filled);
            }
            let direct = self.collect(&mut into[filled..], connection, key);
            match direct {
                Some(direct) => filled += direct,
                None if self.failed && filled == 0 => return Err(Failed),
                None => return Ok(filled),
            }
        }
    }

    /// Takes in a part of the body, of which so many bytes are in `into`; `None`: there is
    /// nothing to take.
    fn collect(
        &mut self,
        into: &mut [u8],
        connection: &mut Connection,
        key: StreamKey,
    ) -> Option<usize> {
        let body = connection.body(key);
        if body.is_empty() {
            match connection.reading(key) {
                Reading::Open => return None,
                Reading::Failed(_) => {
                    self.failed = true;
                    return None;
                }
                Reading::Ended => {}
            }
            self.whole = true;
            if self.framing == Framing::Chunked {
                let trailers = connection.take_trailers(key);
                let lines = trailers.as_ref().map(|it| it.lines());
                write::last_chunk(lines.unwrap_or_default(), &mut self.out);
            }
            return Some(0);
        }
        let (used, direct) = match self.framing {
            Framing::Exactly => {
                let length = body.len().min(into.len());
                into[..length].copy_from_slice(&body[..length]);
                (length, length)
            }
            Framing::Chunked => {
                let part = body.get(..ROOM).unwrap_or(body);
                write::chunk(part, &mut self.out);
                (part.len(), 0)
            }
            // An answer to `HEAD` with a body: nobody can take it.
            Framing::None => (body.len(), 0),
        };
        connection.use_body(key, used);
        Some(direct)
    }
}
