//! The two readers, and what they make of an answer.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use wire::http1::{Expect, Limits, ResponseScanner, Sink, fields};

use super::script::Script;

/// What a reader made of an answer; `None`: it refused.
pub(crate) type Reading = Option<Seen>;

/// An answer as a reader sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, Vec<u8>)>,
    /// Another request may follow on the connection.
    pub(crate) keep_alive: bool,
}

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
pub(crate) fn scan(method: &Method, parts: &[Vec<u8>]) -> Option<(Seen, bool)> {
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

/// Reads one answer with hyper. `closes`: the stream ends behind the parts; only without
/// it can be told whether hyper would go on.
pub(crate) async fn read_with_hyper(method: &Method, parts: &[Vec<u8>], closes: bool) -> Reading {
    let io = TokioIo::new(Script::new(parts, closes));
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
pub(crate) fn hyper_reads(method: &Method, parts: &[Vec<u8>], ends_itself: bool) -> Reading {
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
