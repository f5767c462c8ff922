//! TLS towards both sides.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use wire::stream::{Stream, StreamError};
use wire::tls::{
    ClientProof, Hello, TlsClient, TlsOptions, TlsOptionsError, TlsServer, TlsServerOptions,
    TlsStream, check_subject_rules, client_hello_name,
};

use crate::http::identity::{MtlsDomain, find};
use crate::http::settings::{ClientCertificates, HttpSettings};
use crate::table::Endpoint;
use document::Secret;

/// TLS towards both sides.
pub(super) struct Tls {
    clients: Option<TlsServer>,
    /// The same for clients of each domain that has settings of its own.
    domains: Vec<TlsServer>,
    backends: TlsClient,
    /// To those that may speak HTTP/2.
    http2_backends: TlsClient,
    services: TlsClient,
}

/// Protocols of clients, and of backends that said that they speak HTTP/2 (ALPN), the best
/// first.
const PROTOCOLS: &[&str] = &["h2", "http/1.1"];

/// Who is at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PeerKind {
    /// An endpoint.
    Backend,
    /// One that may speak HTTP/2.
    Http2Backend,
    /// A route service.
    Service,
    /// This router itself, as a route service: without TLS.
    Itself,
}

impl Tls {
    /// # Errors
    /// What of the settings is of no use, and towards whom.
    pub(super) fn new(settings: &HttpSettings) -> Result<Self, (&'static str, TlsOptionsError)> {
        let (mut clients, mut domains) = (None, Vec::new());
        if settings.listen_tls.is_some() {
            let side = "clients";
            let failed = |source| (side, source);
            let tls = &settings.client_tls;
            check_subject_rules(&tls.subject_rules, &tls.client_authorities).map_err(failed)?;
            clients = Some(to_clients(settings, None).map_err(failed)?);
            for domain in &settings.domains {
                domains.push(to_clients(settings, Some(domain)).map_err(failed)?);
            }
        }
        let to = |side, certificate, insecure| {
            to_backends(settings, certificate, insecure).map_err(|source| (side, source))
        };
        let of = &settings.backends;
        let backends = to("backends", &of.certificate, of.insecure)?;
        let of = &settings.route_services;
        let services = to("route services", &of.certificate, of.insecure)?;
        Ok(Self {
            clients,
            domains,
            http2_backends: backends.with_protocols(PROTOCOLS),
            backends,
            services,
        })
    }

    /// A client's connection; with TLS if `tls` says so, and there are no domains: then the
    /// handshake begins when it is known which one the client asks for.
    pub(super) fn with_client(&self, tls: bool, socket: OwnedFd) -> Result<Stream, StreamError> {
        match &self.clients {
            Some(server) if tls && self.domains.is_empty() => {
                Ok(Stream::Tls(Box::new(server.begin(socket)?)))
            }
            _ => Ok(Stream::Plain(socket)),
        }
    }

    /// The domain that a client asks for with the first bytes of its handshake; `None`:
    /// they do not tell yet.
    pub(super) fn domain(&self, domains: &[MtlsDomain], received: &[u8]) -> Option<Option<usize>> {
        if self.domains.is_empty() {
            return Some(None);
        }
        match client_hello_name(received) {
            Hello::NeedMore => None,
            Hello::Name(name) => Some(find(domains, name.as_bytes())),
            Hello::NoName | Hello::NotTls => Some(None),
        }
    }

    /// Begins TLS with a client behind bytes that came already, as its domain wants it;
    /// `None`: there is no TLS here.
    pub(super) fn behind(
        &self,
        socket: OwnedFd,
        domain: Option<usize>,
        received: &[u8],
    ) -> Option<Result<TlsStream, StreamError>> {
        let server = match domain {
            Some(domain) => self.domains.get(domain)?,
            None => self.clients.as_ref()?,
        };
        Some(server.begin_with(socket, received))
    }

    /// Begins TLS with an endpoint, or a route service, which must prove to be who it is said
    /// to be.
    pub(super) fn to_backend(
        &self,
        socket: OwnedFd,
        endpoint: &Endpoint,
        to: PeerKind,
    ) -> Result<TlsStream, StreamError> {
        let address: Option<SocketAddr> = endpoint.identity().parse().ok();
        let own = address.map(|address| address.ip().to_string());
        let name = match (endpoint.server_name.is_empty(), &own) {
            // Without a name, the address has to be proven.
            (true, Some(own)) => own.as_str(),
            _ => &endpoint.server_name,
        };
        let client = match to {
            PeerKind::Backend => &self.backends,
            PeerKind::Http2Backend => &self.http2_backends,
            PeerKind::Service | PeerKind::Itself => &self.services,
        };
        client.begin_as(socket, name)
    }
}

/// Each domain has tickets of its own: a session of one is never resumed in another.
fn to_clients(
    settings: &HttpSettings,
    domain: Option<&MtlsDomain>,
) -> Result<TlsServer, TlsOptionsError> {
    let tls = &settings.client_tls;
    let client_certificates = match domain {
        Some(_) => ClientCertificates::Require,
        None => tls.client_certificates,
    };
    TlsServer::new(&TlsServerOptions {
        certificates: &tls.certificates,
        clients: match client_certificates {
            ClientCertificates::None => ClientProof::None,
            ClientCertificates::Request => ClientProof::Asked,
            ClientCertificates::Require => ClientProof::Required,
        },
        client_authorities: domain.map_or(&tls.client_authorities, |it| &it.authorities),
        subject_rules: &tls.subject_rules,
        tls13: tls.tls13,
        only_tls13: tls.only_tls13,
        cipher_suites: &tls.cipher_suites,
        protocols: if settings.http2 {
            PROTOCOLS
        } else {
            &PROTOCOLS[1..]
        },
    })
}

fn to_backends(
    settings: &HttpSettings,
    (certificate, key): &(String, Secret),
    insecure: bool,
) -> Result<TlsClient, TlsOptionsError> {
    // Each connection has its own name.
    TlsClient::new(
        "backend",
        &TlsOptions {
            authorities: &settings.backends.authorities,
            public_authorities: true,
            certificate,
            key,
            insecure,
            protocols: &[],
        },
    )
}
