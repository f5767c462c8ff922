//! The chunked transfer coding (RFC 9112 section 7.1).

use super::{Limits, MOST_FIELDS, ResponseError, Sink};

/// Where a chunked body stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunked {
    /// Before a chunk's size.
    Size,
    /// Within a chunk, so many bytes before its end.
    Data(u64),
    /// Behind a chunk's data.
    DataEnd,
    /// Behind the last chunk.
    Trailers,
}

/// How far a scan of a chunked body came.
pub(super) struct Progress {
    pub(super) consumed: usize,
    pub(super) ended: bool,
}

impl Chunked {
    /// Scans as much as it can. What is incomplete stays unconsumed: at most a chunk's
    /// line or the trailers.
    pub(super) fn scan<S: Sink>(
        &mut self,
        input: &[u8],
        limits: &Limits,
        body_bytes: &mut u64,
        sink: &mut S,
    ) -> Result<Progress, ResponseError> {
        let mut consumed = 0;
        loop {
            let rest = &input[consumed..];
            match *self {
                Self::Size => {
                    let Some((length, size)) = size_line(rest, limits.chunk_line_bytes)? else {
                        break;
                    };
                    consumed += length;
                    *self = if size == 0 {
                        Self::Trailers
                    } else {
                        Self::Data(size)
                    };
                }
                Self::Data(left) => {
                    let take =
                        usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()));
                    if take == 0 {
                        break;
                    }
                    sink.body(&rest[..take]);
                    *body_bytes = body_bytes.saturating_add(take as u64);
                    consumed += take;
                    *self = match left - take as u64 {
                        0 => Self::DataEnd,
                        left => Self::Data(left),
                    };
                }
                Self::DataEnd => match rest {
                    [b'\r', b'\n', ..] => {
                        consumed += 2;
                        *self = Self::Size;
                    }
                    [] | [b'\r'] => break,
                    _ => return Err(ResponseError::ChunkEnd),
                },
                Self::Trailers => {
                    let Some(length) = trailers(rest, limits, sink)? else {
                        break;
                    };
                    consumed += length;
                    return Ok(Progress {
                        consumed,
                        ended: true,
                    });
                }
            }
        }
        Ok(Progress {
            consumed,
            ended: false,
        })
    }
}

/// Length of the line and the chunk's size; `None` while the line is incomplete.
fn size_line(input: &[u8], most: usize) -> Result<Option<(usize, u64)>, ResponseError> {
    let input = &input[..input.len().min(most)];
    let incomplete = if input.len() == most {
        Err(ResponseError::ChunkLineTooLong)
    } else {
        Ok(None)
    };
    let mut size = 0_u64;
    let mut digits = 0;
    for byte in input {
        let Some(digit) = (*byte as char).to_digit(16) else {
            break;
        };
        if size >> 60 != 0 {
            return Err(ResponseError::ChunkSize);
        }
        size = size << 4 | u64::from(digit);
        digits += 1;
    }
    match &input[digits..] {
        [] | [b'\r'] => return incomplete,
        [b'\r', b'\n', ..] if digits > 0 => return Ok(Some((digits + 2, size))),
        [b';' | b' ' | b'\t', ..] if digits > 0 => {}
        _ => return Err(ResponseError::ChunkSize),
    }
    // Extensions are skipped, but must not hide a line end that others would see.
    let extensions = &input[digits..];
    let Some(end) = memchr::memchr2(b'\r', b'\n', extensions) else {
        return match extensions.trim_ascii_start() {
            [] | [b';', ..] => incomplete,
            _ => Err(ResponseError::ChunkSize),
        };
    };
    if !matches!(extensions[..end].trim_ascii_start(), [] | [b';', ..]) {
        return Err(ResponseError::ChunkSize);
    }
    match &extensions[end..] {
        [b'\r', b'\n', ..] => Ok(Some((digits + end + 2, size))),
        [b'\r'] => incomplete,
        _ => Err(ResponseError::ChunkSize),
    }
}

/// Length of the trailer section with its empty line; `None` while it is incomplete.
fn trailers<S: Sink>(
    input: &[u8],
    limits: &Limits,
    sink: &mut S,
) -> Result<Option<usize>, ResponseError> {
    if let [b'\r', b'\n', ..] = input {
        return Ok(Some(2));
    }
    let section = &input[..input.len().min(limits.head_bytes)];
    let mut headers = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let most = limits.fields.min(MOST_FIELDS);
    match httparse::parse_headers(section, &mut headers[..most]) {
        Ok(httparse::Status::Complete((length, found))) => {
            if !found.is_empty() {
                sink.trailers(without_empty_line(&section[..length]));
            }
            Ok(Some(length))
        }
        Ok(httparse::Status::Partial) if section.len() < limits.head_bytes => Ok(None),
        Ok(httparse::Status::Partial) | Err(_) => Err(ResponseError::Trailers),
    }
}

/// A section of field lines without the empty line that ends it.
pub(super) fn without_empty_line(section: &[u8]) -> &[u8] {
    let section = section.strip_suffix(b"\n").unwrap_or(section);
    section.strip_suffix(b"\r").unwrap_or(section)
}
