//! OTLP over gRPC: one call, `opentelemetry.proto.collector.trace.v1.TraceService/Export`
//! (opentelemetry-proto, `trace_service.proto`), in gRPC's framing over HTTP/2
//! (PROTOCOL-HTTP2.md of grpc/grpc).

use std::sync::Arc;

use bytes::{Buf, Bytes};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use net::{Body, Handler, Incoming};

use crate::answer::Refusal;
use crate::intake::{BODY_BYTES, IntakeResult, gunzip, refusal};
use crate::server::{Collector, run_blocking};

/// The path of the call.
const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// A flag and the length of a message stand before it.
const PREFIX: usize = 5;

/// A collector's face for gRPC.
pub struct Grpc(pub Arc<Collector>);

impl Handler for Grpc {
    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        match self.export(request).await {
            Ok(taken) => answer(&framed(&taken.partial().protobuf()), 0, ""),
            Err(refusal) => {
                self.0.count_refused();
                answer(&[], status(refusal.status), &refusal.error)
            }
        }
    }
}

impl Grpc {
    async fn export(&self, request: Request<Incoming>) -> Result<IntakeResult, Refusal> {
        let (head, body) = request.into_parts();
        if head.method != Method::POST || head.uri.path() != EXPORT {
            return Err(Refusal::new(
                StatusCode::NOT_IMPLEMENTED,
                format!("{} is not known; expected POST {EXPORT}", head.uri.path()),
            ));
        }
        let heavy = self.0.heavy();
        let held = heavy.read(body, BODY_BYTES + PREFIX).await?;
        let _place = heavy.place().await?;
        let (intake, body) = (self.0.intake(), held.body.clone());
        let taken = run_blocking("reading the spans", move || {
            let message = message(body, &head.headers)?;
            let taken = intake.take_message(&message);
            taken.map_err(|error| refusal(&error))
        });
        taken.await?
    }
}

/// A message in its frame, not packed.
fn framed(message: &[u8]) -> Vec<u8> {
    // It holds a sentence and a number.
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&[0][..], &length.to_be_bytes(), message].concat()
}

/// The one message of a body, unpacked.
fn message(mut body: Bytes, headers: &HeaderMap) -> Result<Bytes, Refusal> {
    if body.len() < PREFIX {
        return Err(Refusal::bad(
            "the body has no message: it is shorter than its prefix of 5 bytes",
        ));
    }
    let (flag, length) = (body.get_u8(), body.get_u32() as usize);
    if body.len() != length {
        return Err(Refusal::bad(format!(
            "the message has {length} bytes by its prefix, and {} came; expected one message",
            body.len()
        )));
    }
    let encoding = headers.get("grpc-encoding").map(HeaderValue::as_bytes);
    match (flag, encoding) {
        (0, _) | (1, None | Some(b"identity")) => Ok(body),
        (1, Some(b"gzip")) => gunzip(&body),
        (1, Some(other)) => Err(Refusal::new(
            StatusCode::NOT_IMPLEMENTED,
            format!(
                "the message is packed as {:?}; expected gzip or none",
                String::from_utf8_lossy(other)
            ),
        )),
        (flag, _) => Err(Refusal::bad(format!(
            "the message's flag is {flag}; expected 0 or 1"
        ))),
    }
}

/// gRPC's code for an answer of HTTP (`code.proto`).
fn status(http: StatusCode) -> u8 {
    match http {
        StatusCode::BAD_REQUEST | StatusCode::UNSUPPORTED_MEDIA_TYPE => 3,
        StatusCode::REQUEST_TIMEOUT => 4,
        StatusCode::PAYLOAD_TOO_LARGE => 8,
        StatusCode::NOT_IMPLEMENTED => 12,
        StatusCode::SERVICE_UNAVAILABLE => 14,
        _ => 13,
    }
}

fn answer(message: &[u8], status: u8, why: &str) -> Response<Body> {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(u16::from(status)));
    if let Ok(why) = HeaderValue::from_str(&percent_encoded(why)) {
        trailers.insert("grpc-message", why);
    }
    let body = Full::new(Bytes::copy_from_slice(message));
    let body = body.with_trailers(async { Some(Ok(trailers)) });
    let mut answer = Response::new(body.boxed_unsync());
    let grpc = HeaderValue::from_static("application/grpc");
    answer.headers_mut().insert(CONTENT_TYPE, grpc);
    answer
}

/// As `grpc-message` is written: printable ASCII but for the percent sign.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => encoded.push(char::from(byte)),
            other => encoded += &format!("%{other:02X}"),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn packed(flag: u8, bytes: &[u8]) -> Bytes {
        let length = u32::try_from(bytes.len()).unwrap().to_be_bytes();
        [&[flag][..], &length, bytes].concat().into()
    }

    #[test]
    fn a_message_is_taken_out_of_its_frame() {
        let mut headers = HeaderMap::new();
        assert_eq!(message(packed(0, b"abc"), &headers).unwrap(), "abc");
        assert_eq!(message(packed(1, b"abc"), &headers).unwrap(), "abc");
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"abc").unwrap();
        let gzip = gzip.finish().unwrap();
        headers.insert("grpc-encoding", HeaderValue::from_static("gzip"));
        assert_eq!(message(packed(1, &gzip), &headers).unwrap(), "abc");
        assert!(message(packed(1, b"abc"), &headers).is_err());
        headers.insert("grpc-encoding", HeaderValue::from_static("zstd"));
        let refused = message(packed(1, &gzip), &headers).unwrap_err();
        assert_eq!(status(refused.status), 12);
    }

    #[test]
    fn an_answer_without_fields_is_an_empty_message() {
        assert_eq!(framed(b""), [0; PREFIX]);
        assert_eq!(framed(b"ab"), b"\0\0\0\0\x02ab");
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let headers = HeaderMap::new();
        for body in [
            &b""[..],
            b"\0\0\0\0",
            b"\0\0\0\0\x02a",
            b"\0\0\0\0\x01ab",
            b"\x02\0\0\0\0",
        ] {
            let refused = message(Bytes::copy_from_slice(body), &headers).unwrap_err();
            assert_eq!(status(refused.status), 3, "{body:?}");
        }
    }

    #[test]
    fn reasons_survive_a_field() {
        assert_eq!(percent_encoded("50 % of\nµ"), "50 %25 of%0A%C2%B5");
    }
}
