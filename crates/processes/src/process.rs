//! A process that was started: signalled with its whole group, waited for, ended.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// How long the kernel may take to end a killed process.
const KILLED_WITHIN: Duration = Duration::from_secs(5);

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ended {
    /// Its status.
    pub status: ExitStatus,
    /// Processor time of it and of all that it waited for.
    pub cpu: Duration,
}

impl fmt::Display for Ended {
    /// `status 1` or `signal 9`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => write!(f, "status {code}"),
            (None, Some(signal)) => write!(f, "signal {signal}"),
            (None, None) => write!(f, "{}", self.status),
        }
    }
}

/// The leader of a process group of its own, for whoever may signal it.
#[derive(Debug, Clone)]
pub struct Leader {
    pid: Pid,
    ended: Arc<Mutex<Option<Ended>>>,
}

impl Leader {
    /// Its number, which is also that of its group.
    pub fn id(&self) -> u32 {
        self.pid.as_raw().unsigned_abs()
    }

    /// Sends `signal` to it and all of its group, if it has not ended: then its number may
    /// be another's.
    pub fn signal(&self, signal: Signal) {
        if self.ended().is_none() {
            // An error means that nobody of the group is left.
            let _ = killpg(self.pid, signal);
        }
    }

    /// Sends `signal` to it alone, if it has not ended.
    pub fn signal_alone(&self, signal: Signal) {
        if self.ended().is_none() {
            // An error means that it ends now.
            let _ = kill(self.pid, signal);
        }
    }

    fn ended(&self) -> MutexGuard<'_, Option<Ended>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A process that was started, the leader of a process group of its own. When it has ended,
/// so has what is left of its group. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    leader: Leader,
    /// Readable once it has ended.
    handle: OwnedFd,
}

impl Process {
    /// A child that was just started and is a leader.
    pub(crate) fn watch(pid: Pid) -> io::Result<Self> {
        // SAFETY: the call takes two numbers and returns a new descriptor or -1.
        let handle = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
        match Errno::result(handle) {
            Ok(handle) => Ok(Self {
                leader: Leader {
                    pid,
                    ended: Arc::default(),
                },
                // SAFETY: the descriptor is new and nobody else's.
                handle: unsafe { OwnedFd::from_raw_fd(handle as RawFd) },
            }),
            Err(cause) => {
                // Without a descriptor it cannot be watched; such a one must not be left.
                let _ = killpg(pid, Signal::SIGKILL);
                collect(pid);
                Err(cause.into())
            }
        }
    }

    /// Something to signal it with from elsewhere.
    pub fn leader(&self) -> &Leader {
        &self.leader
    }

    /// How it ended; `None`: it runs. What it left behind in its group is killed with its
    /// end.
    ///
    /// # Errors
    /// When somebody else has waited for it.
    pub fn ended(&mut self) -> io::Result<Option<Ended>> {
        let mut ended = self.leader.ended();
        if ended.is_some() {
            return Ok(*ended);
        }
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        if waitid(Id::PIDFd(self.handle.as_fd()), flags)? == WaitStatus::StillAlive {
            return Ok(None);
        }
        // It is not collected yet, so the number of its group is still its own.
        let _ = killpg(self.leader.pid, Signal::SIGKILL);
        *ended = Some(collected(self.leader.pid)?);
        Ok(*ended)
    }

    /// Waits for its end, at most so long.
    ///
    /// # Errors
    /// See [`Process::ended`].
    pub fn ended_within(&mut self, longest: Duration) -> io::Result<Option<Ended>> {
        let until = Instant::now() + longest;
        loop {
            if let Some(ended) = self.ended()? {
                return Ok(Some(ended));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            match poll(
                &mut [PollFd::new(self.handle.as_fd(), PollFlags::POLLIN)],
                left,
            ) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(cause) => return Err(cause.into()),
            }
        }
    }

    /// Asks it and all of its group to end, and kills them when it does not within `grace`.
    ///
    /// # Errors
    /// See [`Process::ended`]; also when the kernel does not end it within five seconds.
    pub fn stop(&mut self, grace: Duration) -> io::Result<Ended> {
        for (signal, longest) in [(Signal::SIGTERM, grace), (Signal::SIGKILL, KILLED_WITHIN)] {
            self.leader.signal(signal);
            if let Some(ended) = self.ended_within(longest)? {
                return Ok(ended);
            }
        }
        Err(io::Error::other("it was killed and has not ended yet"))
    }
}

impl AsFd for Process {
    /// Readable once it has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl AsRawFd for Process {
    fn as_raw_fd(&self) -> RawFd {
        self.handle.as_raw_fd()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.leader.ended().is_none() {
            self.leader.signal(Signal::SIGKILL);
            collect(self.leader.pid);
        }
    }
}

/// Collects a process that has ended: its status, and the processor time of it and of all
/// that it waited for.
fn collected(pid: Pid) -> io::Result<Ended> {
    let mut status = 0;
    // SAFETY: the type consists of numbers, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live variables of the types that the call fills.
    let done = unsafe { libc::wait4(pid.as_raw(), &raw mut status, 0, &raw mut usage) };
    Errno::result(done)?;
    Ok(Ended {
        status: ExitStatus::from_raw(status),
        cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
    })
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

/// Has a killed process collected, so that it does not stay a zombie. The kernel takes a
/// moment to end it, for which nobody waits here.
fn collect(pid: Pid) {
    static COLLECTOR: OnceLock<Sender<Pid>> = OnceLock::new();
    let collector = COLLECTOR.get_or_init(|| {
        let (sender, pids) = channel();
        // Without a thread they are collected by init, when this process ends.
        let _ = std::thread::Builder::new()
            .name("collect".into())
            .spawn(move || {
                for pid in pids {
                    let _ = waitpid(pid, None);
                }
            });
        sender
    });
    let _ = collector.send(pid);
}

/// A process that tasks of a runtime wait for.
#[derive(Debug)]
pub struct AsyncProcess(AsyncFd<Process>);

impl AsyncProcess {
    /// Must be called within a runtime.
    ///
    /// # Errors
    /// When the runtime cannot watch it; then it is killed.
    pub(crate) fn new(process: Process) -> io::Result<Self> {
        // SAFETY: the descriptor stays open and the same for as long as the process lives.
        let registered = unsafe { AsyncFd::register_with_interest(process, Interest::READABLE) };
        Ok(Self(registered?))
    }

    /// Something to signal it with from elsewhere.
    pub fn leader(&self) -> &Leader {
        self.0.get_ref().leader()
    }

    /// Waits for its end. May be dropped and called again.
    ///
    /// # Errors
    /// See [`Process::ended`].
    pub async fn ended(&mut self) -> io::Result<Ended> {
        loop {
            let mut ready = self.0.readable_mut().await?;
            match ready.get_inner_mut().ended()? {
                Some(ended) => return Ok(ended),
                None => ready.clear_ready(),
            }
        }
    }

    /// Asks it and all of its group to end, and kills them when it does not within `grace`.
    ///
    /// # Errors
    /// See [`Process::stop`].
    pub async fn stop(&mut self, grace: Duration) -> io::Result<Ended> {
        for (signal, longest) in [(Signal::SIGTERM, grace), (Signal::SIGKILL, KILLED_WITHIN)] {
            self.leader().signal(signal);
            if let Ok(ended) = tokio::time::timeout(longest, self.ended()).await {
                return ended;
            }
        }
        Err(io::Error::other("it was killed and has not ended yet"))
    }
}
