//! Compliance by the hour, from one server to the next.

use super::*;
use crate::killed::Process;
use crate::peers::{metric, until};

const REPORT: [&str; 2] = [
    "A file@@result_error@@r@@d@@i1@@Text@@/tmp/x",
    "A file@@result_success@@r@@d@@i1@@Text@@/tmp/x",
];

/// The lowest and the highest compliance of all hours.
async fn extremes(admin: &Admin, rule: &str) -> Option<(f64, f64)> {
    let found = admin.get(&format!("compliance/history{rule}")).await;
    let hours = found["hours"].as_array().unwrap().iter();
    let hours = hours.map(|hour| {
        (
            hour["lowest"].as_f64().unwrap(),
            hour["highest"].as_f64().unwrap(),
        )
    });
    hours.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

#[tokio::test(flavor = "multi_thread")]
async fn history_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(folder.path()).await;
    let admin = Admin::of(folder.path(), &process.url).await;
    let node = Node::new(A, &process.url);
    assert_eq!(node.enrol().await, 201);
    let first = node.policy().await.0;
    admin.apply(&super::folder()).await;
    let policy = node.policy_after(&first).await;
    let start = jiff::Timestamp::now().as_second();
    assert_eq!(node.run(start, &policy, &REPORT[..1]).await, 201);
    let zero = async || {
        extremes(&admin, "?rule=r")
            .await
            .is_some_and(|(low, _)| low == 0.0)
    };
    until(zero, "an hour that has an error").await;
    // What was seen by then is written by the next two writings of the hour.
    let rows = async || {
        let rows = metric(&node, "compliance_history_rows_total ").await;
        rows.parse::<u64>().unwrap()
    };
    let before = rows().await;
    until(
        async || rows().await >= before + 4,
        "the hour to be written",
    )
    .await;
    process.kill();

    let process = Process::start(folder.path()).await;
    let admin = Admin::of(folder.path(), &process.url).await;
    let node = Node::with(A, node.identity.clone(), &process.url);
    assert_eq!(node.run(start + 1, &policy, &REPORT[1..]).await, 201);
    // What is only known of before, and what is only known of since.
    for rule in ["", "?rule=r"] {
        let both = async || {
            let found = extremes(&admin, rule).await;
            found.is_some_and(|(_, highest)| highest == 100.0)
        };
        until(both, "an hour without errors").await;
        let (lowest, _) = extremes(&admin, rule).await.unwrap();
        assert!(lowest < 100.0, "{rule}: the error is forgotten");
    }
    process.kill();
}
