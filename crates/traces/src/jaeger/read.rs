//! Reading spans.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use crate::attributes::{Facts, Raw};
use crate::lenient::{micros, some};
use crate::names::Names;
use crate::{Decoded, Origin, ReadError, Span, SpanKind};
use crate::{SpanId, TraceId};

/// Reads the traces; spans without ids are counted. Those that do not say their kind are inner
/// ones until they are [normalised](crate::normalise).
///
/// # Errors
/// When it is no such JSON.
pub(crate) fn decode(
    json: &[u8],
    origin: &Origin,
    names: &mut Names,
) -> Result<Decoded, ReadError> {
    let file: File<'_> = serde_json::from_slice(json).map_err(ReadError::form("Jaeger's JSON"))?;
    if let (None, Some(first)) = (&file.data, file.errors.iter().flatten().next()) {
        return Err(ReadError::Form {
            format: "Jaeger's JSON",
            cause: format!(
                "it holds no traces, but what Jaeger refused: {}",
                first.message
            ),
        });
    }
    let mut traces = file.data.unwrap_or_default();
    traces.push(Trace {
        spans: file.spans,
        processes: file.processes,
    });
    let mut decoded = Decoded::default();
    let all = traces
        .iter()
        .flat_map(|trace| trace.spans.iter().map(move |read| (trace, read)));
    for ((trace, read), place) in all.zip(1..) {
        decoded.take(read.span(place, trace, origin, names));
    }
    Ok(decoded)
}

/// A list of traces, or one that stands there without a list.
#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow, default)]
    data: Option<Vec<Trace<'a>>>,
    #[serde(borrow, default)]
    errors: Option<Vec<Refusal<'a>>>,
    #[serde(borrow, default, deserialize_with = "some")]
    spans: Vec<Read<'a>>,
    #[serde(borrow, default, deserialize_with = "some")]
    processes: HashMap<Cow<'a, str>, Process<'a>>,
}

/// Why there are no traces.
#[derive(Deserialize)]
struct Refusal<'a> {
    #[serde(borrow, rename = "msg", default)]
    message: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Trace<'a> {
    #[serde(borrow, deserialize_with = "some")]
    spans: Vec<Read<'a>>,
    #[serde(borrow, default, deserialize_with = "some")]
    processes: HashMap<Cow<'a, str>, Process<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Process<'a> {
    #[serde(borrow)]
    service_name: Cow<'a, str>,
}

#[derive(Deserialize)]
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
    #[serde(borrow, default, deserialize_with = "some")]
    references: Vec<Reference<'a>>,
    #[serde(deserialize_with = "micros")]
    start_time: u64,
    #[serde(default, deserialize_with = "micros")]
    duration: u64,
    #[serde(borrow, default, deserialize_with = "some")]
    tags: Vec<Tag<'a>>,
    #[serde(borrow, rename = "processID", default)]
    process_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    process: Option<Process<'a>>,
}

#[derive(Deserialize)]
struct Reference<'a> {
    #[serde(borrow, rename = "refType", default)]
    kind: Cow<'a, str>,
    #[serde(borrow, rename = "traceID", default)]
    trace: Cow<'a, str>,
    #[serde(borrow, rename = "spanID")]
    id: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Tag<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
    #[serde(default)]
    value: Value,
}

impl Trace<'_> {
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
        origin: &Origin,
        names: &mut Names,
    ) -> Result<Span, ReadError> {
        let refuse = |what| ReadError::Id { place, what };
        let id = number(&self.trace).ok_or_else(|| refuse("traceId"))?;
        let own = span_id(&self.id).ok_or_else(|| refuse("spanID"))?;
        let parent = match self.parent() {
            None => SpanId::default(),
            Some(text) => span_id(text).ok_or_else(|| refuse("parent's spanID"))?,
        };
        let mut facts = Facts::default();
        for tag in &self.tags {
            facts.take(&tag.key, (&tag.value).into());
        }
        let micros = (self.start_time, self.duration);
        let (start, end) = facts.times(micros, 0, origin);
        let raw = Raw {
            trace: TraceId(id),
            id: own,
            parent,
            kind: match facts.kind {
                Some("server" | "consumer") => SpanKind::Server,
                Some("client") => SpanKind::Client,
                // Who sends a message waits for nobody who takes it: a producer's is a stretch of its own.
                _ => SpanKind::Internal,
            },
            service: trace.service(self),
            name: &self.operation_name,
            start,
            end,
        };
        Ok(facts.span(&raw, names))
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
}

/// Jaeger leaves out the zeros before a number.
fn number(digits: &str) -> Option<u128> {
    let plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = u128::from_str_radix(digits, 16).ok().filter(|_| plain)?;
    (number != 0).then_some(number)
}

pub(super) fn span_id(digits: &str) -> Option<SpanId> {
    u64::try_from(number(digits)?).ok().map(SpanId)
}
