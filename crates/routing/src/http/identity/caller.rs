//! Who calls, as a certificate proves it.

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA256, digest};
use wire::tls::{Attribute, Subject};

/// An application that calls, as the certificate of its instance names it: in the
/// organizational units `app:`, `space:` and `organization:`, each with a guid.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallerIdentity {
    /// Guid of the application, never empty.
    pub app: String,
    /// Guid of its space; empty: the certificate does not say.
    pub space: String,
    /// Guid of its organization; empty: the certificate does not say.
    pub organization: String,
}

impl CallerIdentity {
    /// The identity that a subject names; `None` if it names no application, or two
    /// different ones of anything.
    pub fn of(subject: &Subject) -> Option<Self> {
        let named = |prefix: &str| {
            let guids = subject
                .values(Attribute::OrganizationalUnit)
                .filter_map(|unit| unit.strip_prefix(prefix))
                .filter(|guid| !guid.is_empty());
            let mut found = "";
            for guid in guids {
                if !found.is_empty() && found != guid {
                    return None;
                }
                found = guid;
            }
            Some(found.to_owned())
        };
        let identity = Self {
            app: named("app:")?,
            space: named("space:")?,
            organization: named("organization:")?,
        };
        (!identity.app.is_empty()).then_some(identity)
    }
}

/// A client that proved itself for a domain. Made once for a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The domain, by its place in the settings.
    pub domain: usize,
    /// The application; `None`: the certificate is of something else.
    pub identity: Option<CallerIdentity>,
    /// Hash and subject of its certificate, as Envoy writes them.
    envoy: String,
}

impl Caller {
    /// Whoever has `certificate` (DER), which the handshake for `domain` has checked.
    pub fn new(domain: usize, certificate: &[u8]) -> Self {
        let subject = Subject::of(certificate).unwrap_or_default();
        Self {
            domain,
            identity: CallerIdentity::of(&subject),
            envoy: envoy(certificate, &subject),
        }
    }

    /// `Hash=…;Subject="…"`, free of what ends a field's line.
    pub fn envoy(&self) -> &str {
        &self.envoy
    }
}

/// The attributes in the order in which gorouter writes them.
const ORDER: [(Attribute, &str); 6] = [
    (Attribute::CommonName, "CN="),
    (Attribute::OrganizationalUnit, "OU="),
    (Attribute::Organization, "O="),
    (Attribute::Locality, "L="),
    (Attribute::State, "ST="),
    (Attribute::Country, "C="),
];

fn envoy(certificate: &[u8], subject: &Subject) -> String {
    let mut text = String::from("Hash=");
    for byte in digest(&SHA256, certificate).as_ref() {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text.push_str(";Subject=\"");
    let mut between = "";
    for (kind, name) in ORDER {
        for value in subject.values(kind) {
            text.push_str(between);
            text.push_str(name);
            escape(value, &mut text);
            between = ",";
        }
    }
    text.push('"');
    text
}

/// Appends a value. What could end it, or begin another one in the eyes of a careless
/// reader, is written as RFC 4514 allows for every byte: a backslash and two digits.
fn escape(value: &str, text: &mut String) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b" -._:@*'()?".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "\\{byte:02X}");
        }
    }
}
