//! Why a WebSocket connection cannot go on.

/// Why a WebSocket connection cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum WebSocketError {
    /// The handshake was answered with another status than 101.
    #[error("the handshake was answered with status {0}, expected 101")]
    Status(u16),
    /// The answer to the handshake lacks `Upgrade: websocket` or `Connection: upgrade`.
    #[error("the answer to the handshake does not upgrade the connection to websocket")]
    NotUpgraded,
    /// `Sec-WebSocket-Accept` is not what the key asks for.
    #[error("Sec-WebSocket-Accept in the answer to the handshake does not fit the key")]
    Accept,
    /// The answer names an extension or a subprotocol, and none was offered.
    #[error("the answer to the handshake chooses an extension, and none was offered")]
    Extension,
    /// A reserved bit is set, which only an extension may do.
    #[error("a frame has a reserved bit set, and no extension was agreed on")]
    ReservedBit,
    /// A kind of frame that is not defined.
    #[error("a frame has an opcode that is not defined")]
    Opcode,
    /// A frame of the server is masked.
    #[error("a frame from the server is masked")]
    Masked,
    /// A length with more bytes than it needs, or above 2^63 - 1.
    #[error("a frame's length is not in its shortest form, or is above 2^63 - 1")]
    Length,
    /// A control frame that is fragmented or longer than 125 bytes.
    #[error("a control frame is fragmented or longer than 125 bytes")]
    Control,
    /// A continuation without a start, or a start within a message.
    #[error("a fragment does not fit the message it stands in")]
    Fragment,
    /// A close frame with a code that may not be sent.
    #[error("a close frame is malformed, or has a code that may not be sent")]
    Close,
    /// A text that is not UTF-8.
    #[error("a text is not UTF-8")]
    Utf8,
    /// A message larger than the limit.
    #[error("a message is larger than the limit")]
    TooLarge,
    /// The stream ended without a close frame.
    #[error("the connection was closed without a close frame")]
    ClosedEarly,
}

impl WebSocketError {
    /// The same as a short constant text, to count by.
    pub const fn cause(self) -> &'static str {
        match self {
            Self::Status(_) => "not upgraded: other status",
            Self::NotUpgraded => "not upgraded",
            Self::Accept => "bad sec-websocket-accept",
            Self::Extension => "extension not offered",
            Self::ReservedBit => "reserved bit",
            Self::Opcode => "bad opcode",
            Self::Masked => "masked frame",
            Self::Length => "bad frame length",
            Self::Control => "bad control frame",
            Self::Fragment => "bad fragment",
            Self::Close => "bad close frame",
            Self::Utf8 => "bad utf-8",
            Self::TooLarge => "message too large",
            Self::ClosedEarly => "closed early",
        }
    }
}
