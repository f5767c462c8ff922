//! A whole answer.

use http::HeaderMap;

/// A whole answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its header fields.
    pub headers: HeaderMap,
    /// The fields behind its body, if there are any.
    pub trailers: Option<HeaderMap>,
    /// Bytes of the body.
    pub body_bytes: u64,
    /// The start of the body, as much as was asked for.
    pub body: Vec<u8>,
}
