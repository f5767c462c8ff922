//! The two forms of S/MIME: signature beside the content, and around it.

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use memchr::memmem;

use super::{HEADER_BYTES, SignatureError, malformed};

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Bytes of a detached signature, encoded; with attributes and RSA-8192 it takes 3 kB.
const SIGNATURE_BYTES: usize = 64 << 10;

pub(super) enum Message<'a> {
    /// Content, and beside it the signature, decoded.
    Clear {
        content: &'a [u8],
        signature: Vec<u8>,
    },
    /// A signature that holds its content, decoded.
    Opaque(Vec<u8>),
}

/// Takes a message apart.
pub(super) fn read(message: &[u8]) -> Result<Message<'_>, SignatureError> {
    let (headers, body) = headers(message)?;
    match &*headers.media_type {
        "multipart/signed" => clear(&headers, body),
        "application/pkcs7-mime" | "application/x-pkcs7-mime" => {
            decode(body, message.len()).map(Message::Opaque)
        }
        other => Err(SignatureError::NotSigned {
            found: other.to_owned(),
        }),
    }
}

/// The text of content, which begins with a header that says it is text.
pub(super) fn text(content: &[u8]) -> Result<&[u8], SignatureError> {
    let (headers, text) = headers(content)?;
    if headers.media_type == "text/plain" {
        return Ok(text);
    }
    Err(SignatureError::Malformed {
        part: "content",
        problem: format!("it is {}, expected text/plain", headers.media_type),
    })
}

fn clear<'a>(headers: &Headers, body: &'a [u8]) -> Result<Message<'a>, SignatureError> {
    let boundary = headers
        .boundary
        .as_deref()
        .filter(|boundary| (1..=256).contains(&boundary.len()))
        .ok_or_else(|| malformed("its header names no boundary"))?;
    let delimiter = format!("--{boundary}");
    let (_, rest) = part(body, &delimiter, "its content")?;
    let (content, rest) = part(rest, &delimiter, "its signature")?;
    let (signature, _) = part(rest, &delimiter, "the end of its signature")?;
    let (headers, signature) = self::headers(signature)?;
    if !matches!(
        &*headers.media_type,
        "application/pkcs7-signature" | "application/x-pkcs7-signature"
    ) {
        return Err(malformed("its second part is no signature"));
    }
    let signature = decode(signature, SIGNATURE_BYTES)?;
    Ok(Message::Clear { content, signature })
}

/// What stands before the next delimiter, without the end of its last line, and what after it.
fn part<'a>(
    bytes: &'a [u8],
    delimiter: &str,
    missing: &'static str,
) -> Result<(&'a [u8], &'a [u8]), SignatureError> {
    let truncated = SignatureError::Truncated { missing };
    for at in memmem::find_iter(bytes, delimiter) {
        let (before, found) = bytes.split_at(at);
        let before = match before {
            [] => before,
            [before @ .., b'\r', b'\n'] | [before @ .., b'\n'] => before,
            _ => continue,
        };
        let after = found.get(delimiter.len()..).unwrap_or_default();
        let Some(end) = memchr::memchr(b'\n', after) else {
            let last = after.trim_ascii() == b"--";
            return if last {
                Ok((before, &[]))
            } else {
                Err(truncated)
            };
        };
        let (line, rest) = after.split_at(end + 1);
        if matches!(line.trim_ascii(), b"" | b"--") {
            return Ok((before, rest));
        }
    }
    Err(truncated)
}

#[derive(Default)]
struct Headers {
    media_type: String,
    boundary: Option<String>,
}

/// The headers that matter, and what follows them.
fn headers(bytes: &[u8]) -> Result<(Headers, &[u8]), SignatureError> {
    let mut lines: Vec<String> = Vec::new();
    let mut rest = bytes;
    loop {
        let end =
            memchr::memchr(b'\n', rest).filter(|end| bytes.len() - rest.len() + end < HEADER_BYTES);
        let Some(end) = end else {
            return Err(if bytes.len() > HEADER_BYTES {
                no_headers()
            } else {
                SignatureError::Truncated {
                    missing: "the end of its headers",
                }
            });
        };
        let (line, after) = rest.split_at(end + 1);
        rest = after;
        let line = String::from_utf8_lossy(line);
        let folded = line.starts_with([' ', '\t']);
        let line = line.trim();
        match lines.last_mut() {
            _ if line.is_empty() => break,
            Some(last) if folded => last.push_str(line),
            _ if !is_header(line) => return Err(no_headers()),
            _ => lines.push(line.to_owned()),
        }
    }
    let mut headers = Headers::default();
    for line in lines {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-type")
        {
            headers = Headers::of_content_type(value);
        }
    }
    if headers.media_type.is_empty() {
        headers.media_type = "no message with a type of content".to_owned();
    }
    Ok((headers, rest))
}

fn is_header(line: &str) -> bool {
    let name = line.split_once(':').map(|(name, _)| name.as_bytes());
    name.is_some_and(|name| name.iter().all(u8::is_ascii_graphic))
}

fn no_headers() -> SignatureError {
    let found = "no message with headers".to_owned();
    SignatureError::NotSigned { found }
}

impl Headers {
    fn of_content_type(value: &str) -> Self {
        let mut parts = value.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
        let boundary = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            let value = value.trim();
            let is_boundary = name.trim().eq_ignore_ascii_case("boundary");
            is_boundary.then(|| value.trim_matches('"').to_owned())
        });
        Self {
            media_type,
            boundary,
        }
    }
}

fn decode(encoded: &[u8], limit: usize) -> Result<Vec<u8>, SignatureError> {
    if encoded.len() > limit {
        return Err(malformed("it is too long"));
    }
    let mut encoded = encoded.to_vec();
    encoded.retain(|byte| !byte.is_ascii_whitespace());
    BASE64
        .decode(encoded)
        .map_err(|error| malformed(error.to_string()))
}
