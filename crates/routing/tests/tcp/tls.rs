//! TLS: passed through by name, ended here, spoken to backends.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use routing::tcp::{Change, StatusTlsSettings, TcpMapping, TerminationSettings};
use routing_api::client::PeerTls;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
};

use super::rig::{Backend, Rig, connect, exchange, get, greeting, mapping, until};
use crate::free_port::free_port;

/// An authority of one test.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params
            .distinguished_name
            .push(DnType::CommonName, "authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Self { issuer, pem }
    }

    /// A certificate for a name or an address, and its key.
    pub(crate) fn sign(&self, name: &str) -> (String, String) {
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap())
            .unwrap();
        Arc::new(roots)
    }

    /// A client's connection through a port, that has proved the other side to be `name`.
    fn client(
        &self,
        port: u16,
        name: &str,
        protocols: &[&str],
    ) -> StreamOwned<ClientConnection, TcpStream> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.roots())
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        StreamOwned::new(connection, connect(port))
    }

    /// A backend that speaks TLS: says a byte, and after it the name that it was asked
    /// for; then it sends everything back.
    fn backend(&self, name: &str, greeting: u8, clients_prove: bool) -> Backend {
        let (certificate, key) = self.sign(name);
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match clients_prove {
            false => builder.with_no_client_auth(),
            true => builder.with_client_cert_verifier(
                WebPkiClientVerifier::builder_with_provider(self.roots(), provider)
                    .build()
                    .unwrap(),
            ),
        };
        let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let config = Arc::new(builder.with_single_cert(chain, key).unwrap());
        Backend::new(move |socket| {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, socket);
            if stream.write_all(&[greeting]).is_err() {
                return;
            }
            let asked = stream.conn.server_name().unwrap_or_default().to_owned();
            let mut piece = vec![0; 16 * 1024];
            while let Ok(count) = stream.read(&mut piece) {
                let answer = match &piece[..count] {
                    b"" => break,
                    b"name?" => asked.as_bytes(),
                    same => same,
                };
                if stream.write_all(answer).is_err() {
                    return;
                }
            }
            stream.conn.send_close_notify();
            let _ = stream.flush();
        })
    }
}

fn by_name(port: u16, backend: &Backend, name: &str) -> TcpMapping {
    TcpMapping {
        backend_sni_hostname: Some(name.into()),
        ..mapping(port, backend.address)
    }
}

fn first_byte(stream: &mut impl Read) -> u8 {
    let mut byte = [0];
    stream.read_exact(&mut byte).unwrap();
    byte[0]
}

#[test]
fn names_choose_the_backend_and_tls_passes_through() {
    let (rig, authority) = (Rig::new(), Authority::new());
    let a = authority.backend("a.example", b'a', false);
    let b = authority.backend("b.example", b'b', false);
    let (plain, port) = (Backend::echo(b'p'), free_port());
    rig.send(Change::Full(vec![
        by_name(port, &a, "A.example"),
        by_name(port, &b, "b.example"),
        mapping(port, plain.address),
    ]));
    rig.opened(port);
    for (name, greeting) in [("a.example", b'a'), ("b.example", b'b')] {
        let mut client = authority.client(port, name, &[]);
        assert_eq!(first_byte(&mut client), greeting);
        client.write_all(b"through").unwrap();
        let mut back = [0; 7];
        client.read_exact(&mut back).unwrap();
        assert_eq!(&back, b"through");
    }
    // What is no TLS goes where nobody is asked for, with its bytes.
    let mut client = connect(port);
    client.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    assert_eq!(greeting(&mut client), Some(b'p'));
    let mut back = [0; 18];
    client.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"GET / HTTP/1.0\r\n\r\n");
}

/// Sends each byte by itself.
struct ByteByByte(TcpStream);

impl Read for ByteByByte {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(into)
    }
}

impl Write for ByteByByte {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        std::thread::sleep(Duration::from_micros(100));
        self.0.write(&bytes[..bytes.len().min(1)])
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

#[test]
fn a_hello_may_come_byte_by_byte() {
    let (rig, authority) = (Rig::new(), Authority::new());
    let (backend, port) = (authority.backend("a.example", b'a', false), free_port());
    rig.send(Change::Upsert(by_name(port, &backend, "a.example")));
    rig.opened(port);
    let client = authority.client(port, "a.example", &[]);
    client.sock.set_nodelay(true).unwrap();
    let mut client = StreamOwned::new(client.conn, ByteByByte(client.sock));
    assert_eq!(first_byte(&mut client), b'a');
}

#[test]
fn a_silent_client_gets_the_port_s_own_route_or_none() {
    let rig = Rig::with(|settings| settings.hello_timeout = Duration::from_millis(150));
    let (named, own) = (Backend::echo(b'n'), Backend::echo(b'o'));
    let port = free_port();
    rig.send(Change::Upsert(by_name(port, &named, "a.example")));
    rig.opened(port);
    assert_eq!(greeting(&mut connect(port)), None);
    assert_eq!(
        rig.metric("tcp_router_sessions_ended_total{end=\"no_route\"}"),
        1.0
    );
    rig.send(Change::Upsert(mapping(port, own.address)));
    until("the route is there", || {
        rig.metric("tcp_router_routes") == 2.0
    });
    let mut silent = connect(port);
    assert_eq!(greeting(&mut silent), Some(b'o'));
    // Half a hello goes there, too.
    let mut half = connect(port);
    half.write_all(&[22, 3, 1, 2, 0, 1]).unwrap();
    assert_eq!(greeting(&mut half), Some(b'o'));
    let mut back = [0; 6];
    half.read_exact(&mut back).unwrap();
    assert_eq!(back, [22, 3, 1, 2, 0, 1]);
}

#[test]
fn tls_may_end_here() {
    let authority = Authority::new();
    let rig = Rig::with(|settings| {
        settings.termination = Some(TerminationSettings {
            certificates: vec![authority.sign("a.example"), authority.sign("b.example")],
        });
    });
    let backend = Backend::echo(b'x');
    let port = free_port();
    let ends = TcpMapping {
        terminate_frontend_tls: true,
        alpns: "h2,http/1.1".into(),
        ..mapping(port, backend.address)
    };
    let named = free_port();
    let ends_by_name = TcpMapping {
        port: named,
        backend_sni_hostname: Some("b.example".into()),
        ..ends.clone()
    };
    rig.send(Change::Full(vec![ends, ends_by_name]));
    rig.opened(port);
    rig.opened(named);
    for (port, name) in [
        (port, "a.example"),
        (port, "b.example"),
        (named, "b.example"),
    ] {
        let mut client = authority.client(port, name, &["http/1.1"]);
        assert_eq!(first_byte(&mut client), b'x');
        assert_eq!(client.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
        let sent: Vec<u8> = (0..300_000_u32).map(|it| it as u8).collect();
        let mut back = vec![0; sent.len()];
        for (sent, back) in sent.chunks(30_000).zip(back.chunks_mut(30_000)) {
            client.write_all(sent).unwrap();
            client.read_exact(back).unwrap();
        }
        assert!(sent == back);
        // The end of one direction is told by TLS's farewell, both ways.
        client.conn.send_close_notify();
        client.flush().unwrap();
        client.sock.shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
    }
    // Bytes that are no TLS end the connection, and nobody else's.
    let mut other = connect(port);
    other.write_all(b"hello?").unwrap();
    let mut rest = Vec::new();
    let _ = other.read_to_end(&mut rest);
    until("it is counted", || {
        rig.metric("tcp_router_sessions_ended_total{end=\"client_tls\"}") == 1.0
    });
}

#[test]
fn health_is_told_within_tls_too() {
    let authority = Authority::new();
    let (certificate, key) = authority.sign("router.example");
    let mut rig = Rig::with(|settings| {
        settings.status_tls = Some(StatusTlsSettings {
            listen: ([127, 0, 0, 1], 0).into(),
            certificate,
            key: key.into(),
        });
    });
    let router = rig.router();
    let port = router.status_tls().unwrap().port();
    let mut client = authority.client(port, "router.example", &["http/1.1"]);
    client
        .write_all(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        .unwrap();
    let mut answer = [0; 15];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
    assert_eq!(get(rig.status, "/health").0, 200);
    router.stop();
}

fn to_tls(port: u16, backend: &Backend, instance: &str) -> TcpMapping {
    TcpMapping {
        backend_tls_port: i64::from(backend.address.port()),
        // Never used: TLS wins.
        backend_port: 1,
        instance_id: instance.into(),
        ..mapping(port, backend.address)
    }
}

fn asked(client: &mut TcpStream, bytes: usize) -> String {
    client.write_all(b"name?").unwrap();
    let mut name = vec![0; bytes];
    client.read_exact(&mut name).unwrap();
    String::from_utf8(name).unwrap()
}

#[test]
fn backends_prove_to_be_the_instance() {
    let authority = Authority::new();
    let (own, key) = authority.sign("router");
    let rig = Rig::with(|settings| {
        settings.failed_for = Duration::ZERO;
        settings.backend_tls = Some(PeerTls {
            authorities: authority.pem.clone(),
            certificate: own,
            key: key.into(),
        });
        settings.termination = Some(TerminationSettings {
            certificates: vec![authority.sign("a.example")],
        });
    });
    let open = authority.backend("instance-1", b'o', false);
    let strict = authority.backend("instance-2", b's', true);
    let stranger = Authority::new().backend("instance-1", b'x', false);
    let ports: Vec<u16> = (0..8).map(|_| free_port()).collect();
    let ending = |mapping: TcpMapping| TcpMapping {
        terminate_frontend_tls: true,
        ..mapping
    };
    let proving = |mapping: TcpMapping| TcpMapping {
        enable_backend_mtls: true,
        ..mapping
    };
    let rewritten = TcpMapping {
        sni_rewrite_hostname: Some("inner.example".into()),
        ..to_tls(ports[3], &open, "instance-1")
    };
    rig.send(Change::Full(vec![
        to_tls(ports[0], &open, "instance-1"),
        to_tls(ports[1], &open, "instance-9"),
        to_tls(ports[2], &strict, "instance-2"),
        rewritten,
        ending(proving(to_tls(ports[4], &strict, "instance-2"))),
        ending(to_tls(ports[5], &strict, "instance-2")),
        to_tls(ports[6], &strict, ""),
        to_tls(ports[7], &stranger, ""),
    ]));
    ports.iter().for_each(|port| rig.opened(*port));
    let mut client = connect(ports[0]);
    assert_eq!(greeting(&mut client), Some(b'o'));
    assert_eq!(asked(&mut client, 10), "instance-1");
    assert_eq!(exchange(&mut client, &[9; 10_000])[..], [9; 10_000]);
    // Somebody else's certificate.
    assert_eq!(greeting(&mut connect(ports[1])), None);
    let cause = "tcp_router_dial_errors_total{cause=\"certificate for another name\"}";
    assert_eq!(rig.metric(cause), 1.0);
    // The own certificate is shown; where the client's TLS ends here, when the mapping says so.
    assert_eq!(greeting(&mut connect(ports[2])), Some(b's'));
    let mut client = authority.client(ports[4], "a.example", &[]);
    assert_eq!(first_byte(&mut client), b's');
    let mut client = authority.client(ports[5], "a.example", &[]);
    assert!(!matches!(client.read(&mut [0]), Ok(1)));
    // Without a name any will do that the authority signed.
    assert_eq!(greeting(&mut connect(ports[6])), Some(b's'));
    assert_eq!(greeting(&mut connect(ports[7])), None);
    // Another name is asked for than the one that is proven.
    let mut client = connect(ports[3]);
    assert_eq!(greeting(&mut client), Some(b'o'));
    assert_eq!(asked(&mut client, 13), "inner.example");
}

#[test]
fn a_backend_without_tls_is_told_from_one_with_it() {
    let authority = Authority::new();
    let rig = Rig::with(|settings| {
        settings.backend_tls = Some(PeerTls {
            authorities: authority.pem.clone(),
            ..PeerTls::default()
        });
    });
    let (plain, real) = (Backend::echo(b'p'), authority.backend("i-1", b'r', false));
    let port = free_port();
    rig.send(Change::Full(vec![
        to_tls(port, &plain, "i-1"),
        to_tls(port, &real, "i-1"),
    ]));
    rig.opened(port);
    // Whoever was to go to the first one goes to the second one instead.
    for _ in 0..4 {
        assert_eq!(greeting(&mut connect(port)), Some(b'r'));
    }
    assert_eq!(
        rig.metric("tcp_router_dial_errors_total{cause=\"not TLS\"}"),
        1.0
    );
}

#[test]
fn a_slow_reader_within_tls_gets_everything() {
    // More than all the kernel's buffers on the way together.
    const MOST: usize = 128 << 20;
    let authority = Authority::new();
    let rig = Rig::with(|settings| {
        settings.threads = Some(1);
        settings.termination = Some(TerminationSettings {
            certificates: vec![authority.sign("a.example")],
        });
        settings.backend_tls = Some(PeerTls {
            authorities: authority.pem.clone(),
            ..PeerTls::default()
        });
    });
    // TLS on both sides: whatever comes is sent back, and nobody reads it for a while.
    let backend = authority.backend("i-1", b'x', false);
    let port = free_port();
    rig.send(Change::Upsert(TcpMapping {
        terminate_frontend_tls: true,
        ..to_tls(port, &backend, "i-1")
    }));
    rig.opened(port);
    let mut client = authority.client(port, "a.example", &[]);
    assert_eq!(first_byte(&mut client), b'x');
    let byte = |place: usize| (place ^ (place >> 8)) as u8;
    client.sock.set_nonblocking(true).unwrap();
    // Writes until nothing is taken any more, and reads nothing.
    let (mut written, mut progress) = (0, Instant::now());
    while progress.elapsed() < Duration::from_secs(1) {
        let piece: Vec<u8> = (written..written + 10_000).map(byte).collect();
        match client.write(&piece) {
            Ok(count) => (written, progress) = (written + count, Instant::now()),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
        assert!(written < MOST, "nothing was ever held up");
    }
    let (mut read, mut piece) = (0, vec![0; 10_000]);
    until("everything is back", || {
        let _ = client.flush();
        while let Ok(count) = client.read(&mut piece) {
            let same = piece[..count]
                .iter()
                .enumerate()
                .all(|(at, it)| *it == byte(read + at));
            assert!(same && count > 0, "after {read} bytes of {written}");
            read += count;
        }
        read == written
    });
}
