//! What of a certificate webpki does not tell.

use std::fmt;

use rustls::pki_types::{AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm};

use super::der::{BOOLEAN, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE, content, element};
use super::subject::{Attribute, Subject};

const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const SUBJECT_ALT_NAME: [u8; 3] = [0x55, 0x1d, 17];
const BASIC_CONSTRAINTS: [u8; 3] = [0x55, 0x1d, 19];

/// A certificate (DER) of any version, taken apart.
pub(super) struct Certificate<'a> {
    /// All of it.
    der: &'a [u8],
    /// What its authority signed.
    signed: &'a [u8],
    subject: &'a [u8],
    /// Empty: it has none.
    extensions: &'a [u8],
}

impl<'a> Certificate<'a> {
    /// Takes a certificate apart; `None`: it is none, or longer than 64 KiB.
    pub(super) fn read(der: &'a [u8]) -> Option<Self> {
        let outer = content(&mut &*der, SEQUENCE)?;
        let mut rest = outer;
        let mut fields = content(&mut rest, SEQUENCE)?;
        let signed = outer.get(..outer.len() - rest.len())?;
        // The version is left out where it is the first; then the serial number comes.
        if let (VERSION, _) = element(&mut fields)? {
            element(&mut fields)?;
        }
        let [_algorithm, _issuer, _validity, subject, _key] =
            [(); 5].map(|()| content(&mut fields, SEQUENCE));
        let mut extensions: &[u8] = &[];
        while !fields.is_empty() {
            if let (EXTENSIONS, mut list) = element(&mut fields)? {
                extensions = content(&mut list, SEQUENCE)?;
            }
        }
        Some(Self {
            der,
            signed,
            subject: subject?,
            extensions,
        })
    }

    /// The content of an extension.
    fn extension(&self, wanted: &[u8]) -> Option<&'a [u8]> {
        let mut rest = self.extensions;
        while !rest.is_empty() {
            let mut extension = content(&mut rest, SEQUENCE)?;
            if content(&mut extension, OBJECT_IDENTIFIER)? == wanted {
                return loop {
                    match element(&mut extension)? {
                        // Whether it is critical.
                        (BOOLEAN, _) => {}
                        (OCTET_STRING, value) => break Some(value),
                        _ => break None,
                    }
                };
            }
        }
        None
    }

    /// Whether it is for this name by its common name only, which says so no more.
    pub(super) fn relies_on_common_name(&self, name: &str) -> bool {
        if self.extension(&SUBJECT_ALT_NAME).is_some() {
            return false;
        }
        let Some(subject) = Subject::read(self.subject) else {
            return false;
        };
        // Go reads the last one.
        let common = subject.values(Attribute::CommonName).last();
        common.is_some_and(|pattern| fits(pattern, name))
    }

    /// The same certificate without the word that it is an authority's, which webpki does not
    /// take from who shows it as its own.
    pub(super) fn as_end_entity(&self) -> Option<EndEntity<'a>> {
        let mut constraints = self.extension(&BASIC_CONSTRAINTS)?;
        let mut constraints = content(&mut constraints, SEQUENCE)?;
        let word = content(&mut constraints, BOOLEAN)?;
        let place = |part: &[u8]| part.as_ptr().addr().checked_sub(self.der.as_ptr().addr());
        let at = place(word)?;
        let begin = place(self.signed)?;
        let mut der = self.der.to_vec();
        *der.get_mut(at)? = 0;
        Some(EndEntity {
            der,
            begin,
            signed: self.signed,
        })
    }
}

/// Whether a common name, whose first label may be a wildcard, is this name.
fn fits(pattern: &str, name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let (mut patterns, mut labels) = (pattern.split('.'), name.split('.'));
    let first = match (patterns.next(), labels.next()) {
        (Some(pattern), Some(label)) => pattern == "*" || pattern.eq_ignore_ascii_case(label),
        _ => false,
    };
    first
        && !pattern.is_empty()
        && patterns
            .map(str::to_ascii_lowercase)
            .eq(labels.map(str::to_ascii_lowercase))
}

/// A certificate that no longer says that it is an authority's.
pub(super) struct EndEntity<'a> {
    /// The whole certificate.
    pub(super) der: Vec<u8>,
    /// Where what was signed begins in it.
    begin: usize,
    /// What was signed, as its authority signed it.
    signed: &'a [u8],
}

impl EndEntity<'_> {
    /// An algorithm that takes the signature of the certificate as it was for that of this
    /// one, and judges all others as `inner` does.
    pub(super) fn judged_by<'b>(
        &'b self,
        inner: &'b dyn SignatureVerificationAlgorithm,
    ) -> Judged<'b> {
        let end = self.begin.saturating_add(self.signed.len());
        Judged {
            inner,
            shown: self.der.get(self.begin..end).unwrap_or_default(),
            signed: self.signed,
        }
    }
}

/// See [`EndEntity::judged_by`].
pub(super) struct Judged<'a> {
    inner: &'a dyn SignatureVerificationAlgorithm,
    shown: &'a [u8],
    signed: &'a [u8],
}

impl fmt::Debug for Judged<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(formatter)
    }
}

impl SignatureVerificationAlgorithm for Judged<'_> {
    fn verify_signature(
        &self,
        public_key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        let message = match message == self.shown {
            true => self.signed,
            false => message,
        };
        self.inner.verify_signature(public_key, message, signature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        self.inner.public_key_alg_id()
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        self.inner.signature_alg_id()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_common_name_may_have_a_wildcard_in_front() {
        for (pattern, name, expected) in [
            ("a.example", "A.Example.", true),
            ("*.example", "a.example", true),
            ("*.example", "a.b.example", false),
            ("a.*", "a.example", false),
            ("example", "a.example", false),
            ("", "", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    proptest! {
        #[test]
        fn anything_may_come(der in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(read) = Certificate::read(&der) {
                let _ = (read.relies_on_common_name("a"), read.as_end_entity().is_some());
            }
        }
    }
}
