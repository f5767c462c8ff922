//! Limits of time that count for one of the clients' protocols.

use std::net::SocketAddr;
use std::time::Duration;

use http::Request;

use super::bench::{Backend, Bench};
use super::http2::{connect, run};
use super::tls::Authority;

#[test]
fn requests_over_http1_can_have_a_time_limit_of_their_own() {
    let backend = Backend::new(|mut connection, _| connection.wait_for_end());
    let bench = Bench::with(&[backend.address], |settings| {
        settings.backends.timeout = Duration::from_hours(1);
        settings.backends.timeout_http1 = Some(Duration::from_millis(50));
    });
    assert_eq!(bench.client().get("/").status, 502);
    assert_eq!(bench.totals().timeouts, 1);
}

#[test]
fn requests_over_http2_can_have_a_time_limit_of_their_own() {
    let authority = Authority::new();
    // The backend speaks HTTP/1: the client's protocol decides.
    let silent = Backend::new(|mut connection, _| connection.wait_for_end());
    let bench = Bench::with(&[silent.address], |settings| {
        settings.listen_tls = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        settings.client_tls.certificates = vec![authority.sign("app.test")];
        settings.backends.timeout = Duration::from_hours(1);
        settings.backends.timeout_http2 = Some(Duration::from_millis(50));
    });
    run(async {
        let mut send = connect(&bench, &authority).await;
        let request = Request::get("https://app.test/").body(()).unwrap();
        let (answer, _) = send.send_request(request, true).unwrap();
        assert_eq!(answer.await.unwrap().status(), 502);
    });
    assert_eq!(bench.totals().timeouts, 1);
}

/// Nobody knows how long what a WebSocket asks for takes.
#[test]
fn a_websockets_backend_may_take_its_time_to_agree() {
    let backend = Backend::new(|mut connection, _| {
        if connection.request().is_some() {
            std::thread::sleep(Duration::from_millis(500));
            connection.send(
                b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
                  Upgrade: websocket\r\n\r\n",
            );
            connection.wait_for_end();
        }
    });
    let bench = Bench::with(&[backend.address], |settings| {
        settings.backends.timeout = Duration::from_millis(50);
    });
    let mut client = bench.client();
    client.send(
        b"GET / HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    assert_eq!(client.answer_without_body().unwrap().status, 101);
    assert_eq!(bench.totals().timeouts, 0);
}
