//! The way of a request to a route service that is itself a route of this router.
//!
//! ```text
//! client ──▶ first pass ──▶ pair of sockets ──▶ as another client: second pass ──▶ service
//! ```
//!
//! gorouter listens for itself on a port of loopback, with certificates that live in its
//! memory only. A pair of sockets needs neither: nobody else can reach it. What the service
//! gets and what the log says is the same, but for the second client's port, which is 0.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use wire::socket;
use wire::stream::Stream;

use super::worker::Worker;
use crate::http::pipeline::{Client, TlsFacts};

impl Worker {
    /// A connection to this router. Its other end is a client of this thread, beyond
    /// [`HttpSettings::client_connections`](crate::http::settings::HttpSettings): there is
    /// one at most for each of the others that wait for it, since what comes over it is
    /// signed, and what is signed goes to no further route service.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(super) fn connect_to_itself(&mut self) -> Result<OwnedFd, Errno> {
        let (near, far) = self.with_room(socket::pair)?;
        let itself = SocketAddr::from(([127, 0, 0, 1], 0));
        // Nothing leaves the process: it counts as encrypted, as gorouter's own listener is.
        let client = Client::new(itself, Some(TlsFacts::default()));
        match self.take_in(Stream::Plain(far), client) {
            true => Ok(near),
            false => Err(Errno::NOBUFS),
        }
    }
}
