//! Loads in processes of their own, which are stopped, starved and limited while they run.

use std::io::Read as _;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lab_generator::Local;
use lab_load::arrivals::Process;
use lab_load::validity::{self, Bounds, GENERATOR_LATE};
use lab_load::{Flow, Generate as _, Recorded, Slo, Summary};

use super::summary;
use crate::target::{Behaviour, Target};
use crate::workload::{closed, open, plain};

/// Where a load in another process goes to, and what kind it is.
const TARGET: &str = "HEADROOM_TEST_LOAD";
/// How many milliseconds it waits for answers, and how many connections it may have, if not as many
/// as usual.
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
        .args([
            "--exact",
            "processes::load_in_a_process_of_its_own",
            "--nocapture",
        ])
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
            // Users who stood still asked nothing, and that is said.
            let notes = summary(&plain(target.address, users), &recorded).notes;
            let said = notes.iter().any(|note| note.contains("was stopped for"));
            assert_eq!(said, rate == 0.0, "{case}: {notes:?}");
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

/// The target answers all of a hundred a second in time, but in the last second and a half nobody asks.
/// What was due then waits for new connections, or for the only one.
#[test]
fn answers_that_a_generator_makes_too_late_are_no_low_rate_of_the_target() {
    for connections in ["", "1"] {
        let target = slow(Duration::from_millis(1));
        let before = match connections {
            "" => String::new(),
            most => format!("export {CONNECTIONS}={most};"),
        };
        let mut child = start(&before, target.address, 1, 100.0);
        begun(&mut child);
        std::thread::sleep(Duration::from_millis(2_500));
        stop_now(&child, Duration::from_millis(2_500));
        let recorded = recorded(child);
        let mut workload = plain(target.address, 1);
        workload.guard.steal_share = 1.0;
        let rate = summary(&workload, &recorded).rate;
        let case = format!("{connections} connections: {rate:?}");
        assert!(rate.good < 80.0, "{case}");
        assert!(rate.good_at_best.unwrap() > 95.0, "{case}");
        let slow = bounds(&recorded, 0.9);
        assert!(slow.low < 0.5 && slow.high > 1.0, "{case} {slow:?}");
        let judged = Slo::parse("rate > 95/s").unwrap().judge(&recorded);
        assert_eq!(judged.holds, None, "{case}");
        assert!(!validity::check_for(&workload, &recorded, &judged).valid);
        let judged = Slo::parse("rate > 101/s").unwrap().judge(&recorded);
        assert_eq!(judged.holds, Some(false), "{case}");
        let reasons = validity::check(&workload, &recorded).reasons;
        let names: Vec<&str> = reasons.iter().map(|reason| &*reason.check).collect();
        assert_eq!(names, [GENERATOR_LATE], "{case} {reasons:?}");
    }
}

/// The twin: it answers after a second, so that those of the last second come too late.
#[test]
fn answers_that_a_target_makes_too_late_lower_its_rate() {
    let target = slow(Duration::from_secs(1));
    let recorded = recorded(start("", target.address, 8, 100.0));
    let rate = summary(&plain(target.address, 8), &recorded).rate;
    assert!(rate.good < 80.0, "{rate:?}");
    let judged = Slo::parse("rate > 95/s").unwrap().judge(&recorded);
    assert_eq!(judged.holds, Some(false), "{rate:?}");
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
