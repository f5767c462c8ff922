//! What a laboratory measures that is stopped while it does, and goes on.
// Helpers outside of test functions panic like tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::thread::sleep;
use std::time::Duration;

use crate::support::{Lab, STOOD_STILL, run, server};
use lab_store::Outcome;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// What a laboratory came to that something was done to while it loaded a target which answers after
/// `delay`: its outcome, and the numbers that other runs can be compared by.
fn told(delay: &str, load: &str, expected: &str, done: impl Fn(&Lab)) -> (Outcome, Vec<String>) {
    let step = format!("hold = \"4s\"\n[[expect]]\nthat = \"'on': traffic {expected}\"");
    loaded(delay, load, &step, done)
}

/// The same with any keys of the step.
fn loaded(delay: &str, load: &str, step: &str, done: impl Fn(&Lab)) -> (Outcome, Vec<String>) {
    let scripts = tempfile::tempdir().unwrap();
    let server = server(scripts.path());
    let text = format!(
        r#"
[[system]]
name = "slow"
run = "python3 {} {{port}} {delay}"
ready = "tcp"
[[load]]
name = "traffic"
http = "GET http://{{slow.addr}}/"
{load}
guard = {{ late_after = "1s", steal_share = "100%" }}
[[step]]
name = "on"
load = {{ traffic = "on" }}
{step}
"#,
        server.display()
    );
    of_run(&text, done)
}

/// The same of any run, once its first step has begun.
fn of_run(text: &str, done: impl Fn(&Lab)) -> (Outcome, Vec<String>) {
    let mut lab = Lab::start(text);
    lab.until("the step begins", |lab| says(lab, "step-started"));
    done(&lab);
    let code = lab.process.wait().unwrap().code();
    let outcomes = [
        Outcome::Pass,
        Outcome::Fail,
        Outcome::Inconclusive,
        Outcome::Invalid,
        Outcome::Error,
    ];
    let told = outcomes.into_iter().find(|one| Some(*one as i32) == code);
    let runs = std::fs::read_dir(lab.folder.path().join("runs")).unwrap();
    let metrics = runs
        .filter_map(|run| std::fs::read_to_string(run.unwrap().path().join("metrics.json")).ok());
    let names = metrics.flat_map(|text| {
        let record: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
        record
            .into_iter()
            .map(|one| one["name"].as_str().unwrap().to_owned())
    });
    let told = told.unwrap_or_else(|| panic!("{code:?}"));
    (told, names.collect())
}

fn says(lab: &Lab, event: &str) -> bool {
    lab.events().contains(&format!(r#""kind":"{event}""#))
}

/// Stops a laboratory, and lets it go on.
fn stop(lab: &Lab, stands: Duration) {
    let process = Pid::from_raw(i32::try_from(lab.process.id()).unwrap());
    kill(process, Signal::SIGSTOP).unwrap();
    sleep(stands);
    kill(process, Signal::SIGCONT).unwrap();
}

const MS: fn(u64) -> Duration = Duration::from_millis;

/// Whether one user had more than 40 answers a second from a target, where the laboratory runs and
/// stands still in turns.
fn users_told(delay: &str, runs: Duration, stands: Duration) -> Outcome {
    let load = "model = \"closed\"\nusers = 1";
    let (told, _) = told(delay, load, "rate > 40/s", |lab| {
        lab.until("the step ends", |lab| {
            sleep(runs);
            stop(lab, stands);
            says(lab, "step-ended")
        });
    });
    told
}

/// It can answer several hundred, and was hardly asked.
#[test]
fn a_rate_that_users_of_a_stopped_laboratory_did_not_ask_for_is_not_the_targets_fault() {
    assert_eq!(users_told("0.002", MS(50), MS(950)), Outcome::Invalid);
}

/// It answers ten, and would have answered not many more.
#[test]
fn a_target_that_is_too_slow_fails_however_a_laboratory_is_stopped() {
    assert_eq!(users_told("0.1", MS(400), MS(100)), Outcome::Fail);
}

/// Over the end of the step nobody asks. What was due then is answered after the end, and no other run
/// is compared with the rate.
#[test]
fn a_rate_that_a_stopped_laboratory_did_not_ask_for_is_neither_judged_nor_compared() {
    let load = "rate = \"constant 100/s\"";
    let (outcome, metrics) = told("0.002", load, "rate > 95/s", |lab| {
        sleep(MS(2_500));
        stop(lab, MS(2_500));
    });
    assert_eq!((outcome, metrics), (Outcome::Invalid, Vec::new()));
    let (outcome, metrics) = told("0.002", load, "rate > 80/s", |_| ());
    assert_eq!((outcome, metrics.len()), (Outcome::Pass, 1), "{metrics:?}");
}

/// For most of a second nobody asks a target that answers in two milliseconds, or in half a second.
#[test]
fn what_must_hold_all_the_time_is_not_broken_by_a_stop_of_the_laboratory() {
    let always = "hold = \"4s\"\nwhile = { always = \"traffic p99 < 300ms\" }";
    let wait = "wait = { until = \"traffic p99 < 300ms\", steady = \"1500ms\", at_most = \"4s\" }";
    for step in [always, wait] {
        let told = |delay, stands| {
            let (told, _) = loaded(delay, "rate = \"constant 100/s\"", step, |lab| {
                sleep(MS(1_200));
                stop(lab, stands);
            });
            told
        };
        assert_eq!(told("0.002", MS(700)), Outcome::Invalid, "{step}");
        assert_eq!(told("0.5", MS(700)), Outcome::Fail, "{step}");
        // Where others leave it no processor it is asked again.
        let is_kept = (0..3).any(|_| told("0.002", MS(0)) == Outcome::Pass);
        assert!(is_kept, "{step}");
    }
}

/// A system that listens a while after its start.
fn late_listener(after_s: f64, steps: &str) -> String {
    format!(
        r#"
[[system]]
name = "late"
run = """python3 -c 'import socket, time; time.sleep({after_s}); s = socket.create_server(("127.0.0.1", {{port}})); time.sleep(600)'"""
[[probe]]
name = "up"
tcp = "tcp://{{late.addr}}"
every = "50ms"
{steps}"#
    )
}

/// It listens after a second. Nobody looked for three, in which no time was waited.
#[test]
fn a_wait_does_not_run_out_while_nobody_looks_and_its_length_is_not_judged() {
    let wait = r#"
[[step]]
name = "wait"
wait = { until = "up.ok == 100%", at_most = "2s" }
[[expect]]
that = "duration('wait') < 2500ms"
"#;
    let stopped = |after_s| of_run(&late_listener(after_s, wait), |lab| stop(lab, MS(3_000)));
    assert_eq!(stopped(1.0), (Outcome::Invalid, Vec::new()));
    // The twin does not listen at all while it is waited for.
    assert_eq!(stopped(60.0).0, Outcome::Fail);
}

/// It has two seconds, of which the laboratory stands still for three.
#[test]
fn a_command_does_not_run_out_of_time_while_the_laboratory_stands_still() {
    let ran = |takes: &str| {
        let text = format!(
            r#"
[[step]]
name = "run"
run = "sleep {takes}"
run_within = "2s"
"#
        );
        of_run(&text, |lab| {
            let command = format!(" sleep {takes}");
            lab.until("the command runs", |lab| {
                let processes = lab.processes();
                processes.iter().any(|one| one.contains(&command))
            });
            stop(lab, MS(3_000));
        })
        .0
    };
    assert_eq!(ran("3.5"), Outcome::Pass);
    assert_eq!(ran("60"), Outcome::Error);
}

/// Its answers take a tenth of a second, or one and a half.
#[test]
fn a_try_that_was_under_way_while_the_laboratory_stood_still_is_not_judged() {
    let slowest = |delay: &str| {
        let scripts = tempfile::tempdir().unwrap();
        let server = server(scripts.path());
        let text = format!(
            r#"
[[system]]
name = "slow"
run = "python3 {} {{port}} {delay}"
ready = "tcp"
[[probe]]
name = "asked"
http = "GET http://{{slow.addr}}/"
every = "10ms"
within = "10s"
[[step]]
name = "ask"
hold = "5s"
[[expect]]
that = "asked.latency max < 1s"
"#,
            server.display()
        );
        of_run(&text, |lab| {
            sleep(MS(1_000));
            stop(lab, MS(2_000));
        })
    };
    assert_eq!(slowest("0.1"), (Outcome::Invalid, Vec::new()));
    assert_eq!(slowest("1.5").0, Outcome::Fail);
}

/// What is said of the time to recover of a target that is stopped for so long.
fn recovered(stops: &str, done: impl Fn(&Lab)) -> Outcome {
    let scripts = tempfile::tempdir().unwrap();
    let text = format!(
        r#"
[[system]]
name = "slow"
run = "python3 {} {{port}} 0.002"
ready = "tcp"
[[probe]]
name = "alive"
http = "GET http://{{slow.addr}}/"
every = "20ms"
within = "10s"
[[step]]
name = "stop"
hold = "7s"
fault = {{ pause = "slow", at = "1s", for = "{stops}" }}
[[expect]]
that = "recovery(alive.ok) < 1500ms"
"#,
        server(scripts.path()).display()
    );
    of_run(&text, done).0
}

/// A target stops for a tenth of a second, or for three. The laboratory stands still after the short one, and
/// that may have been longer.
#[test]
fn what_was_not_asked_while_the_laboratory_stood_still_is_no_outage() {
    let after = |lab: &Lab| {
        lab.until("the fault ends", |lab| says(lab, "fault-ended"));
        sleep(MS(400));
        stop(lab, MS(2_000));
    };
    assert_eq!(recovered("100ms", after), Outcome::Inconclusive);
    assert_eq!(recovered("3s", |_| ()), Outcome::Fail);
}

/// It is to go on after a second, when nobody lets it.
#[test]
fn a_fault_that_a_laboratory_did_not_end_in_time_says_nothing_of_the_target() {
    let meanwhile = |lab: &Lab| {
        lab.until("the fault begins", |lab| says(lab, "fault-began"));
        sleep(MS(400));
        stop(lab, MS(2_000));
    };
    // What was asked last shows as little.
    let told = recovered("1s", meanwhile);
    let is_open = matches!(told, Outcome::Invalid | Outcome::Inconclusive);
    assert!(is_open, "{told:?}");
}

/// After the last step it waits for answers, and that is no standstill. Where others leave it no
/// processor it is planted again.
#[test]
fn a_laboratory_that_ran_all_the_time_says_nothing_of_itself() {
    let scripts = tempfile::tempdir().unwrap();
    let text = format!(
        r#"
[[system]]
name = "slow"
run = "python3 {} {{port}} 1.2"
ready = "tcp"
[[load]]
name = "traffic"
http = "GET http://{{slow.addr}}/"
rate = "constant 20/s"
[[step]]
name = "on"
load = {{ traffic = "on" }}
hold = "500ms"
"#,
        server(scripts.path()).display()
    );
    let is_silent = (0..3).any(|_| {
        let (_folder, finished) = run(&text);
        let mut notes = finished.verdict.notes.iter();
        !notes.any(|note| note.contains(STOOD_STILL))
    });
    assert!(is_silent);
}
