//! Reading the context of a request.

use super::Context;
use crate::hex;
use crate::{SpanId, TraceId};

/// Most bytes of fields that are passed on; a field that does not fit is left out.
pub const PASSED_BYTES: usize = 8 * 1024;

/// Fields of tracing systems and meshes that a service passes on as they are, so that
/// those find their requests again (the list of isotope, and W3C's `baggage`).
const PASSED: [&str; 9] = [
    "baggage",
    "x-request-id",
    "grpc-trace-bin",
    "x-ot-span-context",
    "x-datadog-trace-id",
    "x-datadog-parent-id",
    "x-cloud-trace-context",
    "x-datadog-sampling-priority",
    "x-datadog-origin",
];

/// Reads the context out of a request's fields. `traceparent` counts before `b3`, and
/// that before the `x-b3-` fields.
///
/// `passed` is emptied, and then holds the field lines that go along with the calls that
/// the request makes, each with its line end: `tracestate`, if the context is W3C's, and
/// the fields of other systems. See [`PASSED_BYTES`].
pub fn read<'a>(
    fields: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
    passed: &mut Vec<u8>,
) -> Context {
    passed.clear();
    let mut found = Found::default();
    for (name, value) in fields.clone() {
        found.take(name, value, passed);
    }
    if let Some(context) = found.w3c() {
        if found.has_state {
            for (name, value) in fields {
                if name.eq_ignore_ascii_case(b"tracestate") {
                    pass("tracestate", value, passed);
                }
            }
        }
        return context;
    }
    found.b3()
}

/// The fields that matter, as they came.
#[derive(Default)]
struct Found<'a> {
    traceparent: Option<&'a [u8]>,
    several: bool,
    has_state: bool,
    b3: Option<&'a [u8]>,
    trace: Option<&'a [u8]>,
    span: Option<&'a [u8]>,
    sampled: Option<&'a [u8]>,
    flags: Option<&'a [u8]>,
}

impl<'a> Found<'a> {
    fn take(&mut self, name: &[u8], value: &'a [u8], passed: &mut Vec<u8>) {
        // The length of a name tells most fields apart without reading them.
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        match name.len() {
            2 if is("b3") => self.b3 = Some(value),
            10 if is("tracestate") => self.has_state = true,
            10 if is("x-b3-flags") => self.flags = Some(value),
            11 if is("traceparent") => self.several |= self.traceparent.replace(value).is_some(),
            11 if is("x-b3-spanid") => self.span = Some(value),
            12 if is("x-b3-traceid") => self.trace = Some(value),
            12 if is("x-b3-sampled") => self.sampled = Some(value),
            7 | 12 | 14 | 16..=19 | 21 | 27 => {
                if let Some(known) = PASSED.iter().find(|known| is(known)) {
                    pass(known, value, passed);
                }
            }
            _ => {}
        }
    }

    /// `00-TRACE-PARENT-FLAGS`. Several of them are as good as none.
    fn w3c(&self) -> Option<Context> {
        let text = self.traceparent.filter(|_| !self.several)?;
        let (head, rest) = text.split_at_checked(55)?;
        let upper = head.iter().any(u8::is_ascii_uppercase);
        let mut parts = head.split(|byte| *byte == b'-');
        let (version, trace) = (parts.next()?, parts.next()?);
        let (parent, flags) = (parts.next()?, parts.next()?);
        let lengths = [version.len(), trace.len(), parent.len(), flags.len()];
        if upper || lengths != [2, 32, 16, 2] {
            return None;
        }
        // Versions to come may say more behind another dash; 255 is none.
        match hex::read(version)? {
            0 if rest.is_empty() => {}
            1..=254 if rest.is_empty() || rest.starts_with(b"-") => {}
            _ => return None,
        }
        Some(Context {
            trace: hex::read_trace(trace)?,
            parent: hex::read_span(parent)?,
            sampled: Some(hex::read(flags)? & 1 == 1),
            debug: false,
        })
    }

    fn b3(&self) -> Context {
        if let Some(context) = self.b3.and_then(single) {
            return context;
        }
        let debug = self.flags == Some(b"1");
        let sampled = match self.sampled {
            _ if debug => Some(true),
            Some(text) => decision(text),
            None => None,
        };
        let (trace, parent) = ids(self.trace, self.span).unwrap_or_default();
        Context {
            trace,
            parent,
            sampled,
            debug,
        }
    }
}

/// `TRACE-SPAN-DECISION-PARENT`, of which the last and the last two may be missing; or the
/// decision alone.
fn single(text: &[u8]) -> Option<Context> {
    let mut parts = text.split(|byte| *byte == b'-');
    let first = parts.next()?;
    let Some(span) = parts.next() else {
        let debug = first == b"d";
        return Some(Context {
            sampled: Some(debug || decision(first)?),
            debug,
            ..Context::default()
        });
    };
    let (trace, parent) = ids(Some(first), Some(span))?;
    let (sampled, debug) = match parts.next() {
        None => (None, false),
        Some(b"d") => (Some(true), true),
        Some(text) => (Some(decision(text)?), false),
    };
    // The caller's own parent says nothing to us, but must be an id.
    match parts.next() {
        Some(parent) if parent.len() != 16 || hex::read(parent).is_none() => return None,
        _ => {}
    }
    parts.next().is_none().then_some(Context {
        trace,
        parent,
        sampled,
        debug,
    })
}

/// B3's ids: 32 or 16 digits, and 16.
fn ids(trace: Option<&[u8]>, span: Option<&[u8]>) -> Option<(TraceId, SpanId)> {
    let trace = trace.filter(|text| matches!(text.len(), 16 | 32))?;
    let span = span.filter(|text| text.len() == 16)?;
    Some((hex::read_trace(trace)?, hex::read_span(span)?))
}

/// B3's decision; older senders write words.
fn decision(text: &[u8]) -> Option<bool> {
    match text {
        b"1" | b"true" => Some(true),
        b"0" | b"false" => Some(false),
        _ => None,
    }
}

fn pass(name: &str, value: &[u8], passed: &mut Vec<u8>) {
    let bytes = name.len() + value.len() + 4;
    // No scanner lets a line end through; a value with one would be two fields.
    let one_line = !value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0));
    if one_line && passed.len() + bytes <= PASSED_BYTES {
        wire::http1::write::field(name.as_bytes(), value, passed);
    }
}
