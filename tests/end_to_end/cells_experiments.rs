//! The experiments that repeat how Diego was measured, made small: every step runs, and what they
//! say is true.

use std::fs;

use serde_json::Value;

use crate::lab::{Finished, Lab, experiment, processes_of_run};

fn settings<'a>(settings: &[&'a str]) -> Vec<&'a str> {
    let pairs = settings.iter().flat_map(|setting| ["--set", *setting]);
    ["--json"].into_iter().chain(pairs).collect()
}

/// What the expectation came to that is about all of `words`.
#[track_caller]
fn outcome<'v>(verdict: &'v Value, words: &[&str]) -> &'v str {
    let all = verdict["expectations"].as_array().expect("expectations");
    let about = |one: &&Value| {
        let that = one["that"].as_str().expect("an expectation");
        words.iter().all(|word| that.contains(word))
    };
    let found = all.iter().find(about);
    let found = found.unwrap_or_else(|| panic!("no expectation about {words:?}"));
    found["outcome"].as_str().expect("an outcome")
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
    let lab = Lab::new();
    let small = ["calm=2s", "gone=1s", "back=60s", "again=60s", "lost=2000"];
    let set = settings(&[&FEZZIK[..], &small[..]].concat());
    let verdict = complete(&lab.run(&experiment("fezzik-lrps.toml"), &set));
    assert_eq!(
        outcome(&verdict, &["lost(containers.value)"]),
        "pass",
        "{verdict:#}"
    );
    assert_eq!(processes_of_run(&lab.run_folder()), Vec::<String>::new());
}
