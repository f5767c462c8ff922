//! What a person meets first: a target to load, a first experiment, the ready ones, and
//! what shells are told.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::free_port::free_port;
use crate::lab::{Finished, Lab, answered};

/// `headroom target`, until it is ended.
pub(crate) struct Target {
    child: Child,
    url: String,
}

impl Target {
    pub(crate) fn start(lab: &Lab, more: &[&str]) -> Self {
        let mut child = lab
            .command()
            .args(["target", "--listen", "127.0.0.1:0"])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("headroom starts");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("a pipe");
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("a line that names the address");
        let url = line.trim().strip_prefix("listening on ");
        Self {
            url: url.unwrap_or_else(|| panic!("{line:?}")).to_owned(),
            child,
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// What it says at its end.
    fn end(mut self) -> String {
        signal(&self.child, Signal::SIGTERM);
        let mut said = String::new();
        let stderr = self.child.stderr.as_mut().expect("a pipe");
        stderr.read_to_string(&mut said).expect("text");
        assert!(self.child.wait().expect("a child").success(), "{said}");
        said
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).expect("a process id");
    kill(Pid::from_raw(pid), signal).expect("a signal sent");
}

fn finished(command: &mut Command) -> Finished {
    Finished::of(command.output().expect("headroom starts"))
}

fn load(lab: &Lab, target: &Target, more: &[&str]) -> Value {
    let mut command = lab.command();
    command.args([
        "load",
        &target.url,
        "--quiet",
        "--json",
        "--warm-up",
        "none",
    ]);
    // What the generator thinks of this machine is not the question here.
    finished(command.args(more)).json()
}

#[test]
fn a_target_fails_the_share_that_it_was_told_to() {
    let lab = Lab::new();
    let target = Target::start(&lab, &["--errors", "10%", "--size", "64B", "--seed", "3"]);
    // However slow the machine is, each is answered.
    let seen = load(&lab, &target, &["-n", "2000", "--closed", "-c", "4"]);
    let failed = seen["statuses"]["500"].as_u64().unwrap_or(0);
    // Five standard deviations of a binomial.
    assert!((133..=267).contains(&failed), "{failed}");
    assert_eq!(seen["statuses"]["200"].as_u64(), Some(2_000 - failed));
    let said = target.end();
    assert!(
        said.starts_with(&format!("2,000 requests: {} good", grouped(2_000 - failed))),
        "{said}"
    );
}

fn grouped(number: u64) -> String {
    format!("{},{:03}", number / 1_000, number % 1_000)
}

#[test]
fn a_pool_is_never_faster_than_it_was_told_and_a_rate_limit_says_429() {
    let lab = Lab::new();
    let target = Target::start(&lab, &["--latency", "20ms", "--pool", "2"]);
    // 100 a second: whatever the machine does, 60 of them take 600 ms.
    let seen = load(&lab, &target, &["-n", "60", "--closed", "-c", "20"]);
    let longest = seen["latency"]["actual"]["max"].as_f64();
    assert!(longest >= Some(0.199), "{longest:?}");
    drop(target);

    let limited = Target::start(&lab, &["--rate-limit", "1/m"]);
    let seen = load(&lab, &limited, &["-n", "50", "--closed", "-c", "1"]);
    assert_eq!(seen["statuses"]["429"].as_u64(), Some(49), "{seen}");
    assert!(limited.end().contains("49 beyond the rate limit"));
}

#[test]
fn a_target_that_is_down_resets_whoever_asks() {
    let lab = Lab::new();
    let target = Target::start(&lab, &["--down", "0s..1h"]);
    let seen = load(&lab, &target, &["-n", "10", "--rate", "100/s"]);
    assert_eq!(seen["requests"]["answered"].as_u64(), Some(0), "{seen}");
    assert!(target.end().contains("0 good"));
}

#[test]
fn mistakes_about_a_target_are_explained() {
    let lab = Lab::new();
    for (words, expected) in [
        (&["--freeze", "3s"][..], "expected FROM..TO"),
        (&["--freeze", "7s..3s"], "expected an end after"),
        (
            &["--freeze", "1s..3s", "--freeze", "2s..4s"],
            "do not overlap",
        ),
        (&["--latency", "5"], "is not a duration"),
        (&["--errors", "2"], "a share is at most"),
        (&["--pool", "0"], "--pool"),
    ] {
        let mut command = lab.command();
        finished(command.arg("target").args(words))
            .expect_code(4)
            .expect_stderr(expected);
    }
}

/// A first experiment that was written is clean, and passes.
fn checked_and_run(lab: &Lab, file: &Path) {
    let mut check = lab.command();
    finished(check.arg("check").arg(file)).expect_code(0);
    answered(1..=3, |_| {
        let run = lab.run(file, &[]);
        let failed = |line: &str| line.contains('✗') && line.contains("errors");
        match run.code {
            // Invalid is what a machine that is too busy makes of it.
            0 | 3 => Ok(()),
            // It answers more slowly than when it was measured for the file.
            1 if !run.stdout.lines().any(failed) => Err(run.stdout),
            _ => panic!("{}\n{}", run.stdout, run.stderr),
        }
    });
}

#[test]
fn init_about_a_url_writes_what_checks_clean_and_passes() {
    let lab = Lab::new();
    let target = Target::start(&lab, &["--latency", "2ms"]);
    let file = lab.path("first.toml");
    let init = |out: &Path| {
        let mut command = lab.command();
        finished(command.arg("init").arg("--out").arg(out).arg(&target.url))
    };
    let done = init(&file).expect_code(0);
    assert!(done.stdout.contains("headroom run"), "{}", done.stdout);
    checked_and_run(&lab, &file);
    // What somebody has changed since is not replaced.
    init(&file).expect_code(4).expect_stderr("is there already");
}

#[test]
fn init_about_a_command_finds_its_port_starts_it_and_ends_it() {
    let lab = Lab::new();
    let file = lab.path("first.toml");
    let binary = env!("CARGO_BIN_EXE_headroom");
    let mut command = lab.command();
    command.arg("init").arg("--out").arg(&file);
    // A shell between it and what listens, as scripts that start a service have it.
    let line = format!("{binary} target --latency 2ms --listen 127.0.0.1:{{port}}; true");
    finished(command.args(["sh", "-c", &line])).expect_code(0);
    let text = std::fs::read_to_string(&file).expect("the file");
    assert!(text.contains("127.0.0.1:{port}"), "{text}");
    assert!(text.contains("ready = \"http /\""), "{text}");
    assert!(!text.contains("less than 0 s"), "{text}");
    checked_and_run(&lab, &file);
}

#[test]
fn init_says_why_there_is_nothing_to_begin_with() {
    let lab = Lab::new();
    let failing = Target::start(&lab, &["--errors", "100%"]);
    let file = lab.path("first.toml");
    let closed = format!("http://127.0.0.1:{}/", free_port());
    for (words, expected) in [
        (&["true"][..], "ended before it listened"),
        (&["no-such-program-anywhere"], "start no-such-program"),
        (&["sleep", "60"], "listens on no TCP port"),
        (&[&failing.url], "begins with something that works"),
        (&[&closed], "refused"),
    ] {
        let mut command = lab.command();
        command.args(["init", "--within", "1s", "--out"]).arg(&file);
        let done = finished(command.args(words)).expect_code(4);
        assert!(done.stderr.contains(expected), "{}", done.stderr);
        assert!(!file.exists(), "nothing is written");
    }
}

#[test]
fn ready_experiments_are_listed_and_run_by_name_from_anywhere() {
    let lab = Lab::new();
    let from = |folder: &Path, words: &[&str]| {
        let mut command = lab.command();
        finished(command.current_dir(folder).args(words))
    };
    let nowhere = lab.path("nowhere");
    std::fs::create_dir(&nowhere).expect("a folder");
    let listed = from(&nowhere, &["list", "--json"]).expect_code(0).json();
    let names: Vec<&str> = listed
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|ready| ready["name"].as_str())
        .collect();
    assert!(names.contains(&"road-to-100-cells"), "{names:?}");
    let text = from(&nowhere, &["list"]).expect_code(0).stdout;
    for name in &names {
        assert!(text.contains(name), "{name} is not in\n{text}");
        let checked = from(&nowhere, &["check", name]);
        // What needs a right that this user lacks says so.
        if checked.code == 0 || processes::may_mount() {
            checked.expect_code(0);
        } else {
            checked.expect_code(4).expect_stderr("CAP_SYS_ADMIN");
        }
    }
    from(&nowhere, &["run", "no-such-experiment"])
        .expect_code(4)
        .expect_stderr("no-such-experiment");
    // Few of them, so that it is over soon.
    let words = "run road-to-100-cells --set cells=2 --set tasks=20 --set instances=20";
    let words: Vec<&str> = words.split(' ').collect();
    let done = from(&nowhere, &words);
    assert!(
        [0, 2].contains(&done.code),
        "{}\n{}",
        done.stdout,
        done.stderr
    );
    from(&nowhere, &["list", "--out", "all"]).expect_code(0);
    assert!(nowhere.join("all/graphs/chain-3.toml").exists());
}

#[test]
fn shells_and_the_manual_know_every_command() {
    let lab = Lab::new();
    let of = |words: &[&str]| {
        let mut command = lab.command();
        finished(command.args(words)).expect_code(0).stdout
    };
    for shell in ["bash", "zsh", "fish"] {
        let script = of(&["completions", shell]);
        for word in ["target", "calibrate", "analyse", "kubernetes"] {
            assert!(script.contains(word), "{shell} has no {word}");
        }
    }
    let page = of(&["man"]);
    assert!(page.starts_with(".ie"), "{page}");
    assert!(page.contains(".SH SUBCOMMANDS"), "{page}");
    assert!(of(&["man", "graph", "up"]).contains("headroom\\-graph\\-up"));
    let pages = lab.path("man1");
    of(&["man", "--out", &pages.display().to_string()]);
    for page in ["headroom.1", "headroom-load.1", "headroom-graph-up.1"] {
        assert!(pages.join(page).exists(), "{page}");
    }
    let mut command = lab.command();
    finished(command.args(["man", "nothing"]))
        .expect_code(4)
        .expect_stderr("headroom nothing is no command");
}
