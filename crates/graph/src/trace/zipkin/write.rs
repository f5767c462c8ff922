//! Writing spans.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::tags;
use crate::draw::SpanId;
use crate::trace::{Origin, Span, SpanKind, hex};

/// Spans as a list.
pub fn write(spans: &[Span], origin: &Origin) -> Vec<u8> {
    let list: Vec<_> = spans.iter().map(|span| Written { span, origin }).collect();
    // Neither a text nor a number of these can fail to be written.
    serde_json::to_vec(&list).unwrap_or_default()
}

struct Written<'a> {
    span: &'a Span,
    origin: &'a Origin,
}

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let span = self.span;
        let mut map = serializer.serialize_map(None)?;
        let mut id = Vec::with_capacity(32);
        hex::write_short_trace(span.trace, &mut id);
        map.serialize_entry("traceId", text(&id))?;
        for (key, of) in [("id", span.id), ("parentId", span.parent)] {
            if of != SpanId::default() {
                id.clear();
                hex::write_span(of, &mut id);
                map.serialize_entry(key, text(&id))?;
            }
        }
        match span.kind {
            SpanKind::Server => map.serialize_entry("kind", "SERVER")?,
            SpanKind::Client => map.serialize_entry("kind", "CLIENT")?,
            SpanKind::Work => {}
        }
        map.serialize_entry("name", &*span.name)?;
        // Both ends are rounded down, so that spans stay within those around them.
        let start = self.origin.epoch.to_unix(span.start) / 1000;
        let end = self.origin.epoch.to_unix(span.end) / 1000;
        map.serialize_entry("timestamp", &start)?;
        // 0 would mean that it is not known.
        map.serialize_entry("duration", &(end - start).max(1))?;
        map.serialize_entry("localEndpoint", &Endpoint(&span.service))?;
        if !span.peer.is_empty() {
            map.serialize_entry("remoteEndpoint", &Endpoint(&span.peer))?;
        }
        map.serialize_entry("tags", &Tags(span))?;
        map.end()
    }
}

/// Digits are text.
fn text(digits: &[u8]) -> &str {
    std::str::from_utf8(digits).unwrap_or_default()
}

struct Endpoint<'a>(&'a str);

impl Serialize for Endpoint<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("serviceName", self.0)?;
        map.end()
    }
}

/// A number as a text: all tags are.
struct Text(u64);

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

struct Tags<'a>(&'a Span);

impl Serialize for Tags<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let span = self.0;
        let mut map = serializer.serialize_map(None)?;
        if span.kind != SpanKind::Work {
            map.serialize_entry(tags::PATH, &*span.name)?;
        }
        if !span.cause.is_empty() {
            map.serialize_entry(tags::ERROR, span.cause)?;
        }
        for (name, value) in [
            (tags::STATUS, u64::from(span.status)),
            (tags::ATTEMPT, u64::from(span.attempt)),
            (tags::CPU, span.cpu),
            (tags::QUEUE, span.queue),
            (tags::REVISION, u64::from(span.revision)),
        ] {
            if value > 0 {
                map.serialize_entry(name, &Text(value))?;
            }
        }
        map.end()
    }
}
