//! What is kept, as JSON and in the forms of collectors.

use http::{Response, StatusCode};
use net::Body;
use serde_json::{Value, json};

use crate::answer::{self, Query, Refusal};
use traces::Nanos;
use traces::{
    Origin, Span, SpanKind, Store, Summary, TraceFilter, hex, jaeger, normalise, otlp, zipkin,
};
use traces::{SpanId, TraceId};

/// Most traces of one answer.
const MOST: usize = 10_000;

/// Most traces that are looked at as a whole.
pub const MOST_WHOLE: usize = 20_000;

/// Most spans of those: they take some 700 bytes each as JSON.
const MOST_SPANS: usize = 200_000;

/// How long a root must have ended before its trace counts as whole.
const SETTLED: Nanos = 300_000_000;

/// Traces of one answer if nothing is said.
const USUAL: usize = 50;

/// The answer of `/traces` at a time by the clock of the spans: the slowest, those that changed since a change, or the latest.
///
/// # Errors
/// When what is asked for is not a number, form or trace that is known.
pub fn list(
    store: &Store,
    origin: &Origin,
    now: Nanos,
    query: Query<'_>,
) -> Result<Value, Refusal> {
    let limit = query.number("limit", 1, MOST)?.unwrap_or(USUAL);
    let next = store.counts().changes;
    let traces = if let Some(most) = query.number("slowest", 1, MOST)? {
        let from = began(query, now)?;
        store.slowest(most, from)
    } else if let Some(after) = query.number("since", 0, u64::MAX)? {
        store.since(after, limit)
    } else {
        store.recent(query.number("recent", 1, MOST)?.unwrap_or(limit))
    };
    // A full answer to `since` may have left out later ones: they come next.
    let last = traces.iter().map(|one| one.changed).max();
    let next = match query.text("since") {
        Some(_) if traces.len() == limit => last.unwrap_or(next),
        _ => next,
    };
    let traces = traces.iter().map(|one| summary(one, origin));
    Ok(json!({ "next": next, "traces": traces.collect::<Vec<_>>() }))
}

/// The time that `seconds` reaches back to; 0: it is not asked for.
fn began(query: Query<'_>, now: Nanos) -> Result<Nanos, Refusal> {
    let seconds = query.number("seconds", 0.0, 1e9)?;
    Ok(seconds.map_or(0, |seconds: f64| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at most 10^18"
        )]
        let length = (seconds * 1e9) as Nanos;
        now.saturating_sub(length)
    }))
}

/// The whole traces that `limit`, `seconds` and `path` ask for.
///
/// # Errors
/// When what is asked for is not a number, form or trace that is known.
pub fn whole(
    store: &Store,
    now: Nanos,
    query: Query<'_>,
    usual: usize,
) -> Result<Vec<Vec<Span>>, Refusal> {
    let path = query.text("path");
    let mut traces = store.whole(&TraceFilter {
        from: began(query, now)?,
        ended: now.saturating_sub(SETTLED),
        now,
        path: path.as_deref(),
        traces: query.number("limit", 1, MOST_WHOLE)?.unwrap_or(usual),
        spans: MOST_SPANS,
    });
    normalise(traces.iter_mut().flatten());
    Ok(traces)
}

fn summary(of: &Summary, origin: &Origin) -> Value {
    let root = &of.root;
    json!({
        "trace": trace_text(of.trace),
        "service": root.service,
        "name": root.name,
        "start_unix_ms": unix_ms(root.start, origin),
        "duration_ns": root.end.saturating_sub(root.start),
        "status": root.status,
        "cause": root.cause,
        "spans": of.spans,
        "changed": of.changed,
    })
}

/// The answer of `/traces/ID`.
///
/// # Errors
/// When what is asked for is not a number, form or trace that is known.
pub fn one(
    store: &Store,
    origin: &Origin,
    id: &str,
    query: Query<'_>,
) -> Result<Response<Body>, Refusal> {
    let trace = hex::read_trace(id.as_bytes()).ok_or_else(|| {
        Refusal::bad(format!(
            "{id:?} is not a trace's id: expected up to 32 hexadecimal digits"
        ))
    })?;
    let mut spans = store.trace(trace);
    normalise(&mut spans);
    let Some(first) = spans.first() else {
        return Err(Refusal::new(
            StatusCode::NOT_FOUND,
            format!("trace {id} is not known: it was not recorded, or has been forgotten"),
        ));
    };
    let begin = first.start;
    let Some(format) = query.text("format") else {
        return Ok(answer::json(&json!({
            "trace": trace_text(trace),
            "start_unix_ms": unix_ms(begin, origin),
            "spans": spans.iter().map(|one| span(one, begin)).collect::<Vec<_>>(),
        })));
    };
    let (content_type, write) = form(&format)?;
    Ok(answer::whole(content_type, write(&spans, origin)))
}

/// Writes spans in some form.
pub type Write = fn(&[Span], &Origin) -> Vec<u8>;

/// A form that is asked for: its content type, and who writes it.
///
/// # Errors
/// When what is asked for is not a number, form or trace that is known.
pub fn form(name: &str) -> Result<(&'static str, Write), Refusal> {
    Ok(match name {
        "otlp" => ("application/json", otlp::write_json),
        "protobuf" => (otlp::PROTOBUF, otlp::write_protobuf),
        "zipkin" => (zipkin::JSON, zipkin::write),
        "jaeger" => ("application/json", jaeger::write),
        other => {
            return Err(Refusal::bad(format!(
                "format={other}: expected otlp (JSON), protobuf, zipkin or jaeger"
            )));
        }
    })
}

fn span(span: &Span, begin: Nanos) -> Value {
    json!({
        "id": span_text(span.id),
        "parent": (span.parent != SpanId::default()).then(|| span_text(span.parent)),
        "kind": match span.kind {
            SpanKind::Server => "server",
            SpanKind::Client => "client",
            SpanKind::Work => "work",
            SpanKind::Internal => "internal",
        },
        "service": span.service,
        "name": span.name,
        "peer": span.peer,
        "start_ns": span.start - begin,
        "end_ns": span.end.saturating_sub(begin),
        "cpu_ns": span.cpu,
        "queue_ns": span.queue,
        "status": span.status,
        "attempt": span.attempt,
        "revision": span.revision,
        "cause": span.cause,
    })
}

fn trace_text(trace: TraceId) -> String {
    format!("{:032x}", trace.0)
}

fn span_text(span: SpanId) -> String {
    format!("{:016x}", span.0)
}

fn unix_ms(time: Nanos, origin: &Origin) -> f64 {
    origin.epoch.to_unix(time) as f64 / 1e6
}
