//! What the reaper answers for, and how it removes it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::tag::RunTag;

/// How long the last processes of a control group may take to end.
const LIMITS_WITHIN: Duration = Duration::from_secs(10);
/// Time between two tries to remove it.
const PAUSE: Duration = Duration::from_millis(20);

/// Everything of the process that started the reaper that must not outlive it.
#[derive(Debug, Default)]
pub(super) struct OwnedProcess {
    groups: BTreeSet<i32>,
    tags: Vec<RunTag>,
    limits: Vec<u32>,
    folders: Vec<PathBuf>,
}

impl OwnedProcess {
    /// Takes in one line.
    pub(super) fn take(&mut self, line: &str) -> Result<(), String> {
        let bad = || format!("cannot understand {line:?}");
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        // Groups 0 and 1 and negative numbers mean other things than a group of ours.
        let group = || rest.parse().ok().filter(|group| *group > 1).ok_or_else(bad);
        match word {
            "group" => {
                self.groups.insert(group()?);
            }
            "gone" => {
                self.groups.remove(&group()?);
            }
            "tag" => self.tags.push(RunTag::parse(rest).ok_or_else(bad)?),
            "limits" => self.limits.push(rest.parse().map_err(|_| bad())?),
            // A relative path could mean another place by now.
            "folder" if Path::new(rest).is_absolute() => self.folders.push(rest.into()),
            _ => return Err(bad()),
        }
        Ok(())
    }

    /// Ends and removes everything. The error says what is left.
    pub(super) fn clean_up(&self) -> Result<(), String> {
        let mut left = Vec::new();
        for group in &self.groups {
            // One that is empty already is fine.
            let _ = killpg(Pid::from_raw(*group), Signal::SIGKILL);
        }
        for tag in &self.tags {
            let carriers = tag.sweep();
            if !carriers.is_empty() {
                left.push(format!("processes {carriers:?}"));
            }
        }
        for owner in &self.limits {
            let until = Instant::now() + LIMITS_WITHIN;
            while !removed(*owner) {
                if Instant::now() > until {
                    left.push(format!(
                        "control groups, networks and file systems of process {owner}"
                    ));
                    break;
                }
                std::thread::sleep(PAUSE);
            }
        }
        for folder in &self.folders {
            match fs::remove_dir_all(folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    left.push(format!("{}: {error}", folder.display()));
                }
                _ => {}
            }
        }
        match left.is_empty() {
            true => Ok(()),
            false => Err(format!("could not remove {}", left.join(", "))),
        }
    }
}

/// Removes the control groups, networks and file systems that a process made. Whether none is left: a
/// group stays as long as a process is in it.
fn removed(owner: u32) -> bool {
    let root = Path::new("/");
    let networks = crate::network::remove(root, owner);
    let disks = crate::disk::unmount_disks(owner);
    crate::cgroup::remove(root, owner) && networks && disks
}
