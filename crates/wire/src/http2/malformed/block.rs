//! Field blocks (RFC 7541 section 6): whether all of their fields can be ones.

use http::{HeaderName, Method, StatusCode};

use super::table::{CONTENT_LENGTH, Kind, Name, Table};
use super::{Unreadable, huffman};

/// A field that every reader takes for malformed (RFC 9113 section 8.2.2), and no table keeps.
const MARK: &[u8] = b"\x10\x02te\x01x";

/// Reads the blocks of one direction of a connection, one after the other.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    table: Table,
    /// What a malformed block is replaced by.
    kept: Vec<u8>,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Blocks {
    /// Reads the next block. If it has a field that is none, this is what to hand on instead: a
    /// block that is malformed in a way that every reader survives, and that leaves tables of
    /// the same sizes. An entry that is malformed is replaced in them by one that is so too.
    ///
    /// # Errors
    /// When the compression is wrong, or there is no such block. Nothing behind it can be read.
    pub(super) fn read(&mut self, block: &[u8]) -> Result<Option<&[u8]>, Unreadable> {
        self.kept.clear();
        let (mut rest, mut malformed, mut begun) = (block, false, false);
        while let Some(&first) = rest.first() {
            let whole = rest;
            if first & 0xe0 == 0x20 {
                // Only before the first field (section 4.2).
                if begun {
                    return Err(Unreadable);
                }
                self.table.resize(integer(&mut rest, 5)?)?;
                self.kept.extend_from_slice(read_so_far(whole, rest));
                continue;
            }
            begun = true;
            if first & 0x80 != 0 {
                let index = integer(&mut rest, 7)?;
                let none = self.table.name(index)?.kind == Kind::None;
                malformed |= none || index == CONTENT_LENGTH;
                continue;
            }
            let enters = first & 0x40 != 0;
            let index = integer(&mut rest, if enters { 6 } else { 4 })?;
            let mut name = match index {
                0 => name_of(string(&mut rest, &mut self.name)?),
                index => self.table.name(index)?,
            };
            let value = string(&mut rest, &mut self.value)?;
            if !may_be(name.kind, value) {
                malformed = true;
                name.kind = Kind::None;
            }
            if enters {
                let value_length = value.len();
                if name.kind == Kind::None {
                    replace(name.length + value_length, &mut self.kept)?;
                } else {
                    self.kept.extend_from_slice(read_so_far(whole, rest));
                }
                self.table.insert(name, value_length);
            }
        }
        if !malformed {
            return Ok(None);
        }
        self.kept.extend_from_slice(MARK);
        Ok(Some(&self.kept))
    }
}

fn read_so_far<'b>(whole: &'b [u8], rest: &[u8]) -> &'b [u8] {
    whole.get(..whole.len() - rest.len()).unwrap_or_default()
}

/// A literal that enters the table, malformed, of which name and value have so many bytes.
fn replace(length: usize, kept: &mut Vec<u8>) -> Result<(), Unreadable> {
    let value = length.checked_sub(2).ok_or(Unreadable)?;
    kept.extend_from_slice(b"\x40\x02te");
    // Section 5.1.
    match value.checked_sub(0x7f) {
        None => kept.push(value as u8),
        Some(mut more) => {
            kept.push(0x7f);
            while more >= 0x80 {
                kept.push(more as u8 | 0x80);
                more >>= 7;
            }
            kept.push(more as u8);
        }
    }
    kept.resize(kept.len() + value, b'x');
    Ok(())
}

fn name_of(text: &[u8]) -> Name {
    let kind = match text {
        b":authority" | b":path" | b":protocol" | b":scheme" => Kind::Text,
        b":method" => Kind::Method,
        b"content-length" => Kind::Length,
        b":status" => Kind::Status,
        text if HeaderName::from_lowercase(text).is_ok() => Kind::Field,
        _ => Kind::None,
    };
    Name {
        kind,
        length: text.len(),
    }
}

/// Whether a field of this kind may have this value (RFC 9113 sections 8.2.1 and 8.3).
fn may_be(kind: Kind, value: &[u8]) -> bool {
    match kind {
        Kind::Field => value
            .iter()
            .all(|&byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f)),
        // Which the codec takes for none if it is empty.
        Kind::Length => !value.is_empty() && value.iter().all(u8::is_ascii_digit),
        Kind::Text => std::str::from_utf8(value).is_ok(),
        Kind::Method => Method::from_bytes(value).is_ok(),
        Kind::Status => StatusCode::from_bytes(value).is_ok(),
        Kind::None => false,
    }
}

/// Section 5.1, of at most five bytes.
fn integer(rest: &mut &[u8], prefix: u32) -> Result<usize, Unreadable> {
    let (&first, mut behind) = rest.split_first().ok_or(Unreadable)?;
    let most = (1_usize << prefix) - 1;
    let mut value = usize::from(first) & most;
    if value == most {
        for shift in [0, 7, 14, 21, 28] {
            let (&byte, further) = behind.split_first().ok_or(Unreadable)?;
            if shift == 28 {
                return Err(Unreadable);
            }
            behind = further;
            value += usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *rest = behind;
    Ok(value)
}

/// Section 5.2.
fn string<'t, 'b: 't>(rest: &mut &'b [u8], text: &'t mut Vec<u8>) -> Result<&'t [u8], Unreadable> {
    let compressed = rest.first().ok_or(Unreadable)? & 0x80 != 0;
    let length = integer(rest, 7)?;
    let (bytes, behind) = rest.split_at_checked(length).ok_or(Unreadable)?;
    *rest = behind;
    if !compressed {
        return Ok(bytes);
    }
    text.clear();
    huffman::decode(bytes, text)?;
    Ok(text)
}
