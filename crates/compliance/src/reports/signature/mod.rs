//! Signed uploads: S/MIME around CMS, as `openssl smime -sign -text -nocerts` makes it.
//!
//! What counts is the key of the certificate that the server knows of the node. Chains, dates
//! and certificates inside of the message do not.

mod asn1;
mod certificate;
mod cms;
mod mime;
mod sign;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use aws_lc_rs::digest;
use thiserror::Error;

pub use certificate::{CertificateError, NodeCertificate};
pub use sign::{KeyError, SigningError, SigningKey, sign};

use cms::SignedData;
use mime::Message;

/// Why a signed message is refused.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum SignatureError {
    /// It is no S/MIME message.
    #[error(
        "checking a signature: the message is {found}; expected multipart/signed or \
         application/pkcs7-mime"
    )]
    NotSigned {
        /// What it is instead.
        found: String,
    },
    /// Its end is missing.
    #[error("checking a signature: the message ends before {missing}; send it again")]
    Truncated {
        /// What is missing.
        missing: &'static str,
    },
    /// A part of it cannot be read.
    #[error("checking a signature: the {part} cannot be read: {problem}")]
    Malformed {
        /// Which part.
        part: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// It uses an algorithm that is not accepted.
    #[error("checking a signature: the {what} is {found}; expected {expected}")]
    Unsupported {
        /// What is not accepted.
        what: &'static str,
        /// What it is.
        found: String,
        /// What is accepted.
        expected: &'static str,
    },
    /// It was made with the node's key or claims so, and what it covers is not what was signed.
    #[error("checking a signature: the content is not what was signed; it was altered on its way")]
    Altered,
    /// It was made with another key.
    #[error(
        "checking a signature: it was not made with the key of the node's certificate; if the \
         node has a new key, reset its key's status"
    )]
    OtherKey,
    /// It was made with the node's key, in the name of another certificate of that key; relayd
    /// refuses this too.
    #[error(
        "checking a signature: it names another certificate of the node's key than the one that \
         is known; accept the node's new certificate first"
    )]
    OtherCertificate,
}

/// Bytes of a message's headers that are read.
const HEADER_BYTES: usize = 16 << 10;

/// The text of a signed message, if the key of `certificate` signed it: without the header that
/// says it is text, lines as they were signed (`\r\n`). A clear-signed message is not copied.
///
/// Digests are SHA-256, 384 and 512, keys RSA from 2048 bits (PKCS #1), P-256, P-384 and Ed25519.
///
/// # Errors
/// Anything but a whole message of this form, signed with this key, unchanged since.
pub fn verify<'a>(
    message: &'a [u8],
    certificate: &NodeCertificate,
) -> Result<Cow<'a, [u8]>, SignatureError> {
    match mime::read(message)? {
        Message::Clear { content, signature } => {
            let signed = SignedData::parse(&signature)?;
            match check(&signed, certificate, content) {
                // On its way, line ends may have become those of the machine.
                Err(SignatureError::Altered) => {
                    let canonical = canonical(content);
                    if *canonical == *content {
                        return Err(SignatureError::Altered);
                    }
                    check(&signed, certificate, &canonical)?;
                    Ok(Cow::Owned(mime::text(&canonical)?.to_vec()))
                }
                checked => checked.and_then(|()| mime::text(content).map(Cow::Borrowed)),
            }
        }
        Message::Opaque(signature) => {
            let signed = SignedData::parse(&signature)?;
            let content = signed.content.ok_or_else(no_content)?;
            check(&signed, certificate, content)?;
            Ok(Cow::Owned(mime::text(content)?.to_vec()))
        }
    }
}

/// The text of a message whose signature was checked before, when it came.
///
/// # Errors
/// It is no whole message.
pub fn text_of_checked(message: &[u8]) -> Result<Cow<'_, [u8]>, SignatureError> {
    match mime::read(message)? {
        Message::Clear { content, .. } => mime::text(content).map(Cow::Borrowed),
        Message::Opaque(signature) => {
            let content = SignedData::parse(&signature)?.content;
            let content = content.ok_or_else(no_content)?;
            Ok(Cow::Owned(mime::text(content)?.to_vec()))
        }
    }
}

fn no_content() -> SignatureError {
    malformed("it holds no content")
}

fn malformed(problem: impl Into<String>) -> SignatureError {
    let (part, problem) = ("signature", problem.into());
    SignatureError::Malformed { part, problem }
}

fn check(
    signed: &SignedData<'_>,
    certificate: &NodeCertificate,
    content: &[u8],
) -> Result<(), SignatureError> {
    let named = signed.issuer.is_empty() || certificate.is(signed.issuer, signed.serial);
    let attributes = signed.attributes.as_ref();
    let bytes = attributes.map_or(content, |attributes| &attributes.encoded);
    match (certificate.verify(signed, bytes)?, named) {
        (true, true) => {}
        (true, false) => return Err(SignatureError::OtherCertificate),
        (false, true) => return Err(SignatureError::Altered),
        (false, false) => return Err(SignatureError::OtherKey),
    }
    let Some(attributes) = attributes else {
        return Ok(());
    };
    let digest = digest::digest(signed.digest.algorithm(), content);
    if digest.as_ref() != attributes.message_digest {
        return Err(SignatureError::Altered);
    }
    Ok(())
}

/// Text with `\r\n` at the end of each line, as it is signed.
fn canonical(text: &[u8]) -> Cow<'_, [u8]> {
    let is_canonical = memchr::memchr_iter(b'\n', text)
        .all(|at| at.checked_sub(1).and_then(|before| text.get(before)) == Some(&b'\r'));
    if is_canonical {
        return Cow::Borrowed(text);
    }
    let mut canonical = Vec::with_capacity(text.len() + text.len() / 64);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_suffix(b"\n") {
            None => canonical.extend_from_slice(line),
            Some(line) => {
                canonical.extend_from_slice(line.strip_suffix(b"\r").unwrap_or(line));
                canonical.extend_from_slice(b"\r\n");
            }
        }
    }
    Cow::Owned(canonical)
}
