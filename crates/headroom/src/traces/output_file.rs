//! The file that a collector writes at its end.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// A file that is written at the end, and opened at the start: what cannot be written is said
/// before spans come.
pub(super) struct OutputFile<'f> {
    name: &'f Path,
    open: File,
    /// What is written, and what it replaces when it is whole; `None`: it is written in place.
    replaces: Option<(PathBuf, PathBuf)>,
}

impl<'f> OutputFile<'f> {
    /// A regular file is replaced when all is written, also where a link leads to it. Pipes, devices
    /// and what links lead nowhere are written as they are.
    pub(super) fn open(name: &'f Path) -> Result<Self> {
        let keeping = || format!("keep the spans in {}", name.display());
        if name.is_dir() {
            bail!("{}: it is a folder; expected a file", keeping());
        }
        let is_link = fs::symlink_metadata(name).is_ok_and(|found| found.is_symlink());
        // Where nothing is yet, it is what a link says.
        let target = match fs::metadata(name) {
            Ok(found) if !found.is_file() => None,
            Ok(_) => fs::canonicalize(name).ok(),
            Err(_) if is_link => None,
            Err(_) => Some(name.to_owned()),
        };
        let Some(target) = target else {
            let open = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .open(name);
            return Ok(Self {
                name,
                open: open.with_context(keeping)?,
                replaces: None,
            });
        };
        let mut part = target.as_os_str().to_owned();
        part.push(format!(".{}.part", std::process::id()));
        let part = PathBuf::from(part);
        let open = File::create(&part).with_context(keeping)?;
        Ok(Self {
            name,
            open,
            replaces: Some((part, target)),
        })
    }

    /// As it was asked for.
    pub(super) fn name(&self) -> &'f Path {
        self.name
    }

    /// Writes it whole, and only then replaces what was there.
    pub(super) fn write(mut self, text: &[u8]) -> Result<()> {
        let written = self.open.write_all(text);
        let done = match &self.replaces {
            // Pipes and devices have nothing to sync.
            None => written,
            Some((part, target)) => written
                .and_then(|()| self.open.sync_all())
                .and_then(|()| fs::rename(part, target)),
        };
        done.with_context(|| format!("keep the spans in {}", self.name.display()))
    }
}

impl Drop for OutputFile<'_> {
    fn drop(&mut self) {
        if let Some((part, _)) = &self.replaces {
            // Once it has replaced the other, it is not there.
            let _ = fs::remove_file(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt, symlink};

    use super::*;

    fn written(name: &Path) {
        OutputFile::open(name).unwrap().write(b"spans").unwrap();
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|one| one.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_when_all_is_written_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kept.json");
        fs::write(&file, "old").unwrap();
        let open = OutputFile::open(&file).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"old");
        drop(open);
        assert_eq!(fs::read(&file).unwrap(), b"old");
        written(&file);
        assert_eq!(fs::read(&file).unwrap(), b"spans");
        written(&folder.path().join("new.json"));
        assert_eq!(names(folder.path()), ["kept.json", "new.json"]);
    }

    #[test]
    fn links_stay_links() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("target"), "old").unwrap();
        symlink(at("target"), at("link")).unwrap();
        symlink(at("not-yet"), at("forward")).unwrap();
        for (link, target) in [("link", "target"), ("forward", "not-yet")] {
            written(&at(link));
            assert!(fs::symlink_metadata(at(link)).unwrap().is_symlink());
            assert_eq!(fs::read(at(target)).unwrap(), b"spans");
        }
        assert_eq!(
            names(folder.path()),
            ["forward", "link", "not-yet", "target"]
        );
    }

    #[test]
    fn devices_stay_devices() {
        let device = Path::new("/dev/null");
        let open = OutputFile::open(device).unwrap();
        assert!(open.replaces.is_none());
        open.write(b"spans").unwrap();
        let found = fs::metadata(device).unwrap();
        assert!(found.file_type().is_char_device());
    }
}
