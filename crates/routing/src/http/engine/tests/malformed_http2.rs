//! One malformed head resets its stream, and the others go on (RFC 9113 section 8.1.1).

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::bench::{Backend, ok};
use super::http2::{bench, connect_tls, run};
use super::tls::Authority;

/// A field of a block: literal, never indexed, nothing compressed (RFC 7541 section 6.2.3).
fn field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.push(0x10);
    for text in [name, value] {
        out.push(u8::try_from(text.len()).unwrap());
        out.extend_from_slice(text);
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

type Fields<'f> = &'f [(&'f [u8], &'f [u8])];

/// HEADERS with END_STREAM and END_HEADERS.
fn request(stream: u32, fields: Fields<'_>) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        field(name, value, &mut block);
    }
    frame(1, 5, stream, &block)
}

const GOOD: [(&[u8], &[u8]); 4] = [
    (b":method", b"GET"),
    (b":scheme", b"https"),
    (b":authority", b"app.test"),
    (b":path", b"/"),
];

/// What became of two requests on one connection.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    /// The first one's stream was reset, with this code.
    reset: Option<u32>,
    /// Each was answered.
    answered: [bool; 2],
    /// The connection was ended, with this code.
    goaway: Option<u32>,
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().unwrap())
}

/// Sends a request and a good one behind it, and looks what comes.
fn outcome(fields: Fields<'_>) -> Outcome {
    let authority = Authority::new();
    let backend = Backend::answering(|_| ok(b"x"));
    let bench = bench(&authority, &[backend.address]);
    run(async {
        let mut socket = connect_tls(&bench, &authority).await;
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        bytes.extend(frame(4, 0, 0, &[]));
        bytes.extend(request(1, fields));
        bytes.extend(request(3, &GOOD));
        socket.write_all(&bytes).await.unwrap();
        let mut outcome = Outcome::default();
        loop {
            let mut head = [0; 9];
            if socket.read_exact(&mut head).await.is_err() {
                return outcome;
            }
            let mut payload = vec![0; number(&[0, head[0], head[1], head[2]]) as usize];
            socket.read_exact(&mut payload).await.unwrap();
            match (head[3], number(&head[5..])) {
                (1, 1) => outcome.answered[0] = true,
                (1, 3) => outcome.answered[1] = true,
                (3, 1) => outcome.reset = Some(number(&payload)),
                (7, _) => outcome.goaway = Some(number(&payload[4..8])),
                _ => {}
            }
            let first = outcome.answered[0] || outcome.reset.is_some();
            if outcome.goaway.is_some() || (first && outcome.answered[1]) {
                return outcome;
            }
        }
    })
}

/// The fields of a good request with another one behind them.
fn with(name: &'static [u8], value: &'static [u8]) -> Vec<(&'static [u8], &'static [u8])> {
    let mut fields = GOOD.to_vec();
    fields.push((name, value));
    fields
}

/// The same with another value.
fn but(name: &'static [u8], value: &'static [u8]) -> Vec<(&'static [u8], &'static [u8])> {
    let mut fields = GOOD.to_vec();
    for field in fields.iter_mut().filter(|field| field.0 == name) {
        field.1 = value;
    }
    fields
}

const PROTOCOL_ERROR: u32 = 1;

#[test]
fn a_malformed_head_resets_its_stream_only() {
    for fields in [
        with(b"connection", b"keep-alive"),
        with(b"te", b"gzip"),
        with(b":path", b"/b"),
        with(b":status", b"200"),
        with(b"content-length", b"abc"),
        with(b"content-length", b""),
        GOOD[..3].to_vec(),
        GOOD[1..].to_vec(),
        but(b":path", b""),
        but(b":path", b"abc"),
        but(b":scheme", b"h ttp"),
        but(b":authority", b"a b"),
        with(b"X-Bad", b"1"),
        with(b"x bad", b"1"),
        with(b"", b"1"),
        with(b"x-bad", b"a\x01b"),
        with(b"x-bad", b"a\r\nb: c"),
        with(b":other", b"1"),
        but(b":method", b"G T"),
        but(b":path", b"/\xff\xfe"),
    ] {
        let expected = Outcome {
            reset: Some(PROTOCOL_ERROR),
            answered: [false, true],
            goaway: None,
        };
        assert_eq!(outcome(&fields), expected, "{fields:?}");
    }
}

#[test]
fn good_heads_are_answered_also_beyond_ascii() {
    for fields in [GOOD.to_vec(), but(b":path", "/\u{e9}".as_bytes())] {
        let expected = Outcome {
            answered: [true, true],
            ..Outcome::default()
        };
        assert_eq!(outcome(&fields), expected, "{fields:?}");
    }
}
