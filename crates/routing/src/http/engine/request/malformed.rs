//! What is wrong with an answer, in the words that operators know from Go.

use wire::http1::ResponseError;

use crate::http::access_log::quoted;
use crate::http::pipeline::retry::TOO_MANY_FIELDS;

/// Bytes of a line that are told.
const TOLD: usize = 100;

/// The error's text for the router error; `bytes` begin with the answer, whose head may have
/// `most` bytes. A backend that speaks TLS on a plain port is recognised by it:
/// `malformed HTTP response "\x15\x03..."`.
pub(super) fn text(error: ResponseError, bytes: &[u8], most: usize) -> String {
    let mut lines = lines(bytes);
    let first = lines.next().unwrap_or_default();
    let values = |lines: &mut dyn Iterator<Item = &[u8]>, name: &[u8]| -> Vec<String> {
        let named = lines.filter_map(|line| value_of(line, name));
        named.map(quote).collect()
    };
    match error {
        ResponseError::StatusLine => status_line(first),
        ResponseError::Field => match lines.find(|line| !is_field(line)) {
            Some(line) if !line.contains(&b':') => {
                format!("malformed MIME header: missing colon: {}", quote(line))
            }
            Some(line) => format!("malformed MIME header line: {}", quote(line)),
            None => error.cause().to_owned(),
        },
        // Go compares several before it reads one.
        ResponseError::ContentLength | ResponseError::ContentLengthConflict => {
            match values(&mut lines, b"Content-Length").as_slice() {
                [first, more @ ..] if more.iter().any(|value| value != first) => format!(
                    "http: message cannot contain multiple Content-Length headers; got [{first} {}]",
                    more.join(" ")
                ),
                [empty, ..] if empty == "\"\"" => "invalid empty Content-Length \"\"".to_owned(),
                [value, ..] => format!("bad Content-Length {value}"),
                [] => error.cause().to_owned(),
            }
        }
        ResponseError::TransferEncoding => {
            match values(&mut lines, b"Transfer-Encoding").as_slice() {
                [one] => format!("unsupported transfer encoding: {one}"),
                several => format!("too many transfer encodings: [{}]", several.join(" ")),
            }
        }
        ResponseError::Trailer => {
            let values = lines.filter_map(|line| value_of(line, b"Trailer"));
            let mut names = values.flat_map(|value| value.split(|byte| *byte == b','));
            let framing = ["Content-Length", "Trailer", "Transfer-Encoding"];
            let named = names.find_map(|name| {
                let name = name.trim_ascii();
                framing
                    .into_iter()
                    .find(|framing| name.eq_ignore_ascii_case(framing.as_bytes()))
            });
            format!("bad trailer key \"{}\"", named.unwrap_or_default())
        }
        ResponseError::HeadTooLarge => {
            format!("net/http: server response headers exceeded {most} bytes; aborted")
        }
        ResponseError::TooManyFields => TOO_MANY_FIELDS.to_owned(),
        _ => error.cause().to_owned(),
    }
}

/// The same for an answer that ended within its head.
pub(super) fn cut_short(bytes: &[u8], most: usize) -> String {
    let mut lines = lines(bytes);
    let first = lines.next().unwrap_or_default();
    let whole = bytes.ends_with(b"\n");
    match lines.last() {
        None if !whole => status_line(first),
        Some(line) if !whole && !is_field(line) => text(ResponseError::Field, bytes, most),
        _ => "unexpected EOF".to_owned(),
    }
}

fn status_line(line: &[u8]) -> String {
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
    format!("malformed HTTP {what} {}", quote(part))
}

/// The lines of a head, without their ends and without the empty one.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = bytes.split(|byte| *byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.take_while(|line| !line.is_empty())
}

fn is_field(line: &[u8]) -> bool {
    let Some(colon) = memchr::memchr(b':', line) else {
        return false;
    };
    let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let text = |byte: &u8| *byte == b'\t' || !byte.is_ascii_control();
    colon > 0 && line[..colon].iter().all(token) && line[colon..].iter().all(text)
}

fn value_of<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    let colon = memchr::memchr(b':', line)?;
    let named = line[..colon].eq_ignore_ascii_case(name);
    named.then(|| line[colon + 1..].trim_ascii())
}

/// In quotes, as Go writes it.
pub(super) fn quote(text: &[u8]) -> String {
    let mut told = Vec::new();
    quoted(&text[..text.len().min(TOLD)], &mut told);
    format!("\"{}\"", String::from_utf8_lossy(&told))
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
            assert_eq!(text(ResponseError::StatusLine, bytes, 9), expected);
        }
        assert_eq!(
            text(ResponseError::StatusLine, &[b'x'; 500], 9).len(),
            26 + TOLD
        );
    }

    #[test]
    fn a_head_is_told_as_go_tells_it() {
        use ResponseError::{
            ContentLength, ContentLengthConflict, Field, HeadTooLarge, Trailer, TransferEncoding,
        };
        for (error, fields, expected) in [
            (
                Field,
                "A: b\r\nXnocolon\r\n",
                r#"malformed MIME header: missing colon: "Xnocolon""#,
            ),
            (
                Field,
                "X(A): b\r\n",
                r#"malformed MIME header line: "X(A): b""#,
            ),
            (
                Field,
                "X-A: b\x01c\r\n",
                r#"malformed MIME header line: "X-A: b\x01c""#,
            ),
            (
                ContentLength,
                "content-length: abc\r\n",
                r#"bad Content-Length "abc""#,
            ),
            (
                ContentLength,
                "Content-Length: \r\n",
                r#"invalid empty Content-Length """#,
            ),
            (
                ContentLengthConflict,
                "Content-Length: 2\r\nContent-Length: 3\r\n",
                r#"http: message cannot contain multiple Content-Length headers; got ["2" "3"]"#,
            ),
            (
                ContentLength,
                "Content-Length: abc\r\nContent-Length: 3\r\n",
                r#"http: message cannot contain multiple Content-Length headers; got ["abc" "3"]"#,
            ),
            (
                ContentLength,
                "Content-Length: abc\r\nContent-Length:  abc\r\n",
                r#"bad Content-Length "abc""#,
            ),
            (
                TransferEncoding,
                "Transfer-Encoding: gzip\r\n",
                r#"unsupported transfer encoding: "gzip""#,
            ),
            (
                TransferEncoding,
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n",
                r#"too many transfer encodings: ["chunked" "gzip"]"#,
            ),
            (
                Trailer,
                "Trailer: X\r\ntrailer: Y, content-length\r\n",
                r#"bad trailer key "Content-Length""#,
            ),
            (
                HeadTooLarge,
                "",
                "net/http: server response headers exceeded 4096 bytes; aborted",
            ),
        ] {
            let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
            assert_eq!(text(error, head.as_bytes(), 4096), expected);
        }
    }

    #[test]
    fn a_head_that_ends_early_is_told_as_go_tells_it() {
        for (bytes, expected) in [
            (&b"HT"[..], r#"malformed HTTP response "HT""#),
            (
                b"HTTP/1.1 200 OK\r\nConte",
                r#"malformed MIME header: missing colon: "Conte""#,
            ),
            (b"HTTP/1.1 200 OK\r\nX-A: b", "unexpected EOF"),
            (b"HTTP/1.1 200 OK\r\nX-A: b\r\n", "unexpected EOF"),
            (b"HTTP/1.1 200 OK\r\n", "unexpected EOF"),
        ] {
            assert_eq!(cut_short(bytes, 4096), expected);
        }
    }
}
