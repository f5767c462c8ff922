//! Targets of HTTP/2 that take fewer streams on a connection than they are asked for: that is
//! their limit, as a pool is. Who waits for a stream waits for a time, and it is told why.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::accepting::accepting;
use crate::workload::{closed, failures, open, plain, run};
use bytes::Bytes;
use lab_load::arrivals::Process;
use lab_load::recording::{NONE_FREE, Phase};
use lab_load::request::{Body, Journey, Mix, Step};
use lab_load::{Length, Protocol, Workload};

/// A target that takes so many streams on a connection, and answers after a time; `None`, and
/// whoever asks for `/never`: never.
fn target(streams: u32, after: Option<Duration>) -> SocketAddr {
    accepting(move |stream| serve(stream, streams, after))
}

async fn serve(stream: tokio::net::TcpStream, streams: u32, after: Option<Duration>) {
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(streams);
    let Ok(mut connection) = builder.handshake::<_, Bytes>(stream).await else {
        return;
    };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let after = after.filter(|_| request.uri().path() != "/never");
        tokio::spawn(async move {
            match after {
                Some(after) => tokio::time::sleep(after).await,
                None => std::future::pending().await,
            }
            let _ = respond.send_response(http::Response::new(()), true);
        });
    }
}

/// One connection of a hundred places.
fn one(address: SocketAddr, timeout: u64) -> Workload {
    let mut workload = plain(address, 1);
    workload.target.protocol = Protocol::Http2;
    workload.connections.streams = 100;
    workload.timeout = Duration::from_millis(timeout);
    workload
}

const TAKES: Option<Duration> = Some(Duration::from_millis(50));

#[test]
fn who_waits_for_a_stream_waits_for_the_target_and_not_longer_than_the_timeout() {
    // A hundred a second are served, and four hundred asked for.
    let workload = one(target(5, TAKES), 300);
    let recorded = run(workload, &open(Process::Constant, 400.0, 1.0));
    let seen = recorded.total.requests();
    assert_eq!(recorded.total.planned, 400);
    assert_eq!(seen.sent + seen.unsendable(), 400);
    let causes = failures(&seen);
    let busy = causes.iter().find(|(_, cause, _)| *cause == NONE_FREE);
    assert!(
        matches!(busy, Some((Phase::Connect, _, 200..))),
        "{causes:?}"
    );
    // Only what was sent at once can have been late.
    assert!(seen.waited > 50, "{}", seen.waited);
    assert_eq!(seen.waited + seen.lateness.count(), seen.sent);
    assert!(seen.lateness.count() < 100, "{}", seen.lateness.count());
}

#[test]
fn nobody_waits_for_a_stream_where_there_are_enough() {
    let workload = one(target(100, TAKES), 10_000);
    let recorded = run(workload, &open(Process::Constant, 400.0, 0.5));
    let seen = recorded.total.requests();
    assert_eq!((recorded.total.planned, seen.answered), (200, 200));
    assert_eq!(failures(&seen), []);
    assert_eq!(recorded.total.connections.opened, 1);
}

#[test]
fn another_connection_is_opened_where_one_takes_no_more_streams() {
    let mut workload = one(target(5, TAKES), 10_000);
    workload.connections.most = 20;
    let recorded = run(workload, &open(Process::Constant, 400.0, 0.5));
    let seen = recorded.total.requests();
    assert_eq!((recorded.total.planned, seen.answered), (200, 200));
    let opened = recorded.total.connections.opened;
    assert!((4..=20).contains(&opened), "{opened}");
    assert_eq!(recorded.total.connections.closed, 0);
}

#[test]
fn users_and_later_steps_do_not_wait_for_a_stream_for_ever() {
    let mut workload = one(target(2, None), 200);
    workload.connections.streams = 8;
    let seen = run(workload.clone(), &closed(16)).total.requests();
    let causes = failures(&seen);
    assert_eq!(seen.failed(), 16, "{causes:?}");
    assert!(seen.unsendable() > 0 && seen.sent > 0, "{causes:?}");
    assert!(
        causes.contains(&(Phase::Connect, NONE_FREE, seen.unsendable())),
        "{causes:?}"
    );
    // Two second steps take both streams, and the others wait for these.
    workload = one(target(2, Some(Duration::ZERO)), 200);
    let mut first = Step::new("first", "GET", "/");
    first.think = Duration::from_millis(200);
    workload.mix = Mix {
        journeys: vec![Journey {
            name: "two".to_owned(),
            weight: 1.0,
            steps: vec![first, Step::new("second", "GET", "/never")],
        }],
        ..Mix::default()
    };
    let mut journeys = open(Process::Constant, 200.0, 0.0);
    journeys.length = Length {
        duration: None,
        requests: Some(20),
    };
    let recorded = run(workload, &journeys);
    let (first, second) = (&recorded.total.kinds[0], &recorded.total.kinds[1]);
    assert_eq!(first.sent + first.unsendable(), 20);
    assert_eq!(second.sent + second.unsendable(), first.answered);
    let causes = failures(second);
    let busy = causes.iter().find(|(_, cause, _)| *cause == NONE_FREE);
    assert!(busy.is_some() && second.sent > 0, "{causes:?}");
}

#[test]
fn users_who_wait_for_a_stream_make_no_request_after_the_end() {
    let mut workload = one(target(2, TAKES), 10_000);
    workload.connections.streams = 8;
    let mut segment = closed(0);
    segment.length = Length {
        duration: Some(Duration::from_millis(300)),
        requests: None,
    };
    let recorded = run(workload, &segment);
    let (seen, after) = (recorded.total.requests(), recorded.after_end().requests());
    assert_eq!((after.sent, seen.failed()), (0, 0));
    assert_eq!(seen.sent, seen.answered);
    assert!(seen.sent > 2, "{}", seen.sent);
}

/// Reads a frame: its type, and its stream.
fn frame(stream: &mut std::net::TcpStream) -> Option<(u8, u32)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    stream.read_exact(&mut vec![0; length as usize]).ok()?;
    let of = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
    Some((head[3], of))
}

/// A target that answers each request with a status alone, and counts what it reads and writes.
fn counting(read: &'static AtomicU64, written: &'static AtomicU64) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().ok()?;
        let say = |stream: &mut std::net::TcpStream, bytes: &[u8]| {
            written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            stream.write_all(bytes).ok()
        };
        stream.read_exact(&mut [0; 24]).ok()?;
        say(&mut stream, &[0, 0, 0, 4, 0, 0, 0, 0, 0])?;
        loop {
            let mut head = [0; 9];
            stream.read_exact(&mut head).ok()?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            stream.read_exact(&mut vec![0; length as usize]).ok()?;
            read.fetch_add(9 + u64::from(length), Ordering::Relaxed);
            // The last frame of a request: its head, or its body.
            if head[3] <= 1 && head[4] & 1 == 1 {
                let answer = [&[0, 0, 1, 1, 5][..], &head[5..], &[0x88]].concat();
                say(&mut stream, &answer)?;
            }
        }
        #[allow(unreachable_code, reason = "it says what the closure gives")]
        Some(())
    });
    address
}

/// Frames and packed fields, as of HTTP/1.1 heads are counted, and not bodies alone.
#[test]
fn bytes_are_those_of_the_connection() {
    static READ: AtomicU64 = AtomicU64::new(0);
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let mut workload = one(counting(&READ, &WRITTEN), 10_000);
    workload.connections.streams = 4;
    let mut step = Step::new("post", "POST", "/");
    step.body = Body::Template("x".repeat(500));
    step.headers = vec![("X-Id".to_owned(), "{uuid}".to_owned())];
    workload.mix = Mix::of(step);
    let seen = run(workload, &closed(100)).total.requests();
    assert_eq!(seen.answered, 100);
    let (read, written) = (
        READ.load(Ordering::Relaxed),
        WRITTEN.load(Ordering::Relaxed),
    );
    // All bodies fit into the window that a connection begins with. But for what the connection begins with.
    assert!(
        (read - 200..=read).contains(&seen.bytes_sent),
        "{read} {}",
        seen.bytes_sent
    );
    assert!(seen.bytes_sent > 100 * 530, "{}", seen.bytes_sent);
    let received = seen.bytes_received;
    assert!(
        (written - 20..=written).contains(&received),
        "{written} {received}"
    );
}

/// A target that says after each answer that it takes no more, and leaves the connection open.
fn leaving() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                stream.read_exact(&mut [0; 24]).ok()?;
                stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).ok()?;
                while let Some((kind, of)) = frame(&mut stream) {
                    if kind == 1 {
                        let of = of.to_be_bytes();
                        // Status 200 and nothing else; then no stream behind it, without an error.
                        let answer = [&[0, 0, 1, 1, 5][..], &of, &[0x88]].concat();
                        let leaves = [&[0, 0, 8, 7, 0, 0, 0, 0, 0][..], &of, &[0; 4]].concat();
                        stream.write_all(&[answer, leaves].concat()).ok()?;
                    }
                }
                Some(())
            });
        }
    });
    address
}

#[test]
fn a_connection_that_the_target_has_left_is_replaced_though_it_stays_open() {
    let mut workload = one(leaving(), 2_000);
    workload.connections.streams = 1;
    for segment in [closed(20), open(Process::Constant, 100.0, 0.3)] {
        let recorded = run(workload.clone(), &segment);
        let seen = recorded.total.requests();
        let planned = recorded.total.planned;
        let (answered, causes) = (seen.answered, failures(&seen));
        assert_eq!((answered, causes), (planned, vec![]));
        assert!(recorded.total.connections.opened > 1);
    }
}
