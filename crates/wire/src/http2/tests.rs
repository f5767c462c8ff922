use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};

use super::*;

/// Serves connections with `h2` on a thread of its own; `answer` sees each request.
fn serve<F, Fut>(answer: F) -> std::net::SocketAddr
where
    F: Fn(Request<h2::RecvStream>, h2::server::SendResponse<Bytes>) -> Fut + Clone + Send + 'static,
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
                let answer = answer.clone();
                tokio::spawn(async move {
                    let mut connection = h2::server::Builder::new()
                        .max_concurrent_streams(8)
                        .handshake::<_, Bytes>(socket)
                        .await
                        .unwrap();
                    while let Some(Ok((request, respond))) = connection.accept().await {
                        tokio::spawn(answer(request, respond));
                    }
                });
            }
        });
    });
    address
}

fn connect(address: std::net::SocketAddr) -> Connection<TcpStream> {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nonblocking(true).unwrap();
    Connection::start(
        stream,
        Settings {
            short_read_drains: true,
            ..Settings::default()
        },
    )
}

fn get(path: &str) -> Request<()> {
    Request::get(format!("http://test{path}")).body(()).unwrap()
}

/// Drives until so many exchanges have ended; gives up after very long.
fn finish(
    connection: &mut Connection<TcpStream>,
    count: usize,
) -> Vec<(StreamKey, Result<Answer, StreamError>)> {
    let mut finished = Vec::new();
    for _ in 0..20_000 {
        let driven = connection.drive(true);
        finished.extend(connection.finished());
        if finished.len() >= count || driven.is_err() {
            return finished;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("{} of {count} exchanges ended", finished.len());
}

fn ready(connection: &mut Connection<TcpStream>) {
    for _ in 0..20_000 {
        connection.drive(true).unwrap();
        if connection.can_send() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("the connection never became ready");
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
    let mut connection = connect(serve(echo));
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
