//! How a request's fields say where its body ends, and whether the connection goes on.

use httparse::Header;

use super::RequestError;
use super::head::{RequestBody, RequestFraming};
use crate::http1::length::{decimal, list, names_framing};

/// Reads the fields that frame a request, in the order in which gorouter finds fault with
/// them. `minor` is the version behind `HTTP/1.`.
pub(super) fn framing(
    method: &str,
    minor: u8,
    headers: &[Header<'_>],
) -> Result<RequestFraming, RequestError> {
    let mut found = Found::default();
    for header in headers {
        // The length of a name tells most fields apart without reading them.
        match header.name.len() {
            4 if header.name.eq_ignore_ascii_case("host") => found.host(header.value)?,
            6 if header.name.eq_ignore_ascii_case("expect") => found.expect(header.value),
            7 if header.name.eq_ignore_ascii_case("trailer") => found.trailer(header.value),
            10 if header.name.eq_ignore_ascii_case("connection") => {
                for option in list(header.value) {
                    found.close |= option.eq_ignore_ascii_case(b"close");
                    found.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            14 if header.name.eq_ignore_ascii_case("content-length") => {
                found.content_length(header.value);
            }
            17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                found.codings += 1;
                found.chunked = header.value.eq_ignore_ascii_case(b"chunked");
            }
            _ => {}
        }
    }
    found.framing(method, minor)
}

/// The fields that frame a request.
#[derive(Default)]
struct Found<'a> {
    host: Option<&'a [u8]>,
    /// The first length as it is written, and what it says.
    length: Option<(&'a [u8], Result<u64, RequestError>)>,
    codings: u32,
    chunked: bool,
    frames_behind: bool,
    close: bool,
    keep_alive: bool,
    expects: bool,
    expects_continue: bool,
    expects_other: bool,
}

impl<'a> Found<'a> {
    fn host(&mut self, value: &'a [u8]) -> Result<(), RequestError> {
        match self.host.replace(value) {
            None => Ok(()),
            Some(_) => Err(RequestError::HostConflict),
        }
    }

    /// Go compares several as they are written: `5` and `05` differ.
    fn content_length(&mut self, value: &'a [u8]) {
        if let Some((first, length)) = &mut self.length {
            if *first != value {
                *length = Err(RequestError::ContentLengthConflict);
            }
            return;
        }
        // Go keeps lengths in 63 bits.
        let length = decimal(value).filter(|length| i64::try_from(*length).is_ok());
        let length = length.ok_or(if value.is_empty() {
            RequestError::ContentLengthEmpty
        } else {
            RequestError::ContentLength
        });
        self.length = Some((value, length));
    }

    /// The first one counts, as in Go, whose items end with a space too.
    fn expect(&mut self, value: &[u8]) {
        if std::mem::replace(&mut self.expects, true) {
            return;
        }
        let mut items = value.split(|byte| matches!(byte, b',' | b' ' | b'\t'));
        self.expects_continue = items.any(|item| item.eq_ignore_ascii_case(b"100-continue"));
        self.expects_other = !self.expects_continue && !value.is_empty();
    }

    fn trailer(&mut self, value: &[u8]) {
        self.frames_behind |= names_framing(value);
    }

    fn framing(self, method: &str, minor: u8) -> Result<RequestFraming, RequestError> {
        if self.codings > 0 && minor == 0 {
            return Err(RequestError::TransferEncodingVersion);
        }
        if self.codings > 1 || (self.codings == 1 && !self.chunked) {
            return Err(RequestError::TransferEncoding);
        }
        // A length that is none is refused beside `chunked` too: somebody before us may
        // have gone by it.
        let length = self.length.map(|(_, length)| length).transpose()?;
        if self.chunked && self.frames_behind {
            return Err(RequestError::Trailer);
        }
        match self.host {
            Some(host) if !host.iter().all(|byte| HOST_BYTES[usize::from(*byte)]) => {
                return Err(RequestError::Host);
            }
            None if minor == 1 && method != "CONNECT" => return Err(RequestError::HostMissing),
            _ => {}
        }
        if self.expects_other {
            return Err(RequestError::Expectation);
        }
        let body = match length {
            _ if self.chunked => RequestBody::Chunked,
            None | Some(0) => RequestBody::None,
            Some(length) => RequestBody::Exactly(length),
        };
        let length_ignored = self.chunked && length.is_some();
        Ok(RequestFraming {
            body,
            keep_alive: (minor == 1 || self.keep_alive) && !self.close && !length_ignored,
            expects_continue: self.expects_continue && minor == 1 && body != RequestBody::None,
            length_ignored,
        })
    }
}

/// Bytes of `uri-host [ ":" port ]` (RFC 3986 section 3.2.2).
const HOST_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let others = b"!$%&()*+,-.:;='[]_~";
    let mut at = 0;
    while at < others.len() {
        table[others[at] as usize] = true;
        at += 1;
    }
    table
};
