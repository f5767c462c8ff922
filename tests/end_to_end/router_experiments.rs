//! The experiments about routers, made small: every step runs, and what they say is true.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::lab::{Lab, answered, is_open, processes_of_run};

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
    let sizes = ["rate=100/s", "calm=1s", "fault=2", "away=6", "late=10s"];
    let (verdict, loads) = passed("router-faults.toml", &sizes);
    // A drained router answers what it has; then nobody listens; then all routes are there.
    let drained = &loads["router_drained.steady"];
    assert_eq!(drained["refusals"], serde_json::json!({}), "{drained:#}");
    let hung = &loads["hung_backend.steady"]["errors"];
    assert_eq!(hung[0]["phase"], "timeout", "{hung:#}");

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
    let loads = lab.loads();
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

/// Of each load, what fell due was answered or failed, and every failure has its kind.
fn books_balance(loads: &BTreeMap<String, Value>) {
    for (name, load) in loads {
        let count = |of: &Value| of.as_u64().unwrap_or_else(|| panic!("{name}: {load:#}"));
        let requests = &load["requests"];
        let kinds = load["errors"].as_array().expect("errors");
        let failed: u64 = kinds.iter().map(|kind| count(&kind["count"])).sum();
        assert_eq!(failed, count(&requests["errors"]), "{name}: {load:#}");
        let refusals = load["refusals"].as_object().expect("refusals");
        let refused: u64 = refusals.values().map(count).sum();
        assert_eq!(refused, count(&requests["refused"]), "{name}: {load:#}");
        let (planned, answered) = (count(&requests["planned"]), count(&requests["answered"]));
        assert_eq!(planned, answered + failed, "{name}: {load:#}");
    }
}

/// Runs an experiment made small until it can tell whether its expectations hold; all of them must. Gives
/// the verdict and the loads.
fn passed(name: &str, sizes: &[&str]) -> (Value, BTreeMap<String, Value>) {
    let sets = sizes.iter().flat_map(|size| ["--set", size]);
    let arguments: Vec<&str> = ["--json"].into_iter().chain(sets).collect();
    answered(1..=3, |_| {
        let lab = Lab::alone();
        let run = lab.run(&lab.patient(name), &arguments);
        assert_eq!(processes_of_run(&lab.run_folder()), Vec::<String>::new());
        let verdict = run.json();
        let all = verdict["expectations"].as_array().expect("expectations");
        let (open, told): (Vec<&Value>, Vec<&Value>) = all.iter().partition(|one| is_open(one));
        for one in told {
            assert_eq!(
                one["outcome"], "pass",
                "{one:#}: {verdict:#}\n{}",
                run.stderr
            );
        }
        if !open.is_empty() && matches!(run.code, 2..=3) {
            return Err(format!("{verdict:#}"));
        }
        run.expect_code(0);
        Ok((verdict, lab.loads()))
    })
}

/// The loads of an experiment made small, whose expectations must all hold.
fn passes(name: &str, sizes: &[&str]) -> BTreeMap<String, Value> {
    let (_, loads) = passed(name, sizes);
    books_balance(&loads);
    loads
}

#[test]
fn a_router_that_is_drained_costs_nothing_and_one_that_is_killed_what_it_had() {
    let sizes = ["rate=100/s", "takes=100ms", "calm=2s", "late=10s"];
    let loads = passes("router-drain.toml", &sizes);
    let (drained, killed) = (&loads["drained.users"], &loads["killed.others"]);
    assert_eq!(drained["errors"], serde_json::json!([]), "{drained:#}");
    assert_eq!(drained["refusals"], serde_json::json!({}), "{drained:#}");
    let failed = killed["requests"]["errors"].as_u64().expect("a count");
    assert!(failed > 0, "{killed:#}");
}

#[test]
fn faults_of_tls_cost_what_they_must() {
    let sizes = ["rate=50/s", "bad=20/s", "hold=2s", "late=10s"];
    passes("router-tls-faults.toml", &sizes);
}

#[test]
fn faults_of_http2_cost_what_they_must() {
    let sizes = ["rate=40/s", "hold=2s", "pairs=20", "late=10s"];
    let loads = passes("router-http2-faults.toml", &sizes);
    let reset = &loads["reset_connections.steady"];
    assert!(reset["requests"]["sent"].as_u64() > Some(0), "{reset:#}");
}

#[test]
fn faults_of_websockets_cost_what_they_must() {
    let sizes = ["rate=100/s", "open=10", "calm=1s", "late=10s"];
    passes("router-websocket-faults.toml", &sizes);
}

#[test]
fn faults_of_route_services_cost_what_they_must() {
    let sizes = ["rate=20/s", "hold=2s", "late=10s"];
    passes("router-service-faults.toml", &sizes);
}

#[test]
fn peers_that_are_not_installed_are_left_out_and_named() {
    let lab = Lab::alone();
    // Nothing but what the experiment itself needs is found; where servers are, there may be peers.
    let sizes = [
        "--json",
        "--set",
        "routes=100",
        "--set",
        "last=99",
        "--set",
        "turn=1s",
        "--set",
        "rate=200/s",
        "--set",
        "late=10s",
    ];
    let run = lab.run(&lab.patient("router-vs.toml"), &sizes);
    let verdict = run.json();
    let notes = verdict["notes"].as_array().expect("notes").iter();
    let notes: Vec<&str> = notes.filter_map(Value::as_str).collect();
    let loads = lab.loads();
    for peer in ["nginx", "haproxy", "caddy", "gorouter"] {
        let missing = format!("{peer} is not installed: without {peer}");
        let is_missing = notes.iter().any(|note| note.starts_with(&missing));
        let took_part = loads.contains_key(&format!("{peer}_1.{peer}-closed"));
        assert!(is_missing != took_part, "{peer}: {notes:?}");
    }
    for number in 1..=3 {
        let ours = &loads[&format!("ours_{number}.ours-closed")];
        assert!(ours["requests"]["answered"].as_u64() > Some(0), "{ours:#}");
    }
    assert_eq!(processes_of_run(&lab.run_folder()), Vec::<String>::new());
}
