//! The scanner of answers beside hyper's: both read the same bytes, split in the same
//! way, and must see the same. Where they differ on purpose, [`DIFFERENCES`] says why.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Frame;
use hyper_util::rt::TokioIo;
use proptest::prelude::*;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use wire::http1::{Expect, Limits, ResponseScanner, Sink, fields};

/// What a reader made of an answer; `None`: it refused.
type Reading = Option<Seen>;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Seen {
    status: u16,
    fields: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    trailers: Vec<(String, Vec<u8>)>,
    /// Another request may follow on the connection.
    keep_alive: bool,
}

/// Answers that are read differently on purpose: (answer, ours is refused, hyper's is
/// refused, why). Where both accept, they differ in `keep_alive`.
const DIFFERENCES: &[(&str, bool, bool, &str)] = &[
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
        false,
        false,
        "RFC 9112 section 6.3 rule 3: the connection is closed behind both fields; hyper goes on",
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        true,
        false,
        "section 7.1: chunked is applied once; hyper looks at the last coding only",
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n",
        true,
        false,
        "section 7: chunked has no parameters; to hyper it is an unknown coding, until the end",
    ),
];

#[derive(Default)]
struct Collect(Seen);

fn owned(lines: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut list: Vec<_> = fields(lines)
        .map(|(name, value)| (String::from_utf8_lossy(name).to_lowercase(), value.to_vec()))
        .collect();
    list.sort();
    list
}

impl Sink for Collect {
    fn head(&mut self, status: u16, lines: &[u8]) {
        self.0.status = status;
        self.0.fields = owned(lines);
    }
    fn body(&mut self, part: &[u8]) {
        self.0.body.extend_from_slice(part);
    }
    fn trailers(&mut self, lines: &[u8]) {
        self.0.trailers = owned(lines);
    }
}

/// Reads one answer with the scanner; the stream ends behind the parts. Also whether the
/// answer ended by itself, before that.
fn scan(method: &Method, parts: &[Vec<u8>]) -> Option<(Seen, bool)> {
    let mut scanner = ResponseScanner::new(Limits::default());
    scanner.expect(Expect::of_method(method.as_str()));
    let (mut seen, mut buffer) = (Collect::default(), Vec::new());
    for part in parts {
        buffer.extend_from_slice(part);
        let scan = scanner.scan(&buffer, &mut seen).ok()?;
        buffer.drain(..scan.consumed);
        if let Some(complete) = scan.complete {
            return Some((
                Seen {
                    keep_alive: complete.keep_alive,
                    ..seen.0
                },
                true,
            ));
        }
    }
    let complete = scanner.end(&mut seen).ok()?;
    Some((
        Seen {
            keep_alive: complete.keep_alive,
            ..seen.0
        },
        false,
    ))
}

/// A connection whose peer answers the first write with the parts, one a read, and then
/// closes or stays silent.
#[derive(Clone)]
struct Script(Arc<Mutex<ScriptState>>);

struct ScriptState {
    parts: VecDeque<Vec<u8>>,
    closes: bool,
    asked: bool,
    reader: Option<Waker>,
}

impl AsyncRead for Script {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let mut state = self.0.lock().unwrap();
        if state.asked
            && let Some(mut part) = state.parts.pop_front()
        {
            let rest = part.split_off(part.len().min(buffer.remaining()));
            buffer.put_slice(&part);
            if !rest.is_empty() {
                state.parts.push_front(rest);
            }
            return Poll::Ready(Ok(()));
        }
        if state.asked && state.closes {
            return Poll::Ready(Ok(()));
        }
        state.reader = Some(context.waker().clone());
        Poll::Pending
    }
}

impl AsyncWrite for Script {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let mut state = self.0.lock().unwrap();
        state.asked = true;
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(bytes.len()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Reads one answer with hyper. `closes`: the stream ends behind the parts; only without
/// it can be told whether hyper would go on.
async fn read_with_hyper(method: &Method, parts: &[Vec<u8>], closes: bool) -> Reading {
    let parts = parts
        .iter()
        .filter(|part| !part.is_empty())
        .cloned()
        .collect();
    let state = ScriptState {
        parts,
        closes,
        asked: false,
        reader: None,
    };
    let io = TokioIo::new(Script(Arc::new(Mutex::new(state))));
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
    tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri("/")
        .header("host", "test");
    let request = request.body(Empty::<Bytes>::new()).unwrap();
    let response = sender.send_request(request).await.ok()?;
    let status = response.status().as_u16();
    let fields = listed(response.headers());
    let body = response.into_body().collect().await.ok()?;
    let trailers = body.trailers().map(listed).unwrap_or_default();
    let body = body.to_bytes().to_vec();
    let keep_alive = !closes && sender.ready().await.is_ok();
    Some(Seen {
        status,
        fields,
        body,
        trailers,
        keep_alive,
    })
}

fn listed(headers: &HeaderMap) -> Vec<(String, Vec<u8>)> {
    let mut list: Vec<_> = headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
        .collect();
    list.sort();
    list
}

/// Reads one answer with hyper, again on an open connection if it `ends_itself`.
fn hyper_reads(method: &Method, parts: &[Vec<u8>], ends_itself: bool) -> Reading {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let closed = read_with_hyper(method, parts, true).await?;
        if !ends_itself {
            return Some(closed);
        }
        // Whoever waits for the end of the stream here waits in vain.
        let open = read_with_hyper(method, parts, false);
        let open = tokio::time::timeout(Duration::from_secs(60), open).await;
        let open = open.expect("hyper waits for more")?;
        assert_eq!(
            closed,
            Seen {
                keep_alive: false,
                ..open.clone()
            }
        );
        Some(open)
    })
}

/// Both read the same, split anywhere.
fn compare(method: &Method, parts: &[Vec<u8>]) -> Result<(), TestCaseError> {
    let ours = scan(method, parts);
    let hyper = hyper_reads(
        method,
        parts,
        ours.as_ref().is_some_and(|(_, itself)| *itself),
    );
    prop_assert_eq!(ours.map(|(seen, _)| seen), hyper);
    Ok(())
}

fn split(answer: &[u8], cuts: &[prop::sample::Index]) -> Vec<Vec<u8>> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(answer.len() + 1)).collect();
    at.extend([0, answer.len()]);
    at.sort_unstable();
    at.windows(2)
        .map(|ends| answer[ends[0]..ends[1]].to_vec())
        .collect()
}

/// By hand: what matters, whole and byte by byte.
#[test]
fn a_corpus_is_read_alike() {
    let get = Method::GET;
    let head = Method::HEAD;
    let corpus: &[(&Method, &str)] = &[
        (&get, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
        (&get, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        (&get, "HTTP/1.1 200 OK\nContent-Length: 1\n\nx"),
        (&get, "\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"),
        (&get, "HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx"),
        (&get, "HTTP/1.1 200 OK\r\n\r\nuntil the end"),
        (
            &get,
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 1\r\n\r\nx",
        ),
        (&get, "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx"),
        (
            &get,
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx",
        ),
        (&get, "HTTP/1.0 200 OK\r\n\r\nuntil the end"),
        (
            &get,
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        ),
        (&get, "HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\nabc"),
        (&get, "HTTP/1.1 200 OK\r\nContent-Length: 3, 4\r\n\r\nabc"),
        (
            &get,
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        ),
        (&get, "HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nabc"),
        (
            &get,
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nabc",
        ),
        (&get, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"),
        (&get, "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"),
        (
            &get,
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
        ),
        (&head, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
        (
            &head,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        ),
        (&head, "HTTP/1.1 200 OK\r\n\r\n"),
        (
            &get,
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
        ),
        (
            &get,
            "HTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\nuntil the end",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b;c=\"d\"\r\nabc\r\n0;e\r\n\r\n",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3 \t\r\nabc\r\n000\r\n\r\n",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc0\r\n\r\n",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;\nabc\r\n0\r\n\r\n",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\na",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 0\r\n\r\n",
        ),
        (
            &get,
            "HTTP/1.1 200 OK\r\nA : b\r\nContent-Length: 0\r\n\r\n",
        ),
        (&get, "HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n"),
        (&get, "HTTP/1.1 999 OK\r\nContent-Length: 0\r\n\r\n"),
        (&get, "HTTP/1.2 200 OK\r\nContent-Length: 0\r\n\r\n"),
        (&get, "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n"),
        (&get, "ICY 200 OK\r\nContent-Length: 0\r\n\r\n"),
        (&get, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"),
        (&get, "HTTP/1.1 200 OK\r\nA: \u{e9}\u{7f}\r\n\r\n"),
        (&get, ""),
    ];
    for (method, answer) in corpus {
        compare(method, &[answer.as_bytes().to_vec()])
            .unwrap_or_else(|error| panic!("{answer:?}: {error}"));
        let bytes: Vec<Vec<u8>> = answer.bytes().map(|byte| vec![byte]).collect();
        compare(method, &bytes).unwrap_or_else(|error| panic!("{answer:?} by bytes: {error}"));
    }
}

/// The table is true: whoever changes one of the readers has to change it too.
#[test]
fn wanted_differences_are_as_the_table_says() {
    for (answer, our_refusal, hyper_refusal, why) in DIFFERENCES {
        let parts = [answer.as_bytes().to_vec()];
        let ours = scan(&Method::GET, &parts).map(|(seen, _)| seen);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let closed = runtime.block_on(read_with_hyper(&Method::GET, &parts, true));
        assert_eq!(
            (ours.is_none(), closed.is_none()),
            (*our_refusal, *hyper_refusal),
            "{why}"
        );
        if let (Some(ours), Some(_)) = (ours, closed) {
            let open = runtime
                .block_on(read_with_hyper(&Method::GET, &parts, false))
                .unwrap();
            assert!(!ours.keep_alive && open.keep_alive, "{why}");
            assert_eq!(
                ours,
                Seen {
                    keep_alive: false,
                    ..open
                },
                "{why}"
            );
        }
    }
}

/// Answers made of pieces that are mostly right.
fn answers() -> impl Strategy<Value = Vec<u8>> {
    let fields = prop::collection::vec(
        prop::sample::select(vec![
            "Server: x\r\n",
            "x-a:b\r\n",
            "Connection: close\r\n",
            "Connection: keep-alive\r\n",
            "Date: Sat, 21 Nov 2026 13:24:19 GMT\r\n",
            "X-Bare: lf\n",
            "bad field\r\n",
        ]),
        0..4,
    );
    let framed = prop_oneof![
        8 => prop::collection::vec(any::<u8>(), 0..300).prop_map(|body| {
            (format!("Content-Length: {}\r\n", body.len()), body)
        }),
        2 => prop::collection::vec(any::<u8>(), 0..300).prop_map(|body| (String::new(), body)),
        8 => (
            prop::collection::vec(prop::collection::vec(any::<u8>(), 1..100), 0..5),
            prop::sample::select(vec!["", ";x", " ;y=\"z\"", "\t"]),
            prop::sample::select(vec!["", "A: b\r\n", "A: b\r\nC:  d \r\n"]),
        ).prop_map(|(chunks, extension, trailers)| {
            let mut body = Vec::new();
            for chunk in &chunks {
                body.extend(format!("{:x}{extension}\r\n", chunk.len()).into_bytes());
                body.extend_from_slice(chunk);
                body.extend_from_slice(b"\r\n");
            }
            body.extend(format!("0\r\n{trailers}\r\n").into_bytes());
            ("Transfer-Encoding: chunked\r\n".to_owned(), body)
        }),
        1 => Just(("Content-Length: 10\r\n".to_owned(), b"short".to_vec())),
    ];
    let interim = prop::sample::select(vec!["", "", "HTTP/1.1 100 Continue\r\nX: y\r\n\r\n"]);
    let status = prop::sample::select(vec![200, 201, 206, 301, 404, 500, 503]);
    (interim, 0..=9, status, fields, framed).prop_map(|(interim, minor, status, fields, framed)| {
        // Every tenth is of version 1.0, and chunked is no part of that.
        let minor = u8::from(minor > 0);
        let (length, body) = framed;
        let head = format!(
            "{interim}HTTP/1.{minor} {status} x\r\n{}{length}\r\n",
            fields.concat()
        );
        [head.as_bytes(), &body].concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn generated_answers_are_read_alike(
        answer in answers(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        compare(&Method::GET, &split(&answer, &cuts))?;
    }
}

type Failing = std::convert::Infallible;

/// What hyper's server sends for a path, and what it is meant to be.
async fn respond(
    request: Request<hyper::body::Incoming>,
) -> Result<Response<http_body_util::combinators::BoxBody<Bytes, Failing>>, Failing> {
    let response = Response::builder().header("x-path", request.uri().path());
    let chunks = |trailers: bool| {
        let mut frames = VecDeque::from(["one", "two"].map(|part| Frame::data(part.into())));
        if trailers {
            let mut fields = HeaderMap::new();
            fields.insert("x-end", "yes".parse().unwrap());
            frames.push_back(Frame::trailers(fields));
        }
        Frames(frames).boxed()
    };
    Ok(match request.uri().path() {
        "/length" => response.body(Full::from("hello").boxed()),
        "/chunks" => response.body(chunks(false)),
        "/trailers" => response.header("trailer", "x-end").body(chunks(true)),
        "/none" => response
            .status(StatusCode::NO_CONTENT)
            .body(Empty::new().boxed()),
        "/same" => response
            .status(StatusCode::NOT_MODIFIED)
            .body(Empty::new().boxed()),
        "/close" => response
            .header("connection", "close")
            .body(Full::from("bye").boxed()),
        _ => response
            .status(StatusCode::NOT_FOUND)
            .body(Empty::new().boxed()),
    }
    .unwrap())
}

/// A body of unknown length, frame by frame.
struct Frames(VecDeque<Frame<Bytes>>);

impl hyper::body::Body for Frames {
    type Data = Bytes;
    type Error = Failing;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failing>>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }
}

/// What hyper's server writes, the scanner reads, in parts of any size.
#[test]
fn answers_of_hypers_server_are_read() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let cases = [
        (Method::GET, "/length", Version::HTTP_11, 200, "hello", true),
        (Method::HEAD, "/length", Version::HTTP_11, 200, "", true),
        (
            Method::GET,
            "/length",
            Version::HTTP_10,
            200,
            "hello",
            false,
        ),
        (
            Method::GET,
            "/chunks",
            Version::HTTP_11,
            200,
            "onetwo",
            true,
        ),
        (
            Method::GET,
            "/chunks",
            Version::HTTP_10,
            200,
            "onetwo",
            false,
        ),
        (
            Method::GET,
            "/trailers",
            Version::HTTP_11,
            200,
            "onetwo",
            true,
        ),
        (Method::GET, "/none", Version::HTTP_11, 204, "", true),
        (Method::GET, "/same", Version::HTTP_11, 304, "", true),
        (Method::GET, "/close", Version::HTTP_11, 200, "bye", false),
        (Method::GET, "/other", Version::HTTP_11, 404, "", true),
    ];
    for (method, path, version, status, body, keep_alive) in cases {
        let received = runtime.block_on(async {
            let (mut client, server) = tokio::io::duplex(1 << 16);
            let service = hyper::service::service_fn(respond);
            let serving = tokio::spawn(
                hyper::server::conn::http1::Builder::new()
                    .half_close(true)
                    .serve_connection(TokioIo::new(server), service),
            );
            let request = format!("{method} {path} {version:?}\r\nHost: x\r\nTE: trailers\r\n\r\n");
            client.write_all(request.as_bytes()).await.unwrap();
            client.shutdown().await.unwrap();
            let mut received = Vec::new();
            client.read_to_end(&mut received).await.unwrap();
            let _ = serving.await.unwrap();
            received
        });
        for size in [1, 7, received.len()] {
            let parts: Vec<Vec<u8>> = received.chunks(size).map(<[u8]>::to_vec).collect();
            let (seen, _) =
                scan(&method, &parts).unwrap_or_else(|| panic!("{method} {path} refused"));
            assert_eq!(
                (seen.status, seen.body.as_slice()),
                (status, body.as_bytes()),
                "{path}"
            );
            assert_eq!(seen.keep_alive, keep_alive, "{method} {path} {version:?}");
            assert!(
                seen.fields
                    .contains(&("x-path".to_owned(), path.as_bytes().to_vec()))
            );
            assert_eq!(seen.trailers.is_empty(), path != "/trailers");
        }
    }
}
