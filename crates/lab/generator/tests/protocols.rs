//! Every protocol against a server of another make.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use crate::accepting::accepting;
use crate::workload::{closed, failures, open, plain, refusal, run};
use lab_load::arrivals::Process;
use lab_load::recording::{Phase, UNFIT};
use lab_load::request::{AnswerEnd, Assertion, Body, Mix, Step};
use lab_load::{Protocol, Workload};

fn target(treat: impl Fn(TcpStream) + Send + Sync + Clone + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let treat = treat.clone();
            std::thread::spawn(move || treat(stream));
        }
    });
    address
}

fn speaking(protocol: Protocol, address: SocketAddr, connections: u32, step: Step) -> Workload {
    let mut workload = plain(address, connections);
    workload.target.protocol = protocol;
    workload.mix = Mix::of(step);
    workload
}

fn echo(mut stream: TcpStream) {
    let mut bytes = [0; 1024];
    while let Ok(read @ 1..) = stream.read(&mut bytes) {
        if stream.write_all(&bytes[..read]).is_err() {
            return;
        }
    }
}

#[test]
fn tcp_answers_end_as_told() {
    let address = target(echo);
    for end in [
        AnswerEnd::Echo,
        AnswerEnd::Bytes(6),
        AnswerEnd::Delimiter(b"\n".to_vec()),
    ] {
        let mut step = Step::new("line", "", "");
        step.body = Body::Template("hello\n".to_owned());
        step.answer = end.clone();
        step.assertions = vec![
            Assertion::Size(6, 6),
            Assertion::BodyContains("hello".to_owned()),
        ];
        let seen = run(speaking(Protocol::Tcp, address, 3, step), &closed(30))
            .total
            .requests();
        let counts = (seen.answered, seen.failed(), seen.refused);
        assert_eq!(
            counts,
            (30, 0, 0),
            "{end:?} {:?} {:?}",
            seen.errors,
            seen.refusals
        );
        assert_eq!((seen.bytes_sent, seen.bytes_received), (180, 180));
        assert!(seen.statuses.is_empty());
    }
}

#[test]
fn tcp_answers_that_end_with_the_connection() {
    let address = target(|mut stream| {
        let _ = stream.read(&mut [0; 64]);
        let _ = stream.write_all(b"bye");
    });
    let mut step = Step::new("bye", "", "");
    step.body = Body::Template("quit".to_owned());
    step.answer = AnswerEnd::Close;
    let total = run(speaking(Protocol::Tcp, address, 2, step), &closed(10)).total;
    assert_eq!(
        (total.requests().answered, total.connections.closed),
        (10, 10)
    );
}

#[test]
fn datagrams_are_answered_or_lost() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut datagram = [0; 2048];
        let mut number = 0;
        while let Ok((length, from)) = server.recv_from(&mut datagram) {
            number += 1;
            // Every fifth is lost; of the others, one is empty.
            match number % 5 {
                0 => continue,
                1 => server.send_to(&[], from).unwrap(),
                _ => server.send_to(&datagram[..length], from).unwrap(),
            };
        }
    });
    let mut step = Step::new("ping", "", "");
    step.body = Body::Template("ping".to_owned());
    let mut workload = speaking(Protocol::Udp, address, 1, step);
    workload.timeout = Duration::from_millis(100);
    let seen = run(workload, &closed(20)).total.requests();
    assert_eq!((seen.sent, seen.answered), (20, 16));
    assert_eq!(failures(&seen), [(Phase::Timeout, "timeout", 4)]);
    assert_eq!(seen.bytes_received, 12 * 4);
}

#[test]
fn messages_of_websocket() {
    let address = target(|stream| {
        let mut socket = tungstenite::accept(stream).unwrap();
        while let Ok(message) = socket.read() {
            if message.is_text() {
                // A question in between must not be taken for the answer.
                let ping = tungstenite::Message::Ping(vec![1, 2, 3].into());
                socket.send(ping).unwrap();
                socket.send(message).unwrap();
            }
        }
    });
    let mut step = Step::new("say", "", "/chat");
    step.body = Body::Template("number {seq}".to_owned());
    step.assertions = vec![Assertion::BodyMatches("^number [0-9]+$".to_owned())];
    let workload = speaking(Protocol::WebSocket, address, 4, step);
    let total = run(workload, &open(Process::Constant, 200.0, 0.5)).total;
    let seen = total.requests();
    let counts = (seen.answered, seen.failed(), seen.refused);
    assert_eq!(counts, (100, 0, 0), "{:?} {:?}", seen.errors, seen.refusals);
    assert_eq!(total.connections.open, 4);
}

/// Whoever asks whether we are there in one piece with an answer hears it before anything else.
#[test]
fn pings_around_an_answer_of_websocket() {
    let address = target(|stream| {
        let mut socket = tungstenite::accept(stream).unwrap();
        while let Ok(message) = socket.read() {
            if !message.is_text() {
                continue;
            }
            let ping = |number: u8| tungstenite::Message::Ping(vec![number].into());
            for frame in [ping(1), message, ping(2)] {
                socket.write(frame).unwrap();
            }
            socket.flush().unwrap();
            for number in [1_u8, 2] {
                let pong = tungstenite::Message::Pong(vec![number].into());
                if socket.read().ok() != Some(pong) {
                    return;
                }
            }
        }
    });
    let mut step = Step::new("say", "", "/chat");
    step.body = Body::Template("number {seq}".to_owned());
    let total = run(speaking(Protocol::WebSocket, address, 2, step), &closed(20)).total;
    let seen = total.requests();
    assert_eq!((seen.answered, seen.failed()), (20, 0), "{:?}", seen.errors);
    let connections = &total.connections;
    assert_eq!((connections.opened, connections.closed), (2, 0));
}

/// What a target says while nothing is asked of it is nobody's answer, however much it is.
#[test]
fn messages_of_websocket_that_nobody_asked_for() {
    let address = target(|stream| {
        let mut socket = tungstenite::accept(stream).unwrap();
        while let Ok(message) = socket.read() {
            if !message.is_text() {
                continue;
            }
            socket.send(message).unwrap();
            std::thread::sleep(Duration::from_millis(20));
            for _ in 0..3 {
                let _ = socket.write(tungstenite::Message::text("news"));
            }
            if socket.flush().is_err() {
                return;
            }
        }
    });
    let mut step = Step::new("say", "", "/chat");
    step.body = Body::Template("number {seq}".to_owned());
    step.assertions = vec![Assertion::BodyMatches("^number [0-9]+$".to_owned())];
    let workload = speaking(Protocol::WebSocket, address, 1, step);
    let total = run(workload, &open(Process::Constant, 5.0, 1.0)).total;
    let seen = total.requests();
    let counts = (seen.answered, seen.failed(), seen.refused);
    assert_eq!(counts, (5, 0, 0), "{:?} {:?}", seen.errors, seen.refusals);
    let connections = &total.connections;
    assert_eq!((connections.opened, connections.surplus), (1, 0));
}

/// It comes in one piece with the answer to the handshake.
#[test]
fn a_greeting_of_websocket_is_no_answer() {
    let address = target(|mut stream| {
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.lines();
        let key = lines.find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "));
        let accept = tungstenite::handshake::derive_accept_key(key.unwrap().as_bytes());
        let upgraded = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {accept}\r\n\r\n"
        );
        let greeted = [upgraded.as_bytes(), b"\x81\x05hello"].concat();
        stream.write_all(&greeted).unwrap();
        let role = tungstenite::protocol::Role::Server;
        let mut socket = tungstenite::WebSocket::from_raw_socket(stream, role, None);
        while let Ok(message) = socket.read() {
            if message.is_text() {
                socket.send(message).unwrap();
            }
        }
    });
    let mut step = Step::new("say", "", "/chat");
    step.body = Body::Template("number {seq}".to_owned());
    step.assertions = vec![Assertion::BodyMatches("^number [0-9]+$".to_owned())];
    let total = run(speaking(Protocol::WebSocket, address, 2, step), &closed(20)).total;
    let seen = total.requests();
    assert_eq!((seen.good(), seen.failed()), (20, 0), "{:?}", seen.errors);
    assert_eq!(total.connections.surplus, 0);
}

/// It says that it will say no more, and waits for the client to hang up.
#[test]
fn a_target_of_websocket_that_takes_its_leave() {
    let address = target(|stream| {
        let mut socket = tungstenite::accept(stream).unwrap();
        while let Ok(message) = socket.read() {
            if message.is_text() {
                socket.send(message).unwrap();
                std::thread::sleep(Duration::from_millis(20));
                let _ = socket.close(None);
                let _ = socket.flush();
                std::thread::sleep(Duration::from_secs(3));
                return;
            }
        }
    });
    let mut step = Step::new("say", "", "/chat");
    step.body = Body::Template("number {seq}".to_owned());
    let workload = speaking(Protocol::WebSocket, address, 1, step);
    let total = run(workload, &open(Process::Constant, 5.0, 1.0)).total;
    let seen = total.requests();
    assert_eq!((seen.answered, seen.failed()), (5, 0), "{:?}", seen.errors);
    assert!(total.connections.closed >= 4, "{:?}", total.connections);
}

#[test]
fn a_target_that_does_not_upgrade() {
    let address = target(|mut stream| {
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    });
    let step = Step::new("say", "", "/chat");
    let said = refusal(speaking(Protocol::WebSocket, address, 1, step));
    assert!(
        said.starts_with(&format!(
            "upgrade the connection to {address} to WebSocket: "
        )),
        "{said}"
    );
}

/// A certificate for 127.0.0.1, of an authority if wanted, and a server's configuration
/// with it.
fn certificate(authority: bool) -> (String, Arc<rustls::ServerConfig>) {
    let signer = rcgen::KeyPair::generate().unwrap();
    let mut made = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    if authority {
        made.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    }
    let made = made.self_signed(&signer).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(signer.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.der().clone()], key)
        .unwrap();
    (made.pem(), Arc::new(config))
}

/// HTTP/1.1 within TLS.
fn secure() -> (SocketAddr, String) {
    secure_with(certificate(false))
}

fn secure_with((pem, config): (String, Arc<rustls::ServerConfig>)) -> (SocketAddr, String) {
    let address = target(move |stream| {
        let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut stream = rustls::StreamOwned::new(connection, stream);
        let mut seen = Vec::new();
        let mut bytes = [0; 1024];
        while let Ok(read @ 1..) = stream.read(&mut bytes) {
            seen.extend_from_slice(&bytes[..read]);
            if seen.ends_with(b"\r\n\r\n") {
                seen.clear();
                let body = vec![b'x'; 100_000];
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                if stream
                    .write_all(&[head.as_bytes(), &body].concat())
                    .is_err()
                {
                    return;
                }
            }
        }
    });
    (address, pem)
}

#[test]
fn http_within_tls() {
    let (address, pem) = secure();
    let mut workload = plain(address, 3);
    workload.target.tls = true;
    workload.tls.authorities = pem;
    let seen = run(workload.clone(), &closed(30)).total.requests();
    assert_eq!((seen.answered, seen.failed()), (30, 0), "{:?}", seen.errors);
    assert!(seen.bytes_received > 30 * 100_000);
    // Every connection anew, resumed or not.
    workload.connections.requests_each = Some(1);
    let total = run(workload, &closed(12)).total;
    assert_eq!(
        (total.requests().answered, total.connections.reused),
        (12, 0)
    );
}

#[test]
fn a_target_that_nobody_vouches_for() {
    let (address, _) = secure();
    let mut workload = plain(address, 1);
    workload.target.tls = true;
    let expected = format!(
        "begin TLS with {address}: certificate unknown; give the authority that signed the \
         certificate (--cacert FILE), or accept any (-k, --insecure)"
    );
    assert_eq!(refusal(workload.clone()), expected);
    workload.tls.insecure = true;
    assert_eq!(
        run(workload.clone(), &closed(3)).total.requests().answered,
        3
    );
    workload.tls.authorities = "no certificate at all".to_owned();
    workload.tls.insecure = false;
    let said = refusal(workload);
    assert!(
        said.starts_with("prepare TLS: read the trusted authorities: "),
        "{said}"
    );
}

/// A server of HTTP/2 that answers each request with its body, and gRPC's trailers.
fn http2(streams: u32) -> SocketAddr {
    accepting(move |stream| serve_http2(stream, streams))
}

async fn serve_http2(stream: tokio::net::TcpStream, streams: u32) {
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(streams);
    let Ok(mut connection) = builder.handshake::<_, bytes::Bytes>(stream).await else {
        return;
    };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        tokio::spawn(async move {
            let mut body = request.into_body();
            let mut echoed = Vec::new();
            while let Some(Ok(part)) = body.data().await {
                echoed.extend_from_slice(&part);
                let _ = body.flow_control().release_capacity(part.len());
            }
            let head = http::Response::builder()
                .header("server", "test")
                .body(())
                .unwrap();
            let Ok(mut answer) = respond.send_response(head, false) else {
                return;
            };
            let _ = answer.send_data(echoed.into(), false);
            let mut trailers = http::HeaderMap::new();
            trailers.insert("grpc-status", http::HeaderValue::from_static("0"));
            let _ = answer.send_trailers(trailers);
        });
    }
}

#[test]
fn http2_carries_many_at_a_time() {
    // The target allows fewer streams than asked for.
    for allowed in [100, 4] {
        let address = http2(allowed);
        let mut step = Step::new("post", "POST", "/echo");
        step.body = Body::Template("number {seq}".to_owned());
        step.assertions = vec![
            Assertion::Status(vec![(200, 200)]),
            Assertion::Header("server".to_owned(), "test".to_owned()),
            Assertion::BodyMatches("^number [0-9]+$".to_owned()),
        ];
        let mut workload = speaking(Protocol::Http2, address, 2, step);
        workload.connections.streams = 16;
        let total = run(workload.clone(), &closed(500)).total;
        let seen = total.requests();
        let counts = (seen.sent, seen.answered, seen.failed(), seen.refused);
        assert_eq!(
            counts,
            (500, 500, 0, 0),
            "{:?} {:?}",
            seen.errors,
            seen.refusals
        );
        assert_eq!(total.connections.opened, 2);
        assert_eq!(total.connections.open, 2);
        assert!(total.in_flight > 4, "{}", total.in_flight);
        let total = run(workload.clone(), &open(Process::Poisson, 500.0, 0.6)).total;
        assert_eq!((total.planned, total.requests().answered), (300, 300));
        workload.connections.requests_each = Some(50);
        let total = run(workload, &closed(500)).total;
        assert_eq!(
            total.requests().answered,
            500,
            "{:?}",
            total.requests().errors
        );
        assert!(total.connections.opened >= 9, "{:?}", total.connections);
    }
}

#[test]
fn users_whose_requests_http2_cannot_carry_do_not_try_without_end() {
    let mut step = Step::new("get", "GET", "/");
    step.headers = vec![("Host".to_owned(), "no host".to_owned())];
    let mut segment = closed(0);
    segment.length.requests = None;
    segment.length.duration = Some(Duration::from_millis(300));
    let seen = run(speaking(Protocol::Http2, http2(100), 1, step), &segment)
        .total
        .requests();
    let tried = seen.failed();
    assert_eq!(failures(&seen), [(Phase::Write, UNFIT, tried)]);
    assert!((2..=31).contains(&tried), "{tried}");
}

#[test]
fn unary_calls_of_grpc() {
    let address = http2(100);
    let mut step = Step::new("call", "", "/test.Echo/Say");
    step.body = Body::Template("hello".to_owned());
    step.assertions = vec![Assertion::BodyContains("hello".to_owned())];
    let mut workload = speaking(Protocol::Grpc, address, 1, step);
    workload.connections.streams = 8;
    let seen = run(workload, &closed(50)).total.requests();
    let counts = (seen.answered, seen.failed(), seen.refused);
    assert_eq!(counts, (50, 0, 0), "{:?} {:?}", seen.errors, seen.refusals);
    assert_eq!(seen.statuses.get(&0), Some(&50));
}

#[test]
fn a_target_of_http2_that_goes_away() {
    let address = target(|mut stream| {
        let _ = stream.set_read_timeout(Some(Duration::from_millis(50)));
        let _ = stream.read(&mut [0; 4096]);
        // An empty SETTINGS frame, then nothing more.
        let _ = stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.read(&mut [0; 4096]);
    });
    let mut workload = speaking(Protocol::Http2, address, 1, Step::new("get", "GET", "/"));
    workload.connections.streams = 4;
    workload.timeout = Duration::from_secs(2);
    let seen = run(workload, &closed(8)).total.requests();
    assert_eq!(seen.answered + seen.failed(), 8, "{:?}", seen.errors);
    assert_eq!(seen.answered, 0);
}

#[test]
fn http2_is_not_spoken_within_tls() {
    let (address, pem) = secure();
    let mut workload = speaking(Protocol::Http2, address, 1, Step::new("get", "GET", "/"));
    workload.target.tls = true;
    workload.tls.authorities = pem;
    let said = refusal(workload);
    let expected = format!(
        "begin TLS with {address}: no common protocol; the target does not offer this \
         protocol: try HTTP/1.1"
    );
    assert_eq!(said, expected);
}

/// A target of HTTP/1.1 refuses the first frame of HTTP/2 and closes. That is said
/// before there is load, and not tried again for ever.
#[test]
fn http2_is_not_spoken_without_tls() {
    for answer in ["HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", ""] {
        let address = target(move |mut stream| {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        });
        let workload = speaking(Protocol::Http2, address, 1, Step::new("get", "GET", "/"));
        let said = refusal(workload);
        let begin = format!("begin HTTP/2 with {address}: ");
        assert!(said.starts_with(&begin), "{said}");
        assert!(said.ends_with("try HTTP/1.1"), "{said}");
    }
}

/// As nginx does beyond its `worker_connections`.
#[test]
fn a_target_without_room_for_the_connections_is_found_out() {
    let address = target(drop);
    let mut workload = speaking(Protocol::Http1, address, 1, Step::new("get", "GET", "/"));
    workload.connections.held = 1_000;
    workload.connections.most = 1_000;
    let said = refusal(workload);
    assert!(
        said.starts_with(&format!("connect to {address}: closed early")),
        "{said}"
    );
}

/// As `openssl req -x509` makes them.
#[test]
fn a_certificate_that_is_its_own_authority_is_accepted_where_it_was_given() {
    let (address, pem) = secure_with(certificate(true));
    let mut workload = plain(address, 1);
    workload.target.tls = true;
    workload.tls.authorities = pem;
    let seen = run(workload.clone(), &closed(3)).total.requests();
    assert_eq!((seen.answered, seen.failed()), (3, 0), "{:?}", seen.errors);
    // Another one of the same name is not.
    let (_, other) = secure_with(certificate(true));
    workload.tls.authorities = other;
    let said = refusal(workload);
    let begin = format!("begin TLS with {address}: self-signed certificate; ");
    assert!(said.starts_with(&begin), "{said}");
}
