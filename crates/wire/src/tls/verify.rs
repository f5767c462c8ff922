//! Who is accepted as a server.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

/// Checks servers. Whoever is accepted, the key of the certificate must have signed the
/// handshake: a broken handshake is an error in any case.
#[derive(Debug)]
pub(super) struct Verifier {
    pub(super) accepted: Accepted,
    pub(super) algorithms: WebPkiSupportedAlgorithms,
}

/// Whose certificates are accepted.
#[derive(Debug)]
pub(super) enum Accepted {
    /// Anyone's.
    Anyone,
    /// Those that are trusted, for the name that was asked for (SNI) or for another
    /// one. If neither name nor authority is right it is the name that is told, as Go does.
    Proven(Trust, Option<ServerName<'static>>),
}

/// Which certificates are trusted: those that an authority signed, and those that were
/// given themselves. A server may show the very certificate that its clients were given,
/// and one that `openssl req -x509` made says of itself that it is an authority, which
/// webpki does not take from a server.
#[derive(Debug, Clone)]
pub(super) struct Trust {
    pub(super) web: Arc<WebPkiServerVerifier>,
    pub(super) given: Arc<[CertificateDer<'static>]>,
}

impl Trust {
    fn verify(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let web = &self.web;
        let verified = web.verify_server_cert(certificate, intermediates, name, ocsp, now);
        let Err(Error::InvalidCertificate(problem)) = &verified else {
            return verified;
        };
        // Times were looked at before these are found.
        let unsigned = matches!(
            problem,
            CertificateError::UnknownIssuer
                | CertificateError::BadSignature
                | CertificateError::Other(_)
        );
        if !unsigned {
            return verified;
        }
        let given = self.given.iter().any(|given| given == certificate);
        if given || !matches!(problem, CertificateError::Other(_)) {
            verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
        }
        match given {
            true => Ok(ServerCertVerified::assertion()),
            false => verified,
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Accepted::Proven(trust, own_name) = &self.accepted else {
            return Ok(ServerCertVerified::assertion());
        };
        let name = own_name.as_ref().unwrap_or(name);
        trust.verify(certificate, intermediates, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
