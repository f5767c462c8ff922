//! Writing spans.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{LEAST, tags};
use crate::draw::SpanId;
use crate::trace::attributes::{ATTEMPT, LENGTH, START, WORK, numbers, to_micros};
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
            SpanKind::Work | SpanKind::Internal => {}
        }
        map.serialize_entry("name", &*span.name)?;
        let start = self.origin.epoch.to_unix(span.start);
        let end = self.origin.epoch.to_unix(span.end);
        let (begun, took) = to_micros(start, end);
        // 0 would mean that it is not known.
        map.serialize_entry("timestamp", &begun.max(LEAST))?;
        map.serialize_entry("duration", &took.max(LEAST))?;
        map.serialize_entry("localEndpoint", &Endpoint(&span.service))?;
        if !span.peer.is_empty() {
            map.serialize_entry("remoteEndpoint", &Endpoint(&span.peer))?;
        }
        let exact = (start, end.saturating_sub(start));
        map.serialize_entry("tags", &Tags { span, exact })?;
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

struct Tags<'a> {
    span: &'a Span,
    /// Start and length in nanoseconds.
    exact: (u64, u64),
}

impl Serialize for Tags<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let span = self.span;
        let mut map = serializer.serialize_map(None)?;
        match span.kind {
            SpanKind::Server | SpanKind::Client => map.serialize_entry(tags::PATH, &*span.name)?,
            SpanKind::Work => map.serialize_entry(WORK, &*span.name)?,
            SpanKind::Internal => {}
        }
        if !span.cause.is_empty() {
            map.serialize_entry(tags::ERROR, span.cause)?;
            map.serialize_entry(tags::ERROR_TYPE, span.cause)?;
        }
        for (name, value) in [
            (tags::STATUS, u64::from(span.status)),
            (ATTEMPT, u64::from(span.attempt)),
        ] {
            if value > 0 {
                map.serialize_entry(name, &Text(value))?;
            }
        }
        for (name, value) in numbers(span) {
            map.serialize_entry(name, &Text(value))?;
        }
        map.serialize_entry(START, &Text(self.exact.0))?;
        map.serialize_entry(LENGTH, &Text(self.exact.1))?;
        map.end()
    }
}
