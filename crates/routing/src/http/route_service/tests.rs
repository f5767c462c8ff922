use rand::SeedableRng as _;
use rand::rngs::StdRng;

use super::*;

const MINUTE: Duration = Duration::from_secs(60);
const NOW: u64 = 1_795_249_040_286_360_016;

fn signed(signer: &Signer, url: &str) -> (String, String) {
    let mut random = StdRng::seed_from_u64(1);
    signer.sign(url.as_bytes(), NOW, &mut random).unwrap()
}

fn verify(
    signer: &Signer,
    signature: &str,
    metadata: &str,
    wall: u64,
) -> Result<String, SignatureError> {
    signer.verify(signature.as_bytes(), metadata.as_bytes(), wall, MINUTE)
}

#[test]
fn what_was_signed_is_verified_until_it_expires() {
    let signer = Signer::new("secret", "").unwrap();
    let (signature, metadata) = signed(&signer, "https://a.ex.com/p?x=a%20b+c");
    let plain = "https://a.ex.com/p?x=a%20b+c".to_owned();
    assert_eq!(
        verify(&signer, &signature, &metadata, NOW),
        Ok(plain.clone())
    );
    let later = NOW + 60_000_000_000;
    assert_eq!(
        verify(&signer, &signature, &metadata, later),
        Ok(plain.clone())
    );
    let expired = verify(&signer, &signature, &metadata, later + 1);
    assert_eq!(expired, Err(SignatureError::Expired));

    let rotated = Signer::new("new", "secret").unwrap();
    assert_eq!(verify(&rotated, &signature, &metadata, NOW), Ok(plain));
    let other = Signer::new("new", "other").unwrap();
    assert_eq!(
        verify(&other, &signature, &metadata, NOW),
        Err(SignatureError::Seal)
    );
}

#[test]
fn every_changed_byte_is_noticed() {
    let signer = Signer::new("secret", "").unwrap();
    let (signature, metadata) = signed(&signer, "https://a.ex.com/");
    for at in 0..signature.len() {
        let mut changed = signature.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        assert!(
            verify(&signer, &changed, &metadata, NOW).is_err(),
            "byte {at}"
        );
    }
}

#[test]
fn errors_are_worded_as_in_go() {
    let signer = Signer::new("secret", "").unwrap();
    let (signature, metadata) = signed(&signer, "https://a.ex.com/");
    let error = |signature: &str, metadata: &str| {
        verify(&signer, signature, metadata, NOW)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(error(&signature, ""), "No metadata found");
    assert_eq!(
        error(&signature, "x"),
        "illegal base64 data at input byte 0"
    );
    assert_eq!(
        error(&signature, "abcd!efg"),
        "illegal base64 data at input byte 4"
    );
    assert_eq!(
        error("abcdef", &metadata),
        "illegal base64 data at input byte 4"
    );
    // An empty document within `{`.
    assert_eq!(error(&signature, "ew=="), "unexpected end of JSON input");
    let short = URL_SAFE.encode(r#"{"nonce":"AAAA"}"#);
    assert_eq!(error(&signature, &short), "incorrect nonce length");
    for (document, expected) in [(" garbage", "g"), ("'", r"\'"), ("\x01", r"\x01")] {
        let expected = format!("invalid character '{expected}' looking for beginning of value");
        assert_eq!(error(&signature, &URL_SAFE.encode(document)), expected);
    }
}

#[test]
fn the_key_is_that_of_other_routers() {
    // PBKDF2 with HMAC-SHA-256 over "secret", no salt, 100,001 rounds, 16 bytes, as Python's
    // hashlib.pbkdf2_hmac gives it.
    let mut key = [0; 16];
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, ROUNDS, &[], b"secret", &mut key);
    assert_eq!(key, KNOWN_KEY);
}

const KNOWN_KEY: [u8; 16] = [
    0x1f, 0x2b, 0x6e, 0x61, 0x3f, 0x70, 0x4b, 0x5c, 0x56, 0x02, 0xc4, 0x6b, 0xa1, 0xab, 0x02, 0xa7,
];
