//! TLS towards both sides: what it is made of, and how its failures are told.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use wire::stream::{Stream, StreamError};
use wire::tls::{
    ClientProof, TlsClient, TlsFailure as Broken, TlsOptions, TlsOptionsError, TlsServer,
    TlsServerOptions, TlsStream,
};

use super::StartError;
use super::session::Session;
use super::worker::Worker;
use crate::http::pipeline::retry::{Failure, TlsFailure};
use crate::http::settings::{ClientCertificates, HttpSettings};
use crate::table::Endpoint;

/// TLS towards both sides.
pub(super) struct Tls {
    clients: Option<TlsServer>,
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
pub(super) enum Towards {
    /// An endpoint.
    Backend,
    /// One that may speak HTTP/2.
    Http2Backend,
    /// A route service.
    Service,
}

impl Tls {
    pub(super) fn new(settings: &HttpSettings) -> Result<Self, StartError> {
        let clients = match settings.listen_tls {
            Some(_) => Some(to_clients(settings).map_err(|source| StartError::Tls {
                side: "clients",
                source,
            })?),
            None => None,
        };
        let to = |side, insecure| {
            to_backends(settings, insecure).map_err(|source| StartError::Tls { side, source })
        };
        let backends = to("backends", settings.backends.insecure)?;
        Ok(Self {
            clients,
            http2_backends: backends.with_protocols(PROTOCOLS),
            backends,
            services: to("route services", settings.route_services.insecure)?,
        })
    }

    /// A client's connection; with TLS if `tls` says so.
    pub(super) fn with_client(&self, tls: bool, socket: OwnedFd) -> Result<Stream, StreamError> {
        match &self.clients {
            Some(server) if tls => Ok(Stream::Tls(Box::new(server.begin(socket)?))),
            _ => Ok(Stream::Plain(socket)),
        }
    }

    /// Begins TLS with a client behind bytes that came already; `None`: there is none here.
    pub(super) fn behind(
        &self,
        socket: OwnedFd,
        received: &[u8],
    ) -> Option<Result<TlsStream, StreamError>> {
        let server = self.clients.as_ref()?;
        Some(server.begin_with(socket, received))
    }

    /// Begins TLS with an endpoint, or a route service, which must prove to be who it is said
    /// to be.
    pub(super) fn to_backend(
        &self,
        socket: OwnedFd,
        endpoint: &Endpoint,
        to: Towards,
    ) -> Result<TlsStream, StreamError> {
        let address: Option<SocketAddr> = endpoint.identity().parse().ok();
        let own = address.map(|address| address.ip().to_string());
        let name = match (endpoint.server_name.is_empty(), &own) {
            // Without a name, the address has to be proven.
            (true, Some(own)) => own.as_str(),
            _ => &endpoint.server_name,
        };
        let client = match to {
            Towards::Backend => &self.backends,
            Towards::Http2Backend => &self.http2_backends,
            Towards::Service => &self.services,
        };
        client.begin_as(socket, name)
    }
}

fn to_clients(settings: &HttpSettings) -> Result<TlsServer, TlsOptionsError> {
    let tls = &settings.client_tls;
    TlsServer::new(&TlsServerOptions {
        certificates: &tls.certificates,
        clients: match tls.client_certificates {
            ClientCertificates::None => ClientProof::None,
            ClientCertificates::Request => ClientProof::Asked,
            ClientCertificates::Require => ClientProof::Required,
        },
        client_authorities: &tls.client_authorities,
        tls13: tls.tls13,
        protocols: if settings.http2 { PROTOCOLS } else { &PROTOCOLS[1..] },
    })
}

fn to_backends(settings: &HttpSettings, insecure: bool) -> Result<TlsClient, TlsOptionsError> {
    let backends = &settings.backends;
    // Each connection has its own name.
    TlsClient::new(
        "backend",
        &TlsOptions {
            authorities: &backends.authorities,
            public_authorities: true,
            certificate: &backends.certificate.0,
            key: &backends.certificate.1,
            insecure,
            protocols: &[],
        },
    )
}

impl Worker {
    /// The connection to the backend failed within TLS, or beside it: `otherwise`.
    pub(super) fn fail_tls(
        &mut self,
        session: &mut Session,
        error: &StreamError,
        otherwise: Failure<'_>,
    ) {
        let Some(broken) = error.tls_failure() else {
            self.fail(session, otherwise);
            return;
        };
        let names;
        let failure = match &broken {
            Broken::OtherName { proven, expected } => {
                names = proven.join(", ");
                TlsFailure::Name {
                    has: &names,
                    wanted: expected,
                }
            }
            Broken::UnknownAuthority | Broken::BadCertificate => TlsFailure::Authority,
            Broken::Expired => TlsFailure::Expired("by this router's clock"),
            Broken::NotTls => TlsFailure::NotTls,
            Broken::AlertBadCertificate => TlsFailure::Certificate("bad certificate"),
            Broken::AlertUnknownAuthority => {
                TlsFailure::Certificate("unknown certificate authority")
            }
            Broken::AlertCertificateRequired => TlsFailure::Certificate("certificate required"),
            Broken::AlertHandshakeFailure | Broken::Incompatible => {
                TlsFailure::Handshake("handshake failure")
            }
            Broken::Alert(_) | Broken::Other => TlsFailure::Other("remote error: tls: alert"),
        };
        self.fail(session, Failure::Tls(failure));
    }
}
