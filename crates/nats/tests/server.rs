//! Our endpoint with async-nats, our client, and clients that mean no good.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::time::Duration;

use crate::support::{PATIENCE, config, connect, server, server_with, subscribe, take, until};
use futures_util::StreamExt as _;
use nats::Password;
use nats::client::Client;
use nats::codec::Limits;
use nats::server::{Server, ServerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[tokio::test]
async fn another_implementation_gets_what_it_expects() {
    let server = server().await;
    let url = server.address().to_string();
    let one = async_nats::connect(&url).await.unwrap();
    let other = async_nats::connect(&url).await.unwrap();
    let mut exact = one.subscribe("a.b").await.unwrap();
    let mut star = one.subscribe("a.*").await.unwrap();
    let mut rest = other.subscribe(">").await.unwrap();
    one.flush().await.unwrap();
    other.flush().await.unwrap();
    let mut headers = async_nats::HeaderMap::new();
    headers.insert("Key", "value");
    other
        .publish_with_headers("a.b", headers, "payload".into())
        .await
        .unwrap();
    other
        .publish("a.c", vec![b'x'; 100_000].into())
        .await
        .unwrap();
    other.flush().await.unwrap();
    let message = exact.next().await.unwrap();
    assert_eq!(&message.payload[..], b"payload");
    assert_eq!(
        message.headers.unwrap().get("Key").unwrap().as_str(),
        "value"
    );
    assert_eq!(star.next().await.unwrap().subject.as_str(), "a.b");
    assert_eq!(star.next().await.unwrap().payload.len(), 100_000);
    assert_eq!(rest.next().await.unwrap().subject.as_str(), "a.b");
    assert_eq!(rest.next().await.unwrap().subject.as_str(), "a.c");
    // A request, an answer, and the end of a subscription.
    let mut asks = one.subscribe("ask").await.unwrap();
    one.flush().await.unwrap();
    let asked = tokio::spawn(async move { other.request("ask", "?".into()).await });
    let question = asks.next().await.unwrap();
    one.publish(question.reply.unwrap(), "!".into())
        .await
        .unwrap();
    assert_eq!(&asked.await.unwrap().unwrap().payload[..], b"!");
    asks.unsubscribe().await.unwrap();
    one.flush().await.unwrap();
    let stats = server.gauge().read();
    assert_eq!(
        (
            stats.connections,
            stats.slow_consumers,
            stats.protocol_errors
        ),
        (2, 0, 0)
    );
    assert_eq!(stats.in_messages, 4);
    // Three receive a.b, two each of the others.
    assert_eq!(stats.out_messages, 3 + 2 + 2 + 2);
}

#[tokio::test]
async fn one_member_of_a_group_receives_each_message() {
    let server = server().await;
    let url = server.address().to_string();
    let (one, other) = (connect(&url).await, connect(&url).await);
    let limits = nats::client::QueueLimits::default();
    let members = [&one, &one, &other].map(|c| c.subscribe_as_one_of("g", "a", limits).unwrap());
    one.flush().await.unwrap();
    other.flush().await.unwrap();
    for _ in 0..300 {
        one.publish(b"a", b"x").unwrap();
    }
    one.flush().await.unwrap();
    other.flush().await.unwrap();
    let counts = members
        .each_ref()
        .map(|member| member.gauge().read().received);
    assert_eq!(counts, [100; 3]);
}

#[tokio::test]
async fn clients_that_publish_once_reach_every_member_of_a_group() {
    let server = server().await;
    let url = server.address().to_string();
    let taker = connect(&url).await;
    let limits = nats::client::QueueLimits::default();
    let members = [(); 3].map(|()| taker.subscribe_as_one_of("g", "a", limits).unwrap());
    taker.flush().await.unwrap();
    for _ in 0..3 {
        let client = connect(&url).await;
        client.publish(b"a", b"x").unwrap();
        client.flush().await.unwrap();
    }
    taker.flush().await.unwrap();
    let counts = members
        .each_ref()
        .map(|member| member.gauge().read().received);
    assert_eq!(counts, [1; 3]);
}

#[tokio::test]
async fn who_asks_nobody_is_told_at_once() {
    let server = server().await;
    let client = async_nats::connect(server.address().to_string())
        .await
        .unwrap();
    let error = client.request("nobody", "?".into()).await.unwrap_err();
    assert_eq!(error.kind(), async_nats::RequestErrorKind::NoResponders);
    let asks = "SUB in.* 7\r\nPUB nobody in.1 1\r\n?\r\nPUB nobody 1\r\n?\r\nPING\r\n";
    for (connect, told) in [
        (
            r#"CONNECT {"verbose":false,"headers":true,"no_responders":true}"#,
            "HMSG in.1 7 16 16\r\nNATS/1.0 503\r\n\r\n\r\n",
        ),
        (r#"CONNECT {"verbose":false,"headers":true}"#, ""),
    ] {
        let mut stream = raw(&server, &format!("{connect}\r\n{asks}")).await;
        let answer = read_until(&mut stream, "PONG\r\n").await;
        let (_, answer) = answer.split_once("}\r\n").unwrap();
        assert_eq!(answer, format!("{told}PONG\r\n"), "{connect}");
    }
    let mut stream = raw(&server, "CONNECT {\"no_responders\":true}\r\n").await;
    assert!(
        read_to_end(&mut stream)
            .await
            .contains("-ERR 'no responders requires headers support'")
    );
}

#[tokio::test]
async fn its_clients_come_back() {
    let server = server().await;
    let address = server.address();
    let client = connect(&address.to_string()).await;
    let mut subscription = subscribe(&client, "a").await;
    let mut state = client.state();
    server.stop().await;
    state.wait_for(|state| !state.connected).await.unwrap();
    let again = ServerConfig {
        listen: address,
        ..ServerConfig::default()
    };
    // What another test is just starting holds the listener, too, until it is a program.
    let refused = || std::net::TcpStream::connect(address).is_err();
    until("nobody listens any more", refused).await;
    let server = Server::start(again).await.unwrap();
    state.wait_for(|state| state.connected).await.unwrap();
    client.flush().await.unwrap();
    client.publish(b"a", b"1").unwrap();
    assert_eq!(take(&mut subscription, 1).await[0].2, "1");
    assert_eq!(server.gauge().read().subscriptions, 1);
}

#[tokio::test]
async fn who_does_not_read_is_cut_off_and_the_others_are_not() {
    let server = server_with(ServerConfig {
        pending_bytes: 1 << 20,
        ..ServerConfig::default()
    })
    .await;
    let url = server.address().to_string();
    let mut slow = raw(&server, "SUB a 1\r\nPING\r\n").await;
    read_until(&mut slow, "PONG\r\n").await;
    let client = connect(&url).await;
    let mut quick = subscribe(&client, "a").await;
    let count = 20_000;
    let publisher = client.clone();
    let published = tokio::spawn(async move {
        for _ in 0..count {
            publisher
                .publish_when_room(b"a", &[b'x'; 1000])
                .await
                .unwrap();
        }
        publisher.flush().await.unwrap();
    });
    take(&mut quick, count).await;
    published.await.unwrap();
    let gauge = server.gauge();
    until("the slow one is gone", || gauge.read().connections == 1).await;
    let stats = gauge.read();
    assert_eq!((stats.slow_consumers, stats.subscriptions), (1, 1));
}

#[tokio::test]
async fn users_prove_who_they_are() {
    let server = server_with(ServerConfig {
        user: Some(("nats".into(), Password::new("secret"))),
        auth_timeout: Duration::from_millis(300),
        ..ServerConfig::default()
    })
    .await;
    let url = server.address().to_string();
    let mut with = config(&url);
    for (user, password, good) in [
        ("nats", "secret", true),
        ("nats", "secre", false),
        ("nat", "secret", false),
        ("", "", false),
    ] {
        with.user = Some((user.into(), Password::new(password)));
        assert_eq!(
            Client::connect(with.clone()).await.is_ok(),
            good,
            "{user} {password}"
        );
    }
    // Who has proven it stays for longer than the others may take for that.
    with.user = Some(("nats".into(), Password::new("secret")));
    let client = Client::connect(with).await.unwrap();
    for (sent, told) in [
        ("SUB > 1\r\n", "Authorization Violation"),
        ("PUB a 1\r\nx\r\n", "Authorization Violation"),
        (
            "CONNECT {\"user\":\"nats\",\"pass\":\"x\"}\r\n",
            "Authorization Violation",
        ),
        ("", "Authentication Timeout"),
    ] {
        let mut stream = raw(&server, sent).await;
        assert!(read_to_end(&mut stream).await.contains(told), "{sent}");
    }
    client.flush().await.unwrap();
    assert_eq!(client.state().borrow().reconnects, 0);
    let stats = server.gauge().read();
    assert_eq!((stats.in_messages, stats.auth_errors), (0, 3 * 3 + 4));
}

#[tokio::test]
async fn what_breaks_the_protocol_is_told_and_closed() {
    let limits = Limits {
        line_bytes: 128,
        payload_bytes: 64,
    };
    let server = server_with(ServerConfig {
        limits,
        max_subscriptions: 2,
        ..ServerConfig::default()
    })
    .await;
    for (sent, told) in [
        ("GET / HTTP/1.1\r\n\r\n", "Unknown Protocol Operation"),
        ("MSG a 1 0\r\n\r\n", "Unknown Protocol Operation"),
        ("PUB a 65\r\n", "Maximum Payload Violation"),
        ("PUB a 1\r\nxyz", "Parser Error"),
        ("PUB a\r\n", "Parser Error"),
        ("CONNECT no\r\n", "Invalid CONNECT"),
    ] {
        let mut stream = raw(&server, sent).await;
        let answer = read_to_end(&mut stream).await;
        assert!(
            answer.contains(&format!("-ERR '{told}'\r\n")),
            "{sent:?}: {answer:?}"
        );
    }
    let mut stream = raw(&server, &"x".repeat(1000)).await;
    assert!(
        read_to_end(&mut stream)
            .await
            .contains("Maximum Control Line Exceeded")
    );
    // What is merely wrong is told, and the connection goes on.
    for (sent, told) in [
        ("PUB a.* 1\r\nx\r\n", "Invalid Publish Subject"),
        ("SUB a..b 1\r\n", "Invalid Subject"),
        (
            "SUB a 1\r\nSUB a 2\r\nSUB a 3\r\n",
            "maximum subscriptions exceeded",
        ),
    ] {
        let mut stream = raw(&server, &format!("{sent}PING\r\n")).await;
        let answer = read_until(&mut stream, "PONG\r\n").await;
        let told = format!("-ERR '{told}'\r\nPONG\r\n");
        assert!(answer.ends_with(&told), "{sent:?}: {answer:?}");
    }
    // Of what they publish only those are told who asked for it.
    let sent = "CONNECT {\"verbose\":false,\"pedantic\":false}\r\nPUB a..b 1\r\nx\r\nPING\r\n";
    let mut stream = raw(&server, sent).await;
    let answer = read_until(&mut stream, "PONG\r\n").await;
    assert!(answer.ends_with("}\r\nPONG\r\n"), "{answer}");
    drop(stream);
    let gauge = server.gauge();
    until("all are gone", || gauge.read().connections == 0).await;
    assert_eq!(
        (gauge.read().protocol_errors, gauge.read().subscriptions),
        (7, 0)
    );
}

#[tokio::test]
async fn verbose_clients_and_those_without_an_echo_get_their_way() {
    let server = server().await;
    let mut stream = raw(
        &server,
        "CONNECT {\"echo\":false}\r\nSUB a 1\r\nPUB a 1\r\nx\r\nUNSUB 1\r\nPING\r\n",
    )
    .await;
    let answer = read_until(&mut stream, "PONG\r\n").await;
    assert!(
        answer.ends_with("+OK\r\n+OK\r\n+OK\r\n+OK\r\nPONG\r\n"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_subscription_ends_after_the_messages_it_asked_for() {
    let server = server().await;
    let sent = "SUB a 1\r\nUNSUB 1 2\r\nPUB a 1\r\nx\r\nPUB a 1\r\ny\r\nPUB a 1\r\nz\r\nPING\r\n";
    let mut stream = raw(&server, sent).await;
    let answer = read_until(&mut stream, "PONG\r\n").await;
    assert!(
        answer.ends_with("MSG a 1 1\r\nx\r\nMSG a 1 1\r\ny\r\nPONG\r\n"),
        "{answer}"
    );
    assert_eq!(server.gauge().read().subscriptions, 0);
}

#[tokio::test]
async fn one_client_too_many_is_refused() {
    let server = server_with(ServerConfig {
        max_connections: 1,
        ..ServerConfig::default()
    })
    .await;
    let mut first = raw(&server, "PING\r\n").await;
    read_until(&mut first, "PONG\r\n").await;
    let mut second = raw(&server, "").await;
    assert!(
        read_to_end(&mut second)
            .await
            .contains("maximum connections exceeded")
    );
    assert_eq!(server.gauge().read().refused, 1);
}

#[tokio::test]
async fn a_silent_client_is_stale() {
    let server = server_with(ServerConfig {
        ping_interval: Duration::from_millis(20),
        ..ServerConfig::default()
    })
    .await;
    // Answers, and stays.
    let client = connect(&server.address().to_string()).await;
    let mut silent = raw(&server, "").await;
    assert!(
        read_to_end(&mut silent)
            .await
            .contains("-ERR 'Stale Connection'")
    );
    client.flush().await.unwrap();
    assert_eq!(client.state().borrow().reconnects, 0);
}

#[tokio::test]
async fn a_silent_server_is_left() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut with = config(&listener.local_addr().unwrap().to_string());
    with.ping_interval = Duration::from_millis(20);
    let greeted = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"INFO {}\r\nPONG\r\n").await.unwrap();
        stream
    });
    let client = Client::connect(with).await.unwrap();
    let _stream = greeted.await.unwrap();
    let mut state = client.state();
    let away = state
        .wait_for(|state| !state.connected)
        .await
        .unwrap()
        .clone();
    assert!(away.reason.unwrap().contains("two PINGs"));
}

async fn raw(server: &Server, bytes: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    stream
}

async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut found = Vec::new();
    let read = async {
        while !found.ends_with(end.as_bytes()) {
            assert_ne!(stream.read_buf(&mut found).await.unwrap(), 0, "{found:?}");
        }
    };
    tokio::time::timeout(PATIENCE, read)
        .await
        .expect("an answer");
    String::from_utf8(found).unwrap()
}

async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut found = Vec::new();
    // What the server had not read may end the connection with a reset.
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut found))
        .await
        .expect("an end");
    String::from_utf8(found).unwrap()
}
