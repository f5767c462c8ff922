use proptest::prelude::*;

use super::*;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Seen {
    status: Option<u16>,
    fields: Vec<u8>,
    body: Vec<u8>,
    trailers: Vec<u8>,
}

impl Sink for Seen {
    fn head(&mut self, status: u16, fields: &[u8]) {
        assert!(self.status.is_none(), "two final heads in one answer");
        self.status = Some(status);
        self.fields = fields.to_vec();
    }
    fn body(&mut self, part: &[u8]) {
        assert!(!part.is_empty());
        self.body.extend_from_slice(part);
    }
    fn trailers(&mut self, fields: &[u8]) {
        assert!(self.trailers.is_empty());
        self.trailers = fields.to_vec();
    }
}

/// One answer of bytes given in parts, after which the stream ends; also the bytes left.
fn parts(
    limits: Limits,
    expect: Expect,
    parts: &[&[u8]],
) -> Result<(Complete, Seen, Vec<u8>), ResponseError> {
    let mut scanner = ResponseScanner::new(limits);
    scanner.expect(expect);
    let (mut seen, mut buffer) = (Seen::default(), Vec::new());
    for (at, part) in parts.iter().enumerate() {
        buffer.extend_from_slice(part);
        let scan = scanner.scan(&buffer, &mut seen)?;
        buffer.drain(..scan.consumed);
        if let Some(complete) = scan.complete {
            buffer.extend(parts[at + 1..].concat());
            return Ok((complete, seen, buffer));
        }
    }
    Ok((scanner.end(&mut seen)?, seen, buffer))
}

fn get(input: &str) -> Result<(Complete, Seen, Vec<u8>), ResponseError> {
    parts(Limits::default(), Expect::Body, &[input.as_bytes()])
}

/// Body and whether the connection goes on.
fn body(input: &str) -> Result<(String, bool), ResponseError> {
    let (complete, seen, left) = get(input)?;
    assert_eq!(left, b"", "{input:?}");
    assert_eq!(complete.body_bytes, seen.body.len() as u64);
    Ok((String::from_utf8(seen.body).unwrap(), complete.keep_alive))
}

fn kept(text: &str) -> Result<(String, bool), ResponseError> {
    Ok((text.to_owned(), true))
}

fn closes(text: &str) -> Result<(String, bool), ResponseError> {
    Ok((text.to_owned(), false))
}

#[test]
fn a_plain_answer() {
    let input = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nServer:  x \r\n\r\nhelloHTTP/1.1";
    let (complete, seen, left) = get(input).unwrap();
    assert_eq!(
        complete,
        Complete {
            status: 200,
            keep_alive: true,
            body_bytes: 5,
            upgraded: false
        }
    );
    assert_eq!(seen.status, Some(200));
    assert_eq!(seen.fields, b"Content-Length: 5\r\nServer:  x \r\n");
    assert_eq!(field(&seen.fields, "SERVER"), Some(&b"x"[..]));
    assert_eq!(field(&seen.fields, "Date"), None);
    assert_eq!(seen.body, b"hello");
    assert_eq!(left, b"HTTP/1.1");
}

#[test]
fn pipelined_answers_come_one_by_one() {
    let one = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na";
    let two = "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nb\r\n0\r\n\r\n";
    let three = "HTTP/1.1 304 Not Modified\r\n\r\n";
    let input = [one, two, three].concat();
    let mut scanner = ResponseScanner::new(Limits::default());
    let (mut at, mut statuses) = (0, Vec::new());
    while at < input.len() {
        let scan = scanner.scan(&input.as_bytes()[at..], &mut ()).unwrap();
        at += scan.consumed;
        statuses.push((at, scan.complete.unwrap().status));
    }
    let second = one.len() + two.len();
    assert_eq!(
        statuses,
        [(one.len(), 200), (second, 404), (input.len(), 304)]
    );
}

#[test]
fn bodies_end_as_their_heads_say() {
    let length = "HTTP/1.1 200 OK\r\nContent-Length: ";
    assert_eq!(body(&format!("{length}0\r\n\r\n")), kept(""));
    assert_eq!(
        body(&format!("{length}3, 3\r\ncontent-length:3\r\n\r\nabc")),
        kept("abc")
    );
    assert_eq!(
        body("HTTP/1.1 200 OK\r\n\r\nuntil the end"),
        closes("until the end")
    );
    assert_eq!(body("HTTP/1.1 200\r\n\r\n"), closes(""));
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n";
    assert_eq!(
        body(&format!(
            "{chunked}3\r\nabc\r\n0002;x=\"y\" ;z\r\nde\r\n0\r\n\r\n"
        )),
        kept("abcde")
    );
    assert_eq!(
        body(&format!("{chunked}a \t\r\n0123456789\r\n0 \r\n\r\n")),
        kept("0123456789")
    );
    // Chunked is not last: only the end of the stream can end it.
    assert_eq!(
        body("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\nx"),
        closes("x")
    );
    // Both: chunked wins, and the connection is not used again.
    assert_eq!(
        body(
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
        ),
        closes("x")
    );
}

#[test]
fn some_answers_have_no_body_whatever_they_say() {
    for head in ["HTTP/1.1 204 No", "HTTP/1.1 304 Not"] {
        assert_eq!(
            body(&format!("{head}\r\nContent-Length: 3\r\n\r\n")),
            kept("")
        );
    }
    let input = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nHTTP";
    let (complete, _, left) = parts(Limits::default(), Expect::NoBody, &[input]).unwrap();
    assert!(complete.keep_alive);
    assert_eq!(left, b"HTTP");
    // What was expected holds for one answer only.
    let mut scanner = ResponseScanner::new(Limits::default());
    scanner.expect(Expect::NoBody);
    let scan = scanner.scan(b"HTTP/1.1 200 OK\r\n\r\n", &mut ()).unwrap();
    assert!(scan.complete.is_some());
    assert_eq!(
        scanner
            .scan(b"HTTP/1.1 200 OK\r\n\r\n", &mut ())
            .unwrap()
            .complete,
        None
    );
}

#[test]
fn the_connection_goes_on_or_not() {
    for (version, connection, keep_alive) in [
        ("1.1", "", true),
        ("1.1", "Connection: Close\r\n", false),
        (
            "1.1",
            "Connection: x, close\r\nConnection: keep-alive\r\n",
            false,
        ),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
    ] {
        let input = format!("HTTP/{version} 200 OK\r\n{connection}Content-Length: 0\r\n\r\n");
        assert_eq!(body(&input).unwrap().1, keep_alive, "{input}");
    }
}

#[test]
fn interim_answers_are_skipped_and_bounded() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
    let last = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    let (complete, seen, _) = get(&format!("{interim}{last}")).unwrap();
    assert_eq!(
        (complete.status, seen.fields),
        (200, b"Content-Length: 1\r\n".to_vec())
    );
    assert_eq!(get(&interim.repeat(17)), Err(ResponseError::TooManyInterim));
    assert_eq!(get(interim), Err(ResponseError::ClosedEarly));
}

#[test]
fn an_upgrade_hands_the_connection_over() {
    let input =
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nContent-Length: 9\r\n\r\nframes";
    let (complete, seen, left) = parts(Limits::default(), Expect::Body, &[input]).unwrap();
    let upgraded = Complete {
        status: 101,
        keep_alive: false,
        body_bytes: 0,
        upgraded: true,
    };
    assert_eq!(
        (complete, seen.status, left),
        (upgraded, Some(101), b"frames".to_vec())
    );
    let tunnel = b"HTTP/1.1 200 OK\r\n\r\nbytes";
    let (complete, _, left) = parts(Limits::default(), Expect::Tunnel, &[tunnel]).unwrap();
    assert!(complete.upgraded);
    assert_eq!(left, b"bytes");
    // Refused: an answer like any other.
    let refused = b"HTTP/1.1 407 No\r\nContent-Length: 1\r\n\r\nx";
    let (complete, ..) = parts(Limits::default(), Expect::Tunnel, &[refused]).unwrap();
    assert_eq!((complete.upgraded, complete.body_bytes), (false, 1));
}

#[test]
fn trailers_are_told_as_lines() {
    let input = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: 1\r\nB: 2\r\n\r\n";
    let (complete, seen, left) = get(input).unwrap();
    assert!(complete.keep_alive && left.is_empty());
    assert_eq!(
        fields(&seen.trailers).collect::<Vec<_>>(),
        [(&b"A"[..], &b"1"[..]), (&b"B"[..], &b"2"[..])]
    );
}

#[test]
fn what_breaks_the_protocol_is_refused() {
    use ResponseError as E;
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (input, error) in [
        ("", E::ClosedBefore),
        ("HTTP/1.1 200 OK\r\nConte", E::ClosedEarly),
        ("HTTP/2.0 200 OK\r\n\r\n", E::StatusLine),
        ("HTTP/1.1 20 OK\r\n\r\n", E::StatusLine),
        ("SSH-2.0-OpenSSH_9\r\n", E::StatusLine),
        ("HTTP/1.1 099 No\r\n\r\n", E::Status),
        ("HTTP/1.1 200 OK\r\nA: 1\r\n folded\r\n\r\n", E::Field),
        ("HTTP/1.1 200 OK\r\nA : 1\r\n\r\n", E::Field),
        ("HTTP/1.1 200 OK\r\nA: 1\rB: 2\r\n\r\n", E::Field),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
            E::ClosedEarly,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            E::ContentLength,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n",
            E::ContentLength,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1 1\r\n\r\n",
            E::ContentLength,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
            E::ContentLength,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n",
            E::ContentLength,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1,2\r\n\r\n",
            E::ContentLengthConflict,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            E::ContentLengthConflict,
        ),
        (
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            E::TransferEncoding,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
            E::TransferEncoding,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked;q=1\r\n\r\n",
            E::TransferEncoding,
        ),
    ] {
        assert_eq!(get(input).unwrap_err(), error, "{input:?}");
    }
    for (rest, error) in [
        ("\r\n", E::Chunk(ChunkError::Size)),
        ("x\r\n", E::Chunk(ChunkError::Size)),
        (";\r\n", E::Chunk(ChunkError::Size)),
        ("0x1\r\na\r\n", E::Chunk(ChunkError::Size)),
        ("1\na\r\n", E::Chunk(ChunkError::Size)),
        ("1 1\r\n", E::Chunk(ChunkError::Size)),
        ("1;a\nb\r\n", E::Chunk(ChunkError::Size)),
        ("1;a\rb\r\n", E::Chunk(ChunkError::Size)),
        ("10000000000000000\r\n", E::Chunk(ChunkError::Size)),
        ("1\r\nab\r\n", E::Chunk(ChunkError::End)),
        ("1\r\na\n", E::Chunk(ChunkError::End)),
        ("0\r\nno field\r\n\r\n", E::Chunk(ChunkError::Trailers)),
        ("0\r\nA: 1\r\n", E::ClosedEarly),
        ("ffffffffffffffff\r\nabc", E::ClosedEarly),
        ("1\r\na\r\n", E::ClosedEarly),
    ] {
        assert_eq!(
            get(&format!("{chunked}{rest}")).unwrap_err(),
            error,
            "{rest:?}"
        );
    }
}

#[test]
fn a_refused_connection_stays_refused() {
    let mut scanner = ResponseScanner::new(Limits::default());
    assert_eq!(scanner.scan(b"x", &mut ()), Err(ResponseError::StatusLine));
    let good = b"HTTP/1.1 204 No\r\n\r\n";
    assert_eq!(scanner.scan(good, &mut ()), Err(ResponseError::StatusLine));
    assert_eq!(scanner.end(&mut ()), Err(ResponseError::StatusLine));
}

#[test]
fn limits_hold_at_their_edges() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nA: 1\r\n\r\n";
    let with = |limits: Limits, input: &str| {
        let whole = parts(limits, Expect::Body, &[input.as_bytes()]).map(|(complete, ..)| complete);
        let bytes: Vec<&[u8]> = input.as_bytes().chunks(1).collect();
        let split = parts(limits, Expect::Body, &bytes).map(|(complete, ..)| complete);
        assert_eq!(whole, split, "{input:?}");
        whole.map(|complete| complete.status)
    };
    let limits = Limits {
        head_bytes: head.len(),
        fields: 2,
        ..Limits::default()
    };
    assert_eq!(with(limits, head), Ok(200));
    let smaller = Limits {
        head_bytes: head.len() - 1,
        ..limits
    };
    assert_eq!(with(smaller, head), Err(ResponseError::HeadTooLarge));
    assert_eq!(
        with(
            Limits {
                fields: 1,
                ..limits
            },
            head
        ),
        Err(ResponseError::TooManyFields)
    );

    let many = |fields| format!("HTTP/1.1 204 OK\r\n{}\r\n", "A:\r\n".repeat(fields));
    let larger = Limits {
        fields: MOST_FIELDS,
        head_bytes: 1024 * 1024,
        ..Limits::default()
    };
    for fields in [256, 257, MOST_FIELDS] {
        assert!(with(larger, &many(fields)).is_ok(), "{fields} fields");
    }
    let most = with(larger, &many(MOST_FIELDS + 1));
    assert_eq!(most, Err(ResponseError::TooManyFields));
    // A list of lengths is one length, where that is wanted.
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok";
    assert!(with(Limits::default(), head).is_ok());
    assert_eq!(with(AS_GO, head), Err(ResponseError::ContentLength));
    let twice = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok";
    assert!(with(AS_GO, twice).is_ok());

    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let limits = Limits {
        chunk_line_bytes: 6,
        ..Limits::default()
    };
    assert_eq!(
        with(limits, &format!("{chunked}0;123\r\n\r\n")),
        Err(ResponseError::Chunk(ChunkError::LineTooLong))
    );
    assert_eq!(with(limits, &format!("{chunked}0;12\r\n\r\n")), Ok(200));
    let trailers = "X-Long-Enough: to be more than the head alone, by far\r\n\r\n";
    let limits = Limits {
        head_bytes: trailers.len(),
        ..Limits::default()
    };
    assert_eq!(with(limits, &format!("{chunked}0\r\n{trailers}")), Ok(200));
    let smaller = Limits {
        head_bytes: trailers.len() - 1,
        ..limits
    };
    assert_eq!(
        with(smaller, &format!("{chunked}0\r\n{trailers}")),
        Err(ResponseError::Chunk(ChunkError::Trailers))
    );
}

const AS_GO: Limits = Limits {
    as_go: true,
    ..Limits::DEFAULT
};

fn framed_as_go(expect: Expect, input: &str) -> Result<(String, bool), ResponseError> {
    let (complete, seen, _) = parts(AS_GO, expect, &[input.as_bytes()])?;
    Ok((String::from_utf8(seen.body).unwrap(), complete.keep_alive))
}

#[test]
fn answers_are_framed_as_go_frames_them_where_that_is_wanted() {
    use ResponseError as E;
    let get = |head: &str, body: &str| {
        let input = format!("{head}\r\n\r\n{body}");
        framed_as_go(Expect::Body, &input)
    };
    // HTTP/1.0 has no codings: the length counts, or the end, and it is the last answer.
    let old = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked";
    let chunks = "1\r\nx\r\n0\r\n\r\n";
    assert_eq!(get(old, chunks), closes(chunks));
    let sized = format!("{old}\r\nContent-Length: 2");
    assert_eq!(get(&sized, "okmore"), closes("ok"));
    let gzip = "HTTP/1.0 200 OK\r\nTransfer-Encoding: gzip";
    assert_eq!(get(gzip, "x"), closes("x"));
    let new = "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked";
    assert_eq!(get(new, chunks), kept("x"));
    let spaced = "HTTP/1.1  200  OK\r\nContent-Length: 1";
    assert_eq!(get(spaced, "x"), kept("x"));
    // Without chunks nobody looks at a Trailer.
    let sized = "HTTP/1.1 200 OK\r\nTrailer: Content-Length\r\nContent-Length: 1";
    assert_eq!(get(sized, "x"), kept("x"));
    for (fields, error) in [
        ("Trailer: X, trailer", E::Trailer),
        ("Trailer: Content-Length", E::Trailer),
        (
            "Content-Length: 1\r\nContent-Length: 01",
            E::ContentLengthConflict,
        ),
    ] {
        assert_eq!(get(&format!("{new}\r\n{fields}"), chunks), Err(error));
    }
    let twice = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1";
    assert_eq!(get(twice, "x"), kept("x"));
    // What frames no body has to be right all the same.
    for (expect, head) in [
        (Expect::NoBody, "HTTP/1.1 200 OK"),
        (Expect::Body, "HTTP/1.1 204 No Content"),
    ] {
        let both = "Content-Length: 3\r\nTransfer-Encoding: chunked";
        let input = format!("{head}\r\n{both}\r\n\r\n");
        assert_eq!(framed_as_go(expect, &input), kept(""));
        for (fields, error) in [
            ("Content-Length: x", E::ContentLength),
            ("Content-Length: 9223372036854775808", E::ContentLength),
            ("Transfer-Encoding: gzip", E::TransferEncoding),
            ("Transfer-Encoding: gzip, chunked", E::TransferEncoding),
            (
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
                E::TransferEncoding,
            ),
        ] {
            let input = format!("{head}\r\n{fields}\r\n\r\n");
            assert_eq!(framed_as_go(expect, &input), Err(error), "{input}");
        }
    }
}

#[test]
fn bare_line_feeds_end_lines_of_heads_only() {
    let (_, seen, _) = get("\r\n\nHTTP/1.1 200 OK\nA: 1\nContent-Length: 1\n\nx").unwrap();
    assert_eq!(seen.fields, b"A: 1\nContent-Length: 1\n");
    assert_eq!(seen.body, b"x");
}

#[test]
fn it_is_known_whether_an_answer_has_begun() {
    let mut scanner = ResponseScanner::new(Limits::default());
    assert!(!scanner.started());
    scanner.scan(b"HT", &mut ()).unwrap();
    assert!(scanner.started());
    let scan = scanner.scan(b"HTTP/1.1 204 No\r\n\r\n", &mut ()).unwrap();
    assert!(scan.complete.is_some() && !scanner.started());
}

/// Heads and bodies of all kinds, most of them well-formed.
fn answer() -> impl Strategy<Value = Vec<u8>> {
    let fields = prop::collection::vec(
        prop::sample::select(vec![
            "Server: x\r\n",
            "Connection: close\r\n",
            "Connection: keep-alive\n",
            "Content-Length: 3\r\n",
            "Content-Length: 7\r\n",
            "Transfer-Encoding: chunked\r\n",
            "Transfer-Encoding: gzip\r\n",
            " folded\r\n",
        ]),
        0..4,
    );
    let status = prop::sample::select(vec![100, 103, 101, 200, 204, 304, 500]);
    let minor = 0..=1;
    let rest = prop::collection::vec(
        prop::sample::select(vec![
            "3\r\nabc\r\n",
            "7;x\r\n0123456\r\n",
            "0\r\n",
            "\r\n",
            "A: b\r\n",
            "abc",
            "\n",
            "HTTP/1.1 200 OK\r\n\r\n",
        ]),
        0..6,
    );
    let head = (minor, status, fields).prop_map(|(minor, status, fields)| {
        format!("HTTP/1.{minor} {status} x\r\n{}\r\n", fields.concat())
    });
    (prop::collection::vec(head, 1..3), rest)
        .prop_map(|(heads, rest)| (heads.concat() + &rest.concat()).into_bytes())
}

proptest! {
    /// However an answer is split, the same is seen of it.
    #[test]
    fn splits_change_nothing(input in answer(), cut in 1_usize..30, bodiless: bool) {
        let expect = if bodiless { Expect::NoBody } else { Expect::Body };
        let whole = parts(Limits::default(), expect, &[&input]);
        let split: Vec<&[u8]> = input.chunks(cut).collect();
        let split = parts(Limits::default(), expect, &split);
        match (whole, split) {
            (Ok(whole), Ok(split)) => prop_assert_eq!(whole, split),
            // A head that is refused at its end may be refused as cut off before.
            (Err(_), Err(_)) => {}
            (whole, split) => prop_assert!(false, "{whole:?} but split {split:?}"),
        }
    }

    /// A chunked body comes out as it went in.
    #[test]
    fn chunks_join_to_the_body(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..200), 0..8),
        cut in 1_usize..50,
    ) {
        let mut input = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        for chunk in &chunks {
            input.extend(format!("{:X}\r\n", chunk.len()).into_bytes());
            input.extend_from_slice(chunk);
            input.extend_from_slice(b"\r\n");
        }
        input.extend_from_slice(b"0\r\n\r\nnext");
        let split: Vec<&[u8]> = input.chunks(cut).collect();
        let (complete, seen, left) = parts(Limits::default(), Expect::Body, &split).unwrap();
        prop_assert_eq!(complete.body_bytes, seen.body.len() as u64);
        prop_assert_eq!(seen.body, chunks.concat());
        prop_assert_eq!(left, b"next");
    }
}
