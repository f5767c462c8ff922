//! Nothing of a run outlives it, however the laboratory ends.
// Helpers outside of test functions panic like tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use crate::support::Lab;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Systems that resist: one ignores requests to end, two have children that leave
/// their session and group.
const STUBBORN: &str = r#"
[[system]]
name = "plain"
run = "sleep 600"

[[system]]
name = "deaf"
run = "sh -c 'trap \"\" TERM INT HUP; echo up; while :; do sleep 1; done'"
ready = "log up"

[[system]]
name = "parent"
run = "sh -c 'setsid sleep 600 & setsid sh -c \"trap : TERM; sleep 600; :\" & echo up; wait'"
ready = "log up"
count = 2

[[step]]
name = "write"
run = "mkdir -p {work}/deep && echo x > {work}/deep/file"

[[step]]
name = "long"
run = "setsid sleep 600 & wait"
"#;

fn signal(lab: &Lab, signal: Signal) {
    kill(
        Pid::from_raw(i32::try_from(lab.process.id()).unwrap()),
        signal,
    )
    .unwrap();
}

fn until_long_step(lab: &Lab) {
    lab.until("the long step begins", |lab| {
        lab.events()
            .contains(r#""kind":"step-started","name":"long""#)
    });
}

#[test]
fn a_killed_laboratory_leaves_nothing_whenever_it_dies() {
    // From before anything was started until well into the steps.
    for delay_ms in [0, 3, 10, 20, 40, 80, 160, 320, 640] {
        let mut lab = Lab::start(STUBBORN);
        std::thread::sleep(Duration::from_millis(delay_ms));
        signal(&lab, Signal::SIGKILL);
        lab.process.wait().unwrap();
        lab.assert_nothing_is_left();
    }
}

#[test]
fn a_killed_laboratory_leaves_nothing_of_a_step() {
    let mut lab = Lab::start(STUBBORN);
    until_long_step(&lab);
    assert_eq!(lab.work_folders().len(), 1);
    assert!(lab.processes().len() > 8, "{:#?}", lab.processes());
    signal(&lab, Signal::SIGKILL);
    lab.process.wait().unwrap();
    lab.assert_nothing_is_left();
}

#[test]
fn an_interrupted_laboratory_ends_in_order_with_code_4() {
    for name in [Signal::SIGINT, Signal::SIGTERM] {
        let mut lab = Lab::start(STUBBORN);
        until_long_step(&lab);
        signal(&lab, name);
        let status = lab.process.wait().unwrap();
        assert_eq!(status.code(), Some(4));
        // Nothing is left at its very end, and the reaper has nothing to do.
        assert_eq!(lab.processes(), Vec::<String>::new());
        assert_eq!(lab.work_folders().len(), 0);
        let events = lab.events();
        assert!(events.contains(r#""kind":"interrupted""#), "{events}");
        assert!(events.contains(name.as_str()), "{events}");
        assert!(
            events.contains("deaf\",\"text\":\"was ended by SIGKILL"),
            "{events}"
        );
        assert!(
            events.contains("plain\",\"text\":\"was ended by SIGTERM"),
            "{events}"
        );
    }
}

#[test]
fn a_second_interrupt_does_not_wait_for_those_that_resist() {
    let mut lab = Lab::start(STUBBORN);
    until_long_step(&lab);
    signal(&lab, Signal::SIGINT);
    lab.until("the first is heard", |lab| {
        lab.events().contains("interrupted")
    });
    signal(&lab, Signal::SIGINT);
    assert_eq!(lab.process.wait().unwrap().code(), Some(4));
    assert_eq!(lab.processes(), Vec::<String>::new());
    // `plain` comes last in order of stops, so it was killed like the others.
    assert!(
        lab.events()
            .contains("plain\",\"text\":\"was ended by SIGKILL"),
        "{}",
        lab.events()
    );
}

#[test]
fn an_interrupt_while_systems_start_is_in_order_too() {
    let mut lab = Lab::start(
        r#"
[[system]]
name = "never"
run = "sh -c 'sleep 600'"
ready = "log up"
ready_within = "10m"
[[step]]
name = "x"
hold = "1s"
"#,
    );
    lab.until("it starts", |lab| lab.events().contains("system-started"));
    signal(&lab, Signal::SIGTERM);
    assert_eq!(lab.process.wait().unwrap().code(), Some(4));
    assert_eq!(lab.processes(), Vec::<String>::new());
    assert!(lab.events().contains("interrupted"), "{}", lab.events());
}
