//! Bytes of the protocol, both directions.
//!
//! A [`Scanner`] finds one frame after the other in a growing buffer and borrows its parts
//! from it: nothing is copied or allocated. Facts: the client protocol of core NATS
//! (docs.nats.io, "Client Protocol").

pub mod encode;
mod error;
pub(crate) mod line;
#[cfg(test)]
mod tests;

pub use error::{Excerpt, ProtocolError};

/// Bounds of what a peer may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a line, its end included. nats-server: 4 KiB.
    pub line_bytes: usize,
    /// Bytes of a payload, headers included. nats-server: 1 MiB.
    pub payload_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            line_bytes: 4096,
            payload_bytes: 1024 * 1024,
        }
    }
}

/// One frame. An absent reply or queue is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// What a server says about itself: a JSON object.
    Info(&'a [u8]),
    /// What a client says about itself: a JSON object.
    Connect(&'a [u8]),
    /// A client publishes. `PUB <subject> [reply] <bytes>` and its twin with headers,
    /// `HPUB <subject> [reply] <header bytes> <all bytes>`.
    Pub(Message<'a>),
    /// A client subscribes. `SUB <subject> [queue] <sid>`
    Sub {
        /// What to, wildcards included.
        subject: &'a [u8],
        /// The group of which one member receives each message.
        queue: &'a [u8],
        /// The client's name for the subscription.
        sid: &'a [u8],
    },
    /// A client ends a subscription. `UNSUB <sid> [max messages]`
    Unsub {
        /// Which.
        sid: &'a [u8],
        /// After so many messages in all; 0: at once.
        after: u64,
    },
    /// A server delivers. `MSG <subject> <sid> [reply] <bytes>` and its twin `HMSG`.
    Msg {
        /// For which subscription.
        sid: &'a [u8],
        /// What.
        message: Message<'a>,
    },
    /// Are you there?
    Ping,
    /// Yes.
    Pong,
    /// The answer to each frame of a verbose client.
    Ok,
    /// An error, without its quotes.
    Err(&'a [u8]),
}

/// A message, as it is published or delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// Where it was published to.
    pub subject: &'a [u8],
    /// Where an answer is awaited.
    pub reply: &'a [u8],
    /// Headers as they came, `NATS/1.0` line and empty line included; empty: none.
    pub headers: &'a [u8],
    /// What was published.
    pub payload: &'a [u8],
}

/// A frame and the bytes that it took from the front of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scanned<'a> {
    /// To be removed from the input before the next scan.
    pub consumed: usize,
    /// The frame.
    pub frame: Frame<'a>,
}

/// Finds frames in a buffer that grows at its end.
///
/// Remembers how far it looked, so that a frame that comes in many small parts costs no
/// more than one that comes whole.
#[derive(Debug, Clone)]
pub struct Scanner {
    limits: Limits,
    /// Bytes at the front that hold no end of a line.
    searched: usize,
    /// Bytes that the frame at the front has, once its line is known.
    needed: usize,
}

impl Scanner {
    /// A scanner at the beginning of a connection.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            searched: 0,
            needed: 0,
        }
    }

    /// Bytes that the buffer must be able to hold so that the frame at its front fits.
    pub fn needed(&self) -> usize {
        self.needed
    }

    /// The frame at the front of `input`; `None` when it is not whole yet. Call it again
    /// with the same bytes and more behind them.
    ///
    /// # Errors
    /// When the bytes break the protocol or a bound. The connection is of no more use.
    pub fn scan<'a>(&mut self, input: &'a [u8]) -> Result<Option<Scanned<'a>>, ProtocolError> {
        // The first byte behind a payload says already whether its end is wrong.
        if input.len() + 1 < self.needed {
            return Ok(None);
        }
        let fresh = input.get(self.searched..).unwrap_or_default();
        let window = fresh.len().min(self.limits.line_bytes - self.searched);
        let Some(at) = memchr::memchr(b'\n', &fresh[..window]) else {
            self.searched += window;
            if self.searched >= self.limits.line_bytes {
                return Err(ProtocolError::LongLine {
                    most: self.limits.line_bytes,
                    line: Excerpt::new(input),
                });
            }
            return Ok(None);
        };
        let end = self.searched + at;
        let (line, behind) = (&input[..end], &input[end + 1..]);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let most = self.limits.payload_bytes;
        let parsed =
            line::usual(line, behind, most).unwrap_or_else(|| line::parse(line, behind, most))?;
        match parsed {
            line::Parsed::Whole { frame, payload } => {
                (self.searched, self.needed) = (0, 0);
                Ok(Some(Scanned {
                    consumed: end + 1 + payload,
                    frame,
                }))
            }
            line::Parsed::Payload(bytes) => {
                (self.searched, self.needed) = (end, end + 1 + bytes);
                Ok(None)
            }
        }
    }
}
