//! Nothing of a run outlives it, however the laboratory ends.
// Helpers outside of test functions panic like tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::{Duration, Instant};

use crate::support::{Lab, options, passed, plan};
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

/// Faults that begin and end all the time, of systems that leave their group.
const BROKEN: &str = r#"
[[system]]
name = "paused"
run = "sh -c 'setsid sleep 600 & echo up; wait'"
ready = "log up"
count = 2

[[system]]
name = "killed"
run = "sh -c 'setsid sh -c \"trap : TERM; sleep 600; :\" & echo up; wait'"
ready = "log up"

[[system]]
name = "supervised"
run = "sh -c 'sleep 0.1'"
on_exit = "restart"
restart_after = "10ms"

[[system]]
name = "slowed"
run = "sh -c 'setsid sh -c \"while :; do :; done\" & echo up; while :; do sleep 0.01; done'"
ready = "log up"

[[system]]
name = "exhausted"
run = "sh -c 'setsid sleep 600 & echo up; wait'"
ready = "log up"

[[system]]
name = "nagged"
run = "sh -c 'setsid sleep 600 & echo up; wait'"
ready = "log up"

[[step]]
name = "nag"
hold = "1ms"
fault = { pause = "nagged", for = "30ms", every = "exponential 20ms", through = "broken" }

[[step]]
name = "broken"
hold = "2s"
fault = [
  { slow = "slowed", to = "10%", at = "0s", for = "1500ms" },
  { custom = "files", do = "touch made-by-a-fault", undo = "rm -f made-by-a-fault", at = "0s", for = "20ms", every = "10ms" },
  { exhaust = "exhausted", descriptors = 3, at = "0s", for = "100ms" },
  { exhaust = "exhausted", memory = "1MiB", at = "200ms", for = "1s" },
  { pause = "paused", pick = "all", at = "0s", for = "60ms" },
  { pause = "paused.1", at = "80ms", for = "900ms" },
  { kill = "killed", at = "0s", for = "50ms" },
  { restart = "killed", at = "300ms" },
  { kill = "killed", at = "700ms", for = "1s" },
]
"#;

/// The same with a system whose disk is filled, where one can be mounted.
fn broken() -> String {
    let filled = r#"
[[system]]
name = "filled"
run = "sh -c 'setsid sleep 600 > {disk}/held & echo up; wait'"
ready = "log up"
disk = "1MiB"
count = 2
"#;
    let fault = r#"fault = [
  { exhaust = "filled.1", disk = "0B", at = "100ms", for = "1s" },"#;
    match processes::may_mount() {
        true => filled.to_owned() + &BROKEN.replace("fault = [", fault),
        false => BROKEN.to_owned(),
    }
}

/// A multiplicative generator (MINSTD); the seed repeats the moments.
fn next(state: &mut u64) -> u64 {
    *state = *state * 48_271 % 2_147_483_647;
    *state
}

#[test]
fn a_laboratory_killed_among_faults_leaves_nothing_at_100_random_moments() {
    const SEED: u64 = 20_261_122;
    std::thread::scope(|scope| {
        for worker in 0..4 {
            scope.spawn(move || {
                let mut state = SEED + worker;
                for turn in 0..25 {
                    let delay = Duration::from_millis(next(&mut state) % 1500);
                    let mut lab = Lab::start(&broken());
                    std::thread::sleep(delay);
                    signal(&lab, Signal::SIGKILL);
                    lab.process.wait().unwrap();
                    eprintln!("seed {SEED}, worker {worker}, turn {turn}: killed after {delay:?}");
                    lab.assert_nothing_is_left();
                    // Undone twice, for a command may outlive the laboratory by a moment.
                    let made = lab.folder.path().join("made-by-a-fault");
                    let until = Instant::now() + Duration::from_secs(30);
                    while made.exists() {
                        assert!(
                            Instant::now() < until,
                            "worker {worker}, turn {turn}: what a fault made is still there: {}",
                            lab.events()
                        );
                        std::thread::sleep(Duration::from_millis(20));
                    }
                }
            });
        }
    });
}

#[test]
fn an_interrupt_among_faults_lets_go_what_is_paused() {
    let mut lab = Lab::start(
        r#"
[[system]]
name = "paused"
run = "sh -c 'trap \"exit 0\" TERM; echo up; while :; do sleep 0.05; done'"
ready = "log up"
[[step]]
name = "broken"
fault = { pause = "paused", for = "10m" }
"#,
    );
    lab.until("the fault begins", |lab| {
        lab.events().contains("fault-began")
    });
    signal(&lab, Signal::SIGINT);
    assert_eq!(lab.process.wait().unwrap().code(), Some(4));
    assert_eq!(lab.processes(), Vec::<String>::new());
    // It heard the request to end, which a process that is stopped does not.
    let events = lab.events();
    assert!(
        events.contains("paused\",\"text\":\"ended with status 0"),
        "{events}"
    );
}

/// A fault whose command is under way when the run ends does nothing after it was undone, while
/// a system takes its time to end.
#[test]
fn a_fault_that_is_still_being_made_when_the_run_ends_is_not_made_later() {
    let mut lab = Lab::start(
        r#"
[[system]]
name = "deaf"
run = "sh -c 'trap \"\" TERM INT HUP; echo up; while :; do sleep 0.1; done'"
ready = "log up"
[[step]]
name = "broken"
fault = { custom = "file", do = "touch begun; sleep 2; touch made", undo = "rm -f made", for = "10m" }
"#,
    );
    let made = lab.folder.path().join("made");
    lab.until("the fault's command begins", |lab| {
        lab.folder.path().join("begun").exists()
    });
    signal(&lab, Signal::SIGINT);
    assert_eq!(lab.process.wait().unwrap().code(), Some(4));
    let events = lab.events();
    assert!(
        events.contains("deaf\",\"text\":\"was ended by SIGKILL"),
        "it took five seconds: {events}"
    );
    assert!(!made.exists());
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

#[test]
fn what_a_run_left_that_was_killed_with_its_guardian_is_undone_by_the_next() {
    let mut lab = Lab::start(
        r#"
[[system]]
name = "exhausted"
run = "sh -c 'echo up; sleep 600'"
ready = "log up"
[[step]]
name = "broken"
fault = { exhaust = "exhausted", descriptors = 0, for = "10m" }
"#,
    );
    lab.until("the fault begins", |lab| {
        lab.events().contains("fault-began")
    });
    let processes = lab.processes();
    let guardian = processes.iter().find(|line| line.contains(" guardian "));
    let guardian = guardian.unwrap_or_else(|| panic!("{processes:#?}"));
    let pid = guardian
        .split(['/', ' '])
        .find_map(|word| word.parse().ok());
    kill(Pid::from_raw(pid.unwrap()), Signal::SIGKILL).unwrap();
    signal(&lab, Signal::SIGKILL);
    lab.process.wait().unwrap();
    lab.until("all processes end", |lab| lab.processes().is_empty());
    let runs = lab.folder.path().join("runs");
    let ledgers = runs.join("faults-to-undo");
    assert_eq!(std::fs::read_dir(&ledgers).unwrap().count(), 1);
    let (next, text) = plan("[[step]]\nname = \"next\"\nhold = \"1ms\"\n");
    let finished = lab_runner::run(next, &text, options(&runs)).unwrap();
    passed(&finished);
    assert!(!ledgers.exists());
}
