//! Loads that go on from one step to the next, with real generators and a real target.

use crate::support::{log, run, server};
use lab_runner::Finished;
use lab_store::{Outcome, StoredLoad};

fn made(slow: &str, steps: &str) -> (tempfile::TempDir, Finished, Vec<StoredLoad>) {
    let scripts = tempfile::tempdir().unwrap();
    let server = server(scripts.path());
    let (folder, finished) = run(&format!(
        r#"
[[system]]
name = "slow"
run = "python3 {} {{port}} {slow}"
ready = "tcp"
[[load]]
name = "traffic"
http = "GET http://{{slow.addr}}/{{seq}}"
rate = "constant 200/s"
guard = {{ late_after = "1s", steal_share = "100%" }}
{steps}"#,
        server.display()
    ));
    let names = finished.folder.load_names().unwrap();
    let loads = names.iter().map(|name| finished.folder.load(name).unwrap());
    let mut loads: Vec<StoredLoad> = loads.collect();
    loads.sort_by_key(|load| load.summary.began_unix_ns);
    (folder, finished, loads)
}

/// What the target saw, which is the truth: each request once.
fn came(finished: &Finished) -> u64 {
    let log = log(finished, "slow");
    let mut paths: Vec<&str> = log.lines().collect();
    let all = paths.len();
    paths.sort_unstable();
    paths.dedup();
    assert_eq!(paths.len(), all, "numbers of requests repeat");
    all as u64
}

#[test]
fn five_steps_are_windows_over_one_load() {
    let step = |number: u32, rate: &str, hold: &str| {
        format!("[[step]]\nname = \"{number}\"\nload = {{ traffic = \"{rate}\" }}\n{hold}\n")
    };
    let steps = [
        step(1, "on", "hold = \"1s\""),
        step(2, "on", "hold = \"500ms\""),
        // Its length is not known before.
        step(3, "constant 100/s", "run = \"sleep 0.7\""),
        step(4, "on", "hold = \"1s\""),
        step(5, "on", "hold = \"1s\""),
    ];
    let (_folder, finished, loads) = made("1 0 0", &steps.concat());
    // A machine that lacks processors may leave rates unknown; counts are known on any.
    let outcome = finished.verdict.outcome;
    assert!(
        matches!(outcome, Outcome::Pass | Outcome::Invalid),
        "{:?}",
        finished.verdict
    );
    assert_eq!(loads.len(), 5);
    for (number, load) in (1..).zip(&loads) {
        assert_eq!(load.step, Some(number.to_string()));
        let counts = &load.summary.requests;
        assert_eq!(counts.sent, counts.planned, "step {number}");
        assert_eq!(
            (counts.answered, counts.errors),
            (counts.sent, 0),
            "step {number}"
        );
    }
    let sent: u64 = loads.iter().map(|load| load.summary.requests.sent).sum();
    assert_eq!(
        sent,
        came(&finished),
        "nothing is lost, and nothing counts twice"
    );
    // Rate times length, to the request. A busy machine may notice late that a step is
    // over, which then is so much longer; the last one ends by itself.
    for (number, expected) in [(0, 200), (1, 100), (3, 200), (4, 200)] {
        let planned = loads[number].summary.requests.planned;
        assert!(planned + 1 >= expected, "{} {planned}", number + 1);
    }
    assert_eq!(loads[4].summary.requests.planned, 200);
    // The next schedule begins where the one before ended: what one planned takes as long
    // as the distance between their beginnings.
    for (pair, rate) in loads.windows(2).zip([200.0, 200.0, 100.0, 200.0]) {
        let [one, next] = pair else { unreachable!() };
        let apart = (next.summary.began_unix_ns - one.summary.began_unix_ns) as f64 * 1e-9;
        let planned = one.summary.requests.planned as f64;
        assert!(
            (apart * rate - planned).abs() < 5.0,
            "{apart} s, {planned} at {rate}/s"
        );
    }
}

#[test]
fn a_load_that_pauses_by_plan_does_not_go_on() {
    let (_folder, finished, loads) = made(
        "0.3 0 0",
        r#"
[[step]]
name = "one"
load = { traffic = "on" }
hold = "500ms"
[[step]]
name = "nothing"
hold = "50ms"
[[step]]
name = "two"
load = { traffic = "on" }
hold = "500ms"
"#,
    );
    assert_eq!(
        finished.verdict.outcome,
        Outcome::Pass,
        "{:?}",
        finished.verdict
    );
    let sent: Vec<u64> = loads
        .iter()
        .map(|load| load.summary.requests.sent)
        .collect();
    assert_eq!(sent, [100, 100]);
    assert_eq!(came(&finished), 200);
    // The answers were awaited before the next step began.
    let apart = loads[1].summary.began_unix_ns - loads[0].summary.began_unix_ns;
    assert!(apart > 800_000_000, "{apart}");
}

#[test]
fn a_closed_loop_waits_for_its_answers_between_steps() {
    let closed = r#"
[[load]]
name = "users"
http = "GET http://{slow.addr}/users/{seq}"
model = "closed"
users = 5
guard = { steal_share = "100%" }
[[step]]
name = "one"
load = { users = "on" }
hold = "300ms"
[[step]]
name = "two"
load = { users = "on" }
hold = "300ms"
"#;
    let (_folder, finished, loads) = made("0.05 0 0", closed);
    assert_eq!(
        finished.verdict.outcome,
        Outcome::Pass,
        "{:?}",
        finished.verdict
    );
    let sent: u64 = loads
        .iter()
        .map(|load| load.summary.requests.answered)
        .sum();
    assert_eq!(sent, came(&finished));
}

/// How long an outage was follows from the numbers of the requests that failed in it:
/// they were due every 5 ms.
#[test]
fn an_outage_is_told_as_finely_as_requests_are_due() {
    let steps = r#"
[[step]]
name = "through it"
load = { traffic = "on" }
hold = "2500ms"
[[expect]]
that = "traffic outage > 1094ms and traffic outage < 1106ms"
"#;
    let (_folder, finished, loads) = made("0.01 200 420", steps);
    assert_eq!(
        finished.verdict.outcome,
        Outcome::Pass,
        "{:?}",
        finished.verdict
    );
    let notes = loads[0].summary.notes.join("\n");
    assert!(
        notes.contains("longest outage 1.1 s ± 5 ms, from 1 s on"),
        "{notes}"
    );

    let without = steps.replace(
        "traffic outage > 1094ms and traffic outage < 1106ms",
        "traffic outage == 0s",
    );
    let (_folder, finished, loads) = made("0.01 0 0", &without);
    assert_eq!(
        finished.verdict.outcome,
        Outcome::Pass,
        "{:?}",
        finished.verdict
    );
    assert_eq!(loads[0].summary.notes, Vec::<String>::new());
}

#[test]
fn a_step_that_waits_for_recovery_lasts_until_the_first_good_request() {
    // Ten requests before; then the failures are due from 0.25 s to 1.35 s of the step.
    let (_folder, finished, _) = made(
        "0.01 60 280",
        r#"
[[step]]
name = "open the connections"
load = { traffic = "on" }
hold = "50ms"
[[step]]
name = "nothing"
hold = "10ms"
[[step]]
name = "recover"
load = { traffic = "on" }
wait = { until = "traffic errors == 0%", at_most = "60s" }
[[expect]]
that = "duration('recover') > 1.3s and duration('recover') < 3s"
[[expect]]
that = "'recover': traffic outage > 1094ms and 'recover': traffic outage < 1106ms"
"#,
    );
    assert_eq!(
        finished.verdict.outcome,
        Outcome::Pass,
        "{:?}",
        finished.verdict
    );
}

#[test]
fn a_load_goes_on_while_a_fault_outlasts_the_hold_of_its_step() {
    let (_folder, finished, loads) = made(
        "0.01 0 0",
        r#"
[[step]]
name = "stopped"
load = { traffic = "on" }
hold = "500ms"
fault = { pause = "slow", for = "1s" }
[[step]]
name = "nothing"
hold = "10ms"
[[step]]
name = "over before"
load = { traffic = "on" }
hold = "500ms"
fault = { pause = "slow", at = "0s", for = "100ms" }
"#,
    );
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Pass, "{verdict:?}");
    let planned: Vec<u64> = loads
        .iter()
        .map(|load| load.summary.requests.planned)
        .collect();
    // Those due in the last milliseconds may be too late for it.
    assert!(planned[0] >= 290, "{planned:?}");
    assert_eq!(planned[1], 100);
}

/// A server that has room for so many connections, and closes each one more as soon as it took it.
const CROWDED: &str = r#"
import socket, sys, threading
port, room = int(sys.argv[1]), int(sys.argv[2])
inside = threading.Semaphore(room)

def serve(peer):
    try:
        lines = peer.makefile("rb")
        while line := lines.readline():
            if line == b"\r\n":
                peer.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
    except OSError:
        pass
    finally:
        peer.close()
        inside.release()

listener = socket.create_server(("127.0.0.1", port), backlog=512)
while True:
    peer, _ = listener.accept()
    if inside.acquire(blocking=False):
        threading.Thread(target=serve, args=(peer,), daemon=True).start()
    else:
        peer.close()
"#;

/// A load over two steps at a server with room for one set of its connections and half of another,
/// or for both.
fn crowded(room: u32) -> Finished {
    let scripts = tempfile::tempdir().unwrap();
    let server = scripts.path().join("crowded.py");
    std::fs::write(&server, CROWDED).unwrap();
    let (_folder, finished) = run(&format!(
        r#"
[[system]]
name = "crowded"
run = "python3 {} {{port}} {room}"
[[load]]
name = "traffic"
http = "GET http://{{crowded.addr}}/"
rate = "constant 100/s"
connections = 16
max_connections = 16
guard = {{ late_after = "1s", steal_share = "100%" }}
[[step]]
name = "one"
hold = "500ms"
[[step]]
name = "two"
load = {{ traffic = "on" }}
hold = "700ms"
[[step]]
name = "three"
load = {{ traffic = "on" }}
hold = "700ms"
[[expect]]
that = "'two': traffic errors == 0% and 'three': traffic errors == 0%"
"#,
        server.display()
    ));
    finished
}

#[test]
fn a_server_without_room_for_both_sets_of_connections_is_not_accused() {
    for (room, pauses) in [(24, true), (64, false)] {
        let finished = crowded(room);
        let verdict = &finished.verdict;
        assert_eq!(verdict.outcome, Outcome::Pass, "{room}: {verdict:?}");
        let notes = verdict.notes.join("\n");
        let paused = notes.contains("the target closed 16 of the second set");
        assert_eq!(paused, pauses, "{room}: {notes}");
    }
}

/// A step that is over before a request fell due says nothing of the load, and is no fault of it.
#[test]
fn a_step_without_a_request_is_not_invalid() {
    // The first request of a constant rate falls due as soon as the load goes on, 25 ms after it
    // was told to; one of a Poisson process some hours later.
    let steps = r#"
[[step]]
name = "long"
load = { traffic = "constant 2/s" }
hold = "700ms"
[[step]]
name = "short"
load = { traffic = "poisson 0.0001/s" }
run = "true"
"#;
    let (_folder, finished, loads) = made("0 0 0", steps);
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Pass, "{verdict:?}");
    let mut loads = loads.into_iter();
    let short = loads.find(|load| load.step.as_deref() == Some("short"));
    let summary = short.unwrap().summary;
    assert_eq!(summary.requests.planned, 0);
    assert!(
        summary.validity.reasons.is_empty(),
        "{:?}",
        summary.validity
    );
}
