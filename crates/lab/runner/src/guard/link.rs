//! The laboratory's end of the pipe to its guard.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use super::{Marker, READY};

/// Why the guard cannot be relied on.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// It could not be started.
    #[error("start the guard process `{command}`: {cause}")]
    Start {
        /// Its command line.
        command: String,
        /// What went wrong.
        cause: String,
    },
    /// It ended before the run did.
    #[error(
        "the guard process ended early ({cause}); without it a crash could leave processes behind"
    )]
    Lost {
        /// What was seen.
        cause: String,
    },
    /// A path cannot be sent to it.
    #[error(
        "the path {path:?} holds a line break or is not absolute; choose another folder with --out"
    )]
    Path {
        /// The path.
        path: String,
    },
}

/// A running guard. Dropped without [`GuardLink::done`], it cleans up.
#[derive(Debug)]
pub(crate) struct GuardLink(Mutex<Link>);

#[derive(Debug)]
struct Link {
    guard: Child,
    /// `None` once it is closed.
    pipe: Option<ChildStdin>,
}

impl Link {
    /// Closes the pipe and waits for the guard's end.
    fn close(&mut self) -> std::io::Result<()> {
        self.pipe = None;
        self.guard.wait().map(|_| ())
    }
}

impl Drop for GuardLink {
    fn drop(&mut self) {
        // Whoever drops us expects that nothing is left afterwards.
        let _ = self
            .0
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .close();
    }
}

impl GuardLink {
    /// Starts the guard and waits until it says that it is ready.
    pub(crate) fn start(command: &[OsString]) -> Result<Self, GuardError> {
        let shown = command
            .iter()
            .map(|word| word.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" ");
        let failed = |cause: String| GuardError::Start {
            command: shown.clone(),
            cause,
        };
        let (program, args) = command
            .split_first()
            .ok_or_else(|| failed("the command is empty".into()))?;
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("it has no pipes".into()));
        };
        let mut line = String::new();
        let read = BufReader::new(stdout.take(64)).read_line(&mut line);
        if read.is_err() || line.trim_end() != READY {
            let _ = child.kill();
            let _ = child.wait();
            return Err(failed(format!("it said {line:?} instead of {READY:?}")));
        }
        Ok(Self(Mutex::new(Link {
            guard: child,
            pipe: Some(stdin),
        })))
    }

    /// Charges it with a marker.
    pub(crate) fn marker(&self, marker: &Marker) -> Result<(), GuardError> {
        self.say(&format!("marker {marker}"))
    }

    /// Charges it with a process group.
    pub(crate) fn group(&self, group: i32) -> Result<(), GuardError> {
        self.say(&format!("group {group}"))
    }

    /// A group has no process any more: its number may come to mean another one.
    pub(crate) fn gone(&self, group: i32) -> Result<(), GuardError> {
        self.say(&format!("gone {group}"))
    }

    /// Charges it with the removal of a folder.
    pub(crate) fn dir(&self, path: &Path) -> Result<(), GuardError> {
        self.path("dir", path)
    }

    /// Charges it with the removal of a cgroup.
    pub(crate) fn cgroup(&self, path: &Path) -> Result<(), GuardError> {
        self.path("cgroup", path)
    }

    /// Everything is cleaned up: the guard ends without doing anything.
    pub(crate) fn done(&self) -> Result<(), GuardError> {
        self.say("done")?;
        let mut link = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        link.close().map_err(|error| GuardError::Lost {
            cause: error.to_string(),
        })
    }

    fn path(&self, word: &str, path: &Path) -> Result<(), GuardError> {
        match path.to_str() {
            Some(text) if path.is_absolute() && !text.contains('\n') => {
                self.say(&format!("{word} {text}"))
            }
            _ => Err(GuardError::Path {
                path: path.display().to_string(),
            }),
        }
    }

    fn say(&self, line: &str) -> Result<(), GuardError> {
        let mut link = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lost = |cause: String| GuardError::Lost { cause };
        let pipe = link
            .pipe
            .as_mut()
            .ok_or_else(|| lost("it was dismissed".to_owned()))?;
        // One write for the whole line: the guard never sees half of one.
        pipe.write_all(format!("{line}\n").as_bytes())
            .map_err(|error| lost(error.to_string()))
    }
}
