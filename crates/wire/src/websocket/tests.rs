use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use proptest::prelude::*;
use tungstenite::Message;

use super::*;
use crate::http1::{Limits, ResponseScanner, Sink};

/// What a scanner found, parts of messages joined.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Message(bool, Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<u16>, String),
}

/// Everything in a stream that comes in parts, and how it ends.
fn scan_parts(parts: &[&[u8]], most: u64) -> (Vec<Seen>, Result<(), WebSocketError>) {
    let mut scanner = FrameScanner::new(most);
    let (mut seen, mut message, mut buffer) = (Vec::new(), Vec::new(), Vec::new());
    for part in parts {
        buffer.extend_from_slice(part);
        loop {
            let scan = match scanner.scan(&buffer) {
                Ok(scan) => scan,
                Err(error) => return (seen, Err(error)),
            };
            let found = scan.event.is_some();
            match scan.event {
                Some(Event::Data { text, part, ends }) => {
                    message.extend_from_slice(part);
                    if let Some(bytes) = ends {
                        assert_eq!(bytes, message.len() as u64);
                        seen.push(Seen::Message(text, std::mem::take(&mut message)));
                    }
                }
                Some(Event::Ping(bytes)) => seen.push(Seen::Ping(bytes.to_vec())),
                Some(Event::Pong(bytes)) => seen.push(Seen::Pong(bytes.to_vec())),
                Some(Event::Close(code, reason)) => {
                    seen.push(Seen::Close(code, reason.to_owned()));
                }
                None => {}
            }
            let consumed = scan.consumed;
            buffer.drain(..consumed);
            if !found {
                break;
            }
        }
    }
    (seen, scanner.end())
}

fn scan_all(input: &[u8]) -> (Vec<Seen>, Result<(), WebSocketError>) {
    scan_parts(&[input], 1 << 20)
}

/// A frame as a server sends it.
fn frame(last: bool, opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![if last { 0x80 } else { 0 } | opcode];
    match payload.len() {
        length @ 0..126 => frame.push(u8::try_from(length).unwrap()),
        length @ 126..65536 => {
            frame.push(126);
            frame.extend_from_slice(&u16::try_from(length).unwrap().to_be_bytes());
        }
        length => {
            frame.push(127);
            frame.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(payload);
    frame
}

/// The example of RFC 6455 section 1.3.
#[test]
fn the_key_of_the_rfc() {
    let key = Key::new(*b"the sample nonce");
    assert_eq!(key.as_str(), "dGhlIHNhbXBsZSBub25jZQ==");
    assert_eq!(key.accept(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

#[test]
fn a_handshake_is_accepted_only_if_it_is_one() {
    let key = Key::new(*b"the sample nonce");
    let good = "Upgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n\
                Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
    assert_eq!(accept(&key, 101, good.as_bytes()), Ok(()));
    assert_eq!(
        accept(&key, 200, good.as_bytes()),
        Err(WebSocketError::Status(200))
    );
    for (from, to, error) in [
        (
            "Upgrade: WebSocket",
            "Upgrade: h2c",
            WebSocketError::NotUpgraded,
        ),
        (
            "keep-alive, Upgrade",
            "keep-alive",
            WebSocketError::NotUpgraded,
        ),
        ("s3pPL", "S3pPL", WebSocketError::Accept),
        ("Sec-WebSocket-Accept", "X-Accept", WebSocketError::Accept),
        (
            "Upgrade: W",
            "Sec-WebSocket-Extensions: x\r\nUpgrade: W",
            WebSocketError::Extension,
        ),
    ] {
        assert_eq!(
            accept(&key, 101, good.replace(from, to).as_bytes()),
            Err(error),
            "{to}"
        );
    }
}

/// The examples of RFC 6455 section 5.7.
#[test]
fn the_frames_of_the_rfc() {
    let mut out = Vec::new();
    encode(Frame::Text("Hello"), [0x37, 0xfa, 0x21, 0x3d], &mut out);
    assert_eq!(
        out,
        [
            0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58
        ]
    );

    let hello = vec![Seen::Message(true, b"Hello".to_vec())];
    let early = Err(WebSocketError::ClosedEarly);
    assert_eq!(
        scan_all(&[0x81, 5, 0x48, 0x65, 0x6c, 0x6c, 0x6f]),
        (hello.clone(), early)
    );
    let split = [1, 3, 0x48, 0x65, 0x6c, 0x80, 2, 0x6c, 0x6f];
    assert_eq!(scan_all(&split), (hello, early));
}

#[test]
fn control_frames_stand_between_fragments() {
    let stream = [
        frame(false, 2, b"ab"),
        frame(true, 9, b"there?"),
        frame(false, 0, b""),
        frame(true, 0xA, b""),
        frame(true, 0, b"c"),
        frame(true, 8, &[&1000_u16.to_be_bytes()[..], b"bye"].concat()),
        b"ignored".to_vec(),
    ]
    .concat();
    let expected = vec![
        Seen::Ping(b"there?".to_vec()),
        Seen::Pong(Vec::new()),
        Seen::Message(false, b"abc".to_vec()),
        Seen::Close(Some(1000), "bye".to_owned()),
    ];
    assert_eq!(scan_all(&stream), (expected.clone(), Ok(())));
    let bytes: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(scan_parts(&bytes, 1 << 20), (expected, Ok(())));
}

#[test]
fn what_breaks_the_protocol_is_refused() {
    use WebSocketError as E;
    for (input, error) in [
        (vec![0xC1, 0], E::ReservedBit),
        (vec![0x83, 0], E::Opcode),
        (vec![0x8B, 0], E::Opcode),
        (vec![0x81, 0x80, 0, 0, 0, 0], E::Masked),
        (vec![0x82, 126, 0, 125], E::Length),
        (vec![0x82, 127, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], E::Length),
        (vec![0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0], E::Length),
        (vec![0x82, 127, 0, 0, 0, 0, 0, 0x11, 0, 0], E::TooLarge),
        (frame(false, 9, b""), E::Control),
        (frame(true, 9, &[0; 126]), E::Control),
        (frame(true, 0, b"x"), E::Fragment),
        (
            [frame(false, 1, b"x"), frame(true, 1, b"x")].concat(),
            E::Fragment,
        ),
        (frame(true, 8, b"x"), E::Close),
        (frame(true, 8, &1005_u16.to_be_bytes()), E::Close),
        (frame(true, 8, &[0x03, 0xE8, 0xFF]), E::Utf8),
        (frame(true, 1, &[0xC3]), E::Utf8),
        (
            [frame(false, 1, "é".as_bytes()), frame(true, 0, &[0xA9])].concat(),
            E::Utf8,
        ),
    ] {
        let (seen, end) = scan_all(&input);
        assert_eq!((seen.as_slice(), end), (&[][..], Err(error)), "{input:?}");
    }
}

#[test]
fn an_error_stays() {
    let mut scanner = FrameScanner::new(10);
    assert_eq!(scanner.scan(&[0x83, 0]), Err(WebSocketError::Opcode));
    assert_eq!(
        scanner.scan(&frame(true, 2, b"x")),
        Err(WebSocketError::Opcode)
    );
    assert_eq!(scanner.end(), Err(WebSocketError::Opcode));
}

proptest! {
    /// Messages in any fragments and any reads come out as they went in.
    #[test]
    fn messages_survive_fragments_and_splits(
        messages in proptest::collection::vec((any::<bool>(), ".{0,200}", 1_usize..50), 0..6),
        cut in 1_usize..40,
    ) {
        let (mut stream, mut expected) = (Vec::new(), Vec::new());
        for (text, content, fragment) in &messages {
            let content = content.as_bytes();
            let opcode = if *text { 1 } else { 2 };
            let parts: Vec<&[u8]> = if content.is_empty() {
                vec![content]
            } else {
                content.chunks(*fragment).collect()
            };
            for (at, part) in parts.iter().enumerate() {
                let opcode = if at == 0 { opcode } else { 0 };
                stream.extend(frame(at + 1 == parts.len(), opcode, part));
            }
            expected.push(Seen::Message(*text, content.to_vec()));
        }
        stream.extend(frame(true, 8, b""));
        expected.push(Seen::Close(None, String::new()));
        let reads: Vec<&[u8]> = stream.chunks(cut).collect();
        prop_assert_eq!(scan_parts(&reads, 1 << 20), (expected, Ok(())));
    }

    /// Whatever comes, and however it is split, the same is seen.
    #[test]
    fn splits_change_nothing(input in proptest::collection::vec(any::<u8>(), 0..300), cut in 1_usize..20) {
        let reads: Vec<&[u8]> = input.chunks(cut).collect();
        let (whole, whole_end) = scan_all(&input);
        let (split, split_end) = scan_parts(&reads, 1 << 20);
        prop_assert_eq!(whole, split);
        prop_assert_eq!(whole_end, split_end);
    }
}

#[derive(Default)]
struct Head(u16, Vec<u8>);

impl Sink for Head {
    fn head(&mut self, status: u16, fields: &[u8]) {
        (self.0, self.1) = (status, fields.to_vec());
    }
}

/// Against another implementation, over a socket.
#[test]
fn an_echo_by_tungstenite() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let mut socket = tungstenite::accept(listener.accept().unwrap().0).unwrap();
        socket
            .send(Message::Ping(b"there?".to_vec().into()))
            .unwrap();
        loop {
            match socket.read() {
                Ok(message @ (Message::Text(_) | Message::Binary(_))) => {
                    socket.send(message).unwrap()
                }
                Ok(Message::Pong(bytes)) => assert_eq!(&bytes[..], b"there?"),
                Ok(_) => {}
                Err(error) => return error.to_string(),
            }
        }
    });

    let mut socket = TcpStream::connect(address).unwrap();
    let key = Key::new([7; 16]);
    socket
        .write_all(&handshake(
            "/chat?x=1",
            "localhost",
            &key,
            &[("X-Test", "1")],
        ))
        .unwrap();
    let (mut http, mut head) = (ResponseScanner::new(Limits::default()), Head::default());
    let mut buffer = Vec::new();
    let mut chunk = [0; 4096];
    let complete = loop {
        let read = socket.read(&mut chunk).unwrap();
        assert!(read > 0, "closed within the handshake");
        buffer.extend_from_slice(&chunk[..read]);
        let scan = http.scan(&buffer, &mut head).unwrap();
        buffer.drain(..scan.consumed);
        if let Some(complete) = scan.complete {
            break complete;
        }
    };
    assert!(complete.upgraded);
    accept(&key, head.0, &head.1).unwrap();

    let long = "x".repeat(200_000);
    let mut out = Vec::new();
    encode(Frame::Pong(b"there?"), [1, 2, 3, 4], &mut out);
    encode(Frame::Text("grüße"), [5, 6, 7, 8], &mut out);
    encode(Frame::Binary(&[0; 130]), [9, 10, 11, 12], &mut out);
    encode(Frame::Text(&long), [13, 14, 15, 16], &mut out);
    encode(Frame::Close(1000, "done"), [17, 18, 19, 20], &mut out);
    socket.write_all(&out).unwrap();
    socket.read_to_end(&mut buffer).unwrap();
    let (seen, end) = scan_all(&buffer);
    assert_eq!(
        seen,
        [
            Seen::Ping(b"there?".to_vec()),
            Seen::Message(true, "grüße".as_bytes().to_vec()),
            Seen::Message(false, vec![0; 130]),
            Seen::Message(true, long.into_bytes()),
            Seen::Close(Some(1000), "done".to_owned()),
        ]
    );
    assert_eq!(end, Ok(()));
    assert!(server.join().unwrap().contains("closed"));
}
