//! Why replies cannot be read.

/// Why the replies of a connection cannot be read any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum RespError {
    /// A value begins with a byte that names no type.
    #[error("a reply begins with byte {0:#04x}, which names no type of RESP")]
    Type(u8),
    /// A number is none, or has a sign where none may be.
    #[error("a reply has a number or length that is none")]
    Number,
    /// A line or bulk string does not end with CRLF.
    #[error("a reply has a value that does not end with CRLF")]
    End,
    /// A value is longer than allowed.
    #[error("a reply has a value that is too long")]
    TooLong,
    /// Aggregates are nested deeper than allowed.
    #[error("a reply is nested deeper than {} levels", super::DEEPEST)]
    TooDeep,
    /// A push stands within a reply, or nothing follows attributes.
    #[error("a reply has a push within it")]
    Push,
}

impl RespError {
    /// The same as a short constant text, to count by.
    pub const fn cause(self) -> &'static str {
        match self {
            Self::Type(_) => "bad resp type",
            Self::Number => "bad resp number",
            Self::End => "bad resp line end",
            Self::TooLong => "resp value too long",
            Self::TooDeep => "resp nested too deep",
            Self::Push => "bad resp push",
        }
    }
}
