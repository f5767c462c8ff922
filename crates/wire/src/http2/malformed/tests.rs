//! Against the codec itself, with a peer that writes its own blocks.

use std::collections::{BTreeMap, VecDeque};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use bytes::Bytes;
use http::Request;
use proptest::prelude::*;

use super::*;
use crate::http2::{
    Answer, ClientSettings, Exchanges, Reason, Server, ServerSettings, StreamError,
};
use crate::stream::Stream;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// `:method: GET`, `:scheme: http`, `:path: /`, `:authority: a` outside the table.
const GOOD: &[u8] = b"\x82\x86\x84\x01\x01a";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    frame.extend_from_slice(&[kind, flags]);
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// What comes out of bytes that come in such pieces.
fn passed(mut heads: Heads, pieces: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut out = Vec::new();
    let drain = |heads: &mut Heads, out: &mut Vec<u8>| {
        let mut some = [0; 100];
        loop {
            match heads.give(&mut some) {
                0 => return,
                given => out.extend_from_slice(&some[..given]),
            }
        }
    };
    for piece in pieces {
        let passed = heads.pass(&piece);
        out.extend_from_slice(&piece[..passed]);
        drain(&mut heads, &mut out);
    }
    heads.end();
    drain(&mut heads, &mut out);
    out
}

fn pieces(mut bytes: &[u8], sizes: &[usize]) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    for size in sizes.iter().cycle() {
        if bytes.is_empty() {
            break;
        }
        let (piece, rest) = bytes.split_at(bytes.len().min(*size));
        pieces.push(piece.to_vec());
        bytes = rest;
    }
    pieces
}

/// A field as a peer may write it.
#[derive(Debug, Clone)]
enum Part {
    /// The entry of the table that is so old, if there is one; else `accept-encoding`.
    Indexed(usize),
    Literal {
        name: Naming,
        value: Vec<u8>,
        compressed: bool,
        mode: Mode,
    },
}

#[derive(Debug, Clone)]
enum Naming {
    Text(&'static [u8]),
    /// The name of that entry; `user-agent` if there is none.
    Index(usize),
}

#[derive(Debug, Clone, Copy)]
enum Mode {
    Enters,
    Passes,
    Never,
}

fn part() -> impl Strategy<Value = Part> {
    let text = prop::sample::select(vec![
        &b"x-a"[..],
        b"x-long-enough-to-be-compressed",
        b"X-Up",
        b"x bad",
        b"",
        b":other",
        b":path ",
        b"connection",
    ]);
    let name = prop_oneof![
        3 => text.prop_map(Naming::Text),
        1 => (0..6_usize).prop_map(Naming::Index),
    ];
    let sign = prop_oneof![
        40 => prop::sample::select(b"abc \t09~\x80\xff".to_vec()),
        1 => prop::sample::select(b"\0\x01\r\n\x7f".to_vec()),
    ];
    // Not less than what is left of a name that is none.
    let value = prop_oneof![
        9 => prop::collection::vec(sign.clone(), 2..30),
        1 => prop::collection::vec(sign, 1400..1500),
    ];
    let mode = prop::sample::select(vec![Mode::Enters, Mode::Enters, Mode::Passes, Mode::Never]);
    let literal = (name, value, any::<bool>(), mode).prop_map(|(name, value, compressed, mode)| {
        Part::Literal {
            name,
            value,
            compressed,
            mode,
        }
    });
    prop_oneof![1 => (0..6_usize).prop_map(Part::Indexed), 2 => literal]
}

#[derive(Debug, Clone)]
struct Sent {
    parts: Vec<Part>,
    resized: Option<usize>,
    /// Where the block is cut into frames.
    cut: Option<usize>,
    padding: Option<u8>,
    priority: bool,
}

fn sent() -> impl Strategy<Value = Sent> {
    let parts = prop::collection::vec(part(), 0..6);
    let resized = prop::option::weighted(0.1, 0..4097_usize);
    let cut = prop::option::weighted(0.3, 0..100_usize);
    let padding = prop::option::weighted(0.3, any::<u8>());
    (parts, resized, cut, padding, any::<bool>()).prop_map(
        |(parts, resized, cut, padding, priority)| Sent {
            parts,
            resized,
            cut,
            padding,
            priority,
        },
    )
}

/// The peer's own table, with what each entry is.
struct Peer {
    table: VecDeque<(Vec<u8>, Vec<u8>, bool)>,
    most: usize,
}

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

impl Peer {
    /// Writes a block, and says what its fields are; `None`: it is malformed.
    fn block(&mut self, sent: &Sent) -> (Vec<u8>, Option<Fields>) {
        let mut block = Vec::new();
        if let Some(most) = sent.resized {
            integer(0x20, 5, most, &mut block);
            self.most = most;
            self.shrink();
        }
        block.extend_from_slice(GOOD);
        let mut fields = Some(Vec::new());
        let mut add = |name: &[u8], value: &[u8], good: bool| match &mut fields {
            Some(all) if good => all.push((name.to_vec(), value.to_vec())),
            fields => *fields = None,
        };
        for part in &sent.parts {
            match part {
                Part::Indexed(age) => match self.table.get(*age) {
                    Some((name, value, good)) => {
                        integer(0x80, 7, 62 + age, &mut block);
                        add(name, value, *good);
                    }
                    None => {
                        block.push(0x80 | 16);
                        add(b"accept-encoding", b"gzip, deflate", true);
                    }
                },
                Part::Literal {
                    name,
                    value,
                    compressed,
                    mode,
                } => {
                    let (first, prefix) = match mode {
                        Mode::Enters => (0x40, 6),
                        Mode::Passes => (0, 4),
                        Mode::Never => (0x10, 4),
                    };
                    let (name, mut good) = match name {
                        Naming::Text(name) => {
                            block.push(first);
                            string(name, *compressed, &mut block);
                            (name.to_vec(), name.starts_with(b"x-"))
                        }
                        Naming::Index(age) => match self.table.get(*age) {
                            Some((name, _, good)) => {
                                integer(first, prefix, 62 + age, &mut block);
                                (name.clone(), *good)
                            }
                            None => {
                                integer(first, prefix, 58, &mut block);
                                (b"user-agent".to_vec(), true)
                            }
                        },
                    };
                    string(value, *compressed, &mut block);
                    good &= !value.iter().any(|byte| b"\0\x01\r\n\x7f".contains(byte));
                    add(&name, value, good);
                    if matches!(mode, Mode::Enters) {
                        self.table.push_front((name, value.clone(), good));
                        self.shrink();
                    }
                }
            }
        }
        (block, fields)
    }

    fn shrink(&mut self) {
        let size = |it: &(Vec<u8>, Vec<u8>, bool)| 32 + it.0.len() + it.1.len();
        while self.table.iter().map(size).sum::<usize>() > self.most {
            self.table.pop_back();
        }
    }
}

fn integer(first: u8, prefix: u32, value: usize, out: &mut Vec<u8>) {
    let most = (1 << prefix) - 1;
    if value < most {
        return out.push(first | u8::try_from(value).unwrap());
    }
    out.push(first | u8::try_from(most).unwrap());
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn string(text: &[u8], compressed: bool, out: &mut Vec<u8>) {
    let coded = huffman::encode(text);
    let (first, bytes) = if compressed {
        (0x80, &coded[..])
    } else {
        (0, text)
    };
    integer(first, 7, bytes.len(), out);
    out.extend_from_slice(bytes);
}

/// The frames of a request.
fn request(stream: u32, block: &[u8], sent: &Sent) -> Vec<u8> {
    let (first, second) = match sent.cut {
        Some(cut) => block.split_at(cut.min(block.len())),
        None => (block, &b""[..]),
    };
    let mut flags = 1 | if sent.cut.is_none() { END_HEADERS } else { 0 };
    let mut payload = Vec::new();
    if let Some(padding) = sent.padding {
        flags |= PADDED;
        payload.push(padding);
    }
    if sent.priority {
        flags |= PRIORITY;
        payload.extend_from_slice(&[0, 0, 0, 0, 7]);
    }
    payload.extend_from_slice(first);
    payload.resize(payload.len() + usize::from(sent.padding.unwrap_or(0)), 0);
    let mut bytes = frame(HEADERS, flags, stream, &payload);
    if sent.cut.is_some() {
        bytes.extend(frame(CONTINUATION, END_HEADERS, stream, second));
    }
    bytes
}

/// What a server told a client: the streams it reset, with which code, and whether the
/// connection had to end.
fn told(mut bytes: &[u8]) -> (BTreeMap<u32, u32>, bool) {
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
    let (mut reset, mut ended) = (BTreeMap::new(), false);
    while let Some((payload, kind)) = frame_head(bytes) {
        let body = &bytes[FRAME_HEAD..FRAME_HEAD + payload];
        match kind {
            3 => drop(reset.insert(number(&bytes[5..9]), number(body))),
            7 => ended = true,
            _ => {}
        }
        bytes = &bytes[FRAME_HEAD + payload..];
    }
    (reset, ended)
}

proptest! {
    /// What is malformed resets its stream, and all else is found as it was sent: the codec's
    /// table is the peer's.
    #[test]
    fn a_malformed_head_is_an_error_of_its_stream(
        all in prop::collection::vec(sent(), 1..12),
        sizes in prop::collection::vec(1..3000_usize, 1..5),
    ) {
        let mut peer = Peer { table: VecDeque::new(), most: 4096 };
        let mut bytes = PREFACE.to_vec();
        let (mut good, mut bad) = (BTreeMap::new(), BTreeMap::new());
        for (stream, sent) in (1..).step_by(2).zip(&all) {
            let (block, fields) = peer.block(sent);
            bytes.extend(request(stream, &block, sent));
            match fields {
                Some(mut fields) => {
                    // In the order of one name; others have none.
                    fields.sort_by(|a, b| a.0.cmp(&b.0));
                    good.insert(stream, fields);
                }
                None => drop(bad.insert(stream, u32::from(Reason::PROTOCOL_ERROR))),
            }
        }
        let (mut client, server) = UnixStream::pair().unwrap();
        for socket in [&client, &server] {
            socket.set_nonblocking(true).unwrap();
        }
        let mut server = Server::start(Stream::Plain(server.into()), ServerSettings::default());
        let (mut accepted, mut answers) = (Vec::new(), Vec::new());
        for piece in pieces(&bytes, &sizes) {
            client.write_all(&piece).unwrap();
            server.drive(true, &mut accepted).unwrap();
            let _ = client.read_to_end(&mut answers);
        }
        let found: BTreeMap<u32, Fields> = accepted
            .iter()
            .map(|(request, respond)| {
                let fields = request.headers().iter();
                let mut fields: Fields = fields
                    .map(|(name, value)| (name.as_str().into(), value.as_bytes().into()))
                    .collect();
                fields.sort_by(|a, b| a.0.cmp(&b.0));
                (respond.stream_id().as_u32(), fields)
            })
            .collect();
        prop_assert_eq!(found, good);
        prop_assert_eq!(told(&answers), (bad, false));
    }

    #[test]
    fn pieces_pass_as_the_whole_does(
        frames in prop::collection::vec(
            (0..12_u8, any::<u8>(), 0..4_u32, prop::collection::vec(any::<u8>(), 0..30)),
            0..12,
        ),
        sent in prop::collection::vec(sent(), 0..4),
        sizes in prop::collection::vec(1..50_usize, 1..6),
    ) {
        let mut peer = Peer { table: VecDeque::new(), most: 4096 };
        let mut bytes = PREFACE.to_vec();
        for sent in &sent {
            let (block, _) = peer.block(sent);
            bytes.extend(request(1, &block, sent));
        }
        for (kind, flags, stream, payload) in &frames {
            match kind {
                11 => bytes.extend_from_slice(payload),
                kind => bytes.extend(frame(*kind, *flags, *stream, payload)),
            }
        }
        let whole = passed(Heads::of_client(), [bytes.clone()]);
        let parts = passed(Heads::of_client(), pieces(&bytes, &sizes));
        prop_assert_eq!(whole, parts);
    }

    /// Nothing is changed but malformed heads, and those of several frames.
    #[test]
    fn all_else_passes_as_it_is(
        bytes: Vec<u8>,
        sent in prop::collection::vec(sent(), 0..4),
        sizes in prop::collection::vec(1..50_usize, 1..6),
    ) {
        let mut peer = Peer { table: VecDeque::new(), most: 4096 };
        let mut stream = Vec::new();
        for sent in &sent {
            let mut sent = sent.clone();
            sent.cut = None;
            sent.parts.retain(|part| matches!(part, Part::Indexed(_)));
            let (block, fields) = peer.block(&sent);
            prop_assert!(fields.is_some());
            stream.extend(request(1, &block, &sent));
            stream.extend(frame(0, 0, 1, &bytes));
        }
        // A frame of an unknown kind, cut off.
        stream.extend_from_slice(&[0, 0x10, 0, 0xee, 0]);
        prop_assert_eq!(passed(Heads::default(), pieces(&stream, &sizes)), stream);
    }

    #[test]
    fn nothing_panics(pieces: Vec<Vec<u8>>) {
        passed(Heads::default(), pieces);
    }
}

/// Each bound, and what is kept at it.
#[test]
fn heads_that_are_too_long_are_left_to_the_codec() {
    let part = vec![0; MOST_PAYLOAD];
    for bytes in [
        // More frames than are kept, more bytes, and a longer frame than there may be.
        [
            frame(HEADERS, 0, 1, b""),
            frame(CONTINUATION, 0, 1, b"").repeat(17),
        ]
        .concat(),
        [
            frame(HEADERS, 0, 1, b""),
            frame(CONTINUATION, 0, 1, &part).repeat(4),
        ]
        .concat(),
        frame(HEADERS, END_HEADERS, 1, &vec![0; MOST_PAYLOAD + 1]),
        // No head at all.
        frame(CONTINUATION, END_HEADERS, 1, b""),
        frame(PUSH_PROMISE, END_HEADERS, 1, b"\0\0\0\x02"),
        [frame(HEADERS, 0, 1, b""), frame(0, 0, 1, b"")].concat(),
        frame(HEADERS, END_HEADERS | PADDED, 1, b"\x05abc"),
        frame(HEADERS, END_HEADERS | PRIORITY, 1, b"\0\0"),
        frame(HEADERS, END_HEADERS, 1, b"\xff\xff\xff\xff\xff\x01"),
        frame(HEADERS, END_HEADERS, 1, b"\xc0"),
    ] {
        let mut heads = Heads::default();
        for piece in bytes.chunks(1000) {
            heads.pass(piece);
            assert!(heads.kept.len() <= MOST_KEPT + 1000);
        }
        assert!(heads.blind && heads.kept.is_empty());
        assert_eq!(passed(Heads::default(), pieces(&bytes, &[1000])), bytes);
    }
}

#[test]
fn a_head_of_several_frames_becomes_one() {
    let bytes = [
        frame(HEADERS, 1 | PADDED, 1, &[&[2], GOOD, &[0, 0]].concat()),
        frame(CONTINUATION, 0, 1, b"\x00\x01a"),
        frame(CONTINUATION, END_HEADERS, 1, b"\x01b"),
    ];
    let block = [GOOD, b"\x00\x01a\x01b"].concat();
    let expected = frame(HEADERS, 1 | END_HEADERS, 1, &block);
    assert_eq!(passed(Heads::default(), bytes), expected);
    let long = [
        frame(HEADERS, 1, 1, &GOOD.repeat(2000)),
        frame(CONTINUATION, END_HEADERS, 1, &GOOD.repeat(2000)),
    ];
    assert_eq!(passed(Heads::default(), long.clone()), long.concat());
}

/// So few bytes that no other malformed field has as many: the codec ends the connection.
#[test]
fn a_name_of_no_bytes_that_enters_the_table_is_left_to_the_codec() {
    let bytes = frame(HEADERS, END_HEADERS, 1, b"\x40\x00\x01a");
    assert_eq!(passed(Heads::default(), [bytes.clone()]), bytes);
    let outside = frame(HEADERS, END_HEADERS, 1, b"\x00\x00\x01a");
    assert_eq!(
        passed(Heads::default(), [outside]),
        frame(HEADERS, END_HEADERS, 1, b"\x10\x02te\x01x")
    );
}

#[test]
fn values_that_cannot_be_reset_the_stream() {
    for field in [
        &b"\x9c"[..],
        b"\x0f\x0d\x00",
        b"\x00\x0econtent-length\x02+1",
        b"\x02\x03G T",
        b"\x00\x07:method\x03G T",
        b"\x04\x03/\xff\xfe",
        b"\x00\x09:protocol\x01\xff",
        b"\x08\x01x",
    ] {
        let bytes = [PREFACE, &frame(HEADERS, END_HEADERS, 1, field)].concat();
        let expected = frame(HEADERS, END_HEADERS, 1, b"\x10\x02te\x01x");
        let out = passed(Heads::of_client(), [bytes]);
        assert_eq!(out[PREFACE.len()..], expected, "{field:?}");
    }
}

/// The client's side: of two answers the malformed one fails.
#[test]
fn a_malformed_answer_is_an_error_of_its_exchange() {
    let (near, mut far) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    let mut client = Exchanges::start(Stream::Plain(near.into()), ClientSettings::default());
    client.drive(true).unwrap();
    let mut ask = || {
        let request = Request::get("http://a/").body(()).unwrap();
        client.send(request, Bytes::new(), 0).unwrap()
    };
    let (bad, good) = (ask(), ask());
    client.drive(true).unwrap();
    let ends = END_HEADERS | 1;
    far.write_all(
        &[
            frame(4, 0, 0, b""),
            frame(HEADERS, ends, 1, b"\x88\x40\x05X-Bad\x01a"),
            frame(HEADERS, ends, 3, b"\x88\x40\x01x\x01a"),
        ]
        .concat(),
    )
    .unwrap();
    client.drive(true).unwrap();
    let mut finished: Vec<_> = client.finished().collect();
    finished.sort_by_key(|(key, _)| key.slot());
    let answer = Answer {
        status: 200,
        headers: [("x".parse().unwrap(), "a".parse().unwrap())]
            .into_iter()
            .collect(),
        ..Answer::default()
    };
    let reset = Err(StreamError::Protocol(Reason::PROTOCOL_ERROR));
    assert_eq!(finished, [(bad, reset), (good, Ok(answer))]);
}
