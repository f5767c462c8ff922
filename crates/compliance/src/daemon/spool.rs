//! Signed run logs that wait for the server, on the disk.

use std::io;
use std::path::{Path, PathBuf};

use crate::trust::TrustError;
use crate::trust::write_secret;

/// Runs that wait at most, and their bytes; the oldest make room.
const RUNS: usize = 1_000;
const BYTES: u64 = 64 << 20;

/// The spool of one agent.
#[derive(Debug)]
pub(super) struct Spool(PathBuf);

impl Spool {
    /// In this folder, which is made.
    pub(super) fn open(folder: PathBuf) -> io::Result<Self> {
        std::fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }

    /// Adds a run by its file's name, and says how many older ones had to make room.
    pub(super) fn add(&self, name: &str, message: &[u8]) -> Result<usize, TrustError> {
        write_secret(&self.0.join(name), message)?;
        let files = self.sized().unwrap_or_default();
        let (mut runs, mut bytes) = (files.len(), files.iter().map(|(_, size)| size).sum::<u64>());
        let mut dropped = 0;
        for (old, size) in &files {
            if (runs <= RUNS && bytes <= BYTES) || old == name {
                break;
            }
            self.remove(old);
            runs -= 1;
            bytes = bytes.saturating_sub(*size);
            dropped += 1;
        }
        Ok(dropped)
    }

    /// Names of the runs that wait, from the oldest.
    pub(super) fn waiting(&self) -> Vec<String> {
        let files = self.sized().unwrap_or_default();
        files.into_iter().map(|(name, _)| name).collect()
    }

    fn sized(&self) -> io::Result<Vec<(String, u64)>> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.0)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(".log.gz") {
                files.push((name, entry.metadata()?.len()));
            }
        }
        // Names hold dates, all of one node.
        files.sort();
        Ok(files)
    }

    /// The message of a run.
    pub(super) fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        std::fs::read(self.path(name))
    }

    /// Removes a run that is kept elsewhere, or can be kept nowhere.
    pub(super) fn remove(&self, name: &str) {
        // One that stays is sent again, and known there.
        let _ = std::fs::remove_file(self.path(name));
    }

    fn path(&self, name: &str) -> PathBuf {
        let name = Path::new(name).file_name().unwrap_or_default();
        self.0.join(name)
    }
}
