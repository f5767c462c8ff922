//! Reaching a backend: one attempt after the other.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};

use crate::table::Nanos;
use crate::tcp::table::{Backend, Pool, Turn};

/// One connection's way to a backend.
pub(super) struct Dial {
    pub(super) pool: Arc<Pool>,
    turn: Turn,
    attempts: u32,
    /// The backend of this attempt, and when it began.
    pub(super) backend: Option<Arc<Backend>>,
    pub(super) began: Nanos,
}

/// A socket on its way to a backend.
pub(super) enum Begun {
    /// Connected already, as it happens over loopback.
    Connected(OwnedFd),
    /// Writable when it is connected or has failed.
    Underway(OwnedFd),
}

impl Dial {
    pub(super) fn new(pool: Arc<Pool>, now: Nanos) -> Self {
        Self {
            turn: pool.turn(),
            pool,
            attempts: 0,
            backend: None,
            began: now,
        }
    }

    /// The backend of the next attempt; `None` when there was one for each backend, or
    /// `most` in all.
    pub(super) fn next(&mut self, most: u32, now: Nanos) -> Option<Arc<Backend>> {
        if self.attempts >= most.max(1) {
            return None;
        }
        let backend = Arc::clone(self.pool.next(&mut self.turn, now)?);
        self.attempts += 1;
        self.began = now;
        self.backend = Some(Arc::clone(&backend));
        Some(backend)
    }
}

/// Begins to connect.
pub(super) fn begin(address: SocketAddr) -> Result<Begun, Errno> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    match net::connect(&socket, &address) {
        Ok(()) => Ok(Begun::Connected(socket)),
        // A signal does not stop the connection from being made.
        Err(Errno::INPROGRESS | Errno::INTR) => Ok(Begun::Underway(socket)),
        Err(errno) => Err(errno),
    }
}
