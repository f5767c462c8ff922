//! Reading spans.

use prost::Message;
use serde::Deserialize;

use super::message::{KeyValue, Resource, ResourceSpans, Span as Written, Traces, Value};
use super::{json, names};
use crate::attributes::{self, Facts, Raw};
use crate::clock::Epoch;
use crate::names::Names;
use crate::{Decoded, Origin, ReadError, Span, SpanKind};
use crate::{SpanId, TraceId};

/// Reads the body of a request in protobuf, as it is written: spans may end before they begin, and
/// those without ids are counted.
///
/// # Errors
/// When it is no such message.
pub(crate) fn decode_protobuf(
    body: &[u8],
    origin: &Origin,
    names: &mut Names,
) -> Result<Decoded, ReadError> {
    let traces = Traces::decode(body).map_err(ReadError::form("OTLP in protobuf"))?;
    let mut decoded = Decoded::default();
    read(&traces, origin, names, &mut decoded);
    Ok(decoded)
}

/// Reads a body, or several as files have them: each behind its length, in four bytes of which the
/// highest comes first; the last of several may be cut off.
///
/// # Errors
/// When one is no such message.
pub(crate) fn decode_protobuf_bodies(
    bodies: &[u8],
    origin: &Origin,
    names: &mut Names,
) -> Result<Decoded, ReadError> {
    // No message begins with zero, and no body is so long that its length does not.
    if bodies.first() != Some(&0) {
        return decode_protobuf(bodies, origin, names);
    }
    let mut decoded = Decoded::default();
    let mut rest = bodies;
    while !rest.is_empty() {
        let Some((body, after)) = framed(rest) else {
            // Its writer was stopped, or is still writing.
            if rest.len() < bodies.len() {
                decoded.is_cut = true;
                break;
            }
            let cause = "its first message is longer than the file";
            return Err(ReadError::form("OTLP in protobuf")(cause));
        };
        let traces = Traces::decode(body).map_err(ReadError::form("OTLP in protobuf"))?;
        read(&traces, origin, names, &mut decoded);
        rest = after;
    }
    Ok(decoded)
}

/// The first of several bodies, and those after it.
fn framed(bodies: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bodies.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}

/// Likewise, in JSON.
///
/// # Errors
/// When it is no such message.
pub(crate) fn decode_json(
    body: &[u8],
    origin: &Origin,
    names: &mut Names,
) -> Result<Decoded, ReadError> {
    let traces: Traces = serde_json::from_slice(body).map_err(ReadError::form("OTLP in JSON"))?;
    let mut decoded = Decoded::default();
    read(&traces, origin, names, &mut decoded);
    Ok(decoded)
}

/// A body as files have it: as it was posted, or within the answer of a query service.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Kept {
    #[serde(alias = "batches", deserialize_with = "json::some")]
    resource_spans: Vec<ResourceSpans>,
    #[serde(alias = "result")]
    trace: Option<Traces>,
}

/// Reads several such bodies, one after the other, as files have them, and whether the last of
/// several was cut off. Spans may end before they begin, and those without ids are counted.
///
/// # Errors
/// When one is no such message.
pub(crate) fn decode_json_lines(
    bodies: &[u8],
    origin: &Origin,
    names: &mut Names,
) -> Result<Decoded, ReadError> {
    let bodies = serde_json::Deserializer::from_slice(bodies).into_iter::<Kept>();
    let mut decoded = Decoded::default();
    for (kept, place) in bodies.zip(0..) {
        match kept {
            Ok(kept) => {
                let traces = kept.trace.unwrap_or(Traces {
                    resource_spans: kept.resource_spans,
                });
                read(&traces, origin, names, &mut decoded);
            }
            // Its writer was stopped, or is still writing.
            Err(error) if error.is_eof() && place > 0 => {
                decoded.is_cut = true;
                break;
            }
            Err(error) => return Err(ReadError::form("OTLP in JSON")(error)),
        }
    }
    Ok(decoded)
}

fn read(traces: &Traces, origin: &Origin, names: &mut Names, into: &mut Decoded) {
    for resource in &traces.resource_spans {
        let (service, epoch) = of_resource(resource.resource.as_ref(), origin);
        for span in resource.scope_spans.iter().flat_map(|scope| &scope.spans) {
            let place = into.taken() + 1;
            into.take(span_of(span, place, service, epoch, names));
        }
    }
}

/// The service, and the clock by which its times are read: the writer's own, if it ran on
/// this machine and said so, for then no reading of a wall clock stands between.
fn of_resource<'a>(resource: Option<&'a Resource>, origin: &Origin) -> (&'a str, Epoch) {
    let attributes = resource.map_or(&[][..], |resource| &resource.attributes);
    let boot = value(attributes, names::BOOT).text();
    let here = !origin.boot.is_empty() && boot == Some(&*origin.boot);
    let ahead = value(attributes, names::AHEAD).number().filter(|_| here);
    let service = value(attributes, names::SERVICE)
        .text()
        .unwrap_or("unknown");
    (service, ahead.map_or(origin.epoch, Epoch::ahead))
}

fn span_of(
    span: &Written,
    place: usize,
    service: &str,
    epoch: Epoch,
    shared: &mut Names,
) -> Result<Span, ReadError> {
    let refuse = |what| ReadError::Id { place, what };
    let id = <[u8; 8]>::try_from(span.span_id.as_slice()).map(u64::from_be_bytes);
    let id = id.ok().filter(|id| *id != 0).map(SpanId);
    let parent = match span.parent_span_id.as_slice() {
        [] => Ok(0),
        bytes => <[u8; 8]>::try_from(bytes).map(u64::from_be_bytes),
    };
    let mut facts = Facts::default();
    for one in &span.attributes {
        facts.take(&one.key, plain(one));
    }
    if let Some(failed) = span.status.as_ref().filter(|status| status.code == 2) {
        (facts.failed, facts.message) = (true, &failed.message);
    }
    let start = epoch.of_unix(span.start_time_unix_nano);
    let length = span
        .end_time_unix_nano
        .checked_sub(span.start_time_unix_nano);
    let raw = Raw {
        trace: trace_id(&span.trace_id).ok_or_else(|| refuse("traceId"))?,
        id: id.ok_or_else(|| refuse("spanId"))?,
        parent: parent.map(SpanId).map_err(|_| refuse("parentSpanId"))?,
        kind: match span.kind {
            2 | 5 => SpanKind::Server,
            3 => SpanKind::Client,
            // Who sends a message waits for nobody who takes it: 4 is a stretch of its own.
            _ => SpanKind::Internal,
        },
        service: Some(service),
        name: &span.name,
        start,
        end: match length {
            Some(length) => start.saturating_add(length),
            None => epoch.of_unix(span.end_time_unix_nano),
        },
    };
    Ok(facts.span(&raw, shared))
}

/// An id of 16 bytes, or of the 8 that older systems have.
fn trace_id(bytes: &[u8]) -> Option<TraceId> {
    let number = match bytes.len() {
        8 | 16 => bytes
            .iter()
            .fold(0_u128, |number, byte| number << 8 | u128::from(*byte)),
        _ => 0,
    };
    (number != 0).then_some(TraceId(number))
}

fn plain(attribute: &KeyValue) -> attributes::Value<'_> {
    let value = attribute
        .value
        .as_ref()
        .and_then(|value| value.value.as_ref());
    match value {
        Some(Value::Text(text)) => attributes::Value::Text(text),
        Some(Value::Int(int)) => {
            u64::try_from(*int).map_or(attributes::Value::Other, attributes::Value::Number)
        }
        Some(Value::Bool(yes)) => attributes::Value::Bool(*yes),
        None => attributes::Value::Other,
    }
}

fn value<'a>(attributes: &'a [KeyValue], name: &str) -> attributes::Value<'a> {
    let found = attributes.iter().find(|one| one.key == name);
    found.map_or(attributes::Value::Other, plain)
}
