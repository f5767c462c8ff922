//! Why an exchange or a whole connection failed.

use h2::Reason;

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

impl From<&h2::Error> for Http2Error {
    fn from(error: &h2::Error) -> Self {
        if let Some(io) = error.get_io() {
            return Self::of_io(io.kind());
        }
        match error.reason() {
            Some(reason) if error.is_remote() => Self::GoAway(reason),
            Some(reason) => Self::Protocol(reason),
            None => Self::Request(error.to_string()),
        }
    }
}

impl From<&h2::Error> for StreamError {
    fn from(error: &h2::Error) -> Self {
        if let Some(io) = error.get_io() {
            return match io.kind() {
                std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::BrokenPipe => Self::Closed,
                kind => Self::Io(kind),
            };
        }
        let reason = error.reason().unwrap_or(Reason::PROTOCOL_ERROR);
        match (error.is_remote(), error.is_go_away()) {
            (true, _) if reason == Reason::REFUSED_STREAM => Self::Refused,
            // Only streams that the peer left out end with it while the connection goes on.
            (true, true) if reason == Reason::NO_ERROR => Self::Refused,
            (true, true) => Self::GoAway(reason),
            (true, false) => Self::Reset(reason),
            (false, _) => Self::Protocol(reason),
        }
    }
}
