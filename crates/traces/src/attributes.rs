//! What attributes say of a span, whatever format they came in: the names that this program
//! writes, and those of other systems (OpenTelemetry's old and new ones, OpenTracing's,
//! Zipkin's).
//!
//! A reader says what its format has fields for ([`Raw`]), hands over the attributes one
//! by one, and gets the span. So the same span is the same whatever file it comes from.

use std::borrow::Cow;

use serde::Serialize;

use super::failure;
use super::names::Names;
use super::{Origin, Span, SpanKind};
use crate::Nanos;
use crate::{SpanId, TraceId};

/// A piece of work of ours: its kind. Without it, a span that is neither a server's nor a
/// client's is something of which only the name is known.
const WORK: &str = "headroom.work";
/// Processor time, in nanoseconds.
const CPU: &str = "headroom.cpu_ns";
/// Time before it could begin, in nanoseconds.
const QUEUE: &str = "headroom.queue_ns";
/// The profile in force.
const REVISION: &str = "headroom.revision";
/// Which attempt of a call it is.
pub(super) const ATTEMPT: &str = "headroom.attempt";
/// Of formats that count microseconds: the start in nanoseconds since the Unix epoch.
const START: &str = "headroom.start_ns";
/// Likewise: how long it took.
const LENGTH: &str = "headroom.duration_ns";

/// Why it failed.
pub(super) const ERROR_TYPE: &str = "error.type";
/// Who was called.
pub(super) const PEER: &str = "peer.service";

/// Names of which formats have their own.
pub(super) struct Spelling {
    pub(super) path: &'static str,
    pub(super) status: &'static str,
    pub(super) attempt: &'static str,
}

/// What every format tells of a span by attributes; numbers that are zero are left out.
pub(super) fn written<'a>(
    span: &'a Span,
    names: &Spelling,
) -> impl Iterator<Item = (&'static str, Value<'a>)> {
    let about = match span.kind {
        SpanKind::Server | SpanKind::Client => Some(names.path),
        SpanKind::Work => Some(WORK),
        SpanKind::Internal => None,
    };
    let about = about.map(|key| (key, Value::Text(&span.name)));
    let error = (!span.cause.is_empty()).then_some((ERROR_TYPE, Value::Text(span.cause)));
    let numbers = [
        (names.status, u64::from(span.status)),
        (names.attempt, u64::from(span.attempt)),
        (CPU, span.cpu),
        (QUEUE, span.queue),
        (REVISION, u64::from(span.revision)),
    ];
    let numbers = numbers.into_iter().filter(|(_, number)| *number > 0);
    let numbers = numbers.map(|(key, number)| (key, Value::Number(number)));
    about.into_iter().chain(error).chain(numbers)
}

/// What formats that count microseconds tell beside: times to the nanosecond.
pub(super) fn exact(start: u64, end: u64) -> [(&'static str, Value<'static>); 2] {
    let length = end.saturating_sub(start);
    [
        (START, Value::Number(start)),
        (LENGTH, Value::Number(length)),
    ]
}

/// The value of an attribute.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(untagged)]
pub(super) enum Value<'a> {
    Text(&'a str),
    Number(u64),
    Bool(bool),
    /// A list, a fraction, nothing.
    Other,
}

impl<'a> Value<'a> {
    pub(super) fn text(self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A number; some writers have it as a text.
    pub(super) fn number(self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Text(text) => text.parse().ok(),
            _ => None,
        }
    }
}

impl<'a> From<&'a serde_json::Value> for Value<'a> {
    fn from(json: &'a serde_json::Value) -> Self {
        match json {
            serde_json::Value::String(text) => Self::Text(text),
            serde_json::Value::Bool(yes) => Self::Bool(*yes),
            serde_json::Value::Number(number) => number.as_u64().map_or(Self::Other, Self::Number),
            _ => Self::Other,
        }
    }
}

/// What a format has fields for.
#[derive(Debug)]
pub(super) struct Raw<'a> {
    pub(super) trace: TraceId,
    pub(super) id: SpanId,
    pub(super) parent: SpanId,
    /// Never work: the attributes say so.
    pub(super) kind: SpanKind,
    /// `None`: the format does not tell.
    pub(super) service: Option<&'a str>,
    pub(super) name: &'a str,
    pub(super) start: Nanos,
    pub(super) end: Nanos,
}

/// The best of several attributes that say the same.
#[derive(Debug, Default)]
struct Best<'a>(Option<(u8, &'a str)>);

impl<'a> Best<'a> {
    fn take(&mut self, rank: u8, value: Value<'a>) {
        let better = self.0.is_none_or(|(known, _)| rank < known);
        if let Some(text) = value.text().filter(|text| better && !text.is_empty()) {
            self.0 = Some((rank, text));
        }
    }
}

/// Ranks of who was called: those from here on to before the next are addresses, to which a
/// port belongs.
const ADDRESS: u8 = 1;
const NAME_OF_ENDPOINT: u8 = 8;
const SYSTEM: u8 = 16;

/// Ranks of paths: those from here on have a query, or a scheme and a host.
const URL: u8 = 4;

/// What the attributes of one span say.
#[derive(Debug, Default)]
pub(super) struct Facts<'a> {
    /// `server`, `client` and so on, where the format has it as an attribute.
    pub(super) kind: Option<&'a str>,
    /// It failed; formats may say so themselves.
    pub(super) failed: bool,
    /// What is said of that; may be empty.
    pub(super) message: &'a str,
    is_ours: bool,
    path: Best<'a>,
    callee: Best<'a>,
    port: Option<(u8, u64)>,
    error: Option<&'a str>,
    status: u64,
    attempt: u64,
    cpu: Nanos,
    queue: Nanos,
    revision: u64,
    start: Option<u64>,
    length: Option<u64>,
}

impl<'a> Facts<'a> {
    /// Takes one in.
    pub(super) fn take(&mut self, key: &str, value: Value<'a>) {
        let number = || value.number().unwrap_or(0);
        match key {
            WORK => self.is_ours = true,
            CPU => (self.cpu, self.is_ours) = (number(), true),
            QUEUE => (self.queue, self.is_ours) = (number(), true),
            REVISION => (self.revision, self.is_ours) = (number(), true),
            ATTEMPT | "http.request.resend_count" | "http.resend_count" => {
                self.attempt = self.attempt.max(number());
            }
            START => self.start = value.number(),
            LENGTH => self.length = value.number(),
            "span.kind" => self.kind = value.text(),
            // One route is one kind of request, however many paths have it.
            "http.route" | "url.template" => self.path.take(0, value),
            "url.path" => self.path.take(1, value),
            "http.path" => self.path.take(2, value),
            "http.target" => self.path.take(URL, value),
            "http.url" => self.path.take(URL + 1, value),
            "url.full" => self.path.take(URL + 2, value),
            "http.response.status_code" | "http.status_code" => {
                self.status = self.status.max(number());
            }
            ERROR_TYPE => self.error = value.text(),
            "otel.status_code" => self.failed |= value.text() == Some("ERROR"),
            "otel.status_description" => self.message = value.text().unwrap_or_default(),
            "error" => self.error(value),
            PEER | "service.peer.name" => self.callee.take(0, value),
            "server.address" => self.callee.take(ADDRESS, value),
            "net.peer.name" => self.callee.take(ADDRESS + 1, value),
            "peer.hostname" => self.callee.take(ADDRESS + 2, value),
            "network.peer.address" => self.callee.take(ADDRESS + 3, value),
            "net.sock.peer.addr" | "net.peer.ip" => self.callee.take(ADDRESS + 4, value),
            "peer.ipv4" | "peer.ipv6" | "peer.address" => self.callee.take(ADDRESS + 5, value),
            "server.port" => self.port(0, value.number()),
            "net.peer.port" => self.port(1, value.number()),
            "network.peer.port" => self.port(2, value.number()),
            "peer.port" => self.port(3, value.number()),
            "db.system.name" | "db.system" => self.callee.take(SYSTEM, value),
            "messaging.system" => self.callee.take(SYSTEM + 1, value),
            _ => {}
        }
    }

    /// A mark (`true`), or what went wrong.
    fn error(&mut self, value: Value<'a>) {
        match value {
            Value::Text("false") | Value::Bool(false) | Value::Number(_) | Value::Other => {}
            Value::Bool(true) | Value::Text("" | "true" | "error") => self.failed = true,
            Value::Text(message) => (self.failed, self.message) = (true, message),
        }
    }

    /// What the format itself says of the other end: a name, else an address.
    pub(super) fn endpoint(&mut self, name: &'a str, address: &'a str, port: Option<u64>) {
        self.callee.take(NAME_OF_ENDPOINT, Value::Text(name));
        // A name that stands alone has no port behind it.
        if self.callee.0.is_none() {
            self.callee.take(SYSTEM - 1, Value::Text(address));
            self.port(4, port);
        }
    }

    fn port(&mut self, rank: u8, port: Option<u64>) {
        let better = self.port.is_none_or(|(known, _)| rank < known);
        if let Some(port) = port.filter(|_| better) {
            self.port = Some((rank, port));
        }
    }

    /// When the span began and ended, of a format that counts microseconds: to the
    /// nanosecond, if what the format says is still that of the writer: others may have moved
    /// a span since. `micros` is what it says of the start and the length, `least` what its
    /// writer makes of less.
    pub(super) fn times(&self, micros: (u64, u64), least: u64, origin: &Origin) -> (Nanos, Nanos) {
        let nanos = |micros: u64| micros.saturating_mul(1000);
        let exact = self.exact(micros, least);
        let (start, length) = exact.unwrap_or((nanos(micros.0), nanos(micros.1)));
        let start = origin.epoch.of_unix(start);
        (start, start.saturating_add(length))
    }

    fn exact(&self, micros: (u64, u64), least: u64) -> Option<(u64, u64)> {
        let (start, length) = (self.start?, self.length?);
        let (begun, took) = to_micros(start, start.checked_add(length)?);
        ((begun.max(least), took.max(least)) == micros).then_some((start, length))
    }

    /// The span.
    pub(super) fn span(&self, raw: &Raw<'_>, names: &mut Names) -> Span {
        let kind = match raw.kind {
            SpanKind::Internal if self.is_ours => SpanKind::Work,
            kind => kind,
        };
        let (name, callee) = match kind {
            SpanKind::Work | SpanKind::Internal => (None, None),
            SpanKind::Server => (self.path(), None),
            SpanKind::Client => (self.path(), self.callee()),
        };
        Span {
            trace: raw.trace,
            id: raw.id,
            parent: raw.parent,
            kind,
            service: names.share(
                raw.service
                    .filter(|name| !name.is_empty())
                    .unwrap_or("unknown"),
            ),
            name: names.share(name.unwrap_or(raw.name)),
            peer: names.share(&callee.unwrap_or_default()),
            start: raw.start,
            end: raw.end,
            cpu: self.cpu,
            queue: self.queue,
            status: u16::try_from(self.status).unwrap_or(0),
            attempt: u8::try_from(self.attempt).unwrap_or(u8::MAX),
            revision: u32::try_from(self.revision).unwrap_or(0),
            cause: self.cause(),
        }
    }

    fn path(&self) -> Option<&'a str> {
        let (rank, text) = self.path.0?;
        Some(if rank < URL { text } else { path_of(text) })
    }

    /// With its port, if it is an address of which several can be on one machine.
    fn callee(&self) -> Option<Cow<'a, str>> {
        let (rank, text) = self.callee.0?;
        let is_address = (ADDRESS..SYSTEM).contains(&rank) && rank != NAME_OF_ENDPOINT;
        let ip: Option<std::net::IpAddr> = text.parse().ok();
        let shared = text == "localhost" || ip.is_some();
        Some(match (self.port.filter(|_| is_address && shared), ip) {
            (Some((_, port)), Some(std::net::IpAddr::V6(ip))) => format!("[{ip}]:{port}").into(),
            (Some((_, port)), _) => format!("{text}:{port}").into(),
            (None, _) => text.into(),
        })
    }

    fn cause(&self) -> &'static str {
        match self.error {
            Some(known) if failure::is_known(known) => return failure::known(known),
            None if !self.failed => return "",
            _ => {}
        }
        match self.message {
            // HTTP's status says it.
            "" if self.status >= 400 => "",
            "" => "error",
            message => failure::known(message),
        }
    }
}

/// A start and a length in microseconds. Both ends are rounded down, so that spans stay
/// within those around them.
pub(super) fn to_micros(start: u64, end: u64) -> (u64, u64) {
    (start / 1000, (end / 1000).saturating_sub(start / 1000))
}

/// The path of a URL or of what follows its authority.
fn path_of(url: &str) -> &str {
    let plain = url.split(['?', '#']).next().unwrap_or(url);
    // Of a target, which begins with its path, another URL may be a part.
    match plain.split_once("://").filter(|_| !plain.starts_with('/')) {
        Some((_, rest)) => rest.find('/').map_or("/", |slash| &rest[slash..]),
        None => plain,
    }
}
