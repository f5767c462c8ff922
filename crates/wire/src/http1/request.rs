//! Requests of HTTP/1.1 (RFC 9112), for the server's side.

use std::mem::MaybeUninit;
use std::ops::Range;

use httparse::{ParserConfig, Status};

use super::{Limits, MOST_FIELDS};

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
    bytes: Vec<u8>,
    method: Range<u32>,
    target: Range<u32>,
    fields: Vec<(Range<u32>, Range<u32>)>,
    minor: u8,
    body: RequestBody,
    keep_alive: bool,
    expects_continue: bool,
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

    /// Name and value of each field, in order, names as they came.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
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

    /// How the body ends.
    pub fn body(&self) -> RequestBody {
        self.body
    }

    /// Whether the client lets another request follow on the connection.
    pub fn keep_alive(&self) -> bool {
        self.keep_alive
    }

    /// Whether the client waits for an interim answer before it sends the body.
    pub fn expects_continue(&self) -> bool {
        self.expects_continue
    }

    /// The whole head, as it came.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn part(&self, part: &Range<u32>) -> &[u8] {
        self.bytes
            .get(part.start as usize..part.end as usize)
            .unwrap_or_default()
    }
}

/// Why a request could not be taken. The connection is of no further use after the
/// answer that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum RequestError {
    /// The first line is not a request line of HTTP/1.
    #[error("the request does not begin with a request line")]
    RequestLine,
    /// A version other than 1.0 and 1.1.
    #[error("the request's version is not HTTP/1.0 or HTTP/1.1")]
    Version,
    /// A field line that is not one.
    #[error("a line of the request's head is not a header field")]
    Field,
    /// The head is larger than [`Limits::head_bytes`].
    #[error("the request's head is larger than the limit")]
    HeadTooLarge,
    /// More fields than [`Limits::fields`].
    #[error("the request has more header fields than the limit")]
    TooManyFields,
}

/// Scans the requests of one connection, one after the other.
#[derive(Debug, Clone)]
pub struct RequestScanner {
    limits: Limits,
}

impl RequestScanner {
    /// A scanner for a connection on which nothing was received yet.
    pub fn new(limits: Limits) -> Self {
        Self { limits }
    }

    /// Reads a head if all of it is there, and gives its length.
    ///
    /// # Errors
    /// When it breaks the protocol or exceeds a limit.
    pub fn head(
        &mut self,
        input: &[u8],
        into: &mut RequestHead,
    ) -> Result<Option<usize>, RequestError> {
        let head = &input[..input.len().min(self.limits.head_bytes)];
        let mut headers = [const { MaybeUninit::uninit() }; MOST_FIELDS];
        let most = self.limits.fields.min(MOST_FIELDS);
        let mut request = httparse::Request::new(&mut []);
        let length = match ParserConfig::default().parse_request_with_uninit_headers(
            &mut request,
            head,
            &mut headers[..most],
        ) {
            Ok(Status::Complete(length)) => length,
            Ok(Status::Partial) if head.len() < self.limits.head_bytes => return Ok(None),
            Ok(Status::Partial) => return Err(RequestError::HeadTooLarge),
            Err(httparse::Error::Version) => return Err(RequestError::Version),
            Err(httparse::Error::TooManyHeaders) => return Err(RequestError::TooManyFields),
            Err(httparse::Error::HeaderName | httparse::Error::HeaderValue) => {
                return Err(RequestError::Field);
            }
            Err(_) => return Err(RequestError::RequestLine),
        };
        let at = |part: &[u8]| {
            let start = (part.as_ptr() as usize).saturating_sub(head.as_ptr() as usize) as u32;
            start..start + part.len() as u32
        };
        into.bytes.clear();
        into.bytes.extend_from_slice(&head[..length]);
        into.method = at(request.method.unwrap_or_default().as_bytes());
        into.target = at(request.path.unwrap_or_default().as_bytes());
        into.minor = request.version.unwrap_or(1);
        into.fields.clear();
        for header in request.headers.iter() {
            into.fields
                .push((at(header.name.as_bytes()), at(header.value)));
        }
        (into.body, into.keep_alive) = (RequestBody::None, into.minor == 1);
        into.expects_continue = false;
        Ok(Some(length))
    }
}
