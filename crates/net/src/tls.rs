//! TLS, mutual by default: both sides show a certificate of a trusted authority.

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ConfigBuilder, DigitallySignedStruct, Error, RootCertStore, ServerConfig, SignatureScheme,
    WantsVerifier,
};

/// Files of one party: its certificate and key, and the authority it trusts.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// Certificate chain, PEM.
    pub certificate: PathBuf,
    /// Private key, PEM.
    pub key: PathBuf,
    /// Certificates of the authority that the peer's certificate must come from, PEM.
    pub authority: PathBuf,
}

/// Why TLS could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file could not be read or holds something else.
    #[error("read {what} from {}: {cause}", path.display())]
    File {
        /// What the file should hold.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// The parts do not fit together.
    #[error("set up TLS: {0}")]
    Setup(String),
}

/// Servers whose sessions a client keeps, as many as a BBS may have reps.
const SESSIONS: usize = 4096;

/// A server's settings: TLS 1.2 and 1.3, and a client certificate is required.
///
/// # Errors
/// When a file cannot be read or certificate and key do not belong together.
pub fn server(files: &Files) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let roots = Arc::new(authority(&files.authority)?);
    let clients = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider))
        .build()
        .map_err(setup)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(setup)?
        .with_client_cert_verifier(clients)
        .with_single_cert(chain(&files.certificate)?, key(&files.key)?)
        .map_err(setup)?;
    // Sessions that clients keep: of sessions in memory only the last hundred could be resumed.
    config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().map_err(setup)?;
    Ok(Arc::new(config))
}

/// A client's settings: it verifies the server's name and shows its own certificate.
///
/// # Errors
/// When a file cannot be read or certificate and key do not belong together.
pub fn client(files: &Files) -> Result<Arc<ClientConfig>, TlsError> {
    let mut config = client_builder()?
        .with_root_certificates(authority(&files.authority)?)
        .with_client_auth_cert(chain(&files.certificate)?, key(&files.key)?)
        .map_err(setup)?;
    config.resumption = Resumption::in_memory_sessions(SESSIONS);
    Ok(Arc::new(config))
}

/// A client's settings: it shows its own certificate and takes any server for the right one. For
/// people who say so: whoever is in between can read and change everything.
///
/// # Errors
/// When a file cannot be read or certificate and key do not belong together.
pub fn trusting_client(certificate: &Path, own_key: &Path) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let any = AnyServer(provider.signature_verification_algorithms);
    let config = client_builder()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(any))
        .with_client_auth_cert(chain(certificate)?, key(own_key)?)
        .map_err(setup)?;
    Ok(Arc::new(config))
}

/// Accepts every certificate whose key the server has.
#[derive(Debug)]
struct AnyServer(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

/// A client's settings: it verifies the server's name, by the authorities of a file in PEM, or of the
/// web without one, and shows nothing.
///
/// # Errors
/// When the file cannot be read or holds no authority.
pub fn anonymous(authorities: Option<&Path>) -> Result<Arc<ClientConfig>, TlsError> {
    let roots = match authorities {
        Some(path) => authority(path)?,
        None => RootCertStore {
            roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
        },
    };
    let builder = client_builder()?.with_root_certificates(roots);
    Ok(Arc::new(builder.with_no_client_auth()))
}

fn client_builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, TlsError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(setup)
}

fn setup(error: impl ToString) -> TlsError {
    TlsError::Setup(error.to_string())
}

fn file(what: &'static str, path: &Path, cause: impl ToString) -> TlsError {
    TlsError::File {
        what,
        path: path.to_owned(),
        cause: cause.to_string(),
    }
}

fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    const WHAT: &str = "a certificate";
    let chain = CertificateDer::pem_file_iter(path)
        .map_err(|error| file(WHAT, path, error))?
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| file(WHAT, path, error))?;
    if chain.is_empty() {
        return Err(file(WHAT, path, "it holds no PEM certificate"));
    }
    Ok(chain)
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| file("a private key", path, error))
}

fn authority(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in chain(path)? {
        roots
            .add(certificate)
            .map_err(|error| file("an authority's certificate", path, error))?;
    }
    Ok(roots)
}
