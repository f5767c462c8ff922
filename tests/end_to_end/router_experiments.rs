//! The experiments about routers, made small: every step runs, and what they say is true.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::lab::{Lab, processes_of_run};

/// The results of a run's loads, by the names of their files.
fn loads(lab: &Lab) -> BTreeMap<String, Value> {
    let folder = lab.run_folder().join("loads");
    let entries = fs::read_dir(folder).expect("loads");
    entries
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let text = fs::read_to_string(&path).expect("a load");
            let name = path.file_stem().expect("a name").to_string_lossy();
            (
                name.into_owned(),
                serde_json::from_str(&text).expect("JSON"),
            )
        })
        .collect()
}

/// What each expectation came to.
fn outcomes(verdict: &Value) -> Vec<(&str, &str)> {
    let expectations = verdict["expectations"].as_array().expect("expectations");
    expectations
        .iter()
        .map(|one| {
            let that = one["that"].as_str().expect("an expectation");
            (that, one["outcome"].as_str().expect("an outcome"))
        })
        .collect()
}

#[test]
fn every_request_under_every_fault_is_accounted_for() {
    let lab = Lab::alone();
    let sizes = ["--json", "--set", "rate=100/s", "--set", "calm=1s"];
    let more = ["--set", "fault=2", "--set", "away=6", "--set", "late=10s"];
    let keep = ["--keep"];
    let arguments = [&sizes[..], &more[..], &keep[..]].concat();
    let run = lab.run(&lab.patient("router-faults.toml"), &arguments);
    let verdict = run.expect_code(0).json();
    for (that, outcome) in outcomes(&verdict) {
        assert_eq!(outcome, "pass", "{that}");
    }
    let loads = loads(&lab);
    // A drained router answers what it has; then nobody listens; then all routes are there.
    let drained = &loads["router_drained.steady"];
    assert_eq!(drained["refusals"], serde_json::json!({}), "{drained:#}");
    let hung = &loads["hung_backend.steady"]["errors"];
    assert_eq!(hung[0]["phase"], "timeout", "{hung:#}");
    let folder = lab.run_folder();
    assert_eq!(processes_of_run(&folder), Vec::<String>::new());

    // The books balance because they were kept, not because they are empty.
    let kept = &verdict["expectations"][8]["values"];
    for number in ["kept.steady", "kept.steady-well", "steady answered"] {
        assert!(kept[number].as_f64().is_some_and(|n| n > 500.0), "{kept:#}");
    }
}

#[test]
fn a_table_of_routes_is_filled_loaded_searched_and_churned() {
    let lab = Lab::alone();
    let mut arguments = vec!["--json"];
    for size in [
        "routes=200",
        "last=199",
        "requests=2000",
        "churn=100",
        "rounds=3",
        "hold=1s",
        "search=10s",
        // So little that it is borne even when others take the processors meanwhile.
        "share=20%",
        "soak=3s",
        "slowest=5s",
        "late=10s",
    ] {
        arguments.extend(["--set", size]);
    }
    let run = lab.run(&lab.patient("router-http-100k.toml"), &arguments);
    let verdict = run.json();
    // How fast an unoptimised router on a busy machine is says nothing, nor does a generator
    // that was late itself.
    for (that, outcome) in outcomes(&verdict) {
        let known = matches!(outcome, "pass" | "fail" | "invalid" | "inconclusive");
        assert!(known, "{that}: {verdict:#}");
    }
    let loads = loads(&lab);
    let published = &loads["as_published.table"]["requests"];
    assert!(published["answered"].as_u64().expect("a count") >= 2000);
    for (name, load) in &loads {
        // The probe asks before there are routes, and a search goes beyond what holds.
        if !name.starts_with("knee") && !name.contains("newest") {
            assert_eq!(load["refusals"], serde_json::json!({}), "{name}: {load:#}");
            assert_eq!(load["errors"], serde_json::json!([]), "{name}: {load:#}");
        }
    }
    assert_eq!(processes_of_run(&lab.run_folder()), Vec::<String>::new());
}
