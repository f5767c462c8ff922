//! Wrong input gets a clear error and starts nothing.

use std::fs;

use crate::lab::{Finished, Lab, project};

fn check(text: &str) -> Finished {
    let lab = Lab::new();
    let file = lab.write("x.toml", text);
    Finished::of(
        lab.command()
            .arg("check")
            .arg(file)
            .output()
            .expect("headroom starts"),
    )
}

const START: &str = "lab = 1\nname = \"x\"\nseed = 1\n";
const STEP: &str = "[[step]]\nname = \"s\"\nhold = \"1s\"\n";

#[test]
fn every_shipped_experiment_checks() {
    let lab = Lab::new();
    let mut checked = 0;
    for entry in fs::read_dir(project().join("experiments")).expect("experiments") {
        let path = entry.expect("an entry").path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            let output = lab
                .command()
                .arg("check")
                .arg(&path)
                .output()
                .expect("headroom starts");
            let checked_one = Finished::of(output);
            // It mounts a disk, which not every user may.
            if path.ends_with("full-disk.toml") && !processes::may_mount() {
                checked_one
                    .expect_code(4)
                    .expect_stderr("CAP_SYS_ADMIN")
                    .expect_stderr("1 mistake in");
            } else {
                checked_one.expect_code(0);
            }
            checked += 1;
        }
    }
    assert!(checked >= 2);
}

#[test]
fn a_wrong_key_is_shown_with_the_nearest_right_one() {
    check(&format!(
        "{START}[[system]]\nname = \"a\"\nrun = \"sleep 1\"\nredy = \"tcp\"\n"
    ))
    .expect_code(4)
    .expect_stderr("x.toml:7:1")
    .expect_stderr("^^^^")
    .expect_stderr("ready");
}

#[test]
fn mistakes_that_nobody_reads_are_still_mistakes() {
    let lab = Lab::new();
    let full = fs::OpenOptions::new().write(true).open("/dev/full");
    let mut command = lab.command();
    command
        .arg("check")
        .arg(lab.write("x.toml", ""))
        .stderr(full.expect("a file that takes nothing"));
    let output = command.output().expect("headroom starts");
    Finished::of(output).expect_code(4);
}

#[test]
fn a_wrong_flag_of_a_builtin_is_found_before_anything_starts() {
    check(&format!(
        "{START}[[system]]\nname = \"bbs\"\nbuiltin = \"cells bbs\"\nargs = \"--lisen {{addr}}\"\n"
    ))
    .expect_code(4)
    .expect_stderr("--listen");
}

#[test]
fn a_wrong_expression_is_found_before_anything_starts() {
    check(&format!(
        "{START}[[expect]]\nthat = \"system.bbs.rss max < 5\"\n"
    ))
    .expect_code(4)
    .expect_stderr("x.toml:5:");
}

#[test]
fn a_missing_file_is_named() {
    let lab = Lab::new();
    lab.run(&lab.path("nowhere.toml"), &[])
        .expect_code(4)
        .expect_stderr("nowhere.toml");
}

#[test]
fn a_missing_program_is_named() {
    let lab = Lab::new();
    let file = lab.write(
        "x.toml",
        &format!("{START}{STEP}[[system]]\nname = \"a\"\nrun = \"no-such-program --x\"\n"),
    );
    lab.run(&file, &[])
        .expect_code(4)
        .expect_stderr("no-such-program");
}

#[test]
fn a_system_that_ends_early_shows_its_last_words() {
    let lab = Lab::new();
    let file = lab.write(
        "x.toml",
        &format!(
            "{START}{STEP}[[system]]\nname = \"a\"\nready = \"tcp\"\n\
             run = \"sh -c 'echo the disk is on fire; exit 3' {{port}}\"\n"
        ),
    );
    lab.run(&file, &[])
        .expect_code(4)
        .expect_stderr("the disk is on fire")
        .expect_stderr("3");
}

#[test]
fn a_folder_that_cannot_be_written_is_said_plainly() {
    let lab = Lab::new();
    let file = lab.write("x.toml", &format!("{START}{STEP}"));
    let output = lab
        .command()
        .args([
            "run",
            file.to_str().expect("text"),
            "--out",
            "/dev/null/runs",
        ])
        .output()
        .expect("headroom starts");
    Finished::of(output)
        .expect_code(4)
        .expect_stderr("/dev/null/runs");
}

#[test]
fn a_full_disk_is_said_plainly() {
    // Full while the systems start; full while a step is under way.
    for size in ["192k", "600k"] {
        a_disk_of(size);
    }
}

fn a_disk_of(size: &str) {
    let lab = Lab::new();
    let disk = lab.path("disk");
    fs::create_dir(&disk).expect("a folder");
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
        .arg(&disk)
        .output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        eprintln!("not tested: this user cannot mount a small disk");
        return;
    }
    let file = project().join("experiments/road-to-100-cells.toml");
    let output = lab
        .command()
        .arg("run")
        .arg(file)
        .args([
            "--set",
            "cells=2",
            "--set",
            "tasks=800",
            "--set",
            "instances=10",
            "--out",
        ])
        .arg(&disk)
        .output()
        .expect("headroom starts");
    let finished = Finished::of(output);
    let _ = std::process::Command::new("umount")
        .arg("-l")
        .arg(&disk)
        .output();
    // The system may notice first, which fails the step; nobody may call it a pass.
    assert!(
        [1, 4].contains(&finished.code),
        "stdout:\n{}\nstderr:\n{}",
        finished.stdout,
        finished.stderr
    );
    let said = format!("{}{}", finished.stdout, finished.stderr).to_lowercase();
    assert!(
        said.contains("no space left") || said.contains("disk is full"),
        "{said}"
    );
}
