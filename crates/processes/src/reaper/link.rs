//! Our end of the pipe to the reaper.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use super::{READY, RunTag};

/// Why the reaper cannot be relied on.
#[derive(Debug, thiserror::Error)]
pub enum ReaperError {
    /// It could not be started.
    #[error("start the reaper process `{command}`: {cause}")]
    Start {
        /// Its command line.
        command: String,
        /// What went wrong.
        cause: String,
    },
    /// It ended before we did.
    #[error(
        "the reaper process ended early ({cause}); without it a crash could leave processes behind"
    )]
    Lost {
        /// What was seen.
        cause: String,
    },
    /// A path cannot be sent to it.
    #[error("the path {path:?} holds a line break or is not absolute; choose another folder")]
    Path {
        /// The path.
        path: String,
    },
}

/// A running reaper. Dropped without [`Reaper::done`], it cleans up, which is waited for.
#[derive(Debug)]
pub struct Reaper(Mutex<Link>);

#[derive(Debug)]
struct Link {
    process: Child,
    /// `None` once it is closed.
    pipe: Option<ChildStdin>,
}

impl Link {
    /// Closes the pipe and waits for the reaper's end.
    fn close(&mut self) -> io::Result<()> {
        self.pipe = None;
        self.process.wait().map(|_| ())
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        let link = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Whoever drops us expects that nothing is left afterwards.
        let _ = link.close();
    }
}

impl Reaper {
    /// Starts a program that calls [`reaper_main`](crate::reaper_main), and waits until it
    /// says that it is ready.
    ///
    /// # Errors
    /// When it does not start, or is no reaper.
    pub fn start(command: &[OsString]) -> Result<Self, ReaperError> {
        let failed = |cause: String| ReaperError::Start {
            command: command.join(" ".as_ref()).display().to_string(),
            cause,
        };
        let [program, args @ ..] = command else {
            return Err(failed("the command is empty".into()));
        };
        let mut process = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let (Some(stdin), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(failed("it has no pipes".into()));
        };
        let mut line = String::new();
        let read = BufReader::new(stdout.take(64)).read_line(&mut line);
        if read.is_err() || line.trim_end() != READY {
            let _ = process.kill();
            let _ = process.wait();
            return Err(failed(format!("it said {line:?} instead of {READY:?}")));
        }
        Ok(Self(Mutex::new(Link {
            process,
            pipe: Some(stdin),
        })))
    }

    /// Number of its process.
    pub fn pid(&self) -> u32 {
        let link = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        link.process.id()
    }

    /// Charges it with every process that carries a tag.
    ///
    /// # Errors
    /// As all calls here: when the reaper has ended.
    pub fn tag(&self, tag: &RunTag) -> Result<(), ReaperError> {
        self.send_line(format_args!("tag {tag}"))
    }

    /// Charges it with a process group.
    ///
    /// # Errors
    /// See [`Reaper::tag`].
    pub fn group(&self, group: u32) -> Result<(), ReaperError> {
        self.send_line(format_args!("group {group}"))
    }

    /// A group has no process any more: its number may come to mean another one.
    ///
    /// # Errors
    /// See [`Reaper::tag`].
    pub fn gone(&self, group: u32) -> Result<(), ReaperError> {
        self.send_line(format_args!("gone {group}"))
    }

    /// Charges it with the control groups, networks and file systems that a process makes.
    ///
    /// # Errors
    /// See [`Reaper::tag`].
    pub fn limits(&self, owner: u32) -> Result<(), ReaperError> {
        self.send_line(format_args!("limits {owner}"))
    }

    /// Charges it with the removal of a folder.
    ///
    /// # Errors
    /// See [`Reaper::tag`]; also when its path is not absolute or no line of text.
    pub fn folder(&self, path: &Path) -> Result<(), ReaperError> {
        match path.to_str() {
            Some(text) if path.is_absolute() && !text.contains('\n') => {
                self.send_line(format_args!("folder {text}"))
            }
            _ => Err(ReaperError::Path {
                path: path.display().to_string(),
            }),
        }
    }

    /// Everything is removed: the reaper ends without doing anything.
    ///
    /// # Errors
    /// See [`Reaper::tag`].
    pub fn done(&self) -> Result<(), ReaperError> {
        self.send_line(format_args!("done"))?;
        let mut link = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        link.close().map_err(|error| ReaperError::Lost {
            cause: error.to_string(),
        })
    }

    fn send_line(&self, line: std::fmt::Arguments<'_>) -> Result<(), ReaperError> {
        let mut link = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lost = |cause: String| ReaperError::Lost { cause };
        let pipe = link.pipe.as_mut();
        let pipe = pipe.ok_or_else(|| lost("it was dismissed".to_owned()))?;
        // One write for the whole line: the reaper never sees half of one.
        let line = format!("{line}\n");
        let written = pipe.write_all(line.as_bytes());
        written.map_err(|error| lost(error.to_string()))
    }
}
