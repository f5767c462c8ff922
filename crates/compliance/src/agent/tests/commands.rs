//! Commands on a real machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;

/// Calls a method on the machine, or on what is taken for it.
fn apply(root: &str, method: &str, params: &[(&str, &str)], mode: PolicyMode) -> Applied {
    // Long enough on a busy machine, short enough for one that never ends.
    let limit = match params[0].1.contains("sleep") {
        true => Duration::from_secs(1),
        false => Duration::from_secs(60),
    };
    let mut methods = OnSystem::new(Disk::new(root, Site::default()), limit);
    carry_out(&mut methods, &call("1", method, params), mode)
}

fn outcome(method: &str, command: &str, codes: &[(&str, &str)]) -> Outcome {
    let params = [&[("command", command)], codes].concat();
    apply("/", method, &params, PolicyMode::Enforce).outcome
}

/// A file that a command makes, and the command.
fn made(folder: &Path) -> (PathBuf, String) {
    let path = folder.join("made");
    let command = format!("echo $$ > '{}'", path.display());
    (path, command)
}

#[test]
fn codes_tell_what_a_command_came_to() {
    use Outcome::{Error, NonCompliant, Repaired, Success};
    let codes = [("kept_codes", "2, 3"), ("repaired_codes", "0,4")];
    for (method, command, codes, expected) in [
        ("command_execution", "true", &[][..], Repaired),
        ("command_execution", "exit 3", &[], Error),
        ("command_execution", "/no/such/program", &[], Error),
        ("command_execution", "kill -9 $$", &[], Error),
        ("command_execution_result", "exit 3", &codes, Success),
        ("command_execution_result", "exit 4", &codes, Repaired),
        ("command_execution_result", "exit 5", &codes, Error),
        (
            "audit_from_command",
            "exit 3",
            &[("compliant_codes", "3")],
            Success,
        ),
        (
            "audit_from_command",
            "true",
            &[("compliant_codes", "3")],
            NonCompliant,
        ),
        // Nothing of what the agent was started with, but programs are found.
        (
            "command_execution",
            "test -z \"$HOME$CARGO_HOME\" && ls / > /dev/null",
            &[],
            Repaired,
        ),
    ] {
        assert_eq!(
            outcome(method, command, codes),
            expected,
            "{method} {command}"
        );
    }
}

#[test]
fn an_audit_runs_no_command_that_may_change_something() {
    let folder = tempfile::tempdir().unwrap();
    let (path, command) = made(folder.path());
    for method in ["command_execution", "command_execution_result"] {
        let applied = apply("/", method, &[("command", &command)], PolicyMode::Audit);
        assert_eq!(applied.outcome, Outcome::NotApplicable);
        assert!(!path.exists());
    }
    assert_eq!(
        outcome("command_execution", &command, &[]),
        Outcome::Repaired
    );
    assert!(path.exists());
}

#[test]
fn a_root_that_is_not_the_machine_runs_none() {
    let folder = tempfile::tempdir().unwrap();
    let (path, command) = made(folder.path());
    let root = folder.path().display().to_string();
    let params = [("command", &*command)];
    let applied = apply(&root, "command_execution", &params, PolicyMode::Enforce);
    assert_told(&applied, Outcome::Error, "on the machine itself only");
    assert!(!path.exists());
}

#[test]
fn a_command_that_does_not_end_is_ended_with_what_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("children");
    let path = path.display();
    let command = format!("sleep 1000 & echo $! > '{path}'; trap '' TERM; sleep 1000; sleep 1000");
    let params = [("command", &*command)];
    let mut child = String::new();
    // On a busy machine the time may be over before the shell has come so far.
    for _ in 0..60 {
        let applied = apply("/", "command_execution", &params, PolicyMode::Enforce);
        assert_eq!(applied.outcome, Outcome::Error);
        let message = applied.message;
        assert!(message.contains("did not end within 1 s"), "{message}");
        child = fs::read_to_string(folder.path().join("children")).unwrap_or_default();
        if !child.is_empty() {
            break;
        }
    }
    assert!(child.trim().parse::<u32>().is_ok(), "{child:?}");
    let ended = || {
        let status = fs::read_to_string(format!("/proc/{}/status", child.trim()));
        // Whoever takes its place collects it some time.
        status.map_or(true, |text| text.contains("State:\tZ"))
    };
    for _ in 0..6_000 {
        if ended() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it runs on");
}
