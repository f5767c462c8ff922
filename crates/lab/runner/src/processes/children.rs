//! All children of a run: who they are, how they ended, how they are ended.

use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use processes::{Leader, Reaper, ReaperError, RunTag, Signal, StartError, memory_kills};
use tokio::sync::watch;

use super::launch::{Launch, Pipes, files_at_first};

/// Time that a child has to end by itself after a `SIGTERM`.
const GRACE: Duration = Duration::from_secs(5);
/// Time that the kernel has to end a killed child.
const KILLED_WITHIN: Duration = Duration::from_secs(5);

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Ended {
    how: processes::Ended,
    /// Did the kernel kill anything in its cgroup, to keep the limit of memory?
    out_of_memory: bool,
}

impl Ended {
    /// Its exit status; `None` if a signal ended it.
    pub(crate) fn status(self) -> Option<i32> {
        self.how.status.code()
    }

    /// Did it end with status 0?
    pub(crate) fn well(self) -> bool {
        self.how.status.success()
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.how.status.signal().map(Signal::try_from) {
            Some(Ok(signal)) => write!(f, "was ended by {signal}")?,
            _ => write!(f, "ended with {}", self.how)?,
        }
        match self.out_of_memory {
            true => write!(f, ", having used up its limit of memory"),
            false => Ok(()),
        }
    }
}

/// Starts children and charges the reaper with them.
#[derive(Debug, Clone)]
pub(crate) struct Children {
    reaper: Arc<Reaper>,
    tag: RunTag,
    /// The folder that they start in.
    base: PathBuf,
    /// Commands that were killed because nobody waited for them any more.
    dropped: Arc<Mutex<Vec<Exit>>>,
}

/// A started process and its group. Dropping it does not end it.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) pid: u32,
    leader: Leader,
    pub(crate) command_line: String,
    /// Files of its output.
    pub(crate) logs: Vec<PathBuf>,
    /// Their lengths when it started: what stands before is of processes before it.
    pub(crate) logs_from: Vec<u64>,
    /// Ours, when it was launched with pipes.
    pub(crate) pipes: Option<Pipes>,
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
        /// What went wrong.
        cause: StartError,
        /// What to do about it.
        hint: String,
    },
    /// The reaper was lost.
    #[error(transparent)]
    Reaper(#[from] ReaperError),
}

impl Children {
    pub(crate) fn new(reaper: Arc<Reaper>, tag: RunTag, base: PathBuf) -> Self {
        // It has to be asked for before the first load.
        files_at_first();
        Self {
            reaper,
            tag,
            base,
            dropped: Arc::default(),
        }
    }

    /// The folder of the experiment file.
    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    /// Starts a command that is killed when nobody waits for it any more.
    pub(crate) fn command(&self, launch: Launch) -> Result<Command, LaunchError> {
        Ok(Command {
            child: self.start(launch)?,
            dropped: Arc::clone(&self.dropped),
        })
    }

    /// Waits, at most so long as the kernel may take, until the commands have ended that
    /// nobody waited for: before that, what they do cannot be undone.
    pub(crate) async fn dropped_commands(&self) {
        let dropped = std::mem::take(&mut *locked(&self.dropped));
        let ended = async {
            for exit in dropped {
                exit.ended().await;
            }
        };
        let _ = tokio::time::timeout(KILLED_WITHIN, ended).await;
    }

    /// Starts a process; see [`Launch::spawn`] for the thread to call this from.
    pub(crate) fn start(&self, mut launch: Launch) -> Result<Child, LaunchError> {
        launch.env.push(self.tag.variable());
        let command_line = launch.command_line();
        let logs = launch.logs();
        let length = |path: &PathBuf| std::fs::metadata(path).map_or(0, |file| file.len());
        let logs_from = logs.iter().map(length).collect();
        // Those that the group has seen end before are none of this process.
        let kills = |launch: &Launch| launch.cgroup.as_deref().map_or(0, memory_kills);
        let kills_before = kills(&launch);
        let (mut process, pipes) =
            launch
                .spawn(&self.base)
                .map_err(|cause| LaunchError::Spawn {
                    name: launch.name.clone(),
                    command_line: command_line.clone(),
                    hint: self.hint(&launch, &cause),
                    cause,
                })?;
        let leader = process.leader().clone();
        // Dropped, the process is killed.
        self.reaper.group(leader.id())?;
        let (tell, exit) = watch::channel(None);
        let (reaper, group) = (Arc::clone(&self.reaper), leader.id());
        tokio::spawn(net::boxed(async move {
            // Waiting for a child of ours fails only if someone else collected it.
            let how = process.ended().await.unwrap_or_default();
            // When the reaper is lost, the run ends for that reason elsewhere.
            let _ = reaper.gone(group);
            let _ = tell.send(Some(Ended {
                how,
                out_of_memory: kills(&launch) > kills_before,
            }));
        }));
        Ok(Child {
            logs,
            logs_from,
            pid: leader.id(),
            leader,
            command_line,
            pipes,
            exit: Exit(exit),
        })
    }

    fn hint(&self, launch: &Launch, cause: &StartError) -> String {
        let path = launch.program.to_string_lossy();
        let StartError::Program(cause) = cause else {
            return String::new();
        };
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

/// A command that is under way. Dropping it kills it, with its group.
#[derive(Debug)]
pub(crate) struct Command {
    child: Child,
    dropped: Arc<Mutex<Vec<Exit>>>,
}

impl std::ops::Deref for Command {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.child
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        if self.child.ended().is_none() {
            self.child.signal(Signal::SIGKILL);
            locked(&self.dropped).push(self.child.watch());
        }
    }
}

fn locked(dropped: &Mutex<Vec<Exit>>) -> std::sync::MutexGuard<'_, Vec<Exit>> {
    dropped.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.leader.signal(signal);
    }

    /// Sends a signal to the process alone, if it runs.
    pub(crate) fn signal_alone(&self, signal: Signal) {
        self.leader.signal_alone(signal);
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
