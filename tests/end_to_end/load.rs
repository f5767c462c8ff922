//! Load on a small server, as a user puts it there.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::free_port::free_port;
use crate::lab::{Finished, Lab, wait_until};

/// A busy machine must not decide a test of what is printed.
const ANYTHING_GOES: [&str; 6] = [
    "--late-after",
    "60s",
    "--allow-unsent",
    "100%",
    "--allow-steal",
    "100%",
];

/// Answers every request on every connection, until the test ends.
fn server(answer: &'static str) -> SocketAddr {
    planted(move |_| Some((Duration::ZERO, answer)))
}

/// Answers each request as it is told for the time since the first one: after how long, and
/// what; nothing: the connection is closed.
fn planted<A>(answer: A) -> SocketAddr
where
    A: Fn(Duration) -> Option<(Duration, &'static str)> + Send + Sync + 'static,
{
    let answer = Arc::new(answer);
    let began = Arc::new(OnceLock::new());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (answer, began) = (Arc::clone(&answer), Arc::clone(&began));
            std::thread::spawn(move || {
                let Ok(mut out) = stream.try_clone() else {
                    return;
                };
                let _ = out.set_nodelay(true);
                let lines = BufReader::new(stream).lines().map_while(Result::ok);
                for _ in lines.filter(String::is_empty) {
                    let since = began.get_or_init(Instant::now).elapsed();
                    let Some((delay, text)) = answer(since) else {
                        return;
                    };
                    std::thread::sleep(delay);
                    if out.write_all(text.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const MOVED: &str = "HTTP/1.1 302 Found\r\nLocation: /login?next=%2F\r\nContent-Length: 0\r\n\r\n";
const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";

fn load(lab: &Lab, address: SocketAddr, more: &[&str]) -> Command {
    let mut command = lab.command();
    command.arg("load").arg(format!("http://{address}/"));
    command.args(ANYTHING_GOES).args(more);
    command
}

fn finished(lab: &Lab, address: SocketAddr, more: &[&str]) -> Finished {
    Finished::of(load(lab, address, more).output().expect("headroom starts"))
}

#[test]
fn a_load_is_counted_written_and_judged() {
    let lab = Lab::new();
    let [csv, hdr, report] = ["load.csv", "load.hdr", "load.html"].map(|name| lab.path(name));
    let address = server(OK);
    let done = finished(
        &lab,
        address,
        &[
            "--rate",
            "300/s",
            "-z",
            "2s",
            "--json",
            "--expect",
            "p50 < 10s, errors < 50%",
            "--csv",
            &csv.display().to_string(),
            "--hdr",
            &hdr.display().to_string(),
            "--report",
            &report.display().to_string(),
        ],
    )
    .expect_code(0)
    .expect_stderr("✓ p50 < 10s");
    let json = done.json();
    assert_eq!(json["schema"], 3);
    assert_eq!(json["requests"]["planned"], 600);
    assert_eq!(json["requests"]["answered"], 600);
    assert_eq!(json["statuses"]["200"], 600);
    assert_eq!(json["model"], "open");
    let read = |path| std::fs::read_to_string(path).expect("a file");
    assert!(read(csv).lines().count() >= 2);
    assert!(read(hdr).contains("\nTag=intended,0.000,"));
    assert!(read(report).starts_with("<!"));
}

#[test]
fn a_closed_loop_is_labelled() {
    let lab = Lab::new();
    let done = finished(&lab, server(OK), &["--closed", "-c", "4", "-n", "400"]).expect_code(0);
    assert!(
        done.stdout.contains("closed loop: 4 users"),
        "{}",
        done.stdout
    );
    assert!(
        done.stdout.contains("cannot see the queueing"),
        "{}",
        done.stdout
    );
    assert!(done.stdout.contains("200: 400"), "{}", done.stdout);
}

#[test]
fn an_expectation_that_does_not_hold_fails() {
    let lab = Lab::new();
    let more = ["--rate", "300/s", "-z", "1s", "--expect", "rate > 9000/s"];
    let done = finished(&lab, server(OK), &more).expect_code(1);
    assert!(done.stdout.contains("✗ rate > 9000/s"), "{}", done.stdout);
}

#[test]
fn a_load_of_failures_only_fails() {
    let lab = Lab::new();
    let done = finished(&lab, server(BUSY), &["-n", "20", "--rate", "100"]).expect_code(1);
    assert!(done.stdout.contains("503: 20"), "{}", done.stdout);
}

#[test]
fn what_is_wrong_is_said_before_there_is_load() {
    let lab = Lab::new();
    let address = ([127, 0, 0, 1], free_port()).into();
    finished(&lab, address, &[])
        .expect_code(4)
        .expect_stderr("refused");
    let csv = lab.path("no/such/folder.csv");
    finished(&lab, server(OK), &["--csv", &csv.display().to_string()])
        .expect_code(4)
        .expect_stderr("folder.csv");
}

#[test]
fn ctrl_c_keeps_what_was_seen() {
    let lab = Lab::new();
    let mut child = load(
        &lab,
        server(OK),
        &["--rate", "200/s", "-z", "10m", "--json"],
    )
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .expect("headroom starts");
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    stderr.read_line(&mut line).expect("the first second");
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("a running process");
    wait_until("the load to end", || {
        child.try_wait().is_ok_and(|status| status.is_some())
    });
    let mut stdout = String::new();
    let mut pipe = child.stdout.take().expect("piped");
    pipe.read_to_string(&mut stdout).expect("text");
    let json: serde_json::Value = serde_json::from_str(&stdout).expect("the result so far");
    assert_eq!(json["partial"], "interrupted");
    assert!(json["requests"]["answered"].as_u64() > Some(0), "{json}");
    assert_eq!(child.wait().expect("a child").code(), Some(2));
}

/// The server is dead for three seconds out of twelve, which looks like a warm-up to a test
/// that looks at latencies only.
#[test]
fn an_outage_is_never_cut_from_what_is_judged() {
    let lab = Lab::new();
    let outage = Duration::from_secs(2)..Duration::from_secs(5);
    let address = planted(move |since| (!outage.contains(&since)).then_some((Duration::ZERO, OK)));
    let more = [
        "--rate",
        "50/s",
        "-z",
        "12s",
        "--json",
        "--expect",
        "errors < 5%",
    ];
    for warm_up in ["auto", "6s"] {
        let more = [&more[..], &["--warm-up", warm_up]].concat();
        let done = finished(&lab, address, &more).expect_code(match warm_up {
            "auto" => 1,
            // The server has been up since; nothing is to be found.
            _ => 0,
        });
        let json = done.json();
        let count = |name: &str| json["requests"][name].as_u64().unwrap_or_default();
        assert_eq!(count("tried"), 600);
        let share = json["requests"]["failed_share"].as_f64().expect("a share");
        assert_eq!(share, count("failed") as f64 / 600.0);
        match warm_up {
            "auto" => {
                assert!(
                    (100..=200).contains(&count("failed")),
                    "{}",
                    count("failed")
                );
                // A slow first second may be left out of the steady part; the outage is not.
                let steady = &json["steady"];
                assert!(steady["from_s"].as_f64() <= Some(2.0), "{steady}");
                // Numbers of its own are there where something is left out.
                if !steady["numbers"].is_null() {
                    let failed = &steady["numbers"]["requests"]["failed"];
                    assert_eq!(*failed, count("failed"), "{steady}");
                }
                let told = format!("errors < 5%   {}", units::show_share(share));
                assert!(done.stderr.contains(&told), "{told}: {}", done.stderr);
            }
            _ => {
                assert_eq!(count("failed"), 0);
                // Until nobody who was sent in it is answered any more, on a starved machine a second later.
                let warm_up_s = json["warm_up_s"].as_f64();
                assert!(
                    warm_up_s.is_some_and(|it| (6.0..=8.0).contains(&it)),
                    "{json}"
                );
            }
        }
    }
}

/// Each answer takes 700 ms: those of the last 700 ms come after the end.
#[test]
fn answers_after_the_end_are_in_no_rate() {
    let lab = Lab::new();
    let late = Duration::from_millis(700);
    for (delay, least) in [(late, 25), (Duration::ZERO, 0)] {
        let address = planted(move |_| Some((delay, OK)));
        let more = ["--rate", "50/s", "-z", "2s", "--json"];
        let json = finished(&lab, address, &more).expect_code(0).json();
        assert_eq!(json["requests"]["answered"], 100);
        assert_eq!(json["sending_s"], 2.0);
        let after = json["after_end"]["good"].as_u64().expect("a count");
        assert!(after >= least, "{after}");
        assert_eq!(json["rate"]["good"], (100 - after) as f64 / 2.0);
        let slots = json["timeline"].as_array().expect("a list").iter();
        let late = slots.filter(|slot| slot["after_end"] == true);
        let late: u64 = late.filter_map(|slot| slot["good"].as_u64()).sum();
        assert_eq!(late, after);
    }
}

#[test]
fn a_latency_that_grows_is_said_to_and_one_that_does_not_is_not() {
    // Whoever begins meanwhile makes a latency grow.
    let lab = Lab::alone();
    let grows = |since: Duration| Some((since / 50, OK));
    let frozen = Duration::from_millis(1500);
    let thaws = move |since: Duration| Some((frozen.saturating_sub(since) + since / 50, OK));
    let flat = |_| Some((Duration::from_millis(40), OK));
    let more = ["--rate", "40/s", "-z", "12s", "--json"];
    let [growing, thawed, flat] = std::thread::scope(|scope| {
        [planted(grows), planted(thaws), planted(flat)]
            .map(|address| {
                let (lab, more) = (&lab, &more);
                scope.spawn(move || finished(lab, address, more).expect_code(0).json())
            })
            .map(|run| run.join().expect("a load"))
    });
    for growing in [&growing, &thawed] {
        let steady = &growing["steady"];
        assert_eq!(steady["state"], "growing", "{steady}");
    }
    let growth = &growing["steady"]["growth"];
    let number = |name: &str| growth[name].as_f64().expect("a number");
    assert!(
        number("low") <= 0.02 && 0.02 <= number("high") + 0.004,
        "{growth}"
    );
    assert_ne!(flat["steady"]["state"], "growing", "{}", flat["steady"]);
}

#[test]
fn a_target_that_only_redirects_is_told() {
    let lab = Lab::new();
    let more = ["--rate", "100/s", "-n", "30"];
    let told = "all answers were redirects (302 to /login?next=%2F)";
    let done = finished(&lab, server(MOVED), &more).expect_code(0);
    assert!(done.stdout.contains(told), "{}", done.stdout);
    let done = finished(&lab, server(OK), &more).expect_code(0);
    assert!(!done.stdout.contains("redirect"), "{}", done.stdout);
}
