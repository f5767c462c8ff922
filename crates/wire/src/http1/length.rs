//! How an answer's head says where its body ends, and whether the connection goes on.

use httparse::Header;

use super::{Expect, ResponseError};

/// How a body ends (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyLength {
    /// After so many bytes.
    Exactly(u64),
    /// With the last chunk.
    Chunked,
    /// With the connection.
    UntilClose,
    /// There is none, and what follows is another protocol.
    Upgraded,
}

/// What a head says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Framing {
    pub(super) length: BodyLength,
    pub(super) keep_alive: bool,
}

/// Reads the fields that frame an answer. `minor` is the version behind `HTTP/1.`; `as_go`:
/// see [`Limits::as_go`](super::Limits::as_go).
pub(super) fn framing(
    status: u16,
    minor: u8,
    headers: &[Header<'_>],
    expect: Expect,
    as_go: bool,
) -> Result<Framing, ResponseError> {
    let mut content_length = None;
    let mut coding = Coding::default();
    let mut close = false;
    let mut frames_behind = false;
    let mut keep_alive = minor == 1;
    let bodiless = expect == Expect::NoBody || matches!(status, 204 | 304);
    let ignored = bodiless && !as_go;
    let upgraded = status == 101 || (expect == Expect::Tunnel && (200..300).contains(&status));
    for header in headers {
        // The length of a name tells most fields apart without reading them.
        match header.name.len() {
            7 if as_go && header.name.eq_ignore_ascii_case("trailer") => {
                frames_behind |= names_framing(header.value);
            }
            10 if header.name.eq_ignore_ascii_case("connection") => {
                for option in list(header.value) {
                    close |= option.eq_ignore_ascii_case(b"close");
                    keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            14 if !ignored && header.name.eq_ignore_ascii_case("content-length") => {
                read_content_length(header.value, as_go, &mut content_length)?;
            }
            17 if !ignored && header.name.eq_ignore_ascii_case("transfer-encoding") => {
                let known = !coding.present && header.value.eq_ignore_ascii_case(b"chunked");
                if as_go && minor == 0 {
                    // Whoever wrote it may mean it (RFC 9112 section 6.1): nothing else is
                    // read from that connection.
                    close = true;
                } else if as_go && !known {
                    return Err(ResponseError::TransferEncoding);
                } else {
                    coding.read(header.value)?;
                }
            }
            _ => {}
        }
    }
    // What Go does without chunks is to look at no Trailer at all.
    if coding.present && frames_behind {
        return Err(ResponseError::Trailer);
    }
    keep_alive &= !close;
    if upgraded {
        return Ok(Framing {
            length: BodyLength::Upgraded,
            keep_alive: false,
        });
    }
    if bodiless {
        return Ok(Framing {
            length: BodyLength::Exactly(0),
            keep_alive,
        });
    }
    let length = if coding.present {
        if minor == 0 {
            // Section 6.1: framing of such a message is faulty.
            return Err(ResponseError::TransferEncoding);
        }
        // Section 6.3 rule 3: Transfer-Encoding wins over Content-Length, and a
        // message with both might be an attempt to smuggle: nothing else is read
        // from that connection.
        keep_alive &= content_length.is_none();
        if coding.chunked_last {
            BodyLength::Chunked
        } else {
            BodyLength::UntilClose
        }
    } else {
        content_length.map_or(BodyLength::UntilClose, |(_, length)| {
            BodyLength::Exactly(length)
        })
    };
    keep_alive &= length != BodyLength::UntilClose;
    Ok(Framing { length, keep_alive })
}

/// Section 6.3 rule 5: a list of equal values counts as one. Go has no lists, keeps lengths
/// in 63 bits, and compares several as they are written. `known` is the last one, with its text.
fn read_content_length<'h>(
    value: &'h [u8],
    as_go: bool,
    known: &mut Option<(&'h [u8], u64)>,
) -> Result<(), ResponseError> {
    let value = value.trim_ascii();
    if as_go && known.is_some_and(|(written, _)| written != value) {
        return Err(ResponseError::ContentLengthConflict);
    }
    if as_go && value.contains(&b',') {
        return Err(ResponseError::ContentLength);
    }
    for part in value.split(|&byte| byte == b',') {
        let number = decimal(part.trim_ascii()).ok_or(ResponseError::ContentLength)?;
        if as_go && i64::try_from(number).is_err() {
            return Err(ResponseError::ContentLength);
        }
        if known.is_some_and(|(_, known)| known != number) {
            return Err(ResponseError::ContentLengthConflict);
        }
        *known = Some((value, number));
    }
    Ok(())
}

/// A decimal number of 64 bits: digits and nothing else.
pub(super) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Transfer codings over all fields of that name, in order.
#[derive(Default)]
struct Coding {
    present: bool,
    chunked: bool,
    chunked_last: bool,
}

impl Coding {
    fn read(&mut self, value: &[u8]) -> Result<(), ResponseError> {
        self.present = true;
        for coding in list(value) {
            let name = coding
                .split(|&byte| byte == b';')
                .next()
                .unwrap_or_default();
            self.chunked_last = name.trim_ascii().eq_ignore_ascii_case(b"chunked");
            if self.chunked_last {
                // Section 7: once, and without parameters.
                if self.chunked || name.len() != coding.len() {
                    return Err(ResponseError::TransferEncoding);
                }
                self.chunked = true;
            }
        }
        Ok(())
    }
}

/// Whether a `Trailer` names a field that frames a message, which cannot stand behind its body.
pub(super) fn names_framing(value: &[u8]) -> bool {
    list(value).any(|name| {
        [&b"content-length"[..], b"trailer", b"transfer-encoding"]
            .iter()
            .any(|framing| name.eq_ignore_ascii_case(framing))
    })
}

/// Members of a comma-separated list, empty ones left out (RFC 9110 section 5.6.1).
pub(super) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|&byte| byte == b',')
        .map(<[u8]>::trim_ascii)
        .filter(|member| !member.is_empty())
}
