//! A body of HTTP/2 on its way to HTTP/1.1.

use std::task::{Context, Poll};

use h2::RecvStream;

use super::ROOM;
use super::heads::write_trailers;
use crate::http1::write;

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
    body: Option<RecvStream>,
    framing: Framing,
    out: Vec<u8>,
    taken: usize,
    /// Bytes of the body in `out`, which its sender may not replace yet.
    owed: usize,
    failed: bool,
}

impl Inward {
    /// A message whose head, in HTTP/1.1, is `head`.
    pub(super) fn new(head: Vec<u8>, body: RecvStream, framing: Framing) -> Self {
        Self {
            body: (!body.is_end_stream()).then_some(body),
            framing,
            out: head,
            taken: 0,
            owed: 0,
            failed: false,
        }
    }

    /// Whether all of it was taken.
    pub(super) fn ended(&self) -> bool {
        self.body.is_none() && self.out.is_empty()
    }

    /// Takes as many bytes as there are, and says how many. If they do not fill `into`, the
    /// context is woken when there are more.
    ///
    /// # Errors
    /// When the stream has failed; what came before was taken.
    pub(super) fn take(
        &mut self,
        into: &mut [u8],
        context: &mut Context<'_>,
    ) -> Result<usize, Failed> {
        let mut filled = 0;
        loop {
            let (from, to) = (&self.out[self.taken..], &mut into[filled..]);
            let length = from.len().min(to.len());
            to[..length].copy_from_slice(&from[..length]);
            (self.taken, filled) = (self.taken + length, filled + length);
            if filled == into.len() {
                return Ok(filled);
            }
            self.empty();
            if !self.failed {
                match self.collect(context) {
                    Ok(true) => continue,
                    Ok(false) => return Ok(filled),
                    Err(_) => self.failed = true,
                }
            }
            return if filled > 0 { Ok(filled) } else { Err(Failed) };
        }
    }

    /// All of `out` was taken.
    fn empty(&mut self) {
        self.out.clear();
        self.taken = 0;
        // Bodies rest: their memory need not.
        self.out.shrink_to(ROOM);
        if let Some(body) = &mut self.body {
            // Refused only when the stream has failed, which the next look tells.
            let _ = body
                .flow_control()
                .release_capacity(std::mem::take(&mut self.owed));
        }
    }

    /// Takes in a part of the body; whether there was any.
    fn collect(&mut self, context: &mut Context<'_>) -> Result<bool, h2::Error> {
        let Some(body) = &mut self.body else {
            return Ok(false);
        };
        match body.poll_data(context) {
            Poll::Ready(Some(part)) => {
                let part = part?;
                self.owed += part.len();
                match self.framing {
                    _ if part.is_empty() => {}
                    Framing::Exactly => self.out.extend_from_slice(&part),
                    Framing::Chunked => write::chunk(&part, &mut self.out),
                    // An answer to `HEAD` with a body: nobody can take it.
                    Framing::None => {}
                }
            }
            Poll::Ready(None) => {
                let Poll::Ready(trailers) = body.poll_trailers(context) else {
                    return Ok(false);
                };
                let trailers = trailers?;
                if self.framing == Framing::Chunked {
                    let mut lines = Vec::new();
                    if let Some(trailers) = trailers {
                        write_trailers(&trailers, &mut lines);
                    }
                    write::last_chunk(&lines, &mut self.out);
                }
                self.body = None;
            }
            Poll::Pending => return Ok(false),
        }
        Ok(true)
    }
}
