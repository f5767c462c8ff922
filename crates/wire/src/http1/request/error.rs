//! Why a request could not be taken, and what its sender is told.

use crate::http1::ChunkError;

/// Why a request could not be taken. The connection is of no further use after the
/// answer that says so, which is [`RequestError::answer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum RequestError {
    /// The first line is not a request line: method, target and version, each behind one
    /// space, ended by CRLF.
    #[error("the request does not begin with a request line")]
    RequestLine,
    /// The target has none of the four forms of RFC 9112 section 3.2, or a `%` in its
    /// path without two hexadecimal digits behind it.
    #[error("the request's target is not a path, an absolute URI, an authority or an asterisk")]
    Target,
    /// A version of another HTTP than 1.
    #[error("the request's version is not HTTP/1.0 or HTTP/1.1")]
    Version,
    /// HTTP/1.2 and above, of which nobody has heard.
    #[error("the request's version is HTTP/1, but neither HTTP/1.0 nor HTTP/1.1")]
    MinorVersion,
    /// The start of HTTP/2 without TLS (RFC 9113 section 3.4), which is not spoken there.
    #[error("the client speaks HTTP/2 where only HTTP/1 is spoken")]
    Http2Preface,
    /// A field's name with a space in it or behind it.
    #[error("a header field's name has a space in it or before the colon")]
    FieldName,
    /// A field line that is not one.
    #[error(
        "a line of the request's head is not a header field (folded lines, and lines that end without CRLF, are refused)"
    )]
    Field,
    /// The head is larger than [`Limits::head_bytes`](crate::http1::Limits::head_bytes).
    #[error("the request's head is larger than the limit")]
    HeadTooLarge,
    /// More fields than [`Limits::fields`](crate::http1::Limits::fields).
    #[error("the request has more header fields than the limit")]
    TooManyFields,
    /// HTTP/1.1 without a `Host`.
    #[error("the request has no Host, which HTTP/1.1 asks for")]
    HostMissing,
    /// More than one `Host`.
    #[error("the request has more than one Host")]
    HostConflict,
    /// A `Host` with bytes that no host name or address has.
    #[error("the request's Host is not a name or an address")]
    Host,
    /// A `Content-Length` that is not one decimal number of 64 bits; a list is
    /// refused too.
    #[error("the request's Content-Length is not a decimal number of 64 bits")]
    ContentLength,
    /// A `Content-Length` without a value; some senders mean 0 by it.
    #[error("the request's Content-Length is empty")]
    ContentLengthEmpty,
    /// Several fields `Content-Length` that differ.
    #[error("the request has several values of Content-Length that differ")]
    ContentLengthConflict,
    /// A `Transfer-Encoding` that is not `chunked` alone.
    #[error("the request's Transfer-Encoding is not chunked, the only one that is known")]
    TransferEncoding,
    /// `Transfer-Encoding` in HTTP/1.0, which has none (RFC 9112 section 6.1): whoever
    /// passed it on may have framed it otherwise.
    #[error("the request of HTTP/1.0 has a Transfer-Encoding, which that version has not")]
    TransferEncodingVersion,
    /// A `Trailer` that names a field which frames the request.
    #[error("the request's Trailer names a field that frames a request")]
    Trailer,
    /// An `Expect` other than `100-continue`.
    #[error("the request's Expect is not 100-continue, the only one that is known")]
    Expectation,
    /// The chunks of the body are not what they should be.
    #[error(transparent)]
    Chunk(#[from] ChunkError),
}

/// An answer as Go's `net/http` (and so gorouter) writes it before any handler is asked:
/// status line, two fields, and the status again as the body, which ends with the
/// connection.
macro_rules! answer {
    ($text:literal, $body:literal) => {
        concat!(
            "HTTP/1.1 ",
            $text,
            "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n",
            $body
        )
        .as_bytes()
    };
    ($text:literal) => {
        answer!($text, $text)
    };
}

impl RequestError {
    /// The status of the answer.
    pub const fn status(self) -> u16 {
        match self {
            Self::HeadTooLarge | Self::TooManyFields => 431,
            Self::TransferEncoding => 501,
            Self::Version => 505,
            Self::Expectation => 417,
            _ => 400,
        }
    }

    /// The whole answer, after which the connection is closed. Texts as recorded from
    /// gorouter; no `Date`, as there.
    pub const fn answer(self) -> &'static [u8] {
        match self {
            Self::HeadTooLarge | Self::TooManyFields => {
                answer!("431 Request Header Fields Too Large")
            }
            Self::TransferEncoding => {
                answer!("501 Not Implemented", "Unsupported transfer encoding")
            }
            Self::Version => {
                answer!("505 HTTP Version Not Supported: unsupported protocol version")
            }
            // gorouter itself looks at the minor version, and says it as HTTP/1.0.
            Self::MinorVersion => b"HTTP/1.0 400 Bad Request\r\n\r\n",
            Self::HostMissing => answer!("400 Bad Request: missing required Host header"),
            Self::FieldName => answer!("400 Bad Request: invalid header name"),
            Self::Host => answer!("400 Bad Request: malformed Host header"),
            Self::Expectation => {
                b"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            }
            _ => answer!("400 Bad Request"),
        }
    }

    /// The body of [`RequestError::answer`].
    pub fn answer_body(self) -> &'static [u8] {
        let answer = self.answer();
        let body = memchr::memmem::find(answer, b"\r\n\r\n").map(|at| at + 4);
        body.and_then(|at| answer.get(at..)).unwrap_or_default()
    }

    /// The same as a short constant text, to count by.
    pub const fn cause(self) -> &'static str {
        match self {
            Self::RequestLine => "bad request line",
            Self::Target => "bad target",
            Self::Version | Self::MinorVersion => "bad version",
            Self::Http2Preface => "http/2 without tls",
            Self::Field | Self::FieldName => "bad header field",
            Self::HeadTooLarge => "head too large",
            Self::TooManyFields => "too many header fields",
            Self::HostMissing => "no host",
            Self::HostConflict => "conflicting host",
            Self::Host => "bad host",
            Self::ContentLength => "bad content-length",
            Self::ContentLengthEmpty => "empty content-length",
            Self::ContentLengthConflict => "conflicting content-length",
            Self::TransferEncoding | Self::TransferEncodingVersion => "bad transfer-encoding",
            Self::Trailer => "bad trailer",
            Self::Expectation => "unknown expectation",
            Self::Chunk(error) => error.cause(),
        }
    }

    /// Whether it was found in the body: the head was good, and may have been answered or
    /// sent on already.
    pub const fn in_body(self) -> bool {
        matches!(self, Self::Chunk(_))
    }
}
