//! A relay stands between the server and all agents. Both are killed in the middle: every run is there in the
//! end, and once.

use crate::lab::wait_until;

use super::site::{FLEET, RUNS, Site};

#[test]
fn a_server_and_a_relay_that_are_killed_lose_nothing_and_count_nothing_twice() {
    let mut site = Site::new();
    site.directive("motd", "enforce", "Welcome to ${rudder.node.hostname}");
    site.directive("login", "audit", "permit_root no");
    site.rule("motd, login");
    site.start(true);
    site.start_relay();
    site.make_relay();
    wait_until("the agent's first policy, over the relay", || {
        site.run().stdout.contains("audit_noncompliant")
    });
    assert_eq!(site.file("motd"), "Welcome to real.example.org\n");

    let fleet = site.fleet();
    let (signed, taken) = ("run-signed", "run-acknowledged");
    wait_until("reports of the fleet", || {
        site.of_fleet(taken).len() > FLEET
    });
    site.kill();
    let before = site.of_fleet(taken).len();
    wait_until("runs that only the relay has", || {
        site.of_fleet(taken).len() > before + FLEET || before + FLEET >= FLEET * RUNS
    });
    assert!(waiting(&site) > Some(0), "{:?}", waiting(&site));
    site.kill_relay();
    let before = site.of_fleet(signed).len();
    wait_until("runs that nobody takes", || {
        site.of_fleet(signed).len() > before || before == FLEET * RUNS
    });
    let away = site.once("agent").expect_code(1);
    assert!(
        away.stdout.contains("0 runs sent, 1 wait"),
        "{}",
        away.stdout
    );
    // The relay is back first, then the server; the relay dies once more while it hands on.
    site.start_relay();
    wait_until("the relay to be back", || waiting(&site).is_some());
    assert!(waiting(&site) > Some(0), "what it took is still there");
    site.start(false);
    wait_until("some to be handed on", || site.stored().0 > FLEET);
    site.kill_relay();
    site.start_relay();
    wait_until("the fleet's runs to be taken", || {
        site.of_fleet(taken).len() >= FLEET * RUNS
    });
    let done = site.run().expect_code(0);
    assert!(
        done.stdout.contains("2 runs sent, 0 wait"),
        "{}",
        done.stdout
    );
    wait_until("the relay to have nothing left", || {
        waiting(&site) == Some(0)
    });
    let undelivered = "rudder_relayd_reports_total{status=\"forward_error\"}";
    assert_eq!(site.relay_metric(undelivered), "0");
    drop(fleet);
    site.keeps_all_once();
}

/// How many uploads the relay has that the server has not taken; none as long as it does not answer.
fn waiting(site: &Site) -> Option<usize> {
    site.relay_metric("compliance_relay_spool_items")
        .parse()
        .ok()
}
