//! Child processes: started so that they cannot outlive us, limited, ended, and removed
//! with what they leave.
//!
//! Nothing of this process may outlive it, however it ends. There are three nets, each for
//! what the one before lets through:
//! 1. We end our children ourselves: each leads a process group of its own, which is asked
//!    to end, and killed when it does not ([`Process`]).
//! 2. The kernel kills each child when the thread that started it ends ([`Program::spawn`]).
//! 3. The [`Reaper`], a small process in a session of its own, sees its pipe to us end. It
//!    kills the groups that it was told of and every process that carries our [`RunTag`]
//!    (children of children, also those that left their group), then removes control
//!    groups, networks, small file systems and folders.

mod account;
mod cgroup;
mod disk;
mod lines;
mod memory;
mod network;
mod online;
mod process;
mod program;
mod reaper;

use std::path::Path;

pub use account::Account;
pub use cgroup::{Bounds, Group, GroupError, Groups, Hierarchy, memory_kills, out_of_memory};
pub use disk::{DiskError, may_mount, mount_disk, unmount_disks, unmount_disks_below};
pub use lines::Lines;
pub use memory::give_back_freed_memory;
pub use network::{MOST_INSTANCES, Network, NetworkError};
pub use nix::sys::signal::Signal;
pub use online::lacking_processor;
pub use process::{AsyncProcess, Ended, Leader, Process};
pub use program::{Program, StartError};
pub use reaper::{Reaper, ReaperError, RunTag, reaper_main};

/// Whether a process is there. `root` is `/` but for tests.
pub fn is_alive(root: &Path, process: u32) -> bool {
    root.join("proc").join(process.to_string()).exists()
}
