//! Truths about the processes of a system.

use std::fs;

use super::{Case, Found, Needs, system};
use crate::claims::Claim;
use crate::measured;
use crate::server::Plant;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case {
            needs: Needs::Nothing,
            name: "run: a child with one processor and 300 MiB".to_owned(),
            plant: Box::new(|folder| forks(folder, 300)),
        },
        Case {
            needs: Needs::Nothing,
            name: "run: no child".to_owned(),
            plant: Box::new(|folder| forks(folder, 0)),
        },
    ]
}

fn forks(folder: &std::path::Path, child_mib: usize) -> Found {
    let plant = Plant {
        child_mib,
        ..Plant::default()
    };
    let diary = folder.join("diary.jsonl");
    let file = folder.join("experiment.toml");
    let system = system("target", &plant, folder, &diary);
    let text = format!(
        r#"lab = 1
name = "truth"
{system}
[[step]]
name = "rest"
hold = "4s"

[[expect]]
that = "system.target.rss max > 250MiB"
[[expect]]
that = "system.target.cpu max > 0.2"
"#
    );
    fs::write(&file, text).expect("an experiment");
    let (told, verdict) = measured::run(folder, &file, "rest");
    let outcome = if child_mib > 0 { "pass" } else { "fail" };
    let outcomes = verdict["expectations"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let claims = outcomes
        .iter()
        .map(|one| {
            let that = one["that"].as_str().unwrap_or_default();
            let said = one["outcome"].as_str().unwrap_or_default();
            Claim::says(that, said, outcome)
        })
        .collect();
    Found {
        valid: verdict["outcome"] != "invalid",
        claims,
        verdict_is_right: verdict["outcome"] == outcome && outcomes.len() == 2,
        words: format!("{}{verdict:#}", told.text),
    }
}
