//! Starting one process so that it cannot outlive us.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid, write};
use tokio::process::Command;

/// Where a child's standard output goes.
#[derive(Debug, Clone)]
pub(crate) enum Output {
    /// Straight into a file, so that nothing is lost when we die.
    File(PathBuf),
    /// To us; its standard input comes from us as well.
    Pipes,
}

/// A process to start.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    /// Its name in messages and events.
    pub(crate) name: String,
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    /// Added to our environment.
    pub(crate) env: Vec<(String, String)>,
    /// Processors it may run on; `None`: all.
    pub(crate) cpus: Option<Vec<u32>>,
    /// The cgroup it runs in.
    pub(crate) cgroup: Option<PathBuf>,
    pub(crate) stdout: Output,
    /// File of its standard error.
    pub(crate) stderr: PathBuf,
}

impl Launch {
    /// The command line as a person would type it.
    pub(crate) fn command_line(&self) -> String {
        std::iter::once(&self.program)
            .chain(&self.args)
            .map(|word| quoted(&word.to_string_lossy()))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Files that hold its output.
    pub(crate) fn logs(&self) -> Vec<PathBuf> {
        match &self.stdout {
            Output::File(stdout) => vec![stdout.clone(), self.stderr.clone()],
            Output::Pipes => vec![self.stderr.clone()],
        }
    }

    /// Starts it in a process group of its own, in the folder `base`. Must be called from a thread that
    /// lives as long as the run: the kernel kills the child when that thread ends.
    pub(super) fn spawn(&self, base: &Path) -> io::Result<tokio::process::Child> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .current_dir(base)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stderr(append(&self.stderr)?)
            .process_group(0);
        match &self.stdout {
            Output::File(path) => command.stdin(Stdio::null()).stdout(append(path)?),
            Output::Pipes => command.stdin(Stdio::piped()).stdout(Stdio::piped()),
        };
        let cpus = self.cpus.as_deref().map(cpu_set).transpose()?;
        let cgroup = self.cgroup.as_deref().map(open_cgroup).transpose()?;
        let parent = Pid::this();
        // SAFETY: the closure runs in the child between fork and exec, where only
        // async-signal-safe calls are allowed. It makes system calls alone and
        // neither allocates nor takes a lock; errors are plain numbers.
        unsafe {
            command.pre_exec(move || before_exec(parent, cpus.as_ref(), cgroup.as_ref()));
        }
        command.spawn()
    }
}

fn before_exec(parent: Pid, cpus: Option<&CpuSet>, cgroup: Option<&OwnedFd>) -> io::Result<()> {
    set_pdeathsig(Signal::SIGKILL)?;
    // If we died before the line above, the kernel would never tell the child.
    if getppid() != parent {
        return Err(io::Error::from_raw_os_error(
            nix::errno::Errno::ESRCH as i32,
        ));
    }
    if let Some(cgroup) = cgroup {
        write(cgroup.as_fd(), b"0")?;
    }
    if let Some(cpus) = cpus {
        sched_setaffinity(Pid::from_raw(0), cpus)?;
    }
    Ok(())
}

fn cpu_set(cpus: &[u32]) -> io::Result<CpuSet> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu as usize).map_err(|_| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("there is no processor {cpu}"),
            )
        })?;
    }
    Ok(set)
}

fn open_cgroup(path: &Path) -> io::Result<OwnedFd> {
    let file = OpenOptions::new()
        .write(true)
        .open(path.join("cgroup.procs"))?;
    Ok(file.into())
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(|cause| io::Error::new(cause.kind(), format!("open {}: {cause}", path.display())))
}

/// A word in the form that a shell reads back as one word.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%{}".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The variable by which a system, and the command of a step, find this program.
pub(crate) fn itself(own_binary: &std::ffi::OsStr) -> [(String, String); 1] {
    let path = own_binary.to_string_lossy().into_owned();
    [("HEADROOM".to_owned(), path)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        assert_eq!(quoted("--listen=127.0.0.1:80"), "--listen=127.0.0.1:80");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
