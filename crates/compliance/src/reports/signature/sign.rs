//! Signing as an agent does.

use aws_lc_rs::digest;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RSA_PKCS1_SHA256,
    RSA_PKCS1_SHA512, RsaKeyPair,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use der::Encode;
use der::Tag;
use der::asn1::{GeneralizedTime, Null, UtcTime};
use jiff::Timestamp;
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use thiserror::Error;

use super::asn1::{
    CONTENT_TYPE, DATA, ECDSA_SHA256, ED25519, MESSAGE_DIGEST, RSA, SHA256, SHA512, SIGNED_DATA,
    SIGNING_TIME, context, element,
};
use super::{NodeCertificate, canonical};

/// A private key cannot be used.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error(
    "reading a private key: {problem}; expected PEM of RSA, P-256 or Ed25519 without a passphrase"
)]
pub struct KeyError {
    problem: String,
}

/// A message could not be signed.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("signing a report: {problem}")]
pub struct SigningError {
    problem: String,
}

/// A node's private key.
#[derive(Debug)]
pub struct SigningKey(Pair);

#[derive(Debug)]
enum Pair {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl SigningKey {
    /// Reads a private key in PEM: PKCS #8, PKCS #1 or SEC 1.
    ///
    /// # Errors
    /// It is none of these, has a passphrase, or is of another kind.
    pub fn from_pem(pem: &[u8]) -> Result<Self, KeyError> {
        let key = PrivateKeyDer::from_pem_slice(pem).map_err(|error| KeyError {
            problem: error.to_string(),
        })?;
        let der = key.secret_der();
        if let Ok(pair) = Ed25519KeyPair::from_pkcs8(der) {
            return Ok(Self(Pair::Ed25519(pair)));
        }
        let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
        if let Ok(pair) = EcdsaKeyPair::from_pkcs8(algorithm, der)
            .or_else(|_| EcdsaKeyPair::from_private_key_der(algorithm, der))
        {
            return Ok(Self(Pair::P256(pair)));
        }
        RsaKeyPair::from_pkcs8(der)
            .or_else(|_| RsaKeyPair::from_der(der))
            .map(|pair| Self(Pair::Rsa(pair)))
            .map_err(|error| KeyError {
                problem: error.to_string(),
            })
    }

    /// The digest, its OID encoded, and the encoded algorithm of signatures.
    fn algorithms(&self) -> der::Result<(&'static digest::Algorithm, Vec<u8>, Vec<u8>)> {
        let null = Null.to_der()?;
        let (digest, digest_oid, signature) = match self.0 {
            Pair::Rsa(_) => (&digest::SHA256, SHA256, vec![RSA.to_der()?, null]),
            Pair::P256(_) => (&digest::SHA256, SHA256, vec![ECDSA_SHA256.to_der()?]),
            // RFC 8419, 2.3 and 3.1.
            Pair::Ed25519(_) => (&digest::SHA512, SHA512, vec![ED25519.to_der()?]),
        };
        let digest_oid = element(Tag::Sequence, &[&digest_oid.to_der()?])?;
        let signature = element(Tag::Sequence, &[&signature.concat()])?;
        Ok((digest, digest_oid, signature))
    }

    /// Signs an inventory: its algorithm's name, and the signature. RSA signs as Rudder's agents
    /// do, PKCS #1 with SHA-512.
    pub(crate) fn sign_inventory(
        &self,
        bytes: &[u8],
    ) -> Result<(&'static str, Vec<u8>), SigningError> {
        let (algorithm, signature) = match &self.0 {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                let random = SystemRandom::new();
                let signed = pair.sign(&RSA_PKCS1_SHA512, &random, bytes, &mut signature);
                ("sha512", signed.map(|()| signature))
            }
            Pair::P256(_) => ("sha256", self.sign(bytes)),
            Pair::Ed25519(_) => ("ed25519", self.sign(bytes)),
        };
        let signature = signature.map_err(|_| SigningError {
            problem: "the key refuses".to_owned(),
        })?;
        Ok((algorithm, signature))
    }

    fn sign(&self, bytes: &[u8]) -> Result<Vec<u8>, aws_lc_rs::error::Unspecified> {
        let random = SystemRandom::new();
        match &self.0 {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, bytes, &mut signature)?;
                Ok(signature)
            }
            Pair::P256(pair) => Ok(pair.sign(&random, bytes)?.as_ref().to_vec()),
            Pair::Ed25519(pair) => Ok(pair.sign(bytes).as_ref().to_vec()),
        }
    }
}

/// Signs text as `openssl smime -sign -text -nocerts` does: the text can be read, the signature
/// stands beside it. `time` is told as the time of signing, in whole seconds.
///
/// # Errors
/// The key cannot sign, or the time cannot be written.
pub fn sign(
    text: &[u8],
    key: &SigningKey,
    certificate: &NodeCertificate,
    time: Timestamp,
) -> Result<Vec<u8>, SigningError> {
    let mut content = b"Content-Type: text/plain\r\n\r\n".to_vec();
    content.extend_from_slice(&canonical(text));
    let signature =
        signed_data(&content, key, certificate, time).map_err(|error| SigningError {
            problem: error.to_string(),
        })??;
    // A text cannot hold its own digest.
    let digest = digest::digest(&digest::SHA256, &content);
    let boundary: String = digest
        .as_ref()
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02X}"))
        .collect();
    let mut message = format!(
        "MIME-Version: 1.0\nContent-Type: multipart/signed; \
         protocol=\"application/x-pkcs7-signature\"; micalg=\"{}\"; boundary=\"----{boundary}\"\n\n\
         This is an S/MIME signed message\n\n------{boundary}\n",
        if matches!(key.0, Pair::Ed25519(_)) {
            "sha-512"
        } else {
            "sha-256"
        },
    )
    .into_bytes();
    message.extend_from_slice(&content);
    message.extend_from_slice(
        format!(
            "\n------{boundary}\nContent-Type: application/x-pkcs7-signature; \
             name=\"smime.p7s\"\nContent-Transfer-Encoding: base64\n\
             Content-Disposition: attachment; filename=\"smime.p7s\"\n\n"
        )
        .as_bytes(),
    );
    for line in STANDARD.encode(signature).as_bytes().chunks(64) {
        message.extend_from_slice(line);
        message.push(b'\n');
    }
    message.extend_from_slice(format!("\n------{boundary}--\n\n").as_bytes());
    Ok(message)
}

/// SignedData of RFC 5652, 5.1, without the content and without certificates.
fn signed_data(
    content: &[u8],
    key: &SigningKey,
    certificate: &NodeCertificate,
    time: Timestamp,
) -> der::Result<Result<Vec<u8>, SigningError>> {
    let (digest, digest_algorithm, signature_algorithm) = key.algorithms()?;
    let digest = digest::digest(digest, content);
    let mut attributes = [
        attribute(CONTENT_TYPE, &DATA.to_der()?)?,
        attribute(SIGNING_TIME, &encoded_time(time)?)?,
        attribute(
            MESSAGE_DIGEST,
            &element(Tag::OctetString, &[digest.as_ref()])?,
        )?,
    ];
    // The elements of a set are sorted by their encoding.
    attributes.sort();
    let attributes = attributes.concat();
    let Ok(signature) = key.sign(&element(Tag::Set, &[&attributes])?) else {
        let problem = "the key refuses".to_owned();
        return Ok(Err(SigningError { problem }));
    };
    let (issuer, serial) = certificate.issuer_and_serial();
    let version = 1_u8.to_der()?;
    let serial = element(Tag::Integer, &[serial])?;
    let signer = element(
        Tag::Sequence,
        &[
            &version,
            &element(Tag::Sequence, &[issuer, &serial])?,
            &digest_algorithm,
            &element(context(0), &[&attributes])?,
            &signature_algorithm,
            &element(Tag::OctetString, &[&signature])?,
        ],
    )?;
    let data = element(
        Tag::Sequence,
        &[
            &version,
            &element(Tag::Set, &[&digest_algorithm])?,
            &element(Tag::Sequence, &[&DATA.to_der()?])?,
            &element(Tag::Set, &[&signer])?,
        ],
    )?;
    let data = element(context(0), &[&data])?;
    element(Tag::Sequence, &[&SIGNED_DATA.to_der()?, &data]).map(Ok)
}

fn attribute(oid: der::asn1::ObjectIdentifier, value: &[u8]) -> der::Result<Vec<u8>> {
    let values = element(Tag::Set, &[value])?;
    element(Tag::Sequence, &[&oid.to_der()?, &values])
}

/// RFC 5652, 11.3: two digits of the year until 2049.
fn encoded_time(time: Timestamp) -> der::Result<Vec<u8>> {
    let seconds = u64::try_from(time.as_second()).unwrap_or(0);
    let since_1970 = std::time::Duration::from_secs(seconds);
    match UtcTime::from_unix_duration(since_1970) {
        Ok(time) => time.to_der(),
        Err(_) => GeneralizedTime::from_unix_duration(since_1970)?.to_der(),
    }
}
