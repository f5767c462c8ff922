//! Sees that a file has another content.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use document::{Problems, Source};

/// Time between two looks.
pub const EVERY: Duration = Duration::from_millis(200);

/// A file that was written within so many seconds may be written again without another
/// time: file systems count it in ticks.
const SETTLED_S: i64 = 2;

/// Looks at a file from time to time, and tells of each content once, and again when it was
/// written again: another profile may have been put in force meanwhile by other means.
///
/// It follows symbolic links at each look, so that swapping one counts (as the kubelet does
/// with a `ConfigMap`'s folder). A content counts once two looks have found it: a file that
/// is being written in place is not read by halves.
#[derive(Debug)]
pub struct Watch {
    path: PathBuf,
    /// What was told last.
    told: Found,
    /// The stamp of what was told last.
    told_of: Option<Stamp>,
    /// What the last look found.
    last: Found,
    stamp: Option<Stamp>,
}

/// What a look finds.
type Found = Result<String, String>;

/// What moves when a file is written or another takes its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl Stamp {
    /// Of a file; `None`: it cannot be seen.
    fn at(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|of| Self::of(&of))
    }

    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

impl Watch {
    /// Watches a file whose content is known.
    pub fn new(path: &Path, known: &Source) -> Self {
        Self {
            path: path.to_owned(),
            told: Ok(known.text.clone()),
            told_of: Stamp::at(path),
            last: Ok(known.text.clone()),
            stamp: None,
        }
    }

    /// Looks once. `unix_s` is the time, in seconds since 1970. `None`: nothing new.
    pub fn look(&mut self, unix_s: i64) -> Option<Result<Source, String>> {
        let stamp = Stamp::at(&self.path);
        let settled = stamp.is_some_and(|stamp| stamp.modified.0 + SETTLED_S < unix_s);
        if settled && stamp == self.stamp && self.last == self.told {
            return None;
        }
        self.stamp = stamp;
        let found = match Source::read(&self.path) {
            Ok(source) => Ok(source.text),
            Err(problems) => Err(Problems::to_string(&problems)),
        };
        let seen_twice = found == self.last;
        self.last = found;
        let is_told = self.last == self.told && stamp == self.told_of;
        if !seen_twice || is_told {
            return None;
        }
        self.told_of = stamp;
        self.told.clone_from(&self.last);
        let name = self.path.display().to_string();
        let found = self.told.clone();
        Some(found.map(|text| Source { name, text }))
    }
}
