//! Spans of other processes.

use std::io::Read;
use std::sync::Mutex;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use http::{HeaderMap, Response, StatusCode, header};
use net::Body;

use super::answer::{self, Refusal};
use crate::lock;
use crate::trace::Tracer;
use traces::names::Names;
use traces::{ReadError, Span, otlp, zipkin};

/// Most bytes of a posted body, as it comes and as it is unpacked.
pub(super) const BODY_BYTES: usize = 32 << 20;

/// Reads spans into the store of a process.
#[derive(Debug)]
pub(super) struct Intake {
    tracer: Tracer,
    names: Mutex<Names>,
}

/// Which of the two collectors a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Zipkin,
    Otlp,
}

impl Intake {
    pub(super) fn new(tracer: Tracer) -> Self {
        Self {
            tracer,
            names: Mutex::default(),
        }
    }

    /// Takes a posted body in, and answers as the collector whose form it has.
    pub(super) fn take(
        &self,
        form: Form,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Response<Body>, Refusal> {
        let body = unpacked(headers, body)?;
        let json = is_json(headers);
        let spans = self
            .read(form, json, &body)
            .map_err(|error| Refusal::bad(error.to_string()))?;
        self.tracer.store().extend(spans);
        Ok(match (form, json) {
            (Form::Zipkin, _) => {
                let mut accepted = Response::new(net::empty());
                *accepted.status_mut() = StatusCode::ACCEPTED;
                accepted
            }
            // A message without fields has no bytes.
            (Form::Otlp, false) => answer::whole(otlp::PROTOBUF, Bytes::new()),
            (Form::Otlp, true) => answer::whole("application/json", "{}"),
        })
    }

    fn read(&self, form: Form, json: bool, body: &[u8]) -> Result<Vec<Span>, ReadError> {
        let origin = self.tracer.origin();
        let mut names = lock(&self.names);
        match (form, json) {
            (Form::Zipkin, _) => zipkin::read(body, origin, &mut names),
            (Form::Otlp, true) => otlp::read_json(body, origin, &mut names),
            (Form::Otlp, false) => otlp::read_protobuf(body, origin, &mut names),
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE);
    let text = content_type.and_then(|value| value.to_str().ok());
    text.is_some_and(|text| text.trim_start().starts_with("application/json"))
}

/// Exporters like to pack what they send.
fn unpacked(headers: &HeaderMap, body: Bytes) -> Result<Bytes, Refusal> {
    match headers
        .get(header::CONTENT_ENCODING)
        .map(|value| value.as_bytes())
    {
        None | Some(b"" | b"identity") => return Ok(body),
        Some(b"gzip") => {}
        Some(other) => {
            return Err(Refusal::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                format!(
                    "the body's encoding is {:?}: expected gzip or none",
                    String::from_utf8_lossy(other)
                ),
            ));
        }
    }
    let mut unpacked = Vec::new();
    let mut reader = MultiGzDecoder::new(&*body).take(BODY_BYTES as u64 + 1);
    reader
        .read_to_end(&mut unpacked)
        .map_err(|error| Refusal::bad(format!("unpack the body: {error}")))?;
    if unpacked.len() > BODY_BYTES {
        return Err(Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!(
                "the unpacked body is longer than {BODY_BYTES} bytes: send fewer spans at once"
            ),
        ));
    }
    Ok(unpacked.into())
}
