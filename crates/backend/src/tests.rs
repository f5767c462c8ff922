use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::*;

fn backend(body_bytes: usize) -> StaticBackend {
    StaticBackend::start(&BackendSettings {
        listen: "127.0.0.1:0".parse().unwrap(),
        body_bytes,
        threads: Some(2),
        id: "b-1".to_owned(),
        control: None,
        tls: None,
    })
    .unwrap()
}

fn connect(backend: &StaticBackend) -> TcpStream {
    let stream = TcpStream::connect(backend.address()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    stream
}

/// Reads one answer: its head, and its body by Content-Length.
fn answer(stream: &mut TcpStream, with_body: bool) -> (String, Vec<u8>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "))
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; if with_body { length } else { 0 }];
    stream.read_exact(&mut body).unwrap();
    (head, body)
}

#[test]
fn every_request_has_the_same_answer() {
    let backend = backend(1024);
    let mut stream = connect(&backend);
    // Split anywhere, and several at once.
    for part in [
        "GET / HT",
        "TP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: b\r\n\r\nHEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        stream.write_all(part.as_bytes()).unwrap();
    }
    for with_body in [true, true, false] {
        let (head, body) = answer(&mut stream, with_body);
        assert!(
            head.starts_with("HTTP/1.1 200 OK\r\nX-Backend: b-1\r\nDate: "),
            "{head}"
        );
        assert!(!head.contains("1970"), "{head}");
        assert!(head.contains("\r\nContent-Length: 1024\r\n"), "{head}");
        assert!(body.iter().all(|byte| *byte == b'Z'));
    }
    assert_eq!((backend.requests(), backend.accepted()), (3, 1));
}

#[test]
fn bodies_are_passed_over_however_they_are_framed() {
    let backend = backend(1);
    let mut stream = connect(&backend);
    for part in [
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nGE",
        "T /POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r",
        "\n0\r\nX-T: v\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    ] {
        stream.write_all(part.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    for _ in 0..2 {
        assert!(!answer(&mut stream, true).0.contains("close"));
    }
    assert!(
        answer(&mut stream, true)
            .0
            .contains("\r\nConnection: close\r\n")
    );
    assert_eq!(stream.read(&mut [0; 9]).unwrap(), 0);
    let mut stream = connect(&backend);
    stream
        .write_all(
            b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n",
        )
        .unwrap();
    assert_eq!(answer(&mut stream, true).0, "HTTP/1.1 100 Continue\r\n\r\n");
    assert!(
        answer(&mut stream, true)
            .0
            .starts_with("HTTP/1.1 200 OK\r\n")
    );
}

#[test]
fn a_large_answer_comes_whole_to_a_slow_reader() {
    let backend = backend(20 * 1024 * 1024);
    let mut stream = connect(&backend);
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    std::thread::sleep(Duration::from_millis(50));
    for _ in 0..2 {
        assert_eq!(answer(&mut stream, true).1.len(), 20 * 1024 * 1024);
    }
}

#[test]
fn garbage_is_refused_and_the_connection_closed() {
    let backend = backend(1);
    let mut stream = connect(&backend);
    stream.write_all(b"\x16\x03\x01 no http\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 400 "), "{text}");
}

#[test]
fn it_behaves_as_it_is_told() {
    let backend = backend(10);
    let tell = |json: &str| backend.behave(Behaviour::from_json(json.as_bytes()).unwrap());
    let asked = || {
        let mut stream = connect(&backend);
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap();
        stream
    };
    tell(r#"{"mode":"slow","delay":"1ms"}"#);
    assert!(answer(&mut asked(), true).0.starts_with("HTTP/1.1 200 "));
    tell(r#"{"mode":"error","status":503}"#);
    let (head, body) = answer(&mut asked(), true);
    assert!(head.starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
    assert_eq!(body, b"told to fail\n");
    tell(r#"{"mode":"close"}"#);
    assert_eq!(asked().read(&mut [0; 9]).unwrap(), 0);
    tell(r#"{"mode":"reset"}"#);
    let error = asked().read(&mut [0; 9]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    tell(r#"{"mode":"hang"}"#);
    let mut hung = asked();
    hung.set_nonblocking(true).unwrap();
    while backend.requests() < 5 {
        std::thread::yield_now();
    }
    assert_eq!(
        hung.read(&mut [0; 9]).unwrap_err().kind(),
        ErrorKind::WouldBlock
    );
    tell(r#"{"mode":"ok"}"#);
    assert!(answer(&mut asked(), true).0.starts_with("HTTP/1.1 200 "));
}

#[test]
fn behaviours_read_back_and_wrong_ones_are_named() {
    let behaviour = Behaviour::from_json(br#"{"mode":"slow","delay":"1m"}"#).unwrap();
    assert_eq!(behaviour.delay, Duration::from_secs(60));
    assert_eq!(
        Behaviour::from_json(behaviour.to_json().as_bytes()).unwrap(),
        behaviour
    );
    for (json, expected) in [
        ("{", "expected {\"mode\""),
        (r#"{"mode":"odd"}"#, "odd"),
        (r#"{"mode":"ok","more":1}"#, "more"),
        (r#"{"mode":"slow","delay":"5"}"#, "delay: "),
        (r#"{"mode":"slow","delay":"2h"}"#, "at most 1h"),
        (
            r#"{"mode":"error","status":99}"#,
            "from 200 to 599, found 99",
        ),
    ] {
        let error = Behaviour::from_json(json.as_bytes())
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn an_id_that_would_change_the_head_is_refused() {
    let settings = BackendSettings {
        listen: "127.0.0.1:0".parse().unwrap(),
        body_bytes: 1,
        threads: Some(1),
        id: "a\r\nEvil: 1".to_owned(),
        control: None,
        tls: None,
    };
    assert_eq!(
        StaticBackend::start(&settings).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
}

#[test]
fn within_tls_it_answers_the_same() {
    use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
    use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

    let signed = rcgen::generate_simple_self_signed(vec!["backend.test".to_owned()]).unwrap();
    let backend = StaticBackend::start(&BackendSettings {
        listen: "127.0.0.1:0".parse().unwrap(),
        body_bytes: 300_000,
        threads: Some(1),
        id: String::new(),
        control: None,
        tls: Some((signed.cert.pem(), signed.signing_key.serialize_pem().into())),
    })
    .unwrap();
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(signed.cert.pem().as_bytes()).unwrap();
    roots.add(authority).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let config = std::sync::Arc::new(config);
    let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let last = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let name = ServerName::try_from("backend.test").unwrap();
    let session = ClientConnection::new(config, name).unwrap();
    let mut stream = StreamOwned::new(session, connect(&backend));
    // One record with several requests, and answers that the socket does not take at once.
    stream
        .write_all(format!("{get}{get}{get}{last}").as_bytes())
        .unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    let heads = all
        .windows(15)
        .filter(|part| *part == b"HTTP/1.1 200 OK")
        .count();
    let letters = all.iter().filter(|byte| **byte == b'Z').count();
    assert_eq!((heads, letters), (4, 1_200_000));
    // Who speaks no TLS is told nothing, and nobody else suffers.
    let mut plain = connect(&backend);
    plain.write_all(get.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"));
    assert_eq!(backend.requests(), 4);
}

#[test]
fn a_certificate_that_is_none_is_said_at_the_start() {
    let settings = BackendSettings {
        listen: "127.0.0.1:0".parse().unwrap(),
        body_bytes: 1,
        threads: Some(1),
        id: String::new(),
        control: None,
        tls: Some(("nonsense".to_owned(), "nonsense".into())),
    };
    let error = StaticBackend::start(&settings).unwrap_err().to_string();
    assert!(error.starts_with("prepare TLS of the backend: "), "{error}");
}

#[test]
fn an_address_is_of_one_backend_alone() {
    let first = backend(1);
    let settings = BackendSettings {
        listen: first.address(),
        body_bytes: 1,
        threads: Some(1),
        id: String::new(),
        control: None,
        tls: None,
    };
    let error = StaticBackend::start(&settings).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}");
}
