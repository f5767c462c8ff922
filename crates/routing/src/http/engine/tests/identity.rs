//! Domains whose clients prove themselves, over real TLS.

use std::io::{self, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, OnceLock};

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use tokio_rustls::TlsConnector;

use super::bench::{Backend, Bench, PATIENCE, Seen, nobody, ok, read_message};
use super::http2::run;
use super::tls::{Authority, TlsClient, parsed};
use crate::http::identity::{CertificateFormat, MtlsDomain};
use crate::http::settings::{ExtraField, HttpSettings};
use crate::table::{Endpoint, PoolSettings, RouteKey};

/// A router with the domain `*.apps.internal`, and `public.test` beside it.
struct Platform {
    bench: Bench,
    /// Signs the router's certificates.
    web: Authority,
    /// Signs those of instances.
    instances: Authority,
}

/// A certificate with its key, PEM.
type Certificate = (String, String);

impl Platform {
    /// Whose routes lead to a backend that answers with the certificate that it was told.
    fn new(backend: SocketAddr, format: CertificateFormat) -> Self {
        Self::with(backend, format, |_| {})
    }

    fn with(
        backend: SocketAddr,
        format: CertificateFormat,
        change: impl FnOnce(&mut HttpSettings),
    ) -> Self {
        let (web, instances) = (Authority::new(), Authority::new());
        let bench = Bench::with(&[], |settings| {
            settings.listen_tls = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
            settings.client_tls.certificates = ["public.test", "*.apps.internal", "localhost"]
                .map(|name| web.sign(name))
                .into();
            settings.backends.authorities = web.pem();
            settings.client_tls.tls13 = true;
            settings.domains = vec![MtlsDomain {
                name: "*.apps.internal".to_owned(),
                authorities: instances.pem(),
                format,
                ..MtlsDomain::default()
            }];
            change(settings);
        });
        for (uri, scope, policies) in [
            ("public.test", "", ""),
            ("guarded.test", "any", "cf:any"),
            ("open.apps.internal", "", ""),
            ("named.apps.internal", "any", "cf:app:a1"),
            ("near.apps.internal", "space", "cf:any"),
            ("closed.apps.internal", "any", ""),
        ] {
            let space = ("space_id".into(), "s1".into());
            let endpoint = Endpoint {
                identity: backend.to_string().into(),
                tags: Some([space].into_iter().collect()),
                ..Endpoint::default()
            };
            let pool = PoolSettings {
                policy_scope: scope.into(),
                policies: policies.into(),
                ..PoolSettings::default()
            };
            let key = RouteKey::new(uri).unwrap();
            bench.table.register(&key, endpoint, &pool, 0);
        }
        Self {
            bench,
            web,
            instances,
        }
    }

    /// One more route; callers named: only those may call it.
    fn route(&self, uri: &str, backend: SocketAddr, service: &str, callers: &str) {
        let endpoint = Endpoint {
            identity: backend.to_string().into(),
            ..Endpoint::default()
        };
        let pool = PoolSettings {
            route_service_url: service.into(),
            policy_scope: if callers.is_empty() { "" } else { "any" }.into(),
            policies: callers.into(),
            ..PoolSettings::default()
        };
        let key = RouteKey::new(uri).unwrap();
        self.bench.table.register(&key, endpoint, &pool, 0);
    }

    fn instance(&self, app: &str, space: &str) -> Certificate {
        self.instances.sign_subject(&instance(app, space))
    }

    fn config(&self, certificate: Option<&Certificate>) -> ClientConfig {
        let client = self.web.client();
        match certificate.map(parsed) {
            None => client.with_no_client_auth(),
            Some((chain, key)) => client.with_client_auth_cert(chain, key).unwrap(),
        }
    }

    /// Shakes hands for a name.
    fn connect(&self, name: &str, certificate: Option<&Certificate>) -> Tls {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let tls = ClientConnection::new(Arc::new(self.config(certificate)), name).unwrap();
        let socket = TcpStream::connect(self.bench.engine.tls_address().unwrap()).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_nodelay(true).unwrap();
        Tls(BufReader::new(StreamOwned::new(tls, socket)))
    }

    /// What a host answers within TLS for a name.
    fn ask(&self, name: &str, certificate: Option<&Certificate>, host: &str) -> Seen {
        self.connect(name, certificate).ask(host).unwrap()
    }
}

struct Tls(TlsClient);

impl Tls {
    fn ask(&mut self, host: &str) -> Result<Seen, String> {
        let request =
            format!("GET / HTTP/1.1\r\nHost: {host}\r\nX-Forwarded-Client-Cert: me\r\n\r\n");
        let sent = self.0.get_mut().write_all(request.as_bytes());
        sent.map_err(|error| error.to_string())?;
        read_message(&mut self.0, false)
    }
}

fn instance(app: &str, space: &str) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, "instance");
    subject.push(DnType::OrganizationalUnitName, format!("app:{app}"));
    // The same kind once more: rcgen keeps one value of each.
    let unit = DnType::CustomDnType(vec![2, 5, 4, 11]);
    subject.push(unit, format!("space:{space}"));
    subject
}

fn telling() -> Backend {
    Backend::answering(|asked| {
        let told = asked.message.field("x-forwarded-client-cert");
        ok(told.unwrap_or("nothing").as_bytes())
    })
}

#[test]
fn callers_reach_what_lets_them_in() {
    let backend = telling();
    let platform = Platform::new(backend.address, CertificateFormat::Envoy);
    let known = platform.instance("a1", "s1");
    let stranger = platform.instance("a2", "s2");
    for (host, who, status, error) in [
        ("open.apps.internal", &known, 200, None),
        ("OPEN.apps.internal:8443", &stranger, 200, None),
        ("named.apps.internal", &known, 200, None),
        (
            "named.apps.internal",
            &stranger,
            403,
            Some("caller_not_in_policies"),
        ),
        ("near.apps.internal", &known, 200, None),
        (
            "near.apps.internal",
            &stranger,
            403,
            Some("caller_out_of_scope"),
        ),
        (
            "closed.apps.internal",
            &known,
            403,
            Some("route_without_policies"),
        ),
        ("missing.apps.internal", &known, 404, Some("unknown_route")),
    ] {
        let seen = platform.ask("x.apps.internal", Some(who), host);
        assert_eq!(seen.status, status, "{host}");
        assert_eq!(seen.field("x-cf-routererror"), error, "{host}");
        if status == 403 {
            assert_eq!(seen.body, b"", "{host}");
        }
    }
    let seen = platform.ask("x.apps.internal", Some(&known), "open.apps.internal");
    let told = String::from_utf8(seen.body).unwrap();
    assert!(told.starts_with("Hash="), "{told}");
    assert!(
        told.ends_with("Subject=\"CN=instance,OU=app:a1,OU=space:s1\""),
        "{told}"
    );
    // A connection goes on behind a refusal.
    let mut client = platform.connect("x.apps.internal", Some(&stranger));
    assert_eq!(client.ask("named.apps.internal").unwrap().status, 403);
    assert_eq!(client.ask("open.apps.internal").unwrap().status, 200);
}

#[test]
fn the_log_says_who_called() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let backend = telling();
    let platform = Platform::with(backend.address, CertificateFormat::Envoy, |settings| {
        settings.access_log.file = Some(path.clone());
    });
    let stranger = platform.instance("a2", "s2");
    platform.ask("x.apps.internal", Some(&stranger), "named.apps.internal");
    platform.ask("public.test", None, "open.apps.internal");
    drop(platform);
    let log = std::fs::read_to_string(path).unwrap();
    let ends = [
        "x_cf_routererror:\"caller_not_in_policies\" tls_sni:\"x.apps.internal\" \
         caller_cf_app:\"a2\" caller_cf_space:\"s2\" caller_cf_org:\"-\"",
        "x_cf_routererror:\"misdirected_request\" tls_sni:\"public.test\" \
         caller_cf_app:\"-\" caller_cf_space:\"-\" caller_cf_org:\"-\"",
    ];
    assert_eq!(log.lines().count(), 2);
    for (line, end) in log.lines().zip(ends) {
        assert!(line.ends_with(end), "{line}");
    }
    // The application whose route it is hears of the one that was turned away.
    let address = backend.address.to_string();
    assert!(log.lines().next().unwrap().contains(&address), "{log}");
}

#[test]
fn what_the_log_says_of_callers_can_be_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let backend = telling();
    let platform = Platform::with(backend.address, CertificateFormat::Envoy, |settings| {
        settings.access_log.file = Some(path.clone());
        settings.access_log.extra_fields = vec![ExtraField::RoutePolicy, ExtraField::CallerApp];
    });
    let known = platform.instance("a1", "s1");
    let stranger = platform.instance("a2", "s2");
    for (who, host) in [
        (&known, "named.apps.internal"),
        (&stranger, "named.apps.internal"),
        (&stranger, "near.apps.internal"),
        (&known, "closed.apps.internal"),
        (&known, "open.apps.internal"),
    ] {
        platform.ask("x.apps.internal", Some(who), host);
    }
    drop(platform);
    let log = std::fs::read_to_string(path).unwrap();
    let expected = [
        "\"route:cf:app:a1\" caller_cf_app:\"a1\" x_cf_routererror:\"-\"",
        "\"route:route_policies\" caller_cf_app:\"a2\" \
         x_cf_routererror:\"caller_not_in_policies\"",
        "\"domain:scope=space:post-selection\" caller_cf_app:\"a2\" \
         x_cf_routererror:\"caller_out_of_scope\"",
        "\"route:no_route_policies\" caller_cf_app:\"a1\" \
         x_cf_routererror:\"route_without_policies\"",
        "\"-\" caller_cf_app:\"a1\" x_cf_routererror:\"-\"",
    ];
    // The others are not told then, as in gorouter.
    let told = log.lines().map(|line| line.split_once(" route_policy:"));
    let told: Vec<_> = told.map(|told| told.unwrap_or_default().1).collect();
    assert_eq!(told, expected);
}

#[test]
fn a_partner_is_known_by_its_certificate_and_is_no_caller() {
    let backend = telling();
    let platform = Platform::new(backend.address, CertificateFormat::Raw);
    let mut subject = DistinguishedName::new();
    subject.push(DnType::OrganizationName, "a partner");
    let partner = platform.instances.sign_subject(&subject);
    let seen = platform.ask("x.apps.internal", Some(&partner), "open.apps.internal");
    let told = String::from_utf8(seen.body).unwrap();
    assert_eq!(seen.status, 200);
    // Base64 of DER, as PEM has it between its lines.
    let pem: String = partner
        .0
        .lines()
        .filter(|line| !line.starts_with('-'))
        .collect();
    assert_eq!(told, pem);
    let seen = platform.ask("x.apps.internal", Some(&partner), "named.apps.internal");
    assert_eq!(seen.status, 403);
    assert_eq!(seen.field("x-cf-routererror"), Some("caller_unidentified"));
}

#[test]
fn nobody_gets_around_the_handshake() {
    let backend = telling();
    let platform = Platform::new(backend.address, CertificateFormat::Envoy);
    let known = platform.instance("a1", "s1");
    // The domain wants a certificate, and one of its own authority.
    let forged = Authority::new().sign_subject(&instance("a1", "s1"));
    for certificate in [None, Some(&forged)] {
        let refused = platform
            .connect("x.apps.internal", certificate)
            .ask("open.apps.internal");
        assert!(refused.is_err(), "{refused:?}");
    }
    // Others do not, and their connections are of no use for the domain.
    assert_eq!(platform.ask("public.test", None, "public.test").status, 200);
    for (name, certificate, host) in [
        ("public.test", None, "open.apps.internal"),
        ("public.test", None, "missing.apps.internal"),
        ("x.apps.internal", Some(&known), "public.test"),
    ] {
        let seen = platform.ask(name, certificate, host);
        assert_eq!((seen.status, &*seen.body), (421, &b""[..]), "{name} {host}");
    }
    let mut plain = platform.bench.client();
    for (host, status) in [
        ("open.apps.internal", 421),
        ("public.test", 200),
        // A route with rules stays closed by any other name.
        ("guarded.test", 403),
    ] {
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        plain.send(request.as_bytes());
        assert_eq!(plain.answer().unwrap().status, status, "{host}");
    }
}

#[test]
fn streams_of_http2_are_held_to_the_same() {
    let backend = telling();
    let platform = Platform::new(backend.address, CertificateFormat::Envoy);
    let mut config = platform.config(Some(&platform.instance("a1", "s1")));
    config.alpn_protocols = vec![b"h2".to_vec()];
    let address = platform.bench.engine.tls_address().unwrap();
    run(async {
        let socket = tokio::net::TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("x.apps.internal").unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let tls = connector.connect(name, socket).await.unwrap();
        let (mut send, connection) = h2::client::handshake(tls).await.unwrap();
        tokio::spawn(connection);
        // Browsers use a connection for other hosts too.
        for (host, status) in [
            ("named.apps.internal", 200),
            ("public.test", 421),
            ("closed.apps.internal", 403),
        ] {
            send = send.ready().await.unwrap();
            let uri = format!("https://{host}/");
            let request = http::Request::get(uri).body(()).unwrap();
            let (answer, _) = send.send_request(request, true).unwrap();
            assert_eq!(answer.await.unwrap().status(), status, "{host}");
        }
    });
}

#[test]
fn a_handshake_may_come_byte_by_byte_or_be_none() {
    let backend = telling();
    let platform = Platform::new(backend.address, CertificateFormat::Envoy);
    let known = platform.instance("a1", "s1");
    let mut client = platform.connect("x.apps.internal", Some(&known));
    let StreamOwned { conn, sock } = client.0.get_mut();
    let mut hello = Vec::new();
    conn.write_tls(&mut hello).unwrap();
    for byte in hello {
        sock.write_all(&[byte]).unwrap();
    }
    assert_eq!(client.ask("named.apps.internal").unwrap().status, 200);

    let mut socket = TcpStream::connect(platform.bench.engine.tls_address().unwrap()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    match socket.read_to_end(&mut Vec::new()) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset),
    }
    platform
        .bench
        .until("it is counted", |totals| totals.failed_clients == 1);
}

impl Authority {
    /// Certificate and key of somebody, PEM.
    fn sign_subject(&self, subject: &DistinguishedName) -> Certificate {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = subject.clone();
        let certificate = params.signed_by(&key, self.issuer()).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

/// A router whose `app.test` has a route service, a route of the router in the domain
/// `localhost`.
fn guarded_service(service: &Backend, own: Option<&Certificate>, known: &Authority) -> Platform {
    let platform = Platform::with(service.address, CertificateFormat::Envoy, |settings| {
        settings.route_services.secret = "shared".into();
        settings.route_services.hairpin = true;
        settings.route_services.attempts = 1;
        if let Some((certificate, key)) = own {
            settings.route_services.certificate = (certificate.clone(), key.clone().into());
        }
        settings.domains.push(MtlsDomain {
            name: "localhost".to_owned(),
            authorities: known.pem(),
            format: CertificateFormat::Envoy,
            ..MtlsDomain::default()
        });
    });
    let port = platform.bench.engine.tls_address().unwrap().port();
    platform.route("localhost", service.address, "", "");
    let url = format!("https://localhost:{port}/");
    platform.route("app.test", nobody(), &url, "");
    platform
}

#[test]
fn a_service_in_a_domain_is_called_over_the_network_and_shown_a_certificate() {
    let known = Authority::new();
    let own = known.sign_subject(&instance("router", "s1"));
    let service = telling();
    let platform = guarded_service(&service, Some(&own), &known);
    let mut client = platform.bench.client();
    let seen = client.get("/");
    let told = String::from_utf8(seen.body).unwrap();
    assert_eq!(seen.status, 200, "{told}");
    assert!(told.contains("OU=app:router"), "{told}");
    // Without one it does not get around the handshake by way of the router itself.
    let service = telling();
    let platform = guarded_service(&service, None, &known);
    let seen = platform.bench.client().get("/");
    assert_eq!((seen.status, service.connections()), (496, 0));
    let error = seen.field("x-cf-routererror").unwrap();
    assert!(error.contains("certificate required"), "{error}");
}

#[test]
fn a_service_before_a_guarded_route_is_asked_for_those_who_may_call_and_is_a_caller_itself() {
    let way_back = Arc::new(OnceLock::<(SocketAddr, ClientConfig)>::new());
    let service = Backend::answering({
        let way_back = Arc::clone(&way_back);
        move |asked| {
            let (router, config) = way_back.get().unwrap();
            let name = ServerName::try_from("near.apps.internal").unwrap();
            let tls = ClientConnection::new(Arc::new(config.clone()), name).unwrap();
            let socket = TcpStream::connect(router).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut tls = BufReader::new(StreamOwned::new(tls, socket));
            let mut request = "GET / HTTP/1.1\r\nHost: served.apps.internal\r\n".to_owned();
            for (name, value) in &asked.message.fields {
                if name.starts_with("X-Cf-") || name == "X-Forwarded-Client-Cert" {
                    request += &format!("{name}: {value}\r\n");
                }
            }
            request += "\r\n";
            tls.get_mut().write_all(request.as_bytes()).unwrap();
            let answer = read_message(&mut tls, false).unwrap();
            ok(format!(
                "{} {}",
                answer.status,
                String::from_utf8_lossy(&answer.body)
            )
            .as_bytes())
        }
    });
    let app = telling();
    let platform = Platform::with(app.address, CertificateFormat::Envoy, |settings| {
        settings.route_services.secret = "shared".into();
        settings.route_services.hairpin = true;
    });
    platform.route("svc.test", service.address, "", "");
    let callers = "cf:app:a1,cf:app:svc";
    platform.route(
        "served.apps.internal",
        app.address,
        "https://svc.test",
        callers,
    );
    let of_service = |app: &str| platform.config(Some(&platform.instance(app, "s1")));
    let router = platform.bench.engine.tls_address().unwrap();
    assert!(way_back.set((router, of_service("svc"))).is_ok());
    // Who may not call does not get as far as the service.
    let stranger = platform.instance("a2", "s1");
    let seen = platform.ask("x.apps.internal", Some(&stranger), "served.apps.internal");
    assert_eq!((seen.status, service.connections()), (403, 0));
    let caller = platform.instance("a1", "s1");
    let seen = platform.ask("x.apps.internal", Some(&caller), "served.apps.internal");
    let told = String::from_utf8(seen.body).unwrap();
    assert_eq!(seen.status, 200, "{told}");
    // The application is told of whoever shook hands: the service.
    assert!(
        told.starts_with("200 ") && told.contains("OU=app:svc"),
        "{told}"
    );
}
