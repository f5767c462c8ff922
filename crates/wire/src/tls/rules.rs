//! Which clients an authority may send: certificates are good for some subjects only.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

use super::Subject;

/// The subjects that clients of an authority may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectRule {
    /// The subject of an authority in the client's chain: only its clients are looked at.
    pub issuer: Subject,
    /// The subjects of theirs that are let in.
    pub allowed: Vec<Subject>,
}

impl SubjectRule {
    /// Whether a client with this chain is let in. A certificate that cannot be read is not.
    fn allows(&self, leaf: &CertificateDer<'_>, intermediates: &[CertificateDer<'_>]) -> bool {
        let own = Subject::of(leaf);
        // Whatever leads from the certificate to its root is named as an issuer on the way;
        // what was shown beside that can only make a rule count.
        let applies = std::iter::once(leaf).chain(intermediates).any(|shown| {
            let names = [Subject::of_issuer(shown), Subject::of(shown)];
            // The client's own name is none of an authority.
            let names = &names[..if std::ptr::eq(shown, leaf) { 1 } else { 2 }];
            names.iter().any(|name| match name {
                Some(name) => name.is_same(&self.issuer),
                None => true,
            })
        });
        let allowed = || {
            own.as_ref()
                .is_some_and(|own| self.allowed.iter().any(|one| one.is_same(own)))
        };
        !applies || allowed()
    }
}

/// Checks clients as another verifier does, and then by rules.
#[derive(Debug)]
pub(super) struct RuledClients {
    pub(super) inner: Arc<dyn ClientCertVerifier>,
    pub(super) rules: Vec<SubjectRule>,
}

impl ClientCertVerifier for RuledClients {
    fn offer_client_auth(&self) -> bool {
        self.inner.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.inner.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.inner.verify_client_cert(leaf, intermediates, now)?;
        match self
            .rules
            .iter()
            .all(|rule| rule.allows(leaf, intermediates))
        {
            true => Ok(verified),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner
            .verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner
            .verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
