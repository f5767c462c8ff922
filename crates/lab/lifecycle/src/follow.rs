//! Reads the lines of files that grow.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::mem::take;
use std::path::{Path, PathBuf};

use memchr::memchr;

use crate::line::MAX_LINE_BYTES;
use crate::seen::{Likeness, Seen, agree_before};

/// Read from a file at once.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;

/// Follows files: each [`Follower::poll`] gives the lines that were completed since
/// the last one. It has no thread and no timer of its own.
///
/// A file that does not exist yet is waited for. A file that became shorter, or begins with
/// other bytes than before, is read again from its start. A line longer than
/// [`MAX_LINE_BYTES`] is given once its end is seen, without the rest.
#[derive(Debug)]
pub struct Follower {
    files: Vec<Followed>,
    chunk: Vec<u8>,
}

/// A file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the log {}: {reason}", path.display())]
pub struct FollowError {
    /// The file.
    pub path: PathBuf,
    /// What the system says.
    pub reason: std::io::Error,
}

#[derive(Debug)]
pub(crate) struct Followed {
    pub(crate) path: PathBuf,
    file: Option<File>,
    seen: Seen,
    /// The beginning of a line whose end was not seen yet.
    tail: Vec<u8>,
    /// What was read before the file was cut, with its tail.
    cut: Option<(Seen, Vec<u8>)>,
}

/// How long each of these files is now; 0: there is none.
pub fn lengths(paths: &[PathBuf]) -> Vec<u64> {
    let length = |path: &PathBuf| path.metadata().map_or(0, |metadata| metadata.len());
    paths.iter().map(length).collect()
}

impl Follower {
    /// Follows these files from their start.
    pub fn new(paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        let files = paths.into_iter().map(|path| Followed {
            path: path.into(),
            file: None,
            seen: Seen::default(),
            tail: Vec::new(),
            cut: None,
        });
        Self {
            files: files.collect(),
            chunk: vec![0; CHUNK_BYTES],
        }
    }

    /// Gives every new complete line to the sink, without its line end, with the
    /// number of its file in the order of [`Follower::new`]. Reads each file up to
    /// the length it has now, so it ends even when files grow faster than they are
    /// read. A file that cannot be read does not keep the others from being read;
    /// the first error is returned, and the next poll tries again.
    pub fn poll(&mut self, sink: impl FnMut(usize, &[u8])) -> Result<(), FollowError> {
        self.poll_to(&[], sink)
    }

    /// As [`Follower::poll`], but reads no file beyond the length that stands at its number: what
    /// [`lengths`] told at a moment, so that nothing is read that was written after it.
    ///
    /// # Errors
    /// See [`Follower::poll`].
    pub fn poll_to(
        &mut self,
        lengths: &[u64],
        mut sink: impl FnMut(usize, &[u8]),
    ) -> Result<(), FollowError> {
        let mut result = Ok(());
        for (number, followed) in self.files.iter_mut().enumerate() {
            let to = lengths.get(number).copied().unwrap_or(u64::MAX);
            let polled = followed.poll(to, &mut self.chunk, &mut |line| sink(number, line));
            if let Err(reason) = polled {
                let path = followed.path.clone();
                result = result.and(Err(FollowError { path, reason }));
            }
        }
        result
    }

    /// Polls a last time, then gives the line that each file ends with even when
    /// it has no line end, as a program leaves it that was killed while writing.
    pub fn finish(mut self, mut sink: impl FnMut(usize, &[u8])) -> Result<(), FollowError> {
        let result = self.poll(&mut sink);
        for (number, followed) in self.files.iter().enumerate() {
            followed
                .last_line()
                .into_iter()
                .for_each(|line| sink(number, line));
        }
        result
    }

    /// The files, in the order of their numbers.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|followed| followed.path.as_path())
    }
}

impl Followed {
    /// A file that is open already, of which the first `read` bytes are known.
    pub(crate) fn opened(path: PathBuf, file: File, read: u64) -> std::io::Result<Self> {
        let seen = Seen::of(&file, read)?;
        Self::resumed(path, file, seen, Vec::new())
    }

    /// A file of which so much was read already, as another file.
    fn resumed(path: PathBuf, mut file: File, seen: Seen, tail: Vec<u8>) -> std::io::Result<Self> {
        file.seek(SeekFrom::Start(seen.read()))?;
        Ok(Self {
            path,
            file: Some(file),
            seen,
            tail,
            cut: None,
        })
    }

    /// The rest of a file that holds what this one held when it was cut; it is read there once.
    pub(crate) fn goes_on_in(&mut self, path: &Path, file: &File) -> std::io::Result<Option<Self>> {
        let likeness = match &self.cut {
            Some((seen, _)) => seen.likeness(file)?,
            None => Likeness::Other,
        };
        let length = file.metadata()?.len();
        let (seen, tail) = match likeness {
            Likeness::Whole => self.cut.take().unwrap_or_default(),
            // What came between the copy and the cut was read before the cut.
            Likeness::Part if length > 0 => (Seen::of(file, length)?, Vec::new()),
            Likeness::Part | Likeness::Other => return Ok(None),
        };
        Self::resumed(path.to_owned(), file.try_clone()?, seen, tail).map(Some)
    }

    /// What was copied before a cut is there at the next look: later files are logs of their own.
    pub(crate) fn forget_cut(&mut self) {
        self.cut = None;
    }

    /// Whether another file may be a copy of this one: it holds the same, and no more, unless this
    /// one was cut since.
    pub(crate) fn is_copied_to(&self, file: &File) -> std::io::Result<bool> {
        let Some(own) = &self.file else {
            return Ok(false);
        };
        if self.seen.likeness(file)? == Likeness::Other {
            return Ok(false);
        }
        let (its, length) = (file.metadata()?.len(), own.metadata()?.len());
        let is_cut = length < self.seen.read() || self.seen.is_replaced(own)?;
        Ok(is_cut || (its <= length && agree_before(its, file, own)?))
    }

    /// What the file ends with after its last line end.
    pub(crate) fn last_line(&self) -> Option<&[u8]> {
        (!self.tail.is_empty()).then_some(&self.tail)
    }

    /// Gives the lines that were completed, up to the length that the file has now, and to `to`.
    pub(crate) fn poll(
        &mut self,
        to: u64,
        chunk: &mut [u8],
        sink: &mut impl FnMut(&[u8]),
    ) -> std::io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => match File::open(&self.path) {
                Ok(file) => self.file.insert(file),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(error),
            },
        };
        let length = file.metadata()?.len();
        let read = self.seen.read();
        if length < read || (length > read && self.seen.is_replaced(file)?) {
            file.seek(SeekFrom::Start(0))?;
            self.cut = Some((take(&mut self.seen), take(&mut self.tail)));
        }
        let length = length.min(to);
        while self.seen.read() < length {
            let most = usize::try_from(length - self.seen.read())
                .unwrap_or(usize::MAX)
                .min(chunk.len());
            let got = match file.read(&mut chunk[..most]) {
                Ok(0) => return Ok(()),
                Ok(got) => got,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.seen.add(&chunk[..got]);
            split(&chunk[..got], &mut self.tail, sink);
        }
        Ok(())
    }
}

/// Gives the lines of `bytes`, the first one completing `tail`; the unfinished last
/// one becomes the new tail.
fn split(bytes: &[u8], tail: &mut Vec<u8>, sink: &mut impl FnMut(&[u8])) {
    let mut rest = bytes;
    while let Some(end) = memchr(b'\n', rest) {
        let line = &rest[..end];
        rest = &rest[end + 1..];
        if tail.is_empty() {
            sink(line);
        } else {
            keep(tail, line);
            sink(tail);
            tail.clear();
        }
    }
    keep(tail, rest);
}

/// Appends to the tail. It keeps one byte more than a line may have, so that
/// whoever reads the line can tell that it was too long.
fn keep(tail: &mut Vec<u8>, bytes: &[u8]) {
    let room = (MAX_LINE_BYTES + 1).saturating_sub(tail.len());
    tail.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

#[cfg(test)]
#[path = "follow_tests.rs"]
mod tests;
