//! TLS with clients and with backends, prepared once for all threads.

use std::os::fd::OwnedFd;

use wire::stream::StreamError;
use wire::tls::{
    ClientProof, TlsClient, TlsOptions, TlsOptionsError, TlsServer, TlsServerOptions, TlsStream,
};

use crate::tcp::TcpSettings;
use crate::tcp::table::{BackendTls, Termination};

/// The name that a client is made with. Each connection has its own.
const ANY: &str = "backend.invalid";

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Tls {
    server: Option<TlsServer>,
    /// Without and with the own certificate.
    client: Option<TlsClient>,
    proving_client: Option<TlsClient>,
}

impl Tls {
    pub(super) fn new(settings: &TcpSettings) -> Result<Self, TlsOptionsError> {
        let mut tls = Self::default();
        if let Some(termination) = &settings.termination {
            tls.server = Some(TlsServer::new(&TlsServerOptions {
                certificates: &termination.certificates,
                clients: ClientProof::None,
                tls13: true,
                ..TlsServerOptions::default()
            })?);
        }
        if let Some(backend) = &settings.backend_tls {
            let mut options = TlsOptions {
                authorities: &backend.authorities,
                ..TlsOptions::default()
            };
            tls.client = Some(TlsClient::new(ANY, &options)?);
            if !backend.certificate.is_empty() {
                (options.certificate, options.key) = (&backend.certificate, &backend.key);
                tls.proving_client = Some(TlsClient::new(ANY, &options)?);
            }
        }
        Ok(tls)
    }

    /// Begins TLS with a client that has sent `received` so far. `None` when there is no
    /// certificate to show: the table skips such routes.
    pub(super) fn accept(
        &self,
        termination: &Termination,
        socket: OwnedFd,
        received: &[u8],
    ) -> Option<Result<TlsStream, StreamError>> {
        let server = self.server.as_ref()?;
        if termination.protocols.is_empty() {
            return Some(server.begin_with(socket, received));
        }
        let protocols: Vec<&str> = termination.protocols.iter().map(|name| &**name).collect();
        let server = server.with_protocols(&protocols);
        Some(server.begin_with(socket, received))
    }

    /// Begins TLS with a backend. `None` when that is switched off: the table skips such
    /// backends.
    pub(super) fn connect(
        &self,
        backend: &BackendTls,
        socket: OwnedFd,
    ) -> Option<Result<TlsStream, StreamError>> {
        let client = match backend.certificate {
            true => self.proving_client.as_ref()?,
            false => self.client.as_ref()?,
        };
        Some(match (&*backend.server_name, &*backend.verify) {
            (asked, "") => client.begin_with_any(socket, asked),
            ("", proven) => client.begin_as(socket, proven),
            (asked, proven) => client.begin_asking(socket, asked, proven),
        })
    }
}
