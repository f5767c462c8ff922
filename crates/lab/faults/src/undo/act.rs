//! Acts that undo others.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::process::{Resource as KernelResource, Rlimit, prlimit};
use serde::{Deserialize, Serialize};

use super::ledger::MADE;
use super::process::ProcessId;

/// Where control groups stand.
const GROUPS: &str = "/sys/fs/cgroup/";
/// Tries to run a command, and the time between two. The one that it undoes may have been
/// running when the laboratory was killed.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);
/// How long a command may run.
const RUN_WITHIN: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);

/// A limit of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Descriptors (`RLIMIT_NOFILE`).
    Descriptors,
    /// Bytes of address space (`RLIMIT_AS`).
    AddressSpace,
}

impl Resource {
    pub(crate) fn of_kernel(self) -> KernelResource {
        match self {
            Self::Descriptors => KernelResource::Nofile,
            Self::AddressSpace => KernelResource::As,
        }
    }
}

/// What undoes something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "undo")]
pub enum Undo {
    /// A stopped process goes on.
    Continue {
        /// Which.
        process: ProcessId,
    },
    /// A file, or a folder with all that is in it, is removed. Its name must begin with
    /// [`MADE`], so that nothing of anybody else is ever removed.
    Remove {
        /// Absolute.
        path: PathBuf,
    },
    /// A limit of a control group is as before.
    RestoreGroup {
        /// Its file, below `/sys/fs/cgroup`.
        path: PathBuf,
        /// What stood there.
        value: String,
    },
    /// A command takes a rule off. It may be run twice, so it must succeed also when the rule is
    /// gone.
    Run {
        /// For example `tc`.
        program: String,
        /// For example `qdisc del dev lo root`.
        arguments: Vec<String>,
    },
    /// A process's limit is as before.
    RestoreLimit {
        /// Whose.
        process: ProcessId,
        /// Which.
        resource: Resource,
        /// What it may use; `None`: no limit.
        soft: Option<u64>,
        /// How far it may raise that itself; `None`: no limit.
        hard: Option<u64>,
    },
}

impl Undo {
    /// Does it. What is gone already is fine.
    ///
    /// # Errors
    /// What was being done, and what was found.
    pub fn perform(&self) -> Result<(), String> {
        match self {
            Self::Continue { process } => resume(*process),
            Self::Remove { path } => remove(path),
            Self::RestoreGroup { path, value } => restore(path, value),
            Self::Run { program, arguments } => run(program, arguments),
            Self::RestoreLimit {
                process,
                resource,
                soft,
                hard,
            } => limit(
                *process,
                *resource,
                Rlimit {
                    current: *soft,
                    maximum: *hard,
                },
            ),
        }
    }

    /// Whether it still means the same after the machine was started again: of what a fault
    /// did, only files outlast that.
    pub(super) fn outlasts_boot(&self) -> bool {
        matches!(self, Self::Remove { .. })
    }
}

fn resume(process: ProcessId) -> Result<(), String> {
    if !process.is_alive() {
        return Ok(());
    }
    match kill(Pid::from_raw(process.pid), Signal::SIGCONT) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(error) => Err(format!("continue process {}: {error}", process.pid)),
    }
}

fn remove(path: &Path) -> Result<(), String> {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    if !path.is_absolute() || !name.starts_with(MADE) {
        return Err(format!(
            "remove {}: a fault makes only files at absolute paths whose name begins with {MADE}; look at it and remove it yourself",
            path.display()
        ));
    }
    // A link is removed and not followed.
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    gone_is_fine(removed).map_err(|error| format!("remove {}: {error}", path.display()))
}

fn restore(path: &Path, value: &str) -> Result<(), String> {
    let has_parents = path.components().any(|part| part.as_os_str() == "..");
    if !path.starts_with(GROUPS) || has_parents {
        return Err(format!(
            "restore {}: that is no file of a control group",
            path.display()
        ));
    }
    // A group that is gone has no limit; no file is made in its place.
    let written = fs::OpenOptions::new().write(true).open(path);
    let written = written.and_then(|mut file| io::Write::write_all(&mut file, value.as_bytes()));
    gone_is_fine(written)
        .map_err(|error| format!("restore {} to {value:?}: {error}", path.display()))
}

fn gone_is_fine(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn limit(process: ProcessId, resource: Resource, limits: Rlimit) -> Result<(), String> {
    let Some(pid) = rustix::process::Pid::from_raw(process.pid).filter(|_| process.is_alive())
    else {
        return Ok(());
    };
    match prlimit(Some(pid), resource.of_kernel(), limits) {
        Ok(_) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(format!(
            "restore a limit of process {}: {error}",
            process.pid
        )),
    }
}

fn run(program: &str, arguments: &[String]) -> Result<(), String> {
    let mut tried = Err(String::new());
    for _ in 0..TRIES {
        tried = run_once(program, arguments);
        if tried.is_ok() {
            break;
        }
        sleep(PAUSE);
    }
    tried.map_err(|found| format!("run `{program} {}`: {found}", arguments.join(" ")))
}

fn run_once(program: &str, arguments: &[String]) -> Result<(), String> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let until = Instant::now() + RUN_WITHIN;
    while Instant::now() < until {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(status.to_string()),
            None => sleep(POLL),
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    Err(format!("it did not end within {RUN_WITHIN:?}"))
}
