//! Faults of the file's own: done by a request or a command, and undone by another.
// Helpers outside of test functions panic like tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Lab, faults, log, passed, run, server};
use lab_store::Outcome;

#[test]
fn requests_do_and_undo_a_fault_turn_by_turn() {
    let scripts = tempfile::tempdir().unwrap();
    let server = server(scripts.path());
    let (folder, finished) = run(&format!(
        r#"
[[system]]
name = "web"
run = "python3 {} {{port}}"
ready = "tcp"
[[step]]
name = "break"
hold = "1s"
http = "GET http://{{web.addr}}/held"
[step.fault]
custom = "web is broken"
for = "50ms"
every = "200ms"
do = {{ request = "PUT http://{{web.addr}}/break", body = '{{"mode": "slow"}}' }}
undo = {{ request = "PUT http://{{web.addr}}/mend", expect = "status 200" }}
[[step]]
name = "afterwards"
http = "GET http://{{web.addr}}/afterwards"
"#,
        server.display()
    ));
    passed(&finished);
    let text = log(&finished, "web");
    let saw: Vec<&str> = text.lines().filter(|path| *path != "/held").collect();
    let (last, turns) = saw.split_last().unwrap();
    assert_eq!(*last, "/afterwards");
    assert!(turns.len() >= 4, "{saw:?}");
    for turn in turns.chunks(2) {
        assert_eq!(turn, ["/break", "/mend"], "{saw:?}");
    }
    let made = faults(&finished);
    assert_eq!(made.len(), turns.len() / 2);
    for fault in &made {
        assert_eq!(
            (&*fault.kind, &*fault.targets[0]),
            ("custom", "web is broken")
        );
        assert_eq!(fault.text, "undone, answered 200, 0 B");
    }
    // Both concern only what ends with the run.
    assert!(!folder.path().join("faults-to-undo").exists());
}

/// A step with a fault that makes a file, by a command which then does this too.
fn file_there(path: &str, also: &str, length: &str) -> String {
    format!(
        r#"
[[step]]
name = "there"
hold = "1ms"
fault = {{ custom = "a file is there", do = "touch {path}{also}", undo = "rm -f {path}", at = "0s", {length} }}
run = "until test -e {path}; do sleep 0.01; done"
[[step]]
name = "gone"
run = "! test -e {path}"
"#
    )
}

#[test]
fn commands_do_and_undo_a_fault_which_is_there_as_long_as_its_step() {
    let scripts = tempfile::tempdir().unwrap();
    let file = scripts.path().join("made");
    let (folder, finished) = run(&file_there(&file.display().to_string(), "", "keep = false"));
    passed(&finished);
    assert_eq!(faults(&finished)[0].text, "undone by its command");
    assert!(!folder.path().join("faults-to-undo").exists());
}

#[test]
fn what_was_kept_or_failed_half_way_is_undone_when_the_run_ends() {
    for (also, length, expected) in [
        ("", "keep = true", Outcome::Error),
        (
            " && echo full >&2 && exit 3",
            "for = \"10m\"",
            Outcome::Error,
        ),
    ] {
        let scripts = tempfile::tempdir().unwrap();
        let file = scripts.path().join("made");
        let (folder, finished) = run(&file_there(&file.display().to_string(), also, length));
        let verdict = &finished.verdict;
        assert_eq!(verdict.outcome, expected, "{verdict:?}");
        // Kept, it was still there in the next step.
        let said = format!("{verdict:?}");
        let why = if also.is_empty() {
            "step \\\"gone\\\""
        } else {
            "status 3"
        };
        assert!(said.contains(why), "{said}");
        assert!(!file.exists(), "{length}");
        assert!(!folder.path().join("faults-to-undo").exists());
    }
}

/// An undo that names a system is about the run, and no guardian makes it.
fn about_a_system(path: &str, step: &str) -> String {
    format!(
        r#"
[[system]]
name = "web"
run = "sleep 600"
[[step]]
name = "there"
hold = "1ms"
run = "until test -e {path}; do sleep 0.01; done; {step}"
[step.fault]
custom = "a file is there"
do = "touch {path}; : {{web.port}}"
undo = "rm -f {path}; : {{web.port}}"
at = "0s"
for = "10m"
"#
    )
}

#[test]
fn what_is_about_a_system_is_undone_while_that_runs() {
    let scripts = tempfile::tempdir().unwrap();
    let file = scripts.path().join("made");
    let (_folder, finished) = run(&about_a_system(&file.display().to_string(), "exit 3"));
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Error, "{verdict:?}");
    assert!(!file.exists());

    let mut lab = Lab::start(&about_a_system("made", "sleep 600"));
    let made = lab.folder.path().join("made");
    lab.until("the file is made", |_| made.exists());
    let pid = Pid::from_raw(i32::try_from(lab.process.id()).unwrap());
    kill(pid, Signal::SIGINT).unwrap();
    lab.process.wait().unwrap();
    lab.assert_nothing_is_left();
    assert!(!made.exists());
}

#[test]
fn an_interrupt_and_a_kill_undo_it() {
    for signal in [Signal::SIGINT, Signal::SIGKILL] {
        let mut lab = Lab::start(&file_there("made", "", "for = \"10m\""));
        let made = lab.folder.path().join("made");
        lab.until("the file is made", |_| made.exists());
        let pid = Pid::from_raw(i32::try_from(lab.process.id()).unwrap());
        kill(pid, signal).unwrap();
        lab.process.wait().unwrap();
        lab.assert_nothing_is_left();
        assert!(!made.exists(), "{signal}");
    }
}
