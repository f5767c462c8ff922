//! Cipher suites by their names.

use rustls::SupportedCipherSuite;
use rustls::crypto::aws_lc_rs;

/// The suite of TLS 1.2 that a name means, in IANA's spelling; `None`: it is not offered here.
/// Both `ECDHE-RSA-AES128-GCM-SHA256` (OpenSSL) and `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`
/// (IANA) are names. Only suites with forward secrecy and an AEAD are offered.
pub fn cipher_suite(name: &str) -> Option<&'static str> {
    of_tls12()
        .filter_map(|suite| suite.suite().as_str())
        .find(|known| *known == name || openssl(known).as_deref() == Some(name))
}

/// Suites for these names, and all of TLS 1.3, whose suites nobody chooses.
pub(super) fn chosen(names: &[String]) -> Vec<SupportedCipherSuite> {
    aws_lc_rs::ALL_CIPHER_SUITES
        .iter()
        .filter(|suite| {
            let name = suite.suite().as_str().unwrap_or_default();
            suite.tls13().is_some() || names.iter().any(|wanted| wanted == name)
        })
        .copied()
        .collect()
}

fn of_tls12() -> impl Iterator<Item = &'static SupportedCipherSuite> {
    aws_lc_rs::ALL_CIPHER_SUITES
        .iter()
        .filter(|suite| suite.tls13().is_none())
}

/// `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` as `ECDHE-RSA-AES128-GCM-SHA256`.
fn openssl(iana: &str) -> Option<String> {
    let (exchange, cipher) = iana.strip_prefix("TLS_")?.split_once("_WITH_")?;
    // ChaCha20 has one hash, which OpenSSL does not name.
    let cipher = cipher.replace("AES_", "AES");
    let cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305");
    Some(format!("{exchange}_{cipher}").replace('_', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_have_two_names() {
        for (name, expected) in [
            (
                "ECDHE-RSA-AES128-GCM-SHA256",
                Some("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
            ),
            (
                "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
                Some("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
            ),
            (
                "ECDHE-ECDSA-CHACHA20-POLY1305",
                Some("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
            ),
            ("ECDHE-RSA-AES128-SHA", None),
            ("AES128-GCM-SHA256", None),
            ("TLS13_AES_128_GCM_SHA256", None),
            ("", None),
        ] {
            assert_eq!(cipher_suite(name), expected, "{name}");
        }
    }
}
