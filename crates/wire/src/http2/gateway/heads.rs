//! Heads of HTTP/2 as heads of HTTP/1.1, and back. Pure.

use bytes::BytesMut;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Request, Response, StatusCode, Uri, Version, request, response};

use super::inward::Framing;
use crate::http1::{RequestHead, fields, write};

/// Why a message has no other form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Untranslatable;

/// Writes a request as HTTP/1.1. `ends`: it has no body.
pub(super) fn write_request(
    head: &request::Parts,
    ends: bool,
    out: &mut Vec<u8>,
) -> Result<Framing, Untranslatable> {
    // A tunnel has no path, and no answer that is framed (RFC 9113 section 8.5).
    let (Some(target), false) = (head.uri.path_and_query(), head.method == Method::CONNECT) else {
        return Err(Untranslatable);
    };
    out.extend_from_slice(head.method.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(target.as_str().as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    let host = match head.uri.authority() {
        Some(authority) => authority.as_str().as_bytes(),
        None => head
            .headers
            .get(header::HOST)
            .map_or(&b""[..], HeaderValue::as_bytes),
    };
    write::field(b"Host", host, out);
    let length = head.headers.get(header::CONTENT_LENGTH);
    let framing = match (ends, length) {
        (true, _) => Framing::None,
        (false, Some(_)) => Framing::Exactly,
        (false, None) => Framing::Chunked,
    };
    for (name, value) in &head.headers {
        if *name != header::HOST && *name != header::COOKIE && !is_of_connection(name) {
            write::field(name.as_str().as_bytes(), value.as_bytes(), out);
        }
    }
    // RFC 9113 section 8.2.3: a cookie may come in pieces.
    let mut cookies = head.headers.get_all(header::COOKIE).iter();
    if let Some(first) = cookies.next() {
        out.extend_from_slice(b"cookie: ");
        out.extend_from_slice(first.as_bytes());
        for cookie in cookies {
            out.extend_from_slice(b"; ");
            out.extend_from_slice(cookie.as_bytes());
        }
        out.extend_from_slice(b"\r\n");
    }
    if framing == Framing::Chunked {
        out.extend_from_slice(b"transfer-encoding: chunked\r\n");
    }
    out.extend_from_slice(b"\r\n");
    Ok(framing)
}

/// A request of HTTP/1.1 as one of HTTP/2.
pub(super) fn request(head: &RequestHead) -> Result<Request<()>, Untranslatable> {
    let method = Method::from_bytes(head.method()).map_err(|_| Untranslatable)?;
    if method == Method::CONNECT {
        return Err(Untranslatable);
    }
    let target = head.target();
    let (authority, target) = match target.first() {
        Some(b'/' | b'*') => {
            let host = head.field("host").ok_or(Untranslatable)?;
            let target = PathAndQuery::try_from(target).map_err(|_| Untranslatable)?;
            (
                Authority::try_from(host).map_err(|_| Untranslatable)?,
                target,
            )
        }
        _ => {
            let uri = Uri::try_from(target).map_err(|_| Untranslatable)?;
            let parts = uri.into_parts();
            let root = PathAndQuery::from_static("/");
            (
                parts.authority.ok_or(Untranslatable)?,
                parts.path_and_query.unwrap_or(root),
            )
        }
    };
    let uri = Uri::builder()
        .scheme(Scheme::HTTPS)
        .authority(authority)
        .path_and_query(target)
        .build()
        .map_err(|_| Untranslatable)?;
    let mut request = Request::new(());
    (*request.method_mut(), *request.uri_mut()) = (method, uri);
    *request.version_mut() = Version::HTTP_2;
    add(head.fields(), request.headers_mut());
    request.headers_mut().remove(header::HOST);
    Ok(request)
}

/// Writes an answer as HTTP/1.1. `bodiless`: it was asked for with `HEAD`. `ends`: it has
/// no body.
pub(super) fn write_answer(
    head: &response::Parts,
    bodiless: bool,
    ends: bool,
    out: &mut Vec<u8>,
) -> Framing {
    out.extend_from_slice(b"HTTP/1.1 ");
    write::decimal(u64::from(head.status.as_u16()), out);
    out.push(b' ');
    let reason = head.status.canonical_reason().unwrap_or_default();
    out.extend_from_slice(reason.as_bytes());
    out.extend_from_slice(b"\r\n");
    for (name, value) in &head.headers {
        if !is_of_connection(name) {
            write::field(name.as_str().as_bytes(), value.as_bytes(), out);
        }
    }
    let has_length = head.headers.contains_key(header::CONTENT_LENGTH);
    let none = bodiless
        || head.status.is_informational()
        || matches!(
            head.status,
            StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
        );
    let framing = match (none, ends, has_length) {
        (true, ..) => Framing::None,
        (false, true, false) => {
            out.extend_from_slice(b"content-length: 0\r\n");
            Framing::None
        }
        (false, _, true) => Framing::Exactly,
        (false, false, false) => {
            out.extend_from_slice(b"transfer-encoding: chunked\r\n");
            Framing::Chunked
        }
    };
    out.extend_from_slice(b"\r\n");
    framing
}

/// An answer of HTTP/1.1 as one of HTTP/2.
pub(super) fn answer(status: u16, lines: &[u8]) -> Result<Response<()>, Untranslatable> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(status).map_err(|_| Untranslatable)?;
    *response.version_mut() = Version::HTTP_2;
    add(fields(lines), response.headers_mut());
    Ok(response)
}

/// Trailers of HTTP/1.1 as those of HTTP/2, which may not frame anything either.
pub(super) fn trailers(lines: &[u8]) -> HeaderMap {
    let mut map = HeaderMap::new();
    add(fields(lines), &mut map);
    map.remove(header::CONTENT_LENGTH);
    map.remove(header::HOST);
    map
}

/// Writes trailers as lines.
pub(super) fn write_trailers(map: &HeaderMap, out: &mut Vec<u8>) {
    for (name, value) in map {
        if !is_of_connection(name) {
            write::field(name.as_str().as_bytes(), value.as_bytes(), out);
        }
    }
}

/// Adds the fields that are not the connection's own.
fn add<'a>(fields: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone, map: &mut HeaderMap) {
    // All values are parts of one allocation.
    let lengths = fields.clone().map(|(_, value)| value.len());
    let (count, bytes) = lengths.fold((0, 0), |(count, sum), length| (count + 1, sum + length));
    map.reserve(count);
    let mut values = BytesMut::with_capacity(bytes);
    for (name, value) in fields {
        values.extend_from_slice(value);
        let value = HeaderValue::from_maybe_shared(values.split().freeze());
        let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), value) else {
            continue;
        };
        // RFC 9113 section 8.2.2: of `TE` only this value.
        let te = name == header::TE && !value.as_bytes().eq_ignore_ascii_case(b"trailers");
        if !te && !is_of_connection(&name) {
            map.append(name, value);
        }
    }
}

/// Whether a field is of one connection only (RFC 9113 section 8.2.2).
fn is_of_connection(name: &HeaderName) -> bool {
    *name == header::CONNECTION
        || *name == header::TRANSFER_ENCODING
        || *name == header::UPGRADE
        || name.as_str() == "keep-alive"
        || name.as_str() == "proxy-connection"
}
