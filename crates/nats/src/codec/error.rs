//! Why bytes are not the protocol.

use std::fmt;

/// The beginning of what a peer sent, for messages about it: at most 64 bytes, with
/// everything but printable ASCII escaped.
#[derive(Clone, PartialEq, Eq)]
pub struct Excerpt(Box<[u8]>);

impl Excerpt {
    const MOST_BYTES: usize = 64;

    /// The beginning of `bytes`.
    pub fn new(bytes: &[u8]) -> Self {
        Self(bytes[..bytes.len().min(Self::MOST_BYTES)].into())
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

impl fmt::Debug for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why bytes are not the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// The line begins with no operation.
    #[error("read a frame: {0} is no operation of NATS; is the peer a NATS server or client?")]
    UnknownOperation(Excerpt),
    /// The operation has other arguments.
    #[error("read a frame: found {line}; expected {expected}")]
    Arguments {
        /// How the operation is written.
        expected: &'static str,
        /// What came.
        line: Excerpt,
    },
    /// A line does not end.
    #[error("read a frame: the line {line} has more than {most} bytes")]
    LongLine {
        /// Bytes that a line may have.
        most: usize,
        /// How it begins.
        line: Excerpt,
    },
    /// A payload is too large.
    #[error("read a frame: a payload of {found} bytes; at most {most} are taken (max_payload)")]
    LargePayload {
        /// Bytes that it would have.
        found: u64,
        /// Bytes that it may have.
        most: usize,
    },
    /// A payload is longer or shorter than its line says.
    #[error("read a frame: no end of line behind the {0} bytes of a payload")]
    PayloadEnd(usize),
    /// The operation is one of the other side.
    #[error("read a frame: {0} is sent by the other side of a connection only")]
    WrongSide(&'static str),
}
