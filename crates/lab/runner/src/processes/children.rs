//! All children of a run: who they are, how they ended, how they are ended.

use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::watch;

use super::cgroup::out_of_memory;
use super::launch::Launch;
use crate::guard::{GuardError, GuardLink, Marker, VARIABLE, kill_group};

/// Time that a child has to end by itself after a `SIGTERM`.
const GRACE: Duration = Duration::from_secs(5);
/// Time that the kernel has to end a killed child.
const KILLED_WITHIN: Duration = Duration::from_secs(5);

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Ended {
    status: ExitStatus,
    /// Did the kernel kill anything in its cgroup, to keep the limit of memory?
    out_of_memory: bool,
}

impl Ended {
    /// Did it end with status 0?
    pub(crate) fn well(self) -> bool {
        self.status.success()
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => write!(f, "ended with status {code}")?,
            (None, Some(number)) => match Signal::try_from(number) {
                Ok(signal) => write!(f, "was ended by {signal}")?,
                Err(_) => write!(f, "was ended by signal {number}")?,
            },
            (None, None) => write!(f, "ended in an unknown way")?,
        }
        match self.out_of_memory {
            true => write!(f, ", having used up its limit of memory"),
            false => Ok(()),
        }
    }
}

/// Starts children and charges the guard with them.
#[derive(Debug, Clone)]
pub(crate) struct Children {
    guard: Arc<GuardLink>,
    marker: Marker,
    /// The folder that they start in.
    base: PathBuf,
}

/// A started process and its group. Dropping it does not end it.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) pid: u32,
    pub(crate) command_line: String,
    /// Files of its output.
    pub(crate) logs: Vec<PathBuf>,
    /// Ours to write to, when it was launched with pipes.
    pub(crate) stdin: Option<ChildStdin>,
    /// Ours to read from, when it was launched with pipes.
    pub(crate) stdout: Option<ChildStdout>,
    exit: Exit,
}

/// A process could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The system refused.
    #[error("start {name} with `{command_line}`: {cause}{hint}")]
    Spawn {
        /// Name of the process.
        name: String,
        /// Its command line.
        command_line: String,
        /// What the system said.
        cause: io::Error,
        /// What to do about it.
        hint: String,
    },
    /// It could not be put under guard.
    #[error(transparent)]
    Guard(#[from] GuardError),
}

impl Children {
    pub(crate) fn new(guard: Arc<GuardLink>, marker: Marker, base: PathBuf) -> Self {
        Self {
            guard,
            marker,
            base,
        }
    }

    /// Starts a process; see [`Launch::spawn`] for the thread to call this from.
    pub(crate) fn start(&self, mut launch: Launch) -> Result<Child, LaunchError> {
        launch.env.push((VARIABLE.to_owned(), self.marker.value()));
        let command_line = launch.command_line();
        let mut process = launch
            .spawn(&self.base)
            .map_err(|cause| LaunchError::Spawn {
                name: launch.name.clone(),
                command_line: command_line.clone(),
                hint: self.hint(&launch, &cause),
                cause,
            })?;
        // A process that was just spawned and not yet waited for has an id.
        let pid = process.id().unwrap_or(0);
        let group = i32::try_from(pid).unwrap_or(0);
        if let Err(error) = self.guard.group(group) {
            kill_group(group, Signal::SIGKILL);
            return Err(error.into());
        }
        let (stdin, stdout) = (process.stdin.take(), process.stdout.take());
        let (tell, exit) = watch::channel(None);
        let guard = Arc::clone(&self.guard);
        let cgroup = launch.cgroup.clone();
        tokio::spawn(net::boxed(async move {
            let status = process.wait().await;
            // What the process left behind in its group has no one to answer to.
            kill_group(group, Signal::SIGKILL);
            // When the guard is lost, the run ends for that reason elsewhere.
            let _ = guard.gone(group);
            // Waiting for a child of ours fails only if someone else collected it.
            let _ = tell.send(Some(Ended {
                status: status.unwrap_or_default(),
                out_of_memory: cgroup.as_deref().is_some_and(out_of_memory),
            }));
        }));
        Ok(Child {
            logs: launch.logs(),
            pid,
            command_line,
            stdin,
            stdout,
            exit: Exit(exit),
        })
    }

    fn hint(&self, launch: &Launch, cause: &io::Error) -> String {
        let path = launch.program.to_string_lossy();
        match cause.kind() {
            io::ErrorKind::NotFound if path.contains('/') && !path.starts_with('/') => format!(
                "; check the path, which starts from the folder of the experiment file, {}",
                self.base.display()
            ),
            io::ErrorKind::NotFound => {
                "; check the path, or install the program so that it is found in PATH".to_owned()
            }
            io::ErrorKind::PermissionDenied => "; make the file executable".to_owned(),
            _ => String::new(),
        }
    }
}

/// Tells when a child ends, without holding it.
#[derive(Debug, Clone)]
pub(crate) struct Exit(watch::Receiver<Option<Ended>>);

impl Exit {
    /// Waits for its end.
    pub(crate) async fn ended(&self) -> Ended {
        let mut exit = self.0.clone();
        // The sender lives until it has sent.
        match exit.wait_for(Option::is_some).await.map(|ended| *ended) {
            Ok(Some(ended)) => ended,
            _ => Ended::default(),
        }
    }
}

impl Child {
    /// How it ended; `None`: it runs.
    pub(crate) fn ended(&self) -> Option<Ended> {
        *self.exit.0.borrow()
    }

    /// Something that can be waited for elsewhere.
    pub(crate) fn watch(&self) -> Exit {
        self.exit.clone()
    }

    /// Waits for its end.
    pub(crate) async fn exit(&self) -> Ended {
        self.exit.ended().await
    }

    /// Sends a signal to its whole group, if the process runs.
    pub(crate) fn signal(&self, signal: Signal) {
        if self.ended().is_none() {
            kill_group(i32::try_from(self.pid).unwrap_or(0), signal);
        }
    }

    /// Asks it to end, and kills it when it does not within five seconds.
    pub(crate) async fn stop(&self) {
        self.signal(Signal::SIGTERM);
        if tokio::time::timeout(GRACE, self.exit()).await.is_err() {
            self.signal(Signal::SIGKILL);
            let _ = tokio::time::timeout(KILLED_WITHIN, self.exit()).await;
        }
    }
}
