//! Truths about a target while something happens to the generator: what is told must be true of the
//! target, and what the generator may have moved is withheld.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Case, Found, Needs, SLACK_S, latency};
use crate::claims::Claim;
use crate::measured::{self, Measured};
use crate::server::{Plant, Server};

/// What happens to a generator that runs.
type Disturb = fn(&Child);

pub(crate) fn cases() -> Vec<Case> {
    const OPEN: &[&str] = &["--rate", "1000/s", "--duration", "6s"];
    const CLOSED: &[&str] = &["--closed", "-c", "4", "--duration", "6s"];
    const ONE_CONNECTION: &[&str] = &[
        "--rate",
        "100/s",
        "--duration",
        "6s",
        "--max-connections",
        "1",
        "--timeout",
        "1s",
    ];
    let plantings: [(&str, &[&str], Disturb); 6] = [
        ("load: the generator stops for 60 ms", OPEN, |child| {
            stop(child, 60);
        }),
        ("load: the generator stops over the end", OPEN, |child| {
            std::thread::sleep(Duration::from_millis(3200));
            stop(child, 2000);
        }),
        (
            "load: a closed loop's generator stops for 1 s",
            CLOSED,
            |child| {
                stop(child, 1000);
            },
        ),
        (
            "load: one of two processors is taken away",
            OPEN,
            take_a_processor,
        ),
        (
            "load: the generator of one connection stands still for most of the time",
            ONE_CONNECTION,
            stop_again_and_again,
        ),
        (
            "load: a closed loop loses its processor",
            CLOSED,
            take_a_processor,
        ),
    ];
    plantings
        .into_iter()
        .map(|(name, arguments, disturb)| Case {
            needs: Needs::Nothing,
            name: name.to_owned(),
            plant: Box::new(move |folder| planted(folder, arguments, disturb)),
        })
        .collect()
}

fn planted(folder: &Path, arguments: &[&str], disturb: Disturb) -> Found {
    let plant = Plant {
        latency_ms: 5,
        ..Plant::default()
    };
    let server = Server::start(&plant, folder);
    let child = measured::headroom(folder)
        .args(["load", &format!("http://{}/", server.address), "--json"])
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("headroom starts");
    while server.diary().first("first request").is_none() {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_secs(2));
    disturb(&child);
    let told = Measured::of(&child.wait_with_output().expect("its end"));
    let late = server.diary().lateness();
    let failed = told.valid().then(|| told.failed_share()).flatten();
    // The server could answer all of them in time.
    let at_best = told
        .number("/rate/good_at_best")
        .or(told.number("/rate/good"));
    let asked = told.number("/rate/asked").filter(|_| told.valid());
    let rate = asked.map(|asked| {
        let all = Claim::number(
            "good answers a second, at best",
            at_best,
            0.95 * asked,
            f64::MAX,
        );
        [
            all,
            Claim::number(
                "good answers a second",
                told.number("/rate/good"),
                0.0,
                1.01 * asked,
            ),
        ]
    });
    let percentile = |name: &str, late: f64| latency(&told, name, 0.0049, 0.005 + late + SLACK_S);
    Found {
        // It was disturbed: to say nothing is right as well.
        valid: true,
        claims: [
            percentile("p50", late.p50_s),
            percentile("p99", late.p99_s),
            percentile("p999", late.max_s),
            Claim::number("failures", failed, 0.0, 0.0),
        ]
        .into_iter()
        .chain(rate.into_iter().flatten())
        .collect(),
        verdict_is_right: told.code == if told.valid() { 0 } else { 3 },
        words: format!(
            "exit code {}\n{}{:#}",
            told.code, told.text, told.load["validity"]
        ),
    }
}

fn process(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed())
}

fn stop(child: &Child, for_ms: u64) {
    kill(process(child), Signal::SIGSTOP).expect("a process to stop");
    std::thread::sleep(Duration::from_millis(for_ms));
    kill(process(child), Signal::SIGCONT).expect("a process to go on");
}

/// Answers lie unread meanwhile, and hold the connection that others wait for.
fn stop_again_and_again(child: &Child) {
    for _ in 0..8 {
        stop(child, 400);
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Every thread of the generator has to share one processor with two that spin.
fn take_a_processor(child: &Child) {
    let mut one = CpuSet::new();
    one.set(0).expect("a first processor");
    let threads = std::fs::read_dir(format!("/proc/{}/task", child.id())).expect("threads");
    for thread in threads.flatten() {
        if let Some(id) = thread.file_name().to_str().and_then(|id| id.parse().ok()) {
            let _ = sched_setaffinity(Pid::from_raw(id), &one);
        }
    }
    let until = std::time::Instant::now() + Duration::from_secs(3);
    let spin = move || {
        let _ = sched_setaffinity(Pid::from_raw(0), &one);
        while std::time::Instant::now() < until {
            std::hint::spin_loop();
        }
    };
    std::thread::spawn(spin);
    std::thread::spawn(spin);
}
