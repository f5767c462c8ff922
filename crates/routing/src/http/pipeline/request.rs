//! The head of a request as an endpoint sees it, in the order in which Go writes it.

use wire::http1::{RequestBody, RequestHead};

use super::Pipeline;
use super::admit::part_of;
use super::exchange::{Exchange, Upgrade};
use super::fields::{Slot, tokens};
use super::target::write_double_slash;
use super::text::decimal;
use crate::table::Endpoint;

impl Pipeline {
    /// Appends the head of the request as the endpoint is to see it. May be called again
    /// for the next attempt. `endpoint` is `None` on the way to a route service.
    pub fn write_request(
        &self,
        head: &RequestHead,
        exchange: &mut Exchange,
        endpoint: Option<&Endpoint>,
        out: &mut Vec<u8>,
    ) {
        exchange.sent = true;
        out.extend_from_slice(head.method());
        out.push(b' ');
        match &exchange.service {
            Some(service) => out.extend_from_slice(service.path.as_bytes()),
            None => {
                let tls = endpoint.is_some_and(|endpoint| endpoint.tls);
                write_target(head.target(), exchange, tls, out);
            }
        }
        out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
        match &exchange.service {
            Some(service) => out.extend_from_slice(service.authority.as_bytes()),
            None => out.extend_from_slice(&exchange.host),
        }
        out.extend_from_slice(b"\r\n");
        let fields = &exchange.request;
        let agent = fields.part(exchange.seen.user_agent);
        if !agent.is_empty() {
            out.extend_from_slice(b"User-Agent: ");
            out.extend_from_slice(agent);
            out.extend_from_slice(b"\r\n");
        }
        write_framing(head, &exchange.trailers, out);
        for (slot, text) in fields.lines() {
            out.extend_from_slice(text);
            let value = match (slot, endpoint) {
                (Slot::Text, _) => continue,
                (_, None) => "",
                (Slot::Application, Some(endpoint)) => &endpoint.app,
                (Slot::InstanceId, Some(endpoint)) if endpoint.instance_id.is_empty() => {
                    &endpoint.identity
                }
                (Slot::InstanceId, Some(endpoint)) => &endpoint.instance_id,
                (Slot::InstanceIndex, Some(endpoint)) => &endpoint.instance_index,
            };
            out.extend_from_slice(b": ");
            write_clean(value.as_bytes(), out);
            out.extend_from_slice(b"\r\n");
        }
        if self.settings.backends.idle == 0
            && exchange.upgrade == Upgrade::None
            && !fields.has(b"Connection")
        {
            out.extend_from_slice(b"Connection: close\r\n");
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Appends the field lines of a trailer section, of a request or of an answer, as the
    /// other side is to see them, without the empty line.
    pub fn write_trailers(&self, fields: &[u8], exchange: &mut Exchange, out: &mut Vec<u8>) {
        let list = &mut exchange.answer;
        list.clear();
        for (name, value) in wire::http1::fields(fields) {
            let at = list.begin(name);
            if may_be_trailer(list.name(at)) {
                list.keep(at, value);
            } else {
                list.drop(at);
            }
        }
        list.sort();
        list.write(out);
    }
}

/// Appends a value of a registration, which may hold anything, without what ends a line.
fn write_clean(value: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(value);
    for byte in &mut out[start..] {
        if byte.is_ascii_control() {
            *byte = b' ';
        }
    }
}

/// Appends the target as it came, but for the quirk of gorouter with `//`.
fn write_target(target: &[u8], exchange: &Exchange, tls: bool, out: &mut Vec<u8>) {
    if target.starts_with(b"//") {
        let path = part_of(target, &exchange.target.path);
        let query = part_of(target, &exchange.target.query);
        let scheme: &[u8] = if tls { b"https" } else { b"http" };
        write_double_slash(scheme, &exchange.host, path, query, out);
    } else {
        out.extend_from_slice(target);
    }
}

/// Appends how the body ends.
fn write_framing(head: &RequestHead, trailers: &[u8], out: &mut Vec<u8>) {
    match head.body() {
        RequestBody::Exactly(length) => {
            out.extend_from_slice(b"Content-Length: ");
            decimal(length, out);
            out.extend_from_slice(b"\r\n");
        }
        // Many servers expect a length of these.
        RequestBody::None if matches!(head.method(), b"POST" | b"PUT" | b"PATCH") => {
            out.extend_from_slice(b"Content-Length: 0\r\n");
        }
        RequestBody::None => {}
        RequestBody::Chunked => {
            out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
            write_announcement(trailers, b",", out);
        }
    }
}

/// Appends the field `Trailer`, if it has anything to announce.
fn write_announcement(trailers: &[u8], between: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    announce(trailers, between, out);
    if out.len() > start {
        let names = out.split_off(start);
        out.extend_from_slice(b"Trailer: ");
        out.extend_from_slice(&names);
        out.extend_from_slice(b"\r\n");
    }
}

/// Appends the canonical names of announced trailers.
pub(super) fn announce(trailers: &[u8], between: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    for name in tokens(trailers) {
        let before = out.len();
        if before > start {
            out.extend_from_slice(between);
        }
        let at = out.len();
        let mut first = true;
        out.extend(name.iter().map(|byte| {
            let upper = std::mem::replace(&mut first, *byte == b'-');
            if upper {
                byte.to_ascii_uppercase()
            } else {
                byte.to_ascii_lowercase()
            }
        }));
        if !may_be_trailer(&out[at..]) || !out[at..].iter().all(is_token_byte) {
            out.truncate(before);
        }
    }
}

fn is_token_byte(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte)
}

/// Whether a field may stand behind a body: those that say how a message is framed, routed
/// or authenticated may not (RFC 9110 section 6.5.1).
pub(super) fn may_be_trailer(name: &[u8]) -> bool {
    !(name.starts_with(b"If-")
        || matches!(
            name,
            b"Authorization"
                | b"Cache-Control"
                | b"Connection"
                | b"Content-Encoding"
                | b"Content-Length"
                | b"Content-Range"
                | b"Content-Type"
                | b"Expect"
                | b"Host"
                | b"Keep-Alive"
                | b"Max-Forwards"
                | b"Pragma"
                | b"Proxy-Authenticate"
                | b"Proxy-Authorization"
                | b"Proxy-Connection"
                | b"Range"
                | b"Realm"
                | b"Te"
                | b"Trailer"
                | b"Transfer-Encoding"
                | b"Www-Authenticate"
        ))
}
