//! Who is at the other end of a client's connection.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::http::identity::Caller;

/// A client's connection. What every request says of it (log line, `X-Forwarded-For`,
/// `X-Forwarded-Client-Cert`) is written once, when the connection begins.
#[derive(Debug, Clone)]
pub struct Client {
    peer: SocketAddr,
    peer_text: String,
    ip_text: String,
    tls: Option<TlsFacts>,
    certificate_text: String,
    caller: Option<Arc<Caller>>,
}

/// What TLS told of a client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFacts {
    /// The certificate that the client proved itself with, DER; empty: none.
    pub certificate: Vec<u8>,
    /// The name that it asked for (SNI); empty: none.
    pub server_name: String,
    /// It speaks HTTP/2.
    pub http2: bool,
    /// The domain whose settings the handshake followed, by its place among
    /// [`HttpSettings::domains`](crate::http::settings::HttpSettings::domains).
    pub domain: Option<usize>,
}

impl Client {
    /// The client at `peer`: that of the socket, or the one that the PROXY protocol names.
    pub fn new(peer: SocketAddr, tls: Option<TlsFacts>) -> Self {
        // An IPv4 client of a dual-stack listener is an IPv4 client.
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        let certificate = tls.as_ref().map_or(&[][..], |tls| &tls.certificate);
        let domain = tls.as_ref().and_then(|tls| tls.domain);
        Self {
            peer,
            peer_text: peer.to_string(),
            ip_text: peer.ip().to_string(),
            certificate_text: STANDARD.encode(certificate),
            caller: domain.map(|domain| Arc::new(Caller::new(domain, certificate))),
            tls,
        }
    }

    /// Its address.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// What TLS told of it; `None`: its connection is plain.
    pub fn tls(&self) -> Option<&TlsFacts> {
        self.tls.as_ref()
    }

    /// Its IP address.
    pub fn ip(&self) -> IpAddr {
        self.peer.ip()
    }

    /// `ip:port`.
    pub(crate) fn peer_text(&self) -> &str {
        &self.peer_text
    }

    /// Its IP address as text.
    pub(crate) fn ip_text(&self) -> &str {
        &self.ip_text
    }

    /// Its certificate in base64; empty: it proved itself with none.
    pub(crate) fn certificate_text(&self) -> &str {
        &self.certificate_text
    }

    /// Who it is, if it proved itself for a domain.
    pub(crate) fn caller(&self) -> Option<&Caller> {
        self.caller.as_deref()
    }

    /// Whether it speaks HTTP/2.
    pub(crate) fn http2(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.http2)
    }
}
