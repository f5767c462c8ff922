//! The beginning of a client's connection: the PROXY header, and TLS's handshake.

use rustix::net::{SendFlags, send};
use wire::poller::Interest;
use wire::proxy_protocol::{self, Header};
use wire::stream::{Received, Stream};
use wire::tls::{TlsStream, looks_like_http};

use super::{ClientConnection, Phase};
use crate::http::engine::buffers::ROOM;
use crate::http::engine::context::Context;
use crate::http::pipeline::{Client, TlsFacts};

const SAY_HTTPS: &[u8] = b"HTTP/1.0 400 Bad Request\r\n\r\n\
    Client sent an HTTP request to an HTTPS server.\n";

impl ClientConnection {
    /// Goes on with the beginning.
    pub(crate) fn open(&mut self, context: &mut Context) {
        if self.stream.tls().is_some() {
            self.handshake(context);
            return;
        }
        let proxied = context.shared.settings.proxy_protocol && !self.introduced;
        let buffers = &mut context.buffers;
        match self.inbox.receive(&mut self.stream, ROOM, buffers) {
            Ok(Received::Bytes(bytes)) => context.counters.received.add(bytes as u64),
            Ok(Received::Nothing) => return,
            Ok(Received::End) | Err(_) => {
                self.phase = Phase::Closed;
                return;
            }
        }
        if proxied && !self.take_introduction(context) {
            return;
        }
        if self.awaits_tls {
            self.begin_tls(context);
        } else {
            self.await_request(context);
        }
    }

    /// Takes the PROXY header; whether the client's own bytes can follow.
    fn take_introduction(&mut self, context: &mut Context) -> bool {
        let length = match proxy_protocol::read(self.inbox.bytes()) {
            Ok(Header::NeedMore) => return false,
            // gorouter serves connections without the header too.
            Ok(Header::Absent) => 0,
            Ok(Header::Local { length }) => length,
            Ok(Header::Proxied { length, source, .. }) => {
                self.client = Client::new(source, None);
                length
            }
            Err(_) => {
                self.opening_failed(context);
                return false;
            }
        };
        self.inbox.consume(length, &mut context.buffers);
        self.introduced = true;
        true
    }

    /// Begins TLS, behind what has come already.
    fn begin_tls(&mut self, context: &mut Context) {
        let tls = &context.shared.tls;
        let domains = &context.shared.settings.domains;
        let Some(domain) = tls.domain(domains, self.inbox.bytes()) else {
            return;
        };
        self.domain = domain;
        // The socket changes hands while the poller knows it: it gets another number.
        let socket = self.stream.socket().map(|it| it.try_clone_to_owned());
        let Some(Ok(socket)) = socket else {
            self.opening_failed(context);
            return;
        };
        let poller = &context.poller;
        let moved = self.registration.set(&self.stream, None, poller);
        let read = Some(Interest::Read);
        let moved = moved.and_then(|()| self.registration.set(&socket, read, poller));
        let begun = tls.behind(socket, domain, self.inbox.bytes());
        if looks_like_http(self.inbox.bytes()) {
            self.send_https_notice();
        }
        self.inbox.clear(&mut context.buffers);
        match (moved, begun) {
            (Ok(()), Some(Ok(stream))) => {
                self.stream = Stream::Tls(Box::new(stream));
                self.handshake(context);
            }
            _ => self.opening_failed(context),
        }
    }

    fn handshake(&mut self, context: &Context) {
        match self.stream.handshake() {
            Ok(false) => {}
            Ok(true) => {
                if let Some(tls) = self.stream.tls() {
                    let facts = TlsFacts {
                        certificate: tls.peer_certificate().unwrap_or_default().to_vec(),
                        server_name: tls.server_name().unwrap_or_default().to_owned(),
                        http2: self.stream.protocol() == Some(b"h2"),
                        domain: self.domain,
                    };
                    self.client = Client::new(self.client.peer(), Some(facts));
                }
                if self.client.http2() {
                    self.phase = Phase::Http2;
                    return;
                }
                self.await_request(context);
            }
            Err(_) => {
                if self.stream.tls().is_some_and(TlsStream::heard_http) {
                    self.send_https_notice();
                }
                self.opening_failed(context);
            }
        }
    }

    /// Notifies a client that speaks HTTP on the port of TLS, in the words of Go's server, which
    /// closes the connection at once too.
    fn send_https_notice(&self) {
        if let Some(socket) = self.stream.socket() {
            // Nothing was sent before it: it fits, or the client is gone.
            let _ = send(socket, SAY_HTTPS, SendFlags::NOSIGNAL);
        }
    }

    /// The connection did not begin as it should.
    pub(super) fn opening_failed(&mut self, context: &Context) {
        context.counters.failed_clients.increment();
        self.phase = Phase::Closed;
    }
}
