//! Reads what is written to files that come, go and change their names.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use glob::Pattern;

use crate::follow::{CHUNK_BYTES, FollowError, Followed};

/// Most files that are read at the same time.
const MOST_FILES: usize = 1_000;
/// A file without a name that matches is let go after so many polls without a new line: its
/// program may go on for a while with the file that it has open.
const IDLE_POLLS: u32 = 50;
/// A file that begins as another one is no copy of it if after so many polls it is as long as
/// before, and the other one was not cut.
const COPIED_WITHIN: u32 = 3;
/// Files that hold what others held before.
const PACKED: [&str; 5] = ["gz", "xz", "zst", "bz2", "lz4"];

/// Gathers the lines of all files whose names match patterns: each [`Gatherer::poll`] gives
/// the lines that were completed since the last one.
///
/// Files that are there at the start are read from the length they have then; files that
/// appear later, from their beginning. A file is told by its inode, so one that is renamed is
/// not read twice, and its last lines are not lost. One that is cut to nothing is read again
/// from its start; a copy that was made of it before (logrotate's `copytruncate`) is read from
/// where it was read to itself. Packed files (`.gz` and the like) are left out.
#[derive(Debug)]
pub struct Gatherer {
    patterns: Vec<String>,
    files: Vec<Gathered>,
    /// Files that may be copies: how long they are, and for how many polls.
    undecided: HashMap<(u64, u64), (u64, u32)>,
    copied_within: u32,
    chunk: Vec<u8>,
}

/// Patterns that cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum GatherError {
    /// Not a pattern.
    #[error("`{pattern}` is no pattern of file names: {reason}")]
    Pattern {
        /// The text.
        pattern: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// Too many files.
    #[error(
        "more than {MOST_FILES} files match {patterns}; name fewer, or let the program write fewer"
    )]
    TooMany {
        /// The patterns.
        patterns: String,
    },
    /// A file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] FollowError),
}

#[derive(Debug)]
struct Gathered {
    identity: (u64, u64),
    followed: Followed,
    idle: u32,
}

impl Gatherer {
    /// Looks for the files that are there already.
    ///
    /// # Errors
    /// When a pattern is none, or too many files match.
    pub fn new(patterns: impl IntoIterator<Item = String>) -> Result<Self, GatherError> {
        let patterns: Vec<String> = patterns.into_iter().collect();
        for pattern in &patterns {
            Pattern::new(pattern).map_err(|error| GatherError::Pattern {
                pattern: pattern.clone(),
                reason: error.msg,
            })?;
        }
        let mut gatherer = Self {
            patterns,
            files: Vec::new(),
            undecided: HashMap::new(),
            copied_within: COPIED_WITHIN,
            chunk: vec![0; CHUNK_BYTES],
        };
        gatherer.look(true)?;
        Ok(gatherer)
    }

    /// Gives every new complete line to the sink, without its line end.
    ///
    /// # Errors
    /// When a file cannot be read, or too many match; the others were read all the same.
    pub fn poll(&mut self, mut sink: impl FnMut(&[u8])) -> Result<(), GatherError> {
        let mut result = Ok(());
        let named = match self.look(false) {
            Ok(named) => named,
            Err(error) => {
                result = Err(error);
                HashSet::new()
            }
        };
        for file in &mut self.files {
            let mut lines = 0;
            let polled = file.followed.poll(u64::MAX, &mut self.chunk, &mut |line| {
                lines += 1;
                sink(line);
            });
            if let Err(reason) = polled {
                let path = file.followed.path.clone();
                result = result.and(Err(FollowError { path, reason }.into()));
            }
            let is_quiet = lines == 0 && !named.contains(&file.identity);
            file.idle = if is_quiet { file.idle + 1 } else { 0 };
        }
        self.files.retain(|file| {
            let is_over = file.idle >= IDLE_POLLS;
            if is_over {
                file.followed.last_line().into_iter().for_each(&mut sink);
            }
            !is_over
        });
        result
    }

    /// Polls a last time, then gives the line that each file ends with even without a line
    /// end.
    ///
    /// # Errors
    /// As [`Gatherer::poll`].
    pub fn finish(mut self, mut sink: impl FnMut(&[u8])) -> Result<(), GatherError> {
        self.copied_within = 0;
        let result = self.poll(&mut sink);
        let rest = self.files.iter();
        rest.filter_map(|file| file.followed.last_line())
            .for_each(&mut sink);
        result
    }

    /// Opens files that were not known, and returns all that have a name that matches. Those that
    /// are there at the start are read from their end.
    fn look(&mut self, at_start: bool) -> Result<HashSet<(u64, u64)>, GatherError> {
        let mut named = HashSet::new();
        for path in self.matching() {
            // One that went away meanwhile is none.
            let Ok(metadata) = path.metadata() else {
                continue;
            };
            let identity = (metadata.dev(), metadata.ino());
            if !metadata.is_file() || !named.insert(identity) {
                continue;
            }
            if self.files.iter().any(|file| file.identity == identity) {
                continue;
            }
            if self.files.len() >= MOST_FILES {
                let patterns = self.patterns.join(", ");
                return Err(GatherError::TooMany { patterns });
            }
            let opened = File::open(&path).and_then(|file| {
                let found = file.metadata().map(|found| (found.dev(), found.ino()))?;
                if found != identity {
                    return Ok(None);
                }
                match at_start {
                    true => Followed::opened(path.clone(), file, metadata.len()).map(Some),
                    false => self.open(identity, &path, file),
                }
            });
            match opened {
                // The name has passed to another file, or it is not known yet what this one
                // is: the next look tells.
                Ok(None) => {}
                Ok(Some(followed)) => self.files.push(Gathered {
                    identity,
                    followed,
                    idle: 0,
                }),
                Err(reason) if reason.kind() == std::io::ErrorKind::NotFound => {}
                Err(reason) => return Err(FollowError { path, reason }.into()),
            }
        }
        for file in &mut self.files {
            file.followed.forget_cut();
        }
        Ok(named)
    }

    /// A file that has appeared: a log of its own, or the copy of one that was cut since. `None`: a
    /// copy, maybe, of one that still holds the same.
    fn open(
        &mut self,
        identity: (u64, u64),
        path: &Path,
        file: File,
    ) -> std::io::Result<Option<Followed>> {
        for known in &mut self.files {
            if let Some(followed) = known.followed.goes_on_in(path, &file)? {
                return Ok(Some(followed));
            }
        }
        for known in &self.files {
            if known.followed.is_copied_to(&file)? {
                let length = file.metadata()?.len();
                let (before, polls) = self.undecided.entry(identity).or_insert((length, 0));
                *polls = if *before == length { *polls + 1 } else { 0 };
                *before = length;
                if *polls <= self.copied_within {
                    return Ok(None);
                }
                break;
            }
        }
        self.undecided.remove(&identity);
        Followed::opened(path.to_owned(), file, 0).map(Some)
    }

    fn matching(&self) -> Vec<PathBuf> {
        let found = self
            .patterns
            .iter()
            .filter_map(|pattern| glob::glob(pattern).ok());
        let is_packed = |path: &PathBuf| {
            let end = path.extension().and_then(|end| end.to_str());
            end.is_some_and(|end| PACKED.contains(&end))
        };
        let mut paths: Vec<PathBuf> = found
            .flatten()
            .flatten()
            .filter(|path| !is_packed(path))
            .collect();
        paths.sort();
        paths
    }
}

#[cfg(test)]
#[path = "gather_tests.rs"]
mod tests;
