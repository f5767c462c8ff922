//! One side of a connection of HTTP/2, without sockets: nothing panics, bytes that come in pieces
//! are read as if they came at once, and what waits to be sent is bounded.
//!
//! The first byte of the input says which side this is and how bytes are cut. The rest is read as
//! frames (kind, flags, stream, length, payload), so that their lengths are right; the kind may
//! also ask for bytes as they are.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::http2::Http2Error;
use wire::http2::codec::{Connection, Reading, Role, Settings};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";

/// `:method: POST`, `:scheme: http`, `:path: /`, `:authority: a`; and `:status: 200`.
const REQUEST: &[u8] = b"\x83\x86\x84\x41\x01a";
const ANSWER: &[u8] = b"\x88";

fn frames(mut input: &[u8], role: Role) -> Vec<u8> {
    let mut bytes = match role {
        Role::Server => [PREFACE, SETTINGS].concat(),
        Role::Client => SETTINGS.to_vec(),
    };
    while let [kind, flags, stream, length, rest @ ..] = input {
        let (payload, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        input = rest;
        let (kind, before) = match (kind % 12, role) {
            (10, Role::Server) => (1, REQUEST),
            (10, Role::Client) => (1, ANSWER),
            (11, _) => {
                bytes.extend_from_slice(payload);
                continue;
            }
            (kind, _) => (kind, &b""[..]),
        };
        let length = (before.len() + payload.len()) as u32;
        bytes.extend_from_slice(&length.to_be_bytes()[1..]);
        bytes.extend_from_slice(&[kind, *flags, 0, 0, 0, stream % 16]);
        bytes.extend_from_slice(before);
        bytes.extend_from_slice(payload);
    }
    bytes
}

/// What a side says of these bytes.
fn outcome(bytes: &[u8], size: usize, role: Role) -> (Vec<u8>, Option<Http2Error>, Vec<u8>) {
    let settings = Settings {
        streams: 4,
        early_streams: 4,
        stream_window: 1000,
        connection_window: 65_535,
        out_bytes: 1000,
        head_bytes: 4096,
        early_resets: 3,
        broken_streams: 3,
        extended_connect: true,
    };
    let mut connection = Connection::new(role, settings);
    let mut keys = Vec::new();
    if role == Role::Client {
        for _ in 0..4 {
            let opened = connection.open(false, false, |block| block.method(b"GET"));
            keys.extend(opened);
        }
    }
    for part in bytes.chunks(size) {
        connection.receive(part);
    }
    let mut found = Vec::new();
    keys.extend(std::iter::from_fn(|| connection.opened()));
    for key in keys {
        let lines = connection.head(key).map(|head| head.lines().to_vec());
        found.extend(lines.unwrap_or_default());
        found.extend_from_slice(connection.body(key));
        connection.use_body(key, 7);
        if role == Role::Server && connection.reading(key) != Reading::Open {
            connection.answer(key, false, |block| block.status(200));
            connection.send(key, &[b'x'; 3000], true);
        }
        connection.release(key);
    }
    assert!(connection.open_streams() == 0 && connection.out().len() < 200_000);
    (
        connection.out().to_vec(),
        connection.ended().cloned(),
        found,
    )
}

fuzz_target!(|input: &[u8]| {
    let Some((&first, rest)) = input.split_first() else {
        return;
    };
    let role = if first & 1 == 0 {
        Role::Server
    } else {
        Role::Client
    };
    let bytes = frames(rest, role);
    let whole = outcome(&bytes, bytes.len(), role);
    let parts = outcome(&bytes, usize::from(first / 2) + 1, role);
    assert_eq!(whole, parts);
});
