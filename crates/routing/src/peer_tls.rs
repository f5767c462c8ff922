//! TLS of the control plane, from PEM text.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::http::router::PeerTls;

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("TLS of {of}: {cause}")]
pub struct TlsPartError {
    /// Which part of the settings they belong to.
    of: &'static str,
    /// What is wrong.
    cause: String,
}

fn error(of: &'static str, cause: impl ToString) -> TlsPartError {
    TlsPartError {
        of,
        cause: cause.to_string(),
    }
}

/// A server that shows a certificate and lets nobody in without one of its authorities.
pub(crate) fn mutual_server(
    of: &'static str,
    tls: &PeerTls,
) -> Result<Arc<ServerConfig>, TlsPartError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let roots = Arc::new(roots(of, &tls.authorities)?);
    let clients = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider))
        .build()
        .map_err(|cause| error(of, cause))?;
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|cause| error(of, cause))?
        .with_client_cert_verifier(clients)
        .with_single_cert(chain(of, &tls.certificate)?, private_key(of, &tls.key)?)
        .map_err(|cause| error(of, cause))?;
    Ok(Arc::new(config))
}

/// A server that shows a certificate and asks for none.
pub(crate) fn server(
    of: &'static str,
    certificate: &str,
    key: &str,
) -> Result<Arc<ServerConfig>, TlsPartError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|cause| error(of, cause))?
        .with_no_client_auth()
        .with_single_cert(chain(of, certificate)?, private_key(of, key)?)
        .map_err(|cause| error(of, cause))?;
    Ok(Arc::new(config))
}

/// A client that checks the server's name, and shows a certificate if it has one.
pub(crate) fn client(of: &'static str, tls: &PeerTls) -> Result<Arc<ClientConfig>, TlsPartError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let roots: RootCertStore = match tls.authorities.as_str() {
        "" => webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect(),
        authorities => roots(of, authorities)?,
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|cause| error(of, cause))?
        .with_root_certificates(roots);
    let config = match tls.certificate.is_empty() {
        true => builder.with_no_client_auth(),
        false => builder
            .with_client_auth_cert(chain(of, &tls.certificate)?, private_key(of, &tls.key)?)
            .map_err(|cause| error(of, cause))?,
    };
    Ok(Arc::new(config))
}

fn roots(of: &'static str, authorities: &str) -> Result<RootCertStore, TlsPartError> {
    let mut roots = RootCertStore::empty();
    for authority in chain(of, authorities)? {
        roots.add(authority).map_err(|cause| error(of, cause))?;
    }
    Ok(roots)
}

fn chain(of: &'static str, pem: &str) -> Result<Vec<CertificateDer<'static>>, TlsPartError> {
    let chain = CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|cause| error(of, cause))?;
    match chain.is_empty() {
        true => Err(error(of, "expected a certificate in PEM, found none")),
        false => Ok(chain),
    }
}

fn private_key(of: &'static str, pem: &str) -> Result<PrivateKeyDer<'static>, TlsPartError> {
    PrivateKeyDer::from_pem_slice(pem.as_bytes())
        .map_err(|_| error(of, "expected a private key in PEM, found none"))
}
