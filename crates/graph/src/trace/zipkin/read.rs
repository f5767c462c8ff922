//! Reading spans.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde::Deserialize;

use super::tags;
use crate::Nanos;
use crate::draw::{SpanId, TraceId};
use crate::trace::names::{Names, cause};
use crate::trace::{Origin, ReadError, Span, SpanKind, hex};

/// Reads a list of spans. Those without a time stamp are left out: they have no place.
///
/// B3 lets a server share the span of its client. Such a server gets an id of its own
/// below it, and what the server's service did below the shared one moves there, as far
/// as it is in the same list.
///
/// # Errors
/// When it is no such list, or the ids of a span are not.
pub fn read(json: &[u8], origin: &Origin, names: &mut Names) -> Result<Vec<Span>, ReadError> {
    let list: Vec<Read<'_>> = serde_json::from_slice(json).map_err(|error| ReadError::Form {
        format: "Zipkin's JSON",
        cause: error.to_string(),
    })?;
    let mut spans = Vec::with_capacity(list.len());
    let mut shared = HashSet::new();
    for (place, read) in list.iter().enumerate() {
        let Some(span) = read.span(place + 1, origin, names)? else {
            continue;
        };
        if read.shared && span.kind == SpanKind::Server {
            shared.insert((span.trace, span.id));
        }
        spans.push(span);
    }
    part(&mut spans, shared);
    Ok(spans)
}

/// Where writers put the path, the status and the callee: Zipkin's tags, then
/// OpenTelemetry's.
const PATHS: [&str; 3] = [tags::PATH, "url.path", "http.target"];
const STATUSES: [&str; 2] = [tags::STATUS, "http.response.status_code"];
const PEERS: [&str; 1] = ["peer.service"];

/// Gives servers that share the id of their client one of their own.
fn part(spans: &mut [Span], mut shared: HashSet<(TraceId, SpanId)>) {
    // Older writers do not say that they share.
    let clients = spans.iter().filter(|span| span.kind == SpanKind::Client);
    let clients: HashSet<_> = clients.map(|span| (span.trace, span.id)).collect();
    let servers = spans.iter().filter(|span| span.kind == SpanKind::Server);
    let servers = servers.map(|span| (span.trace, span.id));
    shared.extend(servers.filter(|id| clients.contains(id)));
    if shared.is_empty() {
        return;
    }
    let mut moved = HashMap::new();
    for span in spans.iter_mut().filter(|one| one.kind == SpanKind::Server) {
        if shared.contains(&(span.trace, span.id)) {
            let own = span.id.child(span.trace, 0, 0);
            moved.insert((span.trace, span.id), (own, span.service.clone()));
            (span.parent, span.id) = (span.id, own);
        }
    }
    for span in spans.iter_mut().filter(|one| one.kind != SpanKind::Server) {
        match moved.get(&(span.trace, span.parent)) {
            Some((server, service)) if *service == span.service => span.parent = *server,
            _ => {}
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Read<'a> {
    #[serde(borrow)]
    trace_id: Cow<'a, str>,
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    parent_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(default)]
    timestamp: Option<u64>,
    #[serde(default)]
    duration: Option<u64>,
    #[serde(borrow, default)]
    local_endpoint: Option<Endpoint<'a>>,
    #[serde(borrow, default)]
    remote_endpoint: Option<Endpoint<'a>>,
    #[serde(borrow, default)]
    tags: HashMap<Cow<'a, str>, Cow<'a, str>>,
    #[serde(default)]
    shared: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Endpoint<'a> {
    #[serde(borrow, default)]
    service_name: Option<Cow<'a, str>>,
}

impl Read<'_> {
    /// `None`: it has no time.
    fn span(
        &self,
        place: usize,
        origin: &Origin,
        names: &mut Names,
    ) -> Result<Option<Span>, ReadError> {
        let refuse = |what| ReadError::Id { place, what };
        let trace = hex::read_trace(self.trace_id.as_bytes()).ok_or_else(|| refuse("traceId"))?;
        let id = hex::read_span(self.id.as_bytes()).ok_or_else(|| refuse("id"))?;
        let parent = match self.parent_id.as_deref() {
            None | Some("") => SpanId::default(),
            // Some writers say zero for none.
            Some(text) if text.bytes().all(|digit| digit == b'0') => SpanId::default(),
            Some(text) => hex::read_span(text.as_bytes()).ok_or_else(|| refuse("parentId"))?,
        };
        let Some(timestamp) = self.timestamp.filter(|time| *time > 0) else {
            return Ok(None);
        };
        let kind = match self.kind.as_deref() {
            Some("SERVER" | "CONSUMER") => SpanKind::Server,
            Some("CLIENT" | "PRODUCER") => SpanKind::Client,
            _ => SpanKind::Work,
        };
        let name = self.name.as_deref().unwrap_or_default();
        let name = match kind {
            SpanKind::Work => name,
            SpanKind::Server | SpanKind::Client => self.first(PATHS).unwrap_or(name),
        };
        let peer = match kind {
            SpanKind::Client => {
                service(self.remote_endpoint.as_ref()).or_else(|| self.first(PEERS))
            }
            SpanKind::Server | SpanKind::Work => None,
        };
        let nanos = |micros: u64| -> Nanos { micros.saturating_mul(1000) };
        let start = origin.epoch.of_unix(nanos(timestamp));
        let number = |tag| self.first([tag]).and_then(|text| text.parse::<u64>().ok());
        let number = |tag| number(tag).unwrap_or(0);
        let status = self.first(STATUSES).and_then(|text| text.parse().ok());
        // A tag without a text marks a failure too.
        let why = self.first([tags::ERROR]).map(|why| match why {
            "" => "error",
            why => why,
        });
        Ok(Some(Span {
            trace,
            id,
            parent,
            kind,
            service: names.share(service(self.local_endpoint.as_ref()).unwrap_or("unknown")),
            name: names.share(name),
            peer: names.share(peer.unwrap_or_default()),
            start,
            end: start.saturating_add(nanos(self.duration.unwrap_or(0))),
            cpu: number(tags::CPU),
            queue: number(tags::QUEUE),
            status: status.unwrap_or(0),
            attempt: u8::try_from(number(tags::ATTEMPT)).unwrap_or(u8::MAX),
            revision: u32::try_from(number(tags::REVISION)).unwrap_or(0),
            cause: cause(why.unwrap_or_default()),
        }))
    }

    /// The value of the first of these tags that is there.
    fn first<const N: usize>(&self, names: [&str; N]) -> Option<&str> {
        let mut found = names.iter().filter_map(|name| self.tags.get(*name));
        found.next().map(|value| &**value)
    }
}

fn service<'a>(endpoint: Option<&'a Endpoint<'_>>) -> Option<&'a str> {
    endpoint?.service_name.as_deref()
}
