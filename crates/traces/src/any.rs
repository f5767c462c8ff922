//! Spans in whichever form they are.

use super::names::Names;
use super::{Origin, ReadError, Span, jaeger, normalise, otlp, zipkin};

/// Reads the spans of whole traces, and [normalises](normalise) them: Zipkin's JSON is a
/// list, OTLP's and Jaeger's are objects with keys of their own; what is no JSON is OTLP in
/// protobuf.
///
/// # Errors
/// When it is none of these, or a span's ids are not.
pub fn read(bytes: &[u8], origin: &Origin) -> Result<Vec<Span>, ReadError> {
    let mut names = Names::default();
    let mut spans = match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'[') => zipkin::read(bytes, origin, &mut names),
        Some(b'{') if first_key(bytes).is_some_and(|key| jaeger::KEYS.contains(&key)) => {
            jaeger::read(bytes, origin, &mut names)
        }
        Some(b'{') => otlp::read_json(bytes, origin, &mut names),
        _ => otlp::read_protobuf(bytes, origin, &mut names),
    }?;
    normalise(&mut spans);
    Ok(spans)
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
        let error = read(b" {\n \"data\" : 3}", &origin)
            .unwrap_err()
            .to_string();
        assert!(error.contains("Jaeger"), "{error}");
        let error = read(b"\x01\xff", &origin).unwrap_err().to_string();
        assert!(error.contains("protobuf"), "{error}");
    }
}
