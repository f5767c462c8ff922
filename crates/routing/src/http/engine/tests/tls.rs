//! TLS on both sides, and the PROXY protocol.

use std::io::{BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::client::WantsClientCert;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, ConfigBuilder, RootCertStore, ServerConfig, ServerConnection,
    StreamOwned,
};

use super::bench::{Backend, Bench, PATIENCE, nobody, ok, read_message};
use crate::http::settings::HttpSettings;
use crate::table::{Endpoint, PoolSettings, RouteKey};

/// An authority and what it signs.
pub(in crate::http::engine) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(in crate::http::engine) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    pub(in crate::http::engine) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(super) fn issuer(&self) -> &CertifiedIssuer<'static, KeyPair> {
        &self.0
    }

    /// Certificate and key for a name, PEM.
    pub(in crate::http::engine) fn sign(&self, name: &str) -> (String, String) {
        self.sign_params(CertificateParams::new(vec![name.to_owned()]).unwrap())
    }

    fn sign_params(&self, params: CertificateParams) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    /// Itself as the only one to trust.
    pub(in crate::http::engine) fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_slice(self.pem().as_bytes()).unwrap();
        roots.add(root).unwrap();
        roots
    }

    /// A client that trusts it alone.
    pub(super) fn client(&self) -> ConfigBuilder<ClientConfig, WantsClientCert> {
        ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.roots())
    }
}

/// Certificate and key (PEM) as rustls takes them.
pub(in crate::http::engine) fn parsed(
    (certificate, key): &(String, String),
) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    (vec![certificate], key)
}

pub(super) type TlsClient = BufReader<StreamOwned<ClientConnection, TcpStream>>;

/// A connection on which the router has to prove itself by this authority.
pub(super) fn connect(bench: &Bench, authority: &Authority) -> TlsClient {
    let config = authority.client().with_no_client_auth();
    let name = ServerName::try_from("app.test").unwrap();
    let tls = ClientConnection::new(Arc::new(config), name).unwrap();
    let socket = TcpStream::connect(bench.engine.tls_address().unwrap()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    BufReader::new(StreamOwned::new(tls, socket))
}

pub(in crate::http::engine) fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// A backend with TLS that answers each request with the field that says who asked.
fn backend(authority: &Authority, name: &str) -> SocketAddr {
    backend_with(&authority.sign(name))
}

/// A server that shows a certificate with its key, PEM.
pub(super) fn server(shown: &(String, String)) -> ServerConfig {
    let (chain, key) = parsed(shown);
    ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap()
}

fn backend_with(shown: &(String, String)) -> SocketAddr {
    let config = Arc::new(server(shown));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((socket, _)) = listener.accept() {
            let tls = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut reader = BufReader::new(StreamOwned::new(tls, socket));
            std::thread::spawn(move || {
                while let Ok(seen) = read_message(&mut reader, true) {
                    let proto = seen.field("x-forwarded-proto").unwrap_or("none");
                    let body = [proto.as_bytes(), &[b'.'; 200_000]].concat();
                    if reader.get_mut().write_all(&ok(&body)).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

fn register(bench: &Bench, address: SocketAddr, name: &str) {
    let endpoint = Endpoint {
        identity: address.to_string().into(),
        tls: true,
        server_name: name.into(),
        ..Endpoint::default()
    };
    let key = RouteKey::new("app.test").unwrap();
    bench
        .table
        .register(&key, endpoint, &PoolSettings::default(), 0);
}

/// An endpoint that has left the pool was tried all the same: the one behind it has its turn.
#[test]
fn dead_endpoints_that_leave_do_not_shorten_the_attempts() {
    let backend = Backend::answering(|_| ok(b""));
    let bench = Bench::new(&[backend.address]);
    let dead = [nobody(), nobody()];
    let mut client = bench.client();
    // In one of three rounds both dead ones come first.
    for round in 0..6 {
        for address in dead {
            register(&bench, address, "instance");
        }
        assert_eq!(client.get("/").status, 200, "round {round}");
    }
}

#[test]
fn what_failed_is_told_rather_than_that_the_others_are_full() {
    let backend = Backend::new(|mut connection, _| {
        if connection.request().is_some() {
            connection.wait_for_end();
        }
    });
    let bench = Bench::with(&[backend.address], |settings| {
        settings.backends.in_flight = 1;
    });
    let mut waits = bench.client();
    waits.send(b"GET / HTTP/1.1\r\nHost: app.test\r\n\r\n");
    bench.until("it is under way", |totals| totals.routed == 1);
    register(&bench, nobody(), "instance");
    let seen = bench.client().get("/");
    assert_eq!(seen.status, 502);
    let error = seen.field("x-cf-routererror").unwrap();
    assert!(error.starts_with("endpoint_failure (dial tcp"), "{error}");
}

#[test]
fn requests_flow_through_tls_on_both_sides() {
    let authority = Authority::new();
    let address = backend(&authority, "instance-1");
    let bench = Bench::with(&[], |settings: &mut HttpSettings| {
        settings.listen_tls = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        settings.client_tls.certificates = vec![authority.sign("app.test")];
        settings.client_tls.tls13 = true;
        settings.backends.authorities = authority.pem();
    });
    register(&bench, address, "instance-1");
    let mut client = connect(&bench, &authority);
    for _ in 0..3 {
        let request = b"GET / HTTP/1.1\r\nHost: app.test\r\n\r\n";
        client.get_mut().write_all(request).unwrap();
        let seen = read_message(&mut client, false).unwrap();
        assert_eq!((seen.status, seen.body.len()), (200, 200_005));
        assert!(seen.body.starts_with(b"https"));
    }
    assert_eq!(bench.totals().dialed, 1);
}

#[test]
fn a_backend_may_show_a_certificate_that_could_sign_others() {
    let authority = Authority::new();
    let mut params = CertificateParams::new(vec!["instance-1".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let address = backend_with(&authority.sign_params(params));
    let bench = Bench::with(&[], |settings| {
        settings.backends.authorities = authority.pem();
    });
    register(&bench, address, "instance-1");
    let mut client = bench.client();
    assert_eq!(client.get("/").status, 200);
    assert_eq!(client.get("/").status, 200);
}

#[test]
fn plain_http_on_the_port_of_tls_is_told_so() {
    let authority = Authority::new();
    for proxied in [false, true] {
        let bench = Bench::with(&[nobody()], |settings| {
            settings.listen_tls = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
            settings.client_tls.certificates = vec![authority.sign("app.test")];
            settings.proxy_protocol = proxied;
        });
        let said = |sent: &[u8]| {
            let mut socket = TcpStream::connect(bench.engine.tls_address().unwrap()).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket.write_all(sent).unwrap();
            let mut said = Vec::new();
            socket.read_to_end(&mut said).unwrap();
            String::from_utf8_lossy(&said).into_owned()
        };
        let expected = "HTTP/1.0 400 Bad Request\r\n\r\n\
                        Client sent an HTTP request to an HTTPS server.\n";
        let rest = "/ HTTP/1.1\r\nHost: app.test\r\n\r\n";
        for method in ["GET", "HEAD", "POST", "PUT", "OPTIONS"] {
            assert_eq!(said(format!("{method} {rest}").as_bytes()), expected);
        }
        let other = said(format!("DELETE {rest}").as_bytes());
        assert!(!other.contains("HTTP"), "{other}");
        bench.until("all were counted", |totals| totals.failed_clients == 6);
    }
}

#[test]
fn failures_of_tls_have_their_own_answers_and_end_the_endpoint() {
    let (authority, other) = (Authority::new(), Authority::new());
    let mut clients_only = CertificateParams::new(vec!["instance-1".to_owned()]).unwrap();
    clients_only.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let mut no_names = CertificateParams::new(Vec::new()).unwrap();
    let name = rcgen::DnType::CommonName;
    no_names.distinguished_name.push(name, "instance-1");
    let plain = Backend::new(|mut connection, _| {
        connection.send(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        connection.wait_for_end();
    });
    let table = [
        (
            backend(&authority, "instance-2"),
            503,
            "x509: certificate is valid for instance-2, not instance-1",
        ),
        (
            backend(&other, "instance-1"),
            526,
            "certificate signed by unknown authority",
        ),
        (
            backend_with(&authority.sign_params(clients_only)),
            526,
            "x509: certificate specifies an incompatible key usage",
        ),
        (
            backend_with(&authority.sign_params(no_names)),
            503,
            "x509: certificate relies on legacy Common Name field, use SANs instead",
        ),
        (plain.address, 525, "endpoint_failure ("),
        (nobody(), 502, "connect: connection refused"),
    ];
    for (address, status, error) in table {
        let bench = Bench::with(&[], |settings| {
            settings.backends.authorities = authority.pem();
        });
        register(&bench, address, "instance-1");
        let mut client = bench.client();
        let seen = client.get("/");
        assert_eq!(seen.status, status);
        let told = seen.field("x-cf-routererror").unwrap();
        assert!(told.contains(error), "{told}");
        assert_eq!(client.get("/").status, 503, "the endpoint is gone");
        let expected: [u64; 4] = match status {
            503 => [1, 0, 0, 0],
            526 => [0, 1, 0, 0],
            525 => [0, 0, 1, 0],
            _ => [0, 0, 0, 1],
        };
        bench.until("it was counted once", |totals| {
            let found = [
                totals.invalid_backend_id,
                totals.invalid_backend_certificate,
                totals.failed_handshakes,
                totals.bad_gateways,
            ];
            found == expected
        });
    }
}

#[test]
fn a_failure_that_another_endpoint_made_good_is_counted_as_a_retry() {
    let (authority, other) = (Authority::new(), Authority::new());
    let bench = Bench::with(&[], |settings| {
        settings.backends.authorities = authority.pem();
    });
    register(&bench, backend(&authority, "instance-1"), "instance-1");
    let foreign = backend(&other, "instance-1");
    // In one of two rounds the foreign one, which leaves then, comes first.
    for round in 0..4 {
        register(&bench, foreign, "instance-1");
        assert_eq!(bench.client().get("/").status, 200, "round {round}");
    }
    bench.until("all were answered", |totals| totals.responses[2] == 4);
    let totals = bench.totals();
    assert!(totals.retries > 0);
    assert_eq!(totals.invalid_backend_certificate, 0);
}

#[test]
fn the_proxy_protocol_names_the_client() {
    let backend = Backend::answering(|asked| {
        ok(asked
            .message
            .field("x-forwarded-for")
            .unwrap_or("none")
            .as_bytes())
    });
    let bench = Bench::with(&[backend.address], |settings| {
        settings.proxy_protocol = true
    });
    let mut client = bench.client();
    client.send(
        b"PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\nGET / HTTP/1.1\r\nHost: app.test\r\n\r\n",
    );
    assert_eq!(client.answer().unwrap().body, b"192.0.2.7");
    assert_eq!(client.get("/").body, b"192.0.2.7");
    assert_eq!(bench.client().get("/").body, b"127.0.0.1");
    let mut bad = bench.client();
    bad.send(b"PROXY nonsense\r\n");
    assert_eq!(bad.rest(), b"");
    assert_eq!(bench.totals().failed_clients, 1);
}
