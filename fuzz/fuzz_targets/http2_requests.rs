//! A client of HTTP/2 behind the preface: nothing panics, and what each stream becomes is
//! one request of HTTP/1.1 that our own scanner reads to the end and finds nothing behind.
//!
//! The input is read as frames (kind, flags, stream, length, payload), so that their
//! lengths are right; the kind may also ask for bytes as they are.

#![no_main]

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use libfuzzer_sys::fuzz_target;
use wire::http1::{Limits, RequestHead, RequestScanner, Sink};
use wire::http2::gateway::{HeadBudget, OpenStreams, ServerStream};
use wire::http2::{Server, ServerSettings};
use wire::stream::{Carried as _, Received, Stream};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// `:method: POST`, `:scheme: http`, `:path: /`, `:authority: a`.
const FIELDS: &[u8] = b"\x83\x86\x84\x41\x01a";

const HEADERS: u8 = 1;
/// Asks for fields that make a request, before those of the input.
const REQUEST: u8 = 10;
/// Asks for bytes as they are.
const RAW: u8 = 11;

fn frames(mut input: &[u8]) -> Vec<u8> {
    let mut bytes = PREFACE.to_vec();
    while let [kind, flags, stream, length, rest @ ..] = input {
        let (payload, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        input = rest;
        let kind = kind % 12;
        if kind == RAW {
            bytes.extend_from_slice(payload);
            continue;
        }
        let (kind, before) = match kind {
            REQUEST => (HEADERS, FIELDS),
            kind => (kind, &[][..]),
        };
        let length = (before.len() + payload.len()) as u32;
        bytes.extend_from_slice(&length.to_be_bytes()[1..]);
        bytes.extend_from_slice(&[kind, *flags, 0, 0, 0, stream % 16]);
        bytes.extend_from_slice(before);
        bytes.extend_from_slice(payload);
    }
    bytes
}

struct Nothing;

impl Sink for Nothing {}

/// What a stream became must be the beginning of one request, or one whole request.
fn check(bytes: &[u8]) {
    let mut scanner = RequestScanner::new(Limits::default());
    let mut head = RequestHead::default();
    let Some(length) = scanner
        .head(bytes, &mut head)
        .expect("a head that can be read")
    else {
        return;
    };
    let scan = scanner
        .body(&bytes[length..], &mut Nothing)
        .expect("a body that can be read");
    assert_eq!(
        length + scan.consumed,
        bytes.len(),
        "{}",
        bytes.escape_ascii()
    );
}

fuzz_target!(|input: &[u8]| {
    let (mut client, server) = UnixStream::pair().expect("a pair of sockets");
    client
        .set_nonblocking(true)
        .expect("a socket that does not block");
    server
        .set_nonblocking(true)
        .expect("a socket that does not block");
    let bytes = frames(input);
    // What the kernel does not take is not part of the test.
    let _ = client.write(&bytes);
    let stream = Stream::Plain(OwnedFd::from(server));
    let settings = ServerSettings {
        head_bytes: 4096,
        ..ServerSettings::default()
    };
    let mut server = Server::start(stream, settings);
    let (heads, open) = (HeadBudget::default(), OpenStreams::of(&server));
    let mut streams: Vec<(ServerStream, Vec<u8>)> = Vec::new();
    let mut scratch = [0; 4096];
    for _ in 0..8 {
        let mut accepted = Vec::new();
        let ended = server.drive(true, &mut accepted).is_err();
        let opened = accepted
            .into_iter()
            .filter_map(|it| ServerStream::new(it, &heads, &open, [7; 16]));
        streams.extend(opened.map(|stream| (stream, Vec::new())));
        for (stream, seen) in &mut streams {
            while let Ok(Received::Bytes(length)) = stream.receive(&mut scratch) {
                if seen.is_empty() {
                    // An answer before the body is read whole.
                    let _ = stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
                }
                seen.extend_from_slice(&scratch[..length]);
            }
        }
        while let Ok(1..) = client.read(&mut scratch) {}
        if ended {
            break;
        }
    }
    assert_eq!(open.len(), streams.len());
    for (_, seen) in &streams {
        check(seen);
    }
});
