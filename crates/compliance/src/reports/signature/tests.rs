use jiff::Timestamp;
use proptest::prelude::*;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SignatureAlgorithm};

use super::{NodeCertificate, SignatureError, SigningKey, sign, text_of_checked, verify};

macro_rules! data {
    ($name:literal) => {
        include_bytes!(concat!("../../../tests/data/rudder/", $name)).as_slice()
    };
}

const NODE: &[u8] = data!("e745a140-40bc-4b86-b6dc-084488fc906b.cert");
const SAME_KEY: &[u8] = data!("e745a140-40bc-4b86-b6dc-084488fc906b-other.cert");
const OTHER_NODE: &[u8] = data!("37817c4d-fbf7-4850-a985-50021f4e8f41.cert");
const SIGNED: &[u8] = data!("normal.signed");
const CHANGED: &[u8] = data!("normal-diff.signed");
const LOG: &[u8] = data!("normal.log");
const SIGNED_2018: &[u8] =
    data!("2018-08-24T15_55_01+00_00@e745a140-40bc-4b86-b6dc-084488fc906b.signed");
const LOG_2018: &[u8] = data!("2018-08-24T15_55_01+00_00@e745a140-40bc-4b86-b6dc-084488fc906b.log");
/// Made with `openssl smime -sign -text -nocerts -nodetach` of OpenSSL 3.0.
const OPAQUE: &[u8] = include_bytes!("../../../tests/data/openssl/opaque.p256.smime");
const OPAQUE_CERTIFICATE: &[u8] = include_bytes!("../../../tests/data/openssl/p256.cert");

fn certificate(pem: &[u8]) -> NodeCertificate {
    NodeCertificate::from_pem(pem).unwrap()
}

fn crlf(text: &[u8]) -> Vec<u8> {
    String::from_utf8_lossy(text)
        .replace('\n', "\r\n")
        .into_bytes()
}

fn node(algorithm: &'static SignatureAlgorithm) -> (SigningKey, NodeCertificate) {
    let key = KeyPair::generate_for(algorithm).unwrap();
    let mut params = CertificateParams::default();
    let uid = DnType::CustomDnType(vec![0, 9, 2342, 19_200_300, 100, 1, 1]);
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(uid, "node-1");
    let pem = params.self_signed(&key).unwrap().pem();
    let signing = SigningKey::from_pem(key.serialize_pem().as_bytes()).unwrap();
    (signing, certificate(pem.as_bytes()))
}

#[test]
fn vectors_are_verified_and_the_text_comes_out() {
    let node = certificate(NODE);
    assert_eq!(node.uid(), Some("e745a140-40bc-4b86-b6dc-084488fc906b"));
    let text = verify(SIGNED_2018, &node).unwrap();
    assert!(matches!(text, std::borrow::Cow::Borrowed(_)));
    assert_eq!(&*text, crlf(LOG_2018));
    assert!(
        verify(SIGNED, &node)
            .unwrap()
            .starts_with(b"2019-05-11T12:58:13+00:00 R: @@Common@@")
    );
    assert!(!LOG.is_empty());
}

#[test]
fn what_is_wrong_is_told_apart() {
    let error = |message, pem| verify(message, &certificate(pem)).unwrap_err();
    assert_eq!(error(CHANGED, NODE), SignatureError::Altered);
    assert_eq!(error(SIGNED, SAME_KEY), SignatureError::OtherCertificate);
    assert_eq!(error(SIGNED, OTHER_NODE), SignatureError::OtherKey);
    assert!(matches!(error(LOG, NODE), SignatureError::NotSigned { .. }));
    assert!(matches!(error(b"", NODE), SignatureError::Truncated { .. }));
    let cut = SIGNED.len() - SIGNED.len() / 3;
    for length in (0..SIGNED.len() - 45).step_by(97).chain([cut]) {
        let found = error(&SIGNED[..length], NODE);
        assert!(
            matches!(found, SignatureError::Truncated { .. }),
            "{length}: {found}"
        );
    }
}

#[test]
fn ends_of_lines_may_have_changed_on_the_way() {
    let node = certificate(NODE);
    let unix: Vec<u8> = SIGNED_2018
        .iter()
        .copied()
        .filter(|byte| *byte != b'\r')
        .collect();
    assert_eq!(&*verify(&unix, &node).unwrap(), crlf(LOG_2018));
}

#[test]
fn a_signature_may_hold_its_content() {
    let node = certificate(OPAQUE_CERTIFICATE);
    assert_eq!(&*verify(OPAQUE, &node).unwrap(), b"hello\r\nworld\r\n");
    assert_eq!(
        verify(OPAQUE, &certificate(NODE)),
        Err(SignatureError::OtherKey)
    );
}

#[test]
fn what_every_kind_of_key_signs_is_verified() {
    for algorithm in [
        &rcgen::PKCS_RSA_SHA256,
        &rcgen::PKCS_ECDSA_P256_SHA256,
        &rcgen::PKCS_ED25519,
    ] {
        let (key, certificate) = node(algorithm);
        let (_, other) = node(algorithm);
        assert_eq!(certificate.uid(), Some("node-1"));
        let time = Timestamp::from_second(1_535_118_901).unwrap();
        for text in [LOG_2018, b"", b"\n", b"no end", b"a\r\nb\n------\n"] {
            let message = sign(text, &key, &certificate, time).unwrap();
            assert_eq!(
                &*verify(&message, &certificate).unwrap(),
                &*super::canonical(text)
            );
            assert_eq!(verify(&message, &other), Err(SignatureError::OtherKey));
        }
        // Times that take four digits of the year.
        let late = Timestamp::from_second(2_600_000_000).unwrap();
        let message = sign(LOG, &key, &certificate, late).unwrap();
        assert!(verify(&message, &certificate).is_ok());
    }
}

#[test]
fn keys_and_certificates_that_are_none_are_refused() {
    assert!(NodeCertificate::from_pem(LOG).is_err());
    assert!(NodeCertificate::from_der(&[0x30, 0x03, 0x02, 0x01, 0x00]).is_err());
    assert!(SigningKey::from_pem(NODE).is_err());
}

proptest! {
    #[test]
    fn no_changed_byte_of_the_text_is_accepted(at in 0..SIGNED_2018.len(), bits in 1_u8..) {
        let mut message = SIGNED_2018.to_vec();
        message[at] ^= bits;
        if let Ok(text) = verify(&message, &certificate(NODE)) {
            prop_assert_eq!(&*text, crlf(LOG_2018));
        }
    }

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let node = certificate(NODE);
        let mut message = b"Content-Type: application/pkcs7-mime\n\n".to_vec();
        message.extend_from_slice(&bytes);
        prop_assert!(verify(&message, &node).is_err());
        prop_assert!(super::SignedData::parse(&bytes).is_err());
        prop_assert!(NodeCertificate::from_der(&bytes).is_err());
    }
}

#[test]
fn what_was_checked_once_is_read_again() {
    let node = certificate(NODE);
    assert_eq!(text_of_checked(SIGNED), verify(SIGNED, &node));
    let opaque = certificate(OPAQUE_CERTIFICATE);
    assert_eq!(text_of_checked(OPAQUE), verify(OPAQUE, &opaque));
    assert!(text_of_checked(LOG).is_err());
}
