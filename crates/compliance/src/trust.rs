//! TLS as Rudder's agents and servers use it: certificates that nobody signed. A server takes
//! any client that has the key of the certificate it shows, and knows nodes by their keys; a
//! client knows its server by the key that it saw first, or was told of.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName as Subject, Error,
    ServerConfig, SignatureScheme,
};

use crate::private;
use crate::reports::signature::NodeCertificate;

/// Why keys and certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// A file cannot be read or written.
    #[error("{doing} {path}: {cause}")]
    File {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: String,
        /// What the system said, or what is wrong with its content.
        cause: String,
    },
    /// A key or certificate cannot be made.
    #[error("make a key and a certificate: {0}")]
    Make(String),
    /// TLS cannot be set up.
    #[error("set up TLS: {0}")]
    Tls(String),
}

impl TrustError {
    pub(crate) fn file(doing: &'static str, path: &Path, cause: impl ToString) -> Self {
        Self::File {
            doing,
            path: path.display().to_string(),
            cause: cause.to_string(),
        }
    }
}

/// A key and a certificate of it that nobody else signed, PEM.
#[derive(Clone)]
pub struct Identity {
    /// The private key, PKCS #8.
    pub key: String,
    /// The certificate.
    pub certificate: String,
}

impl Identity {
    /// Makes a new key of P-256 and its certificate: of a node with this identity (the subject's
    /// UID), or of a server with these names.
    ///
    /// # Errors
    /// A name cannot be part of a certificate.
    pub fn make(uid: Option<&str>, names: &[String]) -> Result<Self, TrustError> {
        let make = || {
            let key = KeyPair::generate()?;
            let mut params = CertificateParams::new(names)?;
            params.distinguished_name = DistinguishedName::new();
            match uid {
                // Object identifier of UID, RFC 4519.
                Some(uid) => params.distinguished_name.push(
                    DnType::CustomDnType(vec![0, 9, 2342, 19_200_300, 100, 1, 1]),
                    uid,
                ),
                None => params
                    .distinguished_name
                    .push(DnType::CommonName, "headroom compliance server"),
            }
            let certificate = params.self_signed(&key)?;
            Ok(Self {
                key: key.serialize_pem(),
                certificate: certificate.pem(),
            })
        };
        make().map_err(|error: rcgen::Error| TrustError::Make(error.to_string()))
    }

    fn parts(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TrustError> {
        let wrong = |error: rustls::pki_types::pem::Error| TrustError::Tls(error.to_string());
        let certificate =
            CertificateDer::from_pem_slice(self.certificate.as_bytes()).map_err(wrong)?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(wrong)?;
        Ok((vec![certificate], key))
    }
}

/// TLS 1.2 and 1.3 for a server. Clients may show a certificate; which, is for the service to
/// judge.
///
/// # Errors
/// The identity cannot be used.
pub fn server(identity: &Identity) -> Result<Arc<ServerConfig>, TrustError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let (chain, key) = identity.parts()?;
    let algorithms = provider.signature_verification_algorithms;
    let clients = Arc::new(AnyClient { algorithms });
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map(|config| config.with_client_cert_verifier(clients))
        .and_then(|config| config.with_single_cert(chain, key))
        .map_err(|error| TrustError::Tls(error.to_string()))?;
    Ok(Arc::new(config))
}

/// TLS for a client that knows its server by `pin`, and shows its identity if it has one.
///
/// # Errors
/// The identity cannot be used.
pub fn client(
    pin: Arc<ServerPin>,
    identity: Option<&Identity>,
) -> Result<Arc<ClientConfig>, TrustError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let wrong = |error: Error| TrustError::Tls(error.to_string());
    let verifier = Arc::new(Pinned {
        pin,
        algorithms: provider.signature_verification_algorithms,
    });
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(wrong)?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let config = match identity {
        None => config.with_no_client_auth(),
        Some(identity) => {
            let (chain, key) = identity.parts()?;
            config.with_client_auth_cert(chain, key).map_err(wrong)?
        }
    };
    Ok(Arc::new(config))
}

/// The certificate by whose key a server is known; that of the first connection if none is told.
#[derive(Debug, Default)]
pub struct ServerPin(Mutex<Option<Vec<u8>>>);

impl ServerPin {
    /// The server has the key of this certificate, PEM.
    ///
    /// # Errors
    /// It is no certificate.
    pub fn of_pem(pem: &[u8]) -> Result<Self, TrustError> {
        let der = CertificateDer::from_pem_slice(pem);
        let der = der.map_err(|error| TrustError::Tls(error.to_string()))?;
        Ok(Self(Mutex::new(Some(der.to_vec()))))
    }

    /// The certificate in PEM, once it is known.
    pub fn pem(&self) -> Option<String> {
        use base64::Engine as _;
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = base64::engine::general_purpose::STANDARD.encode(known.as_ref()?);
        let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
        for line in text.as_bytes().chunks(64) {
            pem.push_str(&String::from_utf8_lossy(line));
            pem.push('\n');
        }
        pem.push_str("-----END CERTIFICATE-----\n");
        Some(pem)
    }

    fn check(&self, shown: &[u8]) -> Result<(), Error> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = &*known else {
            *known = Some(shown.to_vec());
            return Ok(());
        };
        if known == shown {
            return Ok(());
        }
        let key = |der: &[u8]| NodeCertificate::from_der(der).ok();
        let same = key(known).zip(key(shown));
        match same.is_some_and(|(known, shown)| known.has_key_of(&shown)) {
            true => Ok(()),
            false => Err(Error::InvalidCertificate(
                CertificateError::ApplicationVerificationFailure,
            )),
        }
    }
}

/// Methods of those who judge a peer: it must have the key of the certificate that it shows.
macro_rules! with_its_key {
    () => {
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
    };
}

/// Takes any client.
#[derive(Debug)]
struct AnyClient {
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for AnyClient {
    with_its_key!();

    fn root_hint_subjects(&self) -> &[Subject] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }
}

/// Takes the server whose key is known.
#[derive(Debug)]
struct Pinned {
    pin: Arc<ServerPin>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Pinned {
    with_its_key!();

    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.pin.check(certificate)?;
        Ok(ServerCertVerified::assertion())
    }
}

fn random<const N: usize>() -> Result<[u8; N], TrustError> {
    let mut bytes = [0; N];
    aws_lc_rs::rand::fill(&mut bytes)
        .map_err(|_| TrustError::Make("there is no randomness".into()))?;
    Ok(bytes)
}

/// A new token: 192 random bits in hexadecimal.
///
/// # Errors
/// The system has no randomness.
pub(crate) fn random_token() -> Result<String, TrustError> {
    let bytes = random::<24>()?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A new identity, a random uuid.
///
/// # Errors
/// The system has no randomness.
pub(crate) fn random_id() -> Result<String, TrustError> {
    let bytes = random::<16>()?;
    let id = uuid::Builder::from_random_bytes(bytes).into_uuid();
    Ok(id.to_string())
}

/// Writes a file that only its owner may read, whole or not at all.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write_secret(path: &Path, content: &[u8]) -> Result<(), TrustError> {
    private::replace(path, &[content]).map_err(|error| TrustError::file("write", path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_by_the_key_that_was_seen_first() {
        let der = |identity: &Identity| identity.parts().unwrap().0.remove(0).to_vec();
        let first = Identity::make(None, &["localhost".into()]).unwrap();
        let other = Identity::make(None, &["localhost".into()]).unwrap();
        let pin = ServerPin::default();
        assert_eq!(pin.pem(), None);
        pin.check(&der(&first)).unwrap();
        assert!(pin.check(&der(&other)).is_err());
        pin.check(&der(&first)).unwrap();
        let again = ServerPin::of_pem(pin.pem().unwrap().as_bytes()).unwrap();
        again.check(&der(&first)).unwrap();
        assert!(again.check(&der(&other)).is_err());
        // Another certificate of the same key is the same server.
        let key = KeyPair::from_pem(&first.key).unwrap();
        let renewed = CertificateParams::new(["example.org".to_owned()]).unwrap();
        again
            .check(renewed.self_signed(&key).unwrap().der())
            .unwrap();
    }

    #[test]
    fn a_nodes_certificate_tells_its_identity() {
        let identity = Identity::make(Some("node-1"), &[]).unwrap();
        let certificate = NodeCertificate::from_pem(identity.certificate.as_bytes()).unwrap();
        assert_eq!(certificate.uid(), Some("node-1"));
    }
}
