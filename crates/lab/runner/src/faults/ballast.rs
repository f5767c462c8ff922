//! File systems of copies that are filled but for a little.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use lab_faults::undo::{Entry, Undo};
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::sys::statvfs::statvfs;

use super::Faults;
use super::copies::Hit;

/// Whoever writes there may free space while it is taken: tries to take what is free then.
const TRIES: u32 = 10;

/// Files that fill the file systems of some copies.
#[derive(Debug)]
pub(super) struct Filled(Vec<Ballast>);

#[derive(Debug)]
struct Ballast {
    folder: PathBuf,
    entry: Entry,
}

impl Faults<'_> {
    /// Leaves so many bytes free on the file system of each of these copies.
    ///
    /// # Errors
    /// What could not be read, written down or done.
    pub(super) fn fill(self, hit: &Hit<'_>, left: u64) -> Result<Filled, String> {
        let mut filled = Vec::new();
        for copy in hit.copies() {
            let system = &self.starting.systems[copy.system].name;
            let folder = self.starting.addresses.disk(system, copy.index);
            let mut ledger = self.ledger.borrow_mut();
            let path = ledger.path_to_make(&folder, "ballast")?;
            let entry = ledger.record(Undo::Remove { path: path.clone() })?;
            fill(&path, &folder, left).map_err(|errno| {
                format!("fill {} but for {left} bytes: {errno}", folder.display())
            })?;
            filled.push(Ballast { folder, entry });
        }
        Ok(Filled(filled))
    }

    /// Gives the space back; says how much was left in the end.
    ///
    /// # Errors
    /// What could not be given back.
    pub(super) fn empty(self, filled: &Filled) -> Result<String, String> {
        let mut left = Vec::new();
        for ballast in &filled.0 {
            let free = free(&ballast.folder).map_err(|errno| {
                format!(
                    "ask for the free space of {}: {errno}",
                    ballast.folder.display()
                )
            })?;
            left.push(units::show_bytes(free as f64));
            self.ledger.borrow_mut().undo(ballast.entry)?;
        }
        Ok(format!("in the end {} were free", left.join(", ")))
    }
}

/// Bytes that are free on the file system of a folder.
fn free(folder: &Path) -> Result<u64, Errno> {
    let found = statvfs(folder)?;
    Ok(found.blocks_available() * found.fragment_size())
}

/// Makes a file that takes all of a file system but for so many bytes.
fn fill(path: &Path, folder: &Path, left: u64) -> Result<(), Errno> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let file = file.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or_default()))?;
    let mut taken = 0_u64;
    for _ in 0..TRIES {
        let more = free(folder)?.saturating_sub(left);
        if more == 0 {
            break;
        }
        let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        match fallocate(&file, FallocateFlags::empty(), signed(taken), signed(more)) {
            Ok(()) => taken += more,
            // Somebody was faster.
            Err(Errno::ENOSPC) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
