//! Faults of connections by rules of the kernel, in a network of the run's own.
// Helpers outside of test functions panic like tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::support::{Lab, faults, passed, run, server};
use lab_runner::Finished;
use lab_store::Outcome;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Whether the test has to be left out, which is told.
fn unable() -> bool {
    match lab_runner::may_have_own_network() {
        Ok(()) => false,
        Err(why) => {
            eprintln!("skipped, there are no rules of the kernel here: {why}");
            true
        }
    }
}

/// Makes an experiment on a thread of its own, which stays in the network of the run.
fn made(text: &str) -> (tempfile::TempDir, Finished) {
    let text = format!("network = \"own\"\n{text}");
    std::thread::spawn(move || run(&text)).join().unwrap()
}

/// A web server under load, whose requests wait for a second. Where others leave the generator no
/// processor, the run is made again.
fn under_load(steps: &str) -> Option<(tempfile::TempDir, Finished)> {
    if unable() {
        return None;
    }
    let scripts = tempfile::tempdir().unwrap();
    let server = server(scripts.path());
    let text = format!(
        r#"
[[system]]
name = "web"
run = "python3 {} {{port}}"
ready = "tcp"
[[load]]
name = "traffic"
http = "GET http://{{web.addr}}/"
rate = "constant 100/s"
timeout = "1s"
guard = {{ late_after = "10s", steal_share = "100%" }}
{steps}"#,
        server.display()
    );
    let mut last = made(&text);
    for _ in 0..2 {
        if last.1.verdict.outcome != Outcome::Invalid {
            break;
        }
        last = made(&text);
    }
    Some(last)
}

#[test]
fn a_partition_is_an_outage_and_a_reset_fails_what_is_under_way() {
    let Some((_folder, finished)) = under_load(
        r#"
[[step]]
name = "cut off"
load = { traffic = "on" }
hold = "2s"
fault = { partition = "web", for = "3s" }
[[step]]
name = "connected"
load = { traffic = "on" }
hold = "6s"
[[step]]
name = "reset"
load = { traffic = "on" }
hold = "2s"
fault = { reset = "web", for = "300ms" }
[[step]]
name = "again"
load = { traffic = "on" }
hold = "3s"
[[expect]]
# Handshakes that nobody answers fail after a second; whoever waits for a connection is late.
that = "'cut off': lost(traffic) >= 10 and 'cut off': depth(traffic) >= 75%"
[[expect]]
that = "'cut off': recovery(traffic) > 50ms and 'cut off': recovery(traffic) < 60s"
[[expect]]
that = "'reset': lost(traffic) >= 10"
"#,
    ) else {
        return;
    };
    let made = faults(&finished);
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Pass, "{verdict:?} {made:#?}");
    assert_eq!(made[0].targets, ["traffic -> web"]);
    for fault in &made {
        let text = &fault.text;
        assert!(
            text.contains("packets did not arrive") && !text.starts_with("0 "),
            "{text}"
        );
    }
}

#[test]
fn what_the_kernel_has_no_rule_for_goes_through_the_proxy_in_the_same_network() {
    let Some((_folder, finished)) = under_load(
        r#"
[[step]]
name = "far away"
load = { traffic = "on" }
hold = "3s"
fault = [
  { delay = "traffic -> web", by = "300ms", at = "0s", for = "2900ms" },
  { lose = "traffic -> web", share = "1%", at = "0s", for = "2900ms" },
]
[[expect]]
that = "traffic p50 >= 150ms and traffic errors < 50%"
"#,
    ) else {
        return;
    };
    let made = faults(&finished);
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Pass, "{verdict:?} {made:#?}");
    for fault in &made {
        assert!(fault.text.contains("connections, "), "{}", fault.text);
    }
}

#[test]
fn a_fault_that_is_kept_stands_until_the_end() {
    let Some((_folder, finished)) = under_load(
        r#"
[[step]]
name = "as usual"
load = { traffic = "on" }
hold = "1s"
[[step]]
name = "cut off"
hold = "10ms"
fault = { partition = "web", at = "0s", keep = true }
[[step]]
name = "still"
load = { traffic = "on" }
hold = "1s"
[[expect]]
that = "'as usual': traffic errors < 50% and 'still': traffic errors == 100%"
"#,
    ) else {
        return;
    };
    passed(&finished);
}

/// The network of a process; `None`: it is gone.
fn network(process: &std::path::Path) -> Option<PathBuf> {
    std::fs::read_link(process.join("ns/net")).ok()
}

#[test]
fn the_network_ends_with_a_laboratory_that_is_killed() {
    if unable() {
        return;
    }
    let mut lab = Lab::start(
        r#"
network = "own"
[[system]]
name = "web"
run = "python3 -m http.server {port} --bind 127.0.0.1"
ready = "tcp"
[[load]]
name = "traffic"
http = "GET http://{web.addr}/"
rate = "constant 20/s"
[[step]]
name = "cut off"
load = { traffic = "on" }
hold = "600s"
fault = { partition = "web", at = "0s", for = "600s" }
"#,
    );
    lab.until("the fault begins", |lab| {
        lab.events().contains(r#""kind":"fault-began""#)
    });
    let all = lab.processes();
    let paths = all.iter().filter_map(|line| line.split(' ').next());
    let mut own: BTreeSet<PathBuf> = paths.filter_map(|path| network(path.as_ref())).collect();
    let here = network("/proc/self".as_ref()).unwrap();
    own.remove(&here);
    assert_eq!(own.len(), 1, "one network for all of it: {own:?}, {all:#?}");
    let number = i32::try_from(lab.process.id()).unwrap();
    kill(Pid::from_raw(number), Signal::SIGKILL).unwrap();
    lab.process.wait().unwrap();
    lab.assert_nothing_is_left();
    lab.until("nothing is in the network any more", |_| {
        let entries = std::fs::read_dir("/proc").unwrap();
        let mut all = entries.filter_map(|entry| network(&entry.ok()?.path()));
        !all.any(|one| own.contains(&one))
    });
}
