//! The client's side of TLS over a socket that never blocks.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct,
    RootCertStore, SignatureScheme,
};

use crate::stream::{Received, StreamError};

/// What a client wants of TLS. All texts are PEM.
#[derive(Debug, Clone, Copy, Default)]
pub struct TlsOptions<'a> {
    /// Authorities to trust; empty: those of the public web.
    pub authorities: &'a str,
    /// The own certificate with its chain; empty: none.
    pub certificate: &'a str,
    /// The key of the own certificate.
    pub key: &'a str,
    /// Accept whoever answers.
    pub insecure: bool,
    /// Protocols to agree on (ALPN), the best first; empty: say nothing.
    pub protocols: &'a [&'a str],
}

/// Why the options of TLS are of no use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsOptionsError {
    /// A text is not PEM, or has nothing of what it should hold.
    #[error("read {what}: found {found}; expected PEM")]
    Pem {
        /// Which text.
        what: &'static str,
        /// What it holds instead.
        found: String,
    },
    /// The certificate and the key do not belong together, or are of no known kind.
    #[error("use the client certificate: {0}")]
    Certificate(String),
    /// The target's name cannot stand in a certificate.
    #[error("{0:?} is not a name that a certificate can prove; expected a DNS name or an address")]
    Name(String),
}

/// How connections of one target are made. Cheap to clone; clones resume each other's
/// sessions.
#[derive(Debug, Clone)]
pub struct TlsClient {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl TlsClient {
    /// Prepares connections to a target that proves to be `name`.
    ///
    /// # Errors
    /// When a text of the options does not hold what it should.
    pub fn new(name: &str, options: &TlsOptions<'_>) -> Result<Self, TlsOptionsError> {
        let server = ServerName::try_from(name.to_owned())
            .map_err(|_| TlsOptionsError::Name(name.to_owned()))?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsOptionsError::Certificate(error.to_string()))?;
        let builder = if options.insecure {
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Anyone(provider)))
        } else {
            builder.with_root_certificates(trusted(options.authorities)?)
        };
        let mut config = if options.certificate.is_empty() {
            builder.with_no_client_auth()
        } else {
            let chain = certificates("the client certificate", options.certificate)?;
            let key = PrivateKeyDer::from_pem_slice(options.key.as_bytes()).map_err(|error| {
                TlsOptionsError::Pem {
                    what: "the key of the client certificate",
                    found: error.to_string(),
                }
            })?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| TlsOptionsError::Certificate(error.to_string()))?
        };
        config.alpn_protocols = options
            .protocols
            .iter()
            .map(|protocol| protocol.as_bytes().to_vec())
            .collect();
        Ok(Self {
            config: Arc::new(config),
            name: server,
        })
    }

    /// Begins TLS over a connected socket; [`TlsStream::handshake`] goes on with it.
    ///
    /// # Errors
    /// When there is no randomness to begin with.
    pub fn begin(&self, socket: OwnedFd) -> Result<TlsStream, StreamError> {
        let connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone())?;
        Ok(TlsStream { socket, connection })
    }
}

/// TLS over a connected socket.
pub struct TlsStream {
    socket: OwnedFd,
    connection: ClientConnection,
}

impl TlsStream {
    /// See [`Stream::handshake`](crate::stream::Stream::handshake).
    pub(crate) fn handshake(&mut self) -> Result<bool, StreamError> {
        loop {
            self.flush()?;
            if !self.connection.is_handshaking() {
                return Ok(!self.connection.wants_write());
            }
            if self.connection.wants_write() {
                return Ok(false);
            }
            match self.take_records()? {
                Received::Bytes(_) => {}
                Received::Nothing => return Ok(false),
                Received::End => return Err(Errno::PIPE.into()),
            }
        }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<usize, StreamError> {
        // Takes what fits into its buffer of 64 KiB.
        let taken = self.connection.writer().write(bytes).unwrap_or(0);
        self.flush()?;
        Ok(taken)
    }

    pub(crate) fn flush(&mut self) -> Result<(), StreamError> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut Raw(&self.socket)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(socket_error(&error)),
            }
        }
        Ok(())
    }

    pub(crate) fn wants_write(&self) -> bool {
        self.connection.wants_write()
    }

    pub(crate) fn receive(&mut self, into: &mut [u8]) -> Result<Received, StreamError> {
        loop {
            match self.connection.reader().read(into) {
                Ok(0) => return Ok(Received::End),
                Ok(received) => return Ok(Received::Bytes(received)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // An end without the farewell of TLS: the codec above knows whether the
                // answer was whole.
                Err(_) => return Ok(Received::End),
            }
            match self.take_records()? {
                Received::Nothing => return Ok(Received::Nothing),
                // The reader has the last word: it tells an end after all bytes.
                Received::Bytes(_) | Received::End => {}
            }
        }
    }

    pub(crate) fn holds_bytes(&self) -> bool {
        !self.connection.wants_read()
    }

    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        self.connection.alpn_protocol()
    }

    fn take_records(&mut self) -> Result<Received, StreamError> {
        let taken = match self.connection.read_tls(&mut Raw(&self.socket)) {
            Ok(0) => Received::End,
            Ok(taken) => Received::Bytes(taken),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Received::Nothing,
            Err(error) => return Err(socket_error(&error)),
        };
        if let Err(error) = self.connection.process_new_packets() {
            // The peer is told why, if it still listens.
            let _ = self.flush();
            return Err(error.into());
        }
        Ok(taken)
    }
}

impl AsFd for TlsStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The socket as rustls takes it.
struct Raw<'a>(&'a OwnedFd);

impl io::Read for Raw<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(recv(self.0, into, RecvFlags::empty())?.1)
    }
}

impl io::Write for Raw<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.0, bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn socket_error(error: &io::Error) -> StreamError {
    StreamError::Socket(Errno::from_io_error(error).unwrap_or(Errno::IO))
}

/// A short constant text for an error of TLS, to count errors by.
pub(crate) fn cause(error: &rustls::Error) -> &'static str {
    use rustls::Error;
    match error {
        Error::InvalidCertificate(problem) => match problem {
            CertificateError::UnknownIssuer => "certificate unknown",
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "certificate expired"
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "certificate not valid yet"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "certificate for another name"
            }
            CertificateError::Revoked => "certificate revoked",
            // The verifier's own error is not among the kinds that rustls names.
            CertificateError::Other(other)
                if format!("{other:?}").contains("CaUsedAsEndEntity") =>
            {
                "self-signed certificate"
            }
            _ => "certificate invalid",
        },
        Error::InvalidMessage(_) => "not TLS",
        Error::AlertReceived(AlertDescription::NoApplicationProtocol) => "no common protocol",
        Error::AlertReceived(_) => "refused by the target",
        Error::NoApplicationProtocol => "no common protocol",
        Error::PeerIncompatible(_) => "no common version or cipher",
        Error::DecryptError => "corrupt record",
        _ => "TLS broken",
    }
}

fn trusted(authorities: &str) -> Result<RootCertStore, TlsOptionsError> {
    let mut store = RootCertStore::empty();
    if authorities.is_empty() {
        store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        return Ok(store);
    }
    let what = "the trusted authorities";
    for certificate in certificates(what, authorities)? {
        store
            .add(certificate)
            .map_err(|error| TlsOptionsError::Pem {
                what,
                found: error.to_string(),
            })?;
    }
    Ok(store)
}

fn certificates(
    what: &'static str,
    pem: &str,
) -> Result<Vec<CertificateDer<'static>>, TlsOptionsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let found = found.map_err(|error| TlsOptionsError::Pem {
        what,
        found: error.to_string(),
    })?;
    if found.is_empty() {
        let found = "no certificate".to_owned();
        return Err(TlsOptionsError::Pem { what, found });
    }
    Ok(found)
}

/// Accepts whoever answers, but still checks that the key of the certificate signed the
/// handshake: a broken handshake is an error in any case.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
