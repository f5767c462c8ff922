//! A server of compliance, an agent that keeps a real folder, and a fleet beside it, as a user starts them.

mod experiments;
mod outage;
mod relay;
mod site;

use std::fs;

use crate::lab::wait_until;
use site::{FLEET, RUNS, Site};

#[test]
fn what_a_server_answered_outlives_it_and_only_a_nodes_own_key_speaks_for_it() {
    let mut site = Site::new();
    site.directive("motd", "enforce", "Welcome to ${rudder.node.hostname}");
    site.rule("motd");
    site.start(true);
    repaired_once_then_compliant(&mut site);
    changed_is_repaired(&mut site);
    audited(&mut site);
    killed_beside_a_fleet(&mut site);
    a_foreign_key(&mut site);

    let before = (site.stored(), site.shown("login"), site.shown("motd"));
    site.kill();
    site.start(false);
    let after = (site.stored(), site.shown("login"), site.shown("motd"));
    assert_eq!(after, before, "what is kept, and what follows of it");
}

fn repaired_once_then_compliant(site: &mut Site) {
    // It is accepted at its first inventory; the policy follows.
    wait_until("the agent's first policy", || site.run().code == 0);
    assert_eq!(site.file("motd"), "Welcome to real.example.org\n");
    let (percent, status, _) = site.shown("motd");
    assert_eq!((percent, &*status), (100.0, "successRepaired"));
    let again = site.run().expect_code(0);
    assert!(again.stdout.contains(" 0 repaired; 1 runs sent, 0 wait"));
    let (percent, status, _) = site.shown("motd");
    assert_eq!((percent, &*status), (100.0, "successAlreadyOK"));
}

fn changed_is_repaired(site: &mut Site) {
    site.directive("motd", "enforce", "Mind the gap");
    site.apply();
    let mut said = String::new();
    wait_until("the changed policy", || {
        said = site.run().expect_code(0).stdout;
        site.file("motd") == "Mind the gap\n"
    });
    assert!(
        said.contains("result_repaired  Text /motd: file_content /motd was repaired"),
        "{said}"
    );
    assert_eq!(site.shown("motd").1, "successRepaired");
}

fn audited(site: &mut Site) {
    site.directive("login", "audit", "permit_root no");
    site.rule("motd, login");
    site.apply();
    wait_until("the audit", || {
        let done = site.run().expect_code(0);
        done.stdout.contains("audit_noncompliant")
    });
    let expected = (
        0.0,
        "auditNonCompliant",
        "file_content /login was not correct: there is no such file",
    );
    let (percent, status, message) = site.shown("login");
    assert_eq!((percent, &*status, &*message), expected);
    assert!(
        !site.machine().join("login").exists(),
        "an audit changes nothing"
    );
}

fn killed_beside_a_fleet(site: &mut Site) {
    let _fleet = site.fleet();
    wait_until("reports of the fleet", || {
        site.of_fleet("run-acknowledged").len() > 2 * FLEET
    });
    site.kill();
    let before = site.of_fleet("run-signed").len();
    let away = site.once("agent").expect_code(1);
    assert!(
        away.stdout.contains("0 runs sent, 1 wait"),
        "{}",
        away.stdout
    );
    wait_until("runs that nobody takes", || {
        site.of_fleet("run-signed").len() > before + FLEET
    });
    site.start(false);
    wait_until("the fleet's runs to be taken", || {
        site.of_fleet("run-acknowledged").len() >= FLEET * RUNS
    });
    let done = site.run().expect_code(0);
    assert!(
        done.stdout.contains("2 runs sent, 0 wait"),
        "{}",
        done.stdout
    );
    site.has_all_once();
}

/// An agent that says it is the real one, with the key of another node that is accepted too.
fn a_foreign_key(site: &mut Site) {
    let forged = "rudder_relayd_reports_total{status=\"forged\"}";
    let forbidden = "compliance_policy_requests_total{status=\"forbidden\"}";
    assert_eq!(
        (&*site.metric(forged), &*site.metric(forbidden)),
        ("0", "0")
    );
    fs::create_dir(site.lab.path("thief")).expect("a folder");
    for (from, name) in [
        ("agent", "uuid"),
        ("agent", "policy.json.gz"),
        ("fleet/agent-3", "agent.key"),
        ("fleet/agent-3", "agent.pem"),
    ] {
        let from = site.lab.path(from).join(name);
        fs::copy(from, site.lab.path("thief").join(name)).expect("a copy");
    }
    let (runs, _) = site.stored();
    let before = site.shown("login");
    let done = site.once("thief").expect_code(1);
    for told in [
        "problem: send the inventory: the server refuses (403 Forbidden)",
        "problem: the certificate that was shown is not that of the node",
        "problem: send the run ",
        "0 runs sent, 0 wait",
    ] {
        assert!(done.stdout.contains(told), "{told}:\n{}", done.stdout);
    }
    assert_eq!(
        (&*site.metric(forged), &*site.metric(forbidden)),
        ("1", "1")
    );
    assert_eq!(
        site.stored(),
        (runs, 1),
        "kept aside, and not among the runs"
    );
    assert_eq!(site.shown("login"), before);
}
