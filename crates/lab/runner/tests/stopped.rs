//! Loads of a laboratory that is stopped again and again, and goes on.
// Helpers outside of test functions panic like tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::thread::sleep;
use std::time::Duration;

use crate::support::{Lab, server};
use lab_store::Outcome;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Whether a target that answers after `delay` has more than 40 answers a second with one user, as a
/// laboratory says that runs and stands still in turns.
fn told(delay: &str, runs: Duration, stands: Duration) -> Outcome {
    let scripts = tempfile::tempdir().unwrap();
    let server = server(scripts.path());
    let mut lab = Lab::start(&format!(
        r#"
[[system]]
name = "slow"
run = "python3 {} {{port}} {delay}"
ready = "tcp"
[[load]]
name = "traffic"
http = "GET http://{{slow.addr}}/"
model = "closed"
users = 1
guard = {{ late_after = "1s", steal_share = "100%" }}
[[step]]
name = "on"
load = {{ traffic = "on" }}
hold = "4s"
[[expect]]
that = "'on': traffic rate > 40/s"
"#,
        server.display()
    ));
    let says = |lab: &Lab, event: &str| lab.events().contains(&format!(r#""kind":"{event}""#));
    lab.until("the step begins", |lab| says(lab, "step-started"));
    let process = Pid::from_raw(i32::try_from(lab.process.id()).unwrap());
    lab.until("the step ends", |lab| {
        sleep(runs);
        kill(process, Signal::SIGSTOP).unwrap();
        sleep(stands);
        kill(process, Signal::SIGCONT).unwrap();
        says(lab, "step-ended")
    });
    let code = lab.process.wait().unwrap().code();
    let outcomes = [Outcome::Pass, Outcome::Fail, Outcome::Invalid];
    let told = outcomes.into_iter().find(|one| Some(*one as i32) == code);
    told.unwrap_or_else(|| panic!("{code:?}"))
}

const MS: fn(u64) -> Duration = Duration::from_millis;

/// It can answer several hundred, and was hardly asked.
#[test]
fn a_rate_that_users_of_a_stopped_laboratory_did_not_ask_for_is_not_the_targets_fault() {
    assert_eq!(told("0.002", MS(50), MS(950)), Outcome::Invalid);
}

/// It answers ten, and would have answered not many more.
#[test]
fn a_target_that_is_too_slow_fails_however_a_laboratory_is_stopped() {
    assert_eq!(told("0.1", MS(400), MS(100)), Outcome::Fail);
}
