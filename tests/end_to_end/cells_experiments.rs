//! The experiments that repeat how Diego was measured, made small: every step runs, and what they
//! say is true.

use std::fs;

use serde_json::Value;

use crate::lab::{Finished, Lab, answered, experiment, is_open, processes_of_run};

fn settings<'a>(settings: &[&'a str]) -> Vec<&'a str> {
    let pairs = settings.iter().flat_map(|setting| ["--set", *setting]);
    ["--json"].into_iter().chain(pairs).collect()
}

/// The expectation that is about all of `words`.
#[track_caller]
fn expectation<'v>(verdict: &'v Value, words: &[&str]) -> &'v Value {
    let all = verdict["expectations"].as_array().expect("expectations");
    let about = |one: &&Value| {
        let that = one["that"].as_str().expect("an expectation");
        words.iter().all(|word| that.contains(word))
    };
    let found = all.iter().find(about);
    found.unwrap_or_else(|| panic!("no expectation about {words:?}"))
}

/// What the expectation came to that is about all of `words`.
#[track_caller]
fn outcome<'v>(verdict: &'v Value, words: &[&str]) -> &'v str {
    let found = &expectation(verdict, words)["outcome"];
    found.as_str().expect("an outcome")
}

/// The value of a metric of some expectation.
#[track_caller]
fn value_of(verdict: &Value, metric: &str) -> f64 {
    let all = verdict["expectations"].as_array().expect("expectations");
    let mut values = all.iter().filter_map(|one| one["values"][metric].as_f64());
    let found = values.next();
    found.unwrap_or_else(|| panic!("no value of {metric}: {verdict:#}"))
}

/// Every step ended well. How fast it was on a busy machine says nothing.
#[track_caller]
fn complete(run: &Finished) -> Value {
    assert!(matches!(run.code, 0..=3), "{}\n{}", run.stdout, run.stderr);
    let verdict = run.json();
    assert_eq!(verdict["reason"].as_str(), None, "{verdict:#}");
    verdict
}

const FEZZIK: [&str; 8] = [
    "cells=4", "few=8", "many=40", "pause=3s", "still=1s", "away=12s", "lives=8s", "beat=1s",
];

#[test]
fn every_task_is_told_to_its_end_with_faults_and_without() {
    let lab = Lab::new();
    let small = ["late=40", "rate=10/s", "lost=40", "again=60s"];
    let set = settings(&[&FEZZIK[..], &small[..]].concat());
    let verdict = complete(&lab.run(&experiment("fezzik-tasks.toml"), &set));
    assert_eq!(outcome(&verdict, &["task.complete"]), "pass", "{verdict:#}");
    let tasks = fs::read_to_string(lab.run_folder().join("lifecycles/task.csv"));
    // A header, then few, many, twice late, and few again.
    assert_eq!(
        tasks.expect("the tasks").lines().count(),
        1 + 8 + 40 + 2 * 40 + 8
    );
    let events = fs::read_to_string(lab.run_folder().join("events.jsonl")).expect("events");
    for fault in ["pause bbs", "kill cell"] {
        assert!(events.contains(fault), "{fault}: {events}");
    }
    assert_eq!(processes_of_run(&lab.run_folder()), Vec::<String>::new());
}

#[test]
fn every_instance_runs_again_after_faults() {
    let small = [
        "calm=2s",
        "gone=1s",
        "back=60s",
        "again=60s",
        "lost=2000",
        "patience=60s",
    ];
    let set = settings(&[&FEZZIK[..], &small[..]].concat());
    answered(1..=3, |_| {
        let lab = Lab::new();
        let verdict = complete(&lab.run(&experiment("fezzik-lrps.toml"), &set));
        assert_eq!(processes_of_run(&lab.run_folder()), Vec::<String>::new());
        let lost = expectation(&verdict, &["lost(containers.value)"]);
        if is_open(lost) {
            return Err(format!("{verdict:#}"));
        }
        assert_eq!(lost["outcome"], "pass", "{verdict:#}");
        Ok(())
    });
}

#[test]
fn what_dead_cells_ran_runs_elsewhere_and_how_long_that_took_is_told() {
    // Of four cells one dies, and its ten instances fit on the others.
    let small = [
        "cells=4",
        "instances=40",
        "calm=2s",
        "away=12s",
        "lives=8s",
        "beat=1s",
        "gone=1s",
        "back=60s",
        "lost=1000",
        "answers=60s",
        "patience=60s",
    ];
    let recovery = ["depth(containers.value)", "recovery(containers.value)"];
    let lost = ["lost(containers.value)"];
    let verdict = answered(1..=3, |_| {
        let lab = Lab::new();
        let verdict = complete(&lab.run(&experiment("kill-10-cells.toml"), &settings(&small)));
        assert_eq!(processes_of_run(&lab.run_folder()), Vec::<String>::new());
        match is_open(expectation(&verdict, &recovery)) || is_open(expectation(&verdict, &lost)) {
            true => Err(format!("{verdict:#}")),
            false => Ok(verdict),
        }
    });
    assert_eq!(outcome(&verdict, &recovery), "pass", "{verdict:#}");
    assert_eq!(outcome(&verdict, &lost), "pass", "{verdict:#}");
    assert_eq!(
        outcome(&verdict, &["bbs-answers.ok"]),
        "pass",
        "{verdict:#}"
    );
    // A quarter of what ran was gone, until the presence of its cell had expired, which takes
    // between 7 and 8 s from its last renewal.
    let value = |metric: &str| value_of(&verdict, metric);
    let depth = value("depth(probe.containers.value)");
    assert!((0.2..=0.3).contains(&depth), "{depth}");
    let recovery = value("recovery(probe.containers.value)");
    assert!(recovery > 5.0, "{recovery}");
    assert!(
        value("lost(probe.containers.value)") > 5.0 * 8.0,
        "{verdict:#}"
    );
}

#[test]
fn the_benchmark_of_a_bbs_counts_every_call() {
    let lab = Lab::new();
    let small = [
        "processes=120",
        "reps=7",
        "trials=3",
        "cycle=1s",
        "writes=40",
        "fetches=3",
        "passes=2",
        "every=500ms",
    ];
    let run = lab.run(&experiment("benchmark-bbs.toml"), &settings(&small));
    let verdict = complete(&run);
    let log = fs::read_dir(lab.run_folder().join("logs")).expect("the logs");
    let mut logs = log.map(|entry| entry.expect("a log").path());
    let log = logs.find(|path| path.to_string_lossy().ends_with("benchmarks.log"));
    let table = fs::read_to_string(log.expect("the log of the step")).expect("the table");
    let count = |row: &str| {
        let line = table.lines().find(|line| line.starts_with(row));
        let line = line.unwrap_or_else(|| panic!("no {row}: {table}"));
        let counts = line[row.len()..].split_whitespace().next();
        counts.and_then(|count| count.parse::<u32>().ok())
    };
    for (row, calls) in [
        ("route-emitter fetch", 3),
        ("nsync-bulker fetch", 3),
        ("convergence gathering", 2),
        ("rep bulk fetch", 7 * 3),
        ("rep bulk loop", 7 * 3),
        ("start actual LRP", 120 * 3),
        ("turns began late by", 7 * 3),
    ] {
        assert_eq!(count(row), Some(calls), "{table}");
    }
    // A fifth of 360, drawn.
    let claims = count("claim actual LRP").expect("claims");
    assert!((40..=110).contains(&claims), "{table}");
    assert_eq!(
        count("calls waited for a place"),
        Some(7 * 3 + 360 + claims)
    );
    assert!(
        verdict["expectations"]
            .as_array()
            .is_some_and(|all| { all.iter().all(|one| one["outcome"] != "inconclusive") }),
        "{verdict:#}"
    );
}

#[test]
fn a_deployment_that_is_held_is_looked_at_for_growth() {
    answered(["held=8s", "held=30s", "held=60s"], |held| {
        let lab = Lab::new();
        let small = [
            "batches=1",
            "running=96",
            "cells=2",
            "settle=2s",
            held,
            "poll=300ms",
            "soon=60s",
            "patience=60s",
            "flat=100%",
        ];
        let verdict = complete(&lab.run(&experiment("stress-10k.toml"), &settings(&small)));
        assert_eq!(processes_of_run(&lab.run_folder()), Vec::<String>::new());
        let latency = outcome(&verdict, &["lists.latency p99"]);
        assert_eq!(latency, "pass", "{verdict:#}");
        let memory = expectation(&verdict, &["growth(system.bbs.rss)"]);
        // How evenly a busy machine lets anybody work says nothing, but there is a number.
        let metrics = [
            "rep-bulk.value",
            "emitter-bulk.value",
            "convergence.value",
            "lists.latency",
        ];
        let lacks = |metric: &&str| {
            let words = format!("growth({metric})");
            let found = expectation(&verdict, &[words.as_str()]);
            found["values"][format!("'held': growth(probe.{metric})")].is_null() && is_open(found)
        };
        if is_open(memory) || metrics.iter().any(lacks) {
            return Err(format!("{held}: {verdict:#}"));
        }
        assert_eq!(memory["outcome"], "pass", "{verdict:#}");
        for metric in metrics {
            value_of(&verdict, &format!("'held': growth(probe.{metric})"));
        }
        Ok(())
    });
}
