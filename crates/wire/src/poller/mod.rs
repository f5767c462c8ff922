//! One thread's view of its sockets: which of them can be read or written.
//!
//! Readiness is level-triggered: what is not read now is told again. So a loop may read
//! once for each event, which is all that a small answer needs, and no call into the
//! kernel is spent on finding that there is nothing more.

mod registration;

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use rustix::event::epoll;
use rustix::io::Errno;

use crate::clock::timespec;
use crate::deadlines::NEVER;
use crate::signal::{PendingSignals, Signal};
use crate::slab::Key;
use crate::threads::Phase;

pub use registration::Registration;

/// Most events that one wait returns.
const EVENTS: usize = 256;

/// The kind of a poller's event that tells that its [`Waker`] was called. Of the others 6 is
/// that of [listeners](crate::listeners::LISTENER), and 0 to 5 are free.
pub const WAKER: u32 = 7;

/// What is wanted of a socket. That its peer closed is always told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// It can be read.
    Read,
    /// It can be written, or its connection is made.
    Write,
    /// Either.
    Both,
    /// Nothing: only that its connection broke or ended both ways is told.
    Nothing,
}

impl Interest {
    /// What is wanted of it: to `read`, to `write`, or both.
    pub fn of(read: bool, write: bool) -> Self {
        match (read, write) {
            (true, false) => Self::Read,
            (false, true) => Self::Write,
            (true, true) => Self::Both,
            (false, false) => Self::Nothing,
        }
    }

    fn flags(self) -> epoll::EventFlags {
        let (read, write) = (
            epoll::EventFlags::IN | epoll::EventFlags::RDHUP,
            epoll::EventFlags::OUT,
        );
        match self {
            Self::Read => read,
            Self::Write => write,
            Self::Both => read | write,
            Self::Nothing => epoll::EventFlags::empty(),
        }
    }
}

/// Something that happened to a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// As given to [`Poller::add`].
    pub token: u64,
    /// Reading makes progress: there are bytes, an end or an error.
    pub readable: bool,
    /// Writing makes progress, or fails.
    pub writable: bool,
    /// The connection failed, or has ended both ways.
    pub broken: bool,
}

impl Event {
    fn of(event: epoll::Event) -> Self {
        let flags = event.flags;
        let broken = epoll::EventFlags::ERR | epoll::EventFlags::HUP;
        let ended = epoll::EventFlags::RDHUP;
        Self {
            token: event.data.u64(),
            readable: flags.intersects(epoll::EventFlags::IN | ended | broken),
            writable: flags.intersects(epoll::EventFlags::OUT | broken),
            broken: flags.intersects(broken),
        }
    }
}

/// What a poller watches.
#[derive(Debug, Clone, Copy)]
pub enum Watch<'w> {
    /// A descriptor, of which the kernel tells.
    Socket(BorrowedFd<'w>),
    /// Something without one. Each event says that it may be readable and writable; there
    /// is one whenever the interest is set, since nobody knows what has happened before.
    Signal(&'w Signal),
}

/// What can be watched.
pub trait Watched {
    /// By what it tells of itself.
    fn watch(&self) -> Watch<'_>;
}

impl<S: AsFd> Watched for S {
    fn watch(&self) -> Watch<'_> {
        Watch::Socket(self.as_fd())
    }
}

/// The sockets of one thread. See the module.
pub struct Poller {
    epoll: OwnedFd,
    waker: Waker,
    pending_signals: Arc<PendingSignals>,
    /// The last wait told of signals only, without asking the kernel.
    signals_only: bool,
    events: Vec<Event>,
    /// How many of them [`Poller::next_event`] has given.
    given: usize,
    interrupted: bool,
}

impl Poller {
    /// Most events that one wait returns.
    pub const MOST_EVENTS: usize = EVENTS;

    /// One without sockets.
    ///
    /// # Errors
    /// When the process has no two descriptors left, or the kernel is older than Linux 5.11
    /// and cannot wait for less than a millisecond.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let flags = rustix::event::EventfdFlags::NONBLOCK | rustix::event::EventfdFlags::CLOEXEC;
        let event = rustix::event::eventfd(0, flags)?;
        let waker = Waker(Arc::new((event, AtomicU8::new(0))));
        let mut poller = Self {
            epoll,
            waker,
            pending_signals: Arc::default(),
            signals_only: false,
            events: Vec::new(),
            given: 0,
            interrupted: false,
        };
        poller.add(&poller.waker.0.0, Key::of(0).token(WAKER), Interest::Read)?;
        match poller.wait(Some(Duration::ZERO)) {
            Err(error) if error.raw_os_error() == Some(Errno::NOSYS.raw_os_error()) => {
                Err(io::Error::new(
                    io::ErrorKind::Unsupported,
                    "this kernel has no epoll_pwait2; expected Linux 5.11 or newer",
                ))
            }
            Err(error) => Err(error),
            Ok(_) => Ok(poller),
        }
    }

    /// Wakes this poller from other threads, as an event of the kind [`WAKER`].
    pub fn waker(&self) -> &Waker {
        &self.waker
    }

    /// What its thread was told to do, by [`Threads`](crate::threads::Threads).
    pub fn phase(&self) -> Phase {
        match self.waker.0.1.load(Ordering::Acquire) {
            0 => Phase::Running,
            1 => Phase::Draining,
            _ => Phase::Stopped,
        }
    }

    /// Begins to watch something. Closing a socket ends that.
    ///
    /// # Errors
    /// When the kernel's limit on watched descriptors is reached.
    pub fn add(&self, what: impl Watched, token: u64, interest: Interest) -> io::Result<()> {
        match what.watch() {
            Watch::Socket(socket) => {
                let data = epoll::EventData::new_u64(token);
                epoll::add(&self.epoll, socket, data, interest.flags())?;
            }
            Watch::Signal(signal) => {
                signal.watch(&self.pending_signals, token);
                signal.ring();
            }
        }
        Ok(())
    }

    /// Changes what is wanted of something that is watched.
    ///
    /// # Errors
    /// When it is not watched.
    pub fn change(&self, what: impl Watched, token: u64, interest: Interest) -> io::Result<()> {
        match what.watch() {
            Watch::Socket(socket) => {
                let data = epoll::EventData::new_u64(token);
                epoll::modify(&self.epoll, socket, data, interest.flags())?;
            }
            Watch::Signal(signal) => signal.ring(),
        }
        Ok(())
    }

    /// Ends the watch over a socket that stays open: nothing is told of it any more, not
    /// even that its peer closed. A signal is told of until it is dropped.
    ///
    /// # Errors
    /// When it is not watched.
    pub fn remove(&self, what: impl Watched) -> io::Result<()> {
        match what.watch() {
            Watch::Socket(socket) => epoll::delete(&self.epoll, socket)?,
            Watch::Signal(signal) => signal.hush(),
        }
        Ok(())
    }

    /// Waits until something happens or the time is over (`None`: for as long as it
    /// takes), and says how much happened: up to 256 events of sockets, and those of all
    /// signals that were rung, to be read by [`Poller::next_event`]. A signal of the system
    /// ends the wait early, without events.
    ///
    /// # Errors
    /// Those of the kernel; none is expected.
    pub fn wait(&mut self, longest: Option<Duration>) -> io::Result<usize> {
        self.events.clear();
        self.given = 0;
        self.interrupted = false;
        let events = &mut self.events;
        self.pending_signals.take(|token| {
            events.push(Event {
                token,
                readable: true,
                writable: true,
                broken: false,
            });
        });
        // Every second time only: what rings all the time must not keep sockets waiting.
        self.signals_only = !self.events.is_empty() && !self.signals_only;
        if self.signals_only {
            return Ok(self.events.len());
        }
        let longest = match self.events.is_empty() {
            true => longest.map(timespec),
            false => Some(timespec(Duration::ZERO)),
        };
        let mut room = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS];
        let found = match epoll::wait(&self.epoll, &mut room, longest.as_ref()) {
            Ok((found, _)) => found,
            Err(Errno::INTR) => {
                self.interrupted = true;
                return Ok(self.events.len());
            }
            Err(errno) => return Err(errno.into()),
        };
        for event in found.iter().map(|event| Event::of(*event)) {
            if event.token == Key::of(0).token(WAKER) {
                self.waker.clear();
            }
            self.events.push(event);
        }
        Ok(self.events.len())
    }

    /// Waits as [`Poller::wait`], from `now` until a moment of the same clock; [`NEVER`]: for as
    /// long as it takes.
    ///
    /// # Errors
    /// As there.
    pub fn wait_until(&mut self, until: u64, now: u64) -> io::Result<usize> {
        let longest = Duration::from_nanos(until.saturating_sub(now));
        self.wait((until != NEVER).then_some(longest))
    }

    /// Whether a signal ended the last wait: one that was caught, or the thread was
    /// stopped and goes on.
    pub fn interrupted(&self) -> bool {
        self.interrupted
    }

    /// The next event of the last wait, each once.
    #[inline]
    pub fn next_event(&mut self) -> Option<Event> {
        let event = self.events.get(self.given).copied()?;
        self.given += 1;
        Some(event)
    }
}

impl AsFd for Poller {
    /// Can be read when one of its sockets is ready, so that pollers watch pollers.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// Wakes a poller from another thread. Clones wake the same one.
#[derive(Debug, Clone)]
pub struct Waker(Arc<(OwnedFd, AtomicU8)>);

impl Waker {
    /// Wakes the poller, now or at its next wait: once for all calls so far.
    pub fn wake(&self) {
        // Fails only when the counter is full, and then the poller is awake already.
        let _ = rustix::io::write(&self.0.0, &1_u64.to_ne_bytes());
    }

    /// Tells the poller's thread what to do, unless it was told to do more already.
    pub(crate) fn set_phase(&self, phase: Phase) {
        self.0.1.fetch_max(phase as u8, Ordering::AcqRel);
        self.wake();
    }

    /// Takes note of all calls so far.
    fn clear(&self) {
        // Fails only when nobody called.
        let _ = rustix::io::read(&self.0.0, &mut [0_u8; 8]);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn what_is_not_read_is_told_again() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        let mut poller = Poller::new().unwrap();
        poller.add(&far, 7, Interest::Read).unwrap();
        assert_eq!(poller.wait(Some(Duration::ZERO)).unwrap(), 0);
        near.write_all(b"x").unwrap();
        for _ in 0..2 {
            assert_eq!(poller.wait(Some(Duration::from_secs(5))).unwrap(), 1);
            let expected = Event {
                token: 7,
                readable: true,
                writable: false,
                broken: false,
            };
            assert_eq!(poller.next_event(), Some(expected));
            assert_eq!(poller.next_event(), None);
        }
        poller.change(&far, 8, Interest::Both).unwrap();
        poller.wait(Some(Duration::from_secs(5))).unwrap();
        let event = poller.next_event().unwrap();
        assert!(event.token == 8 && event.readable && event.writable);
        poller.remove(&far).unwrap();
        assert_eq!(poller.wait(Some(Duration::ZERO)).unwrap(), 0);
    }

    #[test]
    fn a_waker_wakes_once_for_all_calls_before() {
        let mut poller = Poller::new().unwrap();
        // Moments that have passed are not waited for.
        for (until, now) in [(7, 7), (7, 9), (0, 9)] {
            assert_eq!(poller.wait_until(until, now).unwrap(), 0);
        }
        for _ in 0..2 {
            let other = poller.waker().clone();
            poller.waker().wake();
            std::thread::spawn(move || other.wake()).join().unwrap();
            assert_eq!(poller.wait_until(NEVER, 9).unwrap(), 1);
            let token = poller.next_event().unwrap().token;
            assert_eq!(Key::of_token(token), (WAKER, Key::of(0)));
            assert_eq!(poller.wait(Some(Duration::ZERO)).unwrap(), 0);
        }
    }
}
