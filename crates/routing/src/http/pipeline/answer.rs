//! The head of an answer as a client sees it, in the order in which Go's server writes it.

use wire::http1::{BodyLength, RequestBody, RequestHead};

use super::Pipeline;
use super::exchange::{Exchange, Times};
use super::fields::{FieldList, tokens};
use super::reason::reason;
use super::request::announce;
use super::sticky::{ResponseCookies, StickyBinding};
use super::text::{decimal, digits, http_date};

/// A backend's answer.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// Its status.
    pub status: u16,
    /// Its field lines, as they came.
    pub fields: &'a [u8],
    /// How its body ends, as its head says.
    pub body: BodyLength,
}

/// How the body is written to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientBody {
    /// There is none: `HEAD`, 204, 304.
    None,
    /// As it is, so many bytes.
    Exactly(u64),
    /// In chunks.
    Chunked,
    /// As it is, and then the connection is closed.
    UntilClose,
    /// The connection is a tunnel from here on.
    Tunnel,
}

/// What was promised to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promise {
    /// How the body is to be written.
    pub body: ClientBody,
    /// Whether the client's connection goes on behind the answer.
    pub keep_alive: bool,
}

impl Pipeline {
    /// Appends the head of a backend's answer as the client is to see it. `keep_alive`:
    /// whether the router would let the client's connection go on.
    pub fn write_answer(
        &self,
        head: &RequestHead,
        exchange: &mut Exchange,
        answer: &Answer<'_>,
        keep_alive: bool,
        now: Times,
        out: &mut Vec<u8>,
    ) -> Promise {
        exchange.status = answer.status;
        let tunnel = answer.status == 101;
        let sticky = &self.settings.sticky;
        let mut given = ResponseCookies::default();
        let mut seen = AnswerSeen::default();
        exchange.options.clear();
        // Failed attempts before are forgiven: the log tells what the client is told.
        exchange.router_error.clear();
        let list = &mut exchange.answer;
        list.clear();
        let has_body_length = matches!(answer.body, BodyLength::Exactly(_));
        let mut trailers = Vec::new();
        for (name, value) in wire::http1::fields(answer.fields) {
            let at = list.begin(name);
            match list.name(at) {
                b"Connection" | b"Upgrade" if tunnel => {
                    list.keep(at, value);
                }
                b"Connection" => {
                    list.drop(at);
                    if !exchange.options.is_empty() {
                        exchange.options.push(b',');
                    }
                    exchange.options.extend_from_slice(value);
                }
                b"Trailer" => {
                    list.drop(at);
                    if answer.body == BodyLength::Chunked {
                        trailers.push(b',');
                        trailers.extend_from_slice(value);
                    }
                }
                b"Keep-Alive"
                | b"Proxy-Connection"
                | b"Proxy-Authenticate"
                | b"Proxy-Authorization"
                | b"Te"
                | b"Transfer-Encoding"
                | b"Upgrade"
                | b"X-Cf-Proxy-Signature" => list.drop(at),
                b"Content-Length" if seen.length || !has_body_length => list.drop(at),
                b"Content-Length" => {
                    list.keep(at, value);
                    seen.length = true;
                }
                b"Date" => {
                    list.keep(at, value);
                    seen.date = true;
                }
                // A router behind this one says so of its own backends.
                b"X-Cf-Routererror" => {
                    list.keep(at, value);
                    if exchange.router_error.is_empty() {
                        let text = String::from_utf8_lossy(value);
                        exchange.router_error.push_str(&text);
                    }
                }
                b"Pragma" => {
                    list.keep(at, value);
                    seen.pragma.get_or_insert(value == b"no-cache");
                }
                b"Cache-Control" => {
                    list.keep(at, value);
                    seen.cache_control = true;
                }
                b"X-Vcap-Request-Id" if value.is_empty() => list.drop(at),
                b"X-Vcap-Request-Id" => {
                    list.keep(at, value);
                    seen.request_id = true;
                }
                b"Set-Cookie" => {
                    list.keep(at, value);
                    given.read(sticky, value);
                }
                b"Www-Authenticate" => {
                    list.keep(at, value);
                    given.read_authenticate(value);
                }
                _ => {
                    list.keep(at, value);
                }
            }
        }
        if seen.pragma == Some(true) && !seen.cache_control {
            list.push("Cache-Control", b"no-cache");
        }
        let mut removed = Vec::new();
        for option in tokens(&exchange.options) {
            if !option.eq_ignore_ascii_case(b"close") && !option.eq_ignore_ascii_case(b"keep-alive")
            {
                removed.push(option);
                seen.length &= !option.eq_ignore_ascii_case(b"content-length");
                seen.date &= !option.eq_ignore_ascii_case(b"date");
            }
        }
        list.remove_all(&mut removed);
        if !seen.request_id {
            list.push(
                "X-Vcap-Request-Id",
                exchange.request.part(exchange.seen.request_id),
            );
        }
        self.add_affinity(exchange, &given, now);
        let list = &mut exchange.answer;
        if exchange.seen.trace_key {
            let router = self.address.as_bytes();
            let endpoint = exchange.progress.endpoint.as_ref();
            let backend = endpoint
                .map_or("", |endpoint| &endpoint.identity)
                .as_bytes();
            for (name, value) in [
                ("X-Vcap-Router", router),
                ("X-Vcap-Backend", backend),
                ("X-Cf-Routeendpoint", backend),
            ] {
                list.remove(name.as_bytes());
                list.push(name, value);
            }
        }
        if tunnel {
            list.sort();
            write_status(1, 101, out);
            list.write(out);
            out.extend_from_slice(b"\r\n");
            return Promise {
                body: ClientBody::Tunnel,
                keep_alive: false,
            };
        }
        if !trailers.is_empty() {
            let mut names = Vec::new();
            announce(&trailers, b", ", &mut names);
            if !names.is_empty() {
                list.push("Trailer", &names);
            }
        }
        if let (BodyLength::Exactly(length), false) = (answer.body, seen.length)
            && head.method() != b"HEAD"
        {
            let mut text = Vec::with_capacity(20);
            decimal(length, &mut text);
            list.push("Content-Length", &text);
            seen.length = true;
        }
        self.rewrite(list);
        if !self.settings.headers.remove.is_empty() {
            seen.date &= list.has(b"Date");
            seen.length &= list.has(b"Content-Length");
        }
        let length = match (seen.length, answer.body) {
            (true, BodyLength::Exactly(length)) => Some(length),
            _ => None,
        };
        finish(
            head,
            list,
            answer.status,
            length,
            seen.date,
            keep_alive,
            now,
            out,
        )
    }

    /// Adds the cookies that bind the client to its endpoint, if it is to have any.
    fn add_affinity(&self, exchange: &mut Exchange, given: &ResponseCookies, now: Times) {
        if exchange.service.is_some() {
            return;
        }
        let (Some(endpoint), Some(pool)) = (&exchange.progress.endpoint, &exchange.pool) else {
            return;
        };
        let bond = StickyBinding {
            instance: &endpoint.instance_id,
            path: pool.context_path(),
        };
        let now = (now.wall / 1_000_000_000) as i64;
        let (list, request) = (&mut exchange.answer, &exchange.request);
        given.bind(
            &self.settings.sticky,
            &exchange.asked,
            bond,
            now,
            |cookie| {
                if !is_of_service(request) {
                    list.push("Set-Cookie", cookie);
                }
            },
        );
    }

    /// Removes from an answer's fields, and adds to them, what the settings say.
    pub(super) fn rewrite(&self, list: &mut FieldList) {
        let rules = &self.settings.headers;
        for name in &rules.remove {
            list.remove(name.as_bytes());
        }
        // A name may be named twice: the first one makes the second no less wanted.
        let has = |list: &FieldList, name: &str| list.has(name.as_bytes());
        let missing = self.added.iter().map(|(name, _)| !has(list, name));
        let missing: Vec<bool> = missing.collect();
        for ((name, value), missing) in self.added.iter().zip(missing) {
            if missing {
                list.push(name, value.as_bytes());
            }
        }
    }

    /// Appends an interim answer (1xx, not 101) as the client is to see it.
    pub fn write_interim(&self, status: u16, fields: &[u8], out: &mut Vec<u8>) {
        let mut list = FieldList::default();
        for (name, value) in wire::http1::fields(fields) {
            let at = list.begin(name);
            match list.name(at) {
                b"Connection"
                | b"Content-Length"
                | b"Keep-Alive"
                | b"Proxy-Connection"
                | b"Te"
                | b"Trailer"
                | b"Transfer-Encoding"
                | b"Upgrade"
                | b"X-Cf-Proxy-Signature" => list.drop(at),
                _ => {
                    list.keep(at, value);
                }
            }
        }
        self.rewrite(&mut list);
        list.sort();
        write_status(1, status, out);
        list.write(out);
        out.extend_from_slice(b"\r\n");
    }
}

/// What was noticed of an answer's fields.
#[derive(Debug, Default)]
struct AnswerSeen {
    length: bool,
    date: bool,
    request_id: bool,
    /// Whether the first `Pragma` says `no-cache`.
    pragma: Option<bool>,
    cache_control: bool,
}

fn write_status(minor: u8, status: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(if minor == 0 {
        b"HTTP/1.0 "
    } else {
        b"HTTP/1.1 "
    });
    digits::<3>(u64::from(status), out);
    out.push(b' ');
    match reason(status) {
        Some(reason) => out.extend_from_slice(reason.as_bytes()),
        None => {
            out.extend_from_slice(b"status code ");
            decimal(u64::from(status), out);
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends status line and fields, and behind them what Go's server adds itself: the date,
/// whether the connection goes on, how the body is framed. `length`: that of the body, if
/// the fields tell it.
#[expect(
    clippy::too_many_arguments,
    reason = "one call each for the two kinds of answers"
)]
fn finish(
    head: &RequestHead,
    list: &mut FieldList,
    status: u16,
    length: Option<u64>,
    dated: bool,
    keep_alive: bool,
    now: Times,
    out: &mut Vec<u8>,
) -> Promise {
    let may_have_body = !matches!(status, 100..200 | 204 | 304);
    let has_body = may_have_body && head.method() != b"HEAD";
    if !may_have_body {
        list.remove(b"Content-Length");
        if status == 304 {
            list.remove(b"Content-Type");
        }
    }
    let body = match length {
        _ if !has_body => ClientBody::None,
        Some(length) => ClientBody::Exactly(length),
        None if head.minor() == 0 => ClientBody::UntilClose,
        None => ClientBody::Chunked,
    };
    let keep_alive = keep_alive && head.keep_alive() && body != ClientBody::UntilClose;
    list.sort();
    write_status(head.minor(), status, out);
    list.write(out);
    if !dated {
        write_date(now, out);
    }
    write_connection(head, keep_alive, out);
    if body == ClientBody::Chunked {
        out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
    }
    out.extend_from_slice(b"\r\n");
    Promise { body, keep_alive }
}

/// Appends a whole answer of the router's own, whose fields are in the list.
pub(super) fn write_own(
    head: &RequestHead,
    list: &mut FieldList,
    status: u16,
    body: &[u8],
    keep_alive: bool,
    now: Times,
    out: &mut Vec<u8>,
) -> bool {
    let keep_alive = keep_alive && head.keep_alive();
    list.sort();
    write_status(head.minor(), status, out);
    list.write(out);
    write_date(now, out);
    // Of an answer to HEAD Go's server cannot tell no body from one that was not written.
    if head.method() != b"HEAD" || !body.is_empty() {
        out.extend_from_slice(b"Content-Length: ");
        decimal(body.len() as u64, out);
        out.extend_from_slice(b"\r\n");
    }
    // After 431 gorouter closes without a word.
    if keep_alive || status != 431 {
        write_connection(head, keep_alive, out);
    }
    out.extend_from_slice(b"\r\n");
    if head.method() != b"HEAD" {
        out.extend_from_slice(body);
    }
    keep_alive
}

/// Appends the answer to `OPTIONS *`, whose length Go's handler says before the date.
pub(super) fn write_options(
    head: &RequestHead,
    keep_alive: bool,
    now: Times,
    out: &mut Vec<u8>,
) -> bool {
    let keep_alive = keep_alive && head.keep_alive();
    write_status(head.minor(), 200, out);
    out.extend_from_slice(b"Content-Length: 0\r\n");
    write_date(now, out);
    write_connection(head, keep_alive, out);
    out.extend_from_slice(b"\r\n");
    keep_alive
}

/// Whether the request went to a route service, be it by way of the router itself: what
/// the service answers belongs to no session of the application.
fn is_of_service(request: &FieldList) -> bool {
    request.has(b"X-Cf-Proxy-Signature") && request.has(b"X-Cf-Forwarded-Url")
}

fn write_date(now: Times, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Date: ");
    http_date(now.wall, out);
    out.extend_from_slice(b"\r\n");
}

fn write_connection(head: &RequestHead, keep_alive: bool, out: &mut Vec<u8>) {
    match (head.minor(), keep_alive) {
        (0, true) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
        (0, false) | (_, true) => {}
        // As in gorouter, which goes on with such a connection: here it ends without a word,
        // since nobody knows where the next request would begin (RFC 9112 section 6.1).
        (_, false) if is_framed_twice(head) => {}
        (_, false) => out.extend_from_slice(b"Connection: close\r\n"),
    }
}

/// Whether a request says in two ways how its body ends; its chunks count.
fn is_framed_twice(head: &RequestHead) -> bool {
    head.body() == RequestBody::Chunked && head.field("Content-Length").is_some()
}
