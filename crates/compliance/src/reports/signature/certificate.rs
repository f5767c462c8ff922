//! The certificate that a node is known by.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA384_ASN1, ECDSA_P256_SHA512_ASN1, ECDSA_P384_SHA256_ASN1,
    ECDSA_P384_SHA384_ASN1, ECDSA_P384_SHA512_ASN1, ED25519 as VERIFY_ED25519,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    UnparsedPublicKey, VerificationAlgorithm,
};
use der::Tag;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use thiserror::Error;

use super::SignatureError;
use super::asn1::{EC, ED25519, Elements, P256, P384, RSA, RSA_PSS, UID, context};
use super::cms::{Digest, SignedData};

/// A certificate cannot be used.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error(
    "reading a node's certificate: {problem}; expected X.509 in PEM with a key of RSA, P-256, P-384 or Ed25519"
)]
pub struct CertificateError {
    problem: String,
}

/// What of a node's certificate its signatures are checked with; some 700 bytes with RSA-4096.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeCertificate {
    issuer: Box<[u8]>,
    serial: Box<[u8]>,
    uid: Option<Box<str>>,
    algorithm: KeyAlgorithm,
    key: Box<[u8]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyAlgorithm {
    Rsa,
    P256,
    P384,
    Ed25519,
}

impl NodeCertificate {
    /// Reads a certificate in PEM. Nobody needs to have signed it.
    ///
    /// # Errors
    /// It is no certificate or its key is of another kind.
    pub fn from_pem(pem: &[u8]) -> Result<Self, CertificateError> {
        let der = CertificateDer::from_pem_slice(pem).map_err(problem)?;
        Self::from_der(&der)
    }

    /// Reads a certificate in DER.
    ///
    /// # Errors
    /// As [`Self::from_pem`].
    pub fn from_der(der: &[u8]) -> Result<Self, CertificateError> {
        Self::read(der).map_err(problem)?
    }

    fn read(der: &[u8]) -> der::Result<Result<Self, CertificateError>> {
        let mut certificate = Elements::new(der)?.inside(Tag::Sequence)?;
        let mut body = certificate.inside(Tag::Sequence)?;
        body.optional(context(0))?;
        let serial = body.value(Tag::Integer)?;
        body.value(Tag::Sequence)?;
        let issuer = body.whole()?;
        body.value(Tag::Sequence)?;
        let uid = uid(body.inside(Tag::Sequence)?)?;
        let mut info = body.inside(Tag::Sequence)?;
        let mut kind = info.inside(Tag::Sequence)?;
        let algorithm = match kind.oid()? {
            RSA => KeyAlgorithm::Rsa,
            ED25519 => KeyAlgorithm::Ed25519,
            EC => match kind.oid()? {
                P256 => KeyAlgorithm::P256,
                P384 => KeyAlgorithm::P384,
                curve => return Ok(Err(problem(format!("its key is of the curve {curve}")))),
            },
            other => return Ok(Err(problem(format!("its key is of the kind {other}")))),
        };
        // The first byte counts bits that are not used: none.
        let [0, key @ ..] = info.value(Tag::BitString)? else {
            return Ok(Err(problem("its key is cut off")));
        };
        Ok(Ok(Self {
            issuer: issuer.into(),
            serial: serial.into(),
            uid,
            algorithm,
            key: key.into(),
        }))
    }

    /// The identifier of the node, by the subject's UID.
    pub fn uid(&self) -> Option<&str> {
        self.uid.as_deref()
    }

    /// Is it a certificate of the same key?
    pub fn has_key_of(&self, other: &Self) -> bool {
        self.algorithm == other.algorithm && self.key == other.key
    }

    /// The algorithm that this key signs inventories with, by its name in a signature's file.
    pub(crate) fn inventory_algorithm(&self) -> &'static str {
        match self.algorithm {
            KeyAlgorithm::Rsa => "sha512",
            KeyAlgorithm::P256 => "sha256",
            KeyAlgorithm::P384 => "sha384",
            KeyAlgorithm::Ed25519 => "ed25519",
        }
    }

    /// Did this key sign these bytes, with [`Self::inventory_algorithm`]?
    pub(crate) fn signed_inventory(&self, bytes: &[u8], signature: &[u8]) -> bool {
        let algorithm: &'static dyn VerificationAlgorithm = match self.algorithm {
            KeyAlgorithm::Rsa => &RSA_PKCS1_2048_8192_SHA512,
            KeyAlgorithm::P256 => &ECDSA_P256_SHA256_ASN1,
            KeyAlgorithm::P384 => &ECDSA_P384_SHA384_ASN1,
            KeyAlgorithm::Ed25519 => &VERIFY_ED25519,
        };
        let key = UnparsedPublicKey::new(algorithm, &self.key);
        key.verify(bytes, signature).is_ok()
    }

    /// The last four bytes of an RSA key's modulus, by which agents name the key.
    pub(crate) fn rsa_key_id(&self) -> Option<[u8; 4]> {
        if self.algorithm != KeyAlgorithm::Rsa {
            return None;
        }
        let mut key = Elements::new(&self.key).ok()?.inside(Tag::Sequence).ok()?;
        key.value(Tag::Integer).ok()?.last_chunk().copied()
    }

    /// The name of the issuer, encoded, and the number.
    pub(super) fn issuer_and_serial(&self) -> (&[u8], &[u8]) {
        (&self.issuer, &self.serial)
    }

    /// Is it the certificate that a message names?
    pub(super) fn is(&self, issuer: &[u8], serial: &[u8]) -> bool {
        *self.issuer == *issuer && *self.serial == *serial
    }

    /// Did this key sign these bytes?
    pub(super) fn verify(
        &self,
        signed: &SignedData<'_>,
        bytes: &[u8],
    ) -> Result<bool, SignatureError> {
        if signed.algorithm == RSA_PSS {
            return Err(SignatureError::Unsupported {
                what: "padding",
                found: "PSS".to_owned(),
                expected: "PKCS #1",
            });
        }
        let algorithm: &'static dyn VerificationAlgorithm = match (self.algorithm, signed.digest) {
            (KeyAlgorithm::Rsa, Digest::Sha256) => &RSA_PKCS1_2048_8192_SHA256,
            (KeyAlgorithm::Rsa, Digest::Sha384) => &RSA_PKCS1_2048_8192_SHA384,
            (KeyAlgorithm::Rsa, Digest::Sha512) => &RSA_PKCS1_2048_8192_SHA512,
            (KeyAlgorithm::P256, Digest::Sha256) => &ECDSA_P256_SHA256_ASN1,
            (KeyAlgorithm::P256, Digest::Sha384) => &ECDSA_P256_SHA384_ASN1,
            (KeyAlgorithm::P256, Digest::Sha512) => &ECDSA_P256_SHA512_ASN1,
            (KeyAlgorithm::P384, Digest::Sha256) => &ECDSA_P384_SHA256_ASN1,
            (KeyAlgorithm::P384, Digest::Sha384) => &ECDSA_P384_SHA384_ASN1,
            (KeyAlgorithm::P384, Digest::Sha512) => &ECDSA_P384_SHA512_ASN1,
            (KeyAlgorithm::Ed25519, _) => &VERIFY_ED25519,
        };
        let key = UnparsedPublicKey::new(algorithm, &self.key);
        Ok(key.verify(bytes, signed.signature).is_ok())
    }
}

fn uid(mut names: Elements<'_>) -> der::Result<Option<Box<str>>> {
    while !names.is_finished() {
        let mut set = names.inside(Tag::Set)?;
        while !set.is_finished() {
            let mut name = set.inside(Tag::Sequence)?;
            if name.oid()? == UID {
                let value = der::asn1::AnyRef::try_from(name.whole()?)?.value();
                return Ok(str::from_utf8(value).ok().map(Box::from));
            }
        }
    }
    Ok(None)
}

fn problem(problem: impl ToString) -> CertificateError {
    let problem = problem.to_string();
    CertificateError { problem }
}
