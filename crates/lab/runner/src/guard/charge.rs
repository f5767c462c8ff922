//! What the guard answers for, and how it cleans up.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::marker::Marker;

/// Tries to remove a cgroup whose last process is still ending.
const CGROUP_TRIES: u32 = 100;
const CGROUP_PAUSE: Duration = Duration::from_millis(20);

/// Everything that must not outlive the laboratory.
#[derive(Debug, Default)]
pub(super) struct Charge {
    groups: BTreeSet<i32>,
    dirs: Vec<PathBuf>,
    cgroups: Vec<PathBuf>,
    markers: Vec<Marker>,
    done: bool,
}

impl Charge {
    /// Takes in one line.
    pub(super) fn take(&mut self, line: &str) -> Result<(), String> {
        let bad = || format!("cannot understand {line:?}");
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let group = || rest.parse().ok().filter(|group| *group > 1).ok_or_else(bad);
        let path = || {
            let path = Path::new(rest);
            // A relative path could mean another place by now.
            path.is_absolute().then(|| path.to_owned()).ok_or_else(bad)
        };
        match word {
            "group" => {
                self.groups.insert(group()?);
            }
            "gone" => {
                self.groups.remove(&group()?);
            }
            "dir" => self.dirs.push(path()?),
            "cgroup" => self.cgroups.push(path()?),
            "marker" => self.markers.push(Marker::parse(rest).ok_or_else(bad)?),
            "done" if rest.is_empty() => self.done = true,
            _ => return Err(bad()),
        }
        Ok(())
    }

    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Ends and removes everything. The error says what is left.
    pub(super) fn clean_up(&self) -> Result<(), String> {
        let mut left = Vec::new();
        for group in &self.groups {
            kill_group(*group, Signal::SIGKILL);
        }
        for marker in &self.markers {
            let carriers = marker.sweep();
            if !carriers.is_empty() {
                left.push(format!("processes {carriers:?}"));
            }
        }
        for cgroup in &self.cgroups {
            if let Err(error) = remove_cgroup(cgroup) {
                left.push(format!("{}: {error}", cgroup.display()));
            }
        }
        for dir in &self.dirs {
            match fs::remove_dir_all(dir) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    left.push(format!("{}: {error}", dir.display()));
                }
                _ => {}
            }
        }
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("could not remove {}", left.join(", ")))
        }
    }
}

/// Signals a process group; one that is empty already is fine.
pub(crate) fn kill_group(group: i32, signal: Signal) {
    // Groups 0 and 1 and negative numbers mean other things than a group of ours.
    if group > 1 {
        let _ = killpg(Pid::from_raw(group), signal);
    }
}

/// Removes a cgroup once its processes have ended.
pub(crate) fn remove_cgroup(path: &Path) -> io::Result<()> {
    for _ in 0..CGROUP_TRIES {
        match fs::remove_dir(path) {
            Err(error) if error.raw_os_error() == Some(Errno::EBUSY as i32) => {
                std::thread::sleep(CGROUP_PAUSE);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => return other,
        }
    }
    fs::remove_dir(path)
}
