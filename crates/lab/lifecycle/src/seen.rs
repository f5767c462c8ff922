//! What is remembered of the bytes of a log, by which its copies are told from logs of their own.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

/// Most bytes that are remembered of the start, and of the end.
const REMEMBERED: usize = 1024;

/// The bytes of a file that were read: the first ones, the last ones, and how many there were.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    first: Vec<u8>,
    last: Vec<u8>,
    read: u64,
}

/// What a file is, as far as it can be told by what was read of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Likeness {
    /// It holds something else.
    Other,
    /// All that it holds was read of the other one. It may be a copy that is being made.
    Part,
    /// It holds all that was read of the other one, and maybe more.
    Whole,
}

impl Seen {
    /// The first `read` bytes of a file.
    pub(crate) fn of(file: &File, read: u64) -> io::Result<Self> {
        let length = usize::try_from(read).unwrap_or(usize::MAX).min(REMEMBERED);
        Ok(Self {
            first: block(file, 0, length)?,
            last: block(file, read - length as u64, length)?,
            read,
        })
    }

    /// How many bytes there were.
    pub(crate) fn read(&self) -> u64 {
        self.read
    }

    /// These bytes were read after the others.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let room = REMEMBERED.saturating_sub(self.first.len());
        self.first
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
        let last = bytes.len().saturating_sub(REMEMBERED);
        self.last.extend_from_slice(&bytes[last..]);
        let surplus = self.last.len().saturating_sub(REMEMBERED);
        self.last.drain(..surplus);
        self.read += bytes.len() as u64;
    }

    /// Whether a file that is longer begins with other bytes now. Zeros are the gap that a program
    /// leaves which goes on at its old place in a file that was emptied.
    pub(crate) fn is_replaced(&self, file: &File) -> io::Result<bool> {
        let found = block(file, 0, self.first.len())?;
        Ok(found != self.first && found.iter().any(|byte| *byte != 0))
    }

    /// What another file is against this.
    pub(crate) fn likeness(&self, file: &File) -> io::Result<Likeness> {
        if self.read == 0 {
            return Ok(Likeness::Other);
        }
        let length = file.metadata()?.len();
        if length >= self.read {
            return Ok(match Self::of(file, self.read)? == *self {
                true => Likeness::Whole,
                false => Likeness::Other,
            });
        }
        let found = block(file, 0, self.first.len())?;
        Ok(match self.first.starts_with(&found) {
            true => Likeness::Part,
            false => Likeness::Other,
        })
    }
}

/// Whether two files hold the same before the byte `end`, as far as is remembered of an end.
pub(crate) fn agree_before(end: u64, one: &File, other: &File) -> io::Result<bool> {
    let length = usize::try_from(end).unwrap_or(usize::MAX).min(REMEMBERED);
    let from = end - length as u64;
    Ok(block(one, from, length)? == block(other, from, length)?)
}

/// The bytes at a place of a file; fewer where it ends before.
fn block(file: &File, from: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut got = 0;
    while got < length {
        match file.read_at(&mut bytes[got..], from + got as u64) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(got);
    Ok(bytes)
}
