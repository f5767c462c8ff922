//! A folder of files that are whole or not there, also after the power was lost.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::private;

/// A folder of whole files, which only their owner may read.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// The folder itself: what its files are called is durable once it is synced.
    handle: File,
}

impl Folder {
    /// In this folder, which is made.
    pub(crate) fn open(path: PathBuf) -> io::Result<Self> {
        private::folder(&path)?;
        let handle = File::open(&path)?;
        Ok(Self { path, handle })
    }

    /// The same for one process alone: what was being written when the one before it ended is
    /// removed.
    pub(crate) fn open_alone(path: PathBuf) -> io::Result<Self> {
        let folder = Self::open(path)?;
        for (name, _) in folder.list(private::FRESH)? {
            folder.remove(&name)?;
        }
        Ok(folder)
    }

    /// Where a file is. Names come of what others say: only their last part counts.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        let name = Path::new(name).file_name().unwrap_or_default();
        self.path.join(name)
    }

    /// Writes a file of these parts, in the place of one of this name; it is durable when this
    /// returns, and of one that could not be written nothing is left.
    pub(crate) fn put(&self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        private::replace(&self.path(name), parts)?;
        self.handle.sync_all()
    }

    /// Names and bytes of the files with this ending, in the order of their names.
    pub(crate) fn list(&self, ending: &str) -> io::Result<Vec<(String, u64)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(ending) {
                files.push((name, entry.metadata()?.len()));
            }
        }
        files.sort();
        Ok(files)
    }

    /// A file's content.
    pub(crate) fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.path(name))
    }

    /// Removes a file. It may be there again after the power was lost.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_whole_and_what_was_left_of_others_goes() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path().join("deep/spool")).unwrap();
        folder.put("b.log", &[b"one ", b"two"]).unwrap();
        folder.put("a.log", &[b"x"]).unwrap();
        folder.put("a.log", &[b"other"]).unwrap();
        folder.put("c.txt", &[]).unwrap();
        fs::write(folder.path("d.log.new"), "half").unwrap();
        let listed = |folder: &Folder| folder.list(".log").unwrap();
        let expected = [("a.log".to_owned(), 5), ("b.log".to_owned(), 7)];
        assert_eq!(listed(&folder), expected);
        assert_eq!(folder.read("b.log").unwrap(), b"one two");
        let folder = Folder::open_alone(place.path().join("deep/spool")).unwrap();
        assert!(!folder.path("d.log.new").exists());
        assert_eq!(listed(&folder), expected);
        folder.remove("a.log").unwrap();
        assert!(folder.remove("a.log").is_err());
        assert_eq!(listed(&folder).len(), 1);
    }

    #[test]
    fn names_lead_nowhere_else_and_a_failed_write_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path().join("spool")).unwrap();
        folder.put("../../out", &[b"x"]).unwrap();
        assert_eq!(folder.read("out").unwrap(), b"x");
        // A folder is in the way, so that the rename fails.
        fs::create_dir(folder.path("taken")).unwrap();
        assert!(folder.put("taken", &[b"x"]).is_err());
        assert!(!folder.path("taken.new").exists());
    }
}
