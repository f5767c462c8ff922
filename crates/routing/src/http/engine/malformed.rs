//! What is wrong with an answer, in the words that operators know from Go.

use wire::http1::ResponseError;

use crate::http::access_log::quoted;

/// Bytes of a line that are told.
const TOLD: usize = 100;

/// The error's text for the router error; `bytes` begin with the answer. A backend that
/// speaks TLS on a plain port is recognised by it: `malformed HTTP response "\x15\x03..."`.
pub(super) fn text(error: ResponseError, bytes: &[u8]) -> String {
    if error != ResponseError::StatusLine {
        return error.cause().to_owned();
    }
    let line = memchr::memchr(b'\n', bytes).map_or(bytes, |end| &bytes[..end]);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let cut = |text: &[u8]| memchr::memchr(b' ', text);
    let (what, part) = match cut(line) {
        None => ("response", line),
        Some(at) => {
            let rest = &line[at + 1..];
            let code = cut(rest).map_or(rest, |end| &rest[..end]);
            match code.len() == 3 && code.iter().all(u8::is_ascii_digit) {
                true => ("version", &line[..at]),
                false => ("status code", code),
            }
        }
    };
    let mut told = Vec::new();
    quoted(&part[..part.len().min(TOLD)], &mut told);
    format!(
        "malformed HTTP {what} \"{}\"",
        String::from_utf8_lossy(&told)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_is_told_as_go_tells_it() {
        for (bytes, expected) in [
            (
                &b"nonsense\r\n"[..],
                r#"malformed HTTP response "nonsense""#,
            ),
            (
                b"\x15\x03\x01\0\x02\x02F",
                r#"malformed HTTP response "\x15\x03\x01\x00\x02\x02F""#,
            ),
            (b"HTTP/1.1 20 OK\r\n", r#"malformed HTTP status code "20""#),
            (b"HTTP/1.1 abc\r\n", r#"malformed HTTP status code "abc""#),
            (b"ICY 200 OK\r\n", r#"malformed HTTP version "ICY""#),
        ] {
            assert_eq!(text(ResponseError::StatusLine, bytes), expected);
        }
        assert_eq!(
            text(ResponseError::StatusLine, &[b'x'; 500]).len(),
            26 + TOLD
        );
        assert_eq!(
            text(ResponseError::Field, b"x"),
            ResponseError::Field.cause()
        );
    }
}
