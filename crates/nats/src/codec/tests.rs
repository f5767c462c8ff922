use bytes::BytesMut;
use proptest::prelude::*;

use super::*;

fn message<'a>(
    subject: &'a str,
    reply: &'a str,
    headers: &'a str,
    payload: &'a str,
) -> Message<'a> {
    Message {
        subject: subject.as_bytes(),
        reply: reply.as_bytes(),
        headers: headers.as_bytes(),
        payload: payload.as_bytes(),
    }
}

/// Frames of the input as text, given `step` bytes at a time, and how it ended.
fn read(input: &[u8], step: usize, limits: Limits) -> (Vec<String>, Option<ProtocolError>) {
    let mut scanner = Scanner::new(limits);
    let (mut frames, mut start, mut end) = (Vec::new(), 0, 0);
    while end < input.len() {
        end = input.len().min(end + step);
        loop {
            match scanner.scan(&input[start..end]) {
                Ok(Some(scanned)) => {
                    assert!(scanned.consumed > 0 && scanned.consumed <= end - start);
                    frames.push(format!("{:?}", scanned.frame));
                    start += scanned.consumed;
                }
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, None)
}

fn one(input: &[u8]) -> Result<Option<Scanned<'_>>, ProtocolError> {
    Scanner::new(Limits::default()).scan(input)
}

#[test]
fn a_payload_with_a_wrong_end_is_refused_however_it_is_split() {
    for step in 1..=15 {
        let (frames, error) = read(b"HPUB a 1 2\r\n\0\0\0", step, Limits::default());
        assert_eq!(frames, Vec::<String>::new());
        assert_eq!(error, Some(ProtocolError::PayloadEnd(2)), "step {step}");
    }
}

#[test]
fn every_operation_is_read() {
    for (input, expected) in [
        ("INFO {\"a\":1} \r\n", Frame::Info(b"{\"a\":1}")),
        ("connect {}\r\n", Frame::Connect(b"{}")),
        ("PUB a 2\r\nhi\r\n", Frame::Pub(message("a", "", "", "hi"))),
        ("PUB a 0\r\n\r\n", Frame::Pub(message("a", "", "", ""))),
        (
            "pub\ta.b  r 4\r\n\r\n\r\n\r\n",
            Frame::Pub(message("a.b", "r", "", "\r\n\r\n")),
        ),
        (
            "HPUB a 12 14\r\nNATS/1.0\r\n\r\nhi\r\n",
            Frame::Pub(message("a", "", "NATS/1.0\r\n\r\n", "hi")),
        ),
        (
            "SUB a.* 7\r\n",
            Frame::Sub {
                subject: b"a.*",
                queue: b"",
                sid: b"7",
            },
        ),
        (
            "SUB > q 7\n",
            Frame::Sub {
                subject: b">",
                queue: b"q",
                sid: b"7",
            },
        ),
        (
            "UNSUB 7\r\n",
            Frame::Unsub {
                sid: b"7",
                after: 0,
            },
        ),
        (
            "UNSUB 7 5\r\n",
            Frame::Unsub {
                sid: b"7",
                after: 5,
            },
        ),
        (
            "MSG a 7 2\r\nhi\r\n",
            Frame::Msg {
                sid: b"7",
                message: message("a", "", "", "hi"),
            },
        ),
        (
            "HMSG a 7 r 2 4\r\nh\nhi\r\n",
            Frame::Msg {
                sid: b"7",
                message: message("a", "r", "h\n", "hi"),
            },
        ),
        ("PING\r\n", Frame::Ping),
        ("PONG \r\n", Frame::Pong),
        ("+OK\r\n", Frame::Ok),
        ("-ERR 'Slow Consumer'\r\n", Frame::Err(b"Slow Consumer")),
    ] {
        let scanned = one(input.as_bytes()).unwrap().unwrap();
        assert_eq!(scanned.frame, expected, "{input:?}");
        assert_eq!(scanned.consumed, input.len(), "{input:?}");
    }
}

#[test]
fn what_breaks_the_protocol_is_refused() {
    for input in [
        "\r\n",
        "GET / HTTP/1.1\r\n",
        "PUB\r\n",
        "PUB a\r\n",
        "PUB a b c 1\r\nx\r\n",
        "PUB a -1\r\n",
        "PUB a +1\r\n",
        "PUB a 99999999999999999999\r\n",
        "PUB a 1048577\r\n",
        "PUB a 1\r\nxyz",
        "SUB a\r\n",
        "SUB a b c d\r\n",
        "UNSUB\r\n",
        "UNSUB 1 x\r\n",
        "HPUB a 5 4\r\nabcd\r\n",
        "MSG a 1\r\n",
        "MSG 1 2 3 4 5 6 7\r\n",
        "\0\0\r\n",
    ] {
        assert!(one(input.as_bytes()).is_err(), "{input:?}");
    }
}

#[test]
fn lines_and_payloads_have_bounds() {
    let limits = Limits {
        line_bytes: 16,
        payload_bytes: 8,
    };
    let (frames, error) = read(b"PUB a 8\r\n12345678\r\nPUB a 9\r\n", 3, limits);
    assert_eq!(frames.len(), 1);
    assert_eq!(
        error,
        Some(ProtocolError::LargePayload { found: 9, most: 8 })
    );
    let (frames, error) = read(b"SUB 1234567 90\r\nSUB 1234567 901\r\n", 1, limits);
    assert_eq!(frames.len(), 1);
    assert!(matches!(
        error,
        Some(ProtocolError::LongLine { most: 16, .. })
    ));
}

#[test]
fn errors_show_what_came_and_not_too_much() {
    let error = one(format!("GET /{}\u{7}\r\n", "x".repeat(100)).as_bytes()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("GET /xxx") && text.len() < 200, "{text}");
    let error = one(b"SUB a\r\n").unwrap_err().to_string();
    assert_eq!(
        error,
        "read a frame: found \"SUB a\"; expected SUB <subject> [queue] <sid>"
    );
}

fn word() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9_.*>-]{1,12}"
}

/// Bytes of a frame, and how the frame looks once read.
fn frame() -> impl Strategy<Value = (Vec<u8>, String)> {
    let payload = proptest::collection::vec(any::<u8>(), 0..80);
    let reply = prop_oneof![Just(String::new()), word()];
    prop_oneof![
        (word(), reply.clone(), payload.clone()).prop_map(|(subject, reply, payload)| {
            let mut out = BytesMut::new();
            encode::publish(&mut out, subject.as_bytes(), reply.as_bytes(), &payload);
            let frame = Frame::Pub(Message {
                subject: subject.as_bytes(),
                reply: reply.as_bytes(),
                headers: b"",
                payload: &payload,
            });
            (out.to_vec(), format!("{frame:?}"))
        }),
        (word(), reply.clone(), 0usize..40, payload).prop_map(|(subject, reply, head, payload)| {
            let head = head.min(payload.len());
            let mut out = BytesMut::new();
            let (subject, reply) = (subject.as_bytes(), reply.as_bytes());
            encode::message_line(&mut out, subject, b"12", reply, head, payload.len());
            out.extend_from_slice(&payload);
            out.extend_from_slice(b"\r\n");
            let (headers, payload) = payload.split_at(head);
            let message = Message {
                subject,
                reply,
                headers,
                payload,
            };
            (
                out.to_vec(),
                format!(
                    "{:?}",
                    Frame::Msg {
                        sid: b"12",
                        message
                    }
                ),
            )
        }),
        (word(), reply, any::<u64>()).prop_map(|(subject, queue, sid)| {
            let mut out = BytesMut::new();
            encode::subscribe(&mut out, subject.as_bytes(), queue.as_bytes(), sid);
            let sid = sid.to_string();
            let frame = Frame::Sub {
                subject: subject.as_bytes(),
                queue: queue.as_bytes(),
                sid: sid.as_bytes(),
            };
            (out.to_vec(), format!("{frame:?}"))
        }),
        Just((encode::PING.to_vec(), format!("{:?}", Frame::Ping))),
        Just((encode::PONG.to_vec(), format!("{:?}", Frame::Pong))),
    ]
}

proptest! {
    #[test]
    fn frames_come_back_however_they_are_split(
        frames in proptest::collection::vec(frame(), 0..12),
        step in 1usize..100,
    ) {
        let bytes: Vec<u8> = frames.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        let expected: Vec<String> = frames.into_iter().map(|(_, text)| text).collect();
        let (found, error) = read(&bytes, step, Limits::default());
        prop_assert_eq!(error, None);
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn any_bytes_are_read_alike_however_they_are_split(
        bytes in proptest::collection::vec(
            prop_oneof![
                any::<u8>().prop_map(|byte| vec![byte]),
                proptest::sample::select(vec![
                    &b"PUB a 3\r\n"[..], b"abc\r\n", b"\r\n", b"MSG a 1 ", b"SUB ",
                    b"-ERR '", b"HPUB a 1 2\r\n", b"5\r\n",
                ]).prop_map(<[u8]>::to_vec),
            ],
            0..40,
        ),
        step in 1usize..20,
    ) {
        let bytes = bytes.concat();
        let limits = Limits { line_bytes: 32, payload_bytes: 16 };
        let whole = read(&bytes, bytes.len().max(1), limits);
        let split = read(&bytes, step, limits);
        prop_assert_eq!(whole.0, split.0);
        // The excerpt in an error may show more of what came whole.
        prop_assert_eq!(whole.1.map(|e| std::mem::discriminant(&e)), split.1.map(|e| std::mem::discriminant(&e)));
    }

    /// The quick way over a line finds what the way over its words does.
    #[test]
    fn usual_lines_are_read_alike(
        parts in proptest::collection::vec(
            proptest::sample::select(vec![
                "PUB", "MSG", "pub", "HPUB", "SUB", "a.b", "7", "0", "12", "x\ty", " ", " ", " ",
                "\t", "", "9999999999999999999",
            ]),
            0..9,
        ),
        behind in 0usize..20,
    ) {
        let line = parts.concat();
        let behind = [&vec![b'x'; behind][..], b"\r\n"].concat();
        let text = |parsed| match parsed {
            Ok(line::Parsed::Whole { frame, payload }) => format!("{frame:?} {payload}"),
            Ok(line::Parsed::Payload(bytes)) => format!("needs {bytes}"),
            Err(error) => format!("{error:?}"),
        };
        if let Some(usual) = line::usual(line.as_bytes(), &behind, 15) {
            let whole = line::parse(line.as_bytes(), &behind, 15);
            prop_assert_eq!(text(usual), text(whole), "{}", line);
        }
    }
}
