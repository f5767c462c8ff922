//! Writing spans.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::LEAST;
use crate::SpanId;
use crate::attributes::{ATTEMPT, Spelling, Value, exact, to_micros, written};
use crate::{Origin, Span, SpanKind, hex};

const NAMES: Spelling = Spelling {
    path: "http.path",
    status: "http.status_code",
    attempt: ATTEMPT,
};

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
        map.serialize_entry("tags", &Tags { span, start, end })?;
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

/// A value as a text: all tags are.
struct Tag<'a>(Value<'a>);

impl Serialize for Tag<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Number(number) => serializer.collect_str(&number),
            value => serializer.serialize_str(value.text().unwrap_or_default()),
        }
    }
}

struct Tags<'a> {
    span: &'a Span,
    start: u64,
    end: u64,
}

impl Serialize for Tags<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let cause = self.span.cause;
        // The page marks red what has it, also if nothing but the status is known.
        let failed = !cause.is_empty() || self.span.status >= 500;
        let failed = failed.then_some(("error", Value::Text(cause)));
        let tags = failed.into_iter().chain(written(self.span, &NAMES));
        let tags = tags.chain(exact(self.start, self.end));
        serializer.collect_map(tags.map(|(key, value)| (key, Tag(value))))
    }
}
