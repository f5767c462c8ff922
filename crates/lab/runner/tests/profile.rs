//! Where the processor time of systems goes, held against small programs in which it is known.
// Helpers outside of test functions panic like tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::process::Command;

use crate::support::run;
use lab_runner::Finished;
use lab_store::{Outcome, ProfileRecord, RunFile};
use measure::StackSampler;

/// A program that works in one function three times as long as in another, and a child that works
/// as well; told to be idle, it does neither.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
volatile unsigned long sink;
static double used(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}
__attribute__((noinline)) void work(double until) {
    while (used() < until) for (int i = 0; i < 100000; i++) sink += i;
}
__attribute__((noinline)) void planted_hot(double from) { work(from + 0.03); sink++; }
__attribute__((noinline)) void planted_cold(double from) { work(from + 0.01); sink++; }
__attribute__((noinline)) void planted_child(void) { work(1e9); sink++; }
int main(int count, char **words) {
    if (count > 1 && !strcmp(words[1], "idle")) { puts("up"); fflush(stdout); for (;;) pause(); }
    if (fork() == 0) planted_child();
    puts("up");
    fflush(stdout);
    for (;;) { planted_hot(used()); planted_cold(used()); }
}
"#;

/// The program, compiled with frame pointers; `None`: this user may not sample.
fn program(folder: &Path) -> Option<String> {
    if let Err(error) = StackSampler::of_what_this_thread_starts() {
        eprintln!("not run: {error}");
        return None;
    }
    let (source, program) = (folder.join("planted.c"), folder.join("planted"));
    std::fs::write(&source, PROGRAM).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args([
        "-O1",
        "-fno-omit-frame-pointer",
        "-fno-optimize-sibling-calls",
        "-o",
    ]);
    let compiled = compiler.args([&program, &source]).status().unwrap();
    assert!(compiled.success());
    Some(program.display().to_string())
}

fn made(program: &str, watch: &str) -> (tempfile::TempDir, Finished) {
    let (folder, finished) = run(&format!(
        r#"
[[system]]
name = "planted"
run = "{program}"
ready = "log up"
{watch}
[[step]]
name = "work"
hold = "4s"
"#
    ));
    assert_eq!(
        finished.verdict.outcome,
        Outcome::Pass,
        "{:?}",
        finished.verdict
    );
    (folder, finished)
}

fn folded(finished: &Finished) -> Vec<(String, u64)> {
    let text = finished.folder.read_text(RunFile::Stacks).unwrap();
    let lines = text.lines().map(|line| {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        (stack.to_owned(), count.parse().unwrap())
    });
    lines.collect()
}

#[test]
fn functions_are_named_by_the_share_of_time_that_is_theirs() {
    let scripts = tempfile::tempdir().unwrap();
    let Some(program) = program(scripts.path()) else {
        return;
    };
    let (_folder, finished) = made(&program, "");
    let stacks = folded(&finished);
    let of = |name: &str| -> u64 {
        let found = stacks
            .iter()
            .filter(|(stack, _)| stack.split(';').any(|frame| frame == name));
        found.map(|(_, count)| count).sum()
    };
    let (hot, cold, child) = (of("planted_hot"), of("planted_cold"), of("planted_child"));
    // Of 99 samples a second of processor time; beside other work it gets less of it.
    assert!(hot + cold > 40 && child > 20, "{stacks:?}");
    let share = hot as f64 / (hot + cold) as f64;
    assert!((0.6..0.9).contains(&share), "{share}: {stacks:?}");
    let in_order = stacks
        .iter()
        .any(|(stack, _)| stack.contains("main;planted_hot;work"));
    assert!(in_order, "{stacks:?}");
    assert!(
        stacks
            .iter()
            .all(|(stack, _)| stack.starts_with("planted;")),
        "{stacks:?}"
    );
    let record: ProfileRecord = finished.folder.read_json(RunFile::Profile).unwrap();
    assert_eq!(record.systems[0].system, "planted");
    assert_eq!(
        record.samples,
        stacks.iter().map(|(_, count)| count).sum::<u64>()
    );
    // A reader that is kept from the processor for seconds loses some, and says so.
    assert!(record.lost < record.samples, "{record:?}");
    assert_eq!(record.note, None);
    assert_eq!(record.why, "in which most processor time was used");
    assert!(record.to_s - record.from_s <= 10.0 && record.to_s > record.from_s);
}

#[test]
fn who_does_nothing_is_hardly_seen_and_who_is_not_asked_about_never() {
    let scripts = tempfile::tempdir().unwrap();
    let Some(program) = program(scripts.path()) else {
        return;
    };
    let (_idle, idle) = made(&format!("{program} idle"), "");
    let seen = match idle.folder.file(RunFile::Profile).exists() {
        true => {
            idle.folder
                .read_json::<ProfileRecord>(RunFile::Profile)
                .unwrap()
                .samples
        }
        false => 0,
    };
    assert!(seen < 20, "{seen}");
    let (_unwatched, unwatched) = made(&program, "watch = [\"rss\"]");
    assert!(!unwatched.folder.file(RunFile::Profile).exists());
    assert!(!unwatched.folder.file(RunFile::Stacks).exists());
}
