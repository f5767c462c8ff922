//! The BBS answers, tells and asks as the recorded one did.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use crate::replay;
use std::collections::BTreeMap;

/// Scenarios that do not pass yet, with what they wait for.
const WAITING: &[(&str, &str)] = &[
    ("converge_crash_backoff", "convergence"),
    ("converge_missing_and_extra", "convergence"),
    ("converge_suspect", "convergence"),
    ("converge_suspect_returns", "convergence"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scenarios_are_as_recorded() {
    let scenarios = replay::scenario::all();
    assert!(
        scenarios.len() >= 47,
        "only {} scenarios found",
        scenarios.len()
    );
    let waiting: BTreeMap<_, _> = WAITING.iter().copied().collect();
    for name in waiting.keys() {
        assert!(
            scenarios.iter().any(|scenario| scenario.name == *name),
            "no scenario {name}"
        );
    }
    let mut replays = tokio::task::JoinSet::new();
    for scenario in scenarios {
        let waits = waiting.contains_key(scenario.name.as_str());
        replays.spawn(async move {
            let problems = replay::replay(&scenario, waits).await;
            (scenario.name, problems)
        });
    }
    let mut failures = Vec::new();
    while let Some(done) = replays.join_next().await {
        let (name, problems) = done.expect("a replay panicked");
        match (waiting.get(name.as_str()), problems.is_empty()) {
            (None, true) | (Some(_), false) => {}
            (None, false) => {
                let few: Vec<&str> = problems.iter().take(6).map(|text| cut(text)).collect();
                failures.push(format!(
                    "{name}: {} differences\n  {}",
                    problems.len(),
                    few.join("\n  ")
                ));
            }
            (Some(what), true) => {
                failures.push(format!(
                    "{name} waits for {what}, but passes: take it off the list"
                ));
            }
        }
    }
    failures.sort();
    assert!(
        failures.is_empty(),
        "{} scenarios:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(1500)]
}
