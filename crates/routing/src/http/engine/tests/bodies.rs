//! Bodies, large, small and in pieces.

use std::io::{Read as _, Write as _};

use super::bench::{Backend, Bench, alone, ok};

/// Bytes that are not all alike.
fn pattern(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at * 7 + at / 251) as u8).collect()
}

#[test]
fn a_large_upload_arrives_whole() {
    let backend = Backend::answering(|asked| ok(&asked.message.body));
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    let body = pattern(3 << 20);
    let head = format!(
        "POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    client.send(head.as_bytes());
    client.send(&body);
    assert!(client.answer().unwrap().body == body);
    assert!(client.get("/").body.is_empty());
    assert_eq!(backend.connections(), 1);
}

#[test]
fn chunks_are_framed_anew_and_trailers_arrive() {
    let backend = Backend::answering(|asked| {
        assert!(asked.message.chunked);
        let trailer = asked.message.field("trailer x-sum").unwrap_or("none");
        let mut answer =
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n".to_vec();
        for part in asked.message.body.chunks(100) {
            answer.extend_from_slice(format!("{:x};ext=1\r\n", part.len()).as_bytes());
            answer.extend_from_slice(part);
            answer.extend_from_slice(b"\r\n");
        }
        answer.extend_from_slice(format!("0\r\nX-Sum: {trailer}\r\n\r\n").as_bytes());
        answer
    });
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    client.send(b"POST / HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n");
    let body = pattern(1000);
    for part in body.chunks(77) {
        client.send(format!("{:x}\r\n", part.len()).as_bytes());
        client.send(part);
        client.send(b"\r\n");
    }
    client.send(b"0\r\nX-Sum: 42\r\n\r\n");
    let seen = client.answer().unwrap();
    assert!(seen.chunked && seen.body == body);
    assert_eq!(seen.field("trailer x-sum"), Some("42"));
}

#[test]
fn a_chunk_that_is_none_is_told_to_the_client_and_to_the_application() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let (heard, hears) = std::sync::mpsc::channel();
    let backend = Backend::new(move |mut connection, _| {
        if connection.head().is_some() {
            heard.send(()).unwrap();
        }
        connection.wait_for_end();
    });
    let bench = Bench::with(&[backend.address], |settings| {
        settings.access_log.file = Some(log.clone());
    });
    let head =
        "POST / HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    // When the backend has the head, and with it.
    for later in [true, false] {
        let mut client = bench.client();
        if later {
            client.send(head.as_bytes());
            hears.recv().unwrap();
            client.send(b"zz\r\n");
        } else {
            client.send(format!("{head}zz\r\n").as_bytes());
        }
        let said = String::from_utf8(client.rest()).unwrap();
        assert!(said.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{said}");
        assert!(said.ends_with("\r\n\r\n400 Bad Request"), "{said}");
    }
    bench.until("both were counted", |totals| totals.responses[4] == 2);
    assert_eq!(bench.totals().responses[0], 0);
    bench.engine.stop();
    let log = std::fs::read_to_string(&log).unwrap();
    assert_eq!(log.lines().count(), 2);
    for line in log.lines() {
        assert!(line.contains("\"POST / HTTP/1.1\" 400 5 15 "), "{line}");
    }
}

#[test]
fn a_body_that_ends_with_its_connection_is_framed() {
    let backend = Backend::new(|mut connection, _| {
        connection.request();
        connection.send(b"HTTP/1.1 200 OK\r\n\r\nuntil ");
        connection.send(b"the end");
    });
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    for _ in 0..2 {
        let seen = client.get("/");
        assert_eq!(
            (seen.chunked, &seen.body[..]),
            (true, &b"until the end"[..])
        );
    }
}

/// 100 MB each way, with a reader that begins late: memory stays flat.
#[test]
fn a_hundred_megabytes_flow_through_little_memory() {
    const COUNT: usize = 100 << 20;
    if !alone() {
        return;
    }
    let backend = Backend::new(|mut connection, _| {
        connection.head();
        connection.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {COUNT}\r\n\r\n").as_bytes());
        let part = vec![7; 1 << 20];
        for _ in 0..COUNT >> 20 {
            connection.send(&part);
        }
        connection.wait_for_end();
    });
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    client.send(b"GET / HTTP/1.1\r\nHost: app.test\r\n\r\n");
    bench.until("the answer begins", |totals| totals.sent > 0);
    let before = resident();
    let mut left = COUNT;
    let mut room = vec![0; 1 << 20];
    let mut socket = client.socket();
    let mut most = 0;
    // The head is among these bytes; its length does not matter here.
    while left > 0 {
        let got = socket.read(&mut room).unwrap();
        assert!(got > 0, "{left} bytes are missing");
        left = left.saturating_sub(got);
        most = most.max(resident());
    }
    assert!(most < before + (24 << 20), "{before} became {most}");
}

#[test]
fn an_early_answer_ends_an_upload() {
    let backend = Backend::new(|mut connection, _| {
        connection.head();
        connection
            .send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig");
        connection.wait_for_end();
    });
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    let length = 50 << 20;
    client.send(
        format!("POST / HTTP/1.1\r\nHost: app.test\r\nContent-Length: {length}\r\n\r\n").as_bytes(),
    );
    client.send(&pattern(10_000));
    let seen = client.answer().unwrap();
    assert_eq!((seen.status, &seen.body[..]), (413, &b"big"[..]));
    // The rest is refused sooner or later, never taken whole.
    let mut socket = client.socket();
    let part = pattern(1 << 20);
    let taken = (0..length >> 20).take_while(|_| socket.write_all(&part).is_ok());
    assert!(taken.count() < length >> 20);
}

#[test]
fn both_directions_flow_at_once() {
    let backend = Backend::new(|mut connection, _| {
        connection.head();
        connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        for _ in 0..100 {
            // Chunks of one byte: size, data, line ends.
            let chunk = connection.read_exact(6);
            connection.send(&chunk);
        }
        connection.read_exact(5);
        connection.send(b"0\r\n\r\n");
        connection.wait_for_end();
    });
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    client
        .send(b"POST / HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n0\r\n");
    let seen = client.answer_without_body().unwrap();
    assert_eq!(seen.status, 200);
    assert_eq!(client.read_exact(6), b"1\r\n0\r\n");
    for _ in 1..100 {
        client.send(b"1\r\nx\r\n");
        assert_eq!(client.read_exact(6), b"1\r\nx\r\n");
    }
    client.send(b"0\r\n\r\n");
    assert_eq!(client.read_exact(5), b"0\r\n\r\n");
}

#[test]
fn a_malformed_chunk_is_refused_and_nothing_follows_it() {
    let backend = Backend::new(|mut connection, _| {
        connection.head();
        connection.wait_for_end();
    });
    let bench = Bench::new(&[backend.address]);
    let mut client = bench.client();
    client.send(
        b"POST / HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
    );
    client.send(b"zz\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: app.test\r\n\r\n");
    assert_eq!(client.answer().unwrap().status, 400);
    assert_eq!(client.rest(), b"");
    assert_eq!(bench.totals().requests, 1);
}

/// Resident memory of this process, in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}
