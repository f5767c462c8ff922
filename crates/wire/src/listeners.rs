//! Where connections come in: listeners of one thread that accept, pause when there is no
//! room, and resume.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use crate::deadlines::NEVER;
use crate::poller::{Interest, Poller};
use crate::slab::Key;
use crate::socket;

/// Connections that wait to be accepted.
pub const BACKLOG: u32 = 4096;
/// Connections to accept at one wake-up: a flood of new ones must not hold up the others.
pub const AT_ONCE: usize = 32;
/// How long, in nanoseconds, to pause when the system has no descriptors left.
pub const PAUSE: u64 = 100_000_000;

/// See the module. Each is known by its number.
#[derive(Debug)]
pub struct Listeners {
    all: Vec<Listener>,
    /// What they are to the poller, by [`Key::token`].
    kind: u32,
    /// When to accept again after a pause.
    resume_at: u64,
}

#[derive(Debug)]
struct Listener {
    /// `None`: it is closed.
    socket: Option<OwnedFd>,
    /// Whether it is not watched now.
    paused: bool,
}

impl Listeners {
    /// Begins to watch sockets that listen. Their tokens are of a kind of 0 to 7, with their
    /// numbers as places.
    ///
    /// # Errors
    /// When the poller cannot.
    pub fn watch(sockets: Vec<OwnedFd>, kind: u32, poller: &Poller) -> io::Result<Self> {
        for (index, socket) in sockets.iter().enumerate() {
            poller.add(socket, token(index, kind), Interest::Read)?;
        }
        let all = sockets.into_iter().map(|socket| Listener {
            socket: Some(socket),
            paused: false,
        });
        Ok(Self {
            all: all.collect(),
            kind,
            resume_at: NEVER,
        })
    }

    /// Closes one.
    pub fn close(&mut self, index: usize) {
        if let Some(listener) = self.all.get_mut(index) {
            listener.socket = None;
        }
    }

    /// Closes all.
    pub fn close_all(&mut self) {
        self.all.clear();
    }

    /// When to [`Listeners::resume`] at the latest.
    pub fn next_deadline(&self) -> u64 {
        self.resume_at
    }

    /// The next connection that waits, and its peer. A closed listener has none.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn accept(&self, index: usize) -> Result<Option<(OwnedFd, SocketAddr)>, Errno> {
        let listener = self.all.get(index);
        match listener.and_then(|one| one.socket.as_ref()) {
            Some(listener) => socket::accept(listener),
            None => Ok(None),
        }
    }

    /// Leaves the queue of a listener to the kernel, until `until` at the latest:
    /// level-triggered readiness would keep this thread busy.
    pub fn pause(&mut self, index: usize, until: u64, poller: &Poller) {
        if let Some(listener) = self.all.get_mut(index)
            && let Some(socket) = &listener.socket
        {
            let change = poller.change(socket, token(index, self.kind), Interest::Nothing);
            listener.paused = change.is_ok();
        }
        self.resume_at = self.resume_at.min(until);
    }

    /// Watches those again that were paused.
    pub fn resume(&mut self, poller: &Poller) {
        self.resume_at = NEVER;
        for (index, listener) in self.all.iter_mut().enumerate() {
            if let Some(socket) = listener.socket.as_ref().filter(|_| listener.paused) {
                let change = poller.change(socket, token(index, self.kind), Interest::Read);
                listener.paused = change.is_err();
            }
        }
    }
}

fn token(index: usize, kind: u32) -> u64 {
    Key::of(index as u64).token(kind)
}
