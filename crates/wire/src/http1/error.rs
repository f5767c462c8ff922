//! Why an answer could not be taken.

use super::ChunkError;

/// Why an answer could not be taken. The connection is of no further use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ResponseError {
    /// The first line is not a status line.
    #[error("the answer does not begin with a status line of HTTP/1.0 or HTTP/1.1")]
    StatusLine,
    /// The status has three digits, but is below 100.
    #[error("the answer has a status below 100")]
    Status,
    /// A field line that is not one.
    #[error(
        "a line of the answer's head is not a header field (folded lines and space before the colon are refused)"
    )]
    Field,
    /// The head is larger than [`Limits::head_bytes`](super::Limits::head_bytes).
    #[error("the answer's head is larger than the limit")]
    HeadTooLarge,
    /// More fields than [`Limits::fields`](super::Limits::fields).
    #[error("the answer has more header fields than the limit")]
    TooManyFields,
    /// More interim answers than [`Limits::interim`](super::Limits::interim).
    #[error("more interim answers (status 1xx) than the limit came before the final one")]
    TooManyInterim,
    /// A `Content-Length` that is not a number of 64 bits.
    #[error("the answer's Content-Length is not a decimal number of 64 bits")]
    ContentLength,
    /// Several values of `Content-Length` that differ.
    #[error("the answer has several values of Content-Length that differ")]
    ContentLengthConflict,
    /// A `Transfer-Encoding` that cannot be: in HTTP/1.0, or chunked twice.
    #[error(
        "the answer's Transfer-Encoding cannot be (HTTP/1.0 has none, and chunked comes once, without parameters)"
    )]
    TransferEncoding,
    /// A `Trailer` before chunks that names a field which frames the body.
    #[error("the answer's Trailer names a field that frames the body")]
    Trailer,
    /// The chunks of the body are not what they should be.
    #[error(transparent)]
    Chunk(#[from] ChunkError),
    /// The stream ended before the first byte of an answer.
    #[error("the connection was closed before the answer began")]
    ClosedBefore,
    /// The stream ended within an answer.
    #[error("the connection was closed within the answer")]
    ClosedEarly,
}

impl ResponseError {
    /// The same as a short constant text, to count by.
    pub const fn cause(self) -> &'static str {
        match self {
            Self::StatusLine => "bad status line",
            Self::Status => "bad status",
            Self::Field => "bad header field",
            Self::HeadTooLarge => "head too large",
            Self::TooManyFields => "too many header fields",
            Self::TooManyInterim => "too many interim answers",
            Self::ContentLength => "bad content-length",
            Self::ContentLengthConflict => "conflicting content-length",
            Self::TransferEncoding => "bad transfer-encoding",
            Self::Trailer => "bad trailer",
            Self::Chunk(error) => error.cause(),
            Self::ClosedBefore => "closed before answer",
            Self::ClosedEarly => "closed early",
        }
    }

    /// Whether the target closed the connection, rather than broke the protocol.
    pub const fn is_closed(self) -> bool {
        matches!(self, Self::ClosedBefore | Self::ClosedEarly)
    }
}
