//! The scanner of requests.

use std::mem::MaybeUninit;
use std::ops::Range;

use httparse::{ParserConfig, Status};

use super::framing::framing;
use super::head::HTTP2_PREFACE;
use super::target::is_target;
use super::{RequestBody, RequestError, RequestHead};
use crate::http1::chunked::{Chunked, Lines};
use crate::http1::scanner::may_end;
use crate::http1::{FIELDS_ON_STACK, Limits, Sink, room_for_fields};

/// Bytes of empty lines that are skipped before a request.
const MOST_BLANK: usize = 4;

/// Scans the requests of one connection, one after the other: a head, its body, the next
/// head. Allocates nothing; what it cannot use yet stays with the caller, who calls again
/// with more.
#[derive(Debug, Clone)]
pub struct RequestScanner {
    limits: Limits,
    /// Bytes of an incomplete head that were looked at: its end is not among them.
    seen: usize,
    body: Body,
}

#[derive(Debug, Clone, Copy)]
enum Body {
    Exactly(u64),
    Chunked(Chunked),
}

/// How far a scan of a body came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyScan {
    /// Bytes of the input that are done with. They are well-framed: they may be sent on
    /// as they are. The rest has to be given again, with more behind it, or, after the
    /// body's end, as the start of the next head.
    pub consumed: usize,
    /// Whether the body has ended.
    pub ended: bool,
}

impl RequestScanner {
    /// A scanner for a connection on which nothing was received yet.
    pub fn new(limits: Limits) -> Self {
        // Heads keep places in 32 bits.
        let head_bytes = limits.head_bytes.min(u32::MAX as usize);
        Self {
            limits: Limits {
                head_bytes,
                ..limits
            },
            seen: 0,
            body: Body::Exactly(0),
        }
    }

    /// Whether a part of a head was seen, but not its end.
    pub fn started(&self) -> bool {
        self.seen > 0
    }

    /// Reads a head if all of it is there, and gives its length, empty lines before it
    /// included. Its body comes next: see [`body`](Self::body). Clients repeat themselves:
    /// `into` may hold the connection's last head, and is recognised if it comes again.
    ///
    /// # Errors
    /// When it breaks the protocol or exceeds a limit.
    pub fn head(
        &mut self,
        input: &[u8],
        into: &mut RequestHead,
    ) -> Result<Option<usize>, RequestError> {
        let length = if self.recognises(input, into) {
            into.bytes.len()
        } else {
            // Parsing starts anew whenever bytes are added; without this, a head that
            // comes byte by byte would cost the square of its length.
            let bounded = &input[..input.len().min(self.limits.head_bytes)];
            if self.seen > 0 && !may_end(bounded, self.seen) {
                return self.incomplete(bounded.len());
            }
            match self.parse(bounded, into)? {
                Some(length) => length,
                None => return self.incomplete(bounded.len()),
            }
        };
        self.seen = 0;
        self.body = match into.framing.body {
            RequestBody::None => Body::Exactly(0),
            RequestBody::Exactly(length) => Body::Exactly(length),
            RequestBody::Chunked => Body::Chunked(Chunked::Size),
        };
        Ok(Some(length))
    }

    /// Scans the body behind the last head as far as it can, and tells the sink its parts
    /// and its trailers. A request without a body ends at once.
    ///
    /// # Errors
    /// When it breaks the protocol or exceeds a limit. The parts told so far were good.
    pub fn body<S: Sink>(&mut self, input: &[u8], sink: &mut S) -> Result<BodyScan, RequestError> {
        match &mut self.body {
            Body::Exactly(left) => {
                let take = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
                if take > 0 {
                    sink.body(&input[..take]);
                }
                *left -= take as u64;
                Ok(BodyScan {
                    consumed: take,
                    ended: *left == 0,
                })
            }
            Body::Chunked(chunked) => {
                let scan = chunked.scan(input, &self.limits, Lines::Strict, &mut 0, sink)?;
                if scan.ended {
                    self.body = Body::Exactly(0);
                }
                Ok(scan)
            }
        }
    }

    fn recognises(&self, input: &[u8], known: &RequestHead) -> bool {
        !known.bytes.is_empty()
            && input.starts_with(&known.bytes)
            && known.bytes.len() <= self.limits.head_bytes
            && known.fields.len() <= self.limits.fields
    }

    fn incomplete(&mut self, seen: usize) -> Result<Option<usize>, RequestError> {
        self.seen = seen;
        if seen < self.limits.head_bytes {
            Ok(None)
        } else {
            Err(RequestError::HeadTooLarge)
        }
    }

    fn parse(&self, input: &[u8], into: &mut RequestHead) -> Result<Option<usize>, RequestError> {
        into.bytes.clear();
        into.fields.clear();
        // RFC 9112 section 2.2: an empty line before a request is skipped. Some clients
        // send one behind a body; nobody sends three.
        let mut blank = 0;
        while blank < MOST_BLANK && input[blank..].starts_with(b"\r\n") {
            blank += 2;
        }
        let head = &input[blank..];
        if matches!(head, [b'\n', ..] | [b'\r', b'\n', ..]) {
            return Err(RequestError::RequestLine);
        }
        if head.starts_with(HTTP2_PREFACE) {
            into.become_preface();
            return Ok(Some(blank + HTTP2_PREFACE.len()));
        }
        let mut headers = [const { MaybeUninit::uninit() }; FIELDS_ON_STACK];
        let mut more;
        let most = self.limits.fields.min(FIELDS_ON_STACK);
        let mut request = httparse::Request::new(&mut []);
        let parser = ParserConfig::default();
        let mut parsed =
            parser.parse_request_with_uninit_headers(&mut request, head, &mut headers[..most]);
        if parsed == Err(httparse::Error::TooManyHeaders) && self.limits.fields > most {
            more = room_for_fields(&self.limits, head.len());
            request = httparse::Request::new(&mut []);
            parsed = parser.parse_request_with_uninit_headers(&mut request, head, &mut more);
        }
        let length = match parsed {
            Ok(Status::Complete(length)) => length,
            Ok(Status::Partial) => return Ok(None),
            Err(httparse::Error::Version) if HTTP2_PREFACE.starts_with(head) => return Ok(None),
            Err(httparse::Error::Version) => return Err(version(head)),
            Err(httparse::Error::TooManyHeaders) => return Err(RequestError::TooManyFields),
            Err(httparse::Error::HeaderName) => return Err(field_name(head)),
            Err(httparse::Error::HeaderValue) => return Err(RequestError::Field),
            Err(_) => return Err(RequestError::RequestLine),
        };
        let (Some(method), Some(target), Some(minor)) =
            (request.method, request.path, request.version)
        else {
            return Err(RequestError::RequestLine);
        };
        let at = |part: &[u8]| {
            let start = (part.as_ptr() as usize).saturating_sub(head.as_ptr() as usize) as u32;
            start..start + part.len() as u32
        };
        (into.method, into.target, into.minor) =
            (at(method.as_bytes()), at(target.as_bytes()), minor);
        // The parser takes a bare LF for a line's end; we do not.
        let version_end = into.target.end as usize + " HTTP/1.1".len();
        if !ends_line(head, version_end) {
            return Err(RequestError::RequestLine);
        }
        if !is_target(method, target.as_bytes()) {
            return Err(RequestError::Target);
        }
        for header in request.headers.iter() {
            let name = at(header.name.as_bytes());
            let value = if header.value.is_empty() {
                name.end + 1..name.end + 1
            } else {
                at(header.value)
            };
            if !ends_line(head, value.end as usize) {
                return Err(RequestError::Field);
            }
            into.fields.push((name, value));
        }
        if !head[..length].ends_with(b"\r\n\r\n") {
            return Err(RequestError::Field);
        }
        into.framing = framing(method, minor, request.headers)?;
        // Last, so that a head that was refused is never recognised.
        into.bytes.extend_from_slice(&head[..length]);
        Ok(Some(blank + length))
    }
}

/// Whether nothing but space stands between a place and the CRLF behind it.
fn ends_line(head: &[u8], at: usize) -> bool {
    let rest = head.get(at..).unwrap_or_default();
    let space = rest
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count();
    rest[space..].starts_with(b"\r\n")
}

/// What is wrong with the first name that is none: gorouter tells apart those that are so
/// by a space only.
fn field_name(head: &[u8]) -> RequestError {
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let names = head.split(|byte| *byte == b'\n').skip(1).map(|line| {
        let colon = memchr::memchr(b':', line)?;
        Some(&line[..colon])
    });
    for name in names {
        match name {
            Some([first, rest @ ..]) if is_token(first) => {
                if !rest.iter().all(|byte| is_token(byte) || *byte == b' ') {
                    return RequestError::Field;
                }
                if rest.contains(&b' ') {
                    return RequestError::FieldName;
                }
            }
            _ => return RequestError::Field,
        }
    }
    RequestError::Field
}

/// What is wrong with a version that is not HTTP/1.0 or HTTP/1.1.
fn version(head: &[u8]) -> RequestError {
    let line = memchr::memchr(b'\n', head).map_or(head, |end| &head[..end]);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line == b"PRI * HTTP/2.0" {
        return RequestError::Http2Preface;
    }
    // A target with a space in it leaves no version behind.
    if memchr::memchr_iter(b' ', line).count() != 2 {
        return RequestError::RequestLine;
    }
    let version: Range<usize> = memchr::memrchr(b' ', line).map_or(0, |at| at + 1)..line.len();
    match &line[version] {
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'0'..=b'9'] => RequestError::MinorVersion,
        [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => RequestError::Version,
        _ => RequestError::RequestLine,
    }
}
