//! The BBS answers, tells and asks as the recorded one did.

use crate::replay;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scenarios_are_as_recorded() {
    let scenarios = replay::scenario::all();
    assert!(
        scenarios.len() >= 47,
        "only {} scenarios found",
        scenarios.len()
    );
    let mut replays = tokio::task::JoinSet::new();
    for scenario in scenarios {
        replays.spawn(async move {
            let problems = replay::replay(&scenario).await;
            (scenario.name, problems)
        });
    }
    let mut failures = Vec::new();
    while let Some(done) = replays.join_next().await {
        let (name, problems) = done.expect("a replay panicked");
        if !problems.is_empty() {
            let few: Vec<&str> = problems.iter().take(6).map(|text| cut(text)).collect();
            failures.push(format!(
                "{name}: {} differences\n  {}",
                problems.len(),
                few.join("\n  ")
            ));
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
