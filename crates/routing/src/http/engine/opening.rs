//! The beginning of a client's connection: the PROXY header, and TLS's handshake.

use wire::poller::Interest;
use wire::proxy_protocol::{self, Header};
use wire::stream::{Received, Stream};

use super::buffers::ROOM;
use super::session::{Phase, Session};
use super::token;
use super::worker::Worker;
use crate::http::pipeline::{Client, TlsFacts};

impl Worker {
    /// Goes on with the beginning.
    pub(super) fn open(&mut self, session: &mut Session) {
        if session.stream.tls().is_some() {
            self.shake_client_hands(session);
            return;
        }
        let proxied = self.shared.settings.proxy_protocol && !session.introduced;
        let received = session
            .inbox
            .receive(&mut session.stream, ROOM, &mut self.buffers);
        match received {
            Ok(Received::Bytes(bytes)) => self.counters.received.add(bytes as u64),
            Ok(Received::Nothing) => return,
            Ok(Received::End) | Err(_) => {
                session.phase = Phase::Closed;
                return;
            }
        }
        if proxied && !self.take_introduction(session) {
            return;
        }
        if session.awaits_tls {
            self.begin_tls(session);
        } else {
            self.next_begins(session);
        }
    }

    /// Takes the PROXY header; whether the client's own bytes can follow.
    fn take_introduction(&mut self, session: &mut Session) -> bool {
        let length = match proxy_protocol::read(session.inbox.bytes()) {
            Ok(Header::NeedMore) => return false,
            // gorouter serves connections without the header too.
            Ok(Header::Absent) => 0,
            Ok(Header::Local { length }) => length,
            Ok(Header::Proxied { length, source, .. }) => {
                session.client = Client::new(source, None);
                length
            }
            Err(_) => {
                self.opening_failed(session);
                return false;
            }
        };
        session.inbox.consume(length, &mut self.buffers);
        session.introduced = true;
        true
    }

    /// Begins TLS, behind what has come already.
    fn begin_tls(&mut self, session: &mut Session) {
        let domains = &self.shared.settings.domains;
        let tls = &self.shared.tls;
        let Some(domain) = tls.domain(domains, session.inbox.bytes()) else {
            return;
        };
        session.domain = domain;
        // The socket changes hands while the poller knows it: it gets another number.
        let socket = session.stream.socket().map(|it| it.try_clone_to_owned());
        let Some(Ok(socket)) = socket else {
            self.opening_failed(session);
            return;
        };
        let token = session.key.token(token::CLIENT);
        let moved = self
            .poller
            .remove(&session.stream)
            .and_then(|()| self.poller.add(&socket, token, Interest::Read));
        let begun = self
            .shared
            .tls
            .behind(socket, domain, session.inbox.bytes());
        session.inbox.clear(&mut self.buffers);
        match (moved, begun) {
            (Ok(()), Some(Ok(stream))) => {
                session.interest = Interest::Read;
                session.stream = Stream::Tls(Box::new(stream));
                self.shake_client_hands(session);
            }
            _ => self.opening_failed(session),
        }
    }

    fn shake_client_hands(&mut self, session: &mut Session) {
        match session.stream.handshake() {
            Ok(false) => {}
            Ok(true) => {
                if let Some(tls) = session.stream.tls() {
                    let facts = TlsFacts {
                        certificate: tls.peer_certificate().unwrap_or_default().to_vec(),
                        server_name: tls.server_name().unwrap_or_default().to_owned(),
                        http2: session.stream.protocol() == Some(b"h2"),
                        domain: session.domain,
                    };
                    session.client = Client::new(session.client.peer(), Some(facts));
                }
                if session.client.http2() {
                    session.phase = Phase::Http2;
                    return;
                }
                self.next_begins(session);
            }
            Err(_) => self.opening_failed(session),
        }
    }

    /// The connection did not begin as it should.
    pub(super) fn opening_failed(&mut self, session: &mut Session) {
        self.counters.failed_clients.increment();
        session.phase = Phase::Closed;
    }
}
