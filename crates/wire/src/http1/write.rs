//! Writing the parts of messages that are framing.

/// What ends a chunk's data.
const CHUNK_END: &[u8] = b"\r\n";

/// What ends a chunked body without trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The line before a chunk of `size` bytes.
pub(super) fn chunk_head(size: usize, out: &mut Vec<u8>) {
    let digits = (usize::BITS - size.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        out.push(b"0123456789abcdef"[size >> (4 * digit) & 0xf]);
    }
    out.extend_from_slice(CHUNK_END);
}

/// A chunk with `part`, which must not be empty: that would end the body.
pub fn chunk(part: &[u8], out: &mut Vec<u8>) {
    chunk_head(part.len(), out);
    out.extend_from_slice(part);
    out.extend_from_slice(CHUNK_END);
}

/// The end of a chunked body with trailers: field lines, each with its line end.
pub fn last_chunk(trailers: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n");
    out.extend_from_slice(trailers);
    out.extend_from_slice(CHUNK_END);
}

/// A number in decimal.
#[inline]
pub fn decimal(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(decimal_digits(number, &mut [0; 20]));
}

/// The digits of a number, within `room`.
#[inline]
pub fn decimal_digits(mut number: u64, room: &mut [u8; 20]) -> &[u8] {
    let mut at = room.len();
    loop {
        at -= 1;
        room[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &room[at..];
        }
    }
}

/// A field line.
pub fn field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}
