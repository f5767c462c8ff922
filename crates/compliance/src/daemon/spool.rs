//! Signed run logs that wait for the server, on the disk.

use std::io;
use std::path::PathBuf;

use crate::spool::Folder;

/// The ending of a run's file.
const RUN: &str = ".log.gz";
/// Runs that wait at most, and their bytes; the oldest make room.
const RUNS: usize = 1_000;
const BYTES: u64 = 64 << 20;

/// The spool of one agent. Names hold dates, all of one node, so that they are in order.
#[derive(Debug)]
pub(super) struct Spool(Folder);

impl Spool {
    /// In this folder, which is made.
    pub(super) fn open(folder: PathBuf) -> io::Result<Self> {
        Folder::open(folder).map(Self)
    }

    /// Adds a run by its file's name, and says how many older ones had to make room.
    pub(super) fn add(&self, name: &str, message: &[u8]) -> io::Result<usize> {
        self.0.put(name, &[message])?;
        let files = self.0.list(RUN).unwrap_or_default();
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
        let files = self.0.list(RUN).unwrap_or_default();
        files.into_iter().map(|(name, _)| name).collect()
    }

    /// The message of a run.
    pub(super) fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.0.read(name)
    }

    /// Removes a run that is kept elsewhere, or can be kept nowhere.
    pub(super) fn remove(&self, name: &str) {
        // One that stays is sent again, and known there.
        let _ = self.0.remove(name);
    }
}
