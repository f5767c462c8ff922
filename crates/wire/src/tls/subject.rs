//! Who a certificate is of.

use rustls::pki_types::CertificateDer;

use super::der::{OBJECT_IDENTIFIER, SEQUENCE, SET, content, element};

/// Kinds of attributes of a subject (RFC 5280 appendix A.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attribute {
    /// CN
    CommonName,
    /// OU
    OrganizationalUnit,
    /// O
    Organization,
    /// L
    Locality,
    /// ST
    State,
    /// C
    Country,
    /// STREET
    Street,
    /// The postal code.
    PostalCode,
    /// The serial number of who it is, not of the certificate.
    SerialNumber,
}

impl Attribute {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::CommonName,
        Self::OrganizationalUnit,
        Self::Organization,
        Self::Locality,
        Self::State,
        Self::Country,
        Self::Street,
        Self::PostalCode,
        Self::SerialNumber,
    ];
}

/// The subject of a certificate: its attributes in their order. Attributes of other kinds
/// are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject(Vec<(Attribute, String)>);

impl Subject {
    /// Reads the subject of a certificate (DER); `None` when the certificate cannot be
    /// read, or an attribute is no text in UTF-8, ASCII or a part of it.
    ///
    /// The certificate is not checked: that is for whoever accepted it.
    pub fn of(certificate: &[u8]) -> Option<Self> {
        let certificate = CertificateDer::from(certificate);
        let certificate = webpki::EndEntityCert::try_from(&certificate).ok()?;
        Self::read(certificate.subject())
    }

    /// Reads the name of who issued a certificate (DER); `None` as [`Subject::of`] has it.
    pub fn of_issuer(certificate: &[u8]) -> Option<Self> {
        let certificate = CertificateDer::from(certificate);
        let certificate = webpki::EndEntityCert::try_from(&certificate).ok()?;
        Self::read(certificate.issuer())
    }

    /// A name of these attributes.
    pub fn new(attributes: Vec<(Attribute, String)>) -> Self {
        Self(attributes)
    }

    /// Whether two names have the same values of each kind. Which kind comes first does not
    /// count: that is how Go compares names.
    pub fn is_same(&self, other: &Self) -> bool {
        Attribute::ALL
            .iter()
            .all(|kind| self.values(*kind).eq(other.values(*kind)))
    }

    /// Reads the content of a `Name`: sets of pairs of type and value.
    pub(super) fn read(mut name: &[u8]) -> Option<Self> {
        let mut attributes = Vec::new();
        while !name.is_empty() {
            let mut set = content(&mut name, SET)?;
            while !set.is_empty() {
                let mut pair = content(&mut set, SEQUENCE)?;
                let kind = content(&mut pair, OBJECT_IDENTIFIER)?;
                let (tag, value) = element(&mut pair)?;
                let Some(kind) = attribute(kind) else {
                    continue;
                };
                if !TEXTS.contains(&tag) || !pair.is_empty() {
                    return None;
                }
                let value = std::str::from_utf8(value).ok()?;
                attributes.push((kind, value.to_owned()));
            }
        }
        Some(Self(attributes))
    }

    /// The values of one kind, in their order.
    pub fn values(&self, kind: Attribute) -> impl Iterator<Item = &str> {
        let of_kind = move |attribute: &&(Attribute, String)| attribute.0 == kind;
        self.0.iter().filter(of_kind).map(|(_, value)| &**value)
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, (kind, value)) in self.0.iter().enumerate() {
            let between = if at > 0 { ", " } else { "" };
            write!(formatter, "{between}{kind:?}={value:?}")?;
        }
        Ok(())
    }
}

/// `UTF8String`, `PrintableString` and `IA5String`.
const TEXTS: [u8; 3] = [0x0c, 0x13, 0x16];

/// The kind behind an object identifier: 2.5.4 and a number.
fn attribute(identifier: &[u8]) -> Option<Attribute> {
    match identifier {
        [0x55, 4, 3] => Some(Attribute::CommonName),
        [0x55, 4, 5] => Some(Attribute::SerialNumber),
        [0x55, 4, 6] => Some(Attribute::Country),
        [0x55, 4, 7] => Some(Attribute::Locality),
        [0x55, 4, 8] => Some(Attribute::State),
        [0x55, 4, 9] => Some(Attribute::Street),
        [0x55, 4, 10] => Some(Attribute::Organization),
        [0x55, 4, 11] => Some(Attribute::OrganizationalUnit),
        [0x55, 4, 17] => Some(Attribute::PostalCode),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::*;

    fn certificate(attributes: &[(DnType, &str)]) -> Vec<u8> {
        let mut name = DistinguishedName::new();
        for (kind, value) in attributes {
            name.push(kind.clone(), *value);
        }
        let mut params = CertificateParams::default();
        params.distinguished_name = name;
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn attributes_are_read_in_their_order() {
        let der = certificate(&[
            (DnType::CountryName, "DE"),
            (DnType::OrganizationalUnitName, "app:one"),
            (DnType::CommonName, "Zoë, \"the\" instance"),
        ]);
        let subject = Subject::of(&der).unwrap();
        let values = |kind| subject.values(kind).collect::<Vec<_>>();
        assert_eq!(values(Attribute::OrganizationalUnit), ["app:one"]);
        assert_eq!(values(Attribute::CommonName), ["Zoë, \"the\" instance"]);
        assert_eq!(values(Attribute::Country), ["DE"]);
        assert!(values(Attribute::Organization).is_empty());
        assert_eq!(
            subject.0.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(),
            [
                Attribute::Country,
                Attribute::OrganizationalUnit,
                Attribute::CommonName
            ]
        );
    }

    fn wrap(tag: u8, content: &[u8]) -> Vec<u8> {
        let mut element = vec![tag];
        match u8::try_from(content.len()) {
            Ok(length @ 0..=0x7f) => element.push(length),
            Ok(length) => element.extend([0x81, length]),
            Err(_) => {
                element.push(0x82);
                element.extend((content.len() as u16).to_be_bytes());
            }
        }
        element.extend(content);
        element
    }

    fn pair(tag: u8, value: &[u8]) -> Vec<u8> {
        let kind = wrap(OBJECT_IDENTIFIER, &[0x55, 4, 11]);
        wrap(SEQUENCE, &[kind, wrap(tag, value)].concat())
    }

    /// A set of one unit.
    fn unit(tag: u8, value: &[u8]) -> Vec<u8> {
        wrap(SET, &pair(tag, value))
    }

    #[test]
    fn a_set_may_have_several_units_as_go_writes_them() {
        let name = wrap(
            SET,
            &[pair(0x13, b"app:a"), pair(0x13, b"space:b")].concat(),
        );
        let subject = Subject::read(&name).unwrap();
        let units: Vec<_> = subject.values(Attribute::OrganizationalUnit).collect();
        assert_eq!(units, ["app:a", "space:b"]);
    }

    #[test]
    fn several_units_of_any_length_are_read() {
        let long = "x".repeat(200);
        let longer = "y".repeat(3_000);
        let name = [
            unit(0x13, b"app:a"),
            unit(0x0c, long.as_bytes()),
            unit(0x16, longer.as_bytes()),
        ]
        .concat();
        let subject = Subject::read(&name).unwrap();
        let units: Vec<_> = subject.values(Attribute::OrganizationalUnit).collect();
        assert_eq!(units, ["app:a", &long, &longer]);
    }

    #[test]
    fn what_is_no_text_makes_the_subject_unreadable() {
        for name in [
            unit(0x1e, b"\0a\0p\0p"),
            unit(0x0c, b"app:\xff"),
            unit(0x0c, b"app:a")[..8].to_vec(),
            [unit(0x0c, b"app:a"), vec![SET]].concat(),
            // Lengths that DER writes shorter, or does not know.
            vec![SET, 0x81, 2, SEQUENCE, 0],
            vec![SET, 0x80, 0, 0],
        ] {
            assert_eq!(Subject::read(&name), None, "{name:?}");
        }
        assert_eq!(Subject::of(b"no certificate"), None);
    }

    proptest! {
        #[test]
        fn anything_may_come(mut name in prop::collection::vec(any::<u8>(), 0..200), at: prop::sample::Index) {
            let _ = Subject::read(&name);
            let _ = Subject::of(&name);
            let mut good = unit(0x0c, b"app:a");
            let place = at.index(good.len());
            if let Some(byte) = name.pop() {
                good[place] = byte;
            }
            let _ = Subject::read(&good);
        }
    }
}
