//! Whatever either side does at whatever step: each request ends in one of the ways that
//! it may end, and nothing of it is left.

use std::net::Shutdown;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::bench::{Backend, Bench, Client, ok};
use crate::table::Lookup;

/// What a backend does with a request whose path asks for it.
#[derive(Debug, Clone, Copy)]
enum Ending {
    Keeps,
    Closes,
    Resets,
}

#[derive(Debug, Clone, Copy)]
enum Leaving {
    Stays,
    HalfCloses,
    Drops,
}

/// One request, and what happens to it.
#[derive(Debug, Clone)]
struct Mishap {
    /// Bytes of the request's body; chunked if `chunked`.
    body: usize,
    chunked: bool,
    /// The backend reads the body first.
    reads: bool,
    /// The backend sends so many thousandths of its answer.
    says: usize,
    ending: Ending,
    /// The client sends so many thousandths of its request, and then leaves or waits.
    asks: usize,
    leaving: Leaving,
}

fn mishap() -> impl Strategy<Value = Mishap> {
    let often = prop_oneof![2 => Just(1000_usize), 1 => 0..1000_usize];
    let asks = prop_oneof![3 => Just(1000_usize), 1 => 0..1000_usize];
    let ending = prop_oneof![
        2 => Just(Ending::Keeps),
        1 => Just(Ending::Closes),
        1 => Just(Ending::Resets)
    ];
    let leaving = prop_oneof![
        3 => Just(Leaving::Stays),
        1 => Just(Leaving::HalfCloses),
        1 => Just(Leaving::Drops)
    ];
    let body = prop_oneof![Just(0_usize), 1..100_usize, Just(200_000_usize)];
    (
        body,
        any::<bool>(),
        any::<bool>(),
        often,
        ending,
        asks,
        leaving,
    )
        .prop_map(
            |(body, chunked, reads, says, ending, asks, leaving)| Mishap {
                body,
                chunked,
                reads,
                says,
                ending,
                asks,
                leaving,
            },
        )
}

/// The answer's body: long enough for several reads.
fn answer() -> Vec<u8> {
    ok(&[b'a'; 100_000])
}

/// A backend that does what the path asks for.
fn backend() -> Backend {
    Backend::new(|mut connection, _| {
        while let Some(asked) = connection.head() {
            let parts: Vec<usize> = asked
                .path()
                .split('/')
                .filter_map(|part| part.parse().ok())
                .collect();
            let [body, chunked, reads, says, ending] = parts[..] else {
                return;
            };
            let framing = if chunked == 1 {
                chunks(body)
            } else {
                vec![0; body]
            };
            if reads == 1 && !connection.try_read_exact(framing.len()) {
                return;
            }
            let answer = answer();
            connection.send(&answer[..answer.len() * says / 1000]);
            match ending {
                0 if says == 1000 && (reads == 1 || framing.is_empty()) => {}
                0 => return connection.wait_for_end(),
                1 => return,
                _ => return connection.reset(),
            }
        }
    })
}

/// A body of so many bytes in chunks.
fn chunks(body: usize) -> Vec<u8> {
    let mut framed = Vec::new();
    for part in vec![b'b'; body].chunks(4096) {
        framed.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
        framed.extend_from_slice(part);
        framed.extend_from_slice(b"\r\n");
    }
    framed.extend_from_slice(b"0\r\n\r\n");
    framed
}

fn request(it: &Mishap) -> Vec<u8> {
    let ending = match it.ending {
        Ending::Keeps => 0,
        Ending::Closes => 1,
        Ending::Resets => 2,
    };
    let (chunked, reads) = (u8::from(it.chunked), u8::from(it.reads));
    let path = format!("/{}/{chunked}/{reads}/{}/{ending}", it.body, it.says);
    let framing = match (it.chunked, it.body) {
        (true, _) => "Transfer-Encoding: chunked\r\n".to_owned(),
        (false, 0) => String::new(),
        (false, body) => format!("Content-Length: {body}\r\n"),
    };
    let mut request =
        format!("POST {path} HTTP/1.1\r\nHost: app.test\r\nIdempotency-Key: 1\r\n{framing}\r\n")
            .into_bytes();
    if it.chunked {
        request.extend_from_slice(&chunks(it.body));
    } else {
        request.resize(request.len() + it.body, b'b');
    }
    request
}

/// Asks, and gives the status that came of it; `None`: no whole answer.
fn ask(client: &mut Client, it: &Mishap) -> Option<(u16, String)> {
    let request = request(it);
    client.try_send(&request[..request.len() * it.asks / 1000]);
    match it.leaving {
        Leaving::Stays if it.asks == 1000 => {}
        Leaving::Stays | Leaving::HalfCloses => {
            let _ = client.socket().shutdown(Shutdown::Write);
        }
        Leaving::Drops => return None,
    }
    let seen = client.answer().ok()?;
    if seen.status == 200 {
        assert!(seen.body == [b'a'; 100_000], "a mangled answer");
    }
    let error = seen.field("x-cf-routererror").unwrap_or_default();
    Some((seen.status, error.to_owned()))
}

#[test]
fn whatever_happens_nothing_is_left() {
    let backends: Vec<Backend> = (0..2).map(|_| backend()).collect();
    let addresses: Vec<_> = backends.iter().map(|backend| backend.address).collect();
    let bench = Bench::with(&addresses, |settings| {
        // A backend that says less than all and waits runs into this.
        settings.backends.timeout = Duration::from_millis(300);
        settings.head_timeout = Duration::from_millis(300);
    });
    let config = Config {
        cases: 96,
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = TestRunner::new(config);
    let mishaps = prop::collection::vec(mishap(), 1..4);
    runner
        .run(&mishaps, |mishaps| {
            let mut client = bench.client();
            for it in &mishaps {
                let came = ask(&mut client, it);
                let (status, error) = came.unwrap_or_default();
                // Small enough to be sent again when an idle connection was closed.
                let small = it.body < 60_000;
                let good = small && it.says == 1000 && it.asks == 1000 && it.reads;
                if good && matches!((it.leaving, it.ending), (Leaving::Stays, Ending::Keeps)) {
                    // A busy machine may exceed the time limit.
                    let late = error.contains("deadline exceeded");
                    prop_assert!(status == 200 || late, "{} {}", status, error);
                }
                // Who ends its side early is told so.
                let known = matches!(status, 0 | 200 | 400 | 499 | 502);
                prop_assert!(known, "{} {}", status, error);
                // The connection may be used up; the next request shall have a good one.
                client = bench.client();
            }
            Ok(())
        })
        .unwrap();
    bench.until("all requests are over", |totals| {
        totals.active == 0 && totals.open_clients <= 1
    });
    let Lookup::Found(pool) = bench.table.lookup(b"app.test", b"/") else {
        panic!("the route is gone");
    };
    for endpoint in pool.endpoints().iter() {
        assert_eq!(endpoint.state.in_flight(), 0);
    }
    let totals = bench.totals();
    assert_eq!(totals.open_backends, totals.idle_backends, "{totals:?}");
}

/// A backend that breaks while its client is slow: the rest arrives, and no thread spins.
#[test]
fn a_slow_reader_gets_what_a_broken_backend_has_sent() {
    let backend = Backend::new(|mut connection, _| {
        connection.head();
        connection.send(&ok(&[b'x'; 20_000_000])[..]);
        connection.reset();
    });
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    client.send(b"GET / HTTP/1.1\r\nHost: app.test\r\n\r\n");
    bench.until("it waits for the client", |totals| totals.sent > 0);
    let before = bench.totals().turns;
    std::thread::sleep(Duration::from_millis(100));
    let turns = bench.totals().turns - before;
    assert!(turns < 2_000, "{turns} turns while nothing can be done");
    match client.answer() {
        Ok(seen) => assert_eq!(seen.body.len(), 20_000_000),
        // The reset has overtaken what was sent before it.
        Err(error) => assert!(!error.is_empty()),
    }
    bench.until("nothing is left", |totals| totals.active == 0);
}

/// One side of a tunnel ends, and the other never does.
#[test]
fn a_tunnel_with_one_end_is_not_kept_forever() {
    let backend = Backend::new(|mut connection, _| {
        connection.head();
        connection.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    });
    let bench = Bench::with(&[backend.address], |settings| {
        settings.backends.timeout = Duration::from_millis(1000);
    });
    let mut client = bench.client();
    client.send(
        b"GET /ws HTTP/1.1\r\nHost: app.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    assert_eq!(client.answer().unwrap().status, 101);
    assert_eq!(client.rest(), b"");
    bench.until("the tunnel is closed", |totals| totals.open_clients == 0);
}
