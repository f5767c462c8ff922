//! Things that go wrong, at every step.

use std::net::Shutdown;
use std::time::Duration;

use super::bench::{Backend, Bench, nobody, ok, register};
use crate::table::{Modification, RouteKey};

#[test]
fn a_backend_that_is_not_there_is_passed_over() {
    let backend = Backend::answering(|_| ok(b"here"));
    let bench = Bench::new(&[nobody(), backend.address, nobody()]);
    for _ in 0..6 {
        assert_eq!(bench.client().get("/").body, b"here");
    }
}

#[test]
fn nobody_there_is_a_bad_gateway_and_the_connection_goes_on() {
    let bench = Bench::new(&[nobody(), nobody()]);
    let mut client = bench.client();
    for _ in 0..2 {
        let seen = client.get("/");
        assert_eq!(seen.status, 502);
        let error = seen.field("x-cf-routererror").unwrap();
        assert!(
            error.starts_with("endpoint_failure (dial tcp 127.0.0.1:"),
            "{error}"
        );
    }
    let totals = bench.totals();
    assert_eq!((totals.bad_gateways, totals.active), (2, 0));
}

/// The backend closes the idle connection just when, or before, the next request comes.
#[test]
fn a_stale_connection_is_never_a_bad_gateway() {
    let backend = Backend::new(|mut connection, _| {
        for _ in 0..2 {
            if connection.request().is_none() {
                return;
            }
            connection.send(&ok(b"x"));
        }
        // Takes the third and dies over it: the race as its loser sees it.
        connection.head();
        connection.reset();
    });
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    for number in 0..60 {
        assert_eq!(client.get("/").status, 200, "request {number}");
    }
    assert!(bench.totals().stale_connections > 0);
}

/// A request that may not be sent twice asks first whether the connection still stands.
#[test]
fn a_post_does_not_take_a_connection_that_was_closed() {
    let (closed, wait) = std::sync::mpsc::channel();
    let wait = std::sync::Mutex::new(wait);
    let backend = Backend::new(move |mut connection, _| {
        let asked = connection.request().unwrap();
        connection.send(&ok(&asked.message.body));
        drop(connection);
        closed.send(()).unwrap();
    });
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    for _ in 0..10 {
        client.send(b"POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 2\r\n\r\nhi");
        assert_eq!(client.answer().unwrap().body, b"hi");
        wait.lock().unwrap().recv().unwrap();
    }
}

#[test]
fn a_backend_that_closes_without_an_answer_is_a_bad_gateway() {
    let backend = Backend::new(|mut connection, _| {
        connection.request();
    });
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    client.send(b"POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 2\r\n\r\nhi");
    let seen = client.answer().unwrap();
    assert_eq!(seen.status, 502);
    assert_eq!(
        seen.field("x-cf-routererror"),
        Some("endpoint_failure (EOF)")
    );
}

/// What a backend may do wrong, and what the client sees.
#[test]
fn what_a_backend_says_wrong_ends_in_one_answer_or_a_cut() {
    let table: [(&[u8], u16); 10] = [
        (b"garbage\r\n\r\n", 502),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", 502),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            502,
        ),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", 502),
        (b"HTTP/1.1 200", 502),
        (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
            502,
        ),
        // Nobody behind the router would be told of the coding.
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nab", 502),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", 0),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
            0,
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            0,
        ),
    ];
    for reset in [false, true] {
        for (says, status) in table {
            let backend = Backend::new(move |mut connection, _| {
                connection.request();
                connection.send(says);
                if reset {
                    // So that what was said arrives before the reset.
                    std::thread::sleep(Duration::from_millis(20));
                    connection.reset();
                }
            });
            let bench = Bench::new(&[backend.address]);
            let mut client = bench.client();
            client.send(b"POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 1\r\n\r\nx");
            let seen = client.answer();
            let told = String::from_utf8_lossy(says);
            match seen {
                Ok(seen) => assert_eq!(seen.status, status, "{told}"),
                Err(_) => assert_eq!(status, 0, "{told}"),
            }
            bench.until("all is closed", |totals| {
                totals.active == 0 && totals.open_backends == 0
            });
        }
    }
}

#[test]
fn a_silent_backend_runs_into_the_time_limit() {
    let backend = Backend::new(|mut connection, _| connection.wait_for_end());
    let bench = Bench::with(&[backend.address], |settings| {
        settings.backends.timeout = Duration::from_millis(50);
    });
    let mut client = bench.client();
    let seen = client.get("/");
    assert_eq!(seen.status, 502);
    let error = seen.field("x-cf-routererror").unwrap();
    assert_eq!(error, "endpoint_failure (context deadline exceeded)");
    assert_eq!(bench.totals().timeouts, 1);
}

#[test]
fn failed_requests_have_a_latency_by_application_too() {
    let bench = Bench::with(&[], |settings| settings.app_latencies = 1);
    assert_eq!(bench.client().get("/").status, 404);
    bench.until("its latency is recorded", |totals| {
        totals
            .apps
            .get("gorouter")
            .is_some_and(|app| app.count == 1)
            || totals.app_latency_misses > 0
    });
    let silent = Bench::new(&[]);
    assert_eq!(silent.client().get("/").status, 404);
    silent.until("the request is over", |totals| totals.rejected == 1);
    assert!(silent.totals().apps.is_empty());
}

#[test]
fn a_client_that_leaves_takes_its_request_along() {
    let backend = Backend::new(|mut connection, _| {
        connection.head();
        connection.wait_for_end();
    });
    let bench = Bench::new(&[backend.address]);
    let requests: [&[u8]; 3] = [
        b"GET / HTTP/1.1\r\nHost: app.test\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: 9\r\n\r\nhalf",
        b"GET / HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    ];
    for (number, request) in requests.into_iter().enumerate() {
        let mut client = bench.client();
        client.send(request);
        bench.until("it is with the backend", |totals| {
            totals.active == 1 && totals.dialed == number as u64 + 1
        });
        drop(client);
        bench.until("nothing is left of it", |totals| {
            totals.active == 0 && totals.open_backends == 0 && totals.open_clients == 0
        });
        assert_eq!(bench.totals().clients_gone, number as u64 + 1);
    }
    assert_eq!(bench.totals().responses[4], 3);
}

#[test]
fn a_client_that_ends_only_its_own_side_is_told() {
    let backend = Backend::new(|mut connection, _| connection.wait_for_end());
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    client.send(b"GET / HTTP/1.1\r\nHost: app.test\r\n\r\n");
    bench.until("it is with the backend", |totals| totals.dialed == 1);
    client.socket().shutdown(Shutdown::Write).unwrap();
    let seen = client.answer().unwrap();
    assert_eq!(
        (seen.status, &*seen.body),
        (499, &b"499 Request Cancelled\n"[..])
    );
    assert_eq!(client.rest(), b"");
    // Half a head is answered as by Go's server.
    let mut client = bench.client();
    client.send(b"GET / HT");
    client.socket().shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.answer().unwrap().status, 400);
    assert_eq!(client.rest(), b"");
}

#[test]
fn no_tunnel_begins_with_a_protocol_that_was_not_asked_for() {
    for fields in [
        "Connection: Upgrade\r\nUpgrade: other\r\n",
        "Upgrade: websocket\r\n",
        "",
    ] {
        let says = format!("HTTP/1.1 101 Switching Protocols\r\n{fields}\r\nhidden");
        let backend = Backend::new(move |mut connection, _| {
            connection.head();
            connection.send(says.as_bytes());
            connection.wait_for_end();
        });
        let bench = Bench::new(&[backend.address]);
        let mut client = bench.client();
        client.send(
            b"GET / HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\r\n",
        );
        let seen = client.answer().unwrap();
        assert_eq!(seen.status, 502, "{fields}");
        let error = seen.field("x-cf-routererror").unwrap();
        let told = "when \"WebSocket\" was requested";
        assert!(
            error.contains("tried to switch") && error.contains(told),
            "{error}"
        );
    }
}

#[test]
fn half_a_head_is_not_waited_for_forever() {
    let bench = Bench::with(&[], |settings| {
        settings.head_timeout = Duration::from_millis(50);
        settings.idle_timeout = Duration::from_secs(1);
    });
    let mut slow = bench.client();
    slow.send(b"GET / HTTP/1.1\r\nHo");
    assert_eq!(slow.rest(), b"");
    assert_eq!(bench.client().rest(), b"");
    assert_eq!(bench.totals().slow_clients, 1);
}

#[test]
fn a_flood_of_fields_is_refused() {
    let bench = Bench::new(&[]);
    let mut client = bench.client();
    client.send(b"GET / HTTP/1.1\r\nHost: app.test\r\n");
    for _ in 0..100 {
        client.try_send(format!("X: {}\r\n", "y".repeat(15_000)).as_bytes());
    }
    assert_eq!(client.answer().unwrap().status, 431);
    assert_eq!(bench.totals().malformed, 1);
}

#[test]
fn bytes_that_are_no_request_are_refused() {
    let bench = Bench::new(&[]);
    for bytes in [
        &b"\x16\x03\x01\x02\x00"[..],
        b"GET / HTTP/1.1\n\n",
        b"GET /\r\n\r\n",
    ] {
        let mut client = bench.client();
        client.send(bytes);
        client.try_send(b"\r\n\r\n");
        assert_eq!(client.answer().unwrap().status, 400, "{bytes:?}");
        assert_eq!(client.rest(), b"");
    }
}

/// Endpoints come and go while requests are made: none is lost.
#[test]
fn routes_change_under_load_and_no_request_is_lost() {
    let backends: Vec<Backend> = (0..3).map(|_| Backend::answering(|_| ok(b"x"))).collect();
    let addresses: Vec<_> = backends.iter().map(|backend| backend.address).collect();
    let bench = Bench::with(&addresses[..1], |settings| settings.threads = Some(2));
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut client = bench.client();
                    for _ in 0..500 {
                        assert_eq!(client.get("/").status, 200);
                    }
                })
            })
            .collect();
        let key = RouteKey::new("app.test").unwrap();
        let mut turn = 0;
        while clients.iter().any(|client| !client.is_finished()) {
            let (next, last) = (addresses[(turn + 1) % 3], addresses[turn % 3]);
            register(&bench.table, next);
            let identity = last.to_string();
            bench
                .table
                .unregister(&key, &identity, &Modification::default(), 0);
            turn += 1;
            std::thread::yield_now();
        }
        assert!(turn > 0);
    });
    let totals = bench.totals();
    assert_eq!((totals.responses[2], totals.requests), (2000, 2000));
}

#[test]
fn ten_thousand_requests_leak_no_descriptor() {
    let backend = Backend::new(|mut connection, number| {
        // Each connection ends in another way.
        for _ in 0..number % 4 + 1 {
            if connection.request().is_none() {
                return;
            }
            connection.send(&ok(b"x"));
        }
        if number % 2 == 0 {
            connection.reset();
        }
    });
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    for number in 0..10_000 {
        if number % 10 == 0 {
            client = bench.client();
        }
        assert_eq!(client.get("/").status, 200, "request {number}");
    }
    drop(client);
    bench.until("clients are gone", |totals| totals.open_clients == 0);
    let totals = bench.totals();
    assert_eq!(totals.active, 0);
    assert!(totals.open_backends <= 1, "{totals:?}");
}

/// As gorouter counts: what reached nobody is no answer of a route, and each kind of refusal has
/// its own number.
#[test]
fn refusals_are_counted_by_what_they_are() {
    let backend = Backend::new(|mut connection, _| {
        if connection.request().is_some() {
            connection.wait_for_end();
        }
    });
    let bench = Bench::with(&[backend.address], |settings| {
        settings.backends.in_flight = 1;
    });
    let mut other = bench.client();
    other.send(b"GET / HTTP/1.1\r\nHost: nobody.test\r\n\r\n");
    assert_eq!(other.answer().unwrap().status, 404);
    other.send(
        b"GET / HTTP/1.1\r\nHost: nobody.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    assert_eq!(other.answer().unwrap().status, 404);
    let mut waits = bench.client();
    waits.send(b"GET / HTTP/1.1\r\nHost: app.test\r\n\r\n");
    bench.until("it is under way", |totals| totals.routed == 1);
    for _ in 0..3 {
        assert_eq!(bench.client().get("/").status, 503);
    }
    bench.until("all is counted", |totals| totals.exhausted == 3);
    let totals = bench.totals();
    assert_eq!((totals.rejected, totals.bad_gateways), (2, 0));
    assert_eq!((totals.requests, totals.routed), (6, 1));
    assert_eq!(totals.failed_upgrades, 0);
    assert_eq!((totals.responses, totals.latency.count), ([0; 6], 0));
}
