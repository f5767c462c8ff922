//! Who is accepted, as a server and as a client.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{
    CertificateDer, ServerName, SignatureVerificationAlgorithm, TrustAnchor, UnixTime,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, RootCertStore,
    SignatureScheme,
};
use webpki::{ExtendedKeyUsageValidator, KeyPurposeIdIter, KeyUsage};

use super::certificate::{Certificate, Judged};
use super::failure::Flaw;
use super::pem::{certificates, trusted};
use super::{SubjectRule, TlsOptionsError};

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
    /// one.
    Proven(Trust, Option<ServerName<'static>>),
    /// Those that are trusted, whatever their names.
    Trusted(Trust),
}

/// Which certificates are trusted: those that an authority signed, and those that were
/// given themselves. Either may say of itself that it is an authority's, as one that
/// `openssl req -x509` made does; webpki alone does not take such a one.
#[derive(Debug, Clone)]
pub(super) struct Trust {
    roots: Arc<RootCertStore>,
    given: Arc<[CertificateDer<'static>]>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Trust {
    /// Reads whom to trust, as [`trusted`] does.
    ///
    /// # Errors
    /// When the text, which is called `what`, does not hold what it should.
    pub(super) fn new(
        what: &'static str,
        authorities: &str,
        public_too: bool,
        algorithms: WebPkiSupportedAlgorithms,
    ) -> Result<Self, TlsOptionsError> {
        let given = match authorities.is_empty() {
            true => Vec::new(),
            false => certificates(what, authorities)?,
        };
        Ok(Self {
            roots: Arc::new(trusted(authorities, public_too)?),
            given: given.into(),
            algorithms,
        })
    }

    /// Checks one after the other what Go does: extensions, time, name, authority, usage. The
    /// first that is wrong is told, so that logs tell the same as Go's.
    fn verify(
        &self,
        shown: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: Option<&ServerName<'_>>,
        usage: KeyUsage,
        now: UnixTime,
    ) -> Result<(), CertificateError> {
        let parts = Certificate::read(shown);
        let by_common_name = |name: &ServerName<'_>| {
            let parts = parts.as_ref();
            parts.is_some_and(|parts| parts.relies_on_common_name(&name.to_str()))
        };
        let leaf = match (webpki::EndEntityCert::try_from(shown), name) {
            (Ok(leaf), _) => leaf,
            // Names came with version 3.
            (Err(webpki::Error::UnsupportedCertVersion), Some(name)) => {
                return Err(match by_common_name(name) {
                    true => flaw(Flaw::CommonNameOnly),
                    false => other_name(name, Vec::new()),
                });
            }
            (Err(error), _) => return Err(certificate_error(error)),
        };
        let chain = Chain {
            anchors: &[],
            intermediates: &[],
            now,
            algorithms: self.algorithms.all,
        };
        // Without anybody to trust only what is wrong with the certificate itself is found.
        let alone = chain.verify(&leaf, AnyUsage);
        let twin = match alone {
            Err(webpki::Error::CaUsedAsEndEntity) => {
                parts.as_ref().and_then(Certificate::as_end_entity)
            }
            Ok(()) | Err(webpki::Error::UnknownIssuer) => None,
            Err(error) => return Err(certificate_error(error)),
        };
        if let Some(name) = name
            && let Err(error) = leaf.verify_is_valid_for_subject_name(name)
        {
            return Err(match by_common_name(name) {
                true => flaw(Flaw::CommonNameOnly),
                false => certificate_error(error),
            });
        }
        let own = twin.as_ref().map(|twin| CertificateDer::from(&*twin.der));
        let known = self.algorithms.all;
        let judged = twin.iter().flat_map(|twin| {
            let judged = known.iter().map(|inner| twin.judged_by(*inner));
            judged.collect::<Vec<_>>()
        });
        let judged: Vec<Judged<'_>> = judged.collect();
        let judged: Vec<&dyn SignatureVerificationAlgorithm> =
            judged.iter().map(|judged| judged as _).collect();
        let own = own
            .as_ref()
            .map(webpki::EndEntityCert::try_from)
            .transpose()
            .map_err(certificate_error)?;
        let algorithms: &[&dyn SignatureVerificationAlgorithm] = match &own {
            Some(_) => &judged,
            None => known,
        };
        let leaf = own.as_ref().unwrap_or(&leaf);
        let alone = Chain {
            algorithms,
            ..chain
        };
        if self.given.iter().any(|given| given == shown) {
            return match alone.verify(leaf, usage) {
                Ok(()) | Err(webpki::Error::UnknownIssuer) => Ok(()),
                Err(error) => Err(certificate_error(error)),
            };
        }
        let chain = Chain {
            anchors: &self.roots.roots,
            intermediates,
            ..alone
        };
        let Err(error) = chain.verify(leaf, usage) else {
            return Ok(());
        };
        // Usage is looked at first, but told last.
        let error = chain.verify(leaf, AnyUsage).err().unwrap_or(error);
        Err(match certificate_error(error) {
            CertificateError::UnknownIssuer | CertificateError::BadSignature
                if name.is_some() && own.is_some() && leaf.issuer() == leaf.subject() =>
            {
                flaw(Flaw::SelfSigned)
            }
            error => error,
        })
    }
}

/// How a way from a certificate to somebody trusted is looked for.
#[derive(Clone, Copy)]
struct Chain<'a> {
    anchors: &'a [TrustAnchor<'a>],
    intermediates: &'a [CertificateDer<'a>],
    now: UnixTime,
    algorithms: &'a [&'a dyn SignatureVerificationAlgorithm],
}

impl Chain<'_> {
    fn verify(
        &self,
        leaf: &webpki::EndEntityCert<'_>,
        usage: impl ExtendedKeyUsageValidator,
    ) -> Result<(), webpki::Error> {
        leaf.verify_for_usage(
            self.algorithms,
            self.anchors,
            self.intermediates,
            self.now,
            usage,
            None,
            None,
        )
        .map(drop)
    }
}

/// Whatever a certificate is for.
struct AnyUsage;

impl ExtendedKeyUsageValidator for AnyUsage {
    fn validate(&self, _: KeyPurposeIdIter<'_, '_>) -> Result<(), webpki::Error> {
        Ok(())
    }
}

fn flaw(flaw: Flaw) -> CertificateError {
    CertificateError::Other(OtherError(Arc::new(flaw)))
}

fn other_name(expected: &ServerName<'_>, presented: Vec<String>) -> CertificateError {
    CertificateError::NotValidForNameContext {
        expected: expected.to_owned(),
        presented,
    }
}

/// An error of webpki, by rustls' names where the alert for the peer depends on them.
fn certificate_error(error: webpki::Error) -> CertificateError {
    use webpki::Error as Web;
    match error {
        Web::BadDer | Web::BadDerTime | Web::TrailingData(_) => CertificateError::BadEncoding,
        Web::CertNotValidYet { time, not_before } => {
            CertificateError::NotValidYetContext { time, not_before }
        }
        Web::CertExpired { time, not_after } => {
            CertificateError::ExpiredContext { time, not_after }
        }
        Web::InvalidCertValidity => CertificateError::Expired,
        // One that is no authority, or signs in a way that nobody should trust, is as good as
        // none.
        Web::UnknownIssuer
        | Web::EndEntityUsedAsCa
        | Web::UnsupportedSignatureAlgorithmContext(_)
        | Web::UnsupportedSignatureAlgorithmForPublicKeyContext(_) => {
            CertificateError::UnknownIssuer
        }
        Web::InvalidSignatureForPublicKey => CertificateError::BadSignature,
        Web::CertNotValidForName(context) => CertificateError::NotValidForNameContext {
            expected: context.expected,
            presented: context.presented,
        },
        Web::RequiredEkuNotFoundContext(_) | Web::EmptyEkuExtension => {
            CertificateError::InvalidPurpose
        }
        Web::UnsupportedCriticalExtension => flaw(Flaw::CriticalExtension),
        Web::PathLenConstraintViolated => flaw(Flaw::TooManyIntermediates),
        other => CertificateError::Other(OtherError(Arc::new(other))),
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let (trust, name) = match &self.accepted {
            Accepted::Anyone => return Ok(ServerCertVerified::assertion()),
            Accepted::Proven(trust, own_name) => (trust, Some(own_name.as_ref().unwrap_or(name))),
            Accepted::Trusted(trust) => (trust, None),
        };
        trust.verify(
            certificate,
            intermediates,
            name,
            KeyUsage::server_auth(),
            now,
        )?;
        Ok(ServerCertVerified::assertion())
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

/// Checks clients.
#[derive(Debug)]
pub(super) struct Clients {
    trust: Trust,
    /// The names of the authorities, which clients are told.
    hints: Vec<DistinguishedName>,
    required: bool,
    rules: Vec<SubjectRule>,
}

impl Clients {
    /// `required`: without a certificate there is no connection.
    pub(super) fn new(trust: Trust, required: bool, rules: Vec<SubjectRule>) -> Self {
        Self {
            hints: trust.roots.subjects(),
            trust,
            required,
            rules,
        }
    }
}

impl ClientCertVerifier for Clients {
    fn client_auth_mandatory(&self) -> bool {
        self.required
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let usage = KeyUsage::client_auth();
        self.trust
            .verify(certificate, intermediates, None, usage, now)?;
        let allows = |rule: &SubjectRule| rule.allows(certificate, intermediates);
        match self.rules.iter().all(allows) {
            true => Ok(ClientCertVerified::assertion()),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.trust.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.trust.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.trust.algorithms.supported_schemes()
    }
}
