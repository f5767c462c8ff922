//! What gRPC has of its own: statuses, time-outs, framed messages. Pure.
//!
//! A call is unary, to [`METHOD`] (see `proto/graph.proto`): a message of bytes in, a
//! message of bytes out. The path of the endpoint travels in [`PATH`]; without it, it is
//! `/`.

use prost::encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint};

use crate::Nanos;

/// The one method.
pub(super) const METHOD: &str = "/headroom.graph.Service/Call";
/// The field that says which endpoint is meant.
pub(super) const PATH: &str = "x-headroom-path";
/// The field that says how long the caller waits.
pub(super) const TIMEOUT: &str = "grpc-timeout";
/// The field, mostly a trailer, that says how a call went.
pub(super) const STATUS: &str = "grpc-status";
/// The content type of all messages.
pub(super) const CONTENT_TYPE: &str = "application/grpc";

/// The method does not exist.
pub(super) const UNIMPLEMENTED: u16 = 12;

/// Largest number in a time-out: eight digits (gRPC over HTTP/2, "Timeout").
const MOST_DIGITS: u64 = 99_999_999;
/// Units of a time-out, and their nanoseconds.
const UNITS: [(u8, Nanos); 6] = [
    (b'n', 1),
    (b'u', 1_000),
    (b'm', 1_000_000),
    (b'S', 1_000_000_000),
    (b'M', 60_000_000_000),
    (b'H', 3_600_000_000_000),
];

/// gRPC's code for an answer's status. A caller that reads it back with [`status`] gets
/// the same class: 4xx, 503 or 504 as they were, other 5xx as one that says less.
pub(super) const fn code(status: u16) -> u16 {
    match status {
        200..=399 => 0,
        400 => 3,
        401 => 16,
        403 => 7,
        404 => 5,
        409 => 10,
        429 => 8,
        499 => 1,
        501 => UNIMPLEMENTED,
        502 | 503 => 14,
        408 | 504 => 4,
        _ if status < 500 => 9,
        _ => 13,
    }
}

/// The status that a gRPC code stands for (the table of `google.rpc.Code`).
pub(super) const fn status(code: u16) -> u16 {
    match code {
        0 => 200,
        1 => 499,
        3 | 9 | 11 => 400,
        4 => 504,
        5 => 404,
        6 | 10 => 409,
        7 => 403,
        8 => 429,
        12 => 501,
        14 => 503,
        16 => 401,
        _ => 500,
    }
}

/// A time-out as it is sent: at least as long, in the finest unit that has room.
pub(super) fn timeout(length: Nanos) -> String {
    for (unit, nanos) in UNITS {
        let number = length.div_ceil(nanos);
        if number <= MOST_DIGITS {
            return format!("{number}{}", unit as char);
        }
    }
    format!("{MOST_DIGITS}H")
}

/// A time-out as it came; `None`: it is not one.
pub(super) fn read_timeout(text: &[u8]) -> Option<Nanos> {
    let (unit, digits) = text.split_last()?;
    let (_, nanos) = UNITS.iter().find(|(name, _)| name == unit)?;
    if digits.is_empty() || digits.len() > 8 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: Nanos = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(number.saturating_mul(*nanos))
}

/// What stands before the bytes of a message: its frame, and the head of its one field
/// (`bytes body = 1`), which is left out if there are none.
pub(super) fn prefix(bytes: u64) -> Vec<u8> {
    let mut field = Vec::with_capacity(16);
    if bytes > 0 {
        encode_key(1, WireType::LengthDelimited, &mut field);
        encode_varint(bytes, &mut field);
    }
    // Bodies are bounded far below what the length can say.
    let length = u32::try_from(field.len() as u64 + bytes).unwrap_or(u32::MAX);
    let mut prefix = vec![0];
    prefix.extend_from_slice(&length.to_be_bytes());
    prefix.extend_from_slice(&field);
    prefix
}

/// The bytes of a message, of which only the start may have been kept; `None`: it is no
/// message, or a compressed one.
pub(super) fn body(message: &[u8]) -> Option<&[u8]> {
    let (frame, field) = message.split_first_chunk::<{ wire::http2::grpc::PREFIX }>()?;
    if frame[0] != 0 {
        return None;
    }
    let mut rest = field;
    if !field.is_empty() {
        let key = decode_key(&mut rest).ok()?;
        if key != (1, WireType::LengthDelimited) {
            return None;
        }
        decode_varint(&mut rest).ok()?;
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn statuses_keep_their_class() {
        for status_before in 200..600 {
            let after = status(code(status_before));
            match status_before {
                200..=399 => assert_eq!(after, 200),
                408 => assert_eq!(after, 504),
                _ => assert_eq!(after / 100, status_before / 100, "{status_before} {after}"),
            }
        }
        for same in [200, 400, 401, 403, 404, 409, 429, 501, 503, 504] {
            assert_eq!(status(code(same)), same);
        }
    }

    #[test]
    fn time_outs_as_grpc_writes_them() {
        for (length, expected) in [
            (1, "1n"),
            (99_999_999, "99999999n"),
            (100_000_000, "100000u"),
            (1_000_000_001, "1000001u"),
            (Nanos::MAX, "5124096H"),
        ] {
            assert_eq!(timeout(length), expected);
        }
        for wrong in ["", "5", "m", "5x", "123456789n", "-1S", "+1S", "1.5S"] {
            assert_eq!(read_timeout(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(read_timeout(b"2M"), Some(120_000_000_000));
        assert_eq!(read_timeout(b"99999999H"), Some(Nanos::MAX));
    }

    proptest! {
        #[test]
        fn a_time_out_comes_back_hardly_longer(length in 1..10_000_000_000_000_000_u64) {
            let back = read_timeout(timeout(length).as_bytes()).unwrap();
            prop_assert!(back >= length && back - length <= length / 10_000);
        }

        #[test]
        fn a_message_comes_back(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
            let mut message = prefix(bytes.len() as u64);
            message.extend_from_slice(&bytes);
            // As whoever reads all of it sees it.
            let field = wire::http2::grpc::message(&message).unwrap();
            prop_assert_eq!(field.is_empty(), bytes.is_empty());
            prop_assert_eq!(body(&message), Some(&bytes[..]));
        }

        #[test]
        fn any_bytes_are_a_message_or_not(bytes: Vec<u8>) {
            body(&bytes);
            read_timeout(&bytes);
        }
    }
}
