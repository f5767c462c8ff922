//! Spans of other processes.

use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use http::{HeaderMap, Response, StatusCode, header};
use net::Body;

use crate::answer::{self, Refusal};
use traces::names::Names;
use traces::otlp::{self, Partial};
use traces::{Decoded, Origin, ReadError, Store, decode_posted};

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
    refused: AtomicU64,
}

/// What became of the spans of a body.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IntakeResult {
    /// Spans that are not kept.
    rejected: u64,
    /// Why, in plain words.
    why: String,
}

impl IntakeResult {
    fn of(decoded: &Decoded, dropped: u64) -> Self {
        let of_trace = (dropped > 0).then(|| {
            format!("spans of traces that have as many as are kept of one already: {dropped}")
        });
        let why: Vec<String> = decoded.left_out().into_iter().chain(of_trace).collect();
        Self {
            rejected: decoded.refused() + dropped,
            why: format!("not kept are {}", why.join("; ")),
        }
    }

    /// As OTLP has it.
    pub fn partial(&self) -> Partial<'_> {
        Partial {
            rejected: self.rejected,
            why: &self.why,
        }
    }
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
            refused: AtomicU64::new(0),
        }
    }

    /// Spans that could not be used: without ids, without a sensible time.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Takes a posted body in, and answers as the collector whose form it has. Spans that cannot be
    /// used cost the others nothing.
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
        let form_of_body = match (form, json) {
            (Form::Zipkin, _) => traces::Form::Zipkin,
            (Form::Otlp, true) => traces::Form::OtlpJson,
            (Form::Otlp, false) => traces::Form::OtlpProtobuf,
        };
        let taken = self
            .keep(form_of_body, &body)
            .map_err(|error| refusal(&error))?;
        Ok(match (form, json) {
            (Form::Zipkin, _) => {
                let mut accepted = Response::new(net::empty());
                *accepted.status_mut() = StatusCode::ACCEPTED;
                accepted
            }
            (Form::Otlp, false) => answer::whole(otlp::PROTOBUF, taken.partial().protobuf()),
            (Form::Otlp, true) => answer::whole("application/json", taken.partial().json()),
        })
    }

    /// Takes in a message of OTLP in protobuf.
    ///
    /// # Errors
    /// When it is none.
    pub fn take_message(&self, message: &[u8]) -> Result<IntakeResult, ReadError> {
        self.keep(traces::Form::OtlpProtobuf, message)
    }

    fn keep(&self, form: traces::Form, body: &[u8]) -> Result<IntakeResult, ReadError> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let mut decoded = decode_posted(form, body, &self.origin, &mut names)?;
        drop(names);
        self.refused.fetch_add(decoded.refused(), Relaxed);
        let dropped = self.store.extend(std::mem::take(&mut decoded.spans));
        Ok(IntakeResult::of(&decoded, dropped))
    }
}

/// The answer to who posts what is not read.
pub(crate) fn refusal(error: &ReadError) -> Refusal {
    let status = match error {
        ReadError::Parts { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        ReadError::Form { .. } | ReadError::Id { .. } => StatusCode::BAD_REQUEST,
    };
    Refusal::new(status, error.to_string())
}

pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE);
    let text = content_type.and_then(|value| value.to_str().ok());
    let kind = text.and_then(|text| text.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// Exporters like to pack what they send.
fn unpacked(headers: &HeaderMap, body: Bytes) -> Result<Bytes, Refusal> {
    let encoding = headers.get(header::CONTENT_ENCODING);
    let encoding = encoding.map(|value| value.as_bytes().to_ascii_lowercase());
    match encoding.as_deref() {
        None | Some(b"" | b"identity") => Ok(body),
        Some(b"gzip" | b"x-gzip") => gunzip(&body),
        Some(other) => Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            format!(
                "the body's encoding is {:?}: expected gzip or none",
                String::from_utf8_lossy(other)
            ),
        )),
    }
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use traces::StoreLimits;

    use super::*;

    const NOW: u64 = 1_790_000_000_000_000_000;

    fn span(trace: &str, id: u64, start: u64, end: u64) -> String {
        format!(
            r#"{{"traceId":"{trace:0>32}","spanId":"{id:016x}","name":"/","kind":2,"startTimeUnixNano":"{start}","endTimeUnixNano":"{end}"}}"#
        )
    }

    fn body(spans: &[String]) -> Bytes {
        let spans = spans.join(",");
        format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{spans}]}}]}}]}}"#).into()
    }

    fn posted(spans: &[String]) -> (Intake, Store, IntakeResult) {
        let limits = StoreLimits {
            trace_spans: 3,
            ..StoreLimits::default()
        };
        let store = Store::new(limits);
        let intake = Intake::new(store.clone(), Origin::unix());
        let taken = intake.keep(traces::Form::OtlpJson, &body(spans)).unwrap();
        (intake, store, taken)
    }

    #[test]
    fn good_spans_are_kept_beside_bad_ones_which_are_said() {
        let spans = [
            span("a", 1, NOW, NOW + 5),
            span("0", 2, NOW, NOW + 5),
            span("b", 3, NOW, NOW - 5),
            span("c", 4, NOW / 1_000, NOW / 1_000 + 5),
        ];
        let (intake, store, taken) = posted(&spans);
        assert_eq!(store.counts().spans, 1);
        assert_eq!((taken.rejected, intake.refused()), (3, 3));
        for said in ["ids that are none", "before the beginning", "units"] {
            assert!(taken.why.contains(said), "{}", taken.why);
        }
        let json = String::from_utf8(taken.partial().json()).unwrap();
        assert!(
            json.starts_with(r#"{"partialSuccess":{"rejectedSpans":"3""#),
            "{json}"
        );

        let (intake, store, taken) = posted(&spans[..1]);
        assert_eq!((store.counts().spans, intake.refused()), (1, 0));
        assert_eq!(
            (taken.rejected, taken.partial().json()),
            (0, b"{}".to_vec())
        );
    }

    #[test]
    fn what_a_trace_has_too_many_is_said() {
        let spans: Vec<String> = (1..=5).map(|id| span("a", id, NOW, NOW + 5)).collect();
        let (_, store, taken) = posted(&spans);
        assert_eq!((store.counts().spans, taken.rejected), (3, 2));
        assert!(
            taken.why.contains("as many as are kept of one already: 2"),
            "{}",
            taken.why
        );
    }

    #[test]
    fn a_body_of_too_many_parts_is_too_large() {
        let intake = Intake::new(Store::new(StoreLimits::default()), Origin::unix());
        let spans = vec!["{}"; BODY_BYTES / 4].join(",");
        let body = format!("[{spans}]").into();
        let refused = intake.take(Form::Zipkin, &HeaderMap::new(), body);
        let refused = refused.unwrap_err();
        assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert!(
            refused.error.contains("send fewer at once"),
            "{}",
            refused.error
        );
        let refused = intake.take(Form::Zipkin, &HeaderMap::new(), "[".into());
        assert_eq!(refused.unwrap_err().status, StatusCode::BAD_REQUEST);
    }

    #[test]
    fn large_and_small_letters_are_one_in_the_names_of_forms() {
        let mut headers = HeaderMap::new();
        let json = "Application/JSON; charset=utf-8".parse().unwrap();
        headers.insert(header::CONTENT_TYPE, json);
        assert!(is_json(&headers));
        headers.insert(header::CONTENT_ENCODING, "GZIP".parse().unwrap());
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"abc").unwrap();
        let packed = gzip.finish().unwrap();
        assert_eq!(unpacked(&headers, packed.into()).unwrap(), "abc");
        headers.insert(header::CONTENT_ENCODING, "BR".parse().unwrap());
        let refused = unpacked(&headers, Bytes::new()).unwrap_err();
        assert!(refused.error.contains("\"br\""), "{}", refused.error);
    }
}
