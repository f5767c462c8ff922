//! Frames as bytes, appended to a buffer.
//!
//! Subjects, queues and sids must be words as [`crate::subject`] knows them: nothing is
//! escaped here.

use bytes::{BufMut as _, BytesMut};

/// `PING`
pub const PING: &[u8] = b"PING\r\n";
/// `PONG`
pub const PONG: &[u8] = b"PONG\r\n";
/// `+OK`
pub const OK: &[u8] = b"+OK\r\n";

/// `PUB`. An empty `reply` is left out.
pub fn publish(out: &mut BytesMut, subject: &[u8], reply: &[u8], payload: &[u8]) {
    out.reserve(subject.len() + reply.len() + payload.len() + 32);
    out.put_slice(b"PUB ");
    word(out, subject);
    optional(out, reply);
    decimal(out, payload.len() as u64);
    out.put_slice(b"\r\n");
    out.put_slice(payload);
    out.put_slice(b"\r\n");
}

/// `SUB`. An empty `queue` is left out.
pub fn subscribe(out: &mut BytesMut, subject: &[u8], queue: &[u8], sid: u64) {
    out.put_slice(b"SUB ");
    word(out, subject);
    optional(out, queue);
    decimal(out, sid);
    out.put_slice(b"\r\n");
}

/// `UNSUB`, at once.
pub fn unsubscribe(out: &mut BytesMut, sid: u64) {
    out.put_slice(b"UNSUB ");
    decimal(out, sid);
    out.put_slice(b"\r\n");
}

/// The line of a `MSG`, or of an `HMSG` when there are `headers` bytes of them. `bytes` is
/// the length of headers and payload.
pub fn message_line(
    out: &mut BytesMut,
    subject: &[u8],
    sid: &[u8],
    reply: &[u8],
    headers: usize,
    bytes: usize,
) {
    out.reserve(subject.len() + sid.len() + reply.len() + 56);
    out.put_slice(if headers == 0 { b"MSG " } else { b"HMSG " });
    word(out, subject);
    word(out, sid);
    optional(out, reply);
    if headers != 0 {
        decimal(out, headers as u64);
        out.put_u8(b' ');
    }
    decimal(out, bytes as u64);
    out.put_slice(b"\r\n");
}

/// `-ERR` with a text, which may hold neither quotes nor line ends.
pub fn error(out: &mut BytesMut, text: &str) {
    out.put_slice(b"-ERR '");
    out.put_slice(text.as_bytes());
    out.put_slice(b"'\r\n");
}

/// `INFO` or `CONNECT` with a JSON object.
pub fn object(out: &mut BytesMut, operation: &str, json: &[u8]) {
    out.put_slice(operation.as_bytes());
    out.put_u8(b' ');
    out.put_slice(json);
    out.put_slice(b"\r\n");
}

fn word(out: &mut BytesMut, word: &[u8]) {
    out.put_slice(word);
    out.put_u8(b' ');
}

fn optional(out: &mut BytesMut, text: &[u8]) {
    if !text.is_empty() {
        word(out, text);
    }
}

/// Without the formatting machinery: it would cost as much as the rest of a frame.
fn decimal(out: &mut BytesMut, mut number: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.put_slice(&digits[start..]);
}
