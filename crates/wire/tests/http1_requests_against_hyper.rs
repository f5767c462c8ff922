//! The scanner of requests beside hyper's server: both read the same bytes, split in the
//! same way. Ours may refuse more (the list of [`STRICTER`] says what, and why), but what
//! it takes, hyper reads in the same way: nothing is smuggled between the two.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wire::http1::{Limits, RequestHead, RequestScanner, Sink, fields};

/// A request as either reader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    method: String,
    target: String,
    fields: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    trailers: Vec<(String, Vec<u8>)>,
}

#[derive(Default)]
struct Body {
    bytes: Vec<u8>,
    trailers: Vec<(String, Vec<u8>)>,
}

impl Sink for Body {
    fn body(&mut self, part: &[u8]) {
        self.bytes.extend_from_slice(part);
    }
    fn trailers(&mut self, lines: &[u8]) {
        self.trailers = listed(fields(lines));
    }
}

fn listed<'a>(fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Vec<(String, Vec<u8>)> {
    let lower = |name| String::from_utf8_lossy(name).to_lowercase();
    let mut list: Vec<_> = fields
        .map(|(name, value)| (lower(name), value.to_vec()))
        .collect();
    list.sort();
    // hyper keeps one of several lengths that are the same.
    list.dedup_by(|one, other| one == other && one.0 == "content-length");
    list
}

/// Whole requests that the scanner reads, and whether it found fault.
fn ours(parts: &[&[u8]]) -> (Vec<Seen>, bool) {
    let mut scanner = RequestScanner::new(Limits::default());
    let mut head = RequestHead::default();
    let (mut buffer, mut found) = (Vec::new(), Vec::new());
    let mut body: Option<Body> = None;
    for part in parts {
        buffer.extend_from_slice(part);
        loop {
            if body.is_none() {
                match scanner.head(&buffer, &mut head) {
                    Ok(Some(length)) => drop(buffer.drain(..length)),
                    Ok(None) => break,
                    Err(_) => return (found, true),
                }
            }
            let sink = body.get_or_insert_with(Body::default);
            let Ok(scan) = scanner.body(&buffer, sink) else {
                return (found, true);
            };
            buffer.drain(..scan.consumed);
            if !scan.ended {
                break;
            }
            let body = body.take().unwrap();
            found.push(Seen {
                method: String::from_utf8_lossy(head.method()).into_owned(),
                target: String::from_utf8_lossy(head.target()).into_owned(),
                fields: listed(head.fields()),
                body: body.bytes,
                trailers: body.trailers,
            });
            if !head.keep_alive() {
                return (found, false);
            }
        }
    }
    (found, false)
}

/// The same with hyper, whose client closes its side behind the bytes.
fn hypers(parts: &[&[u8]]) -> Vec<Seen> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let found = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&found);
    runtime.block_on(async {
        let (mut client, server) = tokio::io::duplex(1 << 16);
        let service = hyper::service::service_fn(move |request| note(request, Arc::clone(&seen)));
        let serving = tokio::spawn(
            hyper::server::conn::http1::Builder::new()
                .half_close(true)
                .serve_connection(TokioIo::new(server), service),
        );
        for part in parts {
            if client.write_all(part).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        let _ = client.shutdown().await;
        let _ = client.read_to_end(&mut Vec::new()).await;
        // A request that breaks off or is refused is an error here, and not among the found.
        let _ = serving.await.unwrap();
    });
    let found = found.lock().unwrap();
    found.clone()
}

async fn note(
    request: Request<Incoming>,
    seen: Arc<Mutex<Vec<Seen>>>,
) -> Result<Response<Empty<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let fields = head.headers.iter();
    let fields = listed(fields.map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes())));
    // A body that breaks off is no whole request.
    if let Ok(body) = body.collect().await {
        let trailers = body.trailers().cloned().unwrap_or_default();
        let trailers = trailers.iter();
        seen.lock().unwrap().push(Seen {
            method: head.method.to_string(),
            target: head.uri.to_string(),
            fields,
            trailers: listed(
                trailers.map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes())),
            ),
            body: body.to_bytes().to_vec(),
        });
    }
    Ok(Response::new(Empty::new()))
}

/// What both read alike, whole and byte by byte.
#[test]
fn a_corpus_is_read_alike() {
    let corpus = [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\nGET /a?b=c HTTP/1.1\r\nHost: a\r\nX-Y:  z \r\n\r\n",
        "GET http://b/c HTTP/1.1\r\nHost: a\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /1 HTTP/1.0\r\n\r\nGET /2 HTTP/1.0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nA: b\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxx\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n folded\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n",
        "GARBAGE\r\n\r\n",
    ];
    for input in corpus {
        for size in [1, input.len()] {
            let parts: Vec<&[u8]> = input.as_bytes().chunks(size).collect();
            assert_eq!(ours(&parts).0, hypers(&parts), "{input:?}");
        }
    }
}

/// What ours refuses and hyper takes: (request, why).
const STRICTER: &[(&str, &str)] = &[
    (
        "GET / HTTP/1.1\r\n\r\n",
        "RFC 9112 section 3.2: HTTP/1.1 without Host is answered with 400",
    ),
    (
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "RFC 9112 section 3.2: so is more than one Host",
    ),
    (
        "GET / HTTP/1.1\nHost: a\n\n",
        "section 2.2 lets a bare LF end a line, and lets one refuse it: some see no end there",
    ),
    (
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "section 6.1: a coding that is not known is answered with 501",
    ),
];

#[test]
fn ours_is_stricter_on_purpose() {
    for (input, why) in STRICTER {
        let (found, fault) = ours(&[input.as_bytes()]);
        assert!(found.is_empty() && fault, "{input:?}: {why}");
        let found = hypers(&[input.as_bytes()]);
        assert!(found.len() == 1, "{input:?}: hyper refuses it too by now");
    }
}

/// Streams of requests, some of them broken.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "GET / HTTP/1.1\r\nHost: a\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /x?y HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n",
        "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST /x HTTP/1.0\r\nConnection: keep-alive\r\n",
        "Connection: close\r\n",
        "Content-Length: 3\r\n",
        "Content-Length: 4\r\n",
        "Content-Length: 3, 3\r\n",
        "Content-Length : 3\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\n",
        "Transfer-Encoding: identity\r\n",
        "X: y\r\n",
        " folded\r\n",
        "\r\n",
        "\r\n",
        "\n",
        "3\r\nabc\r\n",
        "3;x\r\nabc\r\n",
        "3\nabc\r\n",
        "0\r\n\r\n",
        "0\r\nA: b\r\n\r\n",
        "0\r\nA: b\n\r\n",
        "abc",
    ]);
    prop::collection::vec(piece, 1..14).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// What ours takes, hyper takes too, and reads the same: ours sees the same requests as
    /// hyper, or the first ones of them.
    #[test]
    fn what_ours_takes_hyper_reads_alike(input in stream(), cut in 1_usize..40) {
        let parts: Vec<&[u8]> = input.chunks(cut).collect();
        let (ours, _) = ours(&parts);
        let hypers = hypers(&parts);
        prop_assert!(hypers.starts_with(&ours), "ours {ours:#?}\nhyper's {hypers:#?}");
    }
}
