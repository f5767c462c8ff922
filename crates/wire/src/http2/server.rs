//! A server's connection.

use std::io;
use std::sync::Arc;

use super::codec::{Connection, Role, Settings};
use super::link::{Link, Progress};
use super::shared::{Handle, Shared};
use super::{Http2Error, Reason};
use crate::poller::Poller;
use crate::signal::Signal;
use crate::stream::Stream;

/// A request whose head is there, and the way to answer it. Dropped, it is given up.
#[derive(Debug)]
pub struct Accepted(pub(super) Handle);

impl Accepted {
    /// Does not answer: the client is told so with the connection's next drive.
    pub fn refuse(self, reason: Reason) {
        self.0.with(|connection, key| connection.reset(key, reason));
    }
}

/// What a client may do. A client that exceeds a limit loses the stream, and one that does
/// so often (streams that are opened and reset, as in CVE-2023-44487, among them) loses
/// the connection, with `ENHANCE_YOUR_CALM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerSettings {
    /// Most streams open at once. Default 250, as Go's server allows.
    pub streams: u32,
    /// Bytes that a client may send ahead on one stream. Default 256 KiB.
    pub stream_window: u32,
    /// The same for the connection, which bounds what is kept of bodies. Default 1 MiB.
    pub connection_window: u32,
    /// Bytes of answers that wait for the client, on all streams. Default 64 KiB.
    pub send_buffer: usize,
    /// Bytes of one request's fields, as RFC 9113 section 6.5.2 counts them. Default 1 MiB.
    pub head_bytes: u32,
    /// Streams that the client opened and reset before anybody looked at them. Default 20.
    pub early_resets: usize,
    /// Streams that were reset because the client broke a rule on them. Default 128.
    pub broken_streams: usize,
    /// Bytes read in one [`Server::drive`]. Default 256 KiB.
    pub read_budget: usize,
    /// Let clients open WebSockets on streams (extended CONNECT, RFC 8441). Default false.
    pub extended_connect: bool,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            streams: 250,
            stream_window: 256 * 1024,
            connection_window: 1024 * 1024,
            send_buffer: 64 * 1024,
            head_bytes: 1024 * 1024,
            early_resets: 20,
            broken_streams: 128,
            read_budget: 256 * 1024,
            extended_connect: false,
        }
    }
}

impl ServerSettings {
    /// A connection on which nothing was received yet.
    pub(super) fn connection(&self) -> Connection {
        let settings = Settings {
            streams: self.streams,
            early_streams: 0,
            stream_window: self.stream_window,
            connection_window: self.connection_window,
            out_bytes: self.send_buffer,
            head_bytes: self.head_bytes,
            early_resets: self.early_resets,
            broken_streams: self.broken_streams,
            extended_connect: self.extended_connect,
        };
        Connection::new(Role::Server, settings)
    }
}

/// A server's connection over a stream in non-blocking mode, whose TLS handshake is done.
/// It works within [`Server::drive`] and nowhere else.
pub struct Server {
    shared: Arc<Shared>,
    link: Link,
}

impl Server {
    /// A connection on which nothing was received yet.
    pub fn start(stream: Stream, settings: ServerSettings) -> Self {
        Self {
            shared: Shared::new(settings.connection()),
            link: Link::new(stream, settings.read_budget),
        }
    }

    /// Sends what waits to be sent, reads what there is if the socket is `readable`, and
    /// adds the requests whose heads came. To be called when the socket became ready, and
    /// while [`is_woken`](Self::is_woken).
    ///
    /// # Errors
    /// When the connection has ended: [`Http2Error::Closed`] if nothing was wrong.
    pub fn drive(
        &mut self,
        readable: bool,
        accepted: &mut Vec<Accepted>,
    ) -> Result<Progress, Http2Error> {
        self.shared.begin();
        let inner = &mut *self.shared.lock();
        self.link.receive(&mut inner.connection, readable);
        while let Some(key) = inner.connection.opened() {
            accepted.push(Accepted(Handle::new(&self.shared, key)));
        }
        self.link.send(&mut inner.connection);
        inner.connection.end_if_idle();
        inner.wake_streams();
        match inner.connection.ended() {
            Some(error) => Err(error.clone()),
            None => Ok(self.link.progress(&inner.connection)),
        }
    }

    /// Whether streams have left something to do for [`drive`](Self::drive).
    pub fn is_woken(&self) -> bool {
        self.shared.is_woken()
    }

    /// Tells the client to open no more streams (GOAWAY). The connection ends with the
    /// last one that is open. Requests that are on their way are still served, also those
    /// of a client that has said nothing yet.
    pub fn shut_down(&mut self) {
        self.shared.lock().connection.shut_down();
        self.shared.wake();
    }

    /// Begins to watch the socket, with this token.
    ///
    /// # Errors
    /// As [`Poller::add`].
    pub fn watch(&mut self, poller: &Poller, token: u64) -> io::Result<()> {
        self.link.watch(poller, token)
    }

    /// Watches for what the last drive left to do. To be called after drives.
    ///
    /// # Errors
    /// As [`Poller::change`].
    pub fn rewatch(&mut self, poller: &Poller) -> io::Result<()> {
        self.link.rewatch(poller)
    }

    /// Rings when streams have left something to do, for a poller to watch.
    pub fn signal(&self) -> &Signal {
        self.shared.signal()
    }

    /// Whether the socket was full: drive again when it can be written to.
    pub fn wants_write(&self) -> bool {
        self.link.wants_write()
    }
}
