//! Over real sockets. What passes when is tested without them, beside `stream` and `datagram`.

use std::future::Future;
use std::net::{Ipv4Addr, Shutdown};
use std::os::fd::OwnedFd;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{sleep, timeout};

use super::*;

const MS: Duration = Duration::from_millis(1);
/// What does not come within this is taken not to come; what does come is waited for without
/// end.
const NEVER: Duration = Duration::from_millis(150);

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(test);
}

fn anywhere() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

async fn proxy(protocol: Protocol, upstream: SocketAddr) -> Proxy {
    let settings = ProxySettings {
        protocol,
        listen: anywhere(),
        upstream,
        seed: 5,
        most_connections: 8,
    };
    Proxy::start(settings).await.unwrap()
}

fn toxic(kind: ToxicKind) -> Toxic {
    Toxic {
        name: "it".into(),
        kind,
        direction: None,
        clients: Clients::All,
    }
}

/// A server, a proxy before it, and a connection through both.
async fn connected() -> (TcpListener, Proxy, TcpStream, TcpStream) {
    let listener = TcpListener::bind(anywhere()).await.unwrap();
    let proxy = proxy(Protocol::Tcp, listener.local_addr().unwrap()).await;
    let client = TcpStream::connect(proxy.address()).await.unwrap();
    let (server, _) = listener.accept().await.unwrap();
    (listener, proxy, client, server)
}

async fn expect(stream: &mut TcpStream, text: &str) {
    let mut found = vec![0; text.len()];
    stream.read_exact(&mut found).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&found), text);
}

async fn nothing_comes(stream: &mut TcpStream) {
    let read = timeout(NEVER, stream.read_u8()).await;
    assert!(read.is_err(), "{read:?}");
}

async fn is_reset(stream: &mut TcpStream) {
    let error = stream.read_u8().await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{error}");
}

#[test]
fn bytes_pass_both_ways_and_half_closes_are_forwarded() {
    run(async {
        let (_listener, proxy, mut client, mut server) = connected().await;
        client.write_all(b"question").await.unwrap();
        client.shutdown().await.unwrap();
        let mut question = String::new();
        server.read_to_string(&mut question).await.unwrap();
        assert_eq!(question, "question");
        // The other direction is still open.
        server.write_all(b"answer!").await.unwrap();
        drop(server);
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "answer!");
        let traffic = proxy.traffic();
        assert_eq!((traffic.to_server_bytes, traffic.to_client_bytes), (8, 7));
        while proxy.traffic().open_connections > 0 {
            sleep(MS).await;
        }
    });
}

#[test]
fn megabytes_pass_unharmed_while_toxics_come_and_go() {
    run(async {
        let (_listener, proxy, mut client, mut server) = connected().await;
        let bytes: Vec<u8> = (0..8_000_000_u32).map(|n| (n % 251) as u8).collect();
        let send = async {
            client.write_all(&bytes).await.unwrap();
            client.shutdown().await.unwrap();
        };
        let receive = async {
            let mut found = Vec::new();
            server.read_to_end(&mut found).await.unwrap();
            assert!(found == bytes);
        };
        let disturb = async {
            let jitter = Jitter::Uniform(3 * MS);
            for kind in [
                ToxicKind::Delay { by: 5 * MS, jitter },
                ToxicKind::Partition,
                ToxicKind::Lose {
                    share: 0.05,
                    retransmit: MS,
                },
                ToxicKind::Slice {
                    bytes: 900,
                    vary: 800,
                    pause: Duration::ZERO,
                },
                ToxicKind::Throttle {
                    bytes_per_s: 20_000_000,
                    burst_bytes: 100_000,
                    of: RateOf::Link,
                },
            ] {
                proxy.put(toxic(kind)).unwrap();
                sleep(15 * MS).await;
            }
            assert!(proxy.take_off("it") && !proxy.take_off("it"));
        };
        tokio::join!(send, receive, disturb);
        assert_eq!(proxy.traffic().to_server_bytes, 8_000_000);
    });
}

#[test]
fn a_partition_holds_one_direction_until_it_heals() {
    run(async {
        let (_listener, proxy, mut client, mut server) = connected().await;
        let direction = Some(Direction::ToServer);
        let cut = proxy
            .put(Toxic {
                direction,
                ..toxic(ToxicKind::Partition)
            })
            .unwrap();
        client.write_all(b"held").await.unwrap();
        server.write_all(b"passes").await.unwrap();
        expect(&mut client, "passes").await;
        nothing_comes(&mut server).await;
        assert_eq!(cut.effect(Direction::ToServer).held_bytes, 4);
        assert_eq!(cut.effect(Direction::ToClient), ToxicEffect::default());
        proxy.take_off("it");
        expect(&mut server, "held").await;
        assert_eq!(cut.effect(Direction::ToServer).held_bytes, 0);
    });
}

#[test]
fn during_a_partition_no_handshake_is_completed_and_after_it_those_that_hung_are() {
    run(async {
        let (listener, proxy, _client, _server) = connected().await;
        proxy.put(toxic(ToxicKind::Partition)).unwrap();
        // The proxy needs a moment to shut its gate; what comes before opens and stands still.
        let mut opened = Vec::new();
        let connecting = loop {
            let mut connecting = Box::pin(TcpStream::connect(proxy.address()));
            match timeout(NEVER, &mut connecting).await {
                Err(_) => break connecting,
                Ok(stream) => opened.push(stream.unwrap()),
            }
            assert!(opened.len() < 5, "handshakes get through");
        };
        let before = opened.len() as u64;
        drop(opened);
        proxy.take_off("it");
        // The kernel repeats the SYN after a second.
        let mut client = connecting.await.unwrap();
        client.write_all(b"late").await.unwrap();
        // Those that had opened reach the server as well, and say nothing.
        for _ in 0..before {
            listener.accept().await.unwrap();
        }
        let (mut server, _) = listener.accept().await.unwrap();
        expect(&mut server, "late").await;
        let ours = "our own connection was counted";
        assert_eq!(proxy.traffic().connections, 2 + before, "{ours}");
    });
}

#[test]
fn a_partition_for_some_clients_lets_the_others_through() {
    run(async {
        let (listener, proxy, mut client, mut server) = connected().await;
        let clients = Clients::Addresses(vec![[127, 0, 0, 2].into()]);
        proxy
            .put(Toxic {
                clients,
                ..toxic(ToxicKind::Partition)
            })
            .unwrap();
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 2], 0).into()).unwrap();
        let mut other = socket.connect(proxy.address()).await.unwrap();
        other.write_all(b"held").await.unwrap();
        assert!(
            timeout(NEVER, listener.accept()).await.is_err(),
            "it reached the server"
        );
        client.write_all(b"passes").await.unwrap();
        expect(&mut server, "passes").await;
        proxy.take_off("it");
        let (mut server, _) = listener.accept().await.unwrap();
        expect(&mut server, "held").await;
    });
}

#[test]
fn a_reset_is_seen_by_both_sides_and_by_those_who_come_after() {
    run(async {
        let (listener, proxy, mut client, mut server) = connected().await;
        let reset = proxy.put(toxic(ToxicKind::Reset(ResetWhen::Now))).unwrap();
        is_reset(&mut client).await;
        is_reset(&mut server).await;
        let mut next = TcpStream::connect(proxy.address()).await.unwrap();
        is_reset(&mut next).await;
        let count = || {
            Direction::ALL
                .map(|way| reset.effect(way).reset_connections)
                .iter()
                .sum::<u64>()
        };
        assert_eq!(count(), 2);
        proxy.take_off("it");
        let mut good = TcpStream::connect(proxy.address()).await.unwrap();
        good.write_all(b"good").await.unwrap();
        expect(&mut listener.accept().await.unwrap().0, "good").await;
    });
}

#[test]
fn a_limit_closes_after_its_last_byte() {
    run(async {
        let (_listener, proxy, mut client, mut server) = connected().await;
        let kind = ToxicKind::Limit {
            bytes: 5,
            end: LimitEnd::Close,
        };
        proxy
            .put(Toxic {
                direction: Some(Direction::ToClient),
                ..toxic(kind)
            })
            .unwrap();
        server.write_all(b"hello world").await.unwrap();
        let mut found = String::new();
        client.read_to_string(&mut found).await.unwrap();
        assert_eq!(found, "hello");
        assert_eq!(server.read(&mut [0; 9]).await.unwrap_or(0), 0);
    });
}

#[test]
fn a_peer_that_resets_is_passed_on() {
    run(async {
        let (_listener, _proxy, mut client, server) = connected().await;
        server.set_zero_linger().unwrap();
        drop(server);
        is_reset(&mut client).await;
    });
}

#[test]
fn nobody_there_and_too_many_are_resets_that_are_counted() {
    run(async {
        let listener = TcpListener::bind(anywhere()).await.unwrap();
        let upstream = listener.local_addr().unwrap();
        let proxy = proxy(Protocol::Tcp, upstream).await;
        let mut eight = Vec::new();
        for _ in 0..8 {
            eight.push(TcpStream::connect(proxy.address()).await.unwrap());
            eight.push(listener.accept().await.unwrap().0);
        }
        is_reset(&mut TcpStream::connect(proxy.address()).await.unwrap()).await;
        assert_eq!(proxy.traffic().refused, 1);
        drop(eight);
        // Closed is not enough: a process that another test is just starting has it, too, until it
        // is a program.
        let listener = OwnedFd::from(listener.into_std().unwrap());
        let socket = std::net::TcpStream::from(listener);
        socket.shutdown(Shutdown::Both).unwrap();
        while proxy.traffic().open_connections > 0 {
            sleep(MS).await;
        }
        is_reset(&mut TcpStream::connect(proxy.address()).await.unwrap()).await;
        assert_eq!(proxy.traffic().unreachable, 1);
    });
}

#[test]
fn a_proxy_that_is_stopped_leaves_no_connection_and_no_port() {
    run(async {
        let (_listener, proxy, mut client, _server) = connected().await;
        let address = proxy.address();
        proxy.stop().await;
        assert_eq!(client.read(&mut [0]).await.unwrap_or(0), 0);
        assert!(TcpStream::connect(address).await.is_err());
    });
}

#[test]
fn what_is_open_to_the_network_or_has_no_meaning_is_refused() {
    run(async {
        let upstream = "127.0.0.1:9".parse().unwrap();
        let settings = |listen: &str, upstream| ProxySettings {
            protocol: Protocol::Udp,
            listen: listen.parse().unwrap(),
            upstream,
            seed: 0,
            most_connections: 1,
        };
        let open = Proxy::start(settings("0.0.0.0:0", upstream))
            .await
            .unwrap_err();
        assert!(matches!(open, ProxyError::Open { .. }), "{open}");
        let same = Proxy::start(settings("127.0.0.1:9", upstream)).await;
        assert!(matches!(same.unwrap_err(), ProxyError::Loop { .. }));
        let proxy = Proxy::start(settings("127.0.0.1:0", upstream))
            .await
            .unwrap();
        let error = proxy
            .put(toxic(ToxicKind::Reset(ResetWhen::Now)))
            .unwrap_err();
        assert!(matches!(error, ToxicError::Protocol { .. }), "{error}");
        for n in 0..MOST_TOXICS {
            proxy
                .put(Toxic {
                    name: n.to_string(),
                    ..toxic(ToxicKind::Partition)
                })
                .unwrap();
        }
        let error = proxy.put(toxic(ToxicKind::Partition)).unwrap_err();
        assert!(matches!(error, ToxicError::TooMany { .. }), "{error}");
        assert!(
            proxy
                .put(Toxic {
                    name: "3".into(),
                    ..toxic(ToxicKind::Partition)
                })
                .is_ok()
        );
    });
}

#[test]
fn datagrams_find_their_way_back_to_the_client_that_asked() {
    run(async {
        let server = UdpSocket::bind(anywhere()).await.unwrap();
        let proxy = proxy(Protocol::Udp, server.local_addr().unwrap()).await;
        let mut clients = Vec::new();
        for n in 0..3_u8 {
            let client = UdpSocket::bind(anywhere()).await.unwrap();
            client.connect(proxy.address()).await.unwrap();
            client.send(&[n]).await.unwrap();
            clients.push(client);
        }
        let mut buffer = [0; 8];
        for _ in 0..3 {
            let (_, from) = server.recv_from(&mut buffer).await.unwrap();
            server.send_to(&[buffer[0] + 100], from).await.unwrap();
        }
        for (n, client) in (0..).zip(&clients) {
            assert_eq!(client.recv(&mut buffer).await.unwrap(), 1);
            assert_eq!(buffer[0], n + 100);
        }
        let cut = proxy.put(toxic(ToxicKind::Partition)).unwrap();
        clients[0].send(b"lost").await.unwrap();
        assert!(timeout(NEVER, server.recv_from(&mut buffer)).await.is_err());
        assert_eq!(cut.effect(Direction::ToServer).dropped_datagrams, 1);
        proxy.take_off("it");
        clients[0].send(b"passes").await.unwrap();
        assert_eq!(server.recv_from(&mut buffer).await.unwrap().0, 6);
        assert_eq!(proxy.traffic().connections, 3);
    });
}
