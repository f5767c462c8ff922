//! Where clients come in: listeners that accept, pause when there is no room, and resume.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use wire::deadlines::NEVER;
use wire::poller::{Interest, Poller};
use wire::slab::Key;
use wire::socket;

use super::token;
use crate::table::Nanos;

/// Connections that wait to be accepted.
const BACKLOG: u32 = 4096;

/// Where connections are accepted.
pub(super) struct Listener {
    socket: OwnedFd,
    /// Whether clients speak TLS there.
    tls: bool,
    /// Whether it is not watched now, since there are as many clients as may be.
    paused: bool,
}

impl Listener {
    /// Listens on an address, beside other listeners of this process.
    ///
    /// # Errors
    /// When the address is not one of this machine, is taken, or may not be used.
    pub(super) fn bind(address: SocketAddr, tls: bool) -> io::Result<Self> {
        // Each thread has its own queue of new connections.
        let socket = socket::listen_tcp(address, BACKLOG, true)?;
        Ok(Self {
            socket,
            tls,
            paused: false,
        })
    }

    /// The address, with the port that was given for port 0.
    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        Ok(socket::local_address(&self.socket)?)
    }
}

/// A connection that was accepted.
pub(super) struct Arrival {
    pub(super) socket: OwnedFd,
    pub(super) peer: SocketAddr,
    /// Whether its client speaks TLS.
    pub(super) tls: bool,
}

/// The listeners of one thread.
pub(super) struct Listeners {
    all: Vec<Listener>,
    /// When to accept again after the system had no descriptors left.
    resume_at: Nanos,
}

impl Listeners {
    /// Begins to watch them.
    pub(super) fn watch(all: Vec<Listener>, poller: &Poller) -> io::Result<Self> {
        for (index, listener) in all.iter().enumerate() {
            poller.add(&listener.socket, token_of(index), Interest::Read)?;
        }
        Ok(Self {
            all,
            resume_at: NEVER,
        })
    }

    /// Closes them.
    pub(super) fn close(&mut self) {
        self.all.clear();
    }

    /// When to [`Listeners::resume`] at the latest.
    pub(super) fn next_deadline(&self) -> Nanos {
        self.resume_at
    }

    /// The next connection that waits at a listener.
    pub(super) fn accept(&self, index: usize) -> Result<Option<Arrival>, Errno> {
        let Some(Listener { socket, tls, .. }) = self.all.get(index) else {
            return Ok(None);
        };
        let accepted = socket::accept(socket)?;
        Ok(accepted.map(|(socket, peer)| Arrival {
            socket,
            peer,
            tls: *tls,
        }))
    }

    /// Leaves the queue of a listener to the kernel, until `until` at the latest:
    /// level-triggered readiness would keep this thread busy.
    pub(super) fn pause(&mut self, index: usize, until: Nanos, poller: &Poller) {
        if let Some(listener) = self.all.get_mut(index) {
            let change = poller.change(&listener.socket, token_of(index), Interest::Nothing);
            listener.paused = change.is_ok();
        }
        self.resume_at = self.resume_at.min(until);
    }

    /// Watches those again that were paused.
    pub(super) fn resume(&mut self, poller: &Poller) {
        self.resume_at = NEVER;
        for (index, listener) in self.all.iter_mut().enumerate() {
            if listener.paused {
                let change = poller.change(&listener.socket, token_of(index), Interest::Read);
                listener.paused = change.is_err();
            }
        }
    }
}

fn token_of(index: usize) -> u64 {
    Key::of(index as u64).token(token::LISTENER)
}
