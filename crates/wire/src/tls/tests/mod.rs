use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use proptest::prelude::*;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};

use super::*;
use crate::poller::{Interest, Poller};
use crate::socket;
use crate::stream::{Received, Stream, StreamError};

mod certificates;

/// An authority of one test.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        Self::named("authority")
    }

    fn named(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    /// A certificate for names, with its key.
    fn sign(&self, names: &[&str]) -> (String, String) {
        self.sign_until(names, 2090)
    }

    fn sign_until(&self, names: &[&str], year: i32) -> (String, String) {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        params.not_after = date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

fn der(pem: &str) -> Vec<u8> {
    use rustls::pki_types::pem::PemObject as _;
    rustls::pki_types::CertificateDer::from_pem_slice(pem.as_bytes())
        .unwrap()
        .to_vec()
}

/// Both ends of a TCP connection.
fn pair() -> (OwnedFd, OwnedFd) {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = socket::listen_tcp(any, 8, false).unwrap();
    let near = socket::connect_tcp(socket::local_address(&listener).unwrap()).unwrap();
    let mut poller = Poller::new().unwrap();
    poller.add(&listener, 0, Interest::Read).unwrap();
    poller.wait(Some(Duration::from_secs(10))).unwrap();
    let (far, _) = socket::accept(&listener).unwrap().unwrap();
    (near, far)
}

fn stream(tls: Result<TlsStream, StreamError>) -> Stream {
    Stream::Tls(Box::new(tls.unwrap()))
}

type Ended = Result<(), StreamError>;

/// Goes on with both ends until both have shaken hands or failed; how each ended. A client
/// of TLS 1.3 hears of a refusal only behind its own handshake, so each then reads a byte
/// that the other one sends.
fn shake(client: &mut Stream, server: &mut Stream) -> (Ended, Ended) {
    let mut poller = Poller::new().unwrap();
    poller.add(&*client, 0, Interest::Read).unwrap();
    poller.add(&*server, 1, Interest::Read).unwrap();
    let mut ended: [Option<Ended>; 2] = [None, None];
    let mut sent = [false, false];
    for _ in 0..1000 {
        for (side, end) in [&mut *client, &mut *server].into_iter().enumerate() {
            if ended[side].is_none() {
                ended[side] = step(end, &mut sent[side]).transpose();
            }
        }
        match &ended {
            [Some(client), Some(server)] => return (client.clone(), server.clone()),
            // A failed side is gone for the other one.
            [Some(Err(_)), None] => drop(rustix::net::shutdown(
                client.socket().unwrap(),
                rustix::net::Shutdown::Write,
            )),
            [None, Some(Err(_))] => drop(rustix::net::shutdown(
                server.socket().unwrap(),
                rustix::net::Shutdown::Write,
            )),
            _ => {}
        }
        poller.wait(Some(Duration::from_millis(20))).unwrap();
    }
    panic!("no end: {ended:?}");
}

fn step(end: &mut Stream, sent: &mut bool) -> Result<Option<()>, StreamError> {
    if !end.handshake()? {
        return Ok(None);
    }
    if !*sent {
        assert_eq!(end.send(b"x")?, 1);
        *sent = true;
    }
    match end.receive(&mut [0])? {
        Received::Bytes(_) => Ok(Some(())),
        Received::Nothing => Ok(None),
        Received::End => Err(rustix::io::Errno::PIPE.into()),
    }
}

/// A server and a client that trusts its authority.
fn both(
    options: &TlsServerOptions<'_>,
    authority: &str,
    (certificate, key): (&str, &str),
) -> (TlsServer, TlsClient) {
    let server = TlsServer::new(options).unwrap();
    let client = TlsOptions {
        authorities: authority,
        certificate,
        key,
        ..TlsOptions::default()
    };
    (server, TlsClient::new("a.example", &client).unwrap())
}

fn failure(ended: Ended) -> TlsFailure {
    ended.unwrap_err().tls_failure().unwrap()
}

#[test]
fn a_client_is_shown_the_certificate_that_fits_best() {
    let authority = Authority::new();
    let certificates = [
        authority.sign(&["first.example"]),
        authority.sign(&["*.wild.example", "b.example"]),
        authority.sign(&["exact.wild.example"]),
    ];
    for tls13 in [false, true] {
        let options = TlsServerOptions {
            certificates: &certificates,
            tls13,
            ..TlsServerOptions::default()
        };
        let (server, client) = both(&options, &authority.pem, ("", ""));
        for (name, expected) in [
            ("first.example", Some(0)),
            ("x.wild.example", Some(1)),
            ("b.example", Some(1)),
            ("EXACT.wild.example", Some(2)),
            ("x.y.wild.example", None),
            ("wild.example", None),
        ] {
            let (near, far) = pair();
            let mut near = stream(client.begin_as(near, name));
            let mut far = stream(server.begin(far));
            let (seen, _) = shake(&mut near, &mut far);
            let Some(expected) = expected else {
                // No certificate has the name: the first one is shown.
                let proven = vec!["first.example".to_owned()];
                let expected = name.to_owned();
                assert_eq!(failure(seen), TlsFailure::OtherName { proven, expected });
                continue;
            };
            assert!(seen.is_ok(), "{name}: {seen:?}");
            let shown = near.tls().unwrap().peer_certificate().unwrap();
            assert_eq!(shown, der(&certificates[expected].0), "{name}");
            let asked = far.tls().unwrap().server_name().map(str::to_owned);
            assert_eq!(asked, Some(name.to_lowercase()));
            assert_eq!(far.tls().unwrap().peer_certificate(), None);
        }
    }
}

#[test]
fn clients_prove_themselves_as_far_as_they_must() {
    let (authority, stranger) = (Authority::new(), Authority::named("stranger"));
    let certificates = [authority.sign(&["a.example"])];
    let (known, unknown) = (authority.sign(&["me"]), stranger.sign(&["me"]));
    for tls13 in [false, true] {
        for (clients, own, expected) in [
            (ClientProof::None, Some(&known), Ok(false)),
            (ClientProof::Asked, None, Ok(false)),
            (ClientProof::Asked, Some(&known), Ok(true)),
            (
                ClientProof::Asked,
                Some(&unknown),
                Err(TlsFailure::AlertUnknownAuthority),
            ),
            (ClientProof::Required, Some(&known), Ok(true)),
            (
                ClientProof::Required,
                None,
                Err(match tls13 {
                    true => TlsFailure::AlertCertificateRequired,
                    false => TlsFailure::AlertHandshakeFailure,
                }),
            ),
        ] {
            let options = TlsServerOptions {
                certificates: &certificates,
                clients,
                client_authorities: &authority.pem,
                tls13,
                ..TlsServerOptions::default()
            };
            let own = own.map_or(("", ""), |(chain, key)| (chain, key));
            let (server, client) = both(&options, &authority.pem, own);
            let (near, far) = pair();
            let mut near = stream(client.begin(near));
            let mut far = stream(server.begin(far));
            let (seen, by_server) = shake(&mut near, &mut far);
            match expected {
                Ok(proven) => {
                    assert!(
                        seen.is_ok() && by_server.is_ok(),
                        "{clients:?} {seen:?} {by_server:?}"
                    );
                    let shown = far.tls().unwrap().peer_certificate();
                    assert_eq!(shown.map(<[u8]>::to_vec), proven.then(|| der(own.0)));
                }
                Err(expected) => {
                    // rustls says `certificate_required` in TLS 1.2 too.
                    let seen = failure(seen);
                    let required = clients == ClientProof::Required
                        && seen == TlsFailure::AlertCertificateRequired;
                    assert!(seen == expected || required, "{clients:?} {seen:?}");
                    assert!(by_server.is_err());
                }
            }
        }
    }
}

#[test]
fn failures_are_told_apart() {
    let (authority, stranger) = (Authority::new(), Authority::named("stranger"));
    let name = || TlsFailure::OtherName {
        proven: vec!["b.example".to_owned(), "*.c.example".to_owned()],
        expected: "a.example".to_owned(),
    };
    for (shown, expected) in [
        (authority.sign(&["b.example", "*.c.example"]), name()),
        // Both are wrong: the name is told, as Go does.
        (stranger.sign(&["b.example", "*.c.example"]), name()),
        (stranger.sign(&["a.example"]), TlsFailure::UnknownAuthority),
        // An authority of the same name with another key.
        (
            Authority::new().sign(&["a.example"]),
            TlsFailure::UnknownAuthority,
        ),
        (
            authority.sign_until(&["a.example"], 2001),
            TlsFailure::Expired,
        ),
    ] {
        let certificates = [shown];
        let options = TlsServerOptions {
            certificates: &certificates,
            tls13: true,
            ..TlsServerOptions::default()
        };
        let (server, client) = both(&options, &authority.pem, ("", ""));
        let (near, far) = pair();
        let (seen, by_server) = shake(
            &mut stream(client.begin(near)),
            &mut stream(server.begin(far)),
        );
        assert_eq!(failure(seen), expected);
        assert!(by_server.is_err());
    }
    // A server that speaks plain text.
    let (_, client) = both(
        &TlsServerOptions {
            certificates: &[authority.sign(&["a.example"])],
            ..TlsServerOptions::default()
        },
        &authority.pem,
        ("", ""),
    );
    let (near, far) = pair();
    rustix::io::write(&far, b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    let mut near = stream(client.begin(near));
    let mut poller = Poller::new().unwrap();
    poller.add(&near, 0, Interest::Read).unwrap();
    poller.wait(Some(Duration::from_secs(10))).unwrap();
    let error = near.handshake().unwrap_err();
    assert_eq!(error.tls_failure(), Some(TlsFailure::NotTls));
}

/// A certificate that signed itself: as rcgen makes it, and as `openssl req -x509` does,
/// which says of it that it is an authority.
fn self_signed(name: &str, is_ca: bool, until: i32) -> (String, String) {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.not_after = date_time_ymd(until, 1, 1);
    if is_ca {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    let key = KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

#[test]
fn a_server_may_show_the_certificate_that_was_given() {
    let seen = |shown: &(String, String), given: &str| {
        let certificates = [shown.clone()];
        let options = TlsServerOptions {
            certificates: &certificates,
            tls13: true,
            ..TlsServerOptions::default()
        };
        let (server, client) = both(&options, given, ("", ""));
        let (near, far) = pair();
        let mut far = stream(server.begin(far));
        shake(&mut stream(client.begin(near)), &mut far).0
    };
    let authority = Authority::new();
    for is_ca in [true, false] {
        let shown = self_signed("a.example", is_ca, 2090);
        assert!(seen(&shown, &shown.0).is_ok(), "authority: {is_ca}");
        let among_others = format!("{}{}", authority.pem, shown.0);
        assert!(seen(&shown, &among_others).is_ok());
        // The same names, another certificate.
        let other = self_signed("a.example", is_ca, 2090);
        assert!(seen(&shown, &other.0).is_err());
        let elsewhere = self_signed("b.example", is_ca, 2090);
        let failed = failure(seen(&elsewhere, &elsewhere.0));
        assert!(matches!(failed, TlsFailure::OtherName { .. }), "{failed:?}");
        let old = self_signed("a.example", is_ca, 2001);
        assert_eq!(failure(seen(&old, &old.0)), TlsFailure::Expired);
    }
    // One that an authority signed is as good as it is when given itself.
    let signed = authority.sign(&["a.example"]);
    assert!(seen(&signed, &signed.0).is_ok());
    assert!(seen(&signed, &Authority::named("stranger").pem).is_err());
}

#[test]
fn another_name_may_be_asked_for_than_is_proven() {
    let authority = Authority::new();
    let certificates = [authority.sign(&["proven.example"])];
    let options = TlsServerOptions {
        certificates: &certificates,
        tls13: true,
        ..TlsServerOptions::default()
    };
    let (server, client) = both(&options, &authority.pem, ("", ""));
    for (proven, good) in [("proven.example", true), ("asked.example", false)] {
        let (near, far) = pair();
        let mut near = stream(client.begin_asking(near, "asked.example", proven));
        let mut far = stream(server.begin(far));
        let (seen, _) = shake(&mut near, &mut far);
        assert_eq!(seen.is_ok(), good);
        assert_eq!(far.tls().unwrap().server_name(), Some("asked.example"));
    }
    // Where the authority is enough any name will do.
    for asked in ["", "asked.example"] {
        let (near, far) = pair();
        let mut near = stream(client.begin_with_any(near, asked));
        let mut far = stream(server.begin(far));
        assert!(shake(&mut near, &mut far).0.is_ok());
        assert_eq!(far.tls().unwrap().server_name().unwrap_or_default(), asked);
    }
    let (near, _) = pair();
    assert!(client.begin_as(near, "not a name").is_err());
}

#[test]
fn sessions_are_resumed_and_protocols_agreed_on() {
    let authority = Authority::new();
    let certificates = [authority.sign(&["a.example"])];
    for tls13 in [false, true] {
        let options = TlsServerOptions {
            certificates: &certificates,
            tls13,
            protocols: &["h2", "http/1.1"],
            ..TlsServerOptions::default()
        };
        let (server, client) = both(&options, &authority.pem, ("", ""));
        for (round, protocols) in [["http/1.1"], ["h2"]].iter().enumerate() {
            let (near, far) = pair();
            let mut near = stream(client.with_protocols(protocols).begin(near));
            let mut far = stream(server.begin(far));
            let (seen, _) = shake(&mut near, &mut far);
            assert!(seen.is_ok());
            assert_eq!(near.tls().unwrap().is_resumed(), round > 0);
            assert_eq!(far.protocol(), Some(protocols[0].as_bytes()));
        }
        let (near, far) = pair();
        let mut near = stream(client.with_protocols(&["h2"]).begin(near));
        let mut far = stream(server.with_protocols(&["x"]).begin(far));
        assert_eq!(
            failure(shake(&mut near, &mut far).0),
            TlsFailure::Alert(120)
        );
    }
}

#[test]
fn each_side_may_stop_to_send_first() {
    let authority = Authority::new();
    let certificates = [authority.sign(&["a.example"])];
    let options = TlsServerOptions {
        certificates: &certificates,
        ..TlsServerOptions::default()
    };
    let (server, client) = both(&options, &authority.pem, ("", ""));
    let (near, far) = pair();
    let mut near = stream(client.begin(near));
    let mut far = stream(server.begin(far));
    assert!(shake(&mut near, &mut far).0.is_ok());
    assert!(near.close_write().unwrap());
    let mut poller = Poller::new().unwrap();
    poller.add(&far, 0, Interest::Read).unwrap();
    poller.wait(Some(Duration::from_secs(10))).unwrap();
    assert_eq!(far.receive(&mut [0]).unwrap(), Received::End);
    // The other direction goes on.
    assert_eq!(far.send(b"y").unwrap(), 1);
    let mut poller = Poller::new().unwrap();
    poller.add(&near, 0, Interest::Read).unwrap();
    poller.wait(Some(Duration::from_secs(10))).unwrap();
    assert_eq!(near.receive(&mut [0]).unwrap(), Received::Bytes(1));
}

#[test]
fn options_that_are_none_are_refused() {
    let authority = Authority::new();
    let (chain, key) = authority.sign(&["a.example"]);
    let (_, other_key) = authority.sign(&["a.example"]);
    for certificates in [
        vec![],
        vec![("x".to_owned(), key.clone())],
        vec![(chain.clone(), "x".to_owned())],
        vec![(chain.clone(), other_key)],
    ] {
        let options = TlsServerOptions {
            certificates: &certificates,
            ..TlsServerOptions::default()
        };
        assert!(TlsServer::new(&options).is_err());
    }
    let options = TlsServerOptions {
        certificates: &[(chain, key)],
        clients: ClientProof::Required,
        client_authorities: "x",
        ..TlsServerOptions::default()
    };
    assert!(TlsServer::new(&options).is_err());
}

/// A name with a common name and organizational units.
fn name(common: &str, units: &[&str]) -> Subject {
    let mut attributes = vec![(Attribute::CommonName, common.to_owned())];
    for unit in units {
        attributes.push((Attribute::OrganizationalUnit, (*unit).to_owned()));
    }
    Subject::new(attributes)
}

/// A client's certificate with this subject.
fn of_subject(issuer: &Issuer<'_, KeyPair>, common: &str, unit: Option<&str>) -> (String, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    // The common name that rcgen gives by itself goes.
    params.distinguished_name = rcgen::DistinguishedName::new();
    if let Some(unit) = unit {
        params
            .distinguished_name
            .push(DnType::OrganizationalUnitName, unit);
    }
    params.distinguished_name.push(DnType::CommonName, common);
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, issuer).unwrap();
    (certificate.pem(), key.serialize_pem())
}

#[test]
fn clients_of_an_authority_must_have_an_allowed_subject() {
    let (ruled, free) = (Authority::named("ruled"), Authority::named("free"));
    // An authority below the one that the rule is about.
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, "between");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let between_pem = params.signed_by(&key, &ruled.issuer).unwrap().pem();
    let between = Issuer::new(params, key);
    let below = |common| {
        let (leaf, key) = of_subject(&between, common, Some("a"));
        (format!("{leaf}{between_pem}"), key)
    };
    let servers = [ruled.sign(&["a.example"])];
    let authorities = format!("{}{}", ruled.pem, free.pem);
    let rule = |issuer: Subject| SubjectRule {
        issuer,
        allowed: vec![name("good", &["a"]), name("other", &[])],
    };
    let of_ruled = Subject::of(&der(&ruled.pem)).unwrap();
    let rules = [rule(of_ruled)];
    assert!(check_subject_rules(&rules, &authorities).is_ok());
    let strange = check_subject_rules(&[rule(name("ruld", &[]))], &authorities);
    assert!(strange.unwrap_err().to_string().contains("ruld"));
    for tls13 in [false, true] {
        let options = TlsServerOptions {
            certificates: &servers,
            clients: ClientProof::Asked,
            client_authorities: &authorities,
            subject_rules: &rules,
            tls13,
            ..TlsServerOptions::default()
        };
        for (shown, good) in [
            (of_subject(&ruled.issuer, "good", Some("a")), true),
            (of_subject(&ruled.issuer, "other", None), true),
            (of_subject(&ruled.issuer, "good", Some("b")), false),
            (of_subject(&ruled.issuer, "good", None), false),
            (of_subject(&ruled.issuer, "bad", Some("a")), false),
            (of_subject(&free.issuer, "bad", None), true),
            (below("good"), true),
            (below("bad"), false),
            ((String::new(), String::new()), true),
        ] {
            let (server, client) = both(&options, &ruled.pem, (&shown.0, &shown.1));
            let (near, far) = pair();
            let mut near = stream(client.begin(near));
            let (_, by_server) = shake(&mut near, &mut stream(server.begin(far)));
            assert_eq!(by_server.is_ok(), good, "{}", shown.0);
        }
    }
}

#[test]
fn versions_and_suites_are_those_that_were_chosen() {
    let authority = Authority::new();
    let certificates = [authority.sign(&["a.example"])];
    let only = |version: &'static rustls::SupportedProtocolVersion| {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(der(&authority.pem).into()).unwrap();
        let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        std::sync::Arc::new(config)
    };
    let suite = |options: &TlsServerOptions<'_>, version| {
        let server = TlsServer::new(options).unwrap();
        let (near, far) = pair();
        let name = "a.example".try_into().unwrap();
        let client = rustls::ClientConnection::new(only(version), name).unwrap();
        let mut near = stream(Ok(TlsStream::new(near, client.into())));
        let mut far = stream(server.begin(far));
        let (seen, by_server) = shake(&mut near, &mut far);
        seen.ok()?;
        by_server.ok()?;
        let suite = far.tls().unwrap().cipher_suite()?;
        Some(suite.to_owned())
    };
    let (tls12, tls13) = (&rustls::version::TLS12, &rustls::version::TLS13);
    let open = TlsServerOptions {
        certificates: &certificates,
        tls13: true,
        ..TlsServerOptions::default()
    };
    assert!(suite(&open, tls12).is_some() && suite(&open, tls13).is_some());
    let strict = TlsServerOptions {
        only_tls13: true,
        ..open
    };
    assert!(suite(&strict, tls12).is_none() && suite(&strict, tls13).is_some());
    let named = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256".to_owned();
    let chosen = TlsServerOptions {
        cipher_suites: std::slice::from_ref(&named),
        ..open
    };
    assert_eq!(suite(&chosen, tls12), Some(named.clone()));
    assert!(suite(&chosen, tls13).unwrap().starts_with("TLS13_"));
    // None for this kind of certificate.
    let rsa = ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256".to_owned()];
    let other = TlsServerOptions {
        cipher_suites: &rsa,
        ..open
    };
    assert_eq!(suite(&other, tls12), None);
}

/// The first message of a client, as rustls writes it.
fn hello(name: &str) -> Vec<u8> {
    let options = TlsOptions {
        insecure: true,
        ..TlsOptions::default()
    };
    let (near, far) = pair();
    let mut near = stream(TlsClient::new(name, &options).unwrap().begin(near));
    assert!(!near.handshake().unwrap());
    let mut poller = Poller::new().unwrap();
    poller.add(&far, 0, Interest::Read).unwrap();
    poller.wait(Some(Duration::from_secs(10))).unwrap();
    let mut bytes = vec![0; 4096];
    let length = rustix::io::read(&far, &mut bytes).unwrap();
    bytes.truncate(length);
    bytes
}

#[test]
fn the_name_in_a_hello_is_found_however_it_comes() {
    let bytes = hello("Some.Name.example");
    let name = Hello::Name("some.name.example".to_owned());
    assert_eq!(client_hello_name(&bytes), name);
    for cut in 0..bytes.len() {
        assert_eq!(client_hello_name(&bytes[..cut]), Hello::NeedMore, "{cut}");
    }
    // What follows does not matter; records may be as short as they like.
    let more = [&bytes[..], b"\x14\x03\x03\0\x01\x01"].concat();
    assert_eq!(client_hello_name(&more), name);
    let split: Vec<u8> = bytes[5..]
        .chunks(7)
        .flat_map(|part| [&[0x16, 3, 1, 0, part.len() as u8], part].concat())
        .collect();
    assert_eq!(client_hello_name(&split), name);
    assert_eq!(client_hello_name(&hello("192.0.2.1")), Hello::NoName);
}

#[test]
fn what_is_no_hello_is_told() {
    for bytes in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"\x16\x02",
        b"\x16\x03\x01\0\0",
        b"\x16\x03\x01\0\x04\x02\0\0\0",
        b"\x16\x03\x01\0\x04\x01\0\0\0",
        b"\x16\x03\x01\xff\xff",
        b"\x16\x03\x01\0\x04\x01\xff\0\0",
        b"\x15\x03\x01\0\x02\x02\x28",
    ] {
        assert_eq!(client_hello_name(bytes), Hello::NotTls, "{bytes:?}");
    }
    // Longer than anybody needs.
    let mut long = b"\x16\x03\x01\x3f\xff\x01\0\x3f\xfb".to_vec();
    long.resize(MOST_HELLO, 0);
    assert_eq!(client_hello_name(&long), Hello::NotTls);
}

proptest! {
    /// No bytes make it panic, and what is found is found again with more behind it.
    #[test]
    fn any_bytes_may_come(at in any::<prop::sample::Index>(), with: u8, cut in any::<prop::sample::Index>()) {
        // Record of a hello with an empty session, one cipher and the name `a.b`.
        let mut bytes = b"\x16\x03\x01\0\x39\x01\0\0\x35\x03\x03".to_vec();
        bytes.extend([7; 32]);
        bytes.extend(b"\0\0\x02\x13\x01\x01\0\0\x0c\0\0\0\x08\0\x06\0\0\x03a.b");
        let at = at.index(bytes.len());
        bytes[at] = with;
        let found = client_hello_name(&bytes[..cut.index(bytes.len() + 1)]);
        if matches!(found, Hello::Name(_) | Hello::NoName) {
            prop_assert_eq!(client_hello_name(&bytes), found);
        }
    }
}
