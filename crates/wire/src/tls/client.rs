//! The client's side.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use super::pem::{certificates, key};
use super::verify::{Accepted, Trust, Verifier};
use super::{TlsOptionsError, TlsStream, protocols};
use crate::stream::StreamError;

/// Sessions that are remembered to be resumed, over all names.
const SESSIONS: usize = 4096;

/// What a client wants of TLS. All texts are PEM.
#[derive(Clone, Copy, Default)]
pub struct TlsOptions<'a> {
    /// Authorities to trust, or certificates of servers themselves; empty: the authorities
    /// of the public web.
    pub authorities: &'a str,
    /// Trust those of the public web beside `authorities`.
    pub public_authorities: bool,
    /// The own certificate with its chain; empty: none.
    pub certificate: &'a str,
    /// The key of the own certificate.
    pub key: &'a str,
    /// Accept whoever answers.
    pub insecure: bool,
    /// Protocols to agree on (ALPN), the best first; empty: say nothing.
    pub protocols: &'a [&'a str],
}

// Without keys and secrets.
impl std::fmt::Debug for TlsOptions<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("TlsOptions").finish_non_exhaustive()
    }
}

/// How connections are made to a target, or to many that differ in their names only.
/// Cheap to clone; clones resume each other's sessions.
#[derive(Debug, Clone)]
pub struct TlsClient {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    /// `None`: whoever answers is accepted.
    trust: Option<Trust>,
}

impl TlsClient {
    /// Prepares connections to a target that proves to be `name`.
    ///
    /// # Errors
    /// When a text of the options does not hold what it should.
    pub fn new(name: &str, options: &TlsOptions<'_>) -> Result<Self, TlsOptionsError> {
        let what = "the client certificate";
        let unusable = |error: String| TlsOptionsError::Certificate { what, found: error };
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(error.to_string()))?
            .dangerous();
        let algorithms = provider.signature_verification_algorithms;
        let trust = if options.insecure {
            None
        } else {
            Some(Trust::new(
                "the trusted authorities",
                options.authorities,
                options.public_authorities,
                algorithms,
            )?)
        };
        let accepted = trust
            .clone()
            .map_or(Accepted::Anyone, |trust| Accepted::Proven(trust, None));
        let builder = builder.with_custom_certificate_verifier(Arc::new(Verifier {
            accepted,
            algorithms,
        }));
        let mut config = if options.certificate.is_empty() {
            builder.with_no_client_auth()
        } else {
            let chain = certificates(what, options.certificate)?;
            let key = key("the key of the client certificate", options.key)?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| unusable(error.to_string()))?
        };
        config.resumption = Resumption::in_memory_sessions(SESSIONS);
        config.alpn_protocols = protocols(options.protocols);
        Ok(Self {
            config: Arc::new(config),
            name: server_name(name)?,
            trust,
        })
    }

    /// The settings as rustls has them, for clients with sockets of another kind.
    pub fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }

    /// The same with other protocols to agree on (ALPN).
    #[must_use]
    pub fn with_protocols(&self, names: &[&str]) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = protocols(names);
        Self {
            config: Arc::new(config),
            name: self.name.clone(),
            trust: self.trust.clone(),
        }
    }

    /// Begins TLS over a connected socket; [`TlsStream::handshake`] goes on with it.
    ///
    /// # Errors
    /// When there is no randomness to begin with.
    pub fn begin(&self, socket: OwnedFd) -> Result<TlsStream, StreamError> {
        let connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone())?;
        Ok(TlsStream::new(socket, connection.into()))
    }

    /// The same with a target that proves to be another one: `name`, a DNS name or an
    /// address, is asked for (SNI, names only) and checked.
    ///
    /// # Errors
    /// When the name cannot stand in a certificate, or there is no randomness.
    pub fn begin_as(&self, socket: OwnedFd, name: &str) -> Result<TlsStream, StreamError> {
        let connection = ClientConnection::new(Arc::clone(&self.config), own_name(name)?)?;
        Ok(TlsStream::new(socket, connection.into()))
    }

    /// The same where the name that is asked for (SNI) is not the one to prove. Such
    /// sessions are not resumed: who was proven once is remembered by the first name only.
    ///
    /// # Errors
    /// As [`begin_as`](Self::begin_as).
    pub fn begin_asking(
        &self,
        socket: OwnedFd,
        asked: &str,
        proven: &str,
    ) -> Result<TlsStream, StreamError> {
        let (asked, proven) = (own_name(asked)?, own_name(proven)?);
        let trust = self.trust.clone();
        let accepted = trust.map(|trust| Accepted::Proven(trust, Some(proven)));
        self.begin_accepting(socket, Some(asked), accepted)
    }

    /// The same with a target that may have any name, as long as it is trusted. `asked`: the
    /// name that is asked for (SNI); empty: none is. Such sessions are not resumed.
    ///
    /// # Errors
    /// As [`begin_as`](Self::begin_as).
    pub fn begin_with_any(&self, socket: OwnedFd, asked: &str) -> Result<TlsStream, StreamError> {
        let asked = match asked {
            "" => None,
            asked => Some(own_name(asked)?),
        };
        let accepted = self.trust.clone().map(Accepted::Trusted);
        self.begin_accepting(socket, asked, accepted)
    }

    fn begin_accepting(
        &self,
        socket: OwnedFd,
        asked: Option<ServerName<'static>>,
        accepted: Option<Accepted>,
    ) -> Result<TlsStream, StreamError> {
        let mut config = ClientConfig::clone(&self.config);
        config.resumption = Resumption::disabled();
        config.enable_sni &= asked.is_some();
        if let Some(accepted) = accepted {
            let algorithms = config.crypto_provider().signature_verification_algorithms;
            config
                .dangerous()
                .set_certificate_verifier(Arc::new(Verifier {
                    accepted,
                    algorithms,
                }));
        }
        let name = asked.unwrap_or_else(|| self.name.clone());
        let connection = ClientConnection::new(Arc::new(config), name)?;
        Ok(TlsStream::new(socket, connection.into()))
    }
}

fn server_name(name: &str) -> Result<ServerName<'static>, TlsOptionsError> {
    ServerName::try_from(name.to_owned()).map_err(|_| TlsOptionsError::Name(name.to_owned()))
}

fn own_name(name: &str) -> Result<ServerName<'static>, StreamError> {
    server_name(name).map_err(|error| rustls::Error::General(error.to_string()).into())
}
