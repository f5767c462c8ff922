//! Why an exchange or a whole connection failed.

use super::Reason;

/// Why a connection is of no further use. Its streams have failed with
/// [`StreamError`]s of their own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Http2Error {
    /// Reading or writing failed.
    #[error("the connection broke: {0}")]
    Io(std::io::ErrorKind),
    /// The peer closed the connection, or said that it will (GOAWAY), with this code.
    #[error("the peer ended the connection: {0}")]
    GoAway(Reason),
    /// The peer closed the connection without a word.
    #[error("the peer closed the connection")]
    Closed,
    /// The peer broke the protocol; it was told so with this code.
    #[error("the peer broke HTTP/2: {0}")]
    Protocol(Reason),
    /// A request that cannot be sent, such as one without an authority.
    #[error("the request cannot be sent: {0}")]
    Request(String),
    /// As many streams are open as settings and peer allow.
    #[error("no stream is free on this connection")]
    Full,
}

/// Why one exchange failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The peer reset the stream with this code.
    #[error("the peer reset the stream: {0}")]
    Reset(Reason),
    /// The peer did nothing with the request (`REFUSED_STREAM`, or a GOAWAY that leaves
    /// the stream out); it can safely be sent again.
    #[error("the peer refused the stream")]
    Refused,
    /// The peer ended the connection before the answer, with this code.
    #[error("the peer ended the connection: {0}")]
    GoAway(Reason),
    /// The peer closed the connection before the end of the answer.
    #[error("the peer closed the connection within the exchange")]
    Closed,
    /// Reading or writing failed.
    #[error("the connection broke: {0}")]
    Io(std::io::ErrorKind),
    /// The answer broke the protocol.
    #[error("the answer broke HTTP/2: {0}")]
    Protocol(Reason),
}

impl StreamError {
    /// The same as a short constant text, to count by.
    pub fn cause(self) -> &'static str {
        match self {
            Self::Reset(Reason::INTERNAL_ERROR) => "stream reset: internal error",
            Self::Reset(Reason::ENHANCE_YOUR_CALM) => "stream reset: enhance your calm",
            Self::Reset(Reason::CANCEL) => "stream reset: cancel",
            Self::Reset(_) => "stream reset",
            Self::Refused => "stream refused",
            Self::GoAway(_) => "goaway",
            Self::Closed => "closed early",
            Self::Io(std::io::ErrorKind::ConnectionReset) => "reset",
            Self::Io(_) => "connection broke",
            Self::Protocol(_) => "bad http/2",
        }
    }

    /// Whether the peer broke the protocol, rather than refused or went away.
    pub const fn is_protocol(self) -> bool {
        matches!(self, Self::Protocol(_))
    }
}

impl Http2Error {
    pub(super) fn of_io(kind: std::io::ErrorKind) -> Self {
        match kind {
            std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::BrokenPipe => Self::Closed,
            kind => Self::Io(kind),
        }
    }

    /// The same as a short constant text, to count by.
    pub fn cause(&self) -> &'static str {
        match self {
            Self::Io(std::io::ErrorKind::ConnectionReset) => "reset",
            Self::Io(_) => "connection broke",
            Self::GoAway(_) => "goaway",
            Self::Closed => "closed early",
            Self::Protocol(_) => "bad http/2",
            Self::Request(_) => "bad request",
            Self::Full => "no free stream",
        }
    }
}

impl From<&Http2Error> for StreamError {
    /// What the end of a connection is to its streams.
    fn from(error: &Http2Error) -> Self {
        match error {
            Http2Error::Io(kind) => Self::Io(*kind),
            Http2Error::GoAway(reason) => Self::GoAway(*reason),
            Http2Error::Protocol(reason) => Self::Protocol(*reason),
            Http2Error::Closed | Http2Error::Request(_) | Http2Error::Full => Self::Closed,
        }
    }
}
