//! Field blocks that are received (RFC 7541 section 6).

use super::table::{Entry, Table};
use super::{OVERHEAD, Unreadable, huffman, integer};
use crate::http2::codec::fields::Fields;
use crate::http2::codec::names::Kind;

/// Reads the blocks of one direction of a connection, one after the other.
#[derive(Debug, Default)]
pub(in crate::http2::codec) struct Decoder {
    table: Table,
    name: Vec<u8>,
    value: Vec<u8>,
}

/// What became of a block that could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http2::codec) enum Decoded {
    /// All of its fields can be ones.
    Good,
    /// One cannot be, or may not stand where it does.
    Malformed,
    /// They are more than is taken.
    TooLarge,
}

/// What is done with the fields of a block.
struct FieldSink<'f> {
    fields: &'f mut Fields,
    size: usize,
    most: usize,
    decoded: Decoded,
}

impl FieldSink<'_> {
    #[inline]
    fn take(&mut self, entry: Entry<'_>) {
        self.size = self
            .size
            .saturating_add(entry.name.len() + entry.value.len() + OVERHEAD);
        if self.decoded != Decoded::Good {
            return;
        }
        if !entry.good {
            self.decoded = Decoded::Malformed;
        } else if self.size > self.most {
            self.decoded = Decoded::TooLarge;
        } else if !self.fields.add(entry.kind, entry.name, entry.value) {
            self.decoded = Decoded::Malformed;
        }
    }
}

impl Decoder {
    /// Reads the next block into `fields`, which are empty, as long as these are of no more than
    /// `most` bytes (RFC 9113 section 6.5.2). Whatever becomes of it, the next block can be read.
    ///
    /// # Errors
    /// When the compression is wrong. Nothing behind it can be read.
    pub(in crate::http2::codec) fn decode(
        &mut self,
        block: &[u8],
        fields: &mut Fields,
        most: usize,
    ) -> Result<Decoded, Unreadable> {
        let mut taking = FieldSink {
            fields,
            size: 0,
            most,
            decoded: Decoded::Good,
        };
        let (mut rest, mut begun) = (block, false);
        while let Some(&first) = rest.first() {
            if first & 0x80 != 0 {
                begun = true;
                let index = integer::read(&mut rest, 7)?;
                taking.take(self.table.entry(index)?);
                continue;
            }
            if first & 0xe0 == 0x20 {
                // Only before the first field (section 4.2).
                if begun {
                    return Err(Unreadable);
                }
                self.table.resize(integer::read(&mut rest, 5)?)?;
                continue;
            }
            begun = true;
            let enters = first & 0x40 != 0;
            let index = integer::read(&mut rest, if enters { 6 } else { 4 })?;
            let (kind, name) = match index {
                0 => {
                    let name = string(&mut rest, &mut self.name)?;
                    (Kind::of(name), name)
                }
                index => {
                    let entry = self.table.entry(index)?;
                    // It may be the one that makes room.
                    self.name.clear();
                    self.name.extend_from_slice(entry.name);
                    (entry.kind, &*self.name)
                }
            };
            let value = string(&mut rest, &mut self.value)?;
            let good = kind.may_be(value);
            let entry = Entry {
                name,
                value,
                kind,
                good,
            };
            taking.take(entry);
            if enters {
                self.table.insert(entry);
            }
        }
        let decoded = taking.decoded;
        self.name.shrink_to(KEPT);
        self.value.shrink_to(KEPT);
        Ok(decoded)
    }

    #[cfg(test)]
    pub(super) fn table_size(&self) -> usize {
        self.table.size()
    }
}

/// Memory for a name or a value that is kept.
const KEPT: usize = 4096;

/// Section 5.2.
#[inline]
fn string<'t, 'b: 't>(rest: &mut &'b [u8], text: &'t mut Vec<u8>) -> Result<&'t [u8], Unreadable> {
    let compressed = rest.first().ok_or(Unreadable)? & 0x80 != 0;
    let length = integer::read(rest, 7)?;
    let (bytes, behind) = rest.split_at_checked(length).ok_or(Unreadable)?;
    *rest = behind;
    if !compressed {
        return Ok(bytes);
    }
    text.clear();
    huffman::decode(bytes, text)?;
    Ok(text)
}
