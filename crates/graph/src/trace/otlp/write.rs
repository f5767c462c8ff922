//! Writing spans.

use std::collections::BTreeMap;

use prost::Message;

use super::message::{
    AnyValue, KeyValue, Resource, ResourceSpans, Scope, ScopeSpans, Span as Written, Status,
    Traces, Value,
};
use super::names;
use crate::draw::SpanId;
use crate::trace::attributes::{WORK, numbers};
use crate::trace::{Origin, Span, SpanKind};

/// Spans as the body of a request in protobuf.
pub fn write_protobuf(spans: &[Span], origin: &Origin) -> Vec<u8> {
    traces(spans, origin).encode_to_vec()
}

/// Spans as the body of a request in JSON.
pub fn write_json(spans: &[Span], origin: &Origin) -> Vec<u8> {
    // Neither a text nor a number of these messages can fail to be written.
    serde_json::to_vec(&traces(spans, origin)).unwrap_or_default()
}

/// A service is a resource.
fn traces(spans: &[Span], origin: &Origin) -> Traces {
    let mut services: BTreeMap<&str, Vec<Written>> = BTreeMap::new();
    for span in spans {
        let of = services.entry(&span.service).or_default();
        of.push(written(span, origin));
    }
    let resources = services.into_iter().map(|(service, spans)| ResourceSpans {
        resource: Some(Resource {
            attributes: vec![
                text(names::SERVICE, service),
                text(names::HOST, &origin.boot),
                int(names::AHEAD, origin.epoch.nanos()),
            ],
        }),
        scope_spans: vec![ScopeSpans {
            scope: Some(Scope {
                name: "headroom".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            }),
            spans,
        }],
    });
    Traces {
        resource_spans: resources.collect(),
    }
}

fn written(span: &Span, origin: &Origin) -> Written {
    let mut attributes = Vec::with_capacity(8);
    match span.kind {
        SpanKind::Server | SpanKind::Client => attributes.push(text(names::PATH, &span.name)),
        SpanKind::Work => attributes.push(text(WORK, &span.name)),
        SpanKind::Internal => {}
    }
    for (name, value) in [(names::ERROR, span.cause), (names::PEER, &span.peer)] {
        if !value.is_empty() {
            attributes.push(text(name, value));
        }
    }
    for (name, value) in [
        (names::STATUS, u64::from(span.status)),
        (names::RESENT, u64::from(span.attempt)),
    ] {
        if value > 0 {
            attributes.push(int(name, value));
        }
    }
    attributes.extend(numbers(span).map(|(name, value)| int(name, value)));
    let failed = !span.cause.is_empty() || span.status >= 500;
    let parent_span_id = match span.parent {
        SpanId(0) => Vec::new(),
        SpanId(parent) => parent.to_be_bytes().to_vec(),
    };
    Written {
        trace_id: span.trace.0.to_be_bytes().to_vec(),
        span_id: span.id.0.to_be_bytes().to_vec(),
        parent_span_id,
        name: span.name.as_ref().to_owned(),
        kind: match span.kind {
            SpanKind::Work | SpanKind::Internal => 1,
            SpanKind::Server => 2,
            SpanKind::Client => 3,
        },
        start_time_unix_nano: origin.epoch.to_unix(span.start),
        end_time_unix_nano: origin.epoch.to_unix(span.end),
        attributes,
        status: failed.then(|| Status {
            message: span.cause.to_owned(),
            code: 2,
        }),
        // What is exported was sampled (W3C's flag).
        flags: 1,
    }
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::Text(value.to_owned()))
}

fn int(key: &str, value: u64) -> KeyValue {
    attribute(key, Value::Int(i64::try_from(value).unwrap_or(i64::MAX)))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
    }
}
