//! Certificates that are unusual, or of no use in one way each.

use rcgen::{CustomExtension, SanType};
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

use super::*;
use crate::tls::der::{SEQUENCE, content, element};
use crate::tls::verify::{Accepted, Trust, Verifier};

/// Parameters of a certificate for names, to be made worse.
fn params(names: &[&str]) -> CertificateParams {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.not_after = date_time_ymd(2090, 1, 1);
    params
}

fn authority_too(names: &[&str]) -> CertificateParams {
    let mut params = params(names);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params
}

impl Authority {
    fn sign_params(&self, params: &CertificateParams) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    /// An authority below this one, with its key.
    fn intermediate(&self, name: &str, constraints: BasicConstraints) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(constraints);
        let key = KeyPair::generate().unwrap();
        let pem = params.signed_by(&key, &self.issuer).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Self { issuer, pem }
    }
}

/// What a client that trusts `authority` says of a server that shows `shown`, as it is and
/// between the two ends of a handshake.
fn server_shows(shown: &(String, String), authority: &str) -> Result<(), TlsFailure> {
    let certificates = [shown.clone()];
    let options = TlsServerOptions {
        certificates: &certificates,
        tls13: true,
        ..TlsServerOptions::default()
    };
    let (server, client) = both(&options, authority, ("", ""));
    let (near, far) = pair();
    let mut far = stream(server.begin(far));
    shake(&mut stream(client.begin(near)), &mut far)
        .0
        .map_err(|error| error.tls_failure().unwrap())
}

/// Whether a server that trusts `authorities` lets in a client that shows `shown`.
fn client_shows(shown: &(String, String), authorities: &str) -> bool {
    let own = Authority::named("server's");
    let certificates = [own.sign(&["a.example"])];
    let mut let_in = Vec::new();
    for tls13 in [false, true] {
        let options = TlsServerOptions {
            certificates: &certificates,
            clients: ClientProof::Required,
            client_authorities: authorities,
            tls13,
            ..TlsServerOptions::default()
        };
        let (server, client) = both(&options, &own.pem, (&shown.0, &shown.1));
        let (near, far) = pair();
        let mut far = stream(server.begin(far));
        let (seen, by_server) = shake(&mut stream(client.begin(near)), &mut far);
        assert_eq!(seen.is_ok(), by_server.is_ok());
        let_in.push(seen.is_ok());
    }
    assert_eq!(let_in[0], let_in[1]);
    let_in[0]
}

/// The same of a certificate that a server of ours could not show.
fn verified(der: &[u8], authority: &str) -> Result<(), TlsFailure> {
    let algorithms = default_provider().signature_verification_algorithms;
    let trust = Trust::new("authorities", authority, false, algorithms).unwrap();
    let verifier = Verifier {
        accepted: Accepted::Proven(trust, None),
        algorithms,
    };
    let name = ServerName::try_from("a.example").unwrap();
    let der = CertificateDer::from(der);
    verifier
        .verify_server_cert(&der, &[], &name, &[], UnixTime::now())
        .map(drop)
        .map_err(|error| TlsFailure::from(&error))
}

fn other_name(proven: &[&str]) -> TlsFailure {
    TlsFailure::OtherName {
        proven: proven.iter().map(|name| (*name).to_owned()).collect(),
        expected: "a.example".to_owned(),
    }
}

#[test]
fn one_that_says_that_it_is_an_authority_is_checked_as_any_other() {
    let (authority, stranger) = (Authority::new(), Authority::named("stranger"));
    let sign = |params: &CertificateParams| authority.sign_params(params);
    let mut expired = authority_too(&["a.example"]);
    expired.not_after = date_time_ymd(2001, 1, 1);
    let mut clients_only = authority_too(&["a.example"]);
    clients_only.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    // Of the same name as a trusted one, with another key.
    let forged = Authority::new().sign_params(&authority_too(&["a.example"]));
    let foreign = stranger.sign_params(&authority_too(&["a.example"]));
    for (shown, expected) in [
        (sign(&authority_too(&["a.example"])), Ok(())),
        (
            sign(&authority_too(&["b.example"])),
            Err(other_name(&["b.example"])),
        ),
        (sign(&expired), Err(TlsFailure::Expired)),
        (sign(&clients_only), Err(TlsFailure::WrongUsage)),
        (forged, Err(TlsFailure::UnknownAuthority)),
        (foreign, Err(TlsFailure::UnknownAuthority)),
    ] {
        assert_eq!(server_shows(&shown, &authority.pem), expected);
    }
}

#[test]
fn one_with_intermediates_is_checked_along_the_whole_way() {
    let authority = Authority::new();
    let between = authority.intermediate("between", BasicConstraints::Unconstrained);
    let chained = |leaf: (String, String), chain: &[&Authority]| {
        let chain: String = chain.iter().map(|one| one.pem.as_str()).collect();
        (leaf.0 + &chain, leaf.1)
    };
    let leaf = || between.sign_params(&authority_too(&["a.example"]));
    assert_eq!(
        server_shows(&chained(leaf(), &[&between]), &authority.pem),
        Ok(())
    );
    assert_eq!(
        server_shows(&leaf(), &authority.pem),
        Err(TlsFailure::UnknownAuthority)
    );
    // An authority that allows none below itself still signs for those who are asked.
    let last = authority.intermediate("last", BasicConstraints::Constrained(0));
    let leaf = last.sign_params(&authority_too(&["a.example"]));
    assert_eq!(
        server_shows(&chained(leaf, &[&last]), &authority.pem),
        Ok(())
    );
    let beyond = last.intermediate("beyond", BasicConstraints::Unconstrained);
    let leaf = beyond.sign_params(&params(&["a.example"]));
    assert_eq!(
        server_shows(&chained(leaf, &[&beyond, &last]), &authority.pem),
        Err(TlsFailure::TooManyIntermediates)
    );
}

#[test]
fn each_flaw_is_told_as_what_it_is() {
    let (authority, stranger) = (Authority::new(), Authority::named("stranger"));
    let mut clients_only = params(&["a.example"]);
    clients_only.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let mut clients_elsewhere = params(&["b.example"]);
    clients_elsewhere.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let named = |common_name: &str| {
        let mut params = params(&[]);
        params
            .distinguished_name
            .push(DnType::CommonName, common_name);
        params
    };
    let mut address = named("a.example");
    let ip = std::net::Ipv4Addr::LOCALHOST.into();
    address.subject_alt_names.push(SanType::IpAddress(ip));
    for (params, expected) in [
        (params(&["a.example"]), Ok(())),
        (clients_only.clone(), Err(TlsFailure::WrongUsage)),
        (clients_elsewhere, Err(other_name(&["b.example"]))),
        (named("a.example"), Err(TlsFailure::CommonNameOnly)),
        (named("*.example"), Err(TlsFailure::CommonNameOnly)),
        (named("else"), Err(other_name(&[]))),
        (address, Err(other_name(&[]))),
    ] {
        let shown = authority.sign_params(&params);
        assert_eq!(server_shows(&shown, &authority.pem), expected, "{params:?}");
    }
    // Who signed it is told before what it is for.
    assert_eq!(
        server_shows(&stranger.sign_params(&clients_only), &authority.pem),
        Err(TlsFailure::UnknownAuthority)
    );
    // The very certificate that was given is for no other use either.
    let given = authority.sign_params(&clients_only);
    assert_eq!(server_shows(&given, &given.0), Err(TlsFailure::WrongUsage));
}

/// A certificate as version 1 has it: without its version and its extensions.
fn of_version_1(der: &[u8]) -> Vec<u8> {
    let wrap = |tag: u8, content: &[u8]| {
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        assert!(length[0] > 0);
        [&[tag, 0x82], &length[..], content].concat()
    };
    let mut rest = content(&mut &*der, SEQUENCE).unwrap();
    let mut fields = content(&mut rest, SEQUENCE).unwrap();
    let mut kept = Vec::new();
    while !fields.is_empty() {
        let before = fields;
        let (tag, _) = element(&mut fields).unwrap();
        if ![0xa0, 0xa3].contains(&tag) {
            kept.extend_from_slice(&before[..before.len() - fields.len()]);
        }
    }
    let mut all = match kept.len() {
        256.. => wrap(SEQUENCE, &kept),
        length => [&[SEQUENCE, 0x81, length as u8], &kept[..]].concat(),
    };
    all.extend_from_slice(rest);
    wrap(SEQUENCE, &all)
}

#[test]
fn what_no_server_of_ours_would_show_is_told_too() {
    let authority = Authority::new();
    let mut unknown = params(&["a.example"]);
    let mut extension = CustomExtension::from_oid_content(&[1, 2, 3, 4], vec![5, 0]);
    unknown.custom_extensions = vec![extension.clone()];
    let seen = |params: &CertificateParams| {
        verified(&der(&authority.sign_params(params).0), &authority.pem)
    };
    assert_eq!(seen(&unknown), Ok(()), "it need not be understood");
    extension.set_criticality(true);
    unknown.custom_extensions = vec![extension];
    assert_eq!(seen(&unknown), Err(TlsFailure::CriticalExtension));
    let mut old = params(&["a.example"]);
    old.distinguished_name.push(DnType::CommonName, "a.example");
    let old = of_version_1(&der(&authority.sign_params(&old).0));
    assert_eq!(
        verified(&old, &authority.pem),
        Err(TlsFailure::CommonNameOnly)
    );
    let mut old = params(&["a.example"]);
    old.distinguished_name.push(DnType::CommonName, "b.example");
    let old = of_version_1(&der(&authority.sign_params(&old).0));
    assert_eq!(verified(&old, &authority.pem), Err(other_name(&[])));
    assert_eq!(
        verified(b"no certificate", &authority.pem),
        Err(TlsFailure::BadCertificate)
    );
}

#[test]
fn clients_may_show_what_was_given_and_be_authorities() {
    let (authority, stranger) = (Authority::new(), Authority::named("stranger"));
    let own = self_signed("me", true, 2090);
    let plain = self_signed("me", false, 2090);
    let trusted = format!("{}{}{}", authority.pem, own.0, plain.0);
    for shown in [
        own,
        plain,
        authority.sign_params(&authority_too(&["me"])),
        authority.sign_params(&params(&["me"])),
    ] {
        assert!(client_shows(&shown, &trusted));
    }
    let old = self_signed("me", true, 2001);
    let mut servers_only = authority_too(&["me"]);
    servers_only.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    for shown in [
        self_signed("me", true, 2090),
        self_signed("me", false, 2090),
        stranger.sign_params(&authority_too(&["me"])),
        Authority::new().sign_params(&authority_too(&["me"])),
        authority.sign_params(&servers_only),
    ] {
        assert!(!client_shows(&shown, &trusted));
    }
    assert!(!client_shows(&old, &old.0));
}
