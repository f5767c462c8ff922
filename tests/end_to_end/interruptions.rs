//! However a run ends, nothing of it stays.

use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::lab::{Lab, experiment, processes_of_run, wait_until};

const LONG: &[&str] = &[
    "--set",
    "cells=3",
    "--set",
    "tasks=40",
    "--set",
    "instances=30",
    "--set",
    "executor=process",
    "--set",
    "rest=10m",
];

fn interrupt(signal: Signal, at: &str) -> (Lab, Option<i32>) {
    let lab = Lab::new();
    // Whatever a system leaves in the folder for temporary files is seen too.
    std::fs::create_dir(lab.path("tmp")).expect("a folder");
    let mut child = lab
        .run_command(&experiment("road-to-100-cells.toml"), LONG)
        .env("TMPDIR", lab.path("tmp"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("headroom starts");
    lab.wait_for_event(&mut child, at);
    let running = processes_of_run(&lab.run_folder());
    assert!(!running.is_empty(), "nothing runs at {at:?}");
    kill(Pid::from_raw(child.id().cast_signed()), signal).expect("a running process");
    let status = child.wait().expect("a child");
    (lab, status.code())
}

#[track_caller]
fn nothing_stays(lab: &Lab) {
    let folder = lab.run_folder();
    wait_until("the last process to end", || {
        processes_of_run(&folder).is_empty()
    });
    wait_until("the work folder to go", || !folder.join("work").exists());
    let left = std::fs::read_dir(lab.path("tmp"))
        .expect("a folder")
        .count();
    assert_eq!(left, 0, "temporary files stay behind");
}

#[test]
fn ctrl_c_tears_everything_down() {
    let (lab, code) = interrupt(Signal::SIGINT, "instances up");
    assert_eq!(code, Some(4));
    assert_eq!(processes_of_run(&lab.run_folder()), Vec::<String>::new());
    nothing_stays(&lab);
}

#[test]
fn a_polite_kill_tears_everything_down() {
    let (lab, code) = interrupt(Signal::SIGTERM, "tasks");
    assert_eq!(code, Some(4));
    nothing_stays(&lab);
}

#[test]
fn a_hard_kill_leaves_nothing_behind() {
    for at in ["system-started", "tasks", "instances up"] {
        let (lab, code) = interrupt(Signal::SIGKILL, at);
        assert_eq!(code, None);
        nothing_stays(&lab);
    }
}
