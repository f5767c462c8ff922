//! Keys, and certificates of them that the operator's authority signs. What the certificates say is what
//! Diego's say.

use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_SHA256};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use der::asn1::{AnyRef, GeneralizedTime, Null, ObjectIdentifier, UtcTime};
use der::{Decode, Encode, Header, Reader, SliceReader, Tag, TagNumber};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::super::super::super::settings::Error;

const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const RSA_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.11");
const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
const ORGANIZATIONAL_UNIT: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.11");
const SUBJECT_KEY_IDENTIFIER: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.14");
const KEY_USAGE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.15");
const ALTERNATIVE_NAMES: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.17");
const AUTHORITY_KEY_IDENTIFIER: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.35");
const EXTENDED_KEY_USAGE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.37");
const SERVER_AUTH: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1");
const CLIENT_AUTH: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.2");

/// Who signs the certificates.
pub(super) struct Authority {
    key: KeyPair,
    /// Its name as its certificate has it, encoded.
    name: Vec<u8>,
    /// What its certificate calls its key, if it does. Strict verifiers, as Python's has become, want
    /// a certificate to say it of its signer's.
    key_identifier: Option<Vec<u8>>,
    /// Its certificate, PEM.
    certificate: String,
}

/// The container that a certificate is of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Holder<'a> {
    pub(super) guid: &'a str,
    pub(super) address: Option<IpAddr>,
    pub(super) organizational_units: &'a [String],
}

/// A key and its certificate, both in PEM.
pub(super) struct Credentials {
    /// PKCS #1, which is what programs expect that read Diego's.
    pub(super) key: String,
    /// The certificate, and then the authority's.
    pub(super) certificates: String,
}

/// Why there are no credentials.
#[derive(Debug, thiserror::Error)]
pub(super) enum IssueError {
    #[error("make an RSA key and sign with the authority's: {0}")]
    Key(#[from] Unspecified),
    #[error("write a certificate: {0}")]
    Encoding(#[from] der::Error),
}

impl Authority {
    /// Reads the authority's certificate and its RSA key, each in PEM. In a file of several
    /// certificates the first one counts.
    pub(super) fn read(certificate: &Path, key: &Path) -> Result<Self, Error> {
        let refuse = |path: &Path, problem: String| Error::InstanceIdentity {
            path: path.to_owned(),
            problem,
        };
        let read = |path: &Path| fs::read(path).map_err(|cause| refuse(path, cause.to_string()));
        let private = PrivateKeyDer::from_pem_slice(&read(key)?);
        let private = private.map_err(|cause| {
            let problem = format!("expected an RSA key in PEM, found none: {cause}");
            refuse(key, problem)
        })?;
        let private = private.secret_der();
        let pair = KeyPair::from_pkcs8(private).or_else(|_| KeyPair::from_der(private));
        let pair = pair.map_err(|cause| {
            let problem = format!("expected an RSA key, found another one: {cause}");
            refuse(key, problem)
        })?;
        let own = CertificateDer::from_pem_slice(&read(certificate)?);
        let own = own.map_err(|cause| {
            let problem = format!("expected a certificate in PEM, found none: {cause}");
            refuse(certificate, problem)
        })?;
        let pem = pem("CERTIFICATE", &own);
        let key_identifier = key_identifier(&own);
        let mut store = RootCertStore::empty();
        let added = store.add(own);
        added.map_err(|cause| refuse(certificate, cause.to_string()))?;
        let Some(anchor) = store.roots.pop() else {
            return Err(refuse(certificate, "it holds no certificate".into()));
        };
        // The key is the last that stands there.
        let public: &[u8] = anchor.subject_public_key_info.as_ref();
        if !public.ends_with(pair.public_key().as_ref()) {
            let problem = format!(
                "expected the certificate of the key {}, found that of another key",
                key.display()
            );
            return Err(refuse(certificate, problem));
        }
        let name = element(Tag::Sequence, &[anchor.subject.as_ref()]);
        Ok(Self {
            key: pair,
            name: name.map_err(|cause| refuse(certificate, cause.to_string()))?,
            key_identifier: key_identifier
                .map_err(|cause| refuse(certificate, cause.to_string()))?,
            certificate: pem,
        })
    }

    /// Makes a key for a container, and its certificate, which is valid from `now` on for so long.
    pub(super) fn issue(
        &self,
        holder: &Holder<'_>,
        now: SystemTime,
        validity: Duration,
    ) -> Result<Credentials, IssueError> {
        let key = KeyPair::generate(KeySize::Rsa2048)?;
        let since_1970 = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let times = [since_1970, since_1970.saturating_add(validity)];
        let [begin, end] = times.map(|time| Duration::from_secs(time.as_secs()));
        let algorithm = element(Tag::Sequence, &[&RSA_SHA256.to_der()?, &Null.to_der()?])?;
        let signed = element(
            Tag::Sequence,
            &[
                // Version 3, which counts from 0.
                &element(context(0, true), &[&2_u8.to_der()?])?,
                &element(Tag::Integer, &[&serial_number()])?,
                &algorithm,
                &self.name,
                &element(Tag::Sequence, &[&encoded_time(begin)?, &encoded_time(end)?])?,
                &subject(holder)?,
                &public_key(&key)?,
                &element(context(3, true), &[&self.extensions(holder)?])?,
            ],
        )?;
        let mut signature = vec![0; self.key.public_modulus_len()];
        let random = SystemRandom::new();
        self.key
            .sign(&RSA_PKCS1_SHA256, &random, &signed, &mut signature)?;
        let certificate = element(Tag::Sequence, &[&signed, &algorithm, &bits(&signature)?])?;
        let pkcs8: Pkcs8V1Der<'_> = key.as_der()?;
        Ok(Credentials {
            key: pem("RSA PRIVATE KEY", pkcs1(pkcs8.as_ref())?),
            certificates: pem("CERTIFICATE", &certificate) + &self.certificate,
        })
    }

    fn extensions(&self, holder: &Holder<'_>) -> der::Result<Vec<u8>> {
        // Digital signature, key encipherment and key agreement: the bits 0, 2 and 4 of five.
        let usage = element(Tag::BitString, &[&[3_u8, 0b1010_1000]])?;
        let purposes = element(
            Tag::Sequence,
            &[&CLIENT_AUTH.to_der()?, &SERVER_AUTH.to_der()?],
        )?;
        let signer = match &self.key_identifier {
            Some(identifier) => {
                let identifier = element(context(0, false), &[identifier])?;
                let identifier = element(Tag::Sequence, &[&identifier])?;
                extension(AUTHORITY_KEY_IDENTIFIER, false, &identifier)?
            }
            None => Vec::new(),
        };
        let guid = element(context(2, false), &[holder.guid.as_bytes()])?;
        let address = match holder.address {
            Some(IpAddr::V4(address)) => element(context(7, false), &[&address.octets()])?,
            Some(IpAddr::V6(address)) => element(context(7, false), &[&address.octets()])?,
            None => Vec::new(),
        };
        let names = element(Tag::Sequence, &[&guid, &address])?;
        element(
            Tag::Sequence,
            &[
                &extension(KEY_USAGE, true, &usage)?,
                &extension(EXTENDED_KEY_USAGE, false, &purposes)?,
                &signer,
                &extension(ALTERNATIVE_NAMES, false, &names)?,
            ],
        )
    }
}

/// Encodes an element of parts that are encoded.
fn element(tag: Tag, parts: &[&[u8]]) -> der::Result<Vec<u8>> {
    let content = parts.concat();
    let header = Header::new(tag, content.len().try_into()?);
    let mut encoded = header.to_der()?;
    encoded.extend_from_slice(&content);
    Ok(encoded)
}

fn context(number: u32, constructed: bool) -> Tag {
    Tag::ContextSpecific {
        constructed,
        number: TagNumber(number),
    }
}

/// Whole bytes as a string of bits.
fn bits(bytes: &[u8]) -> der::Result<Vec<u8>> {
    element(Tag::BitString, &[&[0_u8], bytes])
}

/// A number that no other certificate has.
fn serial_number() -> [u8; 16] {
    let mut number: [u8; 16] = rand::random();
    // It is positive, and its encoding does not begin with zeros.
    number[0] = (number[0] & 0x3f) | 0x40;
    number
}

/// RFC 5280, 4.1.2.5: two digits of the year until 2049.
fn encoded_time(since_1970: Duration) -> der::Result<Vec<u8>> {
    match UtcTime::from_unix_duration(since_1970) {
        Ok(time) => time.to_der(),
        Err(_) => GeneralizedTime::from_unix_duration(since_1970)?.to_der(),
    }
}

/// All units are one part of the name, as Go writes them.
fn subject(holder: &Holder<'_>) -> der::Result<Vec<u8>> {
    let units = holder.organizational_units.iter();
    let units = units.map(|unit| attribute(ORGANIZATIONAL_UNIT, unit));
    let mut units = units.collect::<der::Result<Vec<_>>>()?;
    // The elements of a set are sorted by their encoding.
    units.sort();
    let units = match units.is_empty() {
        true => Vec::new(),
        false => element(Tag::Set, &[&units.concat()])?,
    };
    let name = element(Tag::Set, &[&attribute(COMMON_NAME, holder.guid)?])?;
    element(Tag::Sequence, &[&units, &name])
}

fn attribute(kind: ObjectIdentifier, value: &str) -> der::Result<Vec<u8>> {
    let value = element(Tag::Utf8String, &[value.as_bytes()])?;
    element(Tag::Sequence, &[&kind.to_der()?, &value])
}

fn public_key(key: &KeyPair) -> der::Result<Vec<u8>> {
    let algorithm = element(Tag::Sequence, &[&RSA.to_der()?, &Null.to_der()?])?;
    let key = bits(key.public_key().as_ref())?;
    element(Tag::Sequence, &[&algorithm, &key])
}

fn extension(kind: ObjectIdentifier, critical: bool, content: &[u8]) -> der::Result<Vec<u8>> {
    let critical = match critical {
        true => true.to_der()?,
        // What is usual is not written.
        false => Vec::new(),
    };
    let content = element(Tag::OctetString, &[content])?;
    element(Tag::Sequence, &[&kind.to_der()?, &critical, &content])
}

/// What a certificate calls its key (RFC 5280 section 4.2.1.2), if it does.
fn key_identifier(certificate: &[u8]) -> der::Result<Option<Vec<u8>>> {
    let mut content = certificate;
    // The certificate, what is signed of it, and its extensions.
    let list = Tag::Sequence;
    for tag in [list, list, context(3, true), list] {
        let mut parts = elements(content)?.into_iter();
        match parts.find(|part| part.header().tag() == tag) {
            Some(found) => content = found.value(),
            None => return Ok(None),
        }
    }
    for extension in elements(content)? {
        let parts = elements(extension.value())?;
        if let [kind, .., held] = parts.as_slice()
            && kind.value() == SUBJECT_KEY_IDENTIFIER.as_bytes()
        {
            let identifier = elements(held.value())?;
            return Ok(identifier.first().map(|it| it.value().to_vec()));
        }
    }
    Ok(None)
}

/// The elements of which this is the encoding.
fn elements(encoded: &[u8]) -> der::Result<Vec<AnyRef<'_>>> {
    let mut reader = SliceReader::new(encoded)?;
    let mut all = Vec::new();
    while !reader.is_finished() {
        all.push(AnyRef::decode(&mut reader)?);
    }
    Ok(all)
}

/// The RSA key that is in a key of PKCS #8 (RFC 5208 section 5).
fn pkcs1(pkcs8: &[u8]) -> der::Result<&[u8]> {
    let mut whole = SliceReader::new(pkcs8)?;
    let mut parts = SliceReader::new(AnyRef::decode(&mut whole)?.value())?;
    for _version_and_algorithm in 0..2 {
        AnyRef::decode(&mut parts)?;
    }
    let key = AnyRef::decode(&mut parts)?;
    key.header().tag().assert_eq(Tag::OctetString)?;
    Ok(key.value())
}

fn pem(kind: &str, der: &[u8]) -> String {
    let mut text = format!("-----BEGIN {kind}-----\n");
    for line in BASE64_STANDARD.encode(der).as_bytes().chunks(64) {
        text.push_str(&String::from_utf8_lossy(line));
        text.push('\n');
    }
    text + &format!("-----END {kind}-----\n")
}
