//! Header fields and the bytes of a request's first line.

use units::UnitError;

use super::error::RequestError;

/// Reads a header field as people give it: `Name: value`.
///
/// # Errors
/// No colon, a name that is none, or a line break in the value.
pub fn parse_header(text: &str) -> Result<(String, String), RequestError> {
    let wrong = |error| RequestError::new("header", text, error);
    let Some((name, value)) = text.split_once(':') else {
        let message = "expected a name, a colon and a value, as in Accept: text/html";
        return Err(wrong(UnitError::new(0..text.len(), message)));
    };
    check_name(name.trim_end()).map_err(wrong)?;
    check_value(value).map_err(|error| wrong(error.shifted(name.len() + 1)))?;
    Ok((name.trim_end().to_owned(), value.trim().to_owned()))
}

/// Whether these bytes are a token of HTTP (RFC 9110): methods and names of fields.
pub(super) fn is_token(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.bytes().all(allowed)
}

pub(super) fn check_name(name: &str) -> Result<(), UnitError> {
    match is_token(name) {
        true => Ok(()),
        false if name.is_empty() => Err(UnitError::new(
            0..0,
            "the name of the header field is empty",
        )),
        false => Err(UnitError::new(
            0..name.len(),
            "the name of a header field has letters, digits and hyphens only",
        )),
    }
}

/// Whether a text may stand in the value of a field: neither line break nor other
/// control character, but tabs may.
pub(super) fn may_be_value(text: &str) -> bool {
    !text.bytes().any(is_control)
}

fn is_control(byte: u8) -> bool {
    (byte < b' ' && byte != b'\t') || byte == 0x7f
}

pub(super) fn check_value(value: &str) -> Result<(), UnitError> {
    match value.bytes().position(is_control) {
        None => Ok(()),
        Some(at) => Err(UnitError::new(
            at..at + 1,
            "a header field has no line breaks and no control characters",
        )),
    }
}

/// The literal text of a path, with what cannot stand in a URL percent-encoded, as
/// browsers do.
pub(super) fn literal_path(text: &str) -> Result<String, UnitError> {
    let bytes = text.as_bytes();
    let mut path = Vec::with_capacity(text.len());
    for (at, &byte) in bytes.iter().enumerate() {
        let fault = |message: &str| Err(UnitError::new(at..at + 1, message));
        match byte {
            b' ' => return fault("a space cannot stand in a path").map_err(|f| f.suggest("%20")),
            b'#' => {
                return fault("a fragment is never sent to a server").map_err(|f| f.suggest("%23"));
            }
            _ if is_control(byte) || byte == b'\t' => {
                return fault("a path has no line breaks and no control characters");
            }
            b'%' => {
                let hex = |offset| bytes.get(at + offset).is_some_and(u8::is_ascii_hexdigit);
                if !(hex(1) && hex(2)) {
                    return fault("two hexadecimal digits follow % in a path")
                        .map_err(|f| f.suggest("%25"));
                }
                path.push(byte);
            }
            _ if stands_in_url(byte) => path.push(byte),
            _ => encode(byte, &mut path),
        }
    }
    // Only ASCII was pushed.
    Ok(String::from_utf8(path).unwrap_or_default())
}

/// Appends a value as a part of a path or query: all but letters, digits and `-._~` is
/// percent-encoded, so that a value can neither leave its place nor add parameters.
pub(super) fn encode_value(value: &str, out: &mut Vec<u8>) {
    for &byte in value.as_bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => out.push(byte),
            false => encode(byte, out),
        }
    }
}

/// Appends a value that is a path itself, or a whole URL of which only the path counts.
/// `false`: it is neither, and nothing was appended.
pub(super) fn write_link(value: &str, out: &mut Vec<u8>) -> bool {
    let value = match value.split_once("://") {
        Some(("http" | "https", rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
        _ => value,
    };
    if !value.starts_with('/') {
        return false;
    }
    let value = value.split('#').next().unwrap_or(value);
    for &byte in value.as_bytes() {
        match stands_in_url(byte) || byte == b'%' {
            true => out.push(byte),
            false => encode(byte, out),
        }
    }
    true
}

/// Unreserved and reserved characters of RFC 3986 that occur in paths and queries.
fn stands_in_url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:/?@!$&'()*+,;=[]".contains(&byte)
}

fn encode(byte: u8, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    out.extend_from_slice(&[
        b'%',
        HEX[usize::from(byte >> 4)],
        HEX[usize::from(byte & 15)],
    ]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_fields_are_read() {
        let read = |text| parse_header(text).unwrap();
        assert_eq!(
            read("Accept: text/html"),
            ("Accept".into(), "text/html".into())
        );
        assert_eq!(read("X-Empty:"), ("X-Empty".into(), String::new()));
        assert_eq!(read("Host:a:80"), ("Host".into(), "a:80".into()));
        for (text, part) in [
            ("Accept", "a colon"),
            (": x", "is empty"),
            ("A b: x", "letters, digits"),
            ("A: x\r\nB: y", "line breaks"),
        ] {
            let error = parse_header(text).unwrap_err();
            assert!(error.message.contains(part), "{text:?}: {error}");
        }
    }

    #[test]
    fn paths_hold_only_what_urls_may() {
        let literal = |text| literal_path(text).unwrap();
        assert_eq!(literal("/a/b?c=d&e=%20"), "/a/b?c=d&e=%20");
        assert_eq!(literal("/é|\"{}"), "/%C3%A9%7C%22%7B%7D");
        for text in ["/a b", "/a#b", "/a\nb", "/50%", "/%g0"] {
            assert!(literal_path(text).is_err(), "{text:?}");
        }
        let mut out = Vec::new();
        encode_value("a/b?c&d=é \r\n", &mut out);
        assert_eq!(out, b"a%2Fb%3Fc%26d%3D%C3%A9%20%0D%0A");
    }

    #[test]
    fn links_keep_their_slashes() {
        let link = |value| {
            let mut out = Vec::new();
            write_link(value, &mut out).then(|| String::from_utf8(out).unwrap())
        };
        assert_eq!(link("/a/b?c=d#e").unwrap(), "/a/b?c=d");
        assert_eq!(link("https://other:8/a b\r\n").unwrap(), "/a%20b%0D%0A");
        assert_eq!(link("http://other").unwrap(), "/");
        assert_eq!(link("a/b"), None);
        assert_eq!(link("ftp://a/b"), None);
    }
}
