//! A new connection to a backend: its address, the connection, TLS's handshake.

use std::net::SocketAddr;

use rustix::io::Errno;
use wire::socket;
use wire::stream::Stream;

use super::links::errno_text;
use super::resolver::Resolved;
use super::session::{LinkState, Session};
use super::tls::Towards;
use super::worker::Worker;
use crate::http::pipeline::Upgrade;
use crate::http::pipeline::retry::{Failure, TlsFailure};
use crate::table::{BackendProtocol, Endpoint};

impl Worker {
    /// Begins a connection to the request's endpoint.
    pub(super) fn dial(&mut self, session: &mut Session) {
        let Some(flight) = &mut session.flight else {
            return;
        };
        let Some(endpoint) = flight.endpoint.clone() else {
            return;
        };
        if flight.exchange.route_service().is_some_and(|to| to.hairpin) {
            match self.connect_to_itself() {
                Ok(near) => self.approach_over(session, &endpoint, Stream::Plain(near)),
                Err(errno) => self.fail(session, Failure::Dial(errno_text(errno))),
            }
            return;
        }
        let identity = endpoint.identity();
        let resolved = match identity.parse::<SocketAddr>() {
            Ok(address) => Resolved::Address(address),
            Err(_) => self
                .shared
                .resolver
                .resolve(identity, self.now, &self.waker()),
        };
        let address = match resolved {
            Resolved::Address(address) => address,
            Resolved::Pending => {
                flight.resolving = true;
                self.resolving.push(session.key);
                return;
            }
            Resolved::Unknown => {
                self.fail(session, Failure::Dial("no such host"));
                return;
            }
        };
        flight.resolving = false;
        let to_service = flight.to_service;
        let upgrades = flight.exchange.upgrade() != Upgrade::None;
        let socket = match self.with_room(|| socket::connect_tcp(address)) {
            Ok(socket) => socket,
            Err(errno) => {
                self.fail(session, Failure::Dial(errno_text(errno)));
                return;
            }
        };
        let stream = if endpoint.tls {
            // The handshake begins when the connection is there.
            let to = match (to_service, endpoint.protocol) {
                (true, _) => Towards::Service,
                // An upgrade has no form in HTTP/2.
                (false, BackendProtocol::Http2) if self.shared.settings.http2 && !upgrades => {
                    Towards::Http2Backend
                }
                _ => Towards::Backend,
            };
            let begun = self.shared.tls.to_backend(socket, &endpoint, to);
            match begun {
                Ok(stream) => Stream::Tls(Box::new(stream)),
                Err(_) => {
                    let failure = TlsFailure::Other("tls: the name cannot be proven");
                    self.fail(session, Failure::Tls(failure));
                    return;
                }
            }
        } else {
            Stream::Plain(socket)
        };
        self.approach_over(session, &endpoint, stream);
    }

    /// The request goes over this connection, when it is there.
    fn approach_over(&mut self, session: &mut Session, endpoint: &Endpoint, stream: Stream) {
        let to_service = session
            .flight
            .as_ref()
            .is_some_and(|flight| flight.to_service);
        match self.new_link(session.key, endpoint, to_service, stream) {
            Ok(link) => {
                self.counters.dialed.increment();
                if let Some(flight) = &mut session.flight {
                    flight.link = Some(link);
                }
            }
            Err(errno) => self.fail(session, Failure::Dial(errno_text(errno))),
        }
    }

    /// Opens something. Without a descriptor left, idle connections give way.
    pub(super) fn with_room<T>(&mut self, open: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
        loop {
            match open() {
                Err(Errno::MFILE | Errno::NFILE) if self.make_room() => {}
                result => return result,
            }
        }
    }

    /// Names were resolved: those who wait for them try again.
    pub(super) fn names_resolved(&mut self) {
        for key in std::mem::take(&mut self.resolving) {
            self.with_client(key, |worker, session| {
                let waits = |flight: &super::session::Flight| flight.resolving;
                if session.flight.as_deref().is_some_and(waits) {
                    worker.dial(session);
                    worker.settle(session);
                }
            });
        }
    }

    pub(super) fn connected(&mut self, session: &mut Session) {
        let Some(flight) = &mut session.flight else {
            return;
        };
        let Some(link) = &mut flight.link else {
            return;
        };
        if let Err(errno) = link.stream.outcome() {
            self.fail(session, Failure::Dial(errno_text(errno)));
            return;
        }
        flight.exchange.progress.dial = self.now.saturating_sub(flight.attempt_began).max(1);
        link.state = LinkState::Handshaking;
        let longest = self.after(self.shared.settings.backends.handshake_timeout);
        session.deadline = longest.min(flight.attempt_ends);
        self.shake_hands(session);
    }

    pub(super) fn shake_hands(&mut self, session: &mut Session) {
        let Some(flight) = &mut session.flight else {
            return;
        };
        let Some(mut link) = flight.link.take() else {
            return;
        };
        match link.stream.handshake() {
            Ok(true) => {
                if link.stream.tls().is_some() {
                    let since = flight.attempt_began + flight.exchange.progress.dial;
                    flight.exchange.progress.tls = self.now.saturating_sub(since).max(1);
                }
                if self.logs_local_address() {
                    link.local = link.local();
                }
                if link.stream.protocol() == Some(b"h2")
                    && let Err(error) = self.begin_back(&mut link)
                {
                    flight.link = Some(link);
                    self.fail(session, Failure::Dial(errno_text(error)));
                    return;
                }
                self.engage(session, link);
            }
            Ok(false) => flight.link = Some(link),
            Err(error) => {
                flight.link = Some(link);
                self.fail_tls(session, &error, Failure::Tls(TlsFailure::Other("EOF")));
            }
        }
    }
}
