//! Requests that go well.

use super::bench::{Backend, Bench, ok};

#[test]
fn connections_to_both_sides_are_used_again() {
    let backend = Backend::answering(|asked| ok(asked.path().as_bytes()));
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    for number in 0..10 {
        let seen = client.get(&format!("/{number}"));
        assert_eq!(
            (seen.status, seen.body),
            (200, format!("/{number}").into_bytes())
        );
    }
    assert_eq!(bench.client().get("/other").body, b"/other");
    assert_eq!(backend.connections(), 1);
    let totals = bench.totals();
    assert_eq!((totals.requests, totals.reused, totals.dialed), (11, 10, 1));
    assert_eq!(totals.responses[2], 11);
    assert_eq!((totals.active, totals.open_backends), (0, 1));
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let backend = Backend::answering(|asked| ok(asked.path().as_bytes()));
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    let mut all = String::new();
    for number in 0..50 {
        let host = if number % 5 == 0 {
            "unknown.test"
        } else {
            "app.test"
        };
        all += &format!("GET /{number} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    }
    client.send(all.as_bytes());
    for number in 0..50 {
        let seen = client.answer().unwrap();
        if number % 5 == 0 {
            assert_eq!(seen.status, 404);
        } else {
            assert_eq!(seen.body, format!("/{number}").into_bytes());
        }
    }
}

#[test]
fn head_has_no_body_and_the_connection_goes_on() {
    let backend = Backend::answering(|asked| {
        if asked.line.starts_with("HEAD") {
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n".to_vec()
        } else {
            ok(b"after")
        }
    });
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    client.send(b"HEAD / HTTP/1.1\r\nHost: app.test\r\n\r\n");
    let seen = client.answer_without_body().unwrap();
    assert_eq!(seen.field("content-length"), Some("5"));
    assert_eq!(client.get("/").body, b"after");
    assert_eq!(backend.connections(), 1);
}

#[test]
fn a_client_of_http_1_0_is_answered_and_closed() {
    let backend = Backend::answering(|_| {
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n".to_vec()
    });
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    client.send(b"GET / HTTP/1.0\r\nHost: app.test\r\n\r\n");
    let seen = client.answer().unwrap();
    assert_eq!((seen.chunked, seen.body), (false, b"abc".to_vec()));
    assert_eq!(client.rest(), b"");
}

/// The length counts, and nothing more is read from the connection (RFC 9112 section 6.1).
#[test]
fn an_answer_of_http_1_0_has_no_coding_whatever_it_says() {
    let backend = Backend::answering(|_| {
        let head = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n";
        format!("{head}Transfer-Encoding: chunked\r\n\r\nabc").into_bytes()
    });
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    for connections in 1..=2 {
        let seen = client.get("/");
        assert_eq!((seen.status, seen.chunked), (200, false));
        assert_eq!(seen.body, b"abc");
        assert_eq!(seen.field("transfer-encoding"), None);
        assert_eq!(backend.connections(), connections);
    }
}

#[test]
fn interim_answers_are_passed_on() {
    let backend = Backend::new(|mut connection, _| {
        while connection.head().is_some() {
            connection.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
            connection.send(&ok(b"end"));
        }
    });
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    client.send(b"GET / HTTP/1.1\r\nHost: app.test\r\n\r\n");
    let early = client.answer().unwrap();
    assert_eq!((early.status, early.field("link")), (103, Some("</a>")));
    assert_eq!(client.answer().unwrap().body, b"end");
}

#[test]
fn a_body_comes_only_when_the_backend_wants_it() {
    let backend = Backend::new(|mut connection, _| {
        connection.head().unwrap();
        connection.send(b"HTTP/1.1 100 Continue\r\n\r\n");
        assert_eq!(connection.read_exact(5), b"hello");
        connection.send(&ok(b"thanks"));
        connection.wait_for_end();
    });
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    client.send(
        b"POST / HTTP/1.1\r\nHost: app.test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
    );
    assert_eq!(client.answer().unwrap().status, 100);
    client.send(b"hello");
    assert_eq!(client.answer().unwrap().body, b"thanks");
}

/// Whether the rest of a body comes that nobody asks for any more, nobody knows; and much of it
/// is not worth while.
#[test]
fn an_answer_before_the_body_says_that_the_connection_ends() {
    let backend = Backend::new(|mut connection, _| {
        connection.head();
        connection.send(&ok(b"no"));
        connection.wait_for_end();
    });
    let bench = Bench::new(&[backend.address]);
    for (expect, length, expected) in [
        ("Expect: 100-continue\r\n", 5, Some("close")),
        ("", 300_000, Some("close")),
        ("", 5, None),
    ] {
        let mut client = bench.client();
        let head = "POST / HTTP/1.1\r\nHost: app.test\r\n";
        client.send(format!("{head}{expect}Content-Length: {length}\r\n\r\n").as_bytes());
        let seen = client.answer().unwrap();
        let found = (seen.status, seen.field("connection"));
        assert_eq!(found, (200, expected), "{expect}{length}");
    }
}

#[test]
fn a_silent_backend_does_not_keep_a_polite_client_waiting() {
    let backend = Backend::answering(|asked| ok(&asked.message.body));
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    client.send(
        b"POST / HTTP/1.1\r\nHost: app.test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
    );
    assert_eq!(client.answer().unwrap().status, 100);
    client.send(b"hello");
    assert_eq!(client.answer().unwrap().body, b"hello");
}

#[test]
fn a_refused_request_with_a_body_leaves_the_connection_usable() {
    let backend = Backend::answering(|_| ok(b"ok"));
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    client.send(b"POST / HTTP/1.1\r\nHost: nowhere.test\r\nContent-Length: 9\r\n\r\n1234");
    assert_eq!(client.answer().unwrap().status, 404);
    client.send(b"56789");
    assert_eq!(client.get("/").body, b"ok");
    // More than is worth while is not read.
    client.send(b"POST / HTTP/1.1\r\nHost: nowhere.test\r\nContent-Length: 300000\r\n\r\n");
    let seen = client.answer().unwrap();
    assert_eq!(
        (seen.status, seen.field("connection")),
        (404, Some("close"))
    );
}

#[test]
fn a_websocket_is_a_tunnel_with_two_ends() {
    let backend = Backend::new(|mut connection, _| {
        let asked = connection.head().unwrap();
        assert_eq!(asked.message.field("upgrade"), Some("websocket"));
        connection.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nfirst");
        assert_eq!(connection.read_exact(4), b"ping");
        connection.send(b"pong");
        connection.wait_for_end();
        connection.send(b"last words");
    });
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    client.send(b"GET /ws HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nping");
    assert_eq!(client.answer().unwrap().status, 101);
    assert_eq!(client.read_exact(9), b"firstpong");
    client.socket().shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.rest(), b"last words");
    bench.until("the tunnel ends", |totals| {
        totals.open_clients == 0 && totals.open_backends == 0
    });
    assert_eq!(bench.totals().upgrades, 1);
}

#[test]
fn draining_finishes_what_is_on_its_way() {
    let (go, gone) = std::sync::mpsc::channel();
    let gone = std::sync::Mutex::new(gone);
    let backend = Backend::new(move |mut connection, _| {
        while connection.request().is_some() {
            gone.lock().unwrap().recv().unwrap();
            connection.send(&ok(b"late"));
        }
    });
    let bench = Bench::new(&[backend.address]);
    let mut idle = bench.client();
    go.send(()).unwrap();
    assert_eq!(idle.get("/").body, b"late");
    let mut busy = bench.client();
    busy.send(b"GET / HTTP/1.1\r\nHost: app.test\r\n\r\n");
    bench.until("it is on its way", |totals| totals.active == 1);
    bench.engine.drain();
    assert_eq!(idle.rest(), b"");
    assert!(std::net::TcpStream::connect(bench.engine.address().unwrap()).is_err());
    assert_eq!(bench.engine.active(), 1);
    go.send(()).unwrap();
    let seen = busy.answer().unwrap();
    assert_eq!(
        (&seen.body[..], seen.field("connection")),
        (&b"late"[..], Some("close"))
    );
    assert_eq!(busy.rest(), b"");
    bench.until("nobody is left", |totals| totals.open_clients == 0);
    assert_eq!(bench.engine.active(), 0);
    bench.engine.stop();
}

#[test]
fn connections_end_with_their_next_answer_before_a_drain_closes_them() {
    let backend = Backend::new(|mut connection, _| {
        while connection.request().is_some() {
            connection.send(&ok(b"well"));
        }
    });
    let bench = Bench::new(&[backend.address]);
    let mut before = bench.client();
    assert_eq!(before.get("/").field("connection"), None);
    bench
        .healthy
        .store(false, std::sync::atomic::Ordering::Relaxed);
    // It has an answer on the way, and new ones are still taken: whoever balances may not know.
    for mut client in [before, bench.client()] {
        let last = client.get("/");
        assert_eq!(
            (last.status, last.field("connection")),
            (200, Some("close"))
        );
        assert_eq!(client.rest(), b"");
    }
    bench.until("nobody is left", |totals| totals.open_clients == 0);
}

#[test]
fn a_drain_does_not_wait_for_tunnels() {
    let backend = Backend::new(|mut connection, _| {
        connection.head();
        connection.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        let two = connection.read_exact(2);
        connection.send(&two);
        connection.wait_for_end();
    });
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    client.send(
        b"GET / HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    assert_eq!(client.answer().unwrap().status, 101);
    bench.until("it tunnels", |totals| totals.open_tunnels == 1);
    bench.engine.drain();
    assert_eq!(bench.engine.active(), 0);
    // It goes on until the process ends, or either side ends it.
    client.send(b"hi");
    assert_eq!(client.read_exact(2), b"hi");
    drop(client);
    bench.until("it is over", |totals| {
        totals.open_tunnels == 0 && totals.open_clients == 0
    });
    assert_eq!(bench.engine.active(), 0);
}

#[test]
fn stopping_writes_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let backend = Backend::answering(|_| ok(b"x"));
    let bench = Bench::with(&[backend.address], |settings| {
        settings.access_log.file = Some(path.clone());
    });
    let mut client = bench.client();
    for _ in 0..3 {
        client.get("/logged");
    }
    bench.engine.stop();
    let log = std::fs::read_to_string(&path).unwrap();
    assert_eq!(log.matches("/logged").count(), 3);
}

#[test]
fn a_connection_more_than_allowed_waits() {
    let backend = Backend::answering(|_| ok(b"x"));
    let bench = Bench::with(&[backend.address], |settings| {
        settings.client_connections = 2
    });
    let mut first = bench.client();
    let mut second = bench.client();
    first.get("/");
    second.get("/");
    let mut third = bench.client();
    third.send(b"GET / HTTP/1.1\r\nHost: app.test\r\n\r\n");
    bench.until("accepting pauses", |totals| totals.full > 0);
    assert_eq!(bench.totals().open_clients, 2);
    drop(first);
    assert_eq!(third.answer().unwrap().status, 200);
}

#[test]
fn who_is_bound_to_an_instance_that_is_gone_gets_no_other_one() {
    let backend = Backend::answering(|_| ok(b""));
    let bench = Bench::with(&[backend.address], |settings| {
        settings.sticky.auth_negotiate = true;
    });
    let mut client = bench.client();
    let mut ask = |fields: &str| {
        client.send(format!("GET / HTTP/1.1\r\nHost: app.test\r\n{fields}\r\n").as_bytes());
        client.answer().unwrap()
    };
    let gone = "Cookie: __VCAP_ID__=gone\r\n";
    let seen = ask(&format!("Authorization: Negotiate x\r\n{gone}"));
    assert_eq!(seen.status, 502);
    assert_eq!(
        seen.field("x-cf-routererror"),
        Some("endpoint_failure (No endpoints available)")
    );
    assert_eq!(seen.field("cache-control"), None);
    assert_eq!(
        ask(&format!("Authorization: Basic x\r\n{gone}")).status,
        200
    );
    assert_eq!(bench.totals().bad_gateways, 1);
}
