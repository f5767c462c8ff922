//! Heads of HTTP/2 as heads of HTTP/1.1, and back. Pure.

use http::{StatusCode, Uri};

use super::inward::Framing;
use crate::http1::{RequestHead, fields, write};
use crate::http2::codec::{Block, Fields, Kind, is_name, is_of_connection, is_value};
use crate::websocket::{self, Key};

/// Bytes of the longest name that passes.
const LONGEST_NAME: usize = 256;

/// Why a message has no other form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Untranslatable;

/// Whether a request opens a WebSocket (RFC 8441 section 5).
pub(super) fn opens_websocket(head: &Fields) -> bool {
    head.method() == b"CONNECT" && head.protocol() == Some(b"websocket")
}

/// Writes a request as HTTP/1.1. `ends`: it has no body; `key`: of a WebSocket that it opens.
pub(super) fn write_request(
    head: &Fields,
    ends: bool,
    key: Option<&Key>,
    out: &mut Vec<u8>,
) -> Result<Framing, Untranslatable> {
    let method = match key {
        Some(_) => &b"GET"[..],
        // Another tunnel has no path, and no answer that is framed (RFC 9113 section 8.5).
        None if head.method() == b"CONNECT" => return Err(Untranslatable),
        None => head.method(),
    };
    let target = head.path().ok_or(Untranslatable)?;
    out.extend_from_slice(method);
    out.push(b' ');
    out.extend_from_slice(target);
    out.extend_from_slice(b" HTTP/1.1\r\n");
    let host = head.authority().or_else(|| head.get(b"host"));
    write::field(b"Host", host.unwrap_or_default(), out);
    let framing = match (ends, head.content_length()) {
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
    let mut cookies = false;
    for field in head.iter() {
        match field.kind {
            Kind::Host => {}
            Kind::Cookie => cookies = true,
            // What a message's end and its handshake say in HTTP/1.1, and nothing here.
            Kind::Length if key.is_some() => {}
            _ if key.is_some() && field.name == b"sec-websocket-key" => {}
            _ => out.extend_from_slice(field.line),
        }
    }
    if cookies {
        // RFC 9113 section 8.2.3: a cookie may come in pieces.
        let mut before = &b"cookie: "[..];
        for field in head.iter().filter(|field| field.kind == Kind::Cookie) {
            out.extend_from_slice(before);
            out.extend_from_slice(field.value);
            before = b"; ";
        }
        out.extend_from_slice(b"\r\n");
    }
    if framing == Framing::Chunked {
        out.extend_from_slice(b"transfer-encoding: chunked\r\n");
    }
    out.extend_from_slice(b"\r\n");
    Ok(framing)
}

/// Where a request of HTTP/1.1 goes.
pub(super) struct Target {
    authority: Vec<u8>,
    path: Vec<u8>,
}

/// Where a request of HTTP/1.1 goes, if it can go there with HTTP/2.
pub(super) fn target(head: &RequestHead) -> Result<Target, Untranslatable> {
    if head.method() == b"CONNECT" || !Kind::Method.may_be(head.method()) {
        return Err(Untranslatable);
    }
    let target = head.target();
    let (authority, path) = match target.first() {
        Some(b'/' | b'*') => {
            let host = head.field("host").ok_or(Untranslatable)?;
            (host.to_vec(), target.to_vec())
        }
        _ => {
            let uri = Uri::try_from(target).map_err(|_| Untranslatable)?;
            let authority = uri.authority().ok_or(Untranslatable)?.as_str();
            let path = uri.path_and_query().map_or("/", |it| it.as_str());
            (authority.as_bytes().to_vec(), path.as_bytes().to_vec())
        }
    };
    match Kind::Authority.may_be(&authority) && Kind::Path.may_be(&path) {
        true => Ok(Target { authority, path }),
        false => Err(Untranslatable),
    }
}

/// A request of HTTP/1.1 as one of HTTP/2.
pub(super) fn write_block(head: &RequestHead, target: &Target, block: &mut Block<'_>) {
    block.method(head.method());
    block.scheme(b"https");
    block.authority(&target.authority);
    block.path(&target.path);
    add(head.fields(), block, |name| {
        !name.eq_ignore_ascii_case(b"host")
    });
}

/// Writes an answer as HTTP/1.1. `bodiless`: it was asked for with `HEAD`. `ends`: it has
/// no body.
pub(super) fn write_answer(
    head: &Fields,
    bodiless: bool,
    ends: bool,
    out: &mut Vec<u8>,
) -> Framing {
    let status = head.status().unwrap_or_default();
    out.extend_from_slice(b"HTTP/1.1 ");
    write::decimal(u64::from(status), out);
    out.push(b' ');
    let reason = StatusCode::from_u16(status).ok();
    let reason = reason.and_then(|status| status.canonical_reason());
    out.extend_from_slice(reason.unwrap_or_default().as_bytes());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(head.lines());
    let none = bodiless || matches!(status, 100..=199 | 204 | 304);
    let framing = match (none, ends, head.content_length()) {
        (true, ..) => Framing::None,
        (false, true, None) => {
            out.extend_from_slice(b"content-length: 0\r\n");
            Framing::None
        }
        (false, _, Some(_)) => Framing::Exactly,
        (false, false, None) => {
            out.extend_from_slice(b"transfer-encoding: chunked\r\n");
            Framing::Chunked
        }
    };
    out.extend_from_slice(b"\r\n");
    framing
}

/// The status that answers a request, of an answer in HTTP/1.1 with these lines. Of one to a
/// handshake with a key it is that to an extended CONNECT (RFC 8441 section 5): what is neither
/// a good handshake nor an error is no answer that a client could understand.
pub(super) fn status(status: u16, lines: &[u8], key: Option<&Key>) -> Result<u16, Untranslatable> {
    match (key, status) {
        (Some(key), 101) => match websocket::accept_extended(key, status, lines) {
            Ok(_) => Ok(200),
            Err(_) => Err(Untranslatable),
        },
        // It would say that the tunnel is open.
        (Some(_), 200..300) => Err(Untranslatable),
        (_, 100..=999) => Ok(status),
        _ => Err(Untranslatable),
    }
}

/// Writes an answer of HTTP/1.1. `tunnels`: a WebSocket is open behind it.
pub(super) fn write_lines(status: u16, lines: &[u8], tunnels: bool, block: &mut Block<'_>) {
    block.status(status);
    add(fields(lines), block, |name| {
        !(tunnels && name.eq_ignore_ascii_case(b"sec-websocket-accept"))
    });
}

/// Writes trailers of HTTP/1.1, which may not frame anything in HTTP/2 either.
pub(super) fn write_trailers(lines: &[u8], block: &mut Block<'_>) {
    add(fields(lines), block, |name| {
        !name.eq_ignore_ascii_case(b"content-length") && !name.eq_ignore_ascii_case(b"host")
    });
}

/// Adds the fields that are wanted and not the connection's own.
fn add<'a>(
    fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    block: &mut Block<'_>,
    wanted: impl Fn(&[u8]) -> bool,
) {
    let mut lower = [0; LONGEST_NAME];
    for (name, value) in fields {
        // Longer ones are nobody's, and would be copied twice.
        let Some(place) = lower.get_mut(..name.len()) else {
            continue;
        };
        place.copy_from_slice(name);
        place.make_ascii_lowercase();
        let name = &*place;
        // RFC 9113 section 8.2.2: of `TE` only this value.
        let te = name == b"te" && !value.eq_ignore_ascii_case(b"trailers");
        if !te && !is_of_connection(name) && is_name(name) && is_value(value) && wanted(name) {
            block.lower_field(name, value);
        }
    }
}
