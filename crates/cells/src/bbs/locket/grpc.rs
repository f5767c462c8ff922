//! Locket's calls in gRPC's framing over HTTP/2 (PROTOCOL-HTTP2.md of grpc/grpc).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use net::tls::{self, Files, TlsError};
use net::{Body, BoxFuture, ConnectionFailure, Handler, Incoming, Shutdown};
use telemetry::{Fields, Logger};
use tokio::net::TcpListener;
use wire::http2::grpc::{frame, message};

use super::{Locket, UNREADABLE};
use crate::bbs::presence::Refusal;

/// Most bytes of a request: the longest resource that is kept, and room to say that one is
/// longer.
const BODY_BYTES: usize = 256 * 1024;
/// Longest wait for a request's body.
const BODY_WITHIN: Duration = Duration::from_secs(30);

struct Grpc {
    locket: Locket,
    logger: Logger,
}

/// Serves `locket` until `shutdown`.
///
/// # Errors
/// When the certificate cannot be used.
pub(in crate::bbs) fn serve(
    listener: TcpListener,
    certificate: Option<&Files>,
    limits: net::Limits,
    locket: Locket,
    shutdown: Shutdown,
) -> Result<BoxFuture<()>, TlsError> {
    let tls = certificate.map(tls::server).transpose()?;
    let logger = locket.logger.session("grpc");
    let grpc = Arc::new(Grpc { locket, logger });
    Ok(net::serve_http2(listener, tls, limits, grpc, shutdown))
}

impl Handler for Grpc {
    fn connection_failed(&self, failure: &ConnectionFailure) {
        self.logger.error("no-connection", failure, Fields::new());
    }

    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        match self.answer(request).await {
            Ok(framed) => {
                let trailers = async { Some(Ok(status(0, ""))) };
                let body = Full::new(framed).with_trailers(trailers);
                head(Response::new(body.boxed_unsync()))
            }
            Err(refusal) => {
                // Without a message the status stands in the head.
                let mut answer = Response::new(net::empty());
                *answer.headers_mut() = status(refusal.code, refusal.text);
                head(answer)
            }
        }
    }
}

impl Grpc {
    async fn answer(&self, request: Request<Incoming>) -> Result<Bytes, Refusal> {
        let (head, body) = request.into_parts();
        if head.method != Method::POST {
            return Err(super::UNKNOWN_METHOD);
        }
        let body = net::read_body(body, BODY_BYTES, BODY_WITHIN).await;
        let body = body.map_err(|_| UNREADABLE)?;
        let request = message(&body).map_err(|_| UNREADABLE)?;
        let request = body.slice_ref(request);
        let answer = self.locket.call(head.uri.path(), request).await?;
        frame(&answer).map_err(|_| Refusal {
            code: 8,
            text: "answer-too-long",
        })
    }
}

fn head(mut answer: Response<Body>) -> Response<Body> {
    let grpc = HeaderValue::from_static("application/grpc");
    answer.headers_mut().insert(CONTENT_TYPE, grpc);
    answer
}

fn status(code: u32, text: &'static str) -> HeaderMap {
    let mut status = HeaderMap::new();
    status.insert("grpc-status", HeaderValue::from(code));
    if !text.is_empty() {
        status.insert("grpc-message", HeaderValue::from_static(text));
    }
    status
}
