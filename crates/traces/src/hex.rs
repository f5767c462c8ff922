//! Ids as hexadecimal digits.

use crate::{SpanId, TraceId};

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Appends the lowest `digits` digits of a number, at most 32, in lower case.
fn write(number: u128, digits: usize, out: &mut Vec<u8>) {
    let mut text = [b'0'; 32];
    for (pair, byte) in text.chunks_exact_mut(2).zip(number.to_be_bytes()) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 0xf)];
    }
    out.extend_from_slice(&text[32 - digits..]);
}

/// Appends the 32 digits of a trace id.
pub(crate) fn write_trace(trace: TraceId, out: &mut Vec<u8>) {
    write(trace.0, 32, out);
}

/// Appends a trace id as Zipkin has it: 16 digits where those before them are zero. Peers
/// that know ids of 64 bits alone find theirs again.
pub(crate) fn write_short_trace(trace: TraceId, out: &mut Vec<u8>) {
    let digits = if trace.0 >> 64 == 0 { 16 } else { 32 };
    write(trace.0, digits, out);
}

/// Appends the 16 digits of a span id.
pub(crate) fn write_span(span: SpanId, out: &mut Vec<u8>) {
    write(u128::from(span.0), 16, out);
}

/// Reads 1 to 32 digits of either case.
pub(crate) fn read(text: &[u8]) -> Option<u128> {
    if text.is_empty() || text.len() > 32 {
        return None;
    }
    text.iter().try_fold(0, |number, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(number << 4 | u128::from(digit))
    })
}

/// Reads a trace id of 1 to 32 digits. `None`: it is none, or zero.
pub fn read_trace(text: &[u8]) -> Option<TraceId> {
    read(text).filter(|id| *id != 0).map(TraceId)
}

/// Reads a span id of 1 to 16 digits. `None`: it is none, or zero.
pub fn read_span(text: &[u8]) -> Option<SpanId> {
    let id = u64::try_from(read(text)?).ok()?;
    (id != 0).then_some(SpanId(id))
}
