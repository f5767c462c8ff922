//! HTTP/2 at both edges: real clients, real backends, trailers as gRPC uses them.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request, Response, request};
use rustls::pki_types::ServerName;
use tokio::io::AsyncWriteExt as _;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::bench::{Backend, Bench, PATIENCE, alone, ok};
use super::tls::{Authority, server};
use crate::http::settings::HttpSettings;
use crate::table::{BackendProtocol, Endpoint, PoolSettings, RouteKey};

pub(super) fn run<T>(what: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let bounded = async { tokio::time::timeout(PATIENCE, what).await };
    runtime
        .block_on(bounded)
        .expect("what was awaited never came")
}

/// A router that speaks TLS with clients, and trusts the authority.
pub(super) fn bench(authority: &Authority, backends: &[SocketAddr]) -> Bench {
    Bench::with(backends, |settings: &mut HttpSettings| {
        settings.listen_tls = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        settings.client_tls.certificates = vec![authority.sign("app.test")];
        settings.client_tls.tls13 = true;
        settings.backends.authorities = authority.pem();
    })
}

/// Registers a backend that speaks HTTP/2 within TLS.
fn register(bench: &Bench, address: SocketAddr) {
    let endpoint = Endpoint {
        identity: address.to_string().into(),
        tls: true,
        server_name: "instance-1".into(),
        protocol: BackendProtocol::Http2,
        ..Endpoint::default()
    };
    let key = RouteKey::new("app.test").unwrap();
    bench
        .table
        .register(&key, endpoint, &PoolSettings::default(), 0);
}

/// A TLS connection to the router that agrees on HTTP/2.
pub(super) async fn connect_tls(
    bench: &Bench,
    authority: &Authority,
) -> tokio_rustls::client::TlsStream<tokio::net::TcpStream> {
    let mut config = authority.client().with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let socket = tokio::net::TcpStream::connect(bench.engine.tls_address().unwrap())
        .await
        .unwrap();
    socket.set_nodelay(true).unwrap();
    let name = ServerName::try_from("app.test").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, socket)
        .await
        .unwrap()
}

/// A connection to the router that agrees on HTTP/2.
pub(super) async fn connect(bench: &Bench, authority: &Authority) -> SendRequest<Bytes> {
    let tls = connect_tls(bench, authority).await;
    let (send, connection) = h2::client::handshake(tls).await.unwrap();
    tokio::spawn(connection);
    send.ready().await.unwrap()
}

/// A backend that speaks HTTP/2 within TLS; [`serve`] answers. Also counts connections.
fn http2_backend(authority: &Authority) -> (SocketAddr, Arc<AtomicU64>) {
    let mut config = server(&authority.sign("instance-1"));
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&connections);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((socket, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    socket.set_nodelay(true).unwrap();
                    let tls = acceptor.accept(socket).await.unwrap();
                    let mut connection = h2::server::handshake(tls).await.unwrap();
                    while let Some(Ok((request, respond))) = connection.accept().await {
                        tokio::spawn(serve(request, respond));
                    }
                });
            }
        });
    });
    (address, connections)
}

/// Sends back what comes, as it comes, and trailers behind it.
async fn serve(request: Request<RecvStream>, mut respond: h2::server::SendResponse<Bytes>) {
    let (head, mut body) = request.into_parts();
    let seen = |name| head.headers.get(name).cloned();
    if head.uri.path() == "/reset" {
        respond.send_reset(Reason::INTERNAL_ERROR);
        return;
    }
    let mut response = Response::builder()
        .header("content-type", "application/grpc")
        .header("saw-authority", head.uri.authority().unwrap().as_str());
    for (name, as_seen) in [
        ("te", "saw-te"),
        ("x-forwarded-proto", "saw-proto"),
        ("x-forwarded-for", "saw-client"),
    ] {
        if let Some(value) = seen(name) {
            response = response.header(as_seen, value);
        }
    }
    if head.uri.path() == "/trailers-only" {
        let response = response.header("grpc-status", "12").body(()).unwrap();
        respond.send_response(response, true).unwrap();
        return;
    }
    let mut send = respond
        .send_response(response.body(()).unwrap(), false)
        .unwrap();
    while let Some(Ok(part)) = body.data().await {
        let _ = body.flow_control().release_capacity(part.len());
        send_all(&mut send, part).await;
    }
    let mut trailers = body.trailers().await.ok().flatten().unwrap_or_default();
    trailers.insert("grpc-status", "0".parse().unwrap());
    let _ = send.send_trailers(trailers);
}

async fn send_all(send: &mut SendStream<Bytes>, mut part: Bytes) {
    while !part.is_empty() {
        send.reserve_capacity(part.len());
        let room = std::future::poll_fn(|context| send.poll_capacity(context)).await;
        let Some(Ok(room)) = room else {
            return;
        };
        let _ = send.send_data(part.split_to(room.min(part.len())), false);
    }
}

fn get(path: &str) -> request::Builder {
    Request::get(format!("https://app.test{path}"))
}

async fn whole(answer: Response<RecvStream>) -> Result<(Vec<u8>, Option<HeaderMap>), h2::Error> {
    let mut body = answer.into_body();
    let mut bytes = Vec::new();
    while let Some(part) = body.data().await {
        let part = part?;
        let _ = body.flow_control().release_capacity(part.len());
        bytes.extend_from_slice(&part);
    }
    Ok((bytes, body.trailers().await?))
}

#[test]
fn clients_speak_http_2_and_backends_http_1() {
    let authority = Authority::new();
    let backend = Backend::answering(|asked| {
        let body = [asked.path().as_bytes(), b" ", &asked.message.body].concat();
        ok(&body)
    });
    let bench = bench(&authority, &[backend.address]);
    run(async {
        let send = connect(&bench, &authority).await;
        let mut tasks = Vec::new();
        for turn in 0..40_usize {
            let mut send = send.clone().ready().await.unwrap();
            tasks.push(tokio::spawn(async move {
                let path = format!("/{turn}");
                let body = vec![b'x'; turn * 5_000];
                let request = get(&path).method("POST").body(()).unwrap();
                let (answer, mut to) = send.send_request(request, false).unwrap();
                let expected = [path.as_bytes(), b" ", &body].concat();
                send_all(&mut to, body.into()).await;
                to.send_data(Bytes::new(), true).unwrap();
                let answer = answer.await.unwrap();
                assert_eq!(answer.status(), 200);
                assert!(answer.headers().contains_key("x-vcap-request-id"));
                assert!(!answer.headers().contains_key("connection"));
                let (bytes, _) = whole(answer).await.unwrap();
                assert!(bytes == expected, "{turn}: {} bytes", bytes.len());
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        // What the router answers itself.
        let mut send = send.ready().await.unwrap();
        let request = Request::get("https://nobody.test/").body(()).unwrap();
        let (answer, _) = send.send_request(request, true).unwrap();
        let answer = answer.await.unwrap();
        assert_eq!(answer.status(), 404);
        assert_eq!(answer.headers()["x-cf-routererror"], "unknown_route");
    });
    bench.until("all have gone", |totals| totals.open_clients == 0);
    assert_eq!(bench.totals().requests, 41);
}

#[test]
fn both_sides_speak_http_2_and_converse() {
    let authority = Authority::new();
    let (address, connections) = http2_backend(&authority);
    let bench = bench(&authority, &[]);
    register(&bench, address);
    run(async {
        let mut send = connect(&bench, &authority).await;
        for _ in 0..3 {
            send = send.ready().await.unwrap();
            let request = get("/chat")
                .method("POST")
                .header("te", "trailers")
                .header("content-type", "application/grpc")
                .body(())
                .unwrap();
            let (answer, mut to) = send.send_request(request, false).unwrap();
            to.send_data("one".into(), false).unwrap();
            let answer = answer.await.unwrap();
            assert_eq!(answer.headers()["saw-te"], "trailers");
            assert_eq!(answer.headers()["saw-authority"], "app.test");
            assert_eq!(answer.headers()["saw-proto"], "https");
            assert_eq!(answer.headers()["saw-client"], "127.0.0.1");
            let mut body = answer.into_body();
            assert_eq!(body.data().await.unwrap().unwrap(), "one");
            for word in ["two", "three"] {
                to.send_data(word.into(), false).unwrap();
                assert_eq!(body.data().await.unwrap().unwrap(), word);
            }
            let mut trailers = HeaderMap::new();
            trailers.insert("x-checksum", "7".parse().unwrap());
            to.send_trailers(trailers).unwrap();
            assert!(body.data().await.is_none());
            let trailers = body.trailers().await.unwrap().unwrap();
            assert_eq!(trailers["grpc-status"], "0");
            assert_eq!(trailers["x-checksum"], "7");
        }
        // An answer that is a head only, as gRPC fails.
        send = send.ready().await.unwrap();
        let (answer, _) = send
            .send_request(get("/trailers-only").body(()).unwrap(), true)
            .unwrap();
        let answer = answer.await.unwrap();
        assert_eq!(answer.headers()["grpc-status"], "12");
    });
    // The connection to the backend is kept between requests.
    assert_eq!(connections.load(Ordering::Relaxed), 1);
    assert_eq!(bench.totals().dialed, 1);
}

#[test]
fn clients_speak_http_1_and_backends_http_2() {
    let authority = Authority::new();
    let (address, connections) = http2_backend(&authority);
    let bench = bench(&authority, &[]);
    register(&bench, address);
    let mut client = bench.client();
    for _ in 0..3 {
        client.send(b"POST /echo HTTP/1.1\r\nHost: app.test\r\nContent-Length: 5\r\n\r\nhello");
        let seen = client.answer().unwrap();
        assert_eq!((seen.status, seen.body.as_slice()), (200, &b"hello"[..]));
        assert_eq!(seen.field("saw-authority"), Some("app.test"));
        let seen = client.get("/trailers-only");
        assert_eq!((seen.status, seen.field("grpc-status")), (200, Some("12")));
    }
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}

#[test]
fn a_side_that_gives_up_is_told_to_the_other() {
    let authority = Authority::new();
    let (address, _) = http2_backend(&authority);
    let bench = bench(&authority, &[]);
    register(&bench, address);
    run(async {
        let mut send = connect(&bench, &authority).await;
        let (answer, _) = send
            .send_request(get("/reset").body(()).unwrap(), true)
            .unwrap();
        assert_eq!(answer.await.unwrap().status(), 502);
        // A client that resets its stream takes back its request.
        send = send.ready().await.unwrap();
        let request = get("/chat").method("POST").body(()).unwrap();
        let (answer, mut to) = send.send_request(request, false).unwrap();
        to.send_data("one".into(), false).unwrap();
        let mut body = answer.await.unwrap().into_body();
        assert_eq!(body.data().await.unwrap().unwrap(), "one");
        to.send_reset(Reason::CANCEL);
        while bench.totals().clients_gone == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    });
    bench.until("all have gone", |totals| {
        totals.open_clients == 0 && totals.active == 0
    });
}

#[test]
fn a_drain_lets_open_streams_end() {
    let authority = Authority::new();
    let (address, _) = http2_backend(&authority);
    let bench = bench(&authority, &[]);
    register(&bench, address);
    run(async {
        let mut send = connect(&bench, &authority).await;
        let request = get("/chat").method("POST").body(()).unwrap();
        let (answer, mut to) = send.send_request(request, false).unwrap();
        let mut body = answer.await.unwrap().into_body();
        bench.engine.drain();
        // The client is told to open no more.
        while std::future::poll_fn(|context| send.poll_ready(context))
            .await
            .is_ok()
        {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        to.send_data("last".into(), true).unwrap();
        assert_eq!(body.data().await.unwrap().unwrap(), "last");
        assert_eq!(body.trailers().await.unwrap().unwrap()["grpc-status"], "0");
    });
    bench.until("all have gone", |totals| totals.open_clients == 0);
    assert_eq!(bench.engine.active(), 0);
}

/// A frame of HTTP/2 (RFC 9113 section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [&head, payload].concat()
}

/// A text of HPACK without Huffman's code (RFC 7541 section 5.2).
fn text(of: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    match of.len() {
        short @ 0..127 => bytes.push(short as u8),
        mut rest => {
            bytes.push(127);
            rest -= 127;
            while rest > 127 {
                bytes.push(rest as u8 | 128);
                rest >>= 7;
            }
            bytes.push(rest as u8);
        }
    }
    bytes.extend_from_slice(of.as_bytes());
    bytes
}

/// Some hundred bytes stand for nearly a megabyte of fields, on each of many streams.
#[test]
fn heads_that_unfold_to_megabytes_find_a_bound() {
    let authority = Authority::new();
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let backend = Backend::answering(move |_| {
        let _ = held.lock().unwrap().recv();
        ok(b"x")
    });
    let bench = bench(&authority, &[backend.address]);
    // GET, https, /, and the authority.
    let request = [&[0x82, 0x87, 0x84, 0x01][..], &text("app.test")].concat();
    // One field that is remembered, and then named by its place.
    let remembered = [&[0x40][..], &text("x-a"), &text(&"z".repeat(3900))].concat();
    let bomb = [&request[..], &[0xbe; 240]].concat();
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, b""));
    bytes.extend(frame(1, 5, 1, &[&request[..], &remembered].concat()));
    for stream in 1..200 {
        bytes.extend(frame(1, 5, 1 + 2 * stream, &bomb));
    }
    run(async {
        let mut socket = connect_tls(&bench, &authority).await;
        socket.write_all(&bytes).await.unwrap();
        bench.until("some are refused", |totals| totals.refused_streams > 0);
        drop(release);
        let mut send = connect(&bench, &authority).await;
        let (answer, _) = send.send_request(get("/").body(()).unwrap(), true).unwrap();
        assert_eq!(answer.await.unwrap().status(), 200);
    });
    bench.until("nothing is left", |totals| totals.active == 0);
}

#[test]
fn connections_of_http_2_are_clients_as_all_others() {
    let authority = Authority::new();
    let backend = Backend::answering(|_| ok(b"x"));
    let bench = Bench::with(&[backend.address], |settings| {
        settings.listen_tls = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        settings.client_tls.certificates = vec![authority.sign("app.test")];
        settings.client_connections = 2;
    });
    run(async {
        let first = connect(&bench, &authority).await;
        let second = connect(&bench, &authority).await;
        bench.until("both are there", |totals| totals.open_clients == 2);
        let mut third = bench.client();
        bench.until("accepting pauses", |totals| totals.full > 0);
        assert_eq!(bench.totals().open_clients, 2);
        drop((first, second));
        assert_eq!(
            tokio::task::spawn_blocking(move || third.get("/").status)
                .await
                .unwrap(),
            200
        );
    });
}

/// Descriptors of this process that are pairs of sockets or pollers.
fn local_descriptors() -> usize {
    let unix = std::fs::read_to_string("/proc/self/net/unix").unwrap();
    let ours: Vec<&str> = unix
        .lines()
        .filter_map(|line| line.split_whitespace().nth(6))
        .collect();
    let mut count = 0;
    for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let Ok(target) = std::fs::read_link(entry.path()) else {
            continue;
        };
        let target = target.to_string_lossy().into_owned();
        let inode = target
            .strip_prefix("socket:[")
            .and_then(|rest| rest.strip_suffix(']'));
        count += usize::from(inode.is_some_and(|inode| ours.contains(&inode)));
        count += usize::from(target.contains("eventpoll"));
    }
    count
}

/// Answers that nobody takes hold as much as the windows of their clients, and no
/// descriptor beside those of the clients' and the backends' connections.
#[test]
fn streams_that_nobody_reads_hold_little() {
    const STREAMS: usize = 200;
    if !alone() {
        return;
    }
    let authority = Authority::new();
    let backend = Backend::answering(|_| ok(&vec![b'x'; 1 << 20]));
    let bench = bench(&authority, &[backend.address]);
    run(async {
        let send = connect(&bench, &authority).await;
        let before = local_descriptors();
        let mut waiting = Vec::new();
        for _ in 0..STREAMS {
            let mut send = send.clone().ready().await.unwrap();
            let (answer, _) = send.send_request(get("/").body(()).unwrap(), true).unwrap();
            waiting.push(answer.await.unwrap());
        }
        assert_eq!(bench.totals().active, STREAMS as u64);
        assert!(local_descriptors() < before + STREAMS / 4);
        // They are read after all, each as a whole; together, as they share a window.
        let reading: Vec<_> = waiting
            .into_iter()
            .map(|answer| tokio::spawn(whole(answer)))
            .collect();
        for answer in reading {
            assert_eq!(answer.await.unwrap().unwrap().0.len(), 1 << 20);
        }
    });
    bench.until("all have gone", |totals| totals.open_clients == 0);
}

/// Beyond the most connections a stream is refused, and can be asked for again.
#[test]
fn streams_beyond_the_bound_are_refused() {
    let authority = Authority::new();
    let (address, _) = http2_backend(&authority);
    let bench = Bench::with(&[], |settings| {
        settings.listen_tls = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        settings.client_tls.certificates = vec![authority.sign("app.test")];
        settings.client_tls.tls13 = true;
        settings.backends.authorities = authority.pem();
        settings.client_connections = 3;
        settings.threads = Some(1);
    });
    register(&bench, address);
    run(async {
        let mut send = connect(&bench, &authority).await;
        let mut open = Vec::new();
        for _ in 0..2 {
            send = send.ready().await.unwrap();
            let request = get("/chat").method("POST").body(()).unwrap();
            let (answer, to) = send.send_request(request, false).unwrap();
            open.push((answer.await.unwrap(), to));
        }
        send = send.ready().await.unwrap();
        let (answer, _) = send.send_request(get("/").body(()).unwrap(), true).unwrap();
        let refused = answer.await.unwrap_err();
        assert_eq!(refused.reason(), Some(Reason::REFUSED_STREAM));
        assert_eq!(bench.totals().refused_streams, 1);
        let (answer, mut to) = open.pop().unwrap();
        to.send_data(Bytes::new(), true).unwrap();
        whole(answer).await.unwrap();
        bench.until("there is room", |totals| totals.open_clients == 2);
        send = send.ready().await.unwrap();
        let (answer, _) = send.send_request(get("/").body(()).unwrap(), true).unwrap();
        assert_eq!(answer.await.unwrap().status(), 200);
    });
}

/// A backend that takes WebSockets, and sends back what comes.
fn websocket_backend() -> Backend {
    Backend::new(|mut connection, _| {
        let asked = connection.head().unwrap();
        let field = |name| asked.message.field(name).unwrap_or("none").to_owned();
        if asked.path() == "/refuses" {
            connection.send(
                b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno",
            );
            return connection.wait_for_end();
        }
        assert_eq!(asked.line, "GET /chat?a=b HTTP/1.1");
        assert_eq!(field("upgrade"), "websocket");
        assert_eq!(field("sec-websocket-version"), "13");
        assert_eq!(field("sec-websocket-protocol"), "one");
        let key = field("sec-websocket-key");
        let accept = tungstenite::handshake::derive_accept_key(key.as_bytes());
        let accept = if field("x-lie") == "none" {
            accept
        } else {
            "lie".to_owned()
        };
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: one\r\n\
             Sec-WebSocket-Extensions: permessage-deflate\r\n\r\nfirst"
        );
        connection.send(answer.as_bytes());
        let bytes = connection.read_exact(300_000);
        connection.send(&bytes);
        connection.wait_for_end();
        connection.send(b"last");
    })
}

/// The head of an extended CONNECT.
fn websocket(path: &str) -> request::Builder {
    Request::builder()
        .method("CONNECT")
        .uri(format!("https://app.test{path}"))
        .extension(h2::ext::Protocol::from_static("websocket"))
        .header("sec-websocket-version", "13")
        .header("sec-websocket-protocol", "one")
        .header("sec-websocket-extensions", "permessage-deflate")
}

#[test]
fn websockets_open_on_streams() {
    let authority = Authority::new();
    let backend = websocket_backend();
    let bench = bench(&authority, &[backend.address]);
    run(async {
        let mut send = connect(&bench, &authority).await;
        // The server's first word says that it takes them.
        while !send.is_extended_connect_protocol_enabled() {
            tokio::task::yield_now().await;
            send = send.ready().await.unwrap();
        }
        let request = websocket("/chat?a=b").body(()).unwrap();
        let (answer, mut to) = send.send_request(request, false).unwrap();
        let answer = answer.await.unwrap();
        assert_eq!(answer.status(), 200);
        let headers = answer.headers();
        assert_eq!(headers["sec-websocket-protocol"], "one");
        assert_eq!(headers["sec-websocket-extensions"], "permessage-deflate");
        for name in [
            "sec-websocket-accept",
            "upgrade",
            "connection",
            "content-length",
        ] {
            assert!(headers.get(name).is_none(), "{name}");
        }
        let bytes: Vec<u8> = (0..300_000_u32).map(|number| number as u8).collect();
        let sent = bytes.clone();
        tokio::spawn(async move {
            send_all(&mut to, sent.into()).await;
            to.send_data(Bytes::new(), true).unwrap();
        });
        let (seen, trailers) = whole(answer).await.unwrap();
        assert!(
            seen == [b"first", &bytes[..], b"last"].concat(),
            "{} bytes",
            seen.len()
        );
        assert_eq!(trailers, None);
        bench.until("it is over", |totals| totals.open_tunnels == 0);
        assert_eq!(bench.totals().upgrades, 1);

        // A backend that refuses, and one that does not read handshakes.
        let request = websocket("/refuses").body(()).unwrap();
        let (answer, _to) = send.send_request(request, false).unwrap();
        let answer = answer.await.unwrap();
        assert_eq!(answer.status(), 403);
        assert_eq!(whole(answer).await.unwrap().0, b"no");
        let request = websocket("/chat?a=b")
            .header("x-lie", "1")
            .body(())
            .unwrap();
        let (answer, _to) = send.send_request(request, false).unwrap();
        let error = answer.await.unwrap_err();
        assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR));
        // No other protocol is known.
        let mut request = websocket("/chat?a=b").body(()).unwrap();
        request
            .extensions_mut()
            .insert(h2::ext::Protocol::from_static("connect-udp"));
        let (answer, _to) = send.send_request(request, false).unwrap();
        assert_eq!(answer.await.unwrap().status(), 501);
    });
}

#[test]
fn a_websocket_on_a_stream_ends_with_its_client_and_its_backend() {
    let authority = Authority::new();
    let backend = Backend::new(|mut connection, number| {
        let asked = connection.head().unwrap();
        let key = asked.message.field("sec-websocket-key").unwrap().to_owned();
        let accept = tungstenite::handshake::derive_accept_key(key.as_bytes());
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: {accept}\r\n\r\nhi"
        );
        connection.send(answer.as_bytes());
        if number > 0 {
            connection.wait_for_end();
        }
    });
    let bench = bench(&authority, &[backend.address]);
    run(async {
        let mut send = connect(&bench, &authority).await;
        while !send.is_extended_connect_protocol_enabled() {
            tokio::task::yield_now().await;
            send = send.ready().await.unwrap();
        }
        // The backend ends.
        let (answer, mut to) = send
            .send_request(websocket("/").body(()).unwrap(), false)
            .unwrap();
        let answer = answer.await.unwrap();
        assert_eq!(whole(answer).await.unwrap().0, b"hi");
        // The stream may be over for both sides already.
        let _ = to.send_data(Bytes::new(), true);
        bench.until("the backend's end", |totals| totals.open_tunnels == 0);
        // The client gives up.
        let (answer, mut to) = send
            .send_request(websocket("/").body(()).unwrap(), false)
            .unwrap();
        let mut body = answer.await.unwrap().into_body();
        assert_eq!(body.data().await.unwrap().unwrap(), "hi");
        bench.until("a tunnel", |totals| totals.open_tunnels == 1);
        to.send_reset(Reason::CANCEL);
        while bench.totals().open_tunnels > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    });
}
