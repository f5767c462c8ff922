use proptest::prelude::*;

use super::*;
use crate::http1::{ChunkError, Limits, MOST_FIELDS, Sink};

#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Seen {
    body: Vec<u8>,
    trailers: Vec<u8>,
}

impl Sink for Seen {
    fn head(&mut self, _: u16, _: &[u8]) {
        panic!("requests have no status");
    }
    fn body(&mut self, part: &[u8]) {
        assert!(!part.is_empty());
        self.body.extend_from_slice(part);
    }
    fn trailers(&mut self, fields: &[u8]) {
        assert!(self.trailers.is_empty() && !fields.is_empty());
        self.trailers = fields.to_vec();
    }
}

/// A request as one test sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Request {
    head: String,
    framing: RequestBody,
    keep_alive: bool,
    seen: Seen,
}

/// All requests of a connection, whose bytes come in parts; and why it ended, if it did.
fn requests<'a>(
    limits: Limits,
    parts: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Request>, Option<RequestError>) {
    let mut scanner = RequestScanner::new(limits);
    let mut head = RequestHead::default();
    let (mut buffer, mut found) = (Vec::new(), Vec::new());
    let mut seen = None;
    for part in parts {
        buffer.extend_from_slice(part);
        loop {
            if seen.is_none() {
                match scanner.head(&buffer, &mut head) {
                    Ok(Some(length)) => drop(buffer.drain(..length)),
                    Ok(None) => break,
                    Err(error) => return (found, Some(error)),
                }
            }
            let sink = seen.get_or_insert_with(Seen::default);
            let scan = match scanner.body(&buffer, sink) {
                Ok(scan) => scan,
                Err(error) => return (found, Some(error)),
            };
            buffer.drain(..scan.consumed);
            if !scan.ended {
                break;
            }
            found.push(Request {
                head: String::from_utf8_lossy(head.bytes()).into_owned(),
                framing: head.body(),
                keep_alive: head.keep_alive(),
                seen: seen.take().unwrap(),
            });
        }
    }
    (found, None)
}

/// The one request of an input, whole.
fn one(input: &str) -> Result<Request, RequestError> {
    let (mut found, error) = requests(Limits::default(), [input.as_bytes()]);
    match error {
        Some(error) => Err(error),
        None => {
            assert_eq!(found.len(), 1, "{input:?}");
            Ok(found.remove(0))
        }
    }
}

fn head(input: &str) -> RequestHead {
    let mut head = RequestHead::default();
    let mut scanner = RequestScanner::new(Limits::default());
    let length = scanner.head(input.as_bytes(), &mut head).unwrap();
    assert_eq!(length, Some(input.len()));
    head
}

#[test]
fn a_head_is_read_as_it_came() {
    let input = "POST /a%2Fb?c=d HTTP/1.1\r\nhost: X.y:80\r\nX-Empty:\r\nX-Space: \t \r\nX-A:  b c\t\r\n\r\n";
    let head = head(input);
    assert_eq!(head.method(), b"POST");
    assert_eq!(head.target(), b"/a%2Fb?c=d");
    assert_eq!(head.minor(), 1);
    assert_eq!(head.bytes(), input.as_bytes());
    let fields: Vec<_> = head.fields().collect();
    let expected: [(&[u8], &[u8]); 4] = [
        (b"host", b"X.y:80"),
        (b"X-Empty", b""),
        (b"X-Space", b""),
        (b"X-A", b"b c"),
    ];
    assert_eq!(fields, expected);
    assert_eq!(head.field("x-a"), Some(&b"b c"[..]));
    assert_eq!(head.field("x-b"), None);
    assert_eq!(head.body(), RequestBody::None);
    assert!(head.keep_alive() && !head.expects_continue() && !head.length_ignored());
}

#[test]
fn all_forms_of_targets_are_taken() {
    for line in [
        "GET / HTTP/1.1",
        "OPTIONS * HTTP/1.1",
        "GET http://other.example:80/a?b%zz HTTP/1.1",
        "GET http://other.example HTTP/1.1",
        "GET //twice/../x;y HTTP/1.1",
        "CONNECT host.example:443 HTTP/1.1",
        "CONNECT /path HTTP/1.1",
        "GET /?q=%zz HTTP/1.1",
    ] {
        assert!(one(&format!("{line}\r\nHost: a\r\n\r\n")).is_ok(), "{line}");
    }
    for target in [
        "x",
        "host:80",
        "http://",
        "http:///x",
        "http://a#b/x",
        "1http://a/",
        "/%zz",
        "/%2",
        "/%",
    ] {
        let input = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(one(&input), Err(RequestError::Target), "{target}");
    }
}

#[test]
fn bodies_end_as_heads_say() {
    let get = |fields: &str, body: &str| {
        let request = one(&format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}")).unwrap();
        (
            request.framing,
            String::from_utf8(request.seen.body).unwrap(),
            request.keep_alive,
        )
    };
    let text = str::to_owned;
    assert_eq!(get("", ""), (RequestBody::None, text(""), true));
    assert_eq!(
        get("Content-Length: 0\r\n", ""),
        (RequestBody::None, text(""), true)
    );
    assert_eq!(
        get("Content-Length: 003\r\ncontent-length: 003\r\n", "abc"),
        (RequestBody::Exactly(3), text("abc"), true)
    );
    assert_eq!(
        get(
            "Transfer-Encoding: Chunked\r\n",
            "2;a=b\r\nab\r\n01 \r\nc\r\n0\r\n\r\n"
        ),
        (RequestBody::Chunked, text("abc"), true)
    );
    // The coding wins, and nothing more is read from such a connection.
    for fields in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
    ] {
        assert_eq!(
            get(fields, "1\r\nx\r\n0\r\n\r\n"),
            (RequestBody::Chunked, text("x"), false)
        );
    }
    let both = head(
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    assert!(both.length_ignored());
}

#[test]
fn trailers_are_told() {
    let input =
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\nC: d\r\n\r\n";
    assert_eq!(one(input).unwrap().seen.trailers, b"A: b\r\nC: d\r\n");
}

/// What smuggles a request past a reader that is less strict, or breaks one.
#[test]
fn what_two_readers_may_read_in_two_ways_is_refused() {
    use RequestError as E;
    let cases: &[(&str, E)] = &[
        (
            "Content-Length: 3\r\nContent-Length: 4\r\n",
            E::ContentLengthConflict,
        ),
        (
            "Content-Length: 3\r\nContent-Length: x\r\nContent-Length: 3\r\n",
            E::ContentLengthConflict,
        ),
        (
            "Content-Length: 3\r\nContent-Length: 03\r\n",
            E::ContentLengthConflict,
        ),
        ("Content-Length: 3, 3\r\n", E::ContentLength),
        ("Content-Length: 3, 4\r\n", E::ContentLength),
        ("Content-Length: +3\r\n", E::ContentLength),
        ("Content-Length: -3\r\n", E::ContentLength),
        ("Content-Length: 0x3\r\n", E::ContentLength),
        ("Content-Length: 3 3\r\n", E::ContentLength),
        ("Content-Length:\r\n", E::ContentLengthEmpty),
        ("Content-Length: \t\r\n", E::ContentLengthEmpty),
        ("Content-Length: 9223372036854775808\r\n", E::ContentLength),
        ("Content-Length: 18446744073709551616\r\n", E::ContentLength),
        (
            "Content-Length: x\r\nTransfer-Encoding: chunked\r\n",
            E::ContentLength,
        ),
        ("Transfer-Encoding: gzip\r\n", E::TransferEncoding),
        ("Transfer-Encoding: gzip, chunked\r\n", E::TransferEncoding),
        ("Transfer-Encoding: chunked, gzip\r\n", E::TransferEncoding),
        (
            "Transfer-Encoding: chunked, identity\r\n",
            E::TransferEncoding,
        ),
        ("Transfer-Encoding: identity\r\n", E::TransferEncoding),
        (
            "Transfer-Encoding: chunked, chunked\r\n",
            E::TransferEncoding,
        ),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            E::TransferEncoding,
        ),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n",
            E::TransferEncoding,
        ),
        ("Transfer-Encoding: xchunked\r\n", E::TransferEncoding),
        ("Transfer-Encoding: chunked;q=1\r\n", E::TransferEncoding),
        ("Transfer-Encoding: \"chunked\"\r\n", E::TransferEncoding),
        ("Transfer-Encoding:\r\n", E::TransferEncoding),
        ("Transfer-Encoding: \u{b}chunked\r\n", E::Field),
        ("Transfer-Encoding : chunked\r\n", E::FieldName),
        ("Content-Length : 3\r\n", E::FieldName),
        ("Content-Length\t: 3\r\n", E::Field),
        (" Content-Length: 3\r\n", E::Field),
        ("X: a\r\n folded\r\n", E::Field),
        ("X: a\r\n\tfolded\r\n", E::Field),
        ("X: a\nContent-Length: 3\r\n", E::Field),
        ("X: a \t\nY: b\r\n", E::Field),
        ("X:\nY: b\r\n", E::Field),
        ("X: a\rY: b\r\n", E::Field),
        ("X: a\0b\r\n", E::Field),
        ("X: a\u{1}b\r\n", E::Field),
        ("X: a\u{7f}b\r\n", E::Field),
        ("X\0: a\r\n", E::Field),
        ("X Y: a\r\n", E::FieldName),
        (": a\r\n", E::Field),
        ("no field\r\n", E::Field),
        ("Host: b\r\n", E::HostConflict),
        ("Expect: 200-maybe\r\n", E::Expectation),
        (
            "Expect: 200-maybe\r\nExpect: 100-continue\r\n",
            E::Expectation,
        ),
        (
            "Transfer-Encoding: chunked\r\nTrailer: X, content-length\r\n",
            E::Trailer,
        ),
    ];
    for (fields, expected) in cases {
        let input = format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\nabcd");
        assert_eq!(one(&input), Err(*expected), "{fields:?}");
        // Byte by byte it is refused too, if for another reason.
        let (found, error) = requests(Limits::default(), input.as_bytes().chunks(1));
        assert!(found.is_empty() && error.is_some(), "{fields:?}");
    }
}

#[test]
fn lines_that_are_not_request_lines_are_refused() {
    use RequestError as E;
    for (line, expected) in [
        ("GARBAGE\r\n", E::RequestLine),
        ("GET /\r\n", E::RequestLine),
        ("GET  / HTTP/1.1\r\n", E::RequestLine),
        ("GET /a b HTTP/1.1\r\n", E::RequestLine),
        ("GET / HTTP/1.1 \r\n", E::RequestLine),
        ("GET / HTTP/1.1\n", E::RequestLine),
        ("GET\t/ HTTP/1.1\r\n", E::RequestLine),
        ("G(T / HTTP/1.1\r\n", E::RequestLine),
        (" GET / HTTP/1.1\r\n", E::RequestLine),
        ("GET / http/1.1\r\n", E::RequestLine),
        ("GET / HTTP/1.10\r\n", E::RequestLine),
        ("\nGET / HTTP/1.1\r\n", E::RequestLine),
        ("\r\n\r\n\r\nGET / HTTP/1.1\r\n", E::RequestLine),
        ("GET / HTTP/1.2\r\n", E::MinorVersion),
        ("GET / HTTP/3.0\r\n", E::Version),
        ("GET / HTTP/0.9\r\n", E::Version),
        ("PRI * HTTP/2.0\r\n", E::Http2Preface),
        ("\x16\x03\x01\x02\x00\x01\x00\x01", E::RequestLine),
    ] {
        assert_eq!(
            one(&format!("{line}Host: a\r\n\r\n")),
            Err(expected),
            "{line:?}"
        );
    }
    assert!(one("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n").is_ok());
    assert!(one("GET / HTTP/1.1\r\nHost: a\r\n\n").is_err());
}

#[test]
fn http2_without_tls_is_a_request_without_a_host_and_the_last() {
    let preface = b"PRI * HTTP/2.0\r\n\r\n";
    let mut head = RequestHead::default();
    for cut in 0..=preface.len() {
        let mut scanner = RequestScanner::new(Limits::default());
        let expected = (cut == preface.len()).then_some(cut);
        assert_eq!(scanner.head(&preface[..cut], &mut head), Ok(expected));
    }
    assert!(head.is_http2_preface() && !head.keep_alive());
    assert_eq!(
        (head.method(), head.target(), head.minor()),
        (&b"PRI"[..], &b"*"[..], 1)
    );
    assert_eq!((head.fields().count(), head.body()), (0, RequestBody::None));
}

#[test]
fn hosts() {
    let with =
        |version: &str, host: &str| one(&format!("GET / HTTP/{version}\r\n{host}\r\n")).map(|_| ());
    assert_eq!(with("1.1", ""), Err(RequestError::HostMissing));
    assert_eq!(with("1.0", ""), Ok(()));
    assert_eq!(with("1.1", "Host:\r\n"), Ok(()));
    assert_eq!(with("1.1", "HOST: [::1]:80\r\n"), Ok(()));
    for host in ["a b", "a/b", "a@b", "a\\b", "a?b", "a\u{e4}"] {
        let host = format!("Host: {host}\r\n");
        assert_eq!(with("1.1", &host), Err(RequestError::Host), "{host}");
        assert_eq!(with("1.0", &host), Err(RequestError::Host), "{host}");
    }
    assert!(one("CONNECT a:1 HTTP/1.1\r\n\r\n").is_ok());
}

#[test]
fn the_connection_goes_on_or_not() {
    for (version, connection, expected) in [
        ("1.1", "", true),
        ("1.1", "Connection: Close\r\n", false),
        (
            "1.1",
            "Connection: x, close\r\nConnection: keep-alive\r\n",
            false,
        ),
        ("1.1", "Connection: closed\r\n", true),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
    ] {
        let input = format!("GET / HTTP/{version}\r\nHost: a\r\n{connection}\r\n");
        assert_eq!(one(&input).unwrap().keep_alive, expected, "{input:?}");
    }
    let input = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(one(input), Err(RequestError::TransferEncodingVersion));
}

#[test]
fn who_waits_for_leave_to_send_the_body() {
    let waits = |version: &str, fields: &str| {
        head(&format!("POST / HTTP/{version}\r\nHost: a\r\n{fields}\r\n")).expects_continue()
    };
    assert!(waits(
        "1.1",
        "Content-Length: 1\r\nExpect: 100-Continue\r\n"
    ));
    assert!(waits(
        "1.1",
        "Content-Length: 1\r\nExpect: 100-continue x\r\nExpect: y\r\n"
    ));
    assert!(!waits("1.1", "Expect: 100-continue\r\n"));
    assert!(!waits("1.1", "Content-Length: 1\r\nExpect:\r\n"));
    assert!(!waits(
        "1.0",
        "Content-Length: 1\r\nExpect: 100-continue\r\n"
    ));
}

#[test]
fn broken_chunks_are_refused() {
    use ChunkError as E;
    for (body, expected) in [
        ("x\r\n", E::Size),
        ("\r\n", E::Size),
        ("-1\r\n", E::Size),
        ("0x1\r\n", E::Size),
        (" 1\r\n", E::Size),
        ("1\n", E::Size),
        ("1\rx\r\n", E::Size),
        ("1;a\n", E::Size),
        ("1 a\r\n", E::Size),
        ("10000000000000000\r\n", E::Size),
        ("fffffffffffffffff\r\n", E::Size),
        ("1\r\nxx", E::End),
        ("1\r\nx\nx", E::End),
        ("1\r\nx\rx", E::End),
        ("0\r\nA: b\n\r\n", E::Trailers),
        ("0\r\nA: b\r\n\n", E::Trailers),
        ("0\r\n\n", E::Trailers),
        ("0\r\nA: b\r\n c\r\n\r\n", E::Trailers),
        ("0\r\nA : b\r\n\r\n", E::Trailers),
    ] {
        let input =
            format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
        let expected = RequestError::Chunk(expected);
        for size in [1, input.len()] {
            let (found, error) = requests(Limits::default(), input.as_bytes().chunks(size));
            assert_eq!((found, error), (Vec::new(), Some(expected)), "{body:?}");
        }
        assert!(expected.in_body());
    }
}

#[test]
fn limits_hold() {
    let limits = Limits {
        head_bytes: 64,
        fields: 3,
        chunk_line_bytes: 8,
        ..Limits::default()
    };
    let start = "GET / HTTP/1.1\r\nHost: a\r\n";
    let error = |input: &str, size: usize| requests(limits, input.as_bytes().chunks(size)).1;
    for size in [1, 1000] {
        let long = format!("{start}X: {}\r\n\r\n", "x".repeat(64));
        assert_eq!(error(&long, size), Some(RequestError::HeadTooLarge));
        let many = format!("{start}A: b\r\nA: b\r\nA: b\r\n\r\n");
        assert_eq!(error(&many, size), Some(RequestError::TooManyFields));
        let chunk = format!("{start}Transfer-Encoding: chunked\r\n\r\n1;aaaaaaaaaaaa\r\n");
        assert_eq!(
            error(&chunk, size),
            Some(RequestError::Chunk(ChunkError::LineTooLong))
        );
        let chunked = format!("{start}Transfer-Encoding: chunked\r\n\r\n0\r\n");
        let trailers = format!("{chunked}X: {}\r\n\r\n", "x".repeat(64));
        assert_eq!(
            error(&trailers, size),
            Some(RequestError::Chunk(ChunkError::Trailers))
        );
        let trailers = format!("{chunked}{}\r\n", "A: b\r\n".repeat(4));
        assert_eq!(
            error(&trailers, size),
            Some(RequestError::Chunk(ChunkError::Trailers))
        );
    }
    let many = |fields: usize| format!("{start}{}\r\n", "A:\r\n".repeat(fields - 1));
    assert!(one(&many(256)).is_ok());
    let limits = Limits {
        fields: MOST_FIELDS,
        head_bytes: 1024 * 1024,
        ..Limits::default()
    };
    // Beyond what stands on the stack, in one piece and in two.
    for fields in [257, 1000, MOST_FIELDS] {
        let head = many(fields);
        for size in [head.len(), head.len() - 3] {
            let (found, error) = requests(limits, head.as_bytes().chunks(size));
            assert_eq!((found.len(), error), (1, None), "{fields} fields");
        }
    }
    let (_, error) = requests(limits, [many(MOST_FIELDS + 1).as_bytes()]);
    assert_eq!(error, Some(RequestError::TooManyFields));
}

/// A head of a megabyte that comes byte by byte is not parsed a million times.
#[test]
fn a_slow_head_costs_what_it_is_long() {
    let limits = Limits {
        head_bytes: 1024 * 1024,
        ..Limits::default()
    };
    let mut scanner = RequestScanner::new(limits);
    let mut head = RequestHead::default();
    let mut input = b"GET / HTTP/1.1\r\nHost: a\r\nX: ".to_vec();
    assert_eq!(scanner.head(&input, &mut head), Ok(None));
    while input.len() < 500_000 {
        input.push(b'x');
        assert_eq!(scanner.head(&input, &mut head), Ok(None));
    }
    assert!(scanner.started());
    input.extend_from_slice(b"\r\n\r\n");
    assert_eq!(scanner.head(&input, &mut head), Ok(Some(input.len())));
    assert!(!scanner.started());
}

#[test]
fn a_head_that_repeats_is_recognised_and_another_is_not() {
    let mut scanner = RequestScanner::new(Limits::default());
    let mut head = RequestHead::default();
    let first = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n";
    let second = "GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n";
    for (input, target, body) in [
        (first, "/a", RequestBody::None),
        (first, "/a", RequestBody::None),
        (second, "/a", RequestBody::Exactly(1)),
        (second, "/a", RequestBody::Exactly(1)),
        (first, "/a", RequestBody::None),
    ] {
        let length = scanner.head(input.as_bytes(), &mut head);
        assert_eq!(length, Ok(Some(input.len())));
        assert_eq!((head.target(), head.body()), (target.as_bytes(), body));
        let scan = scanner.body(b"x", &mut ()).unwrap();
        let expected = usize::from(body != RequestBody::None);
        assert_eq!((scan.consumed, scan.ended), (expected, true));
    }
    // What was refused is not known.
    let refused = b"GET / HTTP/1.1\r\n\r\n";
    for _ in 0..2 {
        assert!(scanner.head(refused, &mut head).is_err());
    }
}

#[test]
fn a_head_forgets_on_demand() {
    let mut head = head(&format!(
        "GET / HTTP/1.1\r\nHost: {}\r\n\r\n",
        "a".repeat(9000)
    ));
    head.clear(1024);
    assert!(head.bytes().is_empty() && head.method().is_empty() && head.fields().count() == 0);
    assert!(head.bytes.capacity() < 9000);
}

/// As recorded from gorouter a602bb6: "no host 1.1", "HTTP/3.0 proto", "garbage".
#[test]
fn answers_are_those_of_gorouter() {
    let fields = "Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n";
    for (error, text) in [
        (
            RequestError::HostMissing,
            "400 Bad Request: missing required Host header",
        ),
        (
            RequestError::Version,
            "505 HTTP Version Not Supported: unsupported protocol version",
        ),
        (RequestError::RequestLine, "400 Bad Request"),
        (
            RequestError::HeadTooLarge,
            "431 Request Header Fields Too Large",
        ),
    ] {
        let answer = format!("HTTP/1.1 {text}\r\n{fields}{text}");
        assert_eq!(error.answer(), answer.as_bytes());
        assert!(text.starts_with(&error.status().to_string()));
    }
}

/// Streams of requests, most of them well-formed.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "GET / HTTP/1.1\r\nHost: a\r\n",
        "POST /x?y HTTP/1.0\r\n",
        "Connection: close\r\n",
        "Content-Length: 3\r\n",
        "Content-Length: 7\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip\r\n",
        "X: y\r\n",
        "X: y\n",
        " folded\r\n",
        "\r\n",
        "\r\n",
        "\n",
        "3\r\nabc\r\n",
        "7;x\r\n0123456\r\n",
        "0\r\n\r\n",
        "0\r\nA: b\r\n\r\n",
        "abc",
    ]);
    prop::collection::vec(piece, 1..16).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    /// However requests are split, the same is seen of them.
    #[test]
    fn splits_change_nothing(input in stream(), cut in 1_usize..30) {
        let whole = requests(Limits::default(), [&input[..]]);
        let split = requests(Limits::default(), input.chunks(cut));
        // A broken head may be refused before its end, or at it.
        let same = whole.0 == split.0 && (whole.1 == split.1 || whole.1.is_some());
        prop_assert!(same, "{:?} but split {:?}", whole, split);
    }

    /// No bytes make it panic, and what it takes it consumes.
    #[test]
    fn anything_may_come(input in prop::collection::vec(any::<u8>(), 0..200), cut in 1_usize..50) {
        let (found, _) = requests(Limits::default(), input.chunks(cut));
        let bytes: usize = found.iter().map(|request| request.head.len()).sum();
        prop_assert!(bytes <= input.len());
    }

    /// A body that is written in chunks is read as it was.
    #[test]
    fn chunks_that_are_written_are_read(
        parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..300), 0..6),
        trailers: bool,
        cut in 1_usize..50,
    ) {
        use crate::http1::write;
        let mut input =
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        for part in &parts {
            write::chunk(part, &mut input);
        }
        let mut lines = Vec::new();
        if trailers {
            write::field(b"X-End", b"1", &mut lines);
        }
        write::last_chunk(&lines, &mut input);
        let (found, error) = requests(Limits::default(), input.chunks(cut));
        prop_assert_eq!(error, None);
        prop_assert_eq!(&found[0].seen.body, &parts.concat());
        prop_assert_eq!(&found[0].seen.trailers, &lines);
    }

    /// Numbers are written as the standard library does.
    #[test]
    fn numbers_are_written(number: u64) {
        let mut out = Vec::new();
        crate::http1::write::decimal(number, &mut out);
        prop_assert_eq!(out, number.to_string().into_bytes());
        let mut out = Vec::new();
        crate::http1::write::chunk_head(number as usize, &mut out);
        prop_assert_eq!(out, format!("{number:x}\r\n").into_bytes());
    }
}
