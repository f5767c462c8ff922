//! Spans in whichever form they are.

use super::names::Names;
use super::{Origin, ReadError, Span, jaeger, normalise, otlp, zipkin};

/// Reads the spans of whole traces, and [normalises](normalise) them; see [`decode`].
///
/// # Errors
/// As of [`decode`].
pub fn read(bytes: &[u8], origin: &Origin) -> Result<Vec<Span>, ReadError> {
    let mut spans = decode(bytes, origin)?;
    normalise(&mut spans);
    Ok(spans)
}

/// Reads spans as their writer means them, for those who have the rest of their traces to
/// [normalise] them with: Zipkin's JSON is a list, OTLP's and Jaeger's are objects with keys of
/// their own (of OTLP, several may follow each other, as the collector's file exporter writes
/// them); what is no JSON is OTLP in protobuf.
///
/// # Errors
/// When it is none of these, or a span's ids are not.
pub fn decode(bytes: &[u8], origin: &Origin) -> Result<Vec<Span>, ReadError> {
    let mut names = Names::default();
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'[') => zipkin::read(bytes, origin, &mut names),
        Some(b'{') if first_key(bytes).is_some_and(|key| jaeger::KEYS.contains(&key)) => {
            jaeger::read(bytes, origin, &mut names)
        }
        Some(b'{') if first_key(bytes) == Some(otlp::KEY) => {
            otlp::read_json_lines(bytes, origin, &mut names)
        }
        Some(b'{') => Err(ReadError::Form {
            format: "OTLP or Jaeger",
            cause: format!(
                "its first key is {:?}; expected {:?} of OTLP, or one of {:?} of Jaeger",
                first_key(bytes).unwrap_or_default(),
                otlp::KEY,
                jaeger::KEYS
            ),
        }),
        _ => otlp::read_protobuf(bytes, origin, &mut names),
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
        let error = read(format!("{span}\n{{\"resource").as_bytes(), &origin).unwrap_err();
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
}
