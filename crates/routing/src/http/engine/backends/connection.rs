//! A connection to a backend, whether it carries a request or waits for one.

use std::io;
use std::net::SocketAddr;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use wire::http1::{Expect, Limits, ResponseError, ResponseScanner, Scan, Sink};
use wire::poller::{Interest, Poller, Registration};
use wire::slab::Key;
use wire::stream::{Received, Stream, StreamError};

use crate::http::engine::buffers::{Buffers, Inbox, Outbox};
use crate::http::engine::token;
use crate::http::settings::HttpSettings;
use crate::table::{Endpoint, Text};

/// A connection to a backend.
pub(crate) struct BackendConnection {
    pub(super) key: Key,
    /// The pool that it belongs to.
    pub(super) identity: Text,
    /// Whether it speaks TLS, and to whom: pools hold what an endpoint once was, too.
    server_name: Option<Text>,
    /// It is to a route service, whose certificate is checked by other rules.
    service: bool,
    pub(super) stream: Stream,
    /// The router's own end, where the stream does not know it.
    pub(super) local: Option<SocketAddr>,
    state: ConnectionState,
    scanner: ResponseScanner,
    pub(super) inbox: Inbox,
    /// It is not watched when it broke while the client was slow to take what came before:
    /// the poller would tell of it again and again.
    pub(super) registration: Registration,
    /// Whether it has carried a request before this one.
    pub(super) used: bool,
    /// The backend will send no more.
    ended: bool,
}

/// What a connection to a backend is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    Connecting,
    Handshaking,
    Open,
}

impl BackendConnection {
    /// One that was begun, and is watched until it can be written.
    pub(super) fn new(
        key: Key,
        endpoint: &Endpoint,
        service: bool,
        stream: Stream,
        settings: &HttpSettings,
    ) -> Self {
        let limits = Limits {
            head_bytes: settings.response_head_bytes,
            fields: settings.response_fields,
            as_go: true,
            ..Limits::default()
        };
        Self {
            key,
            identity: endpoint.identity.clone(),
            service,
            server_name: endpoint.tls.then(|| endpoint.server_name.clone()),
            stream,
            local: None,
            state: ConnectionState::Connecting,
            scanner: ResponseScanner::new(limits),
            inbox: Inbox::default(),
            registration: Registration::added(key.token(token::BACKEND), Interest::Write),
            used: false,
            ended: false,
        }
    }

    pub(crate) fn state(&self) -> ConnectionState {
        self.state
    }

    pub(crate) fn was_used(&self) -> bool {
        self.used
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(crate) fn has_tls(&self) -> bool {
        self.stream.tls().is_some()
    }

    /// The router's own end; costs a call into the kernel.
    pub(crate) fn local(&self) -> Option<SocketAddr> {
        if self.local.is_some() {
            return self.local;
        }
        let address = rustix::net::getsockname(self.stream.socket()?).ok()?;
        SocketAddr::try_from(address).ok()
    }

    /// The router's own end, if it was looked up already.
    pub(crate) fn known_local(&self) -> Option<SocketAddr> {
        self.local
    }

    /// Whether it is to the same peer, in the same way, as a new one to the endpoint.
    pub(super) fn fits(&self, endpoint: &Endpoint, service: bool) -> bool {
        if self.service != service {
            return false;
        }
        match &self.server_name {
            Some(name) => endpoint.tls && *name == endpoint.server_name,
            None => !endpoint.tls,
        }
    }

    /// Whether the backend has closed it, or said something that nobody asked for.
    pub(super) fn is_stale(&mut self) -> bool {
        let Some(socket) = self.stream.socket() else {
            return !matches!(self.stream.receive(&mut [0; 1]), Ok(Received::Nothing));
        };
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        !matches!(
            recv(socket, &mut [0_u8; 1][..], flags),
            Err(Errno::AGAIN | Errno::INTR)
        )
    }

    /// It is connected, or failed to.
    pub(crate) fn begin_handshake(&mut self) -> Result<(), Errno> {
        self.stream.outcome()?;
        self.state = ConnectionState::Handshaking;
        Ok(())
    }

    /// Goes on with TLS's handshake; whether it is done, or there is none.
    pub(crate) fn handshake(&mut self) -> Result<bool, StreamError> {
        self.stream.handshake()
    }

    /// A request goes over it now.
    pub(crate) fn expect(&mut self, answer: Expect) {
        self.state = ConnectionState::Open;
        self.scanner.expect(answer);
    }

    pub(crate) fn receive(
        &mut self,
        most: usize,
        buffers: &mut Buffers,
    ) -> Result<Received, StreamError> {
        self.inbox.receive(&mut self.stream, most, buffers)
    }

    /// Bytes that came and are not used yet.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.inbox.bytes()
    }

    pub(crate) fn consume(&mut self, bytes: usize, buffers: &mut Buffers) {
        self.inbox.consume(bytes, buffers);
    }

    pub(crate) fn take_bytes(&mut self, into: &mut Vec<u8>, buffers: &mut Buffers) {
        into.extend_from_slice(self.inbox.bytes());
        self.inbox.clear(buffers);
    }

    /// Reads what came of an answer.
    pub(crate) fn scan(&mut self, sink: &mut impl Sink) -> Result<Scan, ResponseError> {
        self.scanner.scan(self.inbox.bytes(), sink)
    }

    /// The backend sends no more; whether that is an answer's end.
    pub(crate) fn end(&mut self) -> bool {
        self.ended = true;
        self.scanner.end(&mut ()).is_ok()
    }

    /// Sends what waits for the backend as far as that goes now, if it is open.
    pub(crate) fn send(
        &mut self,
        upstream: &mut Outbox,
        buffers: &mut Buffers,
    ) -> Result<usize, StreamError> {
        let waits = !upstream.is_empty() || self.stream.wants_write();
        if self.state != ConnectionState::Open || !waits {
            return Ok(0);
        }
        upstream.send(&mut self.stream, buffers)
    }

    /// Says that nothing more will be sent. Called again, it changes nothing.
    pub(crate) fn end_sending(&mut self) {
        // Fails only when the connection is gone, which its own events tell.
        let _ = self.stream.close_write();
    }

    /// Whether it may have bytes that the poller does not tell of.
    pub(crate) fn holds_bytes(&self) -> bool {
        self.state == ConnectionState::Open
            && (self.stream.holds_bytes() || !self.registration.is_watched())
    }

    /// Watches for what it needs, where that changed. `sends`: bytes wait for the backend;
    /// `takes`: what the backend sends is taken. Whether it has bytes to be taken that the
    /// poller does not tell of.
    pub(crate) fn watch(&mut self, sends: bool, takes: bool, poller: &Poller) -> bool {
        let (write, read) = match self.state {
            ConnectionState::Connecting => (true, false),
            ConnectionState::Handshaking => (false, true),
            // What the client does not take is not read.
            ConnectionState::Open => (sends, takes),
        };
        let wanted = Interest::of(read && !self.ended, write || self.stream.wants_write());
        if self.registration.is_watched() {
            // Its own events tell if the connection is gone.
            let _ = self.registration.set(&self.stream, Some(wanted), poller);
        }
        takes && !self.ended && self.holds_bytes()
    }

    /// It broke, and what came before is still to be read when the client has taken more.
    pub(crate) fn stop_watching(&mut self, poller: &Poller) {
        // Fails only if it is not watched.
        let _ = self.registration.set(&self.stream, None, poller);
    }

    /// Waits for its next request; `false`: it cannot be watched.
    pub(super) fn rest(&mut self, poller: &Poller) -> bool {
        self.used = true;
        let read = Some(Interest::Read);
        self.registration.set(&self.stream, read, poller).is_ok()
    }

    /// Goes on over the stream that `begin` makes of its own.
    ///
    /// # Errors
    /// Of `begin` and the poller. It is a whole one still, to be closed as others are.
    pub(super) fn replace_stream(
        &mut self,
        poller: &Poller,
        begin: impl FnOnce(Stream) -> io::Result<Stream>,
    ) -> io::Result<()> {
        self.registration.set(&self.stream, None, poller)?;
        let socket = self.stream.socket().ok_or(Errno::BADF)?;
        let own = Stream::Plain(socket.try_clone_to_owned()?);
        self.stream = begin(std::mem::replace(&mut self.stream, own))?;
        let read = Some(Interest::Read);
        self.registration.set(&self.stream, read, poller)
    }
}
