//! SignedData of RFC 5652, as far as a signed report takes it: one signer.

use aws_lc_rs::digest;
use der::asn1::ObjectIdentifier;
use der::{ErrorKind, Tag};

use super::asn1::{
    CONTENT_TYPE, DATA, Elements, MESSAGE_DIGEST, SHA256, SHA384, SHA512, SIGNED_DATA, context,
};
use super::{SignatureError, malformed};

/// What is hashed by what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Digest {
    Sha256,
    Sha384,
    Sha512,
}

impl Digest {
    pub(super) fn algorithm(self) -> &'static digest::Algorithm {
        match self {
            Self::Sha256 => &digest::SHA256,
            Self::Sha384 => &digest::SHA384,
            Self::Sha512 => &digest::SHA512,
        }
    }

    fn from_oid(oid: ObjectIdentifier) -> Result<Self, SignatureError> {
        match oid {
            SHA256 => Ok(Self::Sha256),
            SHA384 => Ok(Self::Sha384),
            SHA512 => Ok(Self::Sha512),
            other => Err(SignatureError::Unsupported {
                what: "digest",
                found: other.to_string(),
                expected: "SHA-256, SHA-384 or SHA-512",
            }),
        }
    }
}

/// A signature and what it says about itself.
pub(super) struct SignedData<'a> {
    /// What was signed, if it is inside.
    pub(super) content: Option<&'a [u8]>,
    /// The name of the certificate's issuer, encoded; empty if the signer is named otherwise.
    pub(super) issuer: &'a [u8],
    /// The certificate's number.
    pub(super) serial: &'a [u8],
    pub(super) digest: Digest,
    pub(super) algorithm: ObjectIdentifier,
    pub(super) attributes: Option<Attributes<'a>>,
    pub(super) signature: &'a [u8],
}

/// Attributes, which are signed in place of the content.
pub(super) struct Attributes<'a> {
    /// As they are signed.
    pub(super) encoded: Vec<u8>,
    pub(super) message_digest: &'a [u8],
}

/// The tag of a set.
const SET: u8 = 0x31;

/// Signers of a message that are read.
const SIGNERS: usize = 1;

impl<'a> SignedData<'a> {
    /// Reads a ContentInfo of SignedData.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, SignatureError> {
        let mut info = Elements::new(bytes)?.inside(Tag::Sequence)?;
        let found = info.oid()?;
        if found != SIGNED_DATA {
            return Err(malformed(format!(
                "its type is {found}, expected signedData"
            )));
        }
        let mut data = info.inside(context(0))?.inside(Tag::Sequence)?;
        data.value(Tag::Integer)?;
        data.value(Tag::Set)?;
        let mut inner = data.inside(Tag::Sequence)?;
        let content_type = inner.oid()?;
        let content = match inner.optional(context(0))? {
            Some(mut content) => Some(content.value(Tag::OctetString)?),
            None => None,
        };
        // Certificates and revocation lists are not looked at.
        data.optional(context(0))?;
        data.optional(context(1))?;
        let mut signers = data.inside(Tag::Set)?;
        let mut signer = signers.inside(Tag::Sequence)?;
        if !signers.is_finished() {
            return Err(malformed(format!("it has more than {SIGNERS} signer")));
        }
        signer.value(Tag::Integer)?;
        let (mut issuer, mut serial): (&[u8], &[u8]) = (&[], &[]);
        match signer.optional(Tag::Sequence)? {
            Some(mut name) => {
                issuer = name.whole()?;
                serial = name.value(Tag::Integer)?;
            }
            None => {
                signer.whole()?;
            }
        }
        let digest = Digest::from_oid(signer.inside(Tag::Sequence)?.oid()?)?;
        let attributes = if signer.has(context(0)) {
            Some(Attributes::read(signer.whole()?, content_type)?)
        } else if content_type == DATA {
            None
        } else {
            return Err(malformed("it has no signed attributes"));
        };
        let algorithm = signer.inside(Tag::Sequence)?.oid()?;
        let signature = signer.value(Tag::OctetString)?;
        Ok(Self {
            content,
            issuer,
            serial,
            digest,
            algorithm,
            attributes,
            signature,
        })
    }
}

impl<'a> Attributes<'a> {
    fn read(whole: &'a [u8], content_type: ObjectIdentifier) -> Result<Self, SignatureError> {
        let mut attributes = Elements::new(whole)?.inside(context(0))?;
        let (mut message_digest, mut signed_type) = (None, None);
        while !attributes.is_finished() {
            let mut attribute = attributes.inside(Tag::Sequence)?;
            let oid = attribute.oid()?;
            let mut values = attribute.inside(Tag::Set)?;
            if oid == MESSAGE_DIGEST {
                message_digest = Some(values.value(Tag::OctetString)?);
            } else if oid == CONTENT_TYPE {
                signed_type = Some(values.oid()?);
            }
        }
        let message_digest = message_digest.ok_or_else(|| malformed("it has no digest"))?;
        if signed_type != Some(content_type) {
            return Err(malformed("it is of another type of content"));
        }
        // RFC 5652, 5.4: what is signed has the tag of a set.
        let mut encoded = whole.to_vec();
        if let Some(tag) = encoded.first_mut() {
            *tag = SET;
        }
        Ok(Self {
            encoded,
            message_digest,
        })
    }
}

impl From<der::Error> for SignatureError {
    fn from(error: der::Error) -> Self {
        match error.kind() {
            ErrorKind::Incomplete { .. } => Self::Truncated {
                missing: "the end of its signature",
            },
            _ => malformed(error.to_string()),
        }
    }
}
