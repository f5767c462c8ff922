//! Peers that break rules, and what of it ends a stream or the connection.

use super::settings;
use super::*;
use crate::http2::codec::frames::{self, *};

/// `:method: GET`, `:scheme: http`, `:path: /`, `:authority: a`.
const GET: &[u8] = b"\x82\x86\x84\x01\x01a";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    [
        &frames::head(payload.len(), kind, flags, stream)[..],
        payload,
    ]
    .concat()
}

fn request(stream: u32, flags: u8) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | flags, stream, GET)
}

fn number(bytes: &[u8]) -> u32 {
    frames::number(bytes).unwrap()
}

/// A server that has the client's settings.
fn server(settings: Settings) -> Connection {
    let mut connection = Connection::new(Role::Server, settings);
    connection.receive(PREFACE);
    connection.receive(&frame(SETTINGS, 0, 0, b""));
    let said = connection.out().len();
    connection.sent(said);
    assert_eq!(connection.ended(), None);
    connection
}

/// The frames that wait to be sent.
fn sent(connection: &mut Connection) -> Vec<(Frame, Vec<u8>)> {
    let bytes = connection.out().to_vec();
    connection.sent(bytes.len());
    let (mut rest, mut found) = (&bytes[..], Vec::new());
    while let Some(frame) = Frame::read(rest) {
        let end = HEAD + frame.length;
        found.push((frame, rest[HEAD..end].to_vec()));
        rest = &rest[end..];
    }
    assert!(rest.is_empty());
    found
}

/// The code of the reset of a stream, and of the end of the connection, among these.
fn told(connection: &mut Connection) -> (Option<(u32, Reason)>, Option<Reason>) {
    let (mut reset, mut ended) = (None, None);
    for (frame, payload) in sent(connection) {
        match frame.kind {
            RST_STREAM => reset = Some((frame.stream, number(&payload).into())),
            GOAWAY => ended = Some(number(&payload[4..]).into()),
            _ => {}
        }
    }
    let protocol = ended.map(Http2Error::Protocol);
    assert_eq!(connection.ended(), protocol.as_ref());
    (reset, ended)
}

#[test]
fn what_ends_the_connection() {
    let padded = [&[9][..], GET].concat();
    for (bytes, reason) in [
        (frame(DATA, 0, 0, b"a"), Reason::PROTOCOL_ERROR),
        (frame(DATA, 0, 1, b"a"), Reason::PROTOCOL_ERROR),
        (frame(HEADERS, END_HEADERS, 0, GET), Reason::PROTOCOL_ERROR),
        (request(2, 0), Reason::PROTOCOL_ERROR),
        (
            frame(HEADERS, END_HEADERS | PADDED, 1, &padded),
            Reason::PROTOCOL_ERROR,
        ),
        (
            frame(HEADERS, END_HEADERS, 1, b"\xbe"),
            Reason::COMPRESSION_ERROR,
        ),
        (
            [request(3, 1), request(1, 1)].concat(),
            Reason::PROTOCOL_ERROR,
        ),
        (
            frame(CONTINUATION, END_HEADERS, 1, GET),
            Reason::PROTOCOL_ERROR,
        ),
        (
            [frame(HEADERS, 0, 1, GET), frame(PING, 0, 0, &[0; 8])].concat(),
            Reason::PROTOCOL_ERROR,
        ),
        (
            [frame(HEADERS, 0, 1, GET), frame(CONTINUATION, 4, 3, b"")].concat(),
            Reason::PROTOCOL_ERROR,
        ),
        (
            [
                frame(HEADERS, 0, 1, GET),
                frame(CONTINUATION, 0, 1, b"").repeat(40),
            ]
            .concat(),
            Reason::ENHANCE_YOUR_CALM,
        ),
        (
            [
                frame(HEADERS, 0, 1, GET),
                frame(CONTINUATION, 0, 1, &[0; 16_000]).repeat(6),
            ]
            .concat(),
            Reason::ENHANCE_YOUR_CALM,
        ),
        (frame(RST_STREAM, 0, 1, &[0; 4]), Reason::PROTOCOL_ERROR),
        (frame(RST_STREAM, 0, 0, &[0; 4]), Reason::PROTOCOL_ERROR),
        (frame(RST_STREAM, 0, 1, &[0; 3]), Reason::FRAME_SIZE_ERROR),
        (frame(SETTINGS, 0, 1, b""), Reason::PROTOCOL_ERROR),
        (frame(SETTINGS, 0, 0, b"abc"), Reason::FRAME_SIZE_ERROR),
        (frame(SETTINGS, ACK, 0, b"abcdef"), Reason::FRAME_SIZE_ERROR),
        (
            frame(SETTINGS, 0, 0, b"\0\x02\0\0\0\x02"),
            Reason::PROTOCOL_ERROR,
        ),
        (
            frame(SETTINGS, 0, 0, b"\0\x04\x80\0\0\0"),
            Reason::FLOW_CONTROL_ERROR,
        ),
        (
            frame(SETTINGS, 0, 0, b"\0\x05\0\0\x3f\xff"),
            Reason::PROTOCOL_ERROR,
        ),
        (
            frame(SETTINGS, 0, 0, b"\0\x05\x01\0\0\0"),
            Reason::PROTOCOL_ERROR,
        ),
        (frame(PING, 0, 1, &[0; 8]), Reason::PROTOCOL_ERROR),
        (frame(PING, 0, 0, &[0; 7]), Reason::FRAME_SIZE_ERROR),
        (frame(GOAWAY, 0, 1, &[0; 8]), Reason::PROTOCOL_ERROR),
        (frame(GOAWAY, 0, 0, &[0; 7]), Reason::FRAME_SIZE_ERROR),
        (frame(WINDOW_UPDATE, 0, 0, &[0; 4]), Reason::PROTOCOL_ERROR),
        (
            frame(WINDOW_UPDATE, 0, 0, &[0; 5]),
            Reason::FRAME_SIZE_ERROR,
        ),
        (
            frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]),
            Reason::PROTOCOL_ERROR,
        ),
        (
            frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
            Reason::FLOW_CONTROL_ERROR,
        ),
        (
            frame(PUSH_PROMISE, END_HEADERS, 1, &[0; 4]),
            Reason::PROTOCOL_ERROR,
        ),
        (frame(PRIORITY, 0, 0, &[0; 5]), Reason::PROTOCOL_ERROR),
        (
            frames::head(MOST_PAYLOAD + 1, DATA, 0, 1).to_vec(),
            Reason::FRAME_SIZE_ERROR,
        ),
        (
            [request(1, 0), frame(DATA, 0, 1, b"").repeat(200)].concat(),
            Reason::ENHANCE_YOUR_CALM,
        ),
    ] {
        for size in [1, 7, bytes.len()] {
            let mut connection = server(settings());
            for part in bytes.chunks(size) {
                connection.receive(part);
            }
            assert_eq!(
                told(&mut connection).1,
                Some(reason),
                "{:?}",
                bytes.escape_ascii().to_string()
            );
        }
    }
}

#[test]
fn what_ends_a_stream_only() {
    let with = |field: &[u8]| frame(HEADERS, 5, 1, &[GET, field].concat());
    for (bytes, reason) in [
        (with(b"\x00\x01X\x01a"), Reason::PROTOCOL_ERROR),
        (with(b"\x00\x0aconnection\x01a"), Reason::PROTOCOL_ERROR),
        (with(b"\x88"), Reason::PROTOCOL_ERROR),
        (with(b"\x0f\x0d\x015"), Reason::PROTOCOL_ERROR),
        (frame(HEADERS, 5, 1, b"\x82\x86"), Reason::PROTOCOL_ERROR),
        (frame(HEADERS, 5, 1, b"\x86\x84"), Reason::PROTOCOL_ERROR),
        (
            frame(HEADERS, 0x25, 1, &[&[0, 0, 0, 1, 7], GET].concat()),
            Reason::PROTOCOL_ERROR,
        ),
        (
            [request(1, 0), frame(HEADERS, 5, 1, GET)].concat(),
            Reason::PROTOCOL_ERROR,
        ),
        (
            [request(1, 0), frame(HEADERS, 4, 1, b"\x00\x01x\x01a")].concat(),
            Reason::PROTOCOL_ERROR,
        ),
        (
            [request(1, 1), frame(HEADERS, 5, 1, b"\x00\x01x\x01a")].concat(),
            Reason::STREAM_CLOSED,
        ),
        (
            [request(1, 1), frame(DATA, 0, 1, b"a")].concat(),
            Reason::STREAM_CLOSED,
        ),
        (
            [request(1, 0), frame(WINDOW_UPDATE, 0, 1, &[0; 4])].concat(),
            Reason::PROTOCOL_ERROR,
        ),
        (
            [
                request(1, 0),
                frame(WINDOW_UPDATE, 0, 1, &[0x7f, 0xff, 0xff, 0xff]),
            ]
            .concat(),
            Reason::FLOW_CONTROL_ERROR,
        ),
        (
            [request(1, 0), frame(PRIORITY, 0, 1, &[0, 0, 0, 1, 0])].concat(),
            Reason::PROTOCOL_ERROR,
        ),
        (
            [request(1, 0), frame(DATA, 0, 1, &[0; 16_000]).repeat(17)].concat(),
            Reason::FLOW_CONTROL_ERROR,
        ),
        (
            [
                frame(HEADERS, 4, 1, &[GET, b"\x0f\x0d\x015"].concat()),
                frame(DATA, 0, 1, b"123456"),
            ]
            .concat(),
            Reason::PROTOCOL_ERROR,
        ),
        (
            [
                frame(HEADERS, 4, 1, &[GET, b"\x0f\x0d\x015"].concat()),
                frame(DATA, 1, 1, b"1234"),
            ]
            .concat(),
            Reason::PROTOCOL_ERROR,
        ),
    ] {
        let mut connection = server(settings());
        connection.receive(&bytes);
        let expected = (Some((1, reason)), None);
        assert_eq!(
            told(&mut connection),
            expected,
            "{:?}",
            bytes.escape_ascii().to_string()
        );
        // The others go on, and what comes late for this one is no error.
        connection.receive(&frame(DATA, 1, 1, b"late"));
        connection.receive(&request(3, 1));
        let key = connection.opened();
        assert_eq!(told(&mut connection), (None, None));
        assert!(key.is_some_and(|key| connection.head(key).unwrap().path() == Some(b"/")));
    }
}

#[test]
fn a_malformed_head_leaves_the_table_right() {
    let mut connection = server(settings());
    let entering = [GET, b"\x40\x05X-Bad\x01a\x40\x01x\x01b"].concat();
    connection.receive(&frame(HEADERS, 5, 1, &entering));
    connection.receive(&frame(HEADERS, 5, 3, &[GET, b"\xbe"].concat()));
    connection.receive(&frame(HEADERS, 5, 5, &[GET, b"\xbf"].concat()));
    let key = connection.opened().unwrap();
    assert_eq!(connection.head(key).unwrap().lines(), b"x: b\r\n");
    assert_eq!(connection.opened(), None);
    assert_eq!(
        told(&mut connection),
        (Some((5, Reason::PROTOCOL_ERROR)), None)
    );
}

#[test]
fn a_head_that_is_too_large_is_431() {
    let small = Settings {
        head_bytes: 200,
        ..settings()
    };
    let mut connection = server(small);
    let long = [GET, b"\x00\x01x\x64", &[b'a'; 100]].concat();
    connection.receive(&frame(HEADERS, 5, 1, &long));
    let frames = sent(&mut connection);
    assert_eq!(frames.len(), 1);
    assert_eq!(
        (frames[0].0.kind, frames[0].0.flags),
        (HEADERS, END_HEADERS | END_STREAM)
    );
    assert_eq!(frames[0].1, b"\x08\x03431");
    assert_eq!(connection.opened(), None);
}

/// CVE-2023-44487: streams that are opened and reset at once.
#[test]
fn rapid_resets_end_the_connection() {
    let mut connection = server(settings());
    let mut bytes = Vec::new();
    for stream in (1..).step_by(2).take(21) {
        bytes.extend(request(stream, 1));
        bytes.extend(frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]));
    }
    connection.receive(&bytes);
    assert_eq!(told(&mut connection).1, Some(Reason::ENHANCE_YOUR_CALM));
    // Those that were looked at in between do not count.
    let mut connection = server(settings());
    for stream in (1..).step_by(2).take(1000) {
        connection.receive(&request(stream, 1));
        connection.receive(&frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]));
        assert_eq!(connection.opened(), None);
    }
    assert_eq!(told(&mut connection), (None, None));
}

#[test]
fn streams_that_break_rules_are_counted() {
    let mut connection = server(settings());
    for stream in (1..).step_by(2).take(129) {
        assert_eq!(connection.ended(), None);
        connection.receive(&frame(HEADERS, 5, stream, b"\x82"));
    }
    assert_eq!(told(&mut connection).1, Some(Reason::ENHANCE_YOUR_CALM));
}

#[test]
fn streams_beyond_the_limit_are_refused() {
    let two = Settings {
        streams: 2,
        ..settings()
    };
    let mut connection = server(two);
    for stream in [1, 3, 5] {
        connection.receive(&request(stream, 1));
    }
    assert_eq!(
        told(&mut connection),
        (Some((5, Reason::REFUSED_STREAM)), None)
    );
    // Room comes with the end of one, and none as long as somebody has those that were reset.
    let keys = [connection.opened().unwrap(), connection.opened().unwrap()];
    connection.answer(keys[0], true, |block| block.status(200));
    connection.release(keys[0]);
    connection.receive(&request(7, 1));
    connection.receive(&frame(RST_STREAM, 0, 3, &[0; 4]));
    connection.receive(&frame(RST_STREAM, 0, 7, &[0; 4]));
    assert_eq!(told(&mut connection), (None, None));
    assert_eq!(
        connection.failure(keys[1]),
        Some(StreamError::Reset(Reason::NO_ERROR))
    );
}

/// A peer that asks and never reads: no more is read than what can be answered in bounds.
#[test]
fn a_flood_is_not_read_as_long_as_nothing_is_sent() {
    let mut connection = server(settings());
    let pings = frame(PING, 0, 0, &[7; 8]).repeat(1000);
    let mut given = 0;
    while !connection.is_paused() {
        connection.receive(&pings);
        given += pings.len();
        assert!(given < 1_000_000);
    }
    assert!(connection.out().len() < 200_000);
    // It goes on behind that.
    let mut answered = 0;
    loop {
        answered += sent(&mut connection).len();
        if !connection.has_input() {
            break;
        }
        connection.receive(b"");
    }
    assert_eq!(answered * pings.len() / 1000, given);
}

/// A few bytes that stand for many: heads that wait are bounded.
#[test]
fn large_heads_are_not_read_as_long_as_nobody_looks_at_them() {
    let mut connection = server(Settings {
        head_bytes: 1 << 20,
        ..settings()
    });
    let mut first = [GET, b"\x40\x01x\x7f\xb9\x16"].concat();
    first.extend_from_slice(&[b'x'; 3000]);
    connection.receive(&frame(HEADERS, 5, 1, &first));
    let many = [GET, &[0xbe; 300]].concat();
    for stream in (3..).step_by(2).take(20) {
        connection.receive(&frame(HEADERS, 5, stream, &many));
    }
    let mut seen = 0;
    loop {
        assert!(connection.opened_bytes <= 2_000_000);
        while let Some(key) = connection.opened() {
            seen += 1;
            connection.release(key);
        }
        if !connection.has_input() {
            break;
        }
        connection.receive(b"");
    }
    assert_eq!((seen, connection.opened_bytes), (21, 0));
}

/// Answers that a target which stood still sends to requests whose time was over.
#[test]
fn answers_to_streams_that_were_given_up_long_ago_are_no_error() {
    let mut connection = Connection::new(Role::Client, settings());
    connection.sent(connection.out().len());
    connection.receive(&frame(SETTINGS, 0, 0, b""));
    for _ in 0..1000 {
        let open = connection.open(true, false, |block| block.method(b"GET"));
        connection.release(open.unwrap());
    }
    sent(&mut connection);
    for stream in (1..).step_by(2).take(1000) {
        connection.receive(&frame(HEADERS, END_HEADERS, stream, b"\x88"));
        connection.receive(&frame(DATA, END_STREAM, stream, b"late"));
    }
    assert_eq!(told(&mut connection), (None, None));
}

#[test]
fn a_preface_that_is_none_ends_the_connection() {
    let mut connection = Connection::new(Role::Server, settings());
    connection.receive(b"GET / HTTP/1.1\r\n");
    assert_eq!(told(&mut connection).1, Some(Reason::PROTOCOL_ERROR));
    let mut connection = Connection::new(Role::Client, settings());
    connection.sent(connection.out().len());
    connection.receive(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    assert!(connection.ended().is_some());
}

/// Another answer's body is not held up by one that nobody reads.
#[test]
fn room_is_shared_and_never_lost() {
    let much = Settings {
        out_bytes: 1 << 20,
        ..settings()
    };
    let mut connection = server(much);
    for stream in [1, 3] {
        connection.receive(&request(stream, 1));
    }
    let keys = [connection.opened().unwrap(), connection.opened().unwrap()];
    for key in keys {
        connection.answer(key, false, |block| block.status(200));
    }
    let body = [b'x'; 100_000];
    // The whole of the connection's window goes to the first.
    let first = connection.send(keys[0], &body, true);
    assert_eq!(first, 65_535);
    assert_eq!(connection.send(keys[1], &body, true), 0);
    sent(&mut connection);
    assert_eq!(connection.touched(), None);
    connection.receive(&frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0x10, 0]));
    assert_eq!(connection.touched(), Some(keys[1]));
    connection.reset(keys[1], Reason::CANCEL);
    connection.release(keys[1]);
    // The first one waits for its own window.
    assert_eq!(connection.touched(), None);
    connection.receive(&frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0x10, 0]));
    assert_eq!(connection.touched(), Some(keys[0]));
    assert_eq!(connection.send(keys[0], &body[first..], true), 0x1000);
}

proptest::proptest! {
    /// Nothing panics, memory is bounded, and pieces are read as the whole is.
    #[test]
    fn any_frames_are_taken(
        frames in proptest::collection::vec(
            (0..12_u8, proptest::num::u8::ANY, 0..6_u32, proptest::collection::vec(proptest::num::u8::ANY, 0..30)),
            0..30,
        ),
        size in 1..50_usize,
        role in proptest::bool::ANY,
    ) {
        let mut bytes = Vec::new();
        for (kind, flags, stream, payload) in &frames {
            match kind {
                10 => bytes.extend(frame(HEADERS, END_HEADERS | flags & 1, *stream, &[GET, payload].concat())),
                11 => bytes.extend_from_slice(payload),
                kind => bytes.extend(frame(*kind, *flags, *stream, payload)),
            }
        }
        let all = [bytes.len().max(1), size].map(|size| {
            let mut connection = match role {
                true => server(settings()),
                false => {
                    let mut client = Connection::new(Role::Client, settings());
                    client.receive(&frame(SETTINGS, 0, 0, b""));
                    let key = client.open(true, false, |block| block.method(b"GET")).unwrap();
                    client.receive(&frame(HEADERS, END_HEADERS, 1, b"\x88"));
                    let _ = client.head(key);
                    client
                }
            };
            for part in bytes.chunks(size) {
                connection.receive(part);
            }
            while let Some(key) = connection.opened() {
                connection.answer(key, false, |block| block.status(200));
                connection.send(key, b"abc", true);
                connection.use_body(key, 5);
                connection.release(key);
            }
            (connection.out().to_vec(), connection.ended().cloned())
        });
        proptest::prop_assert_eq!(&all[0], &all[1]);
    }
}
