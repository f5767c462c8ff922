//! A body of HTTP/2 on its way to HTTP/1.1.

use std::task::{Context, Poll};

use h2::RecvStream;

use super::ROOM;
use super::heads::write_trailers;
use crate::http1::write;
use crate::stream::{Stream, StreamError};

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

/// Why nothing more can be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InwardError {
    /// The stream of HTTP/2 failed.
    From,
    /// The connection of HTTP/1.1 failed, or takes no more.
    To,
}

/// One message on its way: bytes that wait to be written, and the body that follows.
#[derive(Debug)]
pub(super) struct Inward {
    body: Option<RecvStream>,
    framing: Framing,
    out: Vec<u8>,
    written: usize,
    /// Bytes of the body in `out`, which its sender may not replace yet.
    owed: usize,
}

impl Inward {
    /// A message whose head, in HTTP/1.1, is `head`.
    pub(super) fn new(head: Vec<u8>, body: RecvStream, framing: Framing) -> Self {
        Self {
            body: Some(body),
            framing,
            out: head,
            written: 0,
            owed: 0,
        }
    }

    /// Whether all of it was written.
    pub(super) fn ended(&self) -> bool {
        self.body.is_none() && self.out.is_empty()
    }

    /// Whether it goes on when the connection can be written.
    pub(super) fn wants_write(&self) -> bool {
        !self.out.is_empty()
    }

    /// Drops what is left.
    pub(super) fn abandon(&mut self) {
        (self.body, self.written) = (None, 0);
        self.out.clear();
    }

    /// Moves what can be moved now.
    pub(super) fn advance(
        &mut self,
        to: &mut Stream,
        context: &mut Context<'_>,
    ) -> Result<(), InwardError> {
        loop {
            let more = self.collect(context).map_err(|_| InwardError::From)?;
            self.write(to).map_err(|_| InwardError::To)?;
            if !self.out.is_empty() || !more {
                return Ok(());
            }
        }
    }

    /// Takes parts of the body until there is enough to write; whether there may be more.
    fn collect(&mut self, context: &mut Context<'_>) -> Result<bool, h2::Error> {
        while let Some(body) = &mut self.body {
            if self.out.len() >= ROOM {
                return Ok(true);
            }
            match body.poll_data(context) {
                Poll::Ready(Some(Ok(part))) => {
                    self.owed += part.len();
                    if part.is_empty() {
                        continue;
                    }
                    match self.framing {
                        Framing::Exactly => self.out.extend_from_slice(&part),
                        Framing::Chunked => write::chunk(&part, &mut self.out),
                        // An answer to `HEAD` with a body: nobody can take it.
                        Framing::None => {}
                    }
                }
                Poll::Ready(Some(Err(error))) => return Err(error),
                Poll::Ready(None) => {
                    let trailers = match body.poll_trailers(context) {
                        Poll::Ready(trailers) => trailers?,
                        Poll::Pending => return Ok(false),
                    };
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
        }
        Ok(false)
    }

    fn write(&mut self, to: &mut Stream) -> Result<(), StreamError> {
        while self.written < self.out.len() {
            match to.send(&self.out[self.written..])? {
                0 => return Ok(()),
                sent => self.written += sent,
            }
        }
        self.out.clear();
        self.written = 0;
        // Bodies rest: their memory need not.
        self.out.shrink_to(ROOM);
        if let Some(body) = &mut self.body {
            // Refused only when the stream has failed, which the next look tells.
            let _ = body
                .flow_control()
                .release_capacity(std::mem::take(&mut self.owed));
        }
        Ok(())
    }
}
