//! Reading spans.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;

use super::{LEAST, annotations};
use crate::SpanId;
use crate::attributes::{Facts, Raw, Value};
use crate::lenient::micros;
use crate::names::Names;
use crate::{Decoded, Origin, ReadError, Span, SpanKind, hex};

/// Reads a list of spans of either version, or one of traces, which are lists of spans. Those
/// without a time stamp, which have no place, and those without ids are counted.
///
/// B3 lets a server share the span of its client. One that says so gets an id of its own
/// below it; [`normalise`](crate::normalise) does the rest.
///
/// # Errors
/// When it is no such list.
pub(crate) fn decode(
    json: &[u8],
    origin: &Origin,
    names: &mut Names,
) -> Result<Decoded, ReadError> {
    let list: Vec<Read<'_>> = match holds_lists(json) {
        true => serde_json::from_slice::<Vec<Vec<Read<'_>>>>(json)
            .map(|traces| traces.into_iter().flatten().collect()),
        false => serde_json::from_slice(json),
    }
    .map_err(ReadError::form("Zipkin's JSON"))?;
    let mut decoded = Decoded::default();
    for (place, read) in list.iter().enumerate() {
        for half in read.halves() {
            match read.span(&half, place + 1, origin, names).transpose() {
                Some(read) => decoded.take(read),
                None => decoded.timeless += 1,
            }
        }
    }
    Ok(decoded)
}

/// Whether these are traces, a list of spans each, as `GET /api/v2/traces` answers.
fn holds_lists(json: &[u8]) -> bool {
    let inner = json.trim_ascii_start().strip_prefix(b"[");
    inner.is_some_and(|inner| inner.trim_ascii_start().starts_with(b"["))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Read<'a> {
    #[serde(borrow)]
    trace_id: Cow<'a, str>,
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    parent_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    /// 0: it does not say.
    #[serde(default, deserialize_with = "micros")]
    timestamp: u64,
    #[serde(default, deserialize_with = "micros")]
    duration: u64,
    #[serde(borrow, default)]
    pub(super) local_endpoint: Option<Endpoint<'a>>,
    #[serde(borrow, default)]
    remote_endpoint: Option<Endpoint<'a>>,
    #[serde(borrow, default)]
    tags: Option<HashMap<Cow<'a, str>, serde_json::Value>>,
    #[serde(default)]
    shared: Option<bool>,
    #[serde(borrow, default)]
    pub(super) annotations: Option<Vec<Annotation<'a>>>,
    #[serde(borrow, default)]
    pub(super) binary_annotations: Option<Vec<BinaryAnnotation<'a>>>,
}

/// What happened when. Of version 2 nothing of it is looked at.
#[derive(Deserialize)]
pub(super) struct Annotation<'a> {
    #[serde(default)]
    pub(super) timestamp: serde_json::Value,
    #[serde(default)]
    pub(super) value: serde_json::Value,
    #[serde(borrow, default)]
    pub(super) endpoint: Option<Endpoint<'a>>,
}

/// A tag of version 1.
#[derive(Deserialize)]
pub(super) struct BinaryAnnotation<'a> {
    #[serde(borrow)]
    pub(super) key: Cow<'a, str>,
    #[serde(default)]
    pub(super) value: serde_json::Value,
    #[serde(borrow, default)]
    pub(super) endpoint: Option<Endpoint<'a>>,
}

/// What a span is of, whichever version says it how.
pub(super) struct Half<'r> {
    pub(super) kind: SpanKind,
    /// Whether its id is that of the other side as well.
    pub(super) shared: bool,
    /// When it began and how long it took, in microseconds.
    pub(super) times: Option<(u64, u64)>,
    pub(super) service: Option<&'r Endpoint<'r>>,
    /// The other end of a call.
    pub(super) other: Option<&'r Endpoint<'r>>,
    pub(super) tags: Vec<(&'r str, Value<'r>)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Endpoint<'a> {
    #[serde(borrow, default)]
    service_name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    ipv4: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    ipv6: Option<Cow<'a, str>>,
    #[serde(default)]
    port: Option<u64>,
}

impl Endpoint<'_> {
    /// Its service, if it is named.
    pub(super) fn name(&self) -> Option<&str> {
        self.service_name.as_deref().filter(|name| !name.is_empty())
    }
}

impl Read<'_> {
    /// When it began and how long it took, in microseconds. `None`: it does not say.
    pub(super) fn times(&self) -> Option<(u64, u64)> {
        (self.timestamp > 0).then_some((self.timestamp, self.duration))
    }

    fn halves(&self) -> Vec<Half<'_>> {
        if annotations::is_first_version(self) {
            return annotations::halves(self);
        }
        let tags = self.tags.iter().flatten();
        vec![Half {
            kind: match self.kind.as_deref() {
                Some("SERVER" | "CONSUMER") => SpanKind::Server,
                Some("CLIENT") => SpanKind::Client,
                // Who sends a message waits for nobody who takes it: PRODUCER is a stretch of
                // its own.
                _ => SpanKind::Internal,
            },
            shared: self.shared == Some(true),
            times: self.times(),
            service: self.local_endpoint.as_ref(),
            other: self.remote_endpoint.as_ref(),
            tags: tags
                .map(|(tag, value)| (&**tag, Value::from(value)))
                .collect(),
        }]
    }

    /// `None`: it has no time.
    fn span(
        &self,
        half: &Half<'_>,
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
        let Some(micros) = half.times else {
            return Ok(None);
        };
        let kind = half.kind;
        let mut facts = Facts::default();
        for (tag, value) in &half.tags {
            facts.take(tag, *value);
        }
        if let Some(other) = half.other {
            let name = other.service_name.as_deref().unwrap_or_default();
            let address = other.ipv4.as_deref().or(other.ipv6.as_deref());
            facts.endpoint(name, address.unwrap_or_default(), other.port);
        }
        let (start, end) = facts.times(micros, LEAST, origin);
        let is_shared = half.shared && kind == SpanKind::Server;
        let raw = Raw {
            trace,
            id: if is_shared { id.of_server() } else { id },
            parent: if is_shared { id } else { parent },
            kind,
            service: half.service.and_then(Endpoint::name),
            name: self.name.as_deref().unwrap_or_default(),
            start,
            end,
        };
        Ok(Some(facts.span(&raw, names)))
    }
}
