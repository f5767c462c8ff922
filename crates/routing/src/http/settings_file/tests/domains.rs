//! Domains whose clients must show a certificate.

use super::*;
use crate::http::identity::{CertificateFormat, MtlsDomain};
use crate::http::settings::ForwardedClientCert;

fn domain() -> MtlsDomain {
    MtlsDomain {
        name: "*.apps.internal".to_owned(),
        authorities: "PEM\n".to_owned(),
        client_cert: ForwardedClientCert::Forward,
        format: CertificateFormat::Envoy,
    }
}

#[test]
fn both_forms_have_them() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.pem"), "PEM\n").unwrap();
    let text = "listen_tls = \"127.0.0.1:0\"\n\
        [[client_tls.certificate]]\nchain = \"a.pem\"\nkey = \"a.pem\"\n\
        [[domain]]\nname = \"*.apps.internal\"\nauthorities = \"a.pem\"\n\
        client_cert = \"forward\"\nformat = \"envoy\"\n\
        [[domain]]\nname = \"own.example\"\nauthorities = \"a.pem\"\n";
    let own = read_toml(&source(text), folder.path()).unwrap();
    assert_eq!(own.settings.http.domains[0], domain());
    let second = &own.settings.http.domains[1];
    assert_eq!(second.client_cert, ForwardedClientCert::SanitizeSet);
    assert_eq!(second.format, CertificateFormat::Raw);

    let text = "enable_ssl: true\ntls_pem: [{cert_chain: a, private_key: b}]\ndomains:\n\
        - domain: '*.apps.internal'\n  ca_certs: \"PEM\\n\"\n  forwarded_client_cert: forward\n  \
        xfcc_format: envoy\n";
    assert_eq!(gorouter(text).unwrap().settings.http.domains, [domain()]);
}

#[test]
fn mistakes_in_them_are_told() {
    let tls = "enable_ssl: true\ntls_pem: [{cert_chain: a, private_key: b}]\n";
    for (rest, expected) in [
        ("domains: [{domain: a}]", "expected authorities of client"),
        (
            "domains: [{domain: 'a.*', ca_certs: p}]",
            "domain 1 (\"a.*\"): expected a name",
        ),
        (
            "domains: [{domain: a, ca_certs: p}, {domain: A, ca_certs: p}]",
            "expected each domain once",
        ),
        (
            "domains: [{domain: a, ca_certs: p, xfcc_format: pem}]",
            "expected one of raw, envoy, found \"pem\"",
        ),
        (
            "domains: [{domain: a, ca_cert: p}]",
            "did you mean \"ca_certs\"?",
        ),
    ] {
        let problems = gorouter(&format!("{tls}{rest}")).unwrap_err().to_string();
        assert!(problems.contains(expected), "{problems}\nlacks {expected}");
    }
    let problems = gorouter("domains: [{domain: a, ca_certs: p}]").unwrap_err();
    let problems = problems.to_string();
    assert!(problems.contains("enable_ssl beside domains"), "{problems}");
    let problems = toml("[[domain]]\nname = \"a\"").unwrap_err().to_string();
    assert!(problems.contains("expected authorities"), "{problems}");
}
