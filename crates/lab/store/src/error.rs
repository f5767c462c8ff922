//! What can go wrong with a run's folder.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a run could not be written or read.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The operating system refused.
    #[error("cannot {action} {}: {cause}; {}", .path.display(), next_step(.cause))]
    Io {
        /// What was being done, for instance `write`.
        action: &'static str,
        /// To which file or folder.
        path: PathBuf,
        /// What the operating system said.
        cause: io::Error,
    },
    /// The name cannot be part of a folder's name.
    #[error(
        "the name {name:?} cannot name a run: use 1 to 100 letters, digits, `-`, `_` or `.`, \
         not beginning with `.`"
    )]
    Name {
        /// The refused name.
        name: String,
    },
    /// Every id for this name and second is taken.
    #[error(
        "every id from {id} to {id}-{last} is taken in {}: wait a second or choose another folder",
        .folder.display()
    )]
    IdsTaken {
        /// The folder of all runs.
        folder: PathBuf,
        /// The first id that was tried.
        id: String,
        /// The last suffix that was tried.
        last: u32,
    },
    /// The folder holds no run.
    #[error(
        "{} is not a run: it has no environment.json; give the folder of one run, \
         for instance runs/NAME-20260102-030405",
        .path.display()
    )]
    NotARun {
        /// The folder that was given.
        path: PathBuf,
    },
    /// A newer version wrote the run.
    #[error(
        "{} has schema {found}, this version reads up to {supported}: use the version that made \
         the run, or a newer one",
        .path.display()
    )]
    Newer {
        /// The folder of the run, or the file of a load.
        path: PathBuf,
        /// Schema that was found.
        found: u64,
        /// Newest schema that can be read.
        supported: u32,
    },
    /// The run is still going on, or was killed.
    #[error(
        "{} has no verdict.json: the run is still going on or was killed; wait for its end, \
         or run the experiment again",
        .path.display()
    )]
    Unfinished {
        /// The folder of the run.
        path: PathBuf,
    },
    /// The run came to its end, and could not be stored.
    #[error(
        "{} could not be stored to its end, as its file `broken` says; run the experiment again",
        .path.display()
    )]
    Broken {
        /// The folder of the run.
        path: PathBuf,
    },
    /// The text of a file is not what its format says.
    #[error("{}, line {line}: {problem}; the formats are in docs/run-store.md", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// What was found and what was expected.
        problem: String,
    },
    /// A value has no place in its format.
    #[error("cannot write {}: {problem}", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What is wrong with the value.
        problem: String,
    },
    /// The file is larger than the bound of its kind.
    #[error(
        "{} is larger than {limit} {unit}, the most that is read; split the run into shorter ones",
        .path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The bound.
        limit: u64,
        /// What is counted, `bytes`, `records` or `loads`.
        unit: &'static str,
    },
    /// There are more runs than are looked at.
    #[error("{} holds more than {limit} runs, the most that are looked at; move some elsewhere", .folder.display())]
    TooManyRuns {
        /// The folder of all runs.
        folder: PathBuf,
        /// The bound.
        limit: usize,
    },
}

impl StoreError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Io {
            action,
            path,
            cause,
        }
    }

    pub(crate) fn malformed(path: &Path, line: u64, problem: impl Into<String>) -> Self {
        Self::Malformed {
            path: path.to_owned(),
            line,
            problem: problem.into(),
        }
    }
}

fn next_step(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space, or choose another disk with --out"
        }
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            "choose a folder that you may write to with --out"
        }
        io::ErrorKind::NotFound => "check the path",
        _ => "check the path and the disk",
    }
}
