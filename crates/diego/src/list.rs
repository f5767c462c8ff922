//! Lists of the BBS, read record by record while they arrive.
//!
//! Every answer that is a list has its records in field 2, each length-delimited, and an error in
//! field 1 (`proto/bbs.proto`). A list of 200,000 records takes hundreds of megabytes: whoever looks
//! at each record once needs neither its bytes nor all records at the same time.

use std::marker::PhantomData;

use prost::Message;

use crate::models;

/// Field of an error.
const ERROR: u64 = 1;
/// Field of a record.
const RECORD: u64 = 2;
/// The longest encoding of a number.
const VARINT_MOST: usize = 10;

/// Why a list is none, or not whole.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum ListError {
    /// The BBS answered with an error.
    #[error("{} (type {})", .0.message, .0.r#type)]
    Refused(models::Error),
    /// The bytes are not those of a list.
    #[error("{0}")]
    Malformed(String),
}

/// Reads records of one kind from pieces of any size.
#[derive(Debug)]
pub struct Records<R> {
    /// The begin of a field whose end has not arrived.
    begun: Vec<u8>,
    error: Option<models::Error>,
    malformed: Option<String>,
    kind: PhantomData<fn() -> R>,
}

impl<R> Default for Records<R> {
    fn default() -> Self {
        Self {
            begun: Vec::new(),
            error: None,
            malformed: None,
            kind: PhantomData,
        }
    }
}

impl<R: Message + Default> Records<R> {
    /// Takes the next piece; each record that is complete by then is handed out. After a piece that is
    /// not part of a list nothing is.
    pub fn take(&mut self, piece: &[u8], mut each: impl FnMut(R)) {
        if self.malformed.is_none()
            && let Err(cause) = self.fields(piece, &mut each)
        {
            self.malformed = Some(cause);
        }
    }

    /// Says whether what was taken is a whole list.
    ///
    /// # Errors
    /// See [`ListError`].
    pub fn end(self) -> Result<(), ListError> {
        match (self.malformed, self.error) {
            (Some(cause), _) => Err(ListError::Malformed(cause)),
            _ if !self.begun.is_empty() => {
                let cause = "the list ends within a record".to_owned();
                Err(ListError::Malformed(cause))
            }
            (None, Some(error)) => Err(ListError::Refused(error)),
            (None, None) => Ok(()),
        }
    }

    fn fields(&mut self, mut piece: &[u8], each: &mut impl FnMut(R)) -> Result<(), String> {
        while !piece.is_empty() && !self.begun.is_empty() {
            // What is missing of this field and no more: the rest of the piece is read where it is.
            let missing = match field(&self.begun)? {
                Some(found) => found.end.saturating_sub(self.begun.len()),
                None => 1,
            };
            let (now, later) = piece.split_at(missing.min(piece.len()));
            self.begun.extend_from_slice(now);
            piece = later;
            if let Some(found) = field(&self.begun)?
                && found.end <= self.begun.len()
            {
                let begun = std::mem::take(&mut self.begun);
                self.read(&found, &begun, each)?;
                // Its room serves the next one.
                self.begun = begun;
                self.begun.clear();
            }
        }
        while let Some(found) = field(piece)?
            && found.end <= piece.len()
        {
            let (now, later) = piece.split_at(found.end);
            self.read(&found, now, each)?;
            piece = later;
        }
        self.begun.extend_from_slice(piece);
        Ok(())
    }

    fn read(
        &mut self,
        found: &Field,
        bytes: &[u8],
        each: &mut impl FnMut(R),
    ) -> Result<(), String> {
        let value = bytes.get(found.value..).unwrap_or_default();
        match found.number {
            RECORD if found.delimited => {
                each(R::decode(value).map_err(|error| error.to_string())?);
            }
            ERROR if found.delimited => {
                let error = self.error.get_or_insert_default();
                error.merge(value).map_err(|error| error.to_string())?;
            }
            RECORD | ERROR => return Err(format!("field {} is no message", found.number)),
            // What a newer BBS may add.
            _ => {}
        }
        Ok(())
    }
}

/// A field of a message, as far as its begin tells.
struct Field {
    number: u64,
    /// Whether its value is length-delimited.
    delimited: bool,
    /// Where its value begins,
    value: usize,
    /// and where the next field does.
    end: usize,
}

/// The field that begins here; `None` while too little of it is there.
fn field(bytes: &[u8]) -> Result<Option<Field>, String> {
    let Some((key, key_len)) = varint(bytes)? else {
        return Ok(None);
    };
    let (number, wire_type) = (key >> 3, key & 7);
    if number == 0 || key > u64::from(u32::MAX) {
        return Err(format!("a field has the number {number}"));
    }
    let rest = bytes.get(key_len..).unwrap_or_default();
    let (before, value) = match wire_type {
        0 => match varint(rest)? {
            Some((_, length)) => (0, length as u64),
            None => return Ok(None),
        },
        1 => (0, 8),
        2 => match varint(rest)? {
            Some((length, before)) => (before, length),
            None => return Ok(None),
        },
        5 => (0, 4),
        _ => return Err(format!("field {number} has the wire type {wire_type}")),
    };
    let begin = key_len + before;
    let end = usize::try_from(value)
        .ok()
        .and_then(|value| begin.checked_add(value));
    Ok(Some(Field {
        number,
        delimited: wire_type == 2,
        value: begin,
        end: end.ok_or_else(|| format!("field {number} claims {value} bytes"))?,
    }))
}

/// The number that begins here and how many bytes it takes; `None` while its end is missing.
fn varint(bytes: &[u8]) -> Result<Option<(u64, usize)>, String> {
    let begin = bytes.get(..VARINT_MOST).unwrap_or(bytes);
    match begin.iter().position(|byte| *byte < 0x80) {
        Some(last) => {
            let mut number = begin.get(..=last).unwrap_or_default();
            let read = prost::encoding::decode_varint(&mut number);
            let read = read.map_err(|error| error.to_string())?;
            Ok(Some((read, last + 1)))
        }
        None if begin.len() == VARINT_MOST => Err("a number is longer than ten bytes".to_owned()),
        None => Ok(None),
    }
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
