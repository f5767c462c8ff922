//! The folder in which runs lie beside each other.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::Timestamp;

use crate::{Environment, RunFile, RunFolder, StoreError, Verdict};

/// Most runs that are looked at in one folder.
pub const RUNS_MAX: usize = 100_000;
/// What the names of folders begin with that are being removed.
const GOING: &str = ".removed-";

/// A run among others, as far as it can be read.
#[derive(Debug)]
pub struct StoredRun {
    /// Where it is.
    pub folder: RunFolder,
    /// What it is, or why nobody can say.
    pub found: Result<FoundRun, StoreError>,
    /// Size of its files.
    pub bytes: u64,
    /// When the last of them was changed.
    pub changed: SystemTime,
}

/// What can be read of a run.
#[derive(Debug)]
pub struct FoundRun {
    /// Where, when and with what it was made.
    pub environment: Environment,
    /// How it ended; `None` while it goes on, and after it was killed.
    pub verdict: Option<Verdict>,
    /// Whether it ended without a verdict, as its result could not be written.
    pub is_broken: bool,
}

impl FoundRun {
    /// Name of the experiment: the identity without the start in it.
    #[must_use]
    pub fn name(&self) -> &str {
        name_within(&self.environment.run_id)
    }

    /// When it began, as `2026-01-02 03:04` in UTC; empty for a time beyond the calendar.
    #[must_use]
    pub fn began(&self) -> String {
        let nanoseconds = i128::from(self.environment.started_at_unix_ns);
        let began = Timestamp::from_nanosecond(nanoseconds);
        began.map_or_else(
            |_| String::new(),
            |began| began.strftime("%Y-%m-%d %H:%M").to_string(),
        )
    }
}

/// `web` of `web-20260102-030405-2`; an identity that is not made so is its own name.
fn name_within(id: &str) -> &str {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let without = |id: &'_ str, length: Option<usize>| -> Option<usize> {
        let (rest, last) = id.rsplit_once('-')?;
        let fits = length.is_none_or(|length| last.len() == length);
        (digits(last) && fits && !rest.is_empty()).then_some(rest.len())
    };
    let dated = |id: &str| -> Option<usize> {
        let day = without(id, Some(6))?;
        without(&id[..day], Some(8))
    };
    let suffixed = || without(id, None).and_then(|end| dated(&id[..end]));
    dated(id).or_else(suffixed).map_or(id, |end| &id[..end])
}

/// Every run in a folder, in the order in which they began; those that cannot be read come last.
/// What is no run is passed over.
///
/// # Errors
///
/// When the folder cannot be read, or holds more than [`RUNS_MAX`] runs.
pub fn runs_in(folder: &Path) -> Result<Vec<StoredRun>, StoreError> {
    let reading = || StoreError::io("read the folder", folder);
    let mut runs = Vec::new();
    for entry in fs::read_dir(folder).map_err(reading())? {
        let path = entry.map_err(reading())?.path();
        let Some(run) = stored(&path) else { continue };
        if runs.len() == RUNS_MAX {
            return Err(StoreError::TooManyRuns {
                folder: folder.to_owned(),
                limit: RUNS_MAX,
            });
        }
        runs.push(run);
    }
    runs.sort_by_key(|run| {
        let began = match &run.found {
            Ok(found) => found.environment.started_at_unix_ns,
            Err(_) => i64::MAX,
        };
        (began, run.folder.id())
    });
    Ok(runs)
}

/// One entry of a folder of runs, if it is a run.
fn stored(path: &Path) -> Option<StoredRun> {
    let hidden = path.file_name()?.to_string_lossy().starts_with('.');
    if hidden || !path.join(RunFile::Environment.relative_path()).is_file() {
        return None;
    }
    let folder = RunFolder::at(path);
    let (bytes, changed) = size_of(path);
    Some(StoredRun {
        found: found(&folder),
        folder,
        bytes,
        changed,
    })
}

fn found(folder: &RunFolder) -> Result<FoundRun, StoreError> {
    let verdict = match RunFolder::open(folder.path()) {
        Ok(folder) => Some(folder.verdict()?),
        Err(StoreError::Unfinished { .. } | StoreError::Broken { .. }) => None,
        Err(error) => return Err(error),
    };
    Ok(FoundRun {
        environment: folder.environment()?,
        is_broken: verdict.is_none() && folder.file(RunFile::Broken).is_file(),
        verdict,
    })
}

/// Bytes of all files below a folder, and when the last was changed. What vanishes meanwhile
/// counts as nothing; links are not followed.
fn size_of(folder: &Path) -> (u64, SystemTime) {
    let mut sum = (0, SystemTime::UNIX_EPOCH);
    let mut left: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        for entry in entries {
            let Ok(about) = entry.metadata() else {
                continue;
            };
            if about.is_dir() {
                left.push(entry.path());
            } else {
                sum.0 += about.len();
                sum.1 = about.modified().map_or(sum.1, |at| sum.1.max(at));
            }
        }
    }
    sum
}

impl StoredRun {
    /// Removes the run. One that is removed half is no run any more, whatever happens meanwhile,
    /// and [`remove_rests`] removes the other half.
    ///
    /// # Errors
    ///
    /// When the operating system refuses.
    pub fn remove(self) -> Result<(), StoreError> {
        let path = self.folder.path();
        let Some(name) = path.file_name() else {
            return Err(StoreError::NotARun {
                path: path.to_owned(),
            });
        };
        let mut going = std::ffi::OsString::from(GOING);
        going.push(name);
        let going = path.with_file_name(going);
        fs::rename(path, &going).map_err(StoreError::io("remove", path))?;
        fs::remove_dir_all(&going).map_err(StoreError::io("remove", &going))
    }
}

/// Removes what a removal that was cut short has left in a folder of runs.
///
/// # Errors
///
/// When the operating system refuses.
pub fn remove_rests(folder: &Path) -> Result<(), StoreError> {
    let reading = || StoreError::io("read the folder", folder);
    for entry in fs::read_dir(folder).map_err(reading())? {
        let path = entry.map_err(reading())?.path();
        let rest = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(GOING));
        if rest {
            match fs::remove_dir_all(&path) {
                Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::io("remove", &path)(cause));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_stands_before_the_start() {
        for (id, name) in [
            ("web-20260102-030405", "web"),
            ("web-20260102-030405-2", "web"),
            ("road-to-100-cells-20260102-030405", "road-to-100-cells"),
            ("web-20260102-030405-20260102-030405", "web-20260102-030405"),
            ("20260102-030405", "20260102-030405"),
            ("web-1-2", "web-1-2"),
            ("wéb", "wéb"),
        ] {
            assert_eq!(name_within(id), name, "{id}");
        }
    }
}
