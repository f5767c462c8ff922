//! Systems are started, found ready, watched and stopped.
// Helpers outside of test functions panic like tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::{attempt, events, log, notes, of, options, plan, refused, run};
use lab_runner::RunError;
use lab_store::{EventKind, Outcome, ProcessSample, SystemProcess};

#[test]
fn systems_start_in_order_and_stop_in_reverse() {
    let (_folder, finished) = run(r#"
[[system]]
name = "last"
run = "sh -c 'echo up; exec sleep 600'"
ready = "log up"
after = ["by-http"]

[[system]]
name = "by-http"
run = "python3 -m http.server {port} --bind 127.0.0.1 --directory {work}"
ready = "http /"
after = ["by-tcp"]

[[system]]
name = "by-tcp"
run = "python3 -m http.server {port} --bind 127.0.0.1 --directory {work}"
ready = "tcp"

[[step]]
name = "look"
run = "python3 -c \"import urllib.request as u; u.urlopen('http://{by-http.addr}/').read()\""
"#);
    assert_eq!(
        finished.verdict.outcome,
        Outcome::Pass,
        "{:?}",
        finished.verdict
    );
    assert_eq!(
        events(&finished, EventKind::SystemStarted),
        ["by-tcp", "by-http", "last"]
    );
    assert_eq!(
        events(&finished, EventKind::SystemReady),
        ["by-tcp", "by-http", "last"]
    );
    assert_eq!(notes(&finished), Vec::<&str>::new());
    assert!(!finished.folder.path().join("work").exists());
    for file in [
        "experiment.toml",
        "plan.json",
        "environment.json",
        "verdict.json",
        "histograms.json",
    ] {
        assert!(finished.folder.path().join(file).exists(), "{file}");
    }
}

#[test]
fn a_later_system_is_stopped_before_an_earlier_one() {
    // Each says when it is told to end, into one file.
    let (folder, finished) = run(r#"
[[system]]
name = "first"
run = "sh -c 'trap \"echo first >> {work}/../ends; exit 0\" TERM; echo up; while :; do sleep 0.05; done'"
ready = "log up"

[[system]]
name = "second"
run = "sh -c 'trap \"echo second >> {work}/../ends; exit 0\" TERM; echo up; while :; do sleep 0.05; done'"
ready = "log up"
after = ["first"]

[[step]]
name = "nothing"
hold = "10ms"
"#);
    let ends = std::fs::read_to_string(finished.folder.path().join("ends")).unwrap();
    assert_eq!(ends, "second\nfirst\n");
    drop(folder);
}

#[test]
fn copies_have_ports_numbers_and_environments_of_their_own() {
    let (_folder, finished) = run(r#"
[[system]]
name = "many"
run = "sh -c 'echo port={port} index={index} level=$LEVEL run=$HEADROOM_RUN cpus=$(grep Cpus_allowed_list /proc/self/status); echo up; exec sleep 600'"
ready = "log up"
count = 3
env = { LEVEL = "level-{index}" }
cpus = "0"
watch = ["cpu", "threads"]

[[step]]
name = "a while"
hold = "400ms"

[[expect]]
that = "system.many.threads max == 1"
"#);
    assert_eq!(
        finished.verdict.outcome,
        Outcome::Pass,
        "{:?}",
        finished.verdict
    );
    let mut ports = std::collections::BTreeSet::new();
    for index in 0..3 {
        let text = log(&finished, &format!("many.{index}"));
        assert!(
            text.contains(&format!("index={index} level=level-{index} run=test-")),
            "{text}"
        );
        assert!(
            text.contains("Cpus_allowed_list: 0\n") || text.contains("Cpus_allowed_list:\t0\n"),
            "{text}"
        );
        ports.insert(text.split_whitespace().next().unwrap().to_owned());
    }
    assert_eq!(ports.len(), 3, "{ports:?}");
    let samples: Vec<ProcessSample> = finished.folder.records().unwrap();
    let names: std::collections::BTreeSet<_> = samples.iter().map(|s| s.system.as_str()).collect();
    assert_eq!(
        names.into_iter().collect::<Vec<_>>(),
        ["many.0", "many.1", "many.2"]
    );
}

#[test]
fn a_system_that_ends_early_is_shown_with_its_output() {
    let error = refused(
        r#"
[[system]]
name = "shop"
run = "sh -c 'echo out; echo going wrong >&2; exit 3' {port}"
ready = "tcp"
[[step]]
name = "never"
hold = "1s"
"#,
    );
    assert!(
        error.contains("shop ended with status 3 before it was ready"),
        "{error}"
    );
    assert!(
        error.contains("going wrong") && error.contains("sh -c"),
        "{error}"
    );
    assert!(error.contains("all logs are in"), "{error}");
    assert!(!error.contains("after ="), "it is told of nobody: {error}");
}

#[test]
fn one_that_goes_into_the_background_is_told_to_stay() {
    let ends = |how: &str| {
        refused(&format!(
            r#"
[[system]]
name = "shop"
run = "sh -c 'sleep 60 & {how}' {{port}}"
ready = "tcp"
[[step]]
name = "never"
hold = "1s"
"#
        ))
    };
    assert!(ends("exit 0").contains("runs in the foreground"));
    assert!(!ends("exit 3").contains("foreground"));
}

#[test]
fn a_system_that_ends_early_and_waits_for_nobody_is_told_what_would_have_it_wait() {
    let error = refused(
        r#"
[[system]]
name = "store"
run = "sleep 600"
[[system]]
name = "other"
run = "sleep 600"
[[system]]
name = "shop"
run = "sh -c 'exit 3' {store.addr} {other.port} {store.port} {shop[0].addr} {port}"
ready = "tcp"
after = ["other"]
[[step]]
name = "never"
hold = "1s"
"#,
    );
    assert!(
        error.contains("it is told where store is and does not wait for it")
            && error.contains(r#"after = ["other", "store"]"#),
        "{error}"
    );
}

#[test]
fn a_system_ended_by_a_signal_says_so() {
    let error = refused(
        r#"
[[system]]
name = "shop"
run = "sh -c 'kill -SEGV $$' {port}"
ready = "tcp"
[[step]]
name = "never"
hold = "1s"
"#,
    );
    assert!(error.contains("was ended by SIGSEGV"), "{error}");
}

#[test]
fn a_system_that_never_gets_ready_is_an_error() {
    let error = refused(
        r#"
[[system]]
name = "slow"
run = "sh -c 'echo still thinking; exec sleep 600'"
ready = "log open for business"
ready_within = "300ms"
[[step]]
name = "never"
hold = "1s"
"#,
    );
    assert!(error.contains("slow was not ready within 300ms"), "{error}");
    assert!(
        error.contains("open for business") && error.contains("still thinking"),
        "{error}"
    );
}

#[test]
fn a_missing_program_is_named() {
    let error = refused(
        r#"
[[system]]
name = "gone"
run = "no-such-program --listen {port}"
ready = "tcp"
[[step]]
name = "never"
hold = "1s"
"#,
    );
    assert!(
        error.contains("start gone with `no-such-program --listen "),
        "{error}"
    );
    assert!(error.contains("PATH"), "{error}");
}

#[test]
fn a_system_that_ends_during_a_step_ends_the_run() {
    let (_folder, finished) = run(r#"
[[system]]
name = "fragile"
run = "sh -c 'echo up; sleep 0.2; echo out of luck; exit 7'"
ready = "log up"
[[step]]
name = "too long"
hold = "1m"
[[step]]
name = "never"
hold = "1s"
"#);
    assert_eq!(finished.verdict.outcome, Outcome::Error);
    let reason = finished.verdict.reason.unwrap();
    assert!(reason.contains("fragile ended with status 7"), "{reason}");
    assert!(reason.contains("out of luck"), "{reason}");
}

#[test]
fn a_memory_limit_is_kept_or_refused_before_anything_starts() {
    let (_folder, finished) = attempt(
        r#"
[[system]]
name = "small"
run = "sh -c 'cat /proc/self/cgroup; echo up; exec sleep 600'"
ready = "log up"
memory = "64MiB"
[[step]]
name = "look"
hold = "10ms"
"#,
    );
    match finished {
        Ok(finished) => {
            let text = log(&finished, "small");
            let line = text.lines().find(|line| line.contains("/headroom-"));
            let path = line
                .and_then(|line| line.splitn(3, ':').nth(2))
                .expect(&text);
            for root in ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"] {
                assert!(
                    !std::path::Path::new(&format!("{root}{path}")).exists(),
                    "{path}"
                );
            }
        }
        Err(error) => {
            assert!(
                error.to_string().contains("limit the memory of "),
                "{error}"
            );
        }
    }
}

#[test]
fn a_system_killed_for_its_memory_is_told_from_one_that_was_killed() {
    let (_folder, finished) = attempt(
        r#"
[[system]]
name = "greedy"
run = "python3 -c 'import time; time.sleep(0.2); print(len(b\"x\" * (256 << 20))); time.sleep(600)'"
memory = "32MiB"
[[step]]
name = "look"
hold = "1m"
"#,
    );
    match finished {
        Ok(finished) => {
            let reason = finished.verdict.reason.unwrap();
            let said = "was ended by SIGKILL, having used up its limit of memory";
            assert!(reason.contains(said), "{reason}");
        }
        Err(error) => {
            let refused = error.to_string().contains("limit the memory of ");
            assert!(refused, "{error}");
        }
    }
}

#[test]
fn a_process_does_not_inherit_that_the_one_before_had_used_up_its_memory() {
    let (_folder, finished) = attempt(
        r#"
[[system]]
name = "greedy"
run = "sh -c 'if [ -e {work}/again ]; then echo again; exec sleep 600; fi; touch {work}/again; exec python3 -c \"print(len([7] * (32 << 20)))\"'"
memory = "32MiB"
on_exit = "restart"
restart_after = "10ms"
[[step]]
name = "look"
run = "until grep -q again {work}/../logs/greedy.log; do sleep 0.02; done"
"#,
    );
    match finished {
        Ok(finished) => {
            let ends = of(&finished, EventKind::SystemExited).into_iter();
            let ends: Vec<String> = ends.map(|(.., text)| text).collect();
            let greedy = "was ended by SIGKILL, having used up its limit of memory";
            assert_eq!(ends, [greedy, "was ended by SIGTERM"]);
        }
        Err(error) => {
            let refused = error.to_string().contains("limit the memory of ");
            assert!(refused, "{error}");
        }
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let (plan, text) = plan("[[step]]\nname = \"x\"\nhold = \"1s\"\n");
    let error = lab_runner::run(plan, &text, options(&file)).unwrap_err();
    assert!(matches!(error, RunError::Store(_)), "{error}");
    assert!(error.to_string().contains("file"), "{error}");
}

#[test]
fn a_reaper_that_does_not_start_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (plan, text) = plan("[[step]]\nname = \"x\"\nhold = \"1s\"\n");
    let mut options = options(folder.path());
    options.reaper = vec!["false".into()];
    let error = lab_runner::run(plan, &text, options).unwrap_err();
    assert!(
        error.to_string().contains("reaper process `false`"),
        "{error}"
    );
}

#[test]
fn a_kept_work_folder_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (plan, text) = plan("[[step]]\nname = \"write\"\nrun = \"echo kept > {work}/file\"\n");
    let mut options = options(folder.path());
    options.keep = true;
    let finished = lab_runner::run(plan, &text, options).unwrap();
    let file = finished.kept.unwrap().join("file");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "kept\n");
}

/// A server that lets children work: one leaves its group and loses its parent.
const FORKS: &str = r#"
import os, subprocess, sys, time
work = "import time\nx = bytearray(b'x' * (100 << 20))\nwhile time.process_time() < 0.6: pass\nprint('worked', flush=True)\ntime.sleep(600)"
subprocess.Popen([sys.executable, "-c", work])
between = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]], start_new_session=True)"
subprocess.run([sys.executable, "-c", between, work])
for _ in range(5):
    subprocess.run([sys.executable, "-S", "-c", "0"])
time.sleep(600)
"#;

#[test]
fn a_system_is_all_that_it_starts() {
    let scripts = tempfile::tempdir().unwrap();
    let forks = scripts.path().join("forks.py");
    std::fs::write(&forks, FORKS).unwrap();
    let (_folder, finished) = run(&format!(
        r#"
[[system]]
name = "pool"
run = "python3 {forks}"
[[system]]
name = "alone"
run = "sleep 600"
[[step]]
name = "work"
run = "until [ $(grep -c worked {{work}}/../logs/pool.log) = 2 ]; do sleep 0.05; done; sleep 0.4"
run_within = "60s"
[[expect]]
that = "system.pool.rss max > 200MiB and system.pool.threads max >= 3"
[[expect]]
that = "system.alone.rss max < 20MiB and system.alone.threads max == 1"
"#,
        forks = forks.display()
    ));
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Pass, "{verdict:?}");
    let processes: Vec<SystemProcess> = finished.folder.records().unwrap();
    let of = |name: &str| -> Vec<&SystemProcess> {
        let own = processes.iter().filter(|process| process.system == name);
        own.collect()
    };
    assert_eq!(of("alone").len(), 1, "{processes:?}");
    let pool = of("pool");
    let workers = pool.iter().filter(|process| process.cpu_s > 0.55);
    assert_eq!(workers.count(), 2, "{pool:?}");
    // Twice 0.6 s of work, and eight starts of Python.
    let all: f64 = pool.iter().map(|process| process.cpu_s).sum();
    assert!((1.2..3.0).contains(&all), "{pool:?}");
    // The series tell the same as the list.
    let samples: Vec<ProcessSample> = finished.folder.records().unwrap();
    let samples = samples.iter().filter(|sample| sample.system == "pool");
    let (mut before, mut told) = (None, 0.0);
    for sample in samples {
        told += before.map_or(0.0, |before| sample.cpu_cores * (sample.t_s - before));
        before = Some(sample.t_s);
    }
    assert!((told - all).abs() < 0.3, "{told} {all}");
}
