//! One run at a time.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;

use thiserror::Error;

use crate::private;

/// Why a run may not start.
#[derive(Debug, Error)]
pub enum LockError {
    /// Another run goes on.
    #[error("another run of the agent goes on; this one is left out")]
    Busy,
    /// Somebody disabled the agent.
    #[error("the agent is disabled; remove the file disable-agent from its folder to enable it")]
    Disabled,
    /// The lock's file cannot be used.
    #[error("locking the agent's run: {0}; check its folder")]
    File(#[from] io::Error),
}

/// The right to run, until it is dropped or the process ends.
#[derive(Debug)]
pub struct RunLock {
    file: File,
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // Closed is not enough: a process that is just being started holds the file, too, until it
        // is a program.
        let _ = self.file.unlock();
    }
}

impl RunLock {
    /// Takes the lock of an agent whose files are in this folder, without waiting.
    ///
    /// # Errors
    /// Another run has it, the agent is disabled by a file `disable-agent`, or the folder cannot
    /// be used.
    pub fn take(folder: &Path) -> Result<Self, LockError> {
        if folder.join("disable-agent").try_exists()? {
            return Err(LockError::Disabled);
        }
        fs::create_dir_all(folder)?;
        let path = folder.join("run.lock");
        private::file(&path)?;
        let file = File::options().write(true).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { file }),
            Err(TryLockError::WouldBlock) => Err(LockError::Busy),
            Err(TryLockError::Error(error)) => Err(LockError::File(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_being_started_does_not_keep_it() {
        let folder = tempfile::tempdir().unwrap();
        let lock = RunLock::take(folder.path()).unwrap();
        // As a child does between its fork and its program.
        let _held = lock.file.try_clone().unwrap();
        drop(lock);
        RunLock::take(folder.path()).unwrap();
    }
}
