//! PostgreSQL is the store. It is killed and comes back, then the server is killed and comes back: every
//! report that was acknowledged is there once, and compliance is what it was.

use crate::lab::wait_until;
use crate::postgres_cluster::Cluster;

use super::site::{FLEET, RUNS, Site};

#[test]
fn a_database_and_a_server_that_are_killed_lose_nothing_that_was_acknowledged() {
    let mut cluster = Cluster::start();
    let mut site = Site::new();
    site.store = Some(cluster.database("compliance"));
    site.directive("motd", "enforce", "Welcome to ${rudder.node.hostname}");
    site.directive("login", "audit", "permit_root no");
    site.rule("motd, login");
    site.start(true);
    wait_until("the agent's first policy", || {
        site.run().stdout.contains("audit_noncompliant")
    });
    assert_eq!(site.metric("compliance_store_up"), "1");

    let fleet = site.fleet();
    wait_until("reports of the fleet", || {
        site.of_fleet("run-acknowledged").len() > FLEET
    });
    cluster.kill();
    wait_until("the loss to be seen", || {
        site.metric("compliance_store_up") == "0"
    });
    assert_eq!(site.metric("compliance_store_losses_total"), "1");
    let refused = "rudder_relayd_reports_total{status=\"error\"}";
    // What it fetches is in the server's memory; what it sends waits with the agent.
    let away = site.once("agent").expect_code(1);
    // The loss was seen before this run came, or by it.
    let why = ["the database", "keeping it failed: reach the database"];
    let told =
        why.map(|why| format!("the server does not take it now (503 Service Unavailable): {why}"));
    assert!(
        told.iter().any(|told| away.stdout.contains(told)),
        "{}",
        away.stdout
    );
    assert!(
        away.stdout.contains("0 runs sent, 1 wait"),
        "{}",
        away.stdout
    );
    wait_until("refused uploads", || site.metric(refused) != "0");
    let before = site.of_fleet("run-signed").len();
    wait_until("runs that nobody takes", || {
        site.of_fleet("run-signed").len() > before || before == FLEET * RUNS
    });
    assert!(site.of_fleet("run-acknowledged").len() < site.of_fleet("run-signed").len());
    cluster.resume();
    wait_until("the fleet's runs to be taken", || {
        site.of_fleet("run-acknowledged").len() >= FLEET * RUNS
    });
    assert_eq!(site.metric("compliance_store_up"), "1");
    let done = site.run().expect_code(0);
    assert!(
        done.stdout.contains("2 runs sent, 0 wait"),
        "{}",
        done.stdout
    );
    drop(fleet);
    site.keeps_all_once();
}
