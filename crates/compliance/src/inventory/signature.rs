//! The file beside an inventory that signs it.

use std::fmt::Write;

use thiserror::Error;

use super::NodeFacts;
use crate::reports::signature::{
    CertificateError, NodeCertificate, SigningError, SigningKey as PrivateKey,
};

/// Bytes of a signature file that are read.
const FILE_BYTES: usize = 16 << 10;
/// Bytes of a signature: RSA of 8,192 bits.
const SIGNATURE_BYTES: usize = 1_024;
const HEADER: &str = "rudder-signature-v1";
/// Algorithms of signatures.
const ALGORITHMS: [&str; 4] = ["sha512", "sha256", "sha384", "ed25519"];

/// Why an inventory's signature is refused.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum InventorySignatureError {
    /// The file is no signature that is accepted.
    #[error("reading an inventory's signature: {field} is {found:?}; expected {expected}")]
    Field {
        /// Which part of the file.
        field: &'static str,
        /// What it is, shortened.
        found: String,
        /// What is accepted.
        expected: &'static str,
    },
    /// The certificate cannot be read.
    #[error("checking an inventory: {0}")]
    Certificate(#[from] CertificateError),
    /// The certificate is of another node.
    #[error(
        "checking an inventory of node {node}: its certificate is of {found:?}; expected a \
         subject with UID={node}"
    )]
    OtherNode {
        /// The node by the inventory.
        node: String,
        /// The UID of the certificate, empty without one.
        found: String,
    },
    /// The inventory tells another key than the one that is known.
    #[error(
        "checking an inventory of node {node}: it tells another key than the node is known by; \
         if the node has a new key, reset its key's status"
    )]
    OtherKey {
        /// The node.
        node: String,
    },
    /// The signature is of another kind than the certificate's key makes.
    #[error(
        "checking an inventory: it is signed by {found:?}, the key of its certificate signs by \
         {expected}"
    )]
    Algorithm {
        /// What the signature's file says.
        found: String,
        /// What the key makes.
        expected: &'static str,
    },
    /// The signature is not that of this inventory and key.
    #[error(
        "checking an inventory: it was not signed with the node's key, or altered since; send it \
         again"
    )]
    Invalid,
}

/// What a signature file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InventorySignature {
    /// `sha512` for RSA (PKCS #1 v1.5), which Rudder's agents have; this project's also sign by
    /// ECDSA, `sha256` with P-256 and `sha384` with P-384, and by `ed25519`.
    pub algorithm: String,
    /// The signature over the XML.
    pub signature: Vec<u8>,
    /// Name of the node that signed, as it says.
    pub hostname: String,
    /// When its key was made, as it says.
    pub key_date: String,
    /// The end of the key's modulus in hexadecimal, as it says.
    pub key_id: String,
}

impl InventorySignature {
    /// Reads `key=value` lines. Unknown keys are left out; of a key twice, the first counts.
    ///
    /// # Errors
    /// Another header or algorithm, no signature in hexadecimal, more than 16 kB.
    pub fn parse(file: &[u8]) -> Result<Self, InventorySignatureError> {
        let field = |field, found: &str, expected| InventorySignatureError::Field {
            field,
            found: found.chars().take(64).collect(),
            expected,
        };
        if file.len() > FILE_BYTES {
            let found = format!("{} bytes long", file.len());
            return Err(field("the file", &found, "at most 16,384 bytes"));
        }
        let Ok(text) = str::from_utf8(file) else {
            return Err(field("the file", "not UTF-8", "lines of key=value"));
        };
        let value = |key: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once('='));
            let found = lines.find(|(name, _)| name.trim() == key);
            found.map_or("", |(_, value)| value.trim())
        };
        if !value("header").eq_ignore_ascii_case(HEADER) {
            return Err(field("header", value("header"), HEADER));
        }
        let algorithm = value("algorithm").to_ascii_lowercase();
        if !ALGORITHMS.contains(&&*algorithm) {
            let expected = "sha512 (RSA), sha256, sha384 or ed25519";
            return Err(field("algorithm", value("algorithm"), expected));
        }
        let signature = bytes_of_hex(value("digest")).ok_or_else(|| {
            let expected = "a signature of 1 to 1,024 bytes in hexadecimal";
            field("digest", value("digest"), expected)
        })?;
        Ok(Self {
            algorithm,
            signature,
            hostname: value("hostname").to_owned(),
            key_date: value("keydate").to_owned(),
            key_id: value("keyid").to_owned(),
        })
    }

    /// Signs an inventory's XML as an agent does.
    ///
    /// # Errors
    /// The key cannot sign.
    pub fn sign(
        xml: &[u8],
        key: &PrivateKey,
        certificate: &NodeCertificate,
        hostname: &str,
        key_date: &str,
    ) -> Result<Self, SigningError> {
        let key_id = certificate.rsa_key_id().unwrap_or_default();
        let (algorithm, signature) = key.sign_inventory(xml)?;
        Ok(Self {
            algorithm: algorithm.to_owned(),
            signature,
            hostname: hostname.to_owned(),
            key_date: key_date.to_owned(),
            key_id: format!("{:08X}", u32::from_be_bytes(key_id)),
        })
    }

    /// The file's text.
    pub fn to_file(&self) -> String {
        let mut hex = String::with_capacity(self.signature.len() * 2);
        for byte in &self.signature {
            let _ = write!(hex, "{byte:02x}");
        }
        format!(
            "header={HEADER}\nalgorithm={}\ndigest={hex}\nhostname={}\nkeydate={}\nkeyid={}\n",
            self.algorithm, self.hostname, self.key_date, self.key_id
        )
    }

    /// Checks an inventory against the key that its node is known by, or, of a node that is not
    /// known, against the key that it tells. Gives the certificate that the inventory tells.
    ///
    /// # Errors
    /// The certificate is of another node or key, or the signature is not its.
    pub fn verify(
        &self,
        xml: &[u8],
        facts: &NodeFacts,
        known: Option<&NodeCertificate>,
    ) -> Result<NodeCertificate, InventorySignatureError> {
        let node = &facts.node.id;
        let told = NodeCertificate::from_pem(facts.certificate.as_bytes())?;
        let uid = told.uid().unwrap_or_default();
        if !uid.trim().eq_ignore_ascii_case(node) {
            return Err(InventorySignatureError::OtherNode {
                node: node.clone(),
                found: uid.chars().take(64).collect(),
            });
        }
        if known.is_some_and(|known| !known.has_key_of(&told)) {
            let node = node.clone();
            return Err(InventorySignatureError::OtherKey { node });
        }
        let expected = told.inventory_algorithm();
        if self.algorithm != expected {
            let found = self.algorithm.clone();
            return Err(InventorySignatureError::Algorithm { found, expected });
        }
        if !told.signed_inventory(xml, &self.signature) {
            return Err(InventorySignatureError::Invalid);
        }
        Ok(told)
    }
}

fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.is_empty() || pairs.len() > SIGNATURE_BYTES || !rest.is_empty() {
        return None;
    }
    let bytes = pairs.iter().map(|pair| {
        let [high, low] = pair.map(|byte| char::from(byte).to_digit(16));
        u8::try_from(high? << 4 | low?).ok()
    });
    bytes.collect()
}
