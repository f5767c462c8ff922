//! Certificates and keys in PEM.

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

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
    #[error("use {what}: {found}")]
    Certificate {
        /// Which certificate.
        what: &'static str,
        /// What is wrong.
        found: String,
    },
    /// A rule is about an authority that there is not.
    #[error(
        "check clients by their subjects: found a rule for the authority {issuer}, which is none of the authorities of clients"
    )]
    Rule {
        /// Its name.
        issuer: String,
    },
    /// The target's name cannot stand in a certificate.
    #[error("{0:?} is not a name that a certificate can prove; expected a DNS name or an address")]
    Name(String),
}

/// Authorities to trust: those of a text, those of the public web if it is empty or they
/// are wanted too.
pub(super) fn trusted(
    authorities: &str,
    public_too: bool,
) -> Result<RootCertStore, TlsOptionsError> {
    let mut store = RootCertStore::empty();
    if authorities.is_empty() || public_too {
        store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    if authorities.is_empty() {
        return Ok(store);
    }
    let what = "the trusted authorities";
    for certificate in certificates(what, authorities)? {
        store
            .add(certificate)
            .map_err(|error| not_pem(what, &error))?;
    }
    Ok(store)
}

/// The certificates of a text, at least one.
pub(super) fn certificates(
    what: &'static str,
    pem: &str,
) -> Result<Vec<CertificateDer<'static>>, TlsOptionsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let found = found.map_err(|error| not_pem(what, &error))?;
    if found.is_empty() {
        return Err(not_pem(what, &"no certificate"));
    }
    Ok(found)
}

/// The first key of a text.
pub(super) fn key(
    what: &'static str,
    pem: &str,
) -> Result<PrivateKeyDer<'static>, TlsOptionsError> {
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|error| not_pem(what, &error))
}

fn not_pem(what: &'static str, found: &impl ToString) -> TlsOptionsError {
    let found = found.to_string();
    TlsOptionsError::Pem { what, found }
}
