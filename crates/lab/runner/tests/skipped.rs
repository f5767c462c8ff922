//! Steps after a search, with real generators and real targets: what they are given, and that
//! they are left out where it has nothing for them.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use crate::support::{events, of, outcomes, plan, run, server};
use lab_load::Summary;
use lab_runner::Finished;
use lab_store::{EventKind, Outcome};

/// A load that no neighbour makes INVALID, unless too little of it is sent.
const GUARD: &str = "guard = { late_after = \"60s\", steal_share = \"100%\", little = \"100%\" }";

/// A server of so many good answers a second; what is beyond half a second's worth of them at
/// a time is refused.
const LIMITED: &str = r#"
import asyncio, sys, time
rate = float(sys.argv[2])
left, then = rate / 2, time.monotonic()
async def serve(reader, writer):
    global left, then
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            now = time.monotonic()
            left, then = min(left + (now - then) * rate, rate / 2), now
            good = left >= 1
            left -= 1 if good else 0
            status = b"200 OK" if good else b"503 Full"
            writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")
    except Exception:
        writer.close()
async def main():
    await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), backlog=1000)
    await asyncio.Event().wait()
asyncio.run(main())
"#;

fn made(server: &str, load: &str, steps: &str) -> (tempfile::TempDir, Finished) {
    run(&format!(
        r#"
[[system]]
name = "web"
run = "python3 {server}"
ready = "tcp"
[[load]]
name = "traffic"
http = "GET http://{{web.addr}}/{{seq}}"
{load}
{steps}"#
    ))
}

/// The search of a run.
fn search(finished: &Finished) -> Summary {
    let names = finished.folder.load_names().unwrap();
    let mut loads = names.iter().map(|name| finished.folder.load(name).unwrap());
    let search = loads.find(|load| load.step.as_deref() == Some("knee"));
    search.unwrap().summary
}

fn why(finished: &Finished) -> Vec<(String, String)> {
    let skipped = of(finished, EventKind::StepSkipped).into_iter();
    skipped.map(|(_, name, text)| (name, text)).collect()
}

#[test]
fn what_comes_after_a_search_is_steered_by_a_rate_that_was_held() {
    let scripts = tempfile::tempdir().unwrap();
    let limited = scripts.path().join("limited.py");
    std::fs::write(&limited, LIMITED).unwrap();
    let steered = |seconds: u32| {
        let steps = format!(
            r#"
[[step]]
name = "knee"
search = {{ vary = "traffic.rate", from = "20/s", grow = 2, each = "2s", at_most = "{seconds}s" }}
while = {{ good = ["traffic errors < 5%"] }}
[[step]]
name = "soak"
load = {{ traffic = "50% of knee" }}
hold = "1s"
"#
        );
        let server = format!("{} {{port}} 100", limited.display());
        let (_folder, finished) = made(
            &server,
            &format!("arrivals = \"constant\"\n{GUARD}"),
            &steps,
        );
        let capacity = search(&finished).capacity.unwrap();
        let Some(confirmed) = capacity.confirmed() else {
            // A machine that others keep busy lets a brief search end without an answer.
            assert_eq!(why(&finished).len(), 1, "{capacity:#?}");
            return false;
        };
        let knee = capacity.knee.unwrap().rate;
        assert!(knee < 220.0 && confirmed <= knee, "{capacity:#?}");
        let held = |rate: f64| capacity.points.iter().any(|p| p.good && p.rate == rate);
        assert!(held(confirmed), "{capacity:#?}");
        let soak = finished.folder.load("soak.traffic").unwrap().summary;
        let asked = soak.rate.asked.unwrap();
        // A second has room for one request more or less.
        assert!(
            (asked - confirmed / 2.0).abs() <= 1.5,
            "{asked} of {confirmed}"
        );
        assert!(soak.requests.sent > 0, "{soak:?}");
        assert_eq!(
            finished.verdict.outcome,
            Outcome::Pass,
            "{:?}",
            finished.verdict
        );
        true
    };
    assert!(
        [20, 40, 80].into_iter().any(steered),
        "no search ended with an answer"
    );
}

/// A server, and steps after a search of it, of which two build on what was found.
fn refusing(scripts: &tempfile::TempDir) -> (PathBuf, String) {
    let steps = r#"
[[probe]]
name = "alive"
http = "GET http://{web.addr}/0"
rate = "20/s"
from = "soak"
to = "soak"
guard = { late_after = "60s", steal_share = "100%", little = "100%", sent_share = "0%" }
[[step]]
name = "knee"
search = { vary = "traffic.rate", from = "300/s", each = "1s", at_most = "8s" }
while = { good = ["traffic errors < 5%"] }
[[step]]
name = "before"
load = { traffic = "20/s" }
hold = "300ms"
fault = { custom = "something", do = "true", undo = "true", at = "10ms", through = "soak" }
[[step]]
name = "soak"
load = { traffic = "70% of knee" }
run = "echo rows: 7"
keep = { rows = "regex rows: ([0-9]+)" }
[[step]]
name = "count"
run = "test '{rows}' = 7"
[[step]]
name = "after"
load = { traffic = "20/s" }
hold = "300ms"
[[expect]]
that = "'soak': traffic errors < 1%"
[[expect]]
that = "kept.rows == 7 and duration('count') < 1h"
[[expect]]
that = "'after': traffic requests > 0"
"#;
    (server(scripts.path()), steps.to_owned())
}

/// What is true of a run whose search had nothing for the steps after it.
fn skipped(finished: &Finished, because: &str) {
    let skipped = why(finished);
    let names: Vec<&str> = skipped.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["soak", "count"], "{skipped:?}");
    let (soak, count) = (&skipped[0].1, &skipped[1].1);
    assert!(
        soak.starts_with("70 % of the knee is asked for, and"),
        "{soak}"
    );
    assert!(soak.contains(because), "{soak}");
    assert!(count.contains("{rows}, which \"soak\" keeps"), "{count}");
    // Everything else was made, the fault that should have gone on is over, and the probe of
    // the step that was left out has ended.
    assert_eq!(
        events(finished, EventKind::StepStarted),
        ["knee", "before", "after"]
    );
    assert_eq!(
        events(finished, EventKind::StepFailed),
        Vec::<String>::new()
    );
    assert_eq!(events(finished, EventKind::FaultEnded).len(), 1);
    let note = &finished.verdict.expectations[0].note;
    assert!(note.contains("step \"soak\" was skipped: 70 %"), "{note}");
    let mut notes = finished.notes.iter();
    let told = notes.any(|note| note.contains("step \"soak\" was skipped"));
    assert!(told, "{:?}", finished.notes);
}

#[test]
fn without_a_knee_what_builds_on_it_is_skipped_and_the_rest_is_made() {
    let scripts = tempfile::tempdir().unwrap();
    let (server, steps) = refusing(&scripts);
    let fails = format!("{} {{port}} 0 0 1000000000", server.display());
    let (_folder, finished) = made(&fails, GUARD, &steps);
    skipped(&finished, "found none: No rate was found");
    let verdict = &finished.verdict;
    let expected = [Outcome::Inconclusive, Outcome::Inconclusive, Outcome::Pass];
    assert_eq!(outcomes(&finished), expected, "{verdict:?}");
    assert_eq!(verdict.outcome, Outcome::Inconclusive, "{verdict:?}");
}

#[test]
fn a_run_of_which_a_part_was_skipped_is_no_pass() {
    let scripts = tempfile::tempdir().unwrap();
    let fails = format!(
        "{} {{port}} 0 0 1000000000",
        server(scripts.path()).display()
    );
    let steps = r#"
[[step]]
name = "knee"
search = { vary = "traffic.rate", from = "300/s", each = "1s", at_most = "4s" }
while = { good = ["traffic errors < 5%"] }
[[step]]
name = "soak"
load = { traffic = "70% of knee" }
hold = "100ms"
"#;
    let (_folder, finished) = made(&fails, GUARD, steps);
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Inconclusive, "{verdict:?}");
    let reason = verdict.reason.as_deref().unwrap();
    assert!(reason.contains("step \"soak\" was skipped"), "{reason}");
}

#[test]
fn a_system_whose_program_is_not_installed_is_left_out_with_a_line() {
    let (_folder, finished) = run(r#"
[[system]]
name = "here"
run = "sleep 60"
needs = "sh"
[[system]]
name = "peer"
run = "no-such-server --listen {addr}"
needs = "no-such-server"
[[load]]
name = "to-peer"
http = "GET http://{peer.addr}/"
[[step]]
name = "ours"
hold = "10ms"
[[step]]
name = "theirs"
load = { to-peer = "10/s" }
hold = "10ms"
[[expect]]
that = "duration('ours') < 1h"
[[expect]]
that = "'theirs': to-peer errors == 0%"
"#);
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Pass, "{verdict:?}");
    assert_eq!(outcomes(&finished), [Outcome::Pass]);
    let left_out: Vec<&str> = verdict.left_out.iter().map(|one| &*one.that).collect();
    assert_eq!(left_out, ["'theirs': to-peer errors == 0%"]);
    assert_eq!(verdict.left_out[0].why, "no-such-server is not installed");
    assert_eq!(
        crate::support::notes(&finished),
        [
            "no-such-server is not installed: without peer; left out: theirs; 1 expectation about that is not judged"
        ]
    );
    assert_eq!(events(&finished, EventKind::SystemStarted), ["here"]);
    assert_eq!(events(&finished, EventKind::StepStarted), ["ours"]);
}

#[test]
fn a_run_of_which_nothing_is_left_to_judge_is_no_pass() {
    let (_folder, finished) = run(r#"
[[system]]
name = "peer"
run = "no-such-server --listen {addr}"
needs = "no-such-server"
[[load]]
name = "to-peer"
http = "GET http://{peer.addr}/"
[[step]]
name = "theirs"
load = { to-peer = "10/s" }
hold = "10ms"
[[expect]]
that = "'theirs': to-peer errors == 0%"
"#);
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Inconclusive, "{verdict:?}");
    assert_eq!(
        verdict.reason.as_deref(),
        Some("every expectation is left out: no-such-server is not installed")
    );
    assert_eq!((outcomes(&finished), verdict.left_out.len()), (vec![], 1));
}

#[test]
fn what_a_machine_lacks_is_told_with_what_goes_with_it_before_a_run() {
    const NEEDS: &str = r#"
[[system]]
name = "peer"
run = "no-such-server --listen {addr}"
needs = "no-such-server"
[[probe]]
name = "alive"
http = "GET http://{peer.addr}/"
[[step]]
name = "ours"
hold = "10ms"
[[expect]]
that = "alive.ok == 100%"
"#;
    const BODY: &str = r#"
[[load]]
name = "orders"
http = "POST http://127.0.0.1:1/"
body_file = "order.json"
[[step]]
name = "send"
load = { orders = "10/s" }
hold = "10ms"
"#;
    let folder = tempfile::tempdir().unwrap();
    let lacking = |text: &str| lab_runner::lacking(&plan(text).0, folder.path());
    assert_eq!(
        lacking(NEEDS),
        ["no-such-server is not installed: without peer; 1 expectation about that is not judged"]
    );
    let told = lacking(BODY);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with("load orders: ") && told[0].contains("order.json"),
        "{told:?}"
    );
    std::fs::write(folder.path().join("order.json"), "{}").unwrap();
    assert_eq!(lacking(BODY), Vec::<String>::new());
    let installed = NEEDS.replace("no-such-server", "sh");
    assert_eq!(lacking(&installed), Vec::<String>::new());
}
