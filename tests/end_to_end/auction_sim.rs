//! The auction simulator as people call it.

use std::fs;

use crate::lab::{Finished, Lab};

fn simulate(lab: &Lab, flags: &[&str]) -> Finished {
    let mut command = lab.command();
    command.args(["cells", "auction-sim"]).args(flags);
    Finished::of(command.output().expect("headroom starts"))
}

#[test]
fn the_same_flags_have_the_same_outcome_but_for_the_time() {
    let lab = Lab::new();
    let page = lab.write("auction.html", "an older page");
    let older = lab.path("older.html");
    fs::hard_link(&page, &older).expect("a link");
    let page = page.to_str().expect("a path");
    let outcome = |seed| {
        let flags = [
            "--instances",
            "500",
            "--batch",
            "200",
            "--json",
            "--seed",
            seed,
        ];
        let mut outcome = simulate(&lab, &flags).expect_code(0).json();
        let time = outcome.as_object_mut().expect("an object").remove("time");
        assert_eq!(
            time.expect("the time")["rounds"].as_array().map(Vec::len),
            Some(3)
        );
        outcome
    };
    let first = outcome("7");
    assert_eq!(first["placed"], 500);
    assert_eq!(first, outcome("7"));
    assert_ne!(first["memory"], outcome("8")["memory"]);

    let kinds = ["--cell", "2*1GiB/8GiB/10", "--process", "1*256MiB/1GiB*1"];
    let told = simulate(
        &lab,
        &[&kinds[..], &["--instances", "9", "--report", page]].concat(),
    );
    let told = told.expect_code(0);
    for part in [
        "refused  1",
        "1: insufficient resources: memory",
        "cells by used memory",
    ] {
        assert!(
            told.stdout.contains(part),
            "no {part:?} in:\n{}",
            told.stdout
        );
    }
    let page = fs::read_to_string(page).expect("the page");
    assert!(page.contains("insufficient resources: memory"));
    // It is replaced whole: a disk that is full takes nobody's page away.
    let older = fs::read_to_string(older).expect("the page of before");
    assert_eq!(older, "an older page");
}

#[test]
fn what_cannot_be_simulated_is_told() {
    let lab = Lab::new();
    for (flags, expected) in [
        (
            &["--cells", "0"][..],
            "--cells: expected a number from 1 to 100000, found 0",
        ),
        (
            &["--zones", "101"],
            "--zones: expected a number from 1 to 100, found 101",
        ),
        (&["--cell", "9"], "expected COUNT*MEMORY/DISK/CONTAINERS"),
        (&["--process", "1*1GX/1GiB*1"], "is not a size"),
        (&["--starting-container-weight", "nan"], "found NaN"),
        (
            &["--instances", "1", "--report", "/nowhere/x.html"],
            "/nowhere/x.html",
        ),
    ] {
        let told = simulate(&lab, flags);
        assert_ne!(told.code, 0, "{flags:?}: {}", told.stdout);
        told.expect_stderr(expected);
    }
}
