use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};

use super::*;
use crate::signal::Signal;
use crate::stream::{Carried, Received, Stream, StreamError as Broken};

/// Hands each connection to `serve`, on a thread of its own.
fn listen<F, Fut>(serve: F) -> SocketAddr
where
    F: Fn(tokio::net::TcpStream) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket));
            }
        });
    });
    address
}

/// Serves HTTP/2, at most 8 streams at once; [`echo`] answers.
async fn serve(socket: tokio::net::TcpStream) {
    let mut builder = h2::server::Builder::new();
    let mut connection = builder
        .max_concurrent_streams(8)
        .handshake(socket)
        .await
        .unwrap();
    while let Some(Ok((request, respond))) = connection.accept().await {
        tokio::spawn(echo(request, respond));
    }
}

fn dial(address: SocketAddr) -> Stream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nonblocking(true).unwrap();
    Stream::Plain(stream.into())
}

fn connect(address: SocketAddr) -> Exchanges {
    Exchanges::start(dial(address), ClientSettings::default())
}

fn get(path: &str) -> Request<()> {
    Request::get(format!("http://test{path}")).body(()).unwrap()
}

/// Drives until `done`; gives up after very long.
fn drive_until(
    connection: &mut Exchanges,
    mut done: impl FnMut(&mut Exchanges) -> bool,
) -> Result<(), Http2Error> {
    for _ in 0..20_000 {
        connection.drive(true)?;
        if done(connection) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("what was awaited never came");
}

/// Drives until so many exchanges have ended.
fn finish(
    connection: &mut Exchanges,
    count: usize,
) -> Vec<(StreamKey, Result<Answer, StreamError>)> {
    let mut finished = Vec::new();
    let driven = drive_until(connection, |connection| {
        finished.extend(connection.finished());
        finished.len() >= count
    });
    if driven.is_err() {
        finished.extend(connection.finished());
    }
    finished
}

fn ready(connection: &mut Exchanges) {
    drive_until(connection, Exchanges::can_send).unwrap();
}

async fn echo(mut request: Request<h2::RecvStream>, mut respond: h2::server::SendResponse<Bytes>) {
    let mut body = Vec::new();
    while let Some(Ok(part)) = request.body_mut().data().await {
        let _ = request
            .body_mut()
            .flow_control()
            .release_capacity(part.len());
        body.extend_from_slice(&part);
    }
    let path = request.uri().path().to_owned();
    match path.as_str() {
        "/reset" => respond.send_reset(h2::Reason::INTERNAL_ERROR),
        "/refuse" => respond.send_reset(h2::Reason::REFUSED_STREAM),
        "/silent" => std::future::pending().await,
        _ => {
            let response = Response::builder()
                .status(201)
                .header("x-path", &path)
                .body(())
                .unwrap();
            let mut send = respond.send_response(response, false).unwrap();
            send.send_data(Bytes::from(body), false).unwrap();
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", "5".parse().unwrap());
            trailers.insert("grpc-message", "not%20here".parse().unwrap());
            send.send_trailers(trailers).unwrap();
        }
    }
}

#[test]
fn many_exchanges_on_one_connection_with_bodies_and_trailers() {
    let mut connection = connect(listen(serve));
    ready(&mut connection);
    let mut keys = Vec::new();
    for turn in 0..40_usize {
        let body = Bytes::from(vec![b'x'; turn * 10_000]);
        ready(&mut connection);
        keys.push((
            connection
                .send(get(&format!("/{turn}")), body, 100)
                .unwrap(),
            turn,
        ));
        for (key, answer) in finish(&mut connection, usize::from(turn % 3 == 2)) {
            let answer = answer.unwrap();
            let at = keys.iter().position(|(sent, _)| *sent == key).unwrap();
            let (_, turn) = keys.swap_remove(at);
            assert_eq!(answer.status, 201);
            assert_eq!(answer.headers["x-path"], format!("/{turn}"));
            assert_eq!(answer.body_bytes, turn as u64 * 10_000);
            assert_eq!(answer.body.len(), 100.min(turn * 10_000));
            let status = grpc::status(&answer);
            assert_eq!(
                status,
                grpc::Status {
                    code: 5,
                    message: "not here".to_owned()
                }
            );
        }
    }
    let left = keys.len();
    assert_eq!(connection.open_streams(), left);
    assert!(
        finish(&mut connection, left)
            .iter()
            .all(|(_, answer)| answer.is_ok())
    );
}

#[test]
fn one_stream_fails_and_the_others_go_on() {
    let mut connection = connect(listen(serve));
    ready(&mut connection);
    let reset = connection.send(get("/reset"), Bytes::new(), 0).unwrap();
    let refuse = connection.send(get("/refuse"), Bytes::new(), 0).unwrap();
    let good = connection.send(get("/good"), Bytes::new(), 0).unwrap();
    for (key, answer) in finish(&mut connection, 3) {
        match answer {
            Ok(answer) => assert_eq!((key, answer.status), (good, 201)),
            Err(StreamError::Refused) => assert_eq!(key, refuse),
            Err(error) => {
                assert_eq!(
                    (key, error),
                    (reset, StreamError::Reset(Reason::INTERNAL_ERROR))
                );
            }
        }
    }
    assert_eq!(connection.open_streams(), 0);
}

#[test]
fn a_cancelled_exchange_is_never_heard_of_again() {
    let mut connection = connect(listen(serve));
    ready(&mut connection);
    // More than the server allows at once: cancelled streams make room.
    for _ in 0..30 {
        ready(&mut connection);
        let silent = connection.send(get("/silent"), Bytes::new(), 0).unwrap();
        let good = connection.send(get("/good"), Bytes::new(), 0).unwrap();
        let finished = finish(&mut connection, 1);
        assert_eq!(finished.len(), 1);
        assert_eq!((finished[0].0, finished[0].1.is_ok()), (good, true));
        connection.cancel(silent);
        connection.cancel(good);
        assert_eq!(connection.open_streams(), 0);
    }
}

#[test]
fn no_more_streams_are_opened_than_the_peer_allows() {
    let mut connection = connect(listen(serve));
    ready(&mut connection);
    // Once an answer is there, the peer's settings are too.
    connection.send(get("/good"), Bytes::new(), 0).unwrap();
    assert!(finish(&mut connection, 1)[0].1.is_ok());
    let mut keys = Vec::new();
    while connection.can_send() {
        keys.push(connection.send(get("/silent"), Bytes::new(), 0).unwrap());
    }
    assert_eq!((keys.len(), connection.open_streams()), (8, 8));
    assert_eq!(
        connection.send(get("/"), Bytes::new(), 0),
        Err(Http2Error::Full)
    );
    connection.cancel(keys[3]);
    assert!(connection.can_send());
    let slots: std::collections::HashSet<_> = keys.iter().map(|key| key.slot()).collect();
    assert_eq!(slots.len(), 8);
    assert!(slots.iter().all(|slot| *slot < 8));
}

#[test]
fn a_request_that_cannot_be_sent_is_refused() {
    let mut connection = connect(listen(serve));
    ready(&mut connection);
    let relative = Request::get("/").body(()).unwrap();
    let sent = connection.send(relative, Bytes::new(), 0);
    assert!(matches!(sent, Err(Http2Error::Request(_))), "{sent:?}");
    assert_eq!(connection.open_streams(), 0);
}

#[test]
fn a_goaway_lets_open_exchanges_end() {
    let mut connection = connect(listen(|socket| async move {
        let mut connection = h2::server::handshake::<_>(socket).await.unwrap();
        let (request, respond) = connection.accept().await.unwrap().unwrap();
        connection.graceful_shutdown();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            echo(request, respond).await;
        });
        while connection.accept().await.is_some() {}
    }));
    ready(&mut connection);
    connection.send(get("/good"), Bytes::new(), 0).unwrap();
    assert!(finish(&mut connection, 1)[0].1.is_ok());
    let end = drive_until(&mut connection, |_| false);
    assert!(
        matches!(
            end,
            Err(Http2Error::Closed | Http2Error::GoAway(Reason::NO_ERROR))
        ),
        "{end:?}"
    );
    assert!(connection.is_draining() && !connection.can_send());
}

#[test]
fn a_hard_goaway_ends_open_exchanges() {
    let mut connection = connect(listen(|socket| async move {
        let mut connection = h2::server::handshake::<_>(socket).await.unwrap();
        let _kept = connection.accept().await.unwrap().unwrap();
        connection.abrupt_shutdown(h2::Reason::ENHANCE_YOUR_CALM);
        while connection.accept().await.is_some() {}
    }));
    ready(&mut connection);
    let key = connection.send(get("/good"), Bytes::new(), 0).unwrap();
    let calm = Reason::ENHANCE_YOUR_CALM;
    assert_eq!(
        finish(&mut connection, 1),
        [(key, Err(StreamError::GoAway(calm)))]
    );
}

#[test]
fn peers_that_do_not_speak_http2_are_told_apart() {
    use tokio::io::AsyncWriteExt as _;
    let mut closing = connect(listen(|socket| async move { drop(socket) }));
    let end = drive_until(&mut closing, |_| false).unwrap_err();
    assert!(
        matches!(end, Http2Error::Closed | Http2Error::Io(_)),
        "{end:?}"
    );

    let mut http1 = connect(listen(|mut socket| async move {
        let _ = socket
            .write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
            .await;
        std::future::pending::<()>().await;
    }));
    let end = drive_until(&mut http1, |_| false).unwrap_err();
    assert!(matches!(end, Http2Error::Protocol(_)), "{end:?}");
    assert_eq!(http1.drive(true), Err(end), "an end stays");
}

#[test]
fn a_drive_reads_no_more_than_its_budget() {
    let settings = ClientSettings {
        read_budget: 1,
        ..ClientSettings::default()
    };
    let mut connection = Exchanges::start(dial(listen(serve)), settings);
    ready(&mut connection);
    connection
        .send(get("/long"), Bytes::from(vec![b'x'; 300_000]), 0)
        .unwrap();
    let (mut more, mut finished) = (0, Vec::new());
    for _ in 0..20_000 {
        match connection.drive(true).unwrap() {
            Progress::More => more += 1,
            Progress::Waiting => std::thread::sleep(Duration::from_millis(1)),
        }
        finished.extend(connection.finished());
        if !finished.is_empty() {
            break;
        }
    }
    assert_eq!(finished[0].1.as_ref().unwrap().body_bytes, 300_000);
    assert!(more > 1);
}

/// A stream that takes a few bytes only every other time.
struct Reluctant {
    stream: Stream,
    willing: bool,
    signal: Signal,
}

impl Carried for Reluctant {
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        self.willing = !self.willing;
        if self.willing {
            return Ok(0);
        }
        self.stream.send(&bytes[..bytes.len().min(100)])
    }
    fn flush(&mut self) -> Result<(), Broken> {
        Ok(())
    }
    fn wants_write(&self) -> bool {
        false
    }
    fn receive(&mut self, into: &mut [u8]) -> Result<Received, Broken> {
        self.stream.receive(into)
    }
    fn holds_bytes(&self) -> bool {
        false
    }
    fn close_write(&mut self) -> Result<bool, Broken> {
        self.stream.close_write()
    }
    fn signal(&self) -> &Signal {
        &self.signal
    }
}

#[test]
fn a_full_socket_is_waited_for() {
    let stream = Stream::Carried(Box::new(Reluctant {
        stream: dial(listen(serve)),
        willing: false,
        signal: Signal::default(),
    }));
    let mut connection = Exchanges::start(stream, ClientSettings::default());
    connection.drive(true).unwrap();
    assert!(connection.wants_write());
    ready(&mut connection);
    connection
        .send(get("/long"), Bytes::from(vec![b'x'; 10_000]), 0)
        .unwrap();
    let answer = finish(&mut connection, 1).remove(0).1.unwrap();
    assert_eq!(answer.body_bytes, 10_000);
}

mod grpc_calls {
    use proptest::prelude::*;

    use super::super::grpc::*;
    use super::super::{Answer, grpc};

    proptest! {
        #[test]
        fn what_is_framed_is_found_again(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let framed = frame(&bytes).unwrap();
            prop_assert_eq!(message(&framed), Ok(&bytes[..]));
            prop_assert_eq!(message(&framed[..framed.len() - 1]), Err(GrpcError::Message));
        }
    }

    #[test]
    fn other_bodies_are_refused() {
        assert_eq!(message(b""), Err(GrpcError::Message));
        assert_eq!(message(&[1, 0, 0, 0, 0]), Err(GrpcError::Compressed));
        assert_eq!(
            message(&[0, 0, 0, 0, 1, 7, 0, 0, 0, 0, 0]),
            Err(GrpcError::Message)
        );
    }

    /// An answer of which so many bytes of the body are kept.
    fn of(body: &[u8], kept: usize) -> Answer {
        Answer {
            status: 200,
            body_bytes: body.len() as u64,
            body: body[..kept.min(body.len())].to_vec(),
            ..Answer::default()
        }
    }

    proptest! {
        #[test]
        fn one_whole_message_is_told_from_any_other_body(
            bytes in prop::collection::vec(any::<u8>(), 1..300),
            kept in PREFIX..400,
            cut in 1..300_usize,
        ) {
            let framed = frame(&bytes).unwrap();
            let whole = of(&framed, kept);
            let message = unary(&whole).unwrap();
            prop_assert_eq!(message.length, bytes.len() as u64);
            prop_assert!(bytes.starts_with(message.start) && !message.compressed);
            let cut = of(&framed[..framed.len() - cut.min(bytes.len())], kept);
            prop_assert_eq!(unary(&cut), Err(GrpcError::Cut));
            let twice = [&framed[..], &framed[..]].concat();
            let twice = of(&twice, kept);
            prop_assert_eq!(unary(&twice), Err(GrpcError::Several));
        }
    }

    #[test]
    fn a_compressed_message_says_how() {
        let mut answer = of(&[1, 0, 0, 0, 1, 7], PREFIX);
        assert_eq!(unary(&answer), Err(GrpcError::Unencoded));
        let field = "grpc-encoding";
        answer.headers.insert(field, "identity".parse().unwrap());
        assert_eq!(unary(&answer), Err(GrpcError::Unencoded));
        answer.headers.insert(field, "gzip".parse().unwrap());
        assert!(unary(&answer).unwrap().compressed);
        assert_eq!(unary(&of(b"", PREFIX)), Err(GrpcError::Missing));
        let flag = of(&[2, 0, 0, 0, 0], PREFIX);
        assert_eq!(unary(&flag), Err(GrpcError::Message));
    }

    #[test]
    fn a_status_without_trailers() {
        let mut answer = Answer {
            status: 200,
            ..Answer::default()
        };
        assert_eq!(status(&answer).code, 2);
        answer.headers.insert("grpc-status", "16".parse().unwrap());
        answer
            .headers
            .insert("grpc-message", "50%25 of %C3%BC %".parse().unwrap());
        let expected = Status {
            code: 16,
            message: "50% of ü %".to_owned(),
        };
        assert_eq!(status(&answer), expected);
        answer = Answer {
            status: 503,
            ..Answer::default()
        };
        assert_eq!(status(&answer).code, 14);
    }

    #[test]
    fn the_head_of_a_call() {
        let head = grpc::request(true, "host:1", "/a.B/C").unwrap();
        assert_eq!(head.uri(), "https://host:1/a.B/C");
        assert_eq!(head.headers()["te"], "trailers");
        assert!(grpc::request(true, "host:1", " C").is_err());
    }
}

/// As nginx does after as many requests as it allows: what came too late was not looked
/// at, and can be asked again elsewhere.
#[test]
fn a_goaway_that_leaves_a_stream_out_refuses_it() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut connection = connect(listen(|mut socket| async move {
        let _ = socket.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await;
        let mut seen = Vec::new();
        // Until a frame of HEADERS on stream 1.
        while !seen
            .windows(6)
            .any(|part| part[0] == 1 && part[2..] == [0, 0, 0, 1])
        {
            let _ = socket.read_buf(&mut seen).await;
        }
        let mut goaway = vec![0, 0, 8, 7, 0, 0, 0, 0, 0];
        goaway.extend([0; 8]);
        let _ = socket.write_all(&goaway).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
    }));
    ready(&mut connection);
    let key = connection.send(get("/good"), Bytes::new(), 0).unwrap();
    assert_eq!(
        finish(&mut connection, 1),
        [(key, Err(StreamError::Refused))]
    );
}

/// The peer has answered one request and said that it takes no other, and hung up.
#[test]
fn what_was_said_before_the_socket_broke_is_heard() {
    use std::io::Write as _;
    let (near, mut far) = std::os::unix::net::UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    let mut client = Exchanges::start(Stream::Plain(near.into()), ClientSettings::default());
    let answered = client.send(get("/"), Bytes::new(), 0).unwrap();
    client.drive(true).unwrap();
    let frames = [
        &[0_u8, 0, 0, 4, 0, 0, 0, 0, 0][..],
        &[0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88],
        &[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0],
    ];
    far.write_all(&frames.concat()).unwrap();
    drop(far);
    // Nobody has told yet that there is something to read.
    let refused = client.send(get("/"), Bytes::new(), 0).unwrap();
    assert!(client.drive(false).is_err());
    let mut finished: Vec<_> = client.finished().collect();
    finished.sort_by_key(|(key, _)| key.slot());
    let answer = Answer {
        status: 200,
        ..Answer::default()
    };
    let expected = [(answered, Ok(answer)), (refused, Err(StreamError::Refused))];
    assert_eq!(finished, expected);
}

/// Of two answers the malformed one fails.
#[test]
fn a_malformed_answer_is_an_error_of_its_exchange() {
    use std::io::Write as _;
    let (near, mut far) = std::os::unix::net::UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    let mut client = Exchanges::start(Stream::Plain(near.into()), ClientSettings::default());
    client.drive(true).unwrap();
    let mut ask = || client.send(get("/"), Bytes::new(), 0).unwrap();
    let (bad, good) = (ask(), ask());
    client.drive(true).unwrap();
    let frame = |kind: u8, flags: u8, stream: u8, payload: &[u8]| {
        let length = u8::try_from(payload.len()).unwrap();
        [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
    };
    let frames = [
        frame(4, 0, 0, b""),
        frame(1, 5, 1, b"\x88\x40\x05X-Bad\x01a"),
        frame(1, 5, 3, b"\x88\x40\x01x\x01a"),
    ];
    far.write_all(&frames.concat()).unwrap();
    client.drive(true).unwrap();
    let mut finished: Vec<_> = client.finished().collect();
    finished.sort_by_key(|(key, _)| key.slot());
    let answer = Answer {
        status: 200,
        headers: [("x".parse().unwrap(), "a".parse().unwrap())]
            .into_iter()
            .collect(),
        ..Answer::default()
    };
    let reset = Err(StreamError::Protocol(Reason::PROTOCOL_ERROR));
    assert_eq!(finished, [(bad, reset), (good, Ok(answer))]);
}
