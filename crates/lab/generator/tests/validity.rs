//! Whether a load can be trusted: truths planted through the real engine, each with a
//! twin in which there is nothing to find.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod target;
mod workload;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use lab_generator::Local;
use lab_load::arrivals::Process;
use lab_load::recording::{NONE_FREE, Phase};
use lab_load::request::{Body, Journey, Mix, Step, Take};
use lab_load::validity::{self, Bounds, GENERATOR_LATE};
use lab_load::{Flow, Generate as _, Length, Protocol, Recorded, Segment, Slo, Summary, Workload};
use target::{Behaviour, Target};
use workload::{closed, failures, open, plain, run};

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

/// Where a load in another process goes to, and what kind it is.
const TARGET: &str = "HEADROOM_TEST_LOAD";
/// How many seconds it waits for answers, if not as long as usual.
const TIMEOUT_MS: &str = "HEADROOM_TEST_TIMEOUT_MS";
const CONNECTIONS: &str = "HEADROOM_TEST_CONNECTIONS";

/// Not a test by itself: the load that others start in a process of its own, so that it
/// can be stopped and limited.
#[test]
fn load_in_a_process_of_its_own() {
    let Ok(what) = std::env::var(TARGET) else {
        return;
    };
    let mut words = what.split(' ');
    let address: SocketAddr = words.next().unwrap().parse().unwrap();
    let users: u32 = words.next().unwrap().parse().unwrap();
    let rate: f64 = words.next().unwrap().parse().unwrap();
    let mut workload = plain(address, users);
    workload.connections.most = match std::env::var(CONNECTIONS) {
        Ok(most) => most.parse().unwrap(),
        Err(_) => users.max(200),
    };
    if let Ok(timeout) = std::env::var(TIMEOUT_MS) {
        workload.timeout = Duration::from_millis(timeout.parse().unwrap());
    }
    let segment = match rate {
        0.0 => {
            let mut segment = closed(0);
            segment.length.requests = None;
            segment.length.duration = Some(Duration::from_secs(4));
            segment
        }
        rate => open(Process::Constant, rate, 4.0),
    };
    let local = Local::start(workload);
    println!("\nstarted");
    let recorded = local.and_then(|mut local| local.run(&segment, &mut |_| Flow::Continue));
    match recorded {
        Ok(recorded) => println!("\nrecorded {}", serde_json::to_string(&recorded).unwrap()),
        Err(error) => println!("\nerror {error}"),
    }
}

/// Starts a load of so many users, in a closed loop if there is no rate.
fn start(before: &str, address: SocketAddr, users: u32, rate: f64) -> Child {
    let own = std::env::current_exe().unwrap();
    Command::new("sh")
        .args(["-c", &format!("{before} exec \"$0\" \"$@\"")])
        .arg(own)
        .args(["--exact", "load_in_a_process_of_its_own", "--nocapture"])
        .env(TARGET, format!("{address} {users} {rate}"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn said(mut child: Child) -> String {
    let mut said = String::new();
    let out = child.stdout.as_mut().unwrap();
    out.read_to_string(&mut said).unwrap();
    child.wait().unwrap();
    said
}

/// Waits until a load has begun; what it says after that is left.
fn begun(child: &mut Child) {
    let out = child.stdout.as_mut().unwrap();
    let mut said = Vec::new();
    let mut byte = [0];
    while !said.ends_with(b"started\n") {
        out.read_exact(&mut byte).unwrap();
        said.push(byte[0]);
    }
}

fn recorded(child: Child) -> Recorded {
    let said = said(child);
    let found = said.lines().find_map(|line| line.strip_prefix("recorded "));
    serde_json::from_str(found.unwrap_or_else(|| panic!("{said}"))).unwrap()
}

fn signal(child: &Child, name: &str) {
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args([name, &id])
            .status()
            .unwrap()
            .success()
    );
}

/// Whether every thread of a process is stopped, or has ended.
fn stands_still(child: &Child) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
    threads.flatten().all(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with(['T', 'Z']))
    })
}

/// Stops a load for a while, a second after it began.
fn stop(child: &mut Child, length: Duration) {
    begun(child);
    std::thread::sleep(Duration::from_millis(1_000));
    stop_now(child, length);
}

fn stop_now(child: &Child, length: Duration) {
    signal(child, "-STOP");
    // The signal is taken when one of its threads runs next; on a busy machine, that is later.
    while !stands_still(child) {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(length);
    signal(child, "-CONT");
}

/// What a load comes to that is stopped for a while, if it is.
fn stopped(address: SocketAddr, users: u32, rate: f64, length: Option<Duration>) -> Recorded {
    let mut child = start("", address, users, rate);
    if let Some(length) = length {
        stop(&mut child, length);
    }
    recorded(child)
}

fn slow(delay: Duration) -> Target {
    let behaviour = Behaviour {
        delay,
        ..Behaviour::default()
    };
    Target::start(0, behaviour).unwrap()
}

fn bounds(recorded: &Recorded, quantile: f64) -> Bounds {
    let all = recorded.total.requests();
    let between = validity::Between::intended(&all);
    between
        .bounds(|latencies| latencies.percentile(quantile))
        .unwrap()
}

/// What the target takes, and the least that nobody can have measured below.
const DELAY: Duration = Duration::from_millis(5);

/// The truth is 5 ms for every request, whatever was done to the generator. A machine
/// with other work may make the target slower, so only what is above is left open.
#[test]
fn a_generator_that_is_stopped_withholds_what_the_stop_may_have_made() {
    for (users, rate) in [(50, 250.0), (64, 0.0)] {
        for stop in [60, 1_000] {
            let target = slow(DELAY);
            let stop = Duration::from_millis(stop);
            let recorded = stopped(target.address, users, rate, Some(stop));
            let case = format!("{users} users, {rate}/s, stopped {stop:?}");
            let all = recorded.total.requests();
            // The stop was noticed: answers waited to be read, or sends were late.
            let late = all.lateness.max().unwrap_or_default();
            let noticed = recorded.total.delays.longest.max(late);
            assert!(noticed >= stop.mul_f64(0.8), "{case}: {noticed:?}");
            // A busy machine alone does not stand still for as long as the longer one.
            if stop < Duration::from_secs(1) {
                continue;
            }
            let slowest = bounds(&recorded, 1.0);
            assert!(
                slowest.high >= stop.as_secs_f64() * 0.9,
                "{case}: {slowest:?}"
            );
            assert!(
                slowest.withheld(Duration::from_millis(1)),
                "{case}: {slowest:?}"
            );
            let told = summary(&plain(target.address, users), &recorded)
                .latency
                .intended;
            assert_eq!(told.max, None, "{case}");
            assert!(told.bounds.contains_key("max"), "{case}");
            // Whatever is told as it is, is not the stop.
            let share = stop.as_secs_f64() / 4.0;
            if rate > 0.0 {
                let p = 1.0 - share / 4.0;
                assert!(
                    bounds(&recorded, p).withheld(DELAY),
                    "{case}: {:?}",
                    bounds(&recorded, p)
                );
            }
            // No answer is timed out or lost by it.
            assert_eq!(all.failed(), 0, "{case}: {:?}", all.errors);
        }
    }
}

/// One wait for events tells of some hundred connections at most.
#[test]
fn no_answer_of_many_is_timed_out_by_a_stop() {
    wire::socket::allow_most_descriptors().unwrap();
    let target = slow(Duration::from_millis(300));
    let waits = format!("export {TIMEOUT_MS}=3000;");
    let mut child = start(&waits, target.address, 700, 0.0);
    stop(&mut child, Duration::from_secs(4));
    let all = recorded(child).total.requests();
    assert!(all.answered >= 700);
    assert_eq!(all.failed(), 0, "{:?}", all.errors);
}

/// What fell due while it stood still wants more connections than are open, and is given the time
/// after the end in which they open.
#[test]
fn a_stop_beyond_the_end_blames_no_target_for_what_is_sent_late() {
    let target = slow(DELAY);
    let stop = Duration::from_millis(4_500);
    let recorded = stopped(target.address, 8, 20.0, Some(stop));
    let all = recorded.total.requests();
    assert_eq!((all.answered, all.failed()), (80, 0), "{:?}", all.errors);
}

/// What falls due while it stands still waits for a connection from when it goes on.
#[test]
fn no_request_is_given_up_that_was_not_waited_for() {
    let target = slow(DELAY);
    let waits = format!("export {TIMEOUT_MS}=500;");
    let mut child = start(&waits, target.address, 8, 50.0);
    stop(&mut child, Duration::from_secs(2));
    let all = recorded(child).total.requests();
    assert_eq!((all.answered, all.failed()), (200, 0), "{:?}", all.errors);
}

/// One connection could carry 200 a second, but answers lie unread four fifths of the time.
#[test]
fn requests_that_a_generator_keeps_from_their_connection_are_no_failures_of_the_target() {
    let target = slow(DELAY);
    let one = format!("export {CONNECTIONS}=1;");
    let mut child = start(&one, target.address, 1, 100.0);
    begun(&mut child);
    for _ in 0..9 {
        stop_now(&child, Duration::from_millis(400));
        std::thread::sleep(Duration::from_millis(100));
    }
    let recorded = recorded(child);
    let all = recorded.total.requests();
    assert!(all.failed() > 20, "{:?}", all.errors);
    assert_eq!(all.starved(), all.failed());
    let mut workload = plain(target.address, 1);
    workload.guard.steal_share = 1.0;
    let reasons = validity::check(&workload, &recorded).reasons;
    let names: Vec<&str> = reasons.iter().map(|reason| &*reason.check).collect();
    assert_eq!(names, [GENERATOR_LATE], "{reasons:?}");
    let told = summary(&workload, &recorded);
    let p99 = told.latency.actual.bounds["p99"];
    assert!(p99[0] < 1.0 && p99[1].is_infinite(), "{p99:?}");
    assert_eq!(told.latency.actual.p99, None);
    assert!(!told.latency.actual.lost("p99"));
    let json = serde_json::to_string(&told).unwrap();
    assert_eq!(serde_json::from_str::<Summary>(&json).unwrap(), told);
    for term in ["errors < 1%", "p99 < 1s", "rate > 90/s", "sent > 99%"] {
        let judged = Slo::parse(term).unwrap().judge(&recorded);
        assert_eq!(judged.holds, None, "{term}");
        assert!(!validity::check_for(&workload, &recorded, &judged).valid);
    }
}

/// The twin: one connection can carry 20 a second and not more.
#[test]
fn requests_that_a_target_keeps_from_their_connection_are_failures() {
    let target = slow(Duration::from_millis(50));
    let one = format!("export {CONNECTIONS}=1;");
    let recorded = recorded(start(&one, target.address, 1, 100.0));
    let all = recorded.total.requests();
    assert!(all.failed() > 200, "{:?}", all.errors);
    for term in ["errors < 1%", "p99 < 1s", "rate > 90/s", "sent > 99%"] {
        let judged = Slo::parse(term).unwrap().judge(&recorded);
        assert_eq!(judged.holds, Some(false), "{term}: {}", all.starved());
    }
}

#[test]
fn a_generator_that_is_left_alone_tells_what_the_target_took() {
    for (users, rate) in [(50, 250.0), (8, 0.0)] {
        let target = slow(DELAY);
        let recorded = stopped(target.address, users, rate, None);
        assert_eq!(recorded.total.requests().failed(), 0);
        // Whatever the machine does besides, the truth is within the bounds.
        for quantile in [0.1, 0.5] {
            let bounds = bounds(&recorded, quantile);
            assert!(bounds.high >= DELAY.as_secs_f64(), "{bounds:?}");
        }
    }
}

/// Threads that take every processor until dropped.
struct Spinners(Arc<AtomicBool>);

impl Spinners {
    fn start(threads: usize) -> Self {
        let end = Arc::new(AtomicBool::new(false));
        for _ in 0..threads {
            let end = Arc::clone(&end);
            std::thread::spawn(move || while !end.load(Ordering::Relaxed) {});
        }
        Self(end)
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The target is a sleep of 5 ms in another process than the spinners' victims: what a
/// starved generator adds is never told as the target's.
#[test]
fn a_starved_closed_loop_does_not_blame_the_target() {
    let target = slow(DELAY);
    let _spinners = Spinners::start(4);
    // Of the lowest priority, so that it starves whatever the scheduler makes of it.
    let child = start("renice -n 19 $$ > /dev/null;", target.address, 256, 0.0);
    let recorded = recorded(child);
    let all = recorded.total.requests();
    assert!(all.answered > 256);
    assert!(recorded.total.delays.waited > Duration::ZERO);
    let median = bounds(&recorded, 0.5);
    // Told as it is only if it is near the truth; the target has other work to suffer
    // from too, but not for a time as long as this.
    let late = recorded.total.delays.waited.as_secs_f64() > 1.0;
    assert!(
        !late || median.high < 0.008 || !median.exact(),
        "{median:?} {:?}",
        recorded.total.delays
    );
}

#[test]
fn the_limit_of_descriptors_is_named_with_what_is_needed() {
    let target = slow(DELAY);
    let said = said(start("ulimit -n 200;", target.address, 300, 100.0));
    let error = said
        .lines()
        .find_map(|line| line.strip_prefix("error "))
        .unwrap();
    assert!(
        error.starts_with(
            "hold 300 connections: that needs 364 descriptors, and this process may open 200; \
             hold fewer connections, or raise the limit: `ulimit -Hn 364` as root"
        ),
        "{error}"
    );
    // A soft limit is raised by the generator itself.
    let child = start("ulimit -Sn 200;", target.address, 300, 100.0);
    assert_eq!(recorded(child).total.requests().failed(), 0);
}
