//! What hyper's server writes.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Frame;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::readers::scan;

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
