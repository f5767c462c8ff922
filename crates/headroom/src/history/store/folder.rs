//! A history in a folder, which may be a mount of object storage: files are replaced as a whole.

use std::fs::{self, File, Permissions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tempfile::Builder;

use super::super::{locked, text_of};
use super::{ENDING, PlanFile};

/// What those who add hold meanwhile.
const LOCK: &str = ".lock";
/// How long it is tried to be had.
const LOCK_WITHIN: Duration = Duration::from_secs(30);
/// More files are none of a history.
const FILES_MOST: usize = 10_000;

/// A folder, which need not be there yet.
pub(super) struct Folder<'a>(pub(super) &'a Path);

impl Folder<'_> {
    /// Its files in the order of their names; none if it is not there.
    pub(super) fn read(&self) -> Result<Vec<PlanFile>> {
        let reading = || format!("read {}", self.0.display());
        if !self.0.exists() {
            return Ok(Vec::new());
        }
        let mut files = Vec::new();
        for entry in fs::read_dir(self.0).with_context(reading)? {
            let path = entry.with_context(reading)?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            // What is written now has another ending.
            let Some(name) = name.filter(|name| name.ends_with(ENDING)) else {
                continue;
            };
            if files.len() == FILES_MOST {
                bail!("{}: it has more than {FILES_MOST} plans", reading());
            }
            // Replaced as a whole, it needs no lock, which not every mount knows.
            let file = File::open(&path).with_context(|| format!("read {}", path.display()))?;
            files.push(PlanFile {
                name: name.to_owned(),
                text: text_of(&file, &path)?,
            });
        }
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }

    /// Changes files, while nobody else on this machine does. `new` says which, and something more that is
    /// handed out.
    pub(super) fn change<T>(
        &self,
        new: impl Fn(&[PlanFile]) -> Result<(Vec<PlanFile>, T)>,
    ) -> Result<T> {
        let writing = || format!("add to {}", self.0.display());
        fs::create_dir_all(self.0).with_context(writing)?;
        // Gone with the file that it is of.
        let _held = self.lock().with_context(writing)?;
        let (changed, more) = new(&self.read()?)?;
        // All are written before the first is put in its place.
        let mut ready = Vec::new();
        for file in &changed {
            let mut part = Builder::new();
            // As any file that is made: others may read what is shared.
            let part = part.permissions(Permissions::from_mode(0o666));
            let mut part = part.tempfile_in(self.0).with_context(writing)?;
            part.write_all(file.text.as_bytes()).with_context(writing)?;
            part.as_file().sync_all().with_context(writing)?;
            ready.push((part, self.0.join(&file.name)));
        }
        for (part, path) in ready {
            part.persist(path).with_context(writing)?;
        }
        Ok(more)
    }

    fn lock(&self) -> Result<File> {
        let path = self.0.join(LOCK);
        let file = File::create(&path).with_context(|| format!("open {}", path.display()))?;
        locked(&file, &path, LOCK_WITHIN, |file| match file.try_lock() {
            // Not every mount knows locks; a folder of one's own needs none.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => Ok(()),
            other => other,
        })?;
        Ok(file)
    }
}
