//! How much a cell has, by what the machine has.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use nix::sys::statvfs::statvfs;
use processes::Hierarchy;

use super::size::{BadSize, Mebibytes};

/// How much a cell has: as much as is said, or as the machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// Written `auto`.
    Auto,
    /// Written as a size.
    Given(Mebibytes),
}

/// Why it cannot be told how much the machine has.
#[derive(Debug, thiserror::Error)]
#[error("find out how much {what} there is: {cause}; say it instead of auto")]
pub struct CapacityError {
    what: &'static str,
    cause: io::Error,
}

impl FromStr for Room {
    type Err = BadSize;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            text => text.parse().map(Self::Given),
        }
    }
}

impl Room {
    /// As memory: without a size, what the machine has, or what the control group of this
    /// process, or one above it, is kept to.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn of_memory(self) -> Result<Mebibytes, CapacityError> {
        let Self::Auto = self else {
            return Ok(self.given());
        };
        let groups = Hierarchy::of(Path::new("/"), "memory");
        let folders = groups.iter().flat_map(Hierarchy::folders);
        let limits = folders.flat_map(|folder| {
            let files = ["memory.max", "memory.limit_in_bytes"];
            files.map(|file| fs::read_to_string(folder.join(file)).unwrap_or_default())
        });
        let about = fs::read_to_string("/proc/meminfo");
        let found = about.and_then(|about| {
            memory(&about, limits).ok_or_else(|| io::Error::other("/proc/meminfo does not say"))
        });
        found.map_err(|cause| CapacityError {
            what: "memory",
            cause,
        })
    }

    /// As disk: without a size, what the file system of this folder has, or of that for
    /// temporary files. A folder that is not there yet is in the one above it.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn of_disk(self, folder: Option<&Path>) -> Result<Mebibytes, CapacityError> {
        let Self::Auto = self else {
            return Ok(self.given());
        };
        let folder = folder.map_or_else(std::env::temp_dir, PathBuf::from);
        let made = folder.ancestors().find(|folder| folder.exists());
        let about = statvfs(made.unwrap_or(Path::new(".")));
        let about = about.map_err(|cause| CapacityError {
            what: "disk",
            cause: cause.into(),
        })?;
        Ok(mebibytes(about.blocks() * about.fragment_size()))
    }

    fn given(self) -> Mebibytes {
        match self {
            Self::Auto => Mebibytes(0),
            Self::Given(size) => size,
        }
    }
}

/// The least of what the machine has and what groups are kept to. A group without a limit says
/// `max`, or a number that no machine has.
fn memory(about: &str, limits: impl Iterator<Item = String>) -> Option<Mebibytes> {
    let total = about
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = total.split_whitespace().next()?.parse().ok()?;
    let limits = limits.filter_map(|limit| limit.trim().parse::<u64>().ok());
    let least = limits.fold(kilobytes.saturating_mul(1024), u64::min);
    Some(mebibytes(least))
}

fn mebibytes(bytes: u64) -> Mebibytes {
    Mebibytes(i32::try_from(bytes >> 20).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_may_have_less_than_the_machine() {
        let about = "MemFree: 1 kB\nMemTotal:       8388608 kB\n";
        let of = |limits: &[&str]| memory(about, limits.iter().map(ToString::to_string));
        assert_eq!(of(&[]), Some(Mebibytes(8192)));
        assert_eq!(
            of(&["max\n", "9223372036854771712\n", ""]),
            Some(Mebibytes(8192))
        );
        assert_eq!(of(&["max", "1073741824\n"]), Some(Mebibytes(1024)));
        assert_eq!(memory("", std::iter::empty()), None);
    }

    #[test]
    fn this_machine_has_some() {
        assert!(Room::Auto.of_memory().unwrap().0 > 0);
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("not/yet");
        assert!(Room::Auto.of_disk(Some(&missing)).unwrap().0 > 0);
        let given = Room::Given(Mebibytes(7));
        assert_eq!(given.of_memory().unwrap(), Mebibytes(7));
        assert_eq!("auto".parse(), Ok(Room::Auto));
        assert_eq!("7MiB".parse(), Ok(given));
    }
}
