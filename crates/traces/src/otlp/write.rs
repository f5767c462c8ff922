//! Writing spans.

use std::collections::BTreeMap;

use prost::Message;

use super::message::{
    AnyValue, KeyValue, Resource, ResourceSpans, Scope, ScopeSpans, Span as Written, Status,
    Traces, Value,
};
use super::names;
use crate::SpanId;
use crate::attributes::{PEER, Spelling, Value as Plain, written};
use crate::{Origin, Span, SpanKind};

const NAMES: Spelling = Spelling {
    path: "url.path",
    status: "http.response.status_code",
    attempt: "http.request.resend_count",
};

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
        of.push(message(span, origin));
    }
    let resources = services.into_iter().map(|(service, spans)| ResourceSpans {
        resource: Some(Resource {
            attributes: vec![
                attribute(names::SERVICE, Plain::Text(service)),
                attribute(names::BOOT, Plain::Text(&origin.boot)),
                attribute(names::AHEAD, Plain::Number(origin.epoch.nanos())),
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

fn message(span: &Span, origin: &Origin) -> Written {
    let peer = (!span.peer.is_empty()).then_some((PEER, Plain::Text(&span.peer)));
    let attributes = written(span, &NAMES).chain(peer);
    let attributes = attributes.map(|(key, value)| attribute(key, value));
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
        attributes: attributes.collect(),
        status: failed.then(|| Status {
            message: span.cause.to_owned(),
            code: 2,
        }),
        // What is exported was sampled (W3C's flag).
        flags: 1,
    }
}

fn attribute(key: &str, value: Plain<'_>) -> KeyValue {
    let value = match value {
        Plain::Text(text) => Some(Value::Text(text.to_owned())),
        Plain::Number(number) => Some(Value::Int(i64::try_from(number).unwrap_or(i64::MAX))),
        Plain::Bool(yes) => Some(Value::Bool(yes)),
        Plain::Other => None,
    };
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value }),
    }
}
