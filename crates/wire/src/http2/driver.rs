//! What every kind of connection has of its socket and of the loop that drives it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};

use super::io::{Socket, SocketState};
use super::wake::ConnectionWaker;

/// What is left to do after a connection was driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Nothing, until the socket is ready again or something is sent.
    Waiting,
    /// More can be read at once: drive again, after others had their turn.
    More,
}

/// The loop's side of a connection: what may be read in one drive, and who was woken.
pub(super) struct Driver {
    state: Arc<SocketState>,
    woken: Arc<ConnectionWaker>,
    waker: Waker,
    read_budget: usize,
}

impl Driver {
    /// A driver that reads `read_budget` bytes in one drive, and the socket as `h2` wants
    /// to see it.
    pub(super) fn new<S>(
        stream: S,
        read_budget: usize,
        short_read_drains: bool,
    ) -> (Self, Socket<S>) {
        let state = Arc::new(SocketState::default());
        let socket = Socket {
            stream,
            state: Arc::clone(&state),
            short_read_drains,
        };
        let woken = Arc::new(ConnectionWaker::default());
        let driver = Self {
            state,
            waker: Waker::from(Arc::clone(&woken)),
            woken,
            read_budget: read_budget.max(1),
        };
        (driver, socket)
    }

    /// To be called before the connection is polled.
    pub(super) fn begin(&self, readable: bool) {
        if readable {
            self.state.readable.store(true, Ordering::Relaxed);
        }
        self.state.budget.store(self.read_budget, Ordering::Relaxed);
    }

    /// What is left once there is nothing more to be polled.
    pub(super) fn progress(&self) -> Progress {
        let spent = self.state.budget.load(Ordering::Relaxed) == 0;
        if spent && self.state.readable.load(Ordering::Relaxed) {
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
        self.waker.wake_by_ref();
    }

    /// Whether the connection was woken since the last call.
    pub(super) fn take_woken(&self) -> bool {
        self.woken.take()
    }

    /// The same, without forgetting it.
    pub(super) fn is_woken(&self) -> bool {
        self.woken.is_set()
    }

    /// Whether the last write found the socket full.
    pub(super) fn wants_write(&self) -> bool {
        self.state.write_blocked.load(Ordering::Relaxed)
    }
}
