//! Signatures of policies: an agent does what its server wrote, whoever kept it on the way.
//!
//! A policy travels packed by gzip. Its signature is in the extra field of gzip's header (RFC 1952,
//! 2.3.1.1), so that it goes wherever the file goes, and whoever unpacks the file reads it as before. It
//! covers the packed bytes, which nobody unpacks before they are known to be the server's, the node
//! that they are for, and a number that grows with each policy of a server: neither the policy of
//! another node nor one of yesterday is taken for it.

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{PrivateKeyDer, SubjectPublicKeyInfoDer};
use thiserror::Error;

use super::digest::{Digest, Digester};

/// Bytes of a signature of Ed25519.
const SIGNATURE: usize = 64;
/// Bytes of gzip's header without extra fields, and where its flags are.
const HEADER: usize = 10;
const FLAGS: usize = 3;
/// The flag of extra fields, which must be the only one.
const EXTRA: u8 = 1 << 2;
/// The name of the field, and the bytes that follow it: a number and a signature.
const FIELD: [u8; 2] = *b"HP";
const FIELD_BYTES: u16 = 8 + SIGNATURE as u16;
/// Bytes of all extra fields: the one field with its name and its length.
const EXTRA_BYTES: u16 = 4 + FIELD_BYTES;
/// Bytes before what is packed, with the length of the extra fields.
const SIGNED_HEADER: usize = HEADER + 2 + EXTRA_BYTES as usize;
/// What is before a key of Ed25519 in a SubjectPublicKeyInfo (RFC 8410, 4).
const SPKI: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// A key for policies cannot be read.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("reading a key for policies: {problem}; expected PEM of {expected}")]
pub struct PolicyKeyError {
    problem: String,
    expected: &'static str,
}

/// Why a policy is not the server's.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum VerificationError {
    /// Nobody signed it.
    #[error("it is not signed; expected the signature of the server's key for policies")]
    Unsigned,
    /// It was altered, is another node's, or another key signed it.
    #[error(
        "its signature is not that of the server's key for policies, or it was altered, or it is \
         of another node"
    )]
    Wrong,
}

/// When a policy was made, by the server's count: the number grows with each policy, whatever
/// the server's clock does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct IssueNumber(u64);

impl IssueNumber {
    /// The first of those of a start of the server, in seconds since 1970.
    pub fn of_start(seconds: u32) -> Self {
        Self(u64::from(seconds) << 32)
    }

    /// The one after it.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl std::fmt::Display for IssueNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.0 >> 32, self.0 & u64::from(u32::MAX))
    }
}

/// The key that signs policies.
#[derive(Debug)]
pub struct PolicySigner(Ed25519KeyPair);

/// The key by which policies are known as a server's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyKey([u8; 32]);

/// A signature with what it covers beside the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicySignature {
    number: IssueNumber,
    bytes: [u8; SIGNATURE],
}

impl PolicySigner {
    /// Reads a key of Ed25519 in PEM: PKCS #8.
    ///
    /// # Errors
    /// It is no such key.
    pub fn from_pem(pem: &[u8]) -> Result<Self, PolicyKeyError> {
        let wrong = |problem: String| PolicyKeyError {
            problem,
            expected: "a private key of Ed25519, PKCS #8",
        };
        let key = PrivateKeyDer::from_pem_slice(pem).map_err(|error| wrong(error.to_string()))?;
        let pair = Ed25519KeyPair::from_pkcs8(key.secret_der());
        pair.map(Self).map_err(|error| wrong(error.to_string()))
    }

    /// The key that others check its signatures by.
    pub fn key(&self) -> PolicyKey {
        // A key of Ed25519 has 32 bytes.
        let key = self.0.public_key().as_ref().first_chunk();
        PolicyKey(key.copied().unwrap_or_default())
    }

    /// Signs the packed policy of a node.
    pub fn sign(&self, node: &str, number: IssueNumber, packed: &[u8]) -> PolicySignature {
        let (header, rest) = packed.split_at(packed.len().min(HEADER));
        let signed = self.0.sign(&signed_digest(node, number, header, rest));
        let bytes = signed.as_ref().first_chunk().copied();
        let bytes = bytes.unwrap_or([0; SIGNATURE]);
        PolicySignature { number, bytes }
    }
}

impl PolicySignature {
    /// A packed policy with its signature; none if its header has what this server does not write.
    pub fn attach(&self, packed: &[u8]) -> Option<Vec<u8>> {
        let (header, rest) = packed.split_at_checked(HEADER)?;
        if header[FLAGS] != 0 {
            return None;
        }
        let mut file = Vec::with_capacity(SIGNED_HEADER + rest.len());
        file.extend_from_slice(header);
        file[FLAGS] = EXTRA;
        file.extend_from_slice(&EXTRA_BYTES.to_le_bytes());
        file.extend_from_slice(&FIELD);
        file.extend_from_slice(&FIELD_BYTES.to_le_bytes());
        file.extend_from_slice(&self.number.0.to_le_bytes());
        file.extend_from_slice(&self.bytes);
        file.extend_from_slice(rest);
        Some(file)
    }

    /// The signature of a packed policy, and what is packed.
    fn of(file: &[u8]) -> Option<(Self, [u8; HEADER], &[u8])> {
        let (header, rest) = file.split_first_chunk::<HEADER>()?;
        let (lengths, rest) = rest.split_first_chunk::<6>()?;
        let (number, rest) = rest.split_first_chunk::<8>()?;
        let (bytes, rest) = rest.split_first_chunk::<SIGNATURE>()?;
        let [a, b] = EXTRA_BYTES.to_le_bytes();
        let [c, d] = FIELD_BYTES.to_le_bytes();
        if header[FLAGS] != EXTRA || *lengths != [a, b, FIELD[0], FIELD[1], c, d] {
            return None;
        }
        let mut header = *header;
        header[FLAGS] = 0;
        let number = IssueNumber(u64::from_le_bytes(*number));
        let bytes = *bytes;
        Some((Self { number, bytes }, header, rest))
    }
}

impl PolicyKey {
    /// Reads a public key of Ed25519 in PEM: SubjectPublicKeyInfo.
    ///
    /// # Errors
    /// It is no such key.
    pub fn from_pem(pem: &[u8]) -> Result<Self, PolicyKeyError> {
        let wrong = |problem: String| PolicyKeyError {
            problem,
            expected: "a public key of Ed25519, as the server has it in policy.pem",
        };
        let key = SubjectPublicKeyInfoDer::from_pem_slice(pem);
        let key = key.map_err(|error| wrong(error.to_string()))?;
        let key = key.as_ref().strip_prefix(&SPKI).map(<[u8; 32]>::try_from);
        match key {
            Some(Ok(key)) => Ok(Self(key)),
            _ => Err(wrong("it is of another kind".into())),
        }
    }

    /// The key in PEM.
    pub fn to_pem(&self) -> String {
        let text = STANDARD.encode([&SPKI[..], &self.0].concat());
        format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n")
    }

    /// Checks that a packed policy is what the server wrote for this node; gives its number.
    ///
    /// # Errors
    /// It has no signature, or another one.
    pub fn verify(&self, node: &str, file: &[u8]) -> Result<IssueNumber, VerificationError> {
        let (signature, header, rest) =
            PolicySignature::of(file).ok_or(VerificationError::Unsigned)?;
        let digest = signed_digest(node, signature.number, &header, rest);
        UnparsedPublicKey::new(&ED25519, self.0)
            .verify(&digest, &signature.bytes)
            .map_err(|_| VerificationError::Wrong)?;
        Ok(signature.number)
    }
}

fn signed_digest(node: &str, number: IssueNumber, header: &[u8], rest: &[u8]) -> Digest {
    let mut all = Digester::new("signed policy");
    all.text(node);
    all.number(number.0);
    // They follow each other, and end where the file ends.
    all.rest(header);
    all.rest(rest);
    all.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;
    use crate::server::{pack, unpack};

    fn signer() -> PolicySigner {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        PolicySigner::from_pem(key.serialize_pem().as_bytes()).unwrap()
    }

    #[test]
    fn a_signed_policy_is_read_as_before_and_is_the_nodes_alone() {
        let signer = signer();
        let key = PolicyKey::from_pem(signer.key().to_pem().as_bytes()).unwrap();
        assert_eq!(key, signer.key());
        let packed = pack(br#"{"nodeId": "a"}"#);
        let number = IssueNumber::of_start(7).next();
        let file = signer.sign("a", number, &packed).attach(&packed).unwrap();
        assert_eq!(key.verify("a", &file), Ok(number));
        assert_eq!(number.to_string(), "7.1");
        assert_eq!(unpack(&file).unwrap(), br#"{"nodeId": "a"}"#);
        let mut text = String::new();
        let mut plain = flate2::read::GzDecoder::new(&file[..]);
        plain.read_to_string(&mut text).unwrap();
        assert_eq!(text, r#"{"nodeId": "a"}"#);
        // Another node, another key, none.
        assert_eq!(key.verify("b", &file), Err(VerificationError::Wrong));
        let other = self::signer().key();
        assert_eq!(other.verify("a", &file), Err(VerificationError::Wrong));
        assert_eq!(key.verify("a", &packed), Err(VerificationError::Unsigned));
        assert_eq!(key.verify("a", b""), Err(VerificationError::Unsigned));
        // What is signed already gets no second signature.
        assert_eq!(signer.sign("a", number, &file).attach(&file), None);
    }

    #[test]
    fn each_bit_of_a_signed_policy_counts() {
        let signer = signer();
        let (key, packed) = (signer.key(), pack(b"{}"));
        let number = IssueNumber::of_start(1);
        let file = signer.sign("a", number, &packed).attach(&packed).unwrap();
        for at in 0..file.len() {
            for bit in 0..8 {
                let mut altered = file.clone();
                altered[at] ^= 1 << bit;
                assert!(key.verify("a", &altered).is_err(), "byte {at}, bit {bit}");
            }
            assert!(key.verify("a", &file[..at]).is_err(), "cut at {at}");
        }
        let longer = [&file[..], b"{}"].concat();
        assert_eq!(key.verify("a", &longer), Err(VerificationError::Wrong));
    }

    #[test]
    fn keys_of_another_kind_are_refused() {
        let other = rcgen::KeyPair::generate().unwrap();
        let told = PolicyKey::from_pem(other.public_key_pem().as_bytes()).unwrap_err();
        assert!(told.to_string().contains("of another kind"), "{told}");
        assert!(PolicySigner::from_pem(other.serialize_pem().as_bytes()).is_err());
        assert!(PolicyKey::from_pem(b"").is_err());
        let ed25519 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let key = PolicyKey::from_pem(ed25519.public_key_pem().as_bytes()).unwrap();
        assert_eq!(key.0, ed25519.public_key_raw());
    }

    #[test]
    fn numbers_grow_with_each_start_of_the_server() {
        let first = IssueNumber::of_start(7);
        assert!(first < first.next());
        assert!(first.next().next() < IssueNumber::of_start(8));
    }
}
