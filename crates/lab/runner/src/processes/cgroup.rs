//! Memory limits, kept by the kernel.

use std::fs;
use std::path::{Path, PathBuf};

use crate::guard::remove_cgroup;

const ROOT: &str = "/sys/fs/cgroup";

/// A limit of memory cannot be kept.
#[derive(Debug, thiserror::Error)]
#[error(
    "limit the memory of {system} to {bytes} bytes: no cgroup could be made ({tried}); \
     run with the right to make cgroups, or take `memory` out of the file"
)]
pub struct CgroupError {
    system: String,
    bytes: u64,
    tried: String,
}

/// A cgroup that limits the memory of the processes in it; removed with the run.
#[derive(Debug)]
pub(crate) struct MemoryCgroup(PathBuf);

impl MemoryCgroup {
    /// Makes a cgroup below our own, or below the nearest one above it where we may.
    pub(crate) fn create(name: &str, system: &str, bytes: u64) -> Result<Self, CgroupError> {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mut tried = Vec::new();
        for parent in parents(&own, Path::new(ROOT)) {
            match make(&parent, name, bytes) {
                Ok(path) => return Ok(Self(path)),
                Err(cause) => tried.push(format!("{}: {cause}", parent.path.display())),
            }
        }
        if tried.is_empty() {
            tried.push("this system has no cgroup with a memory controller".into());
        }
        Err(CgroupError {
            system: system.to_owned(),
            bytes,
            tried: tried.join("; "),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Removes it once its processes have ended.
    pub(crate) fn remove(&self) -> std::io::Result<()> {
        remove_cgroup(&self.0)
    }
}

/// A cgroup in which ours may be made.
#[derive(Debug, PartialEq, Eq)]
struct Parent {
    path: PathBuf,
    unified: bool,
}

/// Our own memory cgroup and all above it, nearest first, for version 1 and 2.
fn parents(own: &str, root: &Path) -> Vec<Parent> {
    let mut parents = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let (mount, unified) = if controllers.is_empty() {
            (root.to_owned(), true)
        } else if controllers
            .split(',')
            .any(|controller| controller == "memory")
        {
            (root.join("memory"), false)
        } else {
            continue;
        };
        let below = Path::new(path.trim_start_matches('/'));
        parents.extend(below.ancestors().map(|below| Parent {
            path: if below.as_os_str().is_empty() {
                mount.clone()
            } else {
                mount.join(below)
            },
            unified,
        }));
    }
    parents
}

fn make(parent: &Parent, name: &str, bytes: u64) -> std::io::Result<PathBuf> {
    if parent.unified {
        let control = parent.path.join("cgroup.subtree_control");
        let active = fs::read_to_string(&control)?;
        if !active
            .split_ascii_whitespace()
            .any(|controller| controller == "memory")
        {
            fs::write(&control, "+memory")?;
        }
    }
    let path = parent.path.join(name);
    fs::create_dir(&path)?;
    let limit = path.join(if parent.unified {
        "memory.max"
    } else {
        "memory.limit_in_bytes"
    });
    // Without the controller the file does not exist, and must not be made.
    let limited = fs::OpenOptions::new()
        .write(true)
        .open(limit)
        .and_then(|mut file| std::io::Write::write_all(&mut file, bytes.to_string().as_bytes()));
    if let Err(cause) = limited {
        let _ = fs::remove_dir(&path);
        return Err(cause);
    }
    // Without it the processes would swap instead of meeting their limit. Kernels
    // without swap accounting do not have the file.
    if parent.unified {
        let swap = path.join("memory.swap.max");
        if swap.exists() {
            let _ = fs::write(swap, "0");
        }
    }
    Ok(path)
}

/// Did the kernel kill a process in this cgroup to keep its limit?
pub(super) fn out_of_memory(path: &Path) -> bool {
    // Version 2 and version 1; either has a line `oom_kill` with the count.
    ["memory.events", "memory.oom_control"]
        .iter()
        .filter_map(|file| fs::read_to_string(path.join(file)).ok())
        .any(|text| {
            let mut counts = text
                .lines()
                .filter_map(|line| line.strip_prefix("oom_kill "));
            counts.any(|count| count.trim() != "0")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_tried_from_our_own_upwards() {
        let own = "4:memory:/a/b\n3:cpuset:/\n0::/user.slice\n";
        let found: Vec<(String, bool)> = parents(own, Path::new("/cg"))
            .into_iter()
            .map(|parent| (parent.path.display().to_string(), parent.unified))
            .collect();
        let expected = [
            ("/cg/memory/a/b", false),
            ("/cg/memory/a", false),
            ("/cg/memory", false),
            ("/cg/user.slice", true),
            ("/cg", true),
        ];
        assert_eq!(
            found,
            expected.map(|(path, unified)| (path.to_owned(), unified))
        );
    }

    #[test]
    fn other_text_gives_no_parents() {
        assert!(parents("nonsense\n1:cpu:/x\n", Path::new("/cg")).is_empty());
    }

    #[test]
    fn a_parent_without_a_memory_controller_is_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let parent = Parent {
            path: folder.path().to_owned(),
            unified: false,
        };
        assert!(make(&parent, "headroom-x", 1 << 20).is_err());
        assert!(!folder.path().join("headroom-x").exists());
    }
}
