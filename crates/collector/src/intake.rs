//! Spans of other processes.

use std::io::Read;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use http::{HeaderMap, Response, StatusCode, header};
use net::Body;

use crate::answer::{self, Refusal};
use traces::names::Names;
use traces::{Origin, ReadError, Span, Store, otlp, zipkin};

/// Most bytes of a posted body, as it comes and as it is unpacked.
pub const BODY_BYTES: usize = 32 << 20;

/// Longest wait for a body.
pub const BODY_WITHIN: Duration = Duration::from_secs(30);

/// Reads spans into a store.
#[derive(Debug)]
pub struct Intake {
    store: Store,
    origin: Origin,
    names: Mutex<Names>,
}

/// Which of the two collectors a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Zipkin's, version 2.
    Zipkin,
    /// OpenTelemetry's.
    Otlp,
}

impl Intake {
    /// Into a store, whose times count from an origin.
    pub fn new(store: Store, origin: Origin) -> Self {
        Self {
            store,
            origin,
            names: Mutex::default(),
        }
    }

    /// Takes a posted body in, and answers as the collector whose form it has.
    ///
    /// # Errors
    /// When the body is packed in a way that is not known, is too long, or holds no spans.
    pub fn take(
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
        self.store.extend(spans);
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

    /// Takes in a message of OTLP in protobuf.
    ///
    /// # Errors
    /// When it is none.
    pub fn take_message(&self, message: &[u8]) -> Result<(), ReadError> {
        let spans = self.read(Form::Otlp, false, message)?;
        self.store.extend(spans);
        Ok(())
    }

    fn read(&self, form: Form, json: bool, body: &[u8]) -> Result<Vec<Span>, ReadError> {
        let origin = &self.origin;
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
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
    gunzip(&body)
}

/// Unpacks within the bound of a body.
pub(crate) fn gunzip(body: &[u8]) -> Result<Bytes, Refusal> {
    let mut unpacked = Vec::new();
    let mut reader = MultiGzDecoder::new(body).take(BODY_BYTES as u64 + 1);
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
