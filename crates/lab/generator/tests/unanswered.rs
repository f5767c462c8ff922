//! A target that answers 95 of 100 requests: what its percentiles are, in every form in
//! which they are told.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::workload::{closed, open, plain, run};
use lab_load::arrivals::Process;
use lab_load::recording::Latencies;
use lab_load::slo::Statistic;
use lab_load::{Segment, Slo, Summary, Workload, output};

/// What the target takes for an answer.
const TAKES: Duration = Duration::from_millis(5);
/// One of so many requests has no answer.
const EACH: u64 = 20;
/// The numbers that fall among those without an answer.
const LOST: [&str; 4] = ["p99", "p999", "p9999", "max"];

/// What becomes of a request that has no answer.
#[derive(Clone, Copy)]
enum Loss {
    Silence,
    BrokenOff,
}

fn target(loss: Loss) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(AtomicU64::new(0));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let asked = Arc::clone(&asked);
            std::thread::spawn(move || serve(stream, loss, &asked));
        }
    });
    address
}

fn serve(mut stream: TcpStream, loss: Loss, asked: &AtomicU64) {
    let (mut seen, mut byte) = (Vec::new(), [0]);
    while stream.read_exact(&mut byte).is_ok() {
        seen.push(byte[0]);
        if !seen.ends_with(b"\r\n\r\n") {
            continue;
        }
        seen.clear();
        let lost = (asked.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(EACH);
        if lost && matches!(loss, Loss::Silence) {
            continue;
        }
        std::thread::sleep(TAKES);
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
        let part = if lost { answer.len() - 1 } else { answer.len() };
        if stream.write_all(&answer[..part]).is_err() || lost {
            return;
        }
    }
}

#[test]
fn requests_without_an_answer_are_the_slowest_in_every_form() {
    for loss in [Loss::Silence, Loss::BrokenOff] {
        let mut workload = plain(target(loss), 40);
        workload.timeout = Duration::from_millis(500);
        // However late this machine is, no number is withheld.
        workload.guard.late_after = Duration::from_secs(60);
        let recorded = run(workload.clone(), &open(Process::Constant, 400.0, 1.0));
        let requests = recorded.total.requests();
        assert_eq!((requests.answered, requests.failed()), (380, 20));

        let summary = Summary::of(
            lab_load::summary::WarmUp::Auto,
            "load",
            "http://target/",
            &workload,
            &recorded,
        )
        .unwrap();
        for told in [&summary.latency.intended, &summary.latency.actual] {
            assert_eq!((told.count, told.unanswered), (380, 20));
            assert!(told.p90.unwrap() >= 0.005 && told.p95.unwrap() >= 0.005);
            assert_eq!((told.p99, told.max), (None, None));
            assert_eq!(told.no_answer, LOST);
        }

        let slo = Slo::parse("p90 < 1h, p99 < 1h, max < 1h, actual p99 < 1h").unwrap();
        let judged = slo.judge(&recorded).measured;
        let holds: Vec<_> = judged.iter().map(|one| one.holds).collect();
        assert_eq!(holds, [Some(true), Some(false), Some(false), Some(false)]);
        assert_eq!(judged[0].value, summary.latency.intended.p90);
        assert!(
            judged[1..]
                .iter()
                .all(|one| one.value == Some(f64::INFINITY))
        );

        let now = Latencies::intended(&requests);
        assert_eq!(now.percentile(0.9), summary.latency.intended.p90);
        assert_eq!(now.value(Statistic::P99), Some(f64::INFINITY));

        let json: serde_json::Value =
            serde_json::from_str(&output::json(&summary).unwrap()).unwrap();
        assert!(json["latency"]["intended"]["p99"].is_null());
        assert_eq!(json["latency"]["intended"]["no_answer"][0], "p99");
        let csv = output::csv(&summary);
        let p99s = csv.lines().map(|line| line.split(',').nth(7).unwrap());
        assert!(p99s.skip(1).any(|p99| p99 == "inf"), "{csv}");
    }
}

/// A target with so many threads, each of which serves one connection until that is closed.
fn of_threads(threads: usize, answer: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    for _ in 0..threads {
        let listener = listener.try_clone().unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (mut seen, mut byte) = (Vec::new(), [0]);
                while stream.read_exact(&mut byte).is_ok() {
                    seen.push(byte[0]);
                    if seen.ends_with(b"\r\n\r\n") {
                        seen.clear();
                        let closes = answer.windows(5).any(|part| part == b"close");
                        if stream.write_all(answer).is_err() || closes {
                            break;
                        }
                    }
                }
            }
        });
    }
    address
}

const KEPT_ALIVE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
const CLOSED: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";

#[test]
fn a_target_with_fewer_threads_than_connections_answers_what_it_has_threads_for() {
    for (answer, opened) in [(KEPT_ALIVE, 32), (CLOSED, 32)] {
        // However late this machine is, no more than the threads are asked at once: there are as many
        // requests.
        let workload = plain(of_threads(16, answer), 32);
        let recorded = run(workload, &open(Process::Constant, 100.0, 0.16));
        let requests = recorded.total.requests();
        assert_eq!((requests.answered, requests.failed()), (16, 0));
        // Where each carries one request, none is opened that nobody needs yet.
        assert_eq!(recorded.total.connections.opened, opened);
    }
}

/// What is said of the connections of a load.
fn notes(workload: &Workload, segment: &Segment) -> Vec<String> {
    let recorded = run(workload.clone(), segment);
    let warm_up = lab_load::summary::WarmUp::Auto;
    let summary = Summary::of(warm_up, "load", "http://target/", workload, &recorded);
    summary.unwrap().notes
}

#[test]
fn connections_that_a_target_has_no_threads_for_are_told_of_and_chance_is_not() {
    let mut workload = plain(of_threads(2, KEPT_ALIVE), 4);
    workload.timeout = Duration::from_millis(300);
    let mut segment = closed(0);
    segment.length.requests = None;
    segment.length.duration = Some(Duration::from_secs(2));
    let told = notes(&workload, &segment);
    assert!(
        told.iter()
            .any(|note| note.contains("threads or processes")),
        "{told:?}"
    );

    // Every twentieth request has none, on whichever connection.
    let mut workload = plain(target(Loss::Silence), 4);
    workload.timeout = Duration::from_millis(300);
    let told = notes(&workload, &open(Process::Constant, 200.0, 1.0));
    assert_eq!(told, Vec::<String>::new());
}
