//! Spans as Jaeger's query service and its page give them: JSON, a list of traces or one
//! alone (`model/json` of jaegertracing/jaeger). Read only.
//!
//! Times are in microseconds. A span names its service by a process of its trace, and its
//! parent by a reference.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::names::{Names, cause};
use super::{Origin, ReadError, Span, SpanKind};
use crate::Nanos;
use crate::draw::{SpanId, TraceId};

/// Keys with which such a file begins, unlike OTLP's.
pub const KEYS: [&str; 8] = [
    "data",
    "total",
    "limit",
    "offset",
    "errors",
    "traceID",
    "spans",
    "processes",
];

/// Where writers put the path, the status and the callee: OpenTracing's tags and
/// OpenTelemetry's.
const PATHS: [&str; 4] = ["http.path", "url.path", "http.target", "http.url"];
const STATUSES: [&str; 2] = ["http.status_code", "http.response.status_code"];
const PEERS: [&str; 2] = ["peer.service", "server.address"];

/// Reads the traces. Where a span does not say its kind, one whose parent is of another
/// service, or that has none, is that of a server; another one is work.
///
/// # Errors
/// When it is no such JSON, or the ids of a span are not.
pub fn read(json: &[u8], origin: &Origin, names: &mut Names) -> Result<Vec<Span>, ReadError> {
    let file: File<'_> = serde_json::from_slice(json).map_err(|error| ReadError::Form {
        format: "Jaeger's JSON",
        cause: error.to_string(),
    })?;
    let mut spans = Vec::new();
    for trace in file.data.iter().chain(&file.alone()) {
        let services = trace.services();
        for read in &trace.spans {
            let place = spans.len() + 1;
            spans.push(read.span(place, trace, &services, origin, names)?);
        }
    }
    name_callees(&mut spans);
    Ok(spans)
}

/// A client's peer is the service that answered, if that is known: what its tags say may be
/// an address or a host.
fn name_callees(spans: &mut [Span]) {
    let servers = spans.iter().filter(|span| span.kind == SpanKind::Server);
    let answered = servers.map(|span| ((span.trace, span.parent), span.service.clone()));
    let answered: HashMap<_, _> = answered.collect();
    for span in spans.iter_mut().filter(|one| one.kind == SpanKind::Client) {
        if let Some(service) = answered.get(&(span.trace, span.id)) {
            span.peer.clone_from(service);
        }
    }
}

/// A list of traces, or one.
#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow, default)]
    data: Vec<Trace<'a>>,
    #[serde(borrow, default)]
    spans: Vec<Read<'a>>,
    #[serde(borrow, default)]
    processes: HashMap<Cow<'a, str>, Process<'a>>,
}

#[derive(Deserialize, Clone)]
struct Trace<'a> {
    #[serde(borrow)]
    spans: Vec<Read<'a>>,
    #[serde(borrow, default)]
    processes: HashMap<Cow<'a, str>, Process<'a>>,
}

#[derive(Deserialize, Clone)]
#[serde(rename_all = "camelCase")]
struct Process<'a> {
    #[serde(borrow)]
    service_name: Cow<'a, str>,
}

#[derive(Deserialize, Clone)]
#[serde(rename_all = "camelCase")]
struct Read<'a> {
    #[serde(borrow, rename = "traceID")]
    trace: Cow<'a, str>,
    #[serde(borrow, rename = "spanID")]
    id: Cow<'a, str>,
    /// Older than references.
    #[serde(borrow, rename = "parentSpanID", default)]
    parent: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    operation_name: Cow<'a, str>,
    #[serde(borrow, default)]
    references: Vec<Reference<'a>>,
    start_time: u64,
    #[serde(default)]
    duration: u64,
    #[serde(borrow, default)]
    tags: Vec<Tag<'a>>,
    #[serde(borrow, rename = "processID", default)]
    process_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    process: Option<Process<'a>>,
}

#[derive(Deserialize, Clone)]
struct Reference<'a> {
    #[serde(borrow, rename = "refType", default)]
    kind: Cow<'a, str>,
    #[serde(borrow, rename = "traceID", default)]
    trace: Cow<'a, str>,
    #[serde(borrow, rename = "spanID")]
    id: Cow<'a, str>,
}

#[derive(Deserialize, Clone)]
struct Tag<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
    #[serde(default)]
    value: Value,
}

impl<'a> File<'a> {
    /// The trace that stands there without a list.
    fn alone(&self) -> Option<Trace<'a>> {
        (!self.spans.is_empty()).then(|| Trace {
            spans: self.spans.clone(),
            processes: self.processes.clone(),
        })
    }
}

impl Trace<'_> {
    /// The service of each span.
    fn services(&self) -> HashMap<&str, &str> {
        let spans = self.spans.iter();
        spans
            .filter_map(|read| Some((&*read.id, self.service(read)?)))
            .collect()
    }

    fn service<'t>(&'t self, read: &'t Read<'_>) -> Option<&'t str> {
        let named = read.process_id.as_deref();
        let process = named.and_then(|name| self.processes.get(name));
        let process = process.or(read.process.as_ref())?;
        Some(&process.service_name)
    }
}

impl Read<'_> {
    fn span(
        &self,
        place: usize,
        trace: &Trace<'_>,
        services: &HashMap<&str, &str>,
        origin: &Origin,
        names: &mut Names,
    ) -> Result<Span, ReadError> {
        let refuse = |what| ReadError::Id { place, what };
        let id = number(&self.trace).ok_or_else(|| refuse("traceId"))?;
        let own = span_id(&self.id).ok_or_else(|| refuse("spanID"))?;
        let above = self.parent();
        let parent = match above {
            None => SpanId::default(),
            Some(text) => span_id(text).ok_or_else(|| refuse("parent's spanID"))?,
        };
        let service = trace.service(self).unwrap_or("unknown");
        let kind = match self.text("span.kind") {
            Some("server" | "consumer") => SpanKind::Server,
            Some("client" | "producer") => SpanKind::Client,
            Some(_) => SpanKind::Work,
            None => match above.and_then(|above| services.get(above)) {
                Some(other) if *other == service => SpanKind::Work,
                _ => SpanKind::Server,
            },
        };
        let path = PATHS.iter().find_map(|key| self.text(key)).map(path);
        let peer = PEERS.iter().find_map(|key| self.text(key));
        let (path, peer) = match kind {
            SpanKind::Work => (None, None),
            SpanKind::Server => (path, None),
            SpanKind::Client => (path, peer),
        };
        let status = STATUSES.iter().find_map(|key| self.number(key));
        let status = status.and_then(|status| u16::try_from(status).ok());
        let status = status.unwrap_or(0);
        // HTTP's status says it, if there is one.
        let failed = self.failed() && status < 400;
        let why = failed.then(|| self.text("otel.status_description").unwrap_or("error"));
        let nanos = |micros: u64| -> Nanos { micros.saturating_mul(1000) };
        let start = origin.epoch.of_unix(nanos(self.start_time));
        Ok(Span {
            trace: TraceId(id),
            id: own,
            parent,
            kind,
            service: names.share(service),
            name: names.share(path.unwrap_or(&self.operation_name)),
            peer: names.share(peer.unwrap_or_default()),
            start,
            end: start.saturating_add(nanos(self.duration)),
            cpu: 0,
            queue: 0,
            status,
            attempt: 0,
            revision: 0,
            cause: cause(why.unwrap_or_default()),
        })
    }

    /// The span of this trace that it is below of.
    fn parent(&self) -> Option<&str> {
        let here = |one: &&Reference<'_>| one.trace.is_empty() || one.trace == self.trace;
        let mut references = self.references.iter().filter(here);
        let first = references.clone().next();
        let child = references.find(|one| one.kind == "CHILD_OF");
        let above = child.or(first).map(|one| &*one.id);
        let above = above.or(self.parent.as_deref());
        above.filter(|id| id.bytes().any(|digit| digit != b'0'))
    }

    fn tag(&self, key: &str) -> Option<&Value> {
        let found = self.tags.iter().find(|tag| tag.key == key);
        found.map(|tag| &tag.value)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.tag(key)?.as_str()
    }

    /// A number; some writers have it as a text.
    fn number(&self, key: &str) -> Option<u64> {
        let value = self.tag(key)?;
        value.as_u64().or_else(|| value.as_str()?.parse().ok())
    }

    fn failed(&self) -> bool {
        match self.tag("error") {
            Some(Value::Bool(failed)) => *failed,
            Some(Value::String(text)) => text != "false",
            _ => false,
        }
    }
}

/// Jaeger leaves out the zeros before a number.
fn number(digits: &str) -> Option<u128> {
    let plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = u128::from_str_radix(digits, 16).ok().filter(|_| plain)?;
    (number != 0).then_some(number)
}

fn span_id(digits: &str) -> Option<SpanId> {
    u64::try_from(number(digits)?).ok().map(SpanId)
}

/// The path of a URL or of what follows its authority.
fn path(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| {
        rest.find('/').map_or("/", |slash| &rest[slash..])
    });
    rest.split(['?', '#']).next().unwrap_or(rest)
}

#[cfg(test)]
mod tests;
