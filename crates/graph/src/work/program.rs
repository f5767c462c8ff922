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
/// can be ended with it. To be waited for.
pub(crate) struct Running {
    name: String,
    child: Child,
    pid: Pid,
    /// Readable once the program has ended.
    ended: OwnedFd,
    stderr: Option<ChildStderr>,
    said: Vec<u8>,
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
        // It has ended: what it said is in the pipe.
        self.listen();
        outcome?;
        let (status, cpu) = reaped.map_err(system("ask how a program ended"))?;
        match status.success() {
            true => Ok(cpu),
            false => Err(WorkError::Program {
                program: self.name,
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
mod tests {
    use super::*;

    const LONG: Nanos = Nanos::MAX;

    fn shell(script: &str) -> Running {
        Running::start(OsStr::new("sh"), ["-c", script]).unwrap()
    }

    #[test]
    fn its_processor_time_counts_with_that_of_its_children() {
        let script = "(i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done) & wait";
        let cpu = shell(script).wait(LONG, &Stop::default()).unwrap();
        assert!(cpu > 1_000_000, "{cpu}");
        let cpu = shell("sleep 0.2").wait(LONG, &Stop::default()).unwrap();
        assert!(cpu < 100_000_000, "{cpu}");
    }

    #[test]
    fn a_bad_end_is_told_with_what_it_said() {
        let error = shell("echo no such thing >&2; exit 3")
            .wait(LONG, &Stop::default())
            .unwrap_err();
        let expected =
            "the program `sh` ended with status 3, 0 was expected; it said: no such thing";
        assert_eq!(error.to_string(), expected);
        let error = shell("kill -9 $$")
            .wait(LONG, &Stop::default())
            .unwrap_err();
        assert!(error.to_string().contains("signal 9"), "{error}");
    }

    #[test]
    fn much_that_it_says_neither_holds_it_up_nor_is_kept() {
        let script = "head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 1";
        let error = shell(script).wait(LONG, &Stop::default()).unwrap_err();
        assert!(error.to_string().len() < SAID + 100, "{error}");
    }

    #[test]
    fn one_that_closes_its_standard_error_is_waited_for() {
        let cpu = shell("exec 2>&-; sleep 0.1").wait(LONG, &Stop::default());
        assert!(cpu.is_ok());
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        let nothing: [&str; 0] = [];
        let error = Running::start(OsStr::new("no-such-program-here"), nothing)
            .err()
            .unwrap();
        assert_eq!(error.cause(), "no-program");
        assert!(error.to_string().contains("installed"), "{error}");
    }

    /// The number of a process that sleeps below the shell of a script.
    fn sleeper(script: &str) -> (Running, i32, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let running = shell(&format!(
            "{script} sleep 1000 & echo $! > {0}.new; mv {0}.new {0}; wait",
            file.display()
        ));
        let text = loop {
            match std::fs::read_to_string(&file) {
                Ok(text) => break text,
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        (running, text.trim().parse().unwrap(), folder)
    }

    fn wait_until_gone(pid: i32) {
        // Its parent is gone, so the init process collects it, at some time.
        let running = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
            stat.is_ok_and(|stat| !stat.contains(") Z "))
        };
        while running() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn at_its_deadline_it_ends_with_all_its_children() {
        let (running, pid, _folder) = sleeper("");
        let soon = wire::clock::now() + 1_000_000;
        let error = running.wait(soon, &Stop::default()).unwrap_err();
        assert_eq!(error.cause(), "late");
        wait_until_gone(pid);
    }

    #[test]
    fn one_that_does_not_want_to_end_is_killed() {
        let (running, pid, _folder) = sleeper("trap '' TERM;");
        let stop = Stop::default();
        stop.ask();
        let error = running.wait(LONG, &stop).unwrap_err();
        assert_eq!(error.cause(), "stopped");
        wait_until_gone(pid);
    }
}
