//! Whether a load can be trusted: truths planted through the real engine, each with a
//! twin in which there is nothing to find.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod processes;
mod target;
mod workload;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use lab_load::arrivals::Process;
use lab_load::recording::{NONE_FREE, Phase};
use lab_load::request::{Body, Journey, Mix, Step, Take};
use lab_load::validity::{self, GENERATOR_LATE};
use lab_load::{Length, Protocol, Recorded, Segment, Slo, Summary, Workload};
use target::{Behaviour, Target};
use workload::{failures, open, plain, run};

/// Names of what makes a load INVALID, without what a busy machine may do to any load.
fn broken(workload: &Workload, recorded: &Recorded) -> Vec<String> {
    let reasons = validity::check(workload, recorded).reasons.into_iter();
    let names = reasons.map(|reason| reason.check);
    names
        .filter(|name| name != GENERATOR_LATE && name != "steal")
        .collect()
}

fn summary(workload: &Workload, recorded: &Recorded) -> Summary {
    Summary::of(
        lab_load::summary::WarmUp::Auto,
        "load",
        "http://target/",
        workload,
        recorded,
    )
    .unwrap()
}

fn target(treat: impl Fn(TcpStream) + Send + Sync + Clone + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let treat = treat.clone();
            std::thread::spawn(move || treat(stream));
        }
    });
    address
}

/// Reads a request with its body; `None` at the end.
fn request(stream: &mut TcpStream) -> Option<String> {
    let mut seen = Vec::new();
    let mut byte = [0];
    while !seen.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        seen.push(byte[0]);
    }
    let head = String::from_utf8(seen).ok()?;
    let length = head.lines().find_map(|line| {
        line.to_ascii_lowercase()
            .strip_prefix("content-length: ")?
            .parse()
            .ok()
    });
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).ok()?;
    Some(head)
}

/// Gives a token for a login, and takes an order with that token only.
fn shop(mut stream: TcpStream) {
    while let Some(head) = request(&mut stream) {
        let (status, body) = match head.split(' ').nth(1) {
            Some("/login") => ("200 OK", r#"{"token": "t-1"}"#),
            _ if head.contains("Bearer t-1") => ("201 Created", "{}"),
            _ => ("403 Forbidden", "{}"),
        };
        let length = body.len();
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}");
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// The example of docs/load.md, and a third step.
fn buying(steps: usize) -> Mix {
    let mut login = Step::new("login", "POST", "/login");
    login.body = Body::Template(r#"{"email": "a@b.example"}"#.to_owned());
    login.take = vec![Take::parse("token = json /token").unwrap()];
    login.think = Duration::from_millis(20);
    let mut order = Step::new("order", "POST", "/orders");
    order.headers = vec![("Authorization".to_owned(), "Bearer {token}".to_owned())];
    let mut look = Step::new("look", "GET", "/orders/1");
    look.headers = order.headers.clone();
    let mut all = vec![login, order, look];
    all.truncate(steps);
    Mix {
        journeys: vec![Journey {
            name: "buy".to_owned(),
            weight: 1.0,
            steps: all,
        }],
        ..Mix::default()
    }
}

/// So many journeys, all of which are gone on with to their end.
fn journeys(rate: f64, count: u64) -> Segment {
    let mut segment = open(Process::Constant, rate, 0.0);
    segment.length = Length {
        duration: None,
        requests: Some(count),
    };
    segment
}

#[test]
fn every_step_of_a_journey_that_comes_due_is_planned_and_sent() {
    for steps in [1, 2, 3] {
        let mut workload = plain(target(shop), 30);
        workload.connections.most = 300;
        workload.mix = buying(steps as usize);
        let recorded = run(workload.clone(), &journeys(150.0, 300));
        let seen = recorded.total.requests();
        let counts = (
            recorded.total.planned,
            seen.sent,
            seen.answered,
            seen.refused,
        );
        assert_eq!(counts, (300 * steps, 300 * steps, 300 * steps, 0));
        assert!(broken(&workload, &recorded).is_empty());
    }
}

#[test]
fn a_journey_that_is_not_gone_on_with_plans_no_more() {
    // Half of the logins get no answer: their orders never come due.
    let number = Arc::new(AtomicU64::new(0));
    let address = target(move |mut stream| {
        while let Some(head) = request(&mut stream) {
            if head.starts_with("POST /login")
                && number.fetch_add(1, Ordering::Relaxed).is_multiple_of(2)
            {
                return;
            }
            let body = r#"{"token": "t-1"}"#;
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    });
    let mut workload = plain(address, 30);
    workload.connections.most = 300;
    workload.mix = buying(2);
    let recorded = run(workload.clone(), &journeys(100.0, 100));
    let seen = recorded.total.requests();
    assert_eq!(
        (recorded.total.planned, seen.failed()),
        (150, 50),
        "{:?}",
        seen.errors
    );
    assert!(broken(&workload, &recorded).is_empty());
}

/// A target that answers after 5 ms, but for a freeze; at a rate that fills the cap of
/// connections meanwhile.
fn frozen(freeze: Option<(f64, f64)>) -> (Workload, Recorded) {
    let stops =
        freeze.map(|(begin, end)| (Duration::from_secs_f64(begin), Duration::from_secs_f64(end)));
    let behaviour = Behaviour {
        delay: Duration::from_millis(5),
        stops: stops.into_iter().collect(),
        ..Behaviour::default()
    };
    let target = Target::start(0, behaviour).unwrap();
    let mut workload = plain(target.address, 50);
    workload.connections.most = 50;
    let recorded = run(workload.clone(), &open(Process::Constant, 500.0, 2.0));
    (workload, recorded)
}

#[test]
fn a_target_that_freezes_fails_by_what_it_did() {
    let objective: Slo = "p90 < 50ms, errors < 1%".parse().unwrap();
    let (workload, recorded) = frozen(Some((0.5, 1.2)));
    let seen = recorded.total.requests();
    assert_eq!((seen.sent, seen.answered), (1_000, 1_000));
    assert!(seen.waited > 200, "{}", seen.waited);
    assert!(broken(&workload, &recorded).is_empty());
    let judged = objective.judge(&recorded);
    let validity = validity::check_for(&workload, &recorded, &judged);
    assert_eq!(judged.holds, Some(false), "{judged:?}");
    assert!(
        validity
            .reasons
            .iter()
            .all(|reason| reason.check == "steal"),
        "{validity:?}"
    );
    // 35 % were due in the freeze: at p90 they had waited for some 500 ms.
    let p90 = seen.intended.quantile(0.9).unwrap();
    assert!(p90 > Duration::from_millis(400), "{p90:?}");
    // The twin.
    let (workload, recorded) = frozen(None);
    assert!(broken(&workload, &recorded).is_empty());
    assert_eq!(recorded.total.requests().answered, 1_000);
}

#[test]
fn requests_that_never_get_a_connection_are_failures_of_the_target() {
    let (workload, recorded) = frozen(Some((0.5, 6.0)));
    let seen = recorded.total.requests();
    let begun = seen.sent + seen.unsendable();
    assert_eq!((recorded.total.planned, begun), (1_000, 1_000));
    let none_free = failures(&seen);
    assert!(
        matches!(none_free.as_slice(), [(Phase::Connect, NONE_FREE, 600..)]),
        "{none_free:?}"
    );
    assert!(broken(&workload, &recorded).is_empty());
    let objective: Slo = "errors < 1%".parse().unwrap();
    assert_eq!(objective.judge(&recorded).holds, Some(false));
}

/// Who waits for a connection gives up as soon as who waits for an answer: the freeze is told as
/// long as it was.
#[test]
fn who_waits_for_a_connection_longer_than_the_timeout_has_failed() {
    let stops = vec![(Duration::from_millis(500), Duration::from_millis(1_500))];
    let behaviour = Behaviour {
        delay: Duration::from_millis(5),
        stops,
        ..Behaviour::default()
    };
    let target = Target::start(0, behaviour).unwrap();
    let mut workload = plain(target.address, 20);
    workload.timeout = Duration::from_millis(400);
    let recorded = run(workload.clone(), &open(Process::Constant, 500.0, 2.5));
    let seen = recorded.total.requests();
    let begun = seen.sent + seen.unsendable();
    assert_eq!((recorded.total.planned, begun), (1_250, 1_250));
    // Due in the first 600 ms of the freeze, more than 400 ms before its end; without the twenty
    // that had waited when a connection was free, and were then answered in time.
    let causes = failures(&seen);
    assert!((260..=350).contains(&seen.failed()), "{causes:?}");
    let waiting = causes.iter().find(|(_, cause, _)| *cause == NONE_FREE);
    assert!(
        matches!(waiting, Some((Phase::Connect, _, 200..))),
        "{causes:?}"
    );
    assert!(broken(&workload, &recorded).is_empty());
}

/// The same, where the target accepts no connection: they would be opened for five seconds.
#[test]
fn who_waits_for_one_that_cannot_be_opened_has_failed_as_soon() {
    const SERVED: usize = 50;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // The kernel takes one or two more by itself.
    rustix::net::listen(&listener, 1).unwrap();
    std::thread::scope(|scope| {
        let (ended, end) = mpsc::channel::<()>();
        scope.spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for _ in 0..SERVED {
                request(&mut stream).unwrap();
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
                stream.write_all(answer).unwrap();
            }
            drop(stream);
            end.recv().unwrap_err();
        });
        let mut workload = plain(address, 1);
        workload.connections.most = 300;
        workload.timeout = Duration::from_millis(300);
        let recorded = run(workload.clone(), &open(Process::Constant, 100.0, 1.5));
        drop(ended);
        let seen = recorded.total.requests();
        assert_eq!(
            (recorded.total.planned, seen.answered, seen.failed()),
            (150, SERVED as u64, 150 - SERVED as u64),
        );
        let causes = failures(&seen);
        let late = causes.iter().find(|(phase, ..)| *phase == Phase::Connect);
        assert!(matches!(late, Some((_, "timeout", 80..))), "{causes:?}");
    });
}

/// A target of HTTP/2 that leaves every tenth request out, or none, after a while.
fn leaving_out(every: Option<u64>) -> SocketAddr {
    let number = Arc::new(AtomicU64::new(0));
    target(move |stream| {
        let number = Arc::clone(&number);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        stream.set_nonblocking(true).unwrap();
        runtime.block_on(async move {
            let stream = tokio::net::TcpStream::from_std(stream).unwrap();
            let Ok(mut connection) = h2::server::handshake(stream).await else {
                return;
            };
            while let Some(Ok((_, mut respond))) = connection.accept().await {
                let number = Arc::clone(&number);
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    let number = number.fetch_add(1, Ordering::Relaxed);
                    if every.is_some_and(|every| number.is_multiple_of(every)) {
                        return respond.send_reset(h2::Reason::REFUSED_STREAM);
                    }
                    if let Ok(mut body) = respond.send_response(http::Response::new(()), false) {
                        let _ = body.send_data(Bytes::from_static(b"x"), true);
                    }
                });
            }
        });
    })
}

#[test]
fn requests_that_a_target_leaves_out_are_counted_and_in_the_law() {
    for every in [Some(10), None] {
        let mut workload = plain(leaving_out(every), 4);
        workload.target.protocol = Protocol::Http2;
        workload.connections.streams = 25;
        workload.timeout = Duration::from_secs(5);
        let recorded = run(workload.clone(), &open(Process::Constant, 500.0, 2.0));
        let seen = recorded.total.requests();
        assert_eq!(seen.sent, 1_000);
        assert!(broken(&workload, &recorded).is_empty(), "{every:?}");
        let counts = summary(&workload, &recorded).requests;
        match every {
            // One that is left out twice has failed.
            Some(_) => assert!((90..=120).contains(&counts.retried), "{counts:?}"),
            None => assert_eq!((counts.retried, seen.answered), (0, 1_000)),
        }
        assert_eq!(seen.answered + seen.failed(), 1_000);
    }
}
