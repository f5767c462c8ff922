//! What services answer when something breaks.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;

use super::stage::{Stage, listener};
use traces::SpanKind;

/// Two services here; the third is played by the test.
fn with_leaf(leaf: &TcpListener, call: &str) -> Stage {
    let text = format!(
        r#"
[services.root]
entry = true
response = "echo"
steps = [{{ call = "branch" }}]
[services.branch]
response = "echo"
steps = [{{ call = "leaf"{call} }}]
[services.leaf]
response = "echo"
"#
    );
    Stage::without_leaf(&text, leaf)
}

/// Reads one request.
fn request(stream: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") {
        if !matches!(stream.read(&mut byte), Ok(1)) {
            return None;
        }
        text.push(byte[0]);
    }
    String::from_utf8(text).ok()
}

#[test]
fn nobody_listens() {
    let leaf = listener();
    let stage = with_leaf(&leaf, "");
    // Closed is not enough: a process that another test is just starting has it, too, until it is
    // a program.
    let socket = TcpStream::from(OwnedFd::from(leaf));
    socket.shutdown(Shutdown::Both).unwrap();
    let mut client = stage.client("root");
    for _ in 0..3 {
        let answer = client.get("/");
        assert_eq!(answer.failed(), (502, "branch>leaf refused"));
        assert_eq!(answer.body, "branch>leaf refused\n");
    }
    // Two servers and two calls for each.
    let spans = stage.wait_for_spans(3 * 4);
    let failed: Vec<_> = spans
        .iter()
        .filter(|span| span.cause == "refused")
        .collect();
    assert_eq!(failed.len(), 3 + 3, "{spans:#?}");
    assert!(failed.iter().all(|span| &*span.service == "branch"));
    stage.drain();
}

#[test]
fn a_callee_that_stopped_is_waited_for_as_long_as_the_call_may_take() {
    let leaf = listener();
    let stage = with_leaf(&leaf, ", timeout = \"50ms\"");
    let mut client = stage.client("root");
    let answer = client.get("/");
    assert_eq!(answer.failed(), (504, "branch>leaf timeout"));
    let spans = stage.wait_for_spans(4);
    let call = spans.iter().find(|span| &*span.peer == "leaf").unwrap();
    assert!(call.end - call.start >= 50_000_000);
    assert_eq!((call.status, call.cause), (0, "timeout"));
    // The connection was given up; the next call makes its own.
    let (mut first, _) = leaf.accept().unwrap();
    let head = request(&mut first).unwrap();
    let left = head.lines().find_map(|line| {
        let left = line.strip_prefix("x-envoy-expected-rq-timeout-ms: ")?;
        left.parse::<u64>().ok()
    });
    // What connecting took is gone.
    assert!((1..=50).contains(&left.unwrap()), "{head}");
    assert_eq!(first.read(&mut [0]).unwrap(), 0);
    stage.drain();
}

#[test]
fn a_deadline_travels() {
    let leaf = listener();
    let stage = with_leaf(&leaf, ", timeout = \"900ms\"");
    let mut client = stage.client("root");
    let answer = client.ask("GET", "/", "x-envoy-expected-rq-timeout-ms: 40\r\n");
    assert_eq!(answer.status, 504);
    let (mut first, _) = leaf.accept().unwrap();
    let text = request(&mut first).unwrap();
    let left = text.split("timeout-ms: ").nth(1).unwrap();
    let left: u64 = left.split("\r\n").next().unwrap().parse().unwrap();
    assert!((1..=40).contains(&left), "{left}");
    stage.drain();
}

#[test]
fn a_callee_that_resets_or_says_nonsense() {
    let leaf = listener();
    let stage = with_leaf(&leaf, "");
    let answers: [(&[u8], &str); 4] = [
        (b"", "branch>leaf reset"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
            "branch>leaf reset",
        ),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "branch>leaf malformed"),
        (
            b"HTTP/1.1 500 No\r\nx-headroom-failed: leaf>deep timeout\r\nContent-Length: 0\r\n\r\n",
            "leaf>deep timeout",
        ),
    ];
    let mut client = stage.client("root");
    for (bytes, expected) in answers {
        let player = leaf.try_clone().unwrap();
        let bytes = bytes.to_vec();
        let player = std::thread::spawn(move || {
            let (mut stream, _) = player.accept().unwrap();
            request(&mut stream).unwrap();
            stream.write_all(&bytes).unwrap();
        });
        let answer = client.get("/");
        assert_eq!(answer.failed(), (502, expected));
        player.join().unwrap();
    }
    stage.drain();
}

#[test]
fn a_connection_that_was_closed_while_idle_is_no_failure() {
    let leaf = listener();
    let stage = with_leaf(&leaf, "");
    let player = std::thread::spawn(move || {
        let answered = || {
            let (mut stream, _) = leaf.accept().unwrap();
            request(&mut stream).unwrap();
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
            stream.write_all(answer).unwrap();
            stream
        };
        for _ in 0..20 {
            // One answer for each connection, without a word that it was the last.
            drop(answered());
        }
        // And one that is closed with the next request in hand.
        request(&mut answered()).unwrap();
        answered();
    });
    let mut client = stage.client("root");
    for _ in 0..22 {
        let answer = client.get("/");
        assert_eq!(
            (answer.status, &*answer.body),
            (200, "hello:root:/:hello:branch:/:ok")
        );
    }
    player.join().unwrap();
    stage.drain();
}

#[test]
fn retries_are_attempts_with_spans_of_their_own() {
    let leaf = listener();
    let stage = with_leaf(&leaf, ", retries = 2, backoff = \"1ms\"");
    let player = std::thread::spawn(move || {
        let (mut stream, _) = leaf.accept().unwrap();
        for status in [500, 503, 200] {
            request(&mut stream).unwrap();
            let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    assert_eq!(stage.client("root").get("/").status, 200);
    player.join().unwrap();
    let spans = stage.wait_for_spans(2 + 1 + 3);
    let mut calls: Vec<_> = spans
        .iter()
        .filter(|span| span.kind == SpanKind::Client && &*span.peer == "leaf")
        .map(|span| (span.attempt, span.status))
        .collect();
    calls.sort_unstable();
    assert_eq!(calls, [(0, 500), (1, 503), (2, 200)]);
    stage.drain();
}

#[test]
fn faults_are_answered_dropped_and_delayed() {
    let of = |faults: &str| {
        Stage::new(&format!(
            "[services.root]\nentry = true\nsteps = [{{ call = \"leaf\" }}]\n[services.leaf]\nfaults = {{ {faults} }}\n"
        ))
    };
    let stage = of(r#"error = "100%", status = 418"#);
    assert_eq!(stage.client("root").get("/").failed(), (502, "leaf fault"));
    assert_eq!(stage.client("leaf").get("/").failed(), (418, "leaf fault"));
    stage.drain();
    let stage = of(r#"drop = "100%""#);
    assert_eq!(
        stage.client("root").get("/").failed(),
        (502, "root>leaf reset")
    );
    let mut client = stage.client("leaf");
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(client.try_answer(true).is_none());
    stage.drain();
    let stage = of(r#"delay = { rate = "100%", by = "15ms" }"#);
    assert_eq!(stage.client("root").get("/").status, 200);
    let spans = stage.wait_for_spans(3);
    let leaf = spans.iter().find(|span| &*span.service == "leaf").unwrap();
    assert!(leaf.end - leaf.start >= 15_000_000);
    stage.drain();
}

#[test]
fn work_that_cannot_be_done_fails_its_request_only() {
    let stage = Stage::new(
        r#"
[services.root]
entry = true
[services.root.endpoints."/"]
steps = [{ ops = 10 }]
[services.root.endpoints."/fork"]
steps = [{ fork = ["/no/such/program"] }]
"#,
    );
    let mut client = stage.client("root");
    let answer = client.get("/fork");
    assert_eq!(answer.failed(), (500, "root no-program"));
    let why = answer.body.strip_prefix("root no-program\n");
    assert!(
        why.is_some_and(|why| why.contains("start the program `/no/such/program`")),
        "{}",
        answer.body
    );
    assert_eq!(client.get("/").status, 200);
    stage.drain();
}

#[test]
fn more_work_than_may_wait_is_refused() {
    let stage = Stage::new(
        "[services.root]\nentry = true\nworkers = 1\nqueue = 1\nsteps = [{ fork = [\"sleep\", \"0.2\"] }]\n",
    );
    let clients: Vec<_> = (0..6).map(|_| stage.client("root")).collect();
    let asked = clients.into_iter().map(|mut client| {
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        client
    });
    let asked: Vec<_> = asked.collect();
    let answers: Vec<_> = asked
        .into_iter()
        .map(|mut client| client.answer(true))
        .collect();
    let well = answers.iter().filter(|answer| answer.status == 200).count();
    let refused = answers
        .iter()
        .filter(|answer| answer.failed() == (503, "root full"))
        .count();
    assert!(
        well >= 1 && refused >= 1 && well + refused == 6,
        "{answers:?}"
    );
    stage.drain();
}
