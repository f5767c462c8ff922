//! The peer is `h2`: what either side sends arrives, however bytes are cut and windows small.

use std::collections::HashMap;
use std::time::Duration;

use ::bytes::Bytes;
use http::{HeaderMap, Request, Response};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use super::*;

fn run<T>(what: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let bounded = async { tokio::time::timeout(Duration::from_secs(60), what).await };
    let local = tokio::task::LocalSet::new();
    local
        .block_on(&runtime, bounded)
        .expect("what was awaited never came")
}

/// Sends what is to be sent, takes what comes in pieces of such sizes, and lets `act` do the rest,
/// until the connection has ended or it says so.
async fn pump(
    connection: &mut Connection,
    mut io: DuplexStream,
    sizes: &[usize],
    mut act: impl FnMut(&mut Connection) -> bool,
) {
    let mut sizes = sizes.iter().cycle();
    let mut bytes = vec![0; 5000];
    loop {
        let done = act(connection);
        connection.end_if_idle();
        while !connection.out().is_empty() {
            let most = *sizes.next().unwrap();
            let part = connection.out();
            let part = part[..part.len().min(most)].to_vec();
            if io.write_all(&part).await.is_err() {
                connection.close(Http2Error::Closed);
                break;
            }
            connection.sent(part.len());
            act(connection);
        }
        if done || connection.ended().is_some() {
            return;
        }
        if connection.has_input() {
            connection.receive(&[]);
            continue;
        }
        match io.read(&mut bytes).await {
            Ok(0) | Err(_) => connection.close(Http2Error::Closed),
            Ok(length) => {
                let mut rest = &bytes[..length];
                while !rest.is_empty() {
                    let (part, behind) = rest.split_at(rest.len().min(*sizes.next().unwrap()));
                    connection.receive(part);
                    rest = behind;
                }
            }
        }
    }
}

/// A server that gives back what it gets: the path as a field, the body, and trailers.
#[derive(Default)]
struct Echo {
    bodies: HashMap<StreamKey, (Vec<u8>, usize, bool)>,
    lost: usize,
}

impl Echo {
    fn act(&mut self, connection: &mut Connection) -> bool {
        while let Some(key) = connection.opened() {
            self.bodies.insert(key, (Vec::new(), 0, false));
            self.turn(connection, key);
        }
        while let Some(key) = connection.touched() {
            self.turn(connection, key);
        }
        false
    }

    fn turn(&mut self, connection: &mut Connection, key: StreamKey) {
        let Some((body, sent, answered)) = self.bodies.get_mut(&key) else {
            return;
        };
        body.extend_from_slice(connection.body(key));
        connection.use_body(key, usize::MAX);
        if connection.failure(key).is_some() {
            self.bodies.remove(&key);
            self.lost += 1;
            connection.release(key);
            return;
        }
        if connection.reading(key) != Reading::Ended {
            return;
        }
        if !*answered {
            let head = connection.head(key).unwrap().clone();
            let ends = body.is_empty() && head.path() == Some(b"/empty");
            connection.answer_interim(key, |block| {
                block.status(103);
                block.field(b"link", b"</a>");
            });
            connection.answer(key, ends, |block| {
                block.status(201);
                block.field(b"X-Path", head.path().unwrap());
                for field in head.iter() {
                    block.field(field.name, field.value);
                }
            });
            *answered = true;
            if ends {
                self.bodies.remove(&key);
                connection.release(key);
                return;
            }
        }
        *sent += connection.send(key, &body[*sent..], false);
        if *sent == body.len() {
            let trailers = connection.take_trailers(key).unwrap_or_default();
            connection.send_trailers(key, |block| {
                block.field(b"grpc-status", b"0");
                for field in trailers.iter() {
                    block.field(field.name, field.value);
                }
            });
            self.bodies.remove(&key);
            connection.release(key);
        }
    }
}

#[derive(Debug, Clone)]
struct Ask {
    body: usize,
    field: String,
    trailers: bool,
    cancel: bool,
}

fn ask() -> impl Strategy<Value = Ask> {
    let body = prop_oneof![Just(0_usize), 1..100_usize, 1..100_000_usize];
    (
        body,
        "[ -~]{0,40}",
        any::<bool>(),
        prop::bool::weighted(0.1),
    )
        .prop_map(|(body, field, trailers, cancel)| Ask {
            body,
            field: field.trim().to_owned(),
            trailers,
            cancel,
        })
}

async fn send_all(send: &mut h2::SendStream<Bytes>, mut rest: Bytes, trailers: bool) {
    while !rest.is_empty() {
        send.reserve_capacity(rest.len());
        let room = std::future::poll_fn(|context| send.poll_capacity(context)).await;
        let Some(Ok(room)) = room else { return };
        let _ = send.send_data(rest.split_to(room.min(rest.len())), false);
    }
    if trailers {
        let mut fields = HeaderMap::new();
        fields.insert("x-sum", "7".parse().unwrap());
        let _ = send.send_trailers(fields);
    } else {
        let _ = send.send_data(Bytes::new(), true);
    }
}

async fn whole(mut body: h2::RecvStream) -> Result<(Vec<u8>, Option<HeaderMap>), h2::Error> {
    let mut bytes = Vec::new();
    while let Some(part) = body.data().await {
        let part = part?;
        let _ = body.flow_control().release_capacity(part.len());
        bytes.extend_from_slice(&part);
    }
    Ok((bytes, body.trailers().await?))
}

fn pattern(length: usize) -> Bytes {
    (0..length).map(|at| at as u8).collect::<Vec<u8>>().into()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_server_answers_a_client_of_h2(
        asks in prop::collection::vec(ask(), 1..25),
        sizes in prop::collection::vec(1..6000_usize, 1..5),
        window in 1..70_000_u32,
        table in prop_oneof![Just(0), 30..5000_u32],
        pipe in 100..100_000_usize,
    ) {
        run(async {
            let (near, far) = tokio::io::duplex(pipe);
            let asking = tokio::task::spawn_local(async move {
                let mut builder = h2::client::Builder::new();
                builder.initial_window_size(window).initial_connection_window_size(window);
                builder.header_table_size(table);
                let (client, connection) = builder.handshake::<_, Bytes>(far).await.unwrap();
                let driven = tokio::task::spawn_local(connection);
                let mut tasks = Vec::new();
                for ask in asks {
                    let mut client = client.clone().ready().await.unwrap();
                    tasks.push(tokio::task::spawn_local(async move {
                        let path = if ask.body == 0 && !ask.trailers { "/empty" } else { "/a?b" };
                        let request = Request::post(format!("http://test{path}"))
                            .header("x-field", &ask.field)
                            .header("cookie", "a=b")
                            .body(())
                            .unwrap();
                        let (answer, mut send) = client.send_request(request, false).unwrap();
                        if ask.cancel {
                            send.send_reset(h2::Reason::CANCEL);
                            return;
                        }
                        let body = pattern(ask.body);
                        send_all(&mut send, body.clone(), ask.trailers).await;
                        let answer = answer.await.unwrap();
                        assert_eq!(answer.status(), 201);
                        assert_eq!(answer.headers()["x-path"], path);
                        assert_eq!(answer.headers()["x-field"], ask.field);
                        assert_eq!(answer.headers()["cookie"], "a=b");
                        let (found, trailers) = whole(answer.into_body()).await.unwrap();
                        assert_eq!(found, body);
                        if path == "/empty" {
                            assert!(trailers.is_none());
                        } else {
                            let trailers = trailers.unwrap();
                            assert_eq!(trailers["grpc-status"], "0");
                            assert_eq!(trailers.contains_key("x-sum"), ask.trailers);
                        }
                    }));
                }
                for task in tasks {
                    task.await.unwrap();
                }
                drop(client);
                driven.await.unwrap().unwrap();
            });
            let mut connection = Connection::new(Role::Server, settings());
            let mut echo = Echo::default();
            pump(&mut connection, near, &sizes, |connection| echo.act(connection)).await;
            assert_eq!(connection.ended(), Some(&Http2Error::Closed));
            assert_eq!(connection.open_streams(), 0);
            assert!(echo.bodies.is_empty());
            asking.await.unwrap();
        });
    }

    #[test]
    fn a_client_asks_a_server_of_h2(
        asks in prop::collection::vec(ask(), 1..25),
        sizes in prop::collection::vec(1..6000_usize, 1..5),
        window in 1..70_000_u32,
        most in 1..10_u32,
        pipe in 100..100_000_usize,
    ) {
        run(async {
            let (near, far) = tokio::io::duplex(pipe);
            tokio::task::spawn_local(async move {
                let mut builder = h2::server::Builder::new();
                builder
                    .initial_window_size(window)
                    .initial_connection_window_size(window)
                    .max_concurrent_streams(most);
                let mut connection = builder.handshake::<_, Bytes>(far).await.unwrap();
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    tokio::task::spawn_local(async move {
                        let (head, body) = request.into_parts();
                        let Ok((body, trailers)) = whole(body).await else { return };
                        let hints = Response::builder().status(103).body(()).unwrap();
                        respond.send_informational(hints).unwrap();
                        let response = Response::builder()
                            .status(503)
                            .header("x-field", &head.headers["x-field"])
                            .header("x-uri", head.uri.to_string());
                        let response = response.body(()).unwrap();
                        let mut send = respond.send_response(response, false).unwrap();
                        send_all(&mut send, body.into(), trailers.is_some()).await;
                    });
                }
            });
            let settings = Settings { early_streams: 0, ..settings() };
            let mut connection = Connection::new(Role::Client, settings);
            let mut left = asks.clone();
            let mut running: HashMap<StreamKey, (Ask, Bytes, Vec<u8>)> = HashMap::new();
            let mut done = 0;
            pump(&mut connection, near, &sizes, |connection| {
                while !left.is_empty() && connection.ready().is_ok() {
                    let ask = left.pop().unwrap();
                    let key = connection
                        .open(false, false, |block| {
                            block.method(b"PUT");
                            block.scheme(b"https");
                            block.authority(b"test:1");
                            block.path(b"/a?b");
                            block.field(b"X-Field", ask.field.as_bytes());
                        })
                        .unwrap();
                    assert!(connection.open_streams() <= most as usize);
                    if ask.cancel {
                        connection.release(key);
                        done += 1;
                        continue;
                    }
                    let body = pattern(ask.body);
                    running.insert(key, (ask, body, Vec::new()));
                    connection.touch(key);
                }
                while let Some(key) = connection.touched() {
                    let Some((ask, rest, body)) = running.get_mut(&key) else { continue };
                    if !connection.is_sent(key) {
                        let sent = connection.send(key, rest, !ask.trailers);
                        let _ = rest.split_to(sent);
                        if rest.is_empty() && ask.trailers {
                            connection.send_trailers(key, |block| block.field(b"x-sum", b"7"));
                        }
                    }
                    body.extend_from_slice(connection.body(key));
                    connection.use_body(key, usize::MAX);
                    match connection.reading(key) {
                        Reading::Open => continue,
                        Reading::Ended => {}
                        Reading::Failed(error) => panic!("{error}"),
                    }
                    let head = connection.head(key).unwrap();
                    assert_eq!(head.status(), Some(503));
                    assert_eq!(head.get(b"x-field"), Some(ask.field.as_bytes()));
                    assert_eq!(head.get(b"x-uri"), Some(&b"https://test:1/a?b"[..]));
                    assert_eq!(*body, pattern(ask.body));
                    assert_eq!(connection.take_interim(key).unwrap().status(), Some(103));
                    assert_eq!(connection.take_trailers(key).is_some(), ask.trailers);
                    connection.release(key);
                    running.remove(&key);
                    done += 1;
                }
                done == asks.len()
            })
            .await;
            assert_eq!((done, connection.open_streams()), (asks.len(), 0));
        });
    }
}

#[test]
fn a_server_that_shuts_down_serves_what_is_on_its_way() {
    run(async {
        let (near, far) = tokio::io::duplex(10_000);
        let asking = tokio::task::spawn_local(async move {
            let (client, connection) = h2::client::handshake(far).await.unwrap();
            let driven = tokio::task::spawn_local(connection);
            let mut client = client.ready().await.unwrap();
            let request = Request::get("http://test/").body(()).unwrap();
            let (answer, mut send) = client.send_request(request, false).unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
            send.send_data("hello".into(), true).unwrap();
            let (body, _) = whole(answer.await.unwrap().into_body()).await.unwrap();
            assert_eq!(body, b"hello");
            driven.await.unwrap().unwrap();
        });
        let mut connection = Connection::new(Role::Server, settings());
        let mut echo = Echo::default();
        pump(&mut connection, near, &[1000], |connection| {
            echo.act(connection);
            if !echo.bodies.is_empty() {
                connection.shut_down();
            }
            false
        })
        .await;
        assert_eq!(connection.ended(), Some(&Http2Error::Closed));
        asking.await.unwrap();
    });
}

/// More than a frame holds, there and back.
#[test]
fn heads_of_several_frames_pass_both_ways() {
    run(async {
        let (near, far) = tokio::io::duplex(10_000);
        let asking = tokio::task::spawn_local(async move {
            let (client, connection) = h2::client::handshake(far).await.unwrap();
            let driven = tokio::task::spawn_local(connection);
            let mut client = client.ready().await.unwrap();
            let long = "x".repeat(20_000);
            let request = Request::get("http://test/empty")
                .header("x-a", &long)
                .header("x-b", &long)
                .body(())
                .unwrap();
            let (answer, _) = client.send_request(request, true).unwrap();
            let answer = answer.await.unwrap();
            assert_eq!(answer.headers()["x-a"], long);
            assert_eq!(answer.headers()["x-b"], long);
            drop(client);
            drop(answer);
            driven.await.unwrap().unwrap();
        });
        let mut connection = Connection::new(Role::Server, settings());
        let mut echo = Echo::default();
        pump(&mut connection, near, &[777], |connection| {
            echo.act(connection)
        })
        .await;
        asking.await.unwrap();
    });
}
