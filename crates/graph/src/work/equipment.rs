//! What work needs and several share: the process's locks, an instance's memory and file.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use measure::Machine;
use nix::sys::statfs::{FsType, TMPFS_MAGIC, statfs};
use rustix::thread::CpuSet;

use super::calibration::Calibration;
use super::disk::DiskFile;
use super::error::WorkError;
use super::lock::NamedLock;
use super::memory::WorkingSet;
use super::stress_ng::Load;
use crate::lock;
use crate::noise::Limits;

/// The kernel's number of ramfs (`linux/magic.h`).
const RAMFS_MAGIC: FsType = FsType(0x8584_58f6);

/// What all instances of a process share.
pub struct SharedResources {
    /// Of this machine.
    pub(crate) calibration: Calibration,
    /// The program that `stress-ng` stands for.
    pub(crate) stress_ng: OsString,
    /// Processors that this process may use, as of its start: the threads of an event loop
    /// may be pinned to fewer.
    pub(crate) allowed: CpuSet,
    locks: Mutex<HashMap<String, Weak<NamedLock>>>,
    folder: PathBuf,
    /// Bytes of memory of the machine, or of the process's limit.
    memory: u64,
    /// Bytes of all working sets.
    taken: AtomicU64,
}

impl SharedResources {
    /// That of this process. Files for disk work are made in `folder`; where it is in
    /// memory (tmpfs), waiting for the disk is for nothing.
    ///
    /// # Errors
    /// When the system does not tell which processors may be used.
    pub fn open(calibration: Calibration, folder: &Path) -> Result<Arc<Self>, WorkError> {
        Self::with_stress_ng(calibration, folder, "stress-ng".into())
    }

    pub(crate) fn with_stress_ng(
        calibration: Calibration,
        folder: &Path,
        stress_ng: OsString,
    ) -> Result<Arc<Self>, WorkError> {
        let allowed = rustix::thread::sched_getaffinity(None)
            .map_err(|errno| WorkError::system("ask for processors")(errno.into()))?;
        let machine = Some(Machine::detect().memory_bytes).filter(|bytes| *bytes > 0);
        let group = Limits::read(Path::new("/")).memory;
        let memory = machine.into_iter().chain(group).min().unwrap_or(u64::MAX);
        Ok(Arc::new(Self {
            calibration,
            stress_ng,
            allowed,
            locks: Mutex::default(),
            folder: folder.to_owned(),
            memory,
            taken: AtomicU64::new(0),
        }))
    }

    /// As given when it was opened.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// Whether files for disk work are in memory, so that nothing waits for a disk.
    pub fn disk_is_memory(&self) -> bool {
        statfs(&self.folder)
            .is_ok_and(|system| [TMPFS_MAGIC, RAMFS_MAGIC].contains(&system.filesystem_type()))
    }

    /// That of one instance of a service.
    pub fn equipment(self: &Arc<Self>) -> Equipment {
        Equipment {
            resources: Arc::clone(self),
            sets: Vec::new(),
            file: Weak::new(),
            load: Arc::default(),
        }
    }

    #[cfg(test)]
    pub(super) fn memory_taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// The lock with a name.
    pub(crate) fn lock(&self, name: &str) -> Arc<NamedLock> {
        let mut locks = lock(&self.locks);
        if let Some(lock) = locks.get(name).and_then(Weak::upgrade) {
            return lock;
        }
        // Names of older profiles go.
        locks.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::new(NamedLock::default());
        locks.insert(name.to_owned(), Arc::downgrade(&lock));
        lock
    }
}

/// Memory that the machine has, and that goes back with it.
pub(crate) struct Memory {
    pub(crate) set: WorkingSet,
    bytes: u64,
    resources: Arc<SharedResources>,
}

impl Memory {
    /// # Errors
    /// When the machine has not so much left, other working sets counted.
    pub(crate) fn new(resources: &Arc<SharedResources>, bytes: u64) -> Result<Self, WorkError> {
        // Small numbers are added that cannot overflow; an absurd one is refused below.
        let bytes = bytes.min(1 << 60);
        let before = resources.taken.fetch_add(bytes, Ordering::Relaxed);
        let left = resources.memory.saturating_sub(before);
        match WorkingSet::new(bytes, left) {
            Ok(set) => Ok(Self {
                set,
                bytes,
                resources: Arc::clone(resources),
            }),
            Err(error) => {
                resources.taken.fetch_sub(bytes, Ordering::Relaxed);
                Err(error)
            }
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.resources
            .taken
            .fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// What the steps of one instance share. It outlives changes of the profile: what the new
/// steps need and the old had stays, and what only old steps had goes with the last of them.
///
/// Dropping it ends the background load, for which it waits up to two seconds.
pub struct Equipment {
    pub(crate) resources: Arc<SharedResources>,
    /// By size in bytes.
    sets: Vec<(u64, Weak<Memory>)>,
    file: Weak<DiskFile>,
    pub(crate) load: Arc<Load>,
}

impl Equipment {
    pub(crate) fn memory(&mut self, bytes: u64) -> Result<Arc<Memory>, WorkError> {
        self.sets.retain(|(_, set)| set.strong_count() > 0);
        let known = self.sets.iter().find(|(size, _)| *size == bytes);
        if let Some(memory) = known.and_then(|(_, memory)| memory.upgrade()) {
            return Ok(memory);
        }
        let memory = Arc::new(Memory::new(&self.resources, bytes)?);
        self.sets.push((bytes, Arc::downgrade(&memory)));
        Ok(memory)
    }

    pub(crate) fn file(&mut self) -> Arc<DiskFile> {
        if let Some(file) = self.file.upgrade() {
            return file;
        }
        let file = Arc::new(DiskFile::new(&self.resources.folder));
        self.file = Arc::downgrade(&file);
        file
    }
}

impl Drop for Equipment {
    fn drop(&mut self) {
        self.load.end();
    }
}
