//! The chunked transfer coding (RFC 9112 section 7.1).

use super::scanner::may_end;
use super::{BodyScan, FIELDS_ON_STACK, Limits, Sink};

/// What is wrong with a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ChunkError {
    /// The line before a chunk does not hold a size.
    #[error("expected a chunk's size (hexadecimal, 64 bits, ended by CRLF), found something else")]
    Size,
    /// The line before a chunk is longer than [`Limits::chunk_line_bytes`].
    #[error("the line before a chunk, with its extensions, is longer than the limit")]
    LineTooLong,
    /// No CRLF behind a chunk's data.
    #[error("expected CRLF behind a chunk's data, found something else")]
    End,
    /// Trailers that are not fields, too many, or too large.
    #[error("the trailers behind the last chunk are not header fields, or exceed a limit")]
    Trailers,
}

impl ChunkError {
    /// The same as a short constant text, to count by.
    pub const fn cause(self) -> &'static str {
        match self {
            Self::Size => "bad chunk size",
            Self::LineTooLong => "chunk line too long",
            Self::End => "bad chunk end",
            Self::Trailers => "bad trailers",
        }
    }
}

/// How lines of the trailers may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    /// With CRLF or a bare LF.
    Lenient,
    /// With CRLF.
    Strict,
}

/// Where a chunked body stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunked {
    /// Before a chunk's size.
    Size,
    /// Within a chunk, so many bytes before its end.
    Data(u64),
    /// Behind a chunk's data.
    DataEnd,
    /// Behind the last chunk. The end of the trailers is not among so many bytes of them.
    Trailers(usize),
}

impl Chunked {
    /// Scans as much as it can. What is incomplete stays unconsumed: at most a chunk's
    /// line or the trailers.
    pub(super) fn scan<S: Sink>(
        &mut self,
        input: &[u8],
        limits: &Limits,
        lines: Lines,
        body_bytes: &mut u64,
        sink: &mut S,
    ) -> Result<BodyScan, ChunkError> {
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
                        Self::Trailers(0)
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
                    _ => return Err(ChunkError::End),
                },
                Self::Trailers(seen) => {
                    // As with heads: what comes byte by byte is not parsed each time.
                    // From the second byte on, it is not the empty line alone.
                    if seen > 1 && !may_end(rest, seen) && rest.len() < limits.head_bytes {
                        *self = Self::Trailers(rest.len());
                        break;
                    }
                    let Some(length) = trailers(rest, limits, lines, sink)? else {
                        *self = Self::Trailers(rest.len());
                        break;
                    };
                    consumed += length;
                    return Ok(BodyScan {
                        consumed,
                        ended: true,
                    });
                }
            }
        }
        Ok(BodyScan {
            consumed,
            ended: false,
        })
    }
}

/// Length of the line and the chunk's size; `None` while the line is incomplete.
fn size_line(input: &[u8], most: usize) -> Result<Option<(usize, u64)>, ChunkError> {
    let input = &input[..input.len().min(most)];
    let incomplete = if input.len() == most {
        Err(ChunkError::LineTooLong)
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
            return Err(ChunkError::Size);
        }
        size = size << 4 | u64::from(digit);
        digits += 1;
    }
    match &input[digits..] {
        [] | [b'\r'] => return incomplete,
        [b'\r', b'\n', ..] if digits > 0 => return Ok(Some((digits + 2, size))),
        [b';' | b' ' | b'\t', ..] if digits > 0 => {}
        _ => return Err(ChunkError::Size),
    }
    // Extensions are skipped, but must not hide a line end that others would see.
    let extensions = &input[digits..];
    let Some(end) = memchr::memchr2(b'\r', b'\n', extensions) else {
        return match extensions.trim_ascii_start() {
            [] | [b';', ..] => incomplete,
            _ => Err(ChunkError::Size),
        };
    };
    if !matches!(extensions[..end].trim_ascii_start(), [] | [b';', ..]) {
        return Err(ChunkError::Size);
    }
    match &extensions[end..] {
        [b'\r', b'\n', ..] => Ok(Some((digits + end + 2, size))),
        [b'\r'] => incomplete,
        _ => Err(ChunkError::Size),
    }
}

/// Length of the trailer section with its empty line; `None` while it is incomplete.
fn trailers<S: Sink>(
    input: &[u8],
    limits: &Limits,
    lines: Lines,
    sink: &mut S,
) -> Result<Option<usize>, ChunkError> {
    if let [b'\r', b'\n', ..] = input {
        return Ok(Some(2));
    }
    let section = &input[..input.len().min(limits.head_bytes)];
    let mut headers = [httparse::EMPTY_HEADER; FIELDS_ON_STACK];
    let most = limits.fields.min(FIELDS_ON_STACK);
    match httparse::parse_headers(section, &mut headers[..most]) {
        Ok(httparse::Status::Complete((length, found))) => {
            if lines == Lines::Strict && bare_line_end(&section[..length]) {
                return Err(ChunkError::Trailers);
            }
            if !found.is_empty() {
                sink.trailers(without_empty_line(&section[..length]));
            }
            Ok(Some(length))
        }
        Ok(httparse::Status::Partial) if section.len() < limits.head_bytes => Ok(None),
        Ok(httparse::Status::Partial) | Err(_) => Err(ChunkError::Trailers),
    }
}

/// Whether a line ends with an LF alone.
fn bare_line_end(section: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', section).any(|at| at == 0 || section[at - 1] != b'\r')
}

/// A section of field lines without the empty line that ends it.
pub(super) fn without_empty_line(section: &[u8]) -> &[u8] {
    let section = section.strip_suffix(b"\n").unwrap_or(section);
    section.strip_suffix(b"\r").unwrap_or(section)
}
