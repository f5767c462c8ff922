//! The little of ASN.1 that CMS and certificates take, by crate `der`.

use der::asn1::{AnyRef, ObjectIdentifier};
use der::{Decode, Encode, Header, Reader, SliceReader, Tag, TagNumber};

pub(super) const SIGNED_DATA: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.2");
pub(super) const DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.1");
pub(super) const CONTENT_TYPE: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.3");
pub(super) const MESSAGE_DIGEST: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.4");
pub(super) const SIGNING_TIME: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.5");
pub(super) const SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
pub(super) const SHA384: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.2");
pub(super) const SHA512: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.3");
pub(super) const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
pub(super) const RSA_PSS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.10");
pub(super) const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
pub(super) const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
pub(super) const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
pub(super) const ECDSA_SHA256: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");
pub(super) const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
pub(super) const UID: ObjectIdentifier = ObjectIdentifier::new_unwrap("0.9.2342.19200300.100.1.1");

/// A constructed, context-specific tag.
pub(super) const fn context(number: u32) -> Tag {
    Tag::ContextSpecific {
        constructed: true,
        number: TagNumber(number),
    }
}

/// Reads elements one after another.
pub(super) struct Elements<'a>(SliceReader<'a>);

impl<'a> Elements<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> der::Result<Self> {
        Ok(Self(SliceReader::new(bytes)?))
    }

    /// The elements of the next element, which has this tag.
    pub(super) fn inside(&mut self, tag: Tag) -> der::Result<Self> {
        Self::new(self.value(tag)?)
    }

    /// The elements of the next element, if it has this tag.
    pub(super) fn optional(&mut self, tag: Tag) -> der::Result<Option<Self>> {
        if self.has(tag) {
            return self.inside(tag).map(Some);
        }
        Ok(None)
    }

    /// The content of the next element, which has this tag.
    pub(super) fn value(&mut self, tag: Tag) -> der::Result<&'a [u8]> {
        let element = AnyRef::decode(&mut self.0)?;
        element.header().tag().assert_eq(tag)?;
        Ok(element.value())
    }

    pub(super) fn oid(&mut self) -> der::Result<ObjectIdentifier> {
        ObjectIdentifier::from_bytes(self.value(Tag::ObjectIdentifier)?)
            .map_err(|_| Tag::ObjectIdentifier.value_error().into())
    }

    /// The next element, whatever it is, with its tag and length.
    pub(super) fn whole(&mut self) -> der::Result<&'a [u8]> {
        self.0.tlv_bytes()
    }

    pub(super) fn has(&self, tag: Tag) -> bool {
        Header::peek(&self.0).is_ok_and(|header| header.tag() == tag)
    }

    pub(super) fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

/// Encodes an element of parts that are encoded.
pub(super) fn element(tag: Tag, parts: &[&[u8]]) -> der::Result<Vec<u8>> {
    let content = parts.concat();
    let header = Header::new(tag, content.len().try_into()?);
    let mut encoded = header.to_der()?;
    encoded.extend_from_slice(&content);
    Ok(encoded)
}
