//! Steps make, hold, run and wait; what is measured is judged.
// Helpers outside of test functions panic like tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::{events, outcomes, run, script};
use lab_store::{EntityCount, Event, EventKind, LoopTurn, Outcome};

/// A driver whose entities are placed at once and paid one by one.
const SHOP: &str = r#"#!/usr/bin/env python3
import json, sys, time
def say(**message): print(json.dumps(message), flush=True)
placed = paid = 0
for line in sys.stdin:
    message = json.loads(line)
    if message["op"] == "hello":
        assert message["protocol"] == 1 and message["seed"] == 7, message
        say(ok=True, entities={"order": ["placed", "paid"]})
    elif message["op"] == "make":
        placed += message["count"]
        say(counts={"order": {"placed": placed}})
        refused = int(message["options"].get("refuse", 0))
        say(id=message["id"], done=True, made=message["count"] - refused, failed=refused,
            errors={"out of stock": refused} if refused else {})
        for _ in range(message["count"] - refused):
            paid += 1
            time.sleep(0.001)
            say(counts={"order": {"paid": paid}})
    else:
        break
"#;

fn shop(steps: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.py");
    script(&path, SHOP);
    let text = format!(
        r#"
seed = 7
[[driver]]
name = "shop"
run = "python3 {}"
makes = {{ order = ["placed", "paid"] }}
options = ["refuse"]
{steps}"#,
        path.display()
    );
    (folder, text)
}

#[test]
fn entities_are_made_counted_and_waited_for() {
    let (_shop, text) = shop(
        r#"
[[step]]
name = "orders"
make = { what = "order", count = 100 }
wait = { until = "order.paid == 100 and order.placed == 100", steady = "50ms", at_most = "1m" }
[[step]]
name = "more"
make = { what = "order", count = 10, rate = "1000/s" }
wait = { until = "order.paid >= 110", at_most = "1m" }
[[expect]]
that = "duration('orders') < 1m"
"#,
    );
    let (_folder, finished) = run(&text);
    assert_eq!(
        finished.verdict.outcome,
        Outcome::Pass,
        "{:?}",
        finished.verdict
    );
    assert_eq!(events(&finished, EventKind::Made), ["orders", "more"]);
    assert_eq!(events(&finished, EventKind::StepEnded), ["orders", "more"]);
    let counts: Vec<EntityCount> = finished.folder.records().unwrap();
    let last = counts.iter().rfind(|count| count.state == "paid").unwrap();
    assert_eq!((last.what.as_str(), last.count), ("order", 110));
    let times: Vec<f64> = counts.iter().map(|count| count.t_s).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn what_a_step_keeps_can_be_made_by_the_next() {
    let steps = |count: &str| {
        format!(
            r#"
[[step]]
name = "plan"
run = "echo '{{{{\"orders\": {count}, \"lost\": 2}}}}'"
keep = {{ orders = "json /orders", lost = "json /lost" }}
[[step]]
name = "orders"
make = {{ what = "order", count = "{{orders}}", refuse = "{{lost}}" }}
"#
        )
    };
    let (_shop, text) = shop(&steps("5"));
    let (_folder, finished) = run(&text);
    let verdict = finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Fail);
    let reason = verdict.reason.unwrap();
    let told = "3 accepted, 2 refused: 2 times out of stock";
    assert!(reason.contains(told), "{reason}");

    let (_shop, text) = shop(&steps("5.5"));
    let (_folder, finished) = run(&text);
    let verdict = finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Error);
    let reason = verdict.reason.unwrap();
    let told = "make order: `count` is \"{orders}\", which came to no whole number from 0 to \
        10,000,000";
    assert!(reason.contains(told), "{reason}");
}

#[test]
fn a_wait_that_runs_out_fails_and_the_rest_is_still_judged() {
    let (_shop, text) = shop(
        r#"
[[step]]
name = "orders"
make = { what = "order", count = 3 }
wait = { until = "order.paid == 4", at_most = "300ms" }
[[step]]
name = "never"
hold = "1m"
[[expect]]
that = "duration('orders') < 1m"
"#,
    );
    let (_folder, finished) = run(&text);
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Fail);
    let reason = verdict.reason.as_deref().unwrap();
    assert!(
        reason.contains("waited 300 ms for order.paid == 4; last seen 3"),
        "{reason}"
    );
    assert_eq!(events(&finished, EventKind::StepFailed), ["orders"]);
    assert_eq!(events(&finished, EventKind::StepStarted), ["orders"]);
    assert_eq!(verdict.expectations[0].outcome, Outcome::Inconclusive);
}

#[test]
fn what_a_command_prints_is_kept_with_the_events() {
    let (_folder, finished) = run(r#"
[[step]]
name = "look"
run = "echo three of five; echo not this >&2"
[[step]]
name = "silence"
run = "true"
"#);
    assert_eq!(events(&finished, EventKind::Said), ["look"]);
    let all: Vec<Event> = finished.folder.records().unwrap();
    let said = all.iter().find(|event| event.kind == EventKind::Said);
    assert_eq!(said.unwrap().text, "three of five");
}

#[test]
fn refusals_fail_the_step_with_their_texts() {
    let (_shop, text) = shop(
        r#"
[[step]]
name = "orders"
make = { what = "order", count = 5, refuse = "2" }
"#,
    );
    let (_folder, finished) = run(&text);
    let verdict = finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Fail);
    let reason = verdict.reason.unwrap();
    assert!(
        reason.contains("3 accepted, 2 refused: 2 times out of stock"),
        "{reason}"
    );
}

#[test]
fn a_command_that_fails_is_an_error_with_its_output() {
    let (_folder, finished) = run(r#"
[[step]]
name = "check"
run = "echo no such table >&2; exit 9"
"#);
    let verdict = finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Error);
    let reason = verdict.reason.unwrap();
    assert!(
        reason.contains("ended with status 9") && reason.contains("no such table"),
        "{reason}"
    );
}

#[test]
fn lifecycles_and_loops_are_mined_and_judged() {
    // Two orders and two turns, told with times after the start of the run.
    let (_folder, finished) = run(r#"
[[system]]
name = "shop"
run = """python3 -c 'import json, os, time
print("up", flush=True)
while not os.path.exists("{work}/go"): time.sleep(0.01)
t = time.time()
def say(after, message, **more): print(json.dumps(dict(time=t + after, message=message, **more)), flush=True)
say(0.1, "placed", order="a"); say(0.2, "placed", order="b")
say(0.3, "tidy.begin"); say(0.4, "tidy.end")
say(1.1, "paid", order="a"); say(3.2, "paid", order="b")
say(1.3, "tidy.begin"); say(1.8, "tidy.end")
time.sleep(600)'"""
ready = "log up"
watch = ["cpu", "rss"]

[[lifecycle]]
name = "order"
key = ["order"]
points = [["placed", "placed"], ["paid", "paid"]]

[[loop]]
name = "tidy"
start = "tidy.begin"
end = "tidy.end"

[[step]]
name = "look"
run = "touch {work}/go; until [ $(grep -c tidy {work}/../logs/shop.log) = 4 ]; do sleep 0.02; done"

[[expect]]
that = "order.placed..paid max < 3.5s"
[[expect]]
that = "order.placed..paid p50 < 500ms"
[[expect]]
that = "order.complete == 100%"
[[expect]]
that = "loop.tidy max < 1s"
[[expect]]
that = "system.shop.rss max < 1GiB"
"#);
    let verdict = &finished.verdict;
    use Outcome::{Fail, Pass};
    assert_eq!(
        outcomes(&finished),
        [Pass, Fail, Pass, Pass, Pass],
        "{verdict:#?}"
    );
    assert_eq!(verdict.outcome, Fail);
    assert_eq!(verdict.expectations[0].measured, "3 s");
    let turns: Vec<LoopTurn> = finished.folder.records().unwrap();
    let lengths: Vec<i64> = turns
        .iter()
        .map(|t| (t.duration_s * 1000.0).round() as i64)
        .collect();
    assert_eq!(lengths, [100, 500]);
    let names: Vec<String> = finished
        .folder
        .histograms()
        .unwrap()
        .into_iter()
        .map(|h| h.name)
        .collect();
    assert_eq!(names, ["order.placed..paid", "loop.tidy"]);
    let table = finished.folder.path().join("lifecycles/order.csv");
    assert!(
        std::fs::read_to_string(table)
            .unwrap()
            .starts_with("id,group,placed,paid\n")
    );
    let notes = crate::support::notes(&finished);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("the first: up"), "{notes:?}");
}

#[test]
fn a_command_that_does_not_end_is_ended() {
    let (_folder, finished) = run(r#"
[[step]]
name = "hang"
run = "echo waiting for nobody; sleep 600"
run_within = "300ms"
"#);
    assert_eq!(finished.verdict.outcome, Outcome::Error);
    let reason = finished.verdict.reason.unwrap();
    assert!(reason.contains("did not end within 300 ms"), "{reason}");
    assert!(reason.contains("waiting for nobody"), "{reason}");
}
