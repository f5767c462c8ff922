//! Trace headers: B3 (zipkin) and W3C, and the request's id, which is the trace's id where
//! that one is a UUID.

use rand::Rng;
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use super::fields::{FieldList, Part};
use super::text::hex;
use crate::http::settings::TracingSettings;

/// `tracestate` of a client that is longer is dropped.
const MOST_STATE_BYTES: usize = 2048;

/// What a client sent of traces.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ClientTrace {
    pub(crate) b3: Part,
    pub(crate) trace_id: Part,
    pub(crate) span_id: Part,
    pub(crate) parent_id: Part,
    pub(crate) sampled: Part,
    pub(crate) flags: Part,
    pub(crate) traceparent: Part,
    pub(crate) tracestate: Part,
}

/// The trace that a request belongs to, and the request's own id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Trace {
    id: u128,
    span: u64,
    request: u128,
}

impl Trace {
    /// A trace of its own: its id is a UUID of version 4, its span the lower half.
    fn new(random: &mut impl Rng) -> Self {
        let id = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
        let id = id & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
        Self {
            id,
            span: id as u64,
            request: id,
        }
    }

    /// A trace that a client named. It is the request's id as well if it is a UUID, of which
    /// gorouter's library looks at the version alone: 1 to 5.
    fn named(id: u128, span: u64, random: &mut impl Rng) -> Self {
        let is_uuid = matches!(id >> 76 & 0xf, 1..=5);
        let request = if is_uuid { id } else { Self::new(random).id };
        Self { id, span, request }
    }
}

/// Gives the request its trace headers, and its id; tells that, and its trace and span.
pub(crate) fn apply(
    settings: &TracingSettings,
    client: &ClientTrace,
    fields: &mut FieldList,
    random: &mut impl Rng,
) -> (Part, (u128, u64)) {
    let mut trace = None;
    if settings.zipkin {
        zipkin(client, fields, &mut trace, random);
    }
    if settings.w3c {
        w3c(settings, client, fields, &mut trace, random);
    }
    let trace = trace.unwrap_or_else(|| Trace::new(random));
    let id = Uuid::from_u128(trace.request).hyphenated();
    let mut text = [0; Hyphenated::LENGTH];
    let id = fields.push("X-Vcap-Request-Id", id.encode_lower(&mut text).as_bytes());
    (id, (trace.id, trace.span))
}

fn zipkin(
    client: &ClientTrace,
    fields: &mut FieldList,
    trace: &mut Option<Trace>,
    random: &mut impl Rng,
) {
    if let Some((id, span)) = single_header(fields.part(client.b3)) {
        *trace = Some(Trace::named(id, span, random));
        return;
    }
    if !client.trace_id.is_empty() && !client.span_id.is_empty() {
        // What gorouter's library does not take whole is sent on as it came.
        if let Some((id, span, single)) = headers(client, fields) {
            set(fields, "B3", &single);
            *trace = Some(Trace::named(id, span, random));
        }
        return;
    }
    let own = *trace.get_or_insert_with(|| Trace::new(random));
    let single = b3(own.id, own.span);
    set(fields, "X-B3-Traceid", &single[..32]);
    set(fields, "X-B3-Spanid", &single[33..]);
    set(fields, "B3", &single);
}

fn w3c(
    settings: &TracingSettings,
    client: &ClientTrace,
    fields: &mut FieldList,
    trace: &mut Option<Trace>,
    random: &mut impl Rng,
) {
    let known = parent(fields.part(client.traceparent));
    let (id, span, flags) = match known {
        None => {
            let own = *trace.get_or_insert_with(|| Trace::new(random));
            (own.id, own.span, 1)
        }
        Some((id, flags)) => {
            let span = random.next_u64();
            if trace.is_none() {
                *trace = Some(Trace::named(id, span, random));
            }
            (id, span, flags)
        }
    };
    let mut value = Vec::with_capacity(55);
    value.extend_from_slice(b"00-");
    hex(&id.to_be_bytes(), &mut value);
    value.push(b'-');
    hex(&span.to_be_bytes(), &mut value);
    value.push(b'-');
    hex(&[flags], &mut value);
    let state = state(
        settings,
        span,
        known.is_some(),
        fields.part(client.tracestate),
    );
    set(fields, "Traceparent", &value);
    set(fields, "Tracestate", &state);
}

/// The new `tracestate`: the own entry first, that of the same key left out.
fn state(settings: &TracingSettings, span: u64, continued: bool, before: &[u8]) -> Vec<u8> {
    let mut key = settings.w3c_tenant.clone().into_bytes();
    if !key.is_empty() {
        key.push(b'@');
    }
    key.extend_from_slice(b"gorouter");
    let mut state = key.clone();
    state.push(b'=');
    hex(&span.to_be_bytes(), &mut state);
    if continued && before.len() <= MOST_STATE_BYTES {
        for entry in before.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            let named = memchr::memchr(b'=', entry).map(|at| &entry[..at]);
            if named.is_some_and(|named| named != key) {
                state.push(b',');
                state.extend_from_slice(entry);
            }
        }
    }
    state
}

fn set(fields: &mut FieldList, name: &str, value: &[u8]) {
    fields.remove(name.as_bytes());
    fields.push(name, value);
}

/// `trace-span`; a trace of 64 bits has 16 digits.
fn b3(id: u128, span: u64) -> Vec<u8> {
    let mut text = Vec::with_capacity(52);
    match id >> 64 {
        0 => hex(&(id as u64).to_be_bytes(), &mut text),
        _ => hex(&id.to_be_bytes(), &mut text),
    }
    text.push(b'-');
    hex(&span.to_be_bytes(), &mut text);
    text
}

/// Trace and span of the headers `X-B3-...`, and the single header that says the same.
fn headers(client: &ClientTrace, fields: &FieldList) -> Option<(u128, u64, Vec<u8>)> {
    let short = |part| u64::try_from(number(fields.part(part), 32)?).ok();
    let id = number(fields.part(client.trace_id), 32)?;
    let span = short(client.span_id)?;
    let sampled = fields.part(client.sampled).to_ascii_lowercase();
    let sampled = match (sampled.as_slice(), fields.part(client.flags)) {
        (b"" | b"0" | b"1" | b"false" | b"true", b"1") => Some(b'd'),
        (b"1" | b"true", _) => Some(b'1'),
        (b"0" | b"false", _) => Some(b'0'),
        (b"", _) => None,
        _ => return None,
    };
    let mut single = b3(id, span);
    if let Some(sampled) = sampled {
        single.extend_from_slice(&[b'-', sampled]);
    }
    if !client.parent_id.is_empty() {
        single.push(b'-');
        hex(&short(client.parent_id)?.to_be_bytes(), &mut single);
    }
    Some((id, span, single))
}

/// Trace and span of a single B3 header: `trace-span[-sampled[-parent]]`. One that only
/// decides on sampling (`0`, `1`, `d`) has neither: both are 0.
fn single_header(header: &[u8]) -> Option<(u128, u64)> {
    if let [b'0' | b'1' | b'd'] = header {
        return Some((0, 0));
    }
    let mut parts = header.split(|byte| *byte == b'-');
    let (id, span) = (parts.next()?, parts.next()?);
    if !matches!(id.len(), 16 | 32) || span.len() != 16 {
        return None;
    }
    let sampled = parts.next();
    let parent = parts.next();
    let known = sampled.is_none_or(|sampled| matches!(sampled, b"0" | b"1" | b"d"));
    let whole = parent.is_none_or(|parent| parent.len() == 16 && number(parent, 16).is_some());
    if !known || !whole || parts.next().is_some() {
        return None;
    }
    Some((number(id, 32)?, number(span, 16)? as u64))
}

/// Trace and flags of a `traceparent`, which has exactly 55 characters.
fn parent(header: &[u8]) -> Option<(u128, u8)> {
    if header.len() != 55 {
        return None;
    }
    number(&header[..2], 2)?;
    number(&header[36..52], 16)?;
    let flags = number(&header[53..], 2)?;
    Some((number(&header[3..35], 32)?, flags as u8))
}

/// A hexadecimal number of 1 to `most` digits.
fn number(text: &[u8], most: usize) -> Option<u128> {
    if text.is_empty() || text.len() > most {
        return None;
    }
    text.iter().try_fold(0_u128, |number, digit| {
        let digit = (*digit as char).to_digit(16)?;
        Some(number << 4 | u128::from(digit))
    })
}
