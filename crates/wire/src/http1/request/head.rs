//! The head of a request.

use std::ops::Range;

/// How an HTTP/2 connection begins that was agreed on beforehand (RFC 9113 section 3.4), as
/// far as it looks like a request. What follows it is no HTTP/1.
pub(super) const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\n";

/// How a request's body ends (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RequestBody {
    /// There is none.
    #[default]
    None,
    /// After so many bytes, at least one.
    Exactly(u64),
    /// With the last chunk.
    Chunked,
}

/// The head of a request, with the bytes that it came in. Made to be used again for the
/// next one, so that nothing is allocated for a request once it has grown.
#[derive(Debug, Clone, Default)]
pub struct RequestHead {
    pub(super) bytes: Vec<u8>,
    pub(super) method: Range<u32>,
    pub(super) target: Range<u32>,
    pub(super) fields: Vec<(Range<u32>, Range<u32>)>,
    pub(super) minor: u8,
    pub(super) framing: RequestFraming,
}

/// What the fields say about the request's frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RequestFraming {
    pub(super) body: RequestBody,
    pub(super) keep_alive: bool,
    pub(super) expects_continue: bool,
    pub(super) length_ignored: bool,
}

impl RequestHead {
    /// The method, as it came.
    pub fn method(&self) -> &[u8] {
        self.part(&self.method)
    }

    /// The target, as it came: any of the four forms.
    pub fn target(&self) -> &[u8] {
        self.part(&self.target)
    }

    /// The version behind `HTTP/1.`: 0 or 1.
    pub fn minor(&self) -> u8 {
        self.minor
    }

    /// Whether it is the beginning of HTTP/2 without TLS, which nobody here speaks: a
    /// request without a host and fields, behind which the connection ends. Go's server
    /// has it so too, and gorouter answers and logs it.
    pub fn is_http2_preface(&self) -> bool {
        self.bytes == HTTP2_PREFACE
    }

    pub(super) fn become_preface(&mut self) {
        self.bytes.extend_from_slice(HTTP2_PREFACE);
        (self.method, self.target, self.minor) = (0..3, 4..5, 1);
        self.framing = RequestFraming::default();
    }

    /// Name and value of each field, in order, names as they came.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
        self.fields
            .iter()
            .map(|(name, value)| (self.part(name), self.part(value)))
    }

    /// The value of the first field with a name, compared without regard to case.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields()
            .find(|(found, _)| found.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value)
    }

    /// How the body ends. Whoever sends the request on frames it by this, and not by the
    /// fields: they may say the same length several times, or one beside `chunked`.
    pub fn body(&self) -> RequestBody {
        self.framing.body
    }

    /// Whether the client lets another request follow on the connection. Never behind a
    /// request with both `Content-Length` and `Transfer-Encoding` (RFC 9112 section 6.1).
    pub fn keep_alive(&self) -> bool {
        self.framing.keep_alive
    }

    /// Whether the client waits for an interim answer before it sends the body: it said
    /// `Expect: 100-continue`, there is a body, and the version knows it.
    pub fn expects_continue(&self) -> bool {
        self.framing.expects_continue
    }

    /// Whether a `Content-Length` came beside `Transfer-Encoding` and does not count: a
    /// mark of request smuggling, worth a counter.
    pub fn length_ignored(&self) -> bool {
        self.framing.length_ignored
    }

    /// The whole head, as it came, with the empty line at its end.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Forgets the head. It keeps its memory, up to `most` bytes of it: heads of a
    /// megabyte should not stay with idle connections.
    pub fn clear(&mut self, most: usize) {
        self.bytes.clear();
        self.fields.clear();
        self.bytes.shrink_to(most);
        self.fields
            .shrink_to(most / size_of::<(Range<u32>, Range<u32>)>());
        (self.method, self.target) = (0..0, 0..0);
        self.framing = RequestFraming::default();
    }

    fn part(&self, part: &Range<u32>) -> &[u8] {
        self.bytes
            .get(part.start as usize..part.end as usize)
            .unwrap_or_default()
    }
}
