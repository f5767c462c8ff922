//! Runs that send requests, with simulated generators.
#![allow(clippy::unwrap_used)]

use crate::simulated;
use crate::support::{events, options, outcomes, plan};
use lab_runner::{Finished, RunError, StartGenerator};
use lab_store::{EventKind, Outcome};

/// A load and a probe; their target does not matter to a simulation.
const LOADS: &str = r#"
[[load]]
name = "traffic"
http = "GET http://127.0.0.1:1/{uniform 0 9}"
rate = "100/s"
[[probe]]
name = "alive"
http = "GET http://127.0.0.1:1/fine"
rate = "10/s"
"#;

fn run_with(
    generator: StartGenerator,
    text: &str,
) -> (tempfile::TempDir, Result<Finished, RunError>) {
    let folder = tempfile::tempdir().unwrap();
    let (plan, text) = plan(text);
    let options = lab_runner::Options {
        generator,
        ..options(folder.path())
    };
    let finished = lab_runner::run(plan, &text, options);
    (folder, finished)
}

fn made(generator: StartGenerator, text: &str) -> (tempfile::TempDir, Finished) {
    let (folder, finished) = run_with(generator, &format!("{LOADS}{text}"));
    (folder, finished.unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn a_load_runs_as_long_as_its_step_and_a_probe_over_all_steps() {
    let (_folder, finished) = made(
        simulated::healthy,
        r#"
[[step]]
name = "steady"
load = { traffic = "on" }
hold = "50ms"
[[step]]
name = "busy"
load = { traffic = "constant 400/s" }
wait = { until = "traffic rate > 390/s and alive ok == 100%", at_most = "60s" }
[[step]]
name = "quiet"
hold = "50ms"
[[expect]]
that = "'steady': traffic rate > 99/s and 'steady': traffic errors == 0%"
[[expect]]
that = "'busy': traffic p50 < 2ms and 'busy': traffic sent >= 99% of planned"
[[expect]]
that = "alive ok == 100% and 'quiet': alive ok == 100%"
"#,
    );
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Pass, "{verdict:?}");
    let names = finished.folder.load_names().unwrap();
    let loads: Vec<_> = names
        .iter()
        .map(|name| finished.folder.load(name).unwrap())
        .collect();
    let mut stored: Vec<(Option<&str>, &str)> = loads
        .iter()
        .map(|load| (load.step.as_deref(), load.summary.name.as_str()))
        .collect();
    stored.sort_unstable();
    let expected = [
        (None, "alive"),
        (Some("busy"), "alive"),
        (Some("busy"), "traffic"),
        (Some("quiet"), "alive"),
        (Some("steady"), "alive"),
        (Some("steady"), "traffic"),
    ];
    assert_eq!(stored, expected);
    assert!(loads.iter().all(|load| load.summary.partial.is_none()));
    let parts: u64 = loads
        .iter()
        .filter(|load| load.summary.name == "alive" && load.step.is_some())
        .map(|load| load.summary.requests.sent)
        .sum();
    let whole = loads.iter().find(|load| load.step.is_none()).unwrap();
    // The last span may end after the last step, and then belongs to none.
    let all = whole.summary.requests.sent;
    assert!(parts <= all && all - parts < all / 3, "{parts} of {all}");
    assert_eq!(
        events(&finished, EventKind::Measured),
        ["steady", "busy", "alive"]
    );
}

#[test]
fn requests_without_an_answer_are_the_slowest_ones() {
    let (_folder, finished) = made(
        simulated::losing,
        r#"
[[step]]
name = "first"
load = { traffic = "constant 400/s" }
hold = "5s"
[[step]]
name = "second"
load = { traffic = "constant 400/s" }
wait = { until = "traffic p90 < 1s and traffic p99 > 1h", at_most = "60s" }
[[expect]]
that = "first: traffic p90 < 1s"
[[expect]]
that = "first: traffic p99 < 1h"
[[expect]]
that = "second: traffic p90 < 110% of 'first': traffic p99"
"#,
    );
    let judged: Vec<_> = finished
        .verdict
        .expectations
        .iter()
        .map(|one| (one.outcome, one.measured.as_str(), one.note.as_str()))
        .collect();
    assert_eq!(judged[0].0, Outcome::Pass);
    assert_eq!(judged[1], (Outcome::Fail, "no answer", ""));
    assert_eq!(judged[2].0, Outcome::Inconclusive);
    assert!(judged[2].2.contains("had no answer"), "{judged:?}");
    let stored = finished.folder.load("first.traffic").unwrap();
    assert_eq!(stored.summary.latency.intended.p99, None);
    assert!(stored.summary.latency.intended.lost("p99"));
}

const SEARCH: &str = r#"
[[step]]
name = "knee"
search = { vary = "traffic.rate", from = "100/s", each = "1s" }
while = { good = ["traffic p99 < 20ms", "traffic errors < 1%", "traffic sent >= 99% of planned"] }
[[step]]
name = "soak"
load = { traffic = "70% of knee" }
hold = "50ms"
"#;

#[test]
fn a_knee_is_found_and_a_share_of_it_is_a_rate() {
    let (_folder, finished) = made(
        simulated::healthy,
        &format!(
            "{SEARCH}
[[expect]]
that = \"knee.rate > 700/s and knee.rate < 850/s and knee.low > 600/s\"
[[expect]]
that = \"soak: traffic rate > 490/s and soak: traffic rate < 600/s\"
"
        ),
    );
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Pass, "{verdict:?}");
    let names = finished.folder.load_names().unwrap();
    let search = names
        .iter()
        .map(|name| finished.folder.load(name).unwrap().summary)
        .find(|summary| summary.capacity.is_some())
        .unwrap();
    let capacity = search.capacity.unwrap();
    assert_eq!(capacity.limit, "target");
    // What is shown beside the capacity is a hold that was good.
    assert!(search.rate.asked.unwrap() <= capacity.knee.unwrap().high);
}

#[test]
fn what_an_invalid_load_measured_neither_passes_nor_fails() {
    let steps = r#"
[[step]]
name = "steady"
load = { traffic = "on" }
hold = "50ms"
[[expect]]
that = "traffic max < 30ms"
[[expect]]
that = "alive ok == 100%"
"#;
    let (_folder, finished) = made(simulated::late, steps);
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Invalid);
    assert_eq!(outcomes(&finished), [Outcome::Invalid, Outcome::Pass]);
    let note = &verdict.expectations[0].note;
    assert!(
        note.contains("traffic max may be") && note.contains("late"),
        "{note}"
    );
    let reason = verdict.reason.as_deref().unwrap();
    assert!(
        reason.contains("load traffic in \"steady\" is INVALID"),
        "{reason}"
    );

    let by_itself = format!("{steps}[[expect]]\nthat = \"alive p50 > 1h\"\n");
    let (_folder, finished) = made(simulated::late, &by_itself);
    assert_eq!(finished.verdict.outcome, Outcome::Fail);
}

#[test]
fn a_number_that_may_be_another_is_no_pass_though_the_load_is_valid() {
    let steps = |most: &str| {
        format!(
            r#"
[[load]]
name = "patient"
http = "GET http://127.0.0.1:1/"
rate = "100/s"
guard = {{ late_after = "1s" }}
[[step]]
name = "steady"
load = {{ patient = "on" }}
hold = "50ms"
[[expect]]
that = "patient errors == 0%"
[[expect]]
that = "patient max < {most}"
"#
        )
    };
    let (_folder, finished) = made(simulated::late, &steps("30ms"));
    let name = finished.folder.load_names().unwrap();
    let mut loads = name.iter().map(|name| finished.folder.load(name).unwrap());
    let patient = loads.find(|load| load.summary.name == "patient").unwrap();
    assert!(patient.summary.validity.valid, "{:?}", patient.summary);
    assert_eq!(outcomes(&finished), [Outcome::Pass, Outcome::Invalid]);
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Invalid, "{verdict:?}");
    let reason = verdict.reason.as_deref().unwrap();
    assert!(reason.contains("patient max may be"), "{reason}");

    let (_folder, finished) = made(simulated::late, &steps("1s"));
    assert_eq!(finished.verdict.outcome, Outcome::Pass);
}

#[test]
fn what_was_counted_holds_however_hindered_who_counted_was() {
    let steps = r#"
[[step]]
name = "steady"
load = { traffic = "on" }
hold = "50ms"
[[expect]]
that = "traffic good > 0 and traffic requests == 100% of traffic good"
[[expect]]
that = "alive good > 0"
"#;
    let (_folder, finished) = made(simulated::robbed, steps);
    let verdict = &finished.verdict;
    assert_eq!(outcomes(&finished), [Outcome::Pass; 2], "{verdict:?}");
    assert_eq!(verdict.outcome, Outcome::Pass, "{verdict:?}");

    let quick = format!("{steps}[[expect]]\nthat = \"traffic p50 < 1s\"\n");
    let (_folder, finished) = made(simulated::robbed, &quick);
    assert_eq!(
        outcomes(&finished),
        [Outcome::Pass, Outcome::Pass, Outcome::Invalid]
    );
    assert_eq!(finished.verdict.outcome, Outcome::Invalid);
}

#[test]
fn what_a_late_generator_cannot_have_turned_round_is_decided() {
    let steps = r#"
[[step]]
name = "steady"
load = { traffic = "on" }
hold = "50ms"
[[expect]]
that = "traffic max < 1s"
"#;
    let (_folder, finished) = made(simulated::late, steps);
    assert_eq!(
        finished.verdict.outcome,
        Outcome::Pass,
        "{:?}",
        finished.verdict
    );
    // 50 ms are the generator's; what is left is still too slow.
    let slow = format!("{steps}[[expect]]\nthat = \"traffic max < 1us\"\n");
    let (_folder, finished) = made(simulated::late, &slow);
    assert_eq!(
        finished.verdict.outcome,
        Outcome::Fail,
        "{:?}",
        finished.verdict
    );
}

#[test]
fn a_wait_for_an_invalid_load_says_nothing_about_the_system() {
    let (_folder, finished) = made(
        simulated::late,
        r#"
[[step]]
name = "never"
load = { traffic = "on" }
wait = { until = "traffic p50 < 1ns", at_most = "300ms" }
"#,
    );
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Invalid, "{verdict:?}");
    let (_folder, finished) = made(
        simulated::late,
        r#"
[[step]]
name = "never"
load = { traffic = "on" }
wait = { until = "alive p50 > 1h", at_most = "300ms" }
"#,
    );
    assert_eq!(finished.verdict.outcome, Outcome::Fail);
    let load = finished.folder.load_names().unwrap();
    let load = load.iter().map(|name| finished.folder.load(name).unwrap());
    for load in load.filter(|load| load.summary.name == "traffic") {
        assert_eq!(load.summary.partial.as_deref(), Some("the step failed"));
    }
}

#[test]
fn a_search_that_the_generator_ends_is_invalid_and_steers_nothing() {
    let (_folder, finished) = made(
        simulated::late,
        &format!(
            "{SEARCH}
[[step]]
name = \"after\"
load = {{ traffic = \"on\" }}
hold = \"50ms\"
[[expect]]
that = \"knee.rate > 1/s\"
[[expect]]
that = \"'soak': traffic errors == 0%\"
[[expect]]
that = \"'after': traffic good > 0\"
"
        ),
    );
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Invalid, "{verdict:?}");
    let expected = [Outcome::Invalid, Outcome::Invalid, Outcome::Pass];
    assert_eq!(outcomes(&finished), expected, "{verdict:?}");
    assert_eq!(events(&finished, EventKind::StepStarted), ["knee", "after"]);
    assert_eq!(events(&finished, EventKind::StepSkipped), ["soak"]);
    let note = &verdict.expectations[1].note;
    assert!(
        note.contains("step \"soak\" was skipped") && note.contains("\"knee\" is INVALID"),
        "{note}"
    );
}

#[test]
fn a_lower_bound_of_a_knee_decides_only_what_it_can() {
    let (_folder, finished) = made(
        simulated::healthy,
        r#"
[[step]]
name = "knee"
search = { vary = "traffic.rate", from = "100/s", each = "1s", most = "300/s" }
while = { good = ["traffic p95 < 20ms"] }
[[expect]]
that = "knee.rate >= 300/s"
[[expect]]
that = "knee.rate > 500/s"
[[expect]]
that = "knee.rate < 500/s"
"#,
    );
    let verdict = &finished.verdict;
    let expected = [Outcome::Pass, Outcome::Inconclusive, Outcome::Inconclusive];
    assert_eq!(outcomes(&finished), expected, "{verdict:?}");
}

#[test]
fn a_target_that_cannot_be_reached_is_an_error_that_says_what_to_do() {
    let (_folder, finished) = made(
        simulated::refused,
        "[[step]]\nname = \"a\"\nload = { traffic = \"on\" }\nhold = \"1s\"\n",
    );
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Error);
    let reason = verdict.reason.as_deref().unwrap();
    assert!(
        reason.contains("connection refused; start the target first"),
        "{reason}"
    );
}

#[test]
fn files_are_looked_at_before_anything_starts() {
    let file = |keys: &str| {
        let text = format!(
            "[[load]]\nname = \"a\"\nhttp = \"GET http://127.0.0.1:1/{{line u.name}}\"\n{keys}\n\
             [[step]]\nname = \"s\"\nhold = \"50ms\"\n"
        );
        let (folder, finished) = run_with(simulated::healthy, &text);
        let runs = std::fs::read_dir(folder.path()).unwrap().count();
        (finished, runs)
    };
    let (missing, runs) = file("tables = { u = \"/nowhere/users.csv\" }");
    let error = missing.unwrap_err().to_string();
    assert!(error.contains("load a: read /nowhere/users.csv"), "{error}");
    assert_eq!(runs, 0);

    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("users.csv");
    std::fs::write(&table, "nme\nann\n").unwrap();
    let keys = format!("tables = {{ u = \"{}\" }}", table.display());
    let error = file(&keys).0.unwrap_err().to_string();
    assert!(error.contains("name") && error.contains("nme"), "{error}");
    std::fs::write(&table, "name\nann\n").unwrap();
    assert_eq!(file(&keys).0.unwrap().verdict.outcome, Outcome::Pass);
}

/// Of about forty requests none failed: what needs a hundred to be told is not.
#[test]
fn a_share_of_failures_below_that_of_one_request_is_not_told() {
    let (_folder, finished) = made(
        simulated::healthy,
        r#"
[[step]]
name = "short"
load = { traffic = "constant 400/s" }
hold = "100ms"
[[expect]]
that = "traffic errors < 1%"
[[expect]]
that = "traffic ok > 99%"
[[expect]]
that = "traffic errors < 30%"
[[expect]]
that = "traffic errors == 0% and traffic ok >= 100%"
[[expect]]
that = "traffic errors < 1% or traffic sent >= 99% of planned"
"#,
    );
    let expected = [
        Outcome::Inconclusive,
        Outcome::Inconclusive,
        Outcome::Pass,
        Outcome::Pass,
        Outcome::Pass,
    ];
    assert_eq!(outcomes(&finished), expected, "{:?}", finished.verdict);
    let note = &finished.verdict.expectations[0].note;
    assert!(note.starts_with("too few requests to tell"), "{note}");
}
