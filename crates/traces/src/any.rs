//! Spans in whichever form they are.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::MultiGzDecoder;
use units::grouped;

use super::names::Names;
use super::{Nanos, Origin, ReadError, Span, jaeger, normalise, otlp, zipkin};

/// The first bytes of what gzip packed.
const GZIP: &[u8] = &[0x1f, 0x8b];

/// Which some editors put before a text.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Most bytes that packed spans have unpacked.
const UNPACKED_BYTES: u64 = 1 << 30;

/// No span takes so long: a month.
const TOO_LONG: Nanos = 30 * 86_400 * 1_000_000_000;

/// Spans, and what was left out of them.
#[derive(Debug, Default)]
pub struct Decoded {
    /// As their writer means them.
    pub spans: Vec<Span>,
    /// Spans that do not say when they began.
    pub timeless: u64,
    /// Spans that end before they begin, or take a month or longer.
    pub absurd: u64,
    /// The last of several bodies ends in its midst: it is left out.
    pub is_cut: bool,
}

impl Decoded {
    /// What was left out, in plain words; `None`: nothing.
    pub fn left_out(&self) -> Option<String> {
        let count = |count: u64, what: &str| {
            let number = grouped(count);
            (count > 0).then(|| format!("{number} spans {what}"))
        };
        let all = [
            self.is_cut
                .then(|| "the last line, which ends in its midst".to_owned()),
            count(self.timeless, "that do not say when they began"),
            count(
                self.absurd,
                "that end before they begin, or take a month or longer",
            ),
        ];
        let all: Vec<String> = all.into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    fn of(spans: Vec<Span>) -> Self {
        Self {
            spans,
            ..Self::default()
        }
    }

    fn without_absurd(mut self) -> Self {
        let before = self.spans.len();
        self.spans
            .retain(|span| span.end >= span.start && span.length() < TOO_LONG);
        self.absurd = (before - self.spans.len()) as u64;
        self
    }
}

/// Reads the spans of whole traces, and [normalises](normalise) them; see [`decode`].
///
/// # Errors
/// As of [`decode`].
pub fn read(bytes: &[u8], origin: &Origin) -> Result<Vec<Span>, ReadError> {
    let mut spans = decode(bytes, origin)?.spans;
    normalise(&mut spans);
    Ok(spans)
}

/// Reads spans as their writer means them, for those who have the rest of their traces to
/// [normalise] them with: Zipkin's JSON is a list, OTLP's and Jaeger's are objects with keys of
/// their own (of OTLP, several may follow each other, as the collector's file exporter writes
/// them, and the last may be cut off); what is no JSON is OTLP in protobuf. Any may be packed by
/// gzip, up to 1 GiB unpacked.
///
/// # Errors
/// When it is none of these, or a span's ids are not.
pub fn decode(bytes: &[u8], origin: &Origin) -> Result<Decoded, ReadError> {
    let bytes = unpacked(bytes)?;
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
    let mut names = Names::default();
    let decoded = match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'[') => {
            let (spans, timeless) = zipkin::read_all(bytes, origin, &mut names)?;
            Decoded {
                timeless,
                ..Decoded::of(spans)
            }
        }
        Some(b'{') if first_key(bytes).is_some_and(|key| jaeger::KEYS.contains(&key)) => {
            Decoded::of(jaeger::read(bytes, origin, &mut names)?)
        }
        Some(b'{') if first_key(bytes) == Some(otlp::KEY) => {
            let (spans, is_cut) = otlp::read_json_lines(bytes, origin, &mut names)?;
            Decoded {
                is_cut,
                ..Decoded::of(spans)
            }
        }
        Some(b'{') => {
            return Err(ReadError::Form {
                format: "OTLP or Jaeger",
                cause: format!(
                    "its first key is {:?}; expected {:?} of OTLP, or one of {:?} of Jaeger",
                    first_key(bytes).unwrap_or_default(),
                    otlp::KEY,
                    jaeger::KEYS
                ),
            });
        }
        _ => Decoded::of(otlp::read_protobuf_as_written(bytes, origin, &mut names)?),
    };
    Ok(decoded.without_absurd())
}

fn unpacked(bytes: &[u8]) -> Result<Cow<'_, [u8]>, ReadError> {
    if !bytes.starts_with(GZIP) {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut plain = Vec::new();
    let mut reader = MultiGzDecoder::new(bytes).take(UNPACKED_BYTES + 1);
    reader
        .read_to_end(&mut plain)
        .map_err(ReadError::form("gzip"))?;
    match plain.len() as u64 > UNPACKED_BYTES {
        false => Ok(Cow::Owned(plain)),
        true => Err(ReadError::Form {
            format: "gzip",
            cause: format!(
                "it has more than {} unpacked",
                units::write_bytes(UNPACKED_BYTES)
            ),
        }),
    }
}

/// The first key of a JSON object.
fn first_key(json: &[u8]) -> Option<&str> {
    let key = json.trim_ascii_start().strip_prefix(b"{")?;
    let key = key.trim_ascii_start().strip_prefix(b"\"")?;
    let end = key.iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(key.get(..end)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_told_apart() {
        let origin = Origin::unix();
        assert!(read(b" []", &origin).unwrap().is_empty());
        let otlp = br#"{"resourceSpans":[]}"#;
        assert!(read(otlp, &origin).unwrap().is_empty());
        let span = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0000000000000000000000000000000a","spanId":"000000000000000b","name":"/"}]}]}]}"#;
        let lines = format!("{span}\n{}\n", span.replace("000b", "000c"));
        assert_eq!(read(lines.as_bytes(), &origin).unwrap().len(), 2);
        let broken = format!("{span}\n{{\"resource\" 3}}\n{span}");
        let error = read(broken.as_bytes(), &origin).unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
        let error = read(b" {\n \"data\" : 3}", &origin)
            .unwrap_err()
            .to_string();
        assert!(error.contains("Jaeger"), "{error}");
        let error = read(b"{\"level\":3}", &origin).unwrap_err().to_string();
        assert!(error.contains("its first key is \"level\""), "{error}");
        let error = read(b"\x01\xff", &origin).unwrap_err().to_string();
        assert!(error.contains("protobuf"), "{error}");
    }

    const SPAN: &str = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0000000000000000000000000000000a","spanId":"000000000000000b","name":"/","startTimeUnixNano":"20","endTimeUnixNano":"30","attributes":null}]}]}]}"#;

    fn decoded(bytes: &[u8]) -> Decoded {
        decode(bytes, &Origin::unix()).unwrap()
    }

    #[test]
    fn a_last_line_that_is_cut_is_left_out_and_said() {
        let cut = decoded(format!("{SPAN}\n{}", &SPAN[..90]).as_bytes());
        assert_eq!(cut.spans.len(), 1);
        assert_eq!(
            cut.left_out().as_deref(),
            Some("the last line, which ends in its midst")
        );
        assert_eq!(decoded(SPAN.as_bytes()).left_out(), None);
        let only = decode(&SPAN.as_bytes()[..90], &Origin::unix()).unwrap_err();
        assert!(only.to_string().contains("EOF"), "{only}");
    }

    #[test]
    fn spans_without_a_sensible_time_are_counted() {
        for end in ["19", "18446744073709551615"] {
            let absurd = decoded(SPAN.replace("\"30\"", &format!("\"{end}\"")).as_bytes());
            assert_eq!((absurd.spans.len(), absurd.absurd), (0, 1));
        }
        let zipkin = br#"[{"traceId":"000000000000000a","id":"000000000000000b"},
            {"traceId":"000000000000000a","id":"000000000000000c","timestamp":5}]"#;
        let timeless = decoded(zipkin);
        assert_eq!((timeless.spans.len(), timeless.timeless), (1, 1));
        assert_eq!(
            timeless.left_out().as_deref(),
            Some("1 spans that do not say when they began")
        );
    }

    #[test]
    fn packed_files_and_marks_of_editors_are_read() {
        use std::io::Write;
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(SPAN.as_bytes()).unwrap();
        let packed = gzip.finish().unwrap();
        assert_eq!(decoded(&packed).spans.len(), 1);
        let broken = decode(&packed[..packed.len() / 2], &Origin::unix()).unwrap_err();
        assert!(broken.to_string().contains("gzip"), "{broken}");
        assert_eq!(decoded(format!("\u{feff}{SPAN}").as_bytes()).spans.len(), 1);
    }

    #[test]
    fn what_jaeger_refused_is_told_in_its_words() {
        let refused = br#"{"data":null,"total":0,"errors":[{"code":404,"msg":"trace not found"}]}"#;
        let error = decode(refused, &Origin::unix()).unwrap_err().to_string();
        assert!(error.contains("trace not found"), "{error}");
        assert!(decoded(br#"{"data":null,"errors":null}"#).spans.is_empty());
    }
}
