//! `headroom gate` of commands whose truth is planted.

use lab_judgement::{GateJudgement, Verdict};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::lab::{Finished, Lab, wait_until};

fn gate(lab: &Lab, base: &str, new: &str, more: &[&str]) -> Finished {
    let mut command = lab.command();
    command.current_dir(lab.path("."));
    command.args(["gate", "--base", base, "--new", new]);
    Finished::of(command.args(more).output().expect("headroom starts"))
}

/// A command that does so much work, in a process of its own that a shell waits for.
fn work(times: f64) -> String {
    let turns = (2e5 * times) as u64;
    format!("(awk 'BEGIN {{ for (i = 0; i < {turns}; i++) x += i % 7; print x }}'; true)")
}

/// A command that prints the next of some numbers each time, the first again after the last.
fn next_of(lab: &Lab, name: &str, numbers: &[f64]) -> String {
    let lines: Vec<String> = numbers.iter().map(f64::to_string).collect();
    lab.write(name, &(lines.join("\n") + "\n"));
    let count = numbers.len();
    format!(
        "n=$(cat {name}.at 2>/dev/null || echo 0); echo $((n + 1)) > {name}.at; \
         echo \"took $(sed -n $((n % {count} + 1))p {name}) ms\""
    )
}

fn judged(finished: &Finished) -> GateJudgement {
    serde_json::from_value(finished.json()["judgement"].clone()).expect("a judgement")
}

const TOOK: [&str; 2] = ["--metric", r"took=took ([\d.]+)"];

#[test]
fn more_work_is_worse_and_less_is_not() {
    let lab = Lab::new();
    let options = ["--metric", "cpu", "--limit", "5%", "--json"];
    let slower = gate(&lab, &work(1.0), &work(1.5), &options).expect_code(1);
    let found = judged(&slower);
    assert_eq!(found.verdict, Verdict::Worse);
    let share = found.metrics[0].effect.expect("an effect").worse_by_share;
    // A shell and the start of awk are part of both.
    assert!((0.2..0.8).contains(&share), "{share}");
    assert!(found.metrics[0].sentence.contains("cpu is worse:"));
    let values = slower.json()["pairs"].as_array().expect("pairs").len();
    assert_eq!(values, found.pairs);

    gate(&lab, &work(1.5), &work(1.0), &options).expect_code(0);
}

#[test]
fn the_same_command_twice_is_not_called_worse() {
    let lab = Lab::new();
    // What this machine's noise allows to say is not the question.
    let options = ["--metric", "cpu", "--limit", "20%"];
    let same = gate(&lab, &work(1.0), &work(1.0), &options);
    assert!(
        [0, 2].contains(&same.code),
        "{}{}",
        same.stdout,
        same.stderr
    );
}

#[test]
fn printed_numbers_are_compared_whichever_way_is_better() {
    let lab = Lab::new();
    let steady = [100.0, 101.0, 99.0, 100.5, 99.5];
    let slow = steady.map(|value| value * 1.1);
    let base = next_of(&lab, "base", &steady);
    let new = next_of(&lab, "new", &slow);
    let worse = gate(&lab, &base, &new, &TOOK).expect_code(1);
    assert!(
        worse.stdout.contains("WORSE  after 12 pairs: took"),
        "{}",
        worse.stdout
    );
    assert!(
        worse.stdout.contains("100 ms became 110 ms"),
        "{}",
        worse.stdout
    );
    let better = [
        &TOOK[..],
        &["--better", "took=higher", "--limit", "took=2%"],
    ]
    .concat();
    let more = gate(&lab, &base, &new, &better).expect_code(0);
    assert!(more.stdout.contains("took is better"), "{}", more.stdout);
    let same = gate(&lab, &base, &base, &TOOK).expect_code(0);
    // What could have been seen stands beside the pass.
    assert!(
        same.stdout.contains("NOT WORSE  after") && same.stdout.contains("would have been noticed"),
        "{}",
        same.stdout
    );
}

#[test]
fn noise_that_hides_the_limit_cannot_tell_and_says_what_would() {
    let lab = Lab::new();
    let base = next_of(&lab, "base", &[100.0, 140.0, 90.0]);
    let new = next_of(&lab, "new", &[95.0, 135.0, 100.0, 120.0]);
    let found = gate(&lab, &base, &new, &TOOK).expect_code(2);
    assert!(
        found
            .stdout
            .contains("CANNOT TELL  and the budget of 24 pairs is spent")
            && found.stdout.contains("would settle it"),
        "{}",
        found.stdout
    );
    let options = [&TOOK[..], &["--json"]].concat();
    let again = judged(&gate(&lab, &base, &new, &options).expect_code(2));
    assert_eq!((again.pairs, again.budget_spent), (24, true));
    assert!(again.metrics[0].needs.is_some());
}

#[test]
fn a_seed_gives_the_same_order_again() {
    let lab = Lab::new();
    let orders = |seed: &str| {
        let command = "printf 1";
        let more = ["--metric", "n=1", "--json", "--seed", seed];
        let json = gate(&lab, command, command, &more).expect_code(0).json();
        let pairs = json["pairs"].as_array().expect("pairs").clone();
        pairs
            .iter()
            .map(|pair| pair["order"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(orders("5"), orders("5"));
    assert_ne!(orders("5"), orders("6"));
}

#[test]
fn what_cannot_be_compared_is_told_with_what_was_printed() {
    let lab = Lab::new();
    let good = "echo took 5 ms";
    for (new, expected) in [
        (
            "echo before; echo it broke >&2; exit 3",
            &["new: ", "status 3", "before", "it broke"][..],
        ),
        (
            "echo nothing",
            &["nothing that it printed matches", "  nothing"],
        ),
        ("echo took 5 MiB", &["has 5 ms and the new one 5"]),
        ("echo took x", &["nothing that it printed matches"]),
        (
            "echo waiting; sleep 1000",
            &["took longer than 3 s", "waiting"],
        ),
    ] {
        let more = [&TOOK[..], &["--time-limit", "3s"]].concat();
        let mut found = gate(&lab, good, new, &more).expect_code(4);
        for part in expected {
            found = found.expect_stderr(part);
        }
        assert_eq!(found.stdout, "");
    }
    gate(
        &lab,
        good,
        good,
        &["--metric", "cpu", "--better", "p99=higher"],
    )
    .expect_code(4)
    .expect_stderr("no metric is called \"p99\"");
}

#[test]
fn one_that_fails_later_on_never_passes() {
    let lab = Lab::new();
    let good = "echo took 5 ms";
    let fails_at = |turn: &str| {
        format!(
            "n=$(cat at 2>/dev/null || echo 0); echo $((n + 1)) > at; \
             case $n in {turn}) echo no more memory; exit 1;; esac; {good}"
        )
    };
    let once = gate(&lab, good, &fails_at("4"), &TOOK).expect_code(2);
    assert!(
        once.stdout.contains("never a pass") && once.stdout.contains("no more memory"),
        "{}",
        once.stdout
    );
    std::fs::remove_file(lab.path("at")).expect("a count");
    let often = gate(&lab, good, &fails_at("[2-9]"), &TOOK).expect_code(2);
    assert!(
        often
            .stdout
            .contains("the new program gave no value in 8 pairs, which is never a pass"),
        "{}",
        often.stdout
    );
    std::fs::remove_file(lab.path("at")).expect("a count");
    gate(&lab, good, &fails_at("[1-9]*"), &TOOK)
        .expect_code(4)
        .expect_stderr("0 of the base and 4 of the new one failed");
}

/// A system that logs so many entities, each passing two points.
const ENTITIES: &str = r#"
lab = 1
name = "entities"
[let]
count = 20
[variants]
base = { count = 20 }
new = { count = 18 }
[[system]]
name = "logger"
run = '''sh -c 'until [ -e {work}/go ]; do sleep 0.05; done; for i in $(seq {count}); do echo "{{\"time\":\"2026-01-01T00:00:00Z\",\"msg\":\"a\",\"id\":\"$i\"}}"; echo "{{\"time\":\"2026-01-01T00:00:01Z\",\"msg\":\"b\",\"id\":\"$i\"}}"; done; touch {work}/told; exec sleep 60' '''
[[lifecycle]]
name = "thing"
key = ["id"]
points = [["a", "a"], ["b", "b"]]
[[step]]
name = "tell"
run = "touch {work}/go; until [ -e {work}/told ]; do sleep 0.05; done"
[[expect]]
that = "thing.entities >= 1"
"#;

const GATED: &str = r#"
[[gate]]
metric = "thing.entities"
fail = "worse than 5%"
compare = { pairs = 8 }
"#;

#[test]
fn a_file_with_gates_compares_its_variants() {
    let lab = Lab::new();
    let file = lab.write("e.toml", &format!("{ENTITIES}{GATED}"));
    let worse = lab.run(&file, &["--json"]).expect_code(1);
    let found = judged(&worse);
    let metric = &found.metrics[0];
    assert_eq!((found.verdict, found.pairs), (Verdict::Worse, 8));
    assert_eq!(
        (metric.base_median, metric.new_median),
        (Some(20.0), Some(18.0))
    );
    let effect = metric.effect.expect("an effect").worse_by_share;
    assert!((effect - 0.1).abs() < 1e-9, "{effect}");
    // A seed of a pair's order, and runs that are stored as any.
    let runs = std::fs::read_dir(lab.path("runs")).expect("runs");
    assert_eq!(runs.count(), 16);
}

/// Also while nothing is measured yet: the systems of the third run are starting.
#[test]
fn ctrl_c_ends_a_gate_whose_systems_are_starting() {
    let lab = Lab::new();
    let starts = lab.path("starts");
    let slow = ENTITIES.replace(
        "until [ -e {work}/go ]",
        &format!(
            "echo >> {}; sleep 1; echo up; until [ -e {{work}}/go ]",
            starts.display()
        ),
    );
    let slow = slow.replace("[[lifecycle]]", "ready = \"log up\"\n[[lifecycle]]");
    let file = lab.write("e.toml", &format!("{slow}{GATED}"));
    let mut child = lab
        .run_command(&file, &[])
        .spawn()
        .expect("headroom starts");
    let started = || std::fs::read_to_string(&starts).map_or(0, |text| text.lines().count());
    wait_until("the third run to start", || started() == 3);
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("a running process");
    assert_eq!(child.wait().expect("a child").code(), Some(4));
    assert_eq!(started(), 3);
}

#[test]
fn sides_are_set_on_the_command_line() {
    let lab = Lab::new();
    let (without, _) = ENTITIES.split_once("[variants]").expect("variants");
    let (_, rest) = ENTITIES.split_once("[[system]]").expect("a system");
    let file = lab.write("e.toml", &format!("{without}[[system]]{rest}"));
    let file = file.display().to_string();
    let gate = |more: &[&str]| {
        let mut command = lab.command();
        command.args(["gate", &file, "--out"]).arg(lab.path("runs"));
        Finished::of(command.args(more).output().expect("headroom starts"))
    };
    let better = gate(&["--pairs", "6", "--base-set", "count=5"]).expect_code(0);
    assert!(
        better.stdout.contains("thing.entities is better"),
        "{}",
        better.stdout
    );
    gate(&[])
        .expect_code(4)
        .expect_stderr("both sides are the same");
    gate(&["--new-set", "cuont=5"])
        .expect_code(4)
        .expect_stderr("did you mean \"count\"?");
    let broken = ["--new-set", "count=5", "--limit", "p99=3%"];
    gate(&broken)
        .expect_code(4)
        .expect_stderr("there is thing.entities");
}

#[test]
fn build_servers_get_the_result_as_files() {
    let lab = Lab::new();
    let files = [
        "--junit",
        "gate.xml",
        "--markdown",
        "summary.md",
        "--picture",
        "gate.png",
    ];
    let base = next_of(&lab, "base", &[100.0, 101.0]);
    let new = next_of(&lab, "new", &[120.0, 121.0]);
    for times in 1..=2 {
        gate(&lab, &base, &new, &[&TOOK[..], &files].concat()).expect_code(1);
        let read = |name: &str| std::fs::read_to_string(lab.path(name)).expect("a file");
        let xml = read("gate.xml");
        assert_eq!(xml.matches("<testsuite ").count(), 1, "{xml}");
        assert!(
            xml.contains("failures=\"1\"") && xml.contains("took is worse"),
            "{xml}"
        );
        // A summary of several steps is one file.
        let summary = read("summary.md");
        assert_eq!(summary.matches(": fail").count(), times);
        assert_eq!(summary.matches("![the changes](<gate.png>)").count(), times);
        let picture = std::fs::read(lab.path("gate.png")).expect("a picture");
        assert!(picture.starts_with(b"\x89PNG\r\n\x1a\n"));
    }
    let file = lab.write(
        "e.toml",
        &ENTITIES.replace("thing.entities >= 1", "thing.entities > 20"),
    );
    let xml = lab.path("run.xml").display().to_string();
    lab.run(&file, &["--junit", &xml]).expect_code(1);
    let xml = std::fs::read_to_string(&xml).expect("a file");
    assert!(
        xml.contains("tests=\"1\"") && xml.contains("thing.entities &gt; 20"),
        "{xml}"
    );
}

/// Nothing but what the laboratory itself does.
const WAITS: &str = r#"
lab = 1
name = "waits"
[[system]]
name = "web"
run = "sleep 60"
needs = "NEEDS"
[[step]]
name = "watch"
run = "sh -c 'RUN' {web.addr}"
hold = "50ms"
[[expect]]
that = "duration('watch') < 1h"
"#;

/// What a run says of itself to build servers.
fn told(lab: &Lab, text: &str, code: i32, stderr: &str) -> (String, String, String) {
    let file = lab.write("waits.toml", text);
    let [xml, summary] = ["waits.xml", "waits.md"].map(|name| lab.path(name));
    for old in [&xml, &summary] {
        let _ = std::fs::remove_file(old);
    }
    let names = [&xml, &summary].map(|path| path.display().to_string());
    let ran = lab.run(&file, &["--junit", &names[0], "--markdown", &names[1]]);
    let ran = ran.expect_code(code).expect_stderr(stderr);
    let read = |path| std::fs::read_to_string(path).expect("a file");
    (ran.stdout, read(&xml), read(&summary))
}

#[test]
fn a_report_that_cannot_be_written_changes_nothing_that_is_told_of_the_run() {
    let lab = Lab::new();
    // What stands in the way of the report is made by the run itself.
    let text = WAITS
        .replace("NEEDS", "sh")
        .replace("RUN", "mkdir {work}/../report.html");
    let help = "there is no report: ";
    let (stdout, xml, summary) = told(&lab, &text, 0, help);
    assert!(stdout.contains("PASS  1 of 1 expectation held"), "{stdout}");
    assert!(!stdout.contains("\nreport  "), "{stdout}");
    assert!(
        xml.contains("tests=\"1\" failures=\"0\" errors=\"0\""),
        "{xml}"
    );
    assert_eq!(summary.matches("### ").count(), 1, "{summary}");
    assert!(summary.contains(": pass"), "{summary}");
    // Where nothing is in the way, nothing is said of it.
    let (stdout, ..) = told(
        &lab,
        &WAITS.replace("NEEDS", "sh").replace("RUN", "true"),
        0,
        "",
    );
    assert!(stdout.contains("\nreport  "), "{stdout}");
}

#[test]
fn a_run_that_judged_nothing_for_want_of_a_program_is_inconclusive_in_all_places() {
    let lab = Lab::new();
    let text = WAITS
        .replace("NEEDS", "no-such-server")
        .replace("RUN", "true");
    let why = "no-such-server is not installed";
    let (stdout, xml, summary) = told(&lab, &text, 2, why);
    assert!(
        stdout.contains("INCONCLUSIVE  1 left out, after "),
        "{stdout}"
    );
    assert!(
        xml.contains("tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"2\""),
        "{xml}"
    );
    assert!(
        summary.contains(": inconclusive") && summary.contains("– left out"),
        "{summary}"
    );
    let file = lab.path("waits.toml");
    let checked = lab.command().arg("check").arg(file).output();
    let checked = Finished::of(checked.expect("headroom starts")).expect_code(0);
    checked.expect_stderr(
        "on this machine, no-such-server is not installed: without web; left out: watch",
    );
}

/// A program that says how many entities there are, in a repository of two commits.
fn repository(lab: &Lab) -> std::path::PathBuf {
    let folder = lab.path("repository");
    std::fs::create_dir(&folder).expect("a folder");
    let git = |words: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.arg("-C").arg(&folder);
        command.args(["-c", "user.name=a", "-c", "user.email=a@b"]);
        let output = command.args(words).output().expect("git runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {error}");
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    for (count, tag) in [(20, "good"), (18, "bad")] {
        lab.write("repository/count.in", &format!("echo {count}\n"));
        git(&["add", "count.in"]);
        git(&["commit", "--quiet", "-m", tag]);
        git(&["tag", tag]);
    }
    folder
}

#[test]
fn sides_are_built_from_revisions_of_a_repository() {
    let lab = Lab::new();
    let repository = repository(&lab);
    let (without, _) = ENTITIES.split_once("[let]").expect("constants");
    let (_, rest) = ENTITIES.split_once("[[system]]").expect("a system");
    let rest = rest.replace("{count}", "$({program})");
    let text = format!("{without}[let]\nprogram = \"/bin/false\"\n[[system]]{rest}");
    let file = lab.write("e.toml", &text).display().to_string();
    let runs = lab.path("runs");
    let gate = |more: &[&str]| {
        let mut command = lab.command();
        command.current_dir(&repository);
        command
            .args(["gate", &file, "--pairs", "6", "--out"])
            .arg(&runs);
        Finished::of(command.args(more).output().expect("headroom starts"))
    };
    let build = "echo building; (echo '#!/bin/sh'; cat count.in) > out; chmod +x out";
    let how = ["--program", "program", "--build", build, "--built", "out"];
    let better = gate(&[&how[..], &["--base", "bad", "--new", "good"]].concat()).expect_code(0);
    assert!(
        better.stdout.contains("thing.entities is better") && better.stderr.contains("building\n"),
        "{}{}",
        better.stdout,
        better.stderr
    );
    // What was built stays, and is built once; nothing of the building does.
    let kept: Vec<String> = std::fs::read_dir(runs.join("programs"))
        .expect("programs")
        .map(|entry| entry.expect("an entry").file_name().display().to_string())
        .collect();
    assert_eq!(kept.len(), 2, "{kept:?}");
    let trees = std::fs::read_dir(repository.join(".git/worktrees"));
    assert_eq!(trees.map_or(0, Iterator::count), 0);
    let program = runs.join("programs").join(&kept[0]).display().to_string();
    let words = [
        "--program",
        "program",
        "--base",
        &program,
        "--new",
        &program,
    ];
    gate(&words)
        .expect_code(4)
        .expect_stderr("both sides are the same");
    let again = [&how[..], &["--base", "good", "--new", "bad"]].concat();
    let again = gate(&again).expect_code(1);
    assert!(!again.stderr.contains("building"), "{}", again.stderr);

    let wrong = [
        (&["--base", "good"][..], "--program NAME"),
        (&how[..], "give one of them, or both"),
        (
            &["--program", "program", "--new", "nowhere"],
            "neither a program nor a revision",
        ),
        (&["--program", "program", "--new", "good"], "--build CMD"),
        (
            &["--program", "porgram", "--new", "good"],
            "did you mean \"program\"?",
        ),
        (
            &[
                "--program",
                "program",
                "--new",
                "good",
                "--build",
                "exit 3",
                "--built",
                "out",
            ],
            "its command ended with exit status: 3",
        ),
        (
            &[
                "--program",
                "program",
                "--new",
                "good",
                "--build",
                "true",
                "--built",
                "out",
            ],
            "it left no out",
        ),
    ];
    for (words, why) in wrong {
        gate(words).expect_code(4).expect_stderr(why);
    }
}
