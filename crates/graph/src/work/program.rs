//! Another program, run to its end and never longer than it may.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::libc;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal};

use super::error::WorkError;
use super::stop::{LOOK, Stop};
use crate::Nanos;

/// How long a program may go on after it was asked to end, before it is killed.
const GRACE: Duration = Duration::from_millis(500);
/// How long the kernel may take to end a killed program.
const KILL: Duration = Duration::from_secs(1);
/// Most of what it says to standard error that is kept; the rest is read and forgotten.
const SAID: usize = 400;

/// A program that was started. It leads a process group of its own, so that what it starts
/// can be ended with it. Dropping it ends it.
pub(crate) struct Running {
    name: String,
    child: Child,
    pid: Pid,
    /// Readable once the program has ended.
    ended: OwnedFd,
    stderr: Option<ChildStderr>,
    said: Vec<u8>,
    reaped: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.reaped {
            self.end();
            // One that cannot be killed now is left to the kernel.
            let _ = reap(&self.child);
        }
    }
}

/// Turns an unexpected refusal of the system into an error.
fn system(doing: &'static str) -> impl Fn(io::Error) -> WorkError {
    move |found| WorkError::System { doing, found }
}

impl Running {
    /// Starts it (by `posix_spawn`, so a large process starts programs as fast as a small
    /// one), without input or output.
    ///
    /// # Errors
    /// When there is no such program, or the system refuses to start it.
    pub(crate) fn start(
        program: &OsStr,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<Self, WorkError> {
        let name = program.to_string_lossy().into_owned();
        let started = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn();
        let mut child = started.map_err(|found| match found.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => WorkError::NoProgram {
                program: name.clone(),
                found,
            },
            _ => system("start a program")(found),
        })?;
        let stderr = child.stderr.take();
        match watch(&child, stderr.as_ref()) {
            Ok((pid, ended)) => Ok(Self {
                name,
                child,
                pid,
                ended,
                stderr,
                said: Vec::new(),
                reaped: false,
            }),
            Err(found) => {
                // Without a descriptor it cannot be watched; such a one must not be left.
                let _ = child.kill();
                let _ = child.wait();
                Err(system("watch a program")(found))
            }
        }
    }

    /// Waits for its end; returns the processor time that it and what it waited for took.
    /// At the deadline, and when stopped, its process group is ended.
    ///
    /// # Errors
    /// When it ended with a status other than 0, or did not end in time.
    pub(crate) fn wait(mut self, deadline: Nanos, stop: &Stop) -> Result<Nanos, WorkError> {
        let outcome = self.watch(deadline, stop);
        if outcome.is_err() {
            self.end();
        }
        let reaped = reap(&self.child);
        self.reaped = true;
        // It has ended: what it said is in the pipe.
        self.listen();
        outcome?;
        let (status, cpu) = reaped.map_err(system("ask how a program ended"))?;
        match status.success() {
            true => Ok(cpu),
            false => Err(WorkError::Program {
                program: std::mem::take(&mut self.name),
                status: describe(status),
                stderr: String::from_utf8_lossy(&self.said).into_owned(),
            }),
        }
    }

    fn watch(&mut self, deadline: Nanos, stop: &Stop) -> Result<(), WorkError> {
        loop {
            if stop.is_asked() {
                return Err(WorkError::Stopped);
            }
            let left = deadline.saturating_sub(wire::clock::now());
            if left == 0 {
                return Err(WorkError::Late {
                    doing: "wait for a program",
                });
            }
            let longest = Duration::from_nanos(left).min(LOOK);
            if self
                .has_ended(longest)
                .map_err(system("wait for a program"))?
            {
                return Ok(());
            }
        }
    }

    /// Whether it ends within a time; shorter if it says something meanwhile.
    fn has_ended(&mut self, longest: Duration) -> io::Result<bool> {
        let ended = PollFd::new(&self.ended, PollFlags::IN);
        let (ended, said) = match &self.stderr {
            Some(stderr) => {
                let mut both = [ended, PollFd::new(stderr, PollFlags::IN)];
                wait_for(&mut both, longest)?;
                (!both[0].revents().is_empty(), !both[1].revents().is_empty())
            }
            None => {
                let mut one = [ended];
                wait_for(&mut one, longest)?;
                (!one[0].revents().is_empty(), false)
            }
        };
        if said {
            self.listen();
        }
        Ok(ended)
    }

    /// Reads what there is on its standard error, so that it never waits for us.
    fn listen(&mut self) {
        let mut bytes = [0; 4096];
        while let Some(stderr) = &mut self.stderr {
            match stderr.read(&mut bytes) {
                Ok(count @ 1..) => {
                    let room = SAID - self.said.len();
                    let new = bytes.get(..count.min(room)).unwrap_or(&[]);
                    self.said.extend_from_slice(new);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Closed, which it may do long before it ends.
                Ok(_) | Err(_) => self.stderr = None,
            }
        }
    }

    /// Ends it and all of its group: asks, and then kills.
    fn end(&mut self) {
        for (signal, patience) in [(Signal::TERM, GRACE), (Signal::KILL, KILL)] {
            // Gone already is as good.
            let _ = rustix::process::kill_process_group(self.pid, signal);
            let until = wire::clock::now() + u64::try_from(patience.as_nanos()).unwrap_or(0);
            loop {
                let left = until.saturating_sub(wire::clock::now());
                match self.has_ended(Duration::from_nanos(left)) {
                    Ok(false) if left > 0 => {}
                    Ok(false) | Err(_) => break,
                    Ok(true) => {
                        // Others of the group may be left. The group's number is still its
                        // own, since its leader has not been waited for.
                        let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
                        return;
                    }
                }
            }
        }
    }
}

fn watch(child: &Child, stderr: Option<&ChildStderr>) -> io::Result<(Pid, OwnedFd)> {
    let unknown = || io::Error::other("the process has no number");
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(unknown)?;
    let ended = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
    if let Some(stderr) = stderr {
        rustix::io::ioctl_fionbio(stderr.as_fd(), true)?;
    }
    Ok((pid, ended))
}

fn wait_for(these: &mut [PollFd<'_>], longest: Duration) -> io::Result<()> {
    let longest = Timespec {
        tv_sec: i64::try_from(longest.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(longest.subsec_nanos()),
    };
    match poll(these, Some(&longest)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// How a program ended, and the processor time of it and of all that it waited for. It
/// must have ended: one that has not is left as it is, with an error.
fn reap(child: &Child) -> io::Result<(ExitStatus, Nanos)> {
    let pid = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
    let mut status = 0;
    // SAFETY: the type consists of numbers, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live variables of the types that the call fills.
    let reaped = unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage) };
    match reaped {
        -1 => Err(io::Error::last_os_error()),
        0 => Err(io::Error::other("it was killed and has not ended yet")),
        _ => {
            let cpu = nanos(usage.ru_utime) + nanos(usage.ru_stime);
            Ok((ExitStatus::from_raw(status), cpu))
        }
    }
}

fn nanos(time: libc::timeval) -> Nanos {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    seconds * 1_000_000_000 + micros * 1000
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}

#[cfg(test)]
mod tests;
