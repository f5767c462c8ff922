//! Servers and clients against each other, and against peers that misbehave.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../tests/end_to_end/free_port.rs"]
mod free_port;

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use net::{Body, BodyError, Client, ClientError, ClientOptions, Handler, Limits, read_body};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::free_port::free_port;

/// Sends the body back; counts requests. Bodies are at most 1,000 bytes.
#[derive(Default)]
struct Echo {
    requests: AtomicUsize,
    troubles: std::sync::Mutex<Vec<String>>,
}

impl Handler for Echo {
    fn connection_failed(&self, failure: &net::ConnectionFailure) {
        self.troubles.lock().unwrap().push(failure.to_string());
    }

    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        if request.uri().path() == "/endless" {
            let (pieces, body) = tokio::sync::mpsc::channel(1);
            tokio::spawn(async move {
                while pieces.send(Bytes::from(vec![b'x'; 1 << 20])).await.is_ok() {}
            });
            return Response::new(net::stream(body));
        }
        match read_body(request.into_body(), 1000, Duration::from_millis(300)).await {
            Ok(body) => Response::new(net::full(body)),
            Err(error) => {
                let mut response = Response::new(net::full(error.to_string()));
                *response.status_mut() = match error {
                    BodyError::TooLong { .. } => StatusCode::PAYLOAD_TOO_LARGE,
                    BodyError::TooSlow { .. } => StatusCode::REQUEST_TIMEOUT,
                    BodyError::Broken(_) => StatusCode::BAD_REQUEST,
                };
                response
            }
        }
    }
}

struct Server {
    address: SocketAddr,
    echo: Arc<Echo>,
    stop: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

async fn serve(limits: Limits, tls: Option<Arc<rustls::ServerConfig>>) -> Server {
    serve_at([127, 0, 0, 1].into(), limits, tls).await
}

async fn serve_at(ip: IpAddr, limits: Limits, tls: Option<Arc<rustls::ServerConfig>>) -> Server {
    let listener = net::bind((ip, 0).into()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let echo = Arc::new(Echo::default());
    let (stop, asked) = net::shutdown();
    let task = tokio::spawn(net::serve(listener, tls, limits, Arc::clone(&echo), asked));
    Server {
        address,
        echo,
        stop,
        task,
    }
}

fn uri(scheme: &str, address: SocketAddr, path: &str) -> Uri {
    format!("{scheme}://{address}{path}").parse().unwrap()
}

async fn post(client: &Client, uri: &Uri, body: &[u8]) -> Result<net::Answer, ClientError> {
    let body = Bytes::copy_from_slice(body);
    client.post(uri, "text/plain", HeaderMap::new(), body).await
}

#[tokio::test]
async fn a_body_is_handed_out_as_it_arrives_and_its_connection_is_kept() {
    let one = Limits {
        connections: 1,
        ..Limits::default()
    };
    let server = serve(one, None).await;
    let client = Client::new(ClientOptions {
        answer_bytes: 5 << 20,
        ..ClientOptions::default()
    });
    let echo = uri("http", server.address, "/");
    for n in 0..5 {
        let (text, mut taken) = (format!("request {n}"), Vec::new());
        let take = |piece: Bytes| taken.extend_from_slice(&piece);
        let (headers, body) = (HeaderMap::new(), Bytes::from(text.clone()));
        let answer = client.post_for_pieces(&echo, "text/plain", headers, body, take);
        assert_eq!(answer.await.unwrap().0, StatusCode::OK);
        assert_eq!(taken, text.as_bytes());
    }
    // One without an end breaks off at the bound, after what lies before it.
    let (endless, mut taken) = (uri("http", server.address, "/endless"), 0);
    let take = |piece: Bytes| taken += piece.len();
    let answer =
        client.post_for_pieces(&endless, "text/plain", HeaderMap::new(), Bytes::new(), take);
    let error = answer.await.unwrap_err().to_string();
    assert!(error.contains("longer than 5242880 bytes"), "{error}");
    assert!((4 << 20..=5 << 20).contains(&taken), "{taken}");
}

#[tokio::test]
async fn a_body_comes_back_and_connections_are_kept() {
    let server = serve(
        Limits {
            connections: 1,
            ..Limits::default()
        },
        None,
    )
    .await;
    let client = Client::new(ClientOptions::default());
    let uri = uri("http", server.address, "/");
    // The server takes one connection only: a second request must reuse it.
    for n in 0..20 {
        let text = format!("request {n}");
        let answer = post(&client, &uri, text.as_bytes()).await.unwrap();
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.body, text);
    }
    assert_eq!(server.echo.requests.load(Ordering::SeqCst), 20);
}

#[tokio::test]
async fn many_requests_share_few_connections() {
    let server = serve(
        Limits {
            connections: 2,
            ..Limits::default()
        },
        None,
    )
    .await;
    let client = Client::new(ClientOptions {
        connections_per_host: 2,
        ..Default::default()
    });
    let uri = uri("http", server.address, "/");
    let requests: Vec<_> = (0..100)
        .map(|_| {
            let (client, uri) = (client.clone(), uri.clone());
            tokio::spawn(async move { post(&client, &uri, b"x").await.unwrap().status })
        })
        .collect();
    for request in requests {
        assert_eq!(request.await.unwrap(), StatusCode::OK);
    }
}

#[tokio::test]
async fn hundreds_of_connections_may_wait_to_be_accepted() {
    let listener = net::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let address = listener.local_addr().unwrap();
    // Nobody accepts. A full queue would leave some of them unanswered for a second.
    let connects = (0..500).map(|_| TcpStream::connect(address));
    let mut open = Vec::new();
    for connect in connects {
        let connected = tokio::time::timeout(Duration::from_millis(900), connect).await;
        open.push(connected.expect("the queue was full").unwrap());
    }
    assert_eq!(open.len(), 500);
}

#[tokio::test]
async fn a_long_body_is_refused_before_it_is_read() {
    let server = serve(Limits::default(), None).await;
    let client = Client::new(ClientOptions::default());
    let answer = post(&client, &uri("http", server.address, "/"), &[b'x'; 1001])
        .await
        .unwrap();
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn the_sender_of_a_long_body_finds_the_answer_and_no_broken_connection() {
    let server = serve(Limits::default(), None).await;
    for announced in [true, false] {
        let mut peer = TcpStream::connect(server.address).await.unwrap();
        let head = if announced {
            "POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 7000\r\n\r\n"
        } else {
            "POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
        };
        peer.write_all(head.as_bytes()).await.unwrap();
        for _ in 0..7 {
            // Slower than an answer is: a server that had closed would refuse the next part.
            tokio::time::sleep(Duration::from_millis(10)).await;
            if !announced {
                peer.write_all(b"3e8\r\n").await.unwrap();
            }
            peer.write_all(&[b'x'; 1000]).await.unwrap();
            if !announced {
                peer.write_all(b"\r\n").await.unwrap();
            }
        }
        if !announced {
            peer.write_all(b"0\r\n\r\n").await.unwrap();
        }
        let mut answer = String::new();
        peer.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    }
}

#[tokio::test]
async fn a_body_far_too_long_is_not_read_to_its_end() {
    let server = serve(Limits::default(), None).await;
    let mut peer = TcpStream::connect(server.address).await.unwrap();
    peer.write_all(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n")
        .await
        .unwrap();
    let mut answer = vec![0; 12];
    peer.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 413");
}

#[tokio::test]
async fn connections_without_a_place_are_told() {
    let limits = Limits {
        connections: 2,
        ..Limits::default()
    };
    let server = serve(limits, None).await;
    assert_eq!(*server.echo.troubles.lock().unwrap(), [""; 0]);
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(TcpStream::connect(server.address).await.unwrap());
    }
    while server.echo.troubles.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let told = server.echo.troubles.lock().unwrap()[0].clone();
    assert!(told.starts_with("2 connections are open"), "{told}");
    drop(open);
    let client = Client::new(ClientOptions::default());
    let answer = post(&client, &uri("http", server.address, "/"), b"x").await;
    assert_eq!(answer.unwrap().body, "x");
}

#[tokio::test]
async fn a_body_that_does_not_come_is_given_up() {
    let server = serve(Limits::default(), None).await;
    let mut peer = TcpStream::connect(server.address).await.unwrap();
    peer.write_all(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nhalf")
        .await
        .unwrap();
    let mut answer = vec![0; 12];
    peer.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 408");
}

#[tokio::test]
async fn a_head_that_does_not_come_closes_the_connection() {
    let limits = Limits {
        head_within: Duration::from_millis(100),
        ..Limits::default()
    };
    let server = serve(limits, None).await;
    let mut peer = TcpStream::connect(server.address).await.unwrap();
    peer.write_all(b"POST / HT").await.unwrap();
    let mut rest = Vec::new();
    peer.read_to_end(&mut rest).await.unwrap();
    assert_eq!(server.echo.requests.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_peer_that_does_not_begin_http2_loses_its_connection() {
    let limits = Limits {
        head_within: Duration::from_millis(300),
        ..Limits::default()
    };
    let listener = net::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_stop, asked) = net::shutdown();
    let echo = Arc::new(Echo::default());
    tokio::spawn(net::serve_http2(listener, None, limits, echo, asked));
    for begun in ["", "PRI * HTTP/2"] {
        let mut peer = TcpStream::connect(address).await.unwrap();
        peer.write_all(begun.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let end = peer.read_to_end(&mut rest);
        let end = tokio::time::timeout(Duration::from_secs(10), end).await;
        assert!(end.is_ok(), "the connection is kept after {begun:?}");
    }
    let request = Request::post(format!("http://{address}/"));
    let body = http_body_util::Full::new(Bytes::from_static(b"x"));
    let request = request.body(body).unwrap();
    let answer = net::http2_exchange(&address.to_string(), None, request, 100).await;
    assert_eq!(answer.unwrap().body, "x");
}

#[tokio::test]
async fn a_peer_that_stops_reading_loses_its_connection_only() {
    let limits = Limits {
        connections: 2,
        write_stall: Duration::from_millis(100),
        ..Limits::default()
    };
    let server = serve(limits, None).await;
    let mut peers = Vec::new();
    for _ in 0..2 {
        let mut peer = TcpStream::connect(server.address).await.unwrap();
        peer.write_all(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n")
            .await
            .unwrap();
        peers.push(peer);
    }
    // Both places are taken by peers that never read; they come free again.
    let client = Client::new(ClientOptions::default());
    let answer = post(&client, &uri("http", server.address, "/"), b"x")
        .await
        .unwrap();
    assert_eq!(answer.body, "x");
}

#[tokio::test]
async fn garbage_is_answered_or_dropped_and_the_server_goes_on() {
    let server = serve(Limits::default(), None).await;
    for garbage in [
        &b"\x16\x03\x01 hello"[..],
        b"GET\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
    ] {
        let mut peer = TcpStream::connect(server.address).await.unwrap();
        peer.write_all(garbage).await.unwrap();
        peer.shutdown().await.unwrap();
        let mut rest = Vec::new();
        let _ = peer.read_to_end(&mut rest).await;
    }
    let client = Client::new(ClientOptions::default());
    assert_eq!(
        post(&client, &uri("http", server.address, "/"), b"x")
            .await
            .unwrap()
            .body,
        "x"
    );
}

#[tokio::test]
async fn a_kept_connection_that_the_server_closed_costs_no_request() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // Answers one request per connection without saying that it will close it.
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                .await;
        }
    });
    let client = Client::new(ClientOptions::default());
    for _ in 0..10 {
        assert_eq!(
            post(&client, &uri("http", address, "/"), b"x")
                .await
                .unwrap()
                .body,
            "ok"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn errors_say_what_was_tried() {
    let client = Client::new(ClientOptions::default());
    let free = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let error = post(&client, &uri("http", free, "/"), b"")
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with(&format!("connect to {free}: ")),
        "{error}"
    );
    let error = post(&client, &uri("https", free, "/"), b"")
        .await
        .unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    let taken = net::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let error = net::bind(taken.local_addr().unwrap()).await.unwrap_err();
    assert!(
        error.to_string().starts_with("listen on 127.0.0.1:"),
        "{error}"
    );
}

#[tokio::test]
async fn an_address_that_a_process_still_holds_is_waited_for() {
    let first = net::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let address = first.local_addr().unwrap();
    // As a process does between its fork and its program.
    let held = first.into_std().unwrap();
    assert!(
        std::net::TcpListener::bind(address).is_err(),
        "in use as long as one descriptor is left"
    );
    let holds = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        drop(held);
    });
    let second = net::bind(address).await.unwrap();
    assert_eq!(second.local_addr().unwrap(), address);
    holds.join().unwrap();
}

#[tokio::test]
async fn a_server_that_stops_finishes_what_it_began() {
    let server = serve(Limits::default(), None).await;
    let mut peer = TcpStream::connect(server.address).await.unwrap();
    peer.write_all(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nx")
        .await
        .unwrap();
    while server.echo.requests.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    server.stop.send(true).unwrap();
    peer.write_all(b"y").await.unwrap();
    let mut answer = String::new();
    peer.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("xy"), "{answer}");
    server.task.await.unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

/// An authority and a stranger, each with a certificate that it signed.
struct Certificates {
    folder: tempfile::TempDir,
}

impl Certificates {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for authority in ["ca", "stranger"] {
            let key = rcgen::KeyPair::generate().unwrap();
            let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
            params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
            let certificate = params.self_signed(&key).unwrap();
            std::fs::write(folder.path().join(authority), certificate.pem()).unwrap();
            let issuer = rcgen::Issuer::from_params(&params, &key);
            let leaf_key = rcgen::KeyPair::generate().unwrap();
            let leaf = rcgen::CertificateParams::new(vec!["127.0.0.1".into(), "::1".into()])
                .unwrap()
                .signed_by(&leaf_key, &issuer)
                .unwrap();
            let path = |kind: &str| folder.path().join(format!("{authority}.{kind}"));
            std::fs::write(path("leaf"), leaf.pem()).unwrap();
            std::fs::write(path("key"), leaf_key.serialize_pem()).unwrap();
        }
        Self { folder }
    }

    fn files(&self, own: &str, trusted: &str) -> net::tls::Files {
        net::tls::Files {
            certificate: self.folder.path().join(format!("{own}.leaf")),
            key: self.folder.path().join(format!("{own}.key")),
            authority: self.folder.path().join(trusted),
        }
    }
}

#[tokio::test]
async fn both_sides_must_be_known() {
    let certificates = Certificates::new();
    let tls = net::tls::server(&certificates.files("ca", "ca")).unwrap();
    let server = serve(Limits::default(), Some(tls)).await;
    let uri = uri("https", server.address, "/");

    let known = ClientOptions {
        tls: Some(net::tls::client(&certificates.files("ca", "ca")).unwrap()),
        ..Default::default()
    };
    assert_eq!(
        post(&Client::new(known), &uri, b"x").await.unwrap().body,
        "x"
    );

    for (own, trusted) in [("stranger", "ca"), ("ca", "stranger")] {
        let files = certificates.files(own, trusted);
        let stranger = ClientOptions {
            tls: Some(net::tls::client(&files).unwrap()),
            ..Default::default()
        };
        post(&Client::new(stranger), &uri, b"x").await.unwrap_err();
    }
    assert_eq!(server.echo.requests.load(Ordering::SeqCst), 1);
    let told = server.echo.troubles.lock().unwrap().clone();
    assert!(
        told[0].starts_with("TLS handshake with 127.0.0.1:"),
        "{told:?}"
    );
}

#[tokio::test]
async fn an_address_of_ipv6_is_what_its_certificate_names() {
    if std::net::TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        // This machine has no IPv6.
        return;
    }
    let certificates = Certificates::new();
    let tls = net::tls::server(&certificates.files("ca", "ca")).unwrap();
    let ip = Ipv6Addr::LOCALHOST.into();
    let server = serve_at(ip, Limits::default(), Some(tls)).await;
    let uri = uri("https", server.address, "/");
    assert_eq!(uri.host(), Some("[::1]"));
    let tls = net::tls::client(&certificates.files("ca", "ca")).unwrap();
    let options = ClientOptions {
        tls: Some(Arc::clone(&tls)),
        ..Default::default()
    };
    let client = Client::new(options);
    client.check(&uri.to_string()).unwrap();
    let answer = post(&client, &uri, b"over 6").await.unwrap();
    assert_eq!(answer.body, "over 6");
    // Another name for the same place is not in the certificate.
    let named = format!("https://localhost:{}/", server.address.port());
    let refused = post(&client, &named.parse().unwrap(), b"x")
        .await
        .unwrap_err();
    assert!(matches!(refused, ClientError::Connect { .. }), "{refused}");
}

#[tokio::test]
async fn where_no_tls_is_spoken_that_is_said_and_is_no_reason_to_try_again() {
    let certificates = Certificates::new();
    let client = Client::new(ClientOptions {
        tls: Some(net::tls::client(&certificates.files("ca", "ca")).unwrap()),
        ..Default::default()
    });
    let server = serve(Limits::default(), None).await;
    let plain = uri("https", server.address, "/");
    let refused = post(&client, &plain, b"x").await.unwrap_err();
    assert!(
        matches!(refused, ClientError::Connect { lasts: true, .. }),
        "{refused}"
    );
    assert!(refused.to_string().contains("speaks no TLS"), "{refused}");
    // Nobody listens: somebody may later.
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let refused = post(&client, &uri("https", address, "/"), b"x").await;
    assert!(matches!(
        refused.unwrap_err(),
        ClientError::Connect { lasts: false, .. }
    ));
}

#[test]
fn base_addresses_are_checked_before_anything_is_sent() {
    let client = Client::new(ClientOptions::default());
    for good in [
        "http://127.0.0.1:8889",
        "http://bbs.internal:1",
        "http://[::1]:8889/",
        "http://[::1]",
    ] {
        client.check(good).unwrap();
    }
    for bad in [
        "",
        "bbs",
        "127.0.0.1:8889",
        "ftp://a:1",
        "http://",
        "http://a:99999",
        "http://a:",
        "http://[::1]:",
        "https://a:1",
    ] {
        let refused = client.check(bad).unwrap_err();
        assert!(
            matches!(refused, ClientError::Address { .. }),
            "{bad}: {refused}"
        );
    }
}

#[test]
fn a_missing_certificate_is_named() {
    let certificates = Certificates::new();
    let mut files = certificates.files("ca", "ca");
    files.certificate = certificates.folder.path().join("nowhere.pem");
    let error = net::tls::server(&files).unwrap_err().to_string();
    assert!(error.contains("nowhere.pem"), "{error}");
}
