//! Heads of HTTP/2 as heads of HTTP/1.1, and back. Pure.

use bytes::BytesMut;
use h2::ext::Protocol;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Request, Response, StatusCode, Uri, Version, request, response};

use super::inward::Framing;
use crate::http1::{RequestHead, fields, write};
use crate::websocket::{self, Key};

/// Why a message has no other form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Untranslatable;

/// Whether a request opens a WebSocket (RFC 8441 section 5).
pub(super) fn opens_websocket(head: &request::Parts) -> bool {
    let protocol = head.extensions.get::<Protocol>();
    head.method == Method::CONNECT && protocol.is_some_and(|it| it.as_str() == "websocket")
}

/// Writes a request as HTTP/1.1. `ends`: it has no body; `key`: of a WebSocket that it opens.
pub(super) fn write_request(
    head: &request::Parts,
    ends: bool,
    key: Option<&Key>,
    out: &mut Vec<u8>,
) -> Result<Framing, Untranslatable> {
    let method = match key {
        Some(_) => "GET",
        // Another tunnel has no path, and no answer that is framed (RFC 9113 section 8.5).
        None if head.method == Method::CONNECT => return Err(Untranslatable),
        None => head.method.as_str(),
    };
    let Some(target) = head.uri.path_and_query() else {
        return Err(Untranslatable);
    };
    out.extend_from_slice(method.as_bytes());
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
        // What follows is the other protocol's.
        _ if key.is_some() => Framing::Exactly,
        (true, _) => Framing::None,
        (false, Some(_)) => Framing::Exactly,
        (false, None) => Framing::Chunked,
    };
    if let Some(key) = key {
        write::field(b"Connection", b"Upgrade", out);
        write::field(b"Upgrade", b"websocket", out);
        write::field(b"Sec-WebSocket-Key", key.as_str().as_bytes(), out);
    }
    // What a message's end and its handshake say in HTTP/1.1, and nothing here.
    let meaningless = |name: &HeaderName| {
        key.is_some() && [header::CONTENT_LENGTH, header::SEC_WEBSOCKET_KEY].contains(name)
    };
    for (name, value) in &head.headers {
        if *name != header::HOST
            && *name != header::COOKIE
            && !is_of_connection(name)
            && !meaningless(name)
        {
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

/// The answer to a handshake in HTTP/1.1 as that to an extended CONNECT (RFC 8441 section 5).
/// What is neither a good handshake nor an error is no answer that a client could understand.
pub(super) fn websocket_answer(
    status: u16,
    lines: &[u8],
    key: &Key,
) -> Result<Response<()>, Untranslatable> {
    match status {
        101 => {
            websocket::accept_extended(key, status, lines).map_err(|_| Untranslatable)?;
            let mut response = answer(200, lines)?;
            let accept = header::SEC_WEBSOCKET_ACCEPT;
            response.headers_mut().remove(accept);
            Ok(response)
        }
        // It would say that the tunnel is open.
        200..300 => Err(Untranslatable),
        status => answer(status, lines),
    }
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
