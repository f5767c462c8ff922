//! What every kind of connection has of its socket and of the loop that drives it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::Http2Error;
use super::io::{Shared, Socket};
use super::malformed::Heads;
use crate::poller::{Interest, Poller, Registration};
use crate::signal::Signal;
use crate::stream::Stream;

/// What is left to do after a connection was driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Nothing, until the socket is ready again or something is sent.
    Waiting,
    /// More can be read at once: drive again, after others had their turn.
    More,
}

/// The loop's side of a connection: what may be read in one drive, who was woken, and what
/// the poller watches for.
pub(super) struct Driver {
    shared: Arc<Shared>,
    woken: Arc<Woken>,
    waker: Waker,
    read_budget: usize,
    registration: Registration,
}

impl Driver {
    /// A driver that reads `read_budget` bytes in one drive, and the socket as `h2` wants
    /// to see it, behind what reads the peer's `heads`.
    pub(super) fn new(stream: Stream, read_budget: usize, heads: Heads) -> (Self, Socket) {
        let shared = Arc::new(Shared::new(stream));
        let socket = Socket {
            shared: Arc::clone(&shared),
            heads,
        };
        let woken = Arc::new(Woken::default());
        let driver = Self {
            shared,
            waker: Waker::from(Arc::clone(&woken)),
            woken,
            read_budget: read_budget.max(1),
            registration: Registration::default(),
        };
        (driver, socket)
    }

    /// To be called before the connection is polled.
    pub(super) fn begin(&self, readable: bool) {
        if readable {
            self.shared.readable.store(true, Ordering::Relaxed);
        }
        self.shared
            .budget
            .store(self.read_budget, Ordering::Relaxed);
    }

    /// Sends what there is to be sent, once there is nothing more to be polled, and says
    /// what is left.
    pub(super) fn end(&self, polled: Result<(), Http2Error>) -> Result<Progress, Http2Error> {
        let sent = self.shared.send();
        polled?;
        if let Poll::Ready(Err(error)) = sent {
            return Err(Http2Error::of_io(error.kind()));
        }
        Ok(self.progress())
    }

    fn progress(&self) -> Progress {
        let spent = self.shared.budget.load(Ordering::Relaxed) == 0;
        if spent && self.shared.readable.load(Ordering::Relaxed) {
            Progress::More
        } else {
            Progress::Waiting
        }
    }

    pub(super) fn context(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }

    /// Asks for another drive.
    pub(super) fn wake(&self) {
        self.woken.wake_by_ref();
    }

    /// Rings when another drive is asked for.
    pub(super) fn signal(&self) -> &Signal {
        &self.woken.signal
    }

    /// Whether the connection was woken since the last call.
    pub(super) fn take_woken(&self) -> bool {
        self.woken.signal.hush();
        self.woken.flag.swap(false, Ordering::Relaxed)
    }

    /// The same, without forgetting it.
    pub(super) fn is_woken(&self) -> bool {
        self.woken.flag.load(Ordering::Relaxed)
    }

    /// Begins to watch the socket.
    pub(super) fn watch(&mut self, poller: &Poller, token: u64) -> io::Result<()> {
        self.registration = Registration::new(token);
        self.rewatch(poller)
    }

    /// Watches for what the last drive left.
    pub(super) fn rewatch(&mut self, poller: &Poller) -> io::Result<()> {
        let wanted = Interest::of(true, self.wants_write());
        let stream = self.shared.stream();
        self.registration.set(&*stream, Some(wanted), poller)
    }

    /// Whether the last write found the socket full.
    pub(super) fn wants_write(&self) -> bool {
        self.shared.write_blocked.load(Ordering::Relaxed)
    }
}

/// Who is woken when a stream has something for its connection.
#[derive(Debug, Default)]
struct Woken {
    flag: AtomicBool,
    signal: Signal,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.flag.store(true, Ordering::Relaxed);
        self.signal.ring();
    }
}
