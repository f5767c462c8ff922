//! Another program, run to its end and never longer than it may.

use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use processes::{Process, Program, StartError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::error::WorkError;
use super::stop::Stop;
use crate::Nanos;

/// How long a program may go on after it was asked to end, before it is killed.
const GRACE: Duration = Duration::from_millis(500);
/// Most of what it says to standard error that is kept; the rest is read and forgotten.
const SAID: usize = 400;

/// A program that was started. Dropping it ends it, with what it has started.
pub(crate) struct Running {
    name: String,
    process: Process,
    stderr: Option<PipeReader>,
    said: Vec<u8>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Nobody reads any more, and it must not wait for that.
        self.stderr = None;
        // One that cannot be killed now is left to the kernel.
        let _ = self.process.stop(GRACE);
    }
}

impl Running {
    /// Starts it, without input or output.
    ///
    /// # Errors
    /// When there is no such program, or the system refuses to start it.
    pub(crate) fn start(
        program: &OsStr,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Self, WorkError> {
        let start = WorkError::system("start a program");
        let (ours, stderr) = io::pipe().map_err(&start)?;
        rustix::io::ioctl_fionbio(&ours, true).map_err(|found| start(found.into()))?;
        let name = program.to_string_lossy().into_owned();
        let mut program = Program::new(program).args(arguments);
        program.standard[2] = Some(stderr.into());
        match program.spawn() {
            Ok(process) => Ok(Self {
                name,
                process,
                stderr: Some(ours),
                said: Vec::new(),
            }),
            Err(StartError::Program(found)) => Err(WorkError::NoProgram {
                program: name,
                found,
            }),
            Err(error) => Err(start(io::Error::other(error))),
        }
    }

    /// Waits for its end; returns the processor time that it and what it waited for took.
    /// At the deadline, and when stopped, it is ended with what it has started.
    ///
    /// # Errors
    /// When it ended with a status other than 0, or did not end in time.
    pub(crate) fn wait(mut self, deadline: Nanos, stop: &Stop) -> Result<Nanos, WorkError> {
        self.watch(deadline, stop)?;
        let ended = self.process.stop(GRACE);
        let ended = ended.map_err(WorkError::system("ask how a program ended"))?;
        // What it said is in the pipe.
        self.listen();
        match ended.status.success() {
            true => Ok(Nanos::try_from(ended.cpu.as_nanos()).unwrap_or(Nanos::MAX)),
            false => Err(WorkError::Program {
                program: std::mem::take(&mut self.name),
                status: ended.to_string(),
                stderr: String::from_utf8_lossy(&self.said).into_owned(),
            }),
        }
    }

    fn watch(&mut self, deadline: Nanos, stop: &Stop) -> Result<(), WorkError> {
        loop {
            let longest = stop.patience(deadline, "wait for a program")?;
            if self
                .has_ended(longest)
                .map_err(WorkError::system("wait for a program"))?
            {
                return Ok(());
            }
        }
    }

    /// Whether it ends within a time; shorter if it says something meanwhile.
    fn has_ended(&mut self, longest: Duration) -> io::Result<bool> {
        let process = self.process.as_fd();
        let ended = PollFd::from_borrowed_fd(process, PollFlags::IN);
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

#[cfg(test)]
mod tests;
