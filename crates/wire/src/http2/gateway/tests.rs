use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request, Response, StatusCode, request};

use super::*;
use crate::http2::{ClientSettings, Http2Error, Server, ServerSettings};
use crate::poller::{Interest, Poller};
use crate::stream::{Received, Stream};

/// Runs an async part on this thread.
fn run<T>(what: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let bounded = async { tokio::time::timeout(Duration::from_secs(60), what).await };
    runtime
        .block_on(bounded)
        .expect("what was awaited never came")
}

fn non_blocking(stream: TcpStream) -> Stream {
    stream.set_nodelay(true).unwrap();
    stream.set_nonblocking(true).unwrap();
    Stream::Plain(stream.into())
}

fn blocking(end: OwnedFd) -> UnixStream {
    let end = UnixStream::from(end);
    end.set_nonblocking(false).unwrap();
    end
}

/// Two connections of HTTP/1.1 whose bytes go from one to the other, as in a router.
struct Relay {
    ends: [Stream; 2],
    waiting: [Vec<u8>; 2],
    ended: [bool; 2],
}

impl Relay {
    fn new(ends: [Stream; 2], poller: &Poller) -> Self {
        for end in &ends {
            poller.add(end, RELAY, Interest::Read).unwrap();
        }
        Self {
            ends,
            waiting: [Vec::new(), Vec::new()],
            ended: [false; 2],
        }
    }

    /// Moves what can be moved; whether it goes on.
    fn turn(&mut self) -> Result<bool, crate::stream::StreamError> {
        let mut moved = true;
        while std::mem::take(&mut moved) {
            for (from, to) in [(0, 1), (1, 0)] {
                let waiting = &mut self.waiting[from];
                if waiting.is_empty() && !self.ended[from] {
                    let mut bytes = [0; 5000];
                    match self.ends[from].receive(&mut bytes)? {
                        Received::Bytes(length) => waiting.extend_from_slice(&bytes[..length]),
                        Received::Nothing => {}
                        Received::End => self.ended[from] = true,
                    }
                }
                let sent = self.ends[to].send(waiting)?;
                waiting.drain(..sent);
                moved |= sent > 0;
                if self.ended[from] && waiting.is_empty() {
                    self.ends[to].close_write()?;
                }
            }
        }
        Ok(self.ended != [true; 2])
    }
}

const CLIENT: u64 = 0;
const RELAY: u64 = 1;
const BACKEND: u64 = 2;

/// A client's connection, with what its streams are relayed to.
struct Router {
    poller: Poller,
    server: Server,
    streams: OpenStreams,
    heads: HeadBudget,
    relays: Vec<Relay>,
    backends: Vec<Backend>,
}

impl Router {
    fn new(client: TcpStream, settings: ServerSettings) -> Self {
        let poller = Poller::new().unwrap();
        let mut server = Server::start(non_blocking(client), settings);
        server.watch(&poller, CLIENT).unwrap();
        poller.add(server.signal(), CLIENT, Interest::Read).unwrap();
        Self {
            poller,
            streams: OpenStreams::of(&server),
            server,
            heads: HeadBudget::default(),
            relays: Vec::new(),
            backends: Vec::new(),
        }
    }

    /// Waits a little for something to happen, and does it. New streams go to `with`.
    fn turn(&mut self, mut with: impl FnMut(&mut Self, Stream)) -> Result<(), Http2Error> {
        let mut accepted = Vec::new();
        let driven = self.server.drive(true, &mut accepted);
        for request in accepted {
            if let Some(stream) = ServerStream::new(request, &self.heads, &self.streams, [7; 16]) {
                with(self, Stream::Carried(Box::new(stream)));
            }
        }
        self.relays
            .retain_mut(|relay| matches!(relay.turn(), Ok(true)));
        let poller = &self.poller;
        self.backends
            .retain_mut(|backend| backend.drive(true, poller).is_ok());
        driven?;
        self.server.rewatch(&self.poller).unwrap();
        self.poller.wait(Some(Duration::from_millis(5))).unwrap();
        Ok(())
    }

    /// Relays a stream to one end of a pair of sockets, and gives the other.
    fn pair_with(&mut self, stream: Stream) -> OwnedFd {
        let (near, far) = crate::socket::pair().unwrap();
        let ends = [stream, Stream::Plain(near)];
        self.relays.push(Relay::new(ends, &self.poller));
        far
    }
}

/// Accepts one connection of HTTP/2 and hands each stream to `with`. Says how the connection
/// ended.
fn front(
    settings: ServerSettings,
    mut with: impl FnMut(&mut Router, Stream) + Send + 'static,
) -> (SocketAddr, mpsc::Receiver<Http2Error>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let mut router = Router::new(client, settings);
        let end = loop {
            if let Err(error) = router.turn(&mut with) {
                break error;
            }
        };
        let _ = tell.send(end);
    });
    (address, told)
}

/// HTTP/2 on both sides, HTTP/1.1 between them.
fn gateway() -> SocketAddr {
    let address = backend();
    let with = move |router: &mut Router, stream| {
        let server = non_blocking(TcpStream::connect(address).unwrap());
        let settings = ClientSettings::default();
        let (backend, to) = Backend::start(server, settings, &router.poller, BACKEND).unwrap();
        router.backends.push(backend);
        let ends = [stream, Stream::Carried(Box::new(to))];
        router.relays.push(Relay::new(ends, &router.poller));
    };
    front(ServerSettings::default(), with).0
}

/// A server of HTTP/2 that answers by the request's path.
fn backend() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((socket, _)) = listener.accept() {
            std::thread::spawn(move || {
                socket.set_nodelay(true).unwrap();
                socket.set_nonblocking(true).unwrap();
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .unwrap();
                runtime.block_on(async move {
                    let socket = tokio::net::TcpStream::from_std(socket).unwrap();
                    let mut connection = h2::server::handshake(socket).await.unwrap();
                    let mut refused = 0;
                    while let Some(Ok((request, mut respond))) = connection.accept().await {
                        let most = request.uri().path().strip_prefix("/refused/");
                        if most.is_some_and(|most| refused < most.parse().unwrap()) {
                            refused += 1;
                            respond.send_reset(h2::Reason::REFUSED_STREAM);
                        } else {
                            tokio::spawn(answer(request, respond));
                        }
                    }
                });
            });
        }
    });
    address
}

async fn answer(request: Request<RecvStream>, mut respond: h2::server::SendResponse<Bytes>) {
    let (head, mut body) = request.into_parts();
    let mut response = Response::builder().status(200);
    for name in ["x-seen", "cookie", "te"] {
        if let Some(value) = head.headers.get(name) {
            response = response.header(format!("saw-{name}"), value);
        }
    }
    let response = response.header("saw", format!("{} {}", head.method, head.uri));
    match head.uri.path() {
        "/reset" => respond.send_reset(h2::Reason::INTERNAL_ERROR),
        "/broken" => {
            let mut send = respond
                .send_response(response.body(()).unwrap(), false)
                .unwrap();
            send.send_data("part".into(), false).unwrap();
            send.send_reset(h2::Reason::INTERNAL_ERROR);
        }
        "/empty" => drop(respond.send_response(response.body(()).unwrap(), true)),
        "/early" => {
            let response = response.header("content-length", 5).body(()).unwrap();
            let mut send = respond.send_response(response, false).unwrap();
            send.send_data("early".into(), true).unwrap();
            // The request is left unread.
        }
        "/status" => {
            let response = Response::builder().status(StatusCode::NO_CONTENT);
            drop(respond.send_response(response.body(()).unwrap(), true));
        }
        path => {
            if path == "/interim" {
                let hints = Response::builder().status(103).header("link", "</a>");
                respond.send_informational(hints.body(()).unwrap()).unwrap();
            }
            let ends = head.method == "HEAD";
            let mut send = respond
                .send_response(response.body(()).unwrap(), ends)
                .unwrap();
            if ends {
                return;
            }
            while let Some(Ok(part)) = body.data().await {
                let _ = body.flow_control().release_capacity(part.len());
                send_all(&mut send, part).await;
            }
            let mut trailers = body.trailers().await.unwrap().unwrap_or_default();
            trailers.insert("grpc-status", "0".parse().unwrap());
            send.send_trailers(trailers).unwrap();
        }
    }
}

/// Sends as the peer lets it.
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

/// A connection to a gateway.
async fn connect(address: SocketAddr) -> SendRequest<Bytes> {
    let socket = tokio::net::TcpStream::connect(address).await.unwrap();
    socket.set_nodelay(true).unwrap();
    let (send, connection) = h2::client::handshake(socket).await.unwrap();
    tokio::spawn(connection);
    send.ready().await.unwrap()
}

fn get(path: &str) -> request::Builder {
    Request::get(format!("https://test.example:8443{path}"))
}

/// Body and trailers of an answer.
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
fn heads_pass_both_ways() {
    let address = gateway();
    run(async {
        let mut send = connect(address).await;
        let request = get("/empty?q=%20")
            .header("x-seen", "1")
            .header("cookie", "a=b")
            .header("cookie", "c=d")
            .header("te", "trailers")
            .body(())
            .unwrap();
        let (answer, _) = send.send_request(request, true).unwrap();
        let answer = answer.await.unwrap();
        assert_eq!(answer.status(), 200);
        let field = |name| answer.headers().get(name).unwrap().as_bytes();
        assert_eq!(field("saw"), b"GET https://test.example:8443/empty?q=%20");
        assert_eq!(field("saw-x-seen"), b"1");
        assert_eq!(field("saw-cookie"), b"a=b; c=d");
        assert_eq!(field("saw-te"), b"trailers");
        assert_eq!(field("content-length"), b"0");
        assert!(answer.headers().get("transfer-encoding").is_none());
        assert_eq!(whole(answer).await.unwrap(), (Vec::new(), None));
        for (method, path, status) in [("HEAD", "/head", 200), ("GET", "/status", 204)] {
            let request = get(path).method(method).body(()).unwrap();
            let (answer, _) = send.send_request(request, true).unwrap();
            let answer = answer.await.unwrap();
            assert_eq!(answer.status(), status);
            assert_eq!(whole(answer).await.unwrap().0, b"");
        }
    });
}

#[test]
fn large_bodies_and_trailers_pass_both_ways_on_many_streams() {
    let address = gateway();
    run(async {
        let send = connect(address).await;
        let mut tasks = Vec::new();
        for turn in 0..12_u8 {
            let mut send = send.clone().ready().await.unwrap();
            tasks.push(tokio::spawn(async move {
                let body = vec![turn; usize::from(turn) * 150_000];
                let mut request = get("/echo").method("POST");
                if turn % 3 == 0 {
                    request = request.header("content-length", body.len());
                }
                let request = request.body(()).unwrap();
                let (answer, mut to) = send.send_request(request, false).unwrap();
                let expected = body.clone();
                let sending = tokio::spawn(async move {
                    send_all(&mut to, body.into()).await;
                    let mut trailers = HeaderMap::new();
                    trailers.insert("x-end", u16::from(turn).into());
                    to.send_trailers(trailers).unwrap();
                });
                let (bytes, trailers) = whole(answer.await.unwrap()).await.unwrap();
                sending.await.unwrap();
                assert!(bytes == expected, "{turn}: {} bytes", bytes.len());
                let trailers = trailers.unwrap();
                assert_eq!(trailers["grpc-status"], "0");
                // Trailers behind a length have no form in HTTP/1.1.
                assert_eq!(trailers.get("x-end").is_some(), turn % 3 != 0);
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
    });
}

#[test]
fn a_conversation_goes_back_and_forth() {
    let address = gateway();
    run(async {
        let mut send = connect(address).await;
        let request = get("/chat").method("POST").body(()).unwrap();
        let (answer, mut to) = send.send_request(request, false).unwrap();
        let answer = answer.await.unwrap();
        let mut body = answer.into_body();
        for word in ["one", "two", "three"] {
            to.send_data(word.into(), false).unwrap();
            assert_eq!(body.data().await.unwrap().unwrap(), word);
        }
        to.send_data(Bytes::new(), true).unwrap();
        assert!(body.data().await.is_none());
        assert_eq!(body.trailers().await.unwrap().unwrap()["grpc-status"], "0");
    });
}

#[test]
fn interim_answers_pass() {
    let address = gateway();
    run(async {
        let mut send = connect(address).await;
        let (mut answer, _) = send
            .send_request(get("/interim").body(()).unwrap(), true)
            .unwrap();
        let interim = std::future::poll_fn(|context| answer.poll_informational(context)).await;
        let interim = interim.unwrap().unwrap();
        assert_eq!(interim.status(), 103);
        assert_eq!(interim.headers()["link"], "</a>");
        assert_eq!(answer.await.unwrap().status(), 200);
    });
}

#[test]
fn an_answer_need_not_wait_for_its_request() {
    let address = gateway();
    run(async {
        let mut send = connect(address).await;
        let request = get("/early").method("POST").body(()).unwrap();
        let (answer, mut to) = send.send_request(request, false).unwrap();
        to.send_data("some".into(), false).unwrap();
        let answer = answer.await.unwrap();
        assert_eq!(whole(answer).await.unwrap().0, b"early");
    });
}

#[test]
fn a_side_that_gives_up_is_told_to_the_other() {
    let address = gateway();
    run(async {
        let mut send = connect(address).await;
        for path in ["/reset", "/broken"] {
            let (answer, _) = send
                .send_request(get(path).body(()).unwrap(), true)
                .unwrap();
            let failed = match answer.await {
                Ok(answer) => whole(answer).await.unwrap_err(),
                Err(error) => error,
            };
            assert_eq!(failed.reason(), Some(h2::Reason::INTERNAL_ERROR), "{path}");
        }
    });
    // The client's end reaches the router as the end of its connection.
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let (address, _) = front(ServerSettings::default(), move |router, stream| {
        let (tell, end) = (tell.clone(), router.pair_with(stream));
        std::thread::spawn(move || {
            let (mut end, mut bytes) = (blocking(end), Vec::new());
            while !bytes.ends_with(b"4\r\nhalf\r\n") {
                let mut one = [0];
                end.read_exact(&mut one).unwrap();
                bytes.extend(one);
            }
            let _ = tell.send((bytes.clone(), false));
            let read = end.read_to_end(&mut bytes);
            let _ = tell.send((bytes, read.is_ok()));
        });
    });
    let (bytes, ended) = run(async {
        let mut send = connect(address).await;
        let (answer, mut to) = send
            .send_request(get("/x").method("POST").body(()).unwrap(), false)
            .unwrap();
        to.send_data("half".into(), false).unwrap();
        let _ = told.recv().await.unwrap();
        to.send_reset(h2::Reason::CANCEL);
        assert!(answer.await.is_err());
        told.recv().await.unwrap()
    });
    assert!(ended && bytes.ends_with(b"4\r\nhalf\r\n"), "{bytes:?}");
    assert!(bytes.starts_with(b"POST /x HTTP/1.1\r\nHost: test.example:8443\r\n"));
}

#[test]
fn a_request_that_is_refused_is_sent_again_on_its_connection() {
    let ask = async |method: &str, path: &str, whole: bool| {
        let mut send = connect(gateway()).await;
        let request = get(path).method(method).body(()).unwrap();
        let (answer, mut body) = send.send_request(request, whole).unwrap();
        if !whole {
            let _ = body.send_data("more".into(), true);
        }
        Some(
            answer.await.ok()?.headers()["saw"]
                .to_str()
                .unwrap()
                .to_owned(),
        )
    };
    run(async {
        for method in ["GET", "POST"] {
            let seen = ask(method, "/refused/2", true).await;
            assert_eq!(
                seen,
                Some(format!("{method} https://test.example:8443/refused/2"))
            );
        }
        // Not for ever, and not what was not kept.
        assert_eq!(ask("GET", "/refused/3", true).await, None);
        assert_eq!(ask("POST", "/refused/1", false).await, None);
    });
}

#[test]
fn tunnels_are_refused() {
    let address = gateway();
    run(async {
        let mut send = connect(address).await;
        let request = Request::builder().method("CONNECT").uri("test.example:80");
        let (answer, _) = send.send_request(request.body(()).unwrap(), false).unwrap();
        assert_eq!(answer.await.unwrap().status(), 501);
    });
}

/// A client that opens and resets streams without end loses its connection.
#[test]
fn streams_that_are_opened_and_reset_end_the_connection() {
    let settings = ServerSettings {
        early_resets: 5,
        ..ServerSettings::default()
    };
    let (address, ended) = front(settings, |_, stream| drop(stream));
    let mut socket = TcpStream::connect(address).unwrap();
    socket
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .unwrap();
    let mut frames = Vec::new();
    for stream in (1..200_u32).step_by(2) {
        let id = stream.to_be_bytes();
        // `:method: GET`, `:scheme: https`, `:path: /`, `:authority: a`; then RST_STREAM.
        frames.extend([0, 0, 6, 1, 5, id[0], id[1], id[2], id[3]]);
        frames.extend([0x82, 0x87, 0x84, 0x41, 1, b'a']);
        frames.extend([0, 0, 4, 3, 0, id[0], id[1], id[2], id[3], 0, 0, 0, 8]);
    }
    socket.write_all(&frames).unwrap();
    let error = ended.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(
        error,
        Http2Error::Protocol(crate::http2::Reason::ENHANCE_YOUR_CALM)
    );
}

#[test]
fn what_is_no_http_2_ends_the_connection() {
    let (address, ended) = front(ServerSettings::default(), |_, stream| drop(stream));
    let mut socket = TcpStream::connect(address).unwrap();
    socket
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    assert!(ended.recv_timeout(Duration::from_secs(60)).is_ok());
}

#[test]
fn a_connection_that_is_shut_down_ends_with_its_last_stream() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let mut router = Router::new(client, ServerSettings::default());
        let mut shut = false;
        loop {
            let mut opened = None;
            let turned = router.turn(|router, stream| opened = Some(router.pair_with(stream)));
            if let Err(error) = turned {
                return error;
            }
            if let Some(end) = opened
                && !std::mem::replace(&mut shut, true)
            {
                router.server.shut_down();
                let mut end = blocking(end);
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(20));
                    end.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlast")
                        .unwrap();
                    // Open until it was read.
                    let _ = end.read_to_end(&mut Vec::new());
                });
            }
        }
    });
    run(async {
        let mut send = connect(address).await;
        let (answer, _) = send.send_request(get("/").body(()).unwrap(), true).unwrap();
        let (body, _) = whole(answer.await.unwrap()).await.unwrap();
        assert_eq!(body, b"last");
        assert!(
            std::future::poll_fn(|context| send.poll_ready(context))
                .await
                .is_err()
        );
    });
    assert_eq!(server.join().unwrap(), Http2Error::Closed);
}
