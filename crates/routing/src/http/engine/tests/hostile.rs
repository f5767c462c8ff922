//! Clients that want something else than an answer.

use std::time::Duration;

use super::bench::{Backend, Bench, ok};

/// Heads and bodies that two parsers could read in two ways, and the status of the refusal.
const REFUSED: [(&str, u16); 24] = [
    ("Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
    ("Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    (
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        501,
    ),
    ("Transfer-Encoding:\r\nContent-Length: 3\r\n\r\nabc", 501),
    ("Transfer-Encoding: \u{b}chunked\r\n\r\n0\r\n\r\n", 400),
    ("Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400),
    ("Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 400),
    ("Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400),
    ("Content-Length: 3, 3\r\n\r\nabc", 400),
    ("Content-Length: +3\r\n\r\nabc", 400),
    ("Content-Length: 0x3\r\n\r\nabc", 400),
    ("Content-Length:\r\n\r\nabc", 400),
    ("Content-Length: 99999999999999999999\r\n\r\nabc", 400),
    ("X: y\nContent-Length: 3\r\n\r\nabc", 400),
    ("X: y\rContent-Length: 3\r\n\r\nabc", 400),
    ("X: y\r\n z\r\n\r\n", 400),
    ("X: y\0z\r\n\r\n", 400),
    ("Host: other.test\r\n\r\n", 400),
    (
        "Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\nabc",
        400,
    ),
    (
        "Transfer-Encoding: chunked\r\n\r\n3;a\nb\r\nabc\r\n0\r\n\r\n",
        400,
    ),
    ("Transfer-Encoding: chunked\r\n\r\n3\nabc\n0\n\n", 400),
    (
        "Transfer-Encoding: chunked\r\n\r\n+3\r\nabc\r\n0\r\n\r\n",
        400,
    ),
    (
        "Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n",
        400,
    ),
    (
        "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
        400,
    ),
];

#[test]
fn what_two_parsers_could_read_in_two_ways_is_refused() {
    // Of a body that breaks, the head may have come; no request must be whole.
    let backend = Backend::new(|mut connection, _| {
        while let Some(asked) = connection.request() {
            connection.send(&ok(asked.line.as_bytes()));
        }
    });
    let bench = Bench::new(&[backend.address]);
    for (rest, status) in REFUSED {
        let mut client = bench.client();
        client.send(format!("POST / HTTP/1.1\r\nHost: app.test\r\n{rest}").as_bytes());
        let seen = client
            .answer()
            .unwrap_or_else(|error| panic!("{rest:?}: {error}"));
        assert_eq!(seen.status, status, "{rest:?}");
        assert_eq!(client.rest(), b"", "{rest:?}");
    }
    let totals = bench.totals();
    assert_eq!((totals.malformed, totals.empty_content_length), (24, 1));
    assert_eq!((totals.responses[2], totals.active), (0, 0));
}

#[test]
fn a_length_beside_chunks_does_not_count_and_nothing_follows() {
    let backend = Backend::answering(|asked| ok(format!("{asked:?}").as_bytes()));
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    client.send(
        b"POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 4\r\n\
        Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n\
        GET /smuggled HTTP/1.1\r\nHost: app.test\r\n\r\n",
    );
    let seen = String::from_utf8(client.answer().unwrap().body).unwrap();
    assert!(
        !seen.to_ascii_lowercase().contains("content-length"),
        "{seen}"
    );
    assert_eq!(client.rest(), b"");
    assert_eq!(bench.totals().requests, 1);
}

/// A backend may take the bytes behind `CONNECT` for a tunnel's.
#[test]
fn a_connection_that_carried_connect_carries_nothing_else() {
    let backend = Backend::answering(|_| ok(b"x"));
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    client.send(b"CONNECT app.test:80 HTTP/1.1\r\nHost: app.test:80\r\n\r\n");
    assert_eq!(client.answer().unwrap().status, 200);
    assert_eq!(client.get("/").status, 200);
    assert_eq!(client.get("/").status, 200);
    assert_eq!(backend.connections(), 2);
}

#[test]
fn a_client_that_takes_nothing_is_let_go() {
    let answer = ok(&vec![b'x'; 64 << 20]);
    let backend = Backend::answering(move |_| answer.clone());
    let bench = Bench::with(&[backend.address], |settings| {
        // Long enough for the backend to answer beside other programs.
        settings.backends.timeout = Duration::from_secs(2);
    });
    let mut client = bench.client();
    client.send(b"GET / HTTP/1.1\r\nHost: app.test\r\n\r\n");
    bench.until("it is over", |totals| {
        (totals.timeouts, totals.active, totals.open_clients) == (1, 0, 0)
    });
    assert!(bench.totals().sent < 32 << 20);
}

#[test]
fn one_client_after_the_other_when_there_is_room_for_one() {
    let backend = Backend::answering(|_| ok(b"x"));
    let bench = Bench::with(&[backend.address], |settings| {
        settings.client_connections = 1;
    });
    let mut first = bench.client();
    assert_eq!(first.get("/").status, 200);
    let mut second = bench.client();
    bench.until("accepting pauses", |totals| totals.full > 0);
    assert_eq!(bench.totals().open_clients, 1);
    drop(first);
    assert_eq!(second.get("/").status, 200);
}
