//! `headroom compare` and `headroom history`, of runs whose truth is planted.

use std::path::{Path, PathBuf};
use std::process::Command;

use lab_judgement::{Comparison, ComparisonBasis, Verdict};
use serde_json::Value;

use crate::lab::{Finished, Lab};

/// A system that logs as many entities as a file says: runs of one plan that differ.
const FILE: &str = r#"
lab = 1
name = "entities"
[let]
wait = 1
[[system]]
name = "logger"
run = '''sh -c 'until [ -e {work}/go ]; do sleep 0.05; done; for i in $(seq $(cat COUNT)); do echo "{{\"time\":\"2026-01-01T00:00:00Z\",\"msg\":\"a\",\"id\":\"$i\"}}"; echo "{{\"time\":\"2026-01-01T00:00:01Z\",\"msg\":\"b\",\"id\":\"$i\"}}"; done; touch {work}/told; exec sleep 60' '''
env = { WAIT = "{wait}" }
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

/// Runs that show as many entities each.
fn runs(lab: &Lab, folder: &str, counts: &[u32], more: &[&str]) -> Vec<PathBuf> {
    let count = lab.path("count");
    let text = FILE.replace("COUNT", &count.display().to_string());
    let file = lab.write("e.toml", &text);
    let out = lab.path(folder);
    for entities in counts {
        lab.write("count", &entities.to_string());
        let mut command = lab.command();
        command
            .arg("run")
            .arg(&file)
            .arg("--out")
            .arg(&out)
            .args(more);
        Finished::of(command.output().expect("headroom starts")).expect_code(0);
    }
    let entries = std::fs::read_dir(&out).expect("runs");
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    found.sort();
    found
}

fn headroom(lab: &Lab, words: &[&str], paths: &[&Path]) -> Finished {
    let mut command = lab.command();
    command.current_dir(lab.path("."));
    Finished::of(
        command
            .args(words)
            .args(paths)
            .output()
            .expect("headroom starts"),
    )
}

fn compare(lab: &Lab, words: &[&str], base: &[PathBuf], new: &[PathBuf]) -> Finished {
    let mut command = lab.command();
    command
        .arg("compare")
        .args(words)
        .args(base)
        .arg("--")
        .args(new);
    Finished::of(command.output().expect("headroom starts"))
}

fn only(json: &Value) -> Comparison {
    serde_json::from_value(json["metrics"][0].clone()).expect("a comparison")
}

#[test]
fn groups_and_single_runs_say_what_they_can_be_held_to() {
    let lab = Lab::new();
    let base = runs(&lab, "base", &[40, 41, 40, 41, 40], &[]);
    let new = runs(&lab, "new", &[30, 31, 30, 31, 30], &[]);
    let worse = compare(&lab, &["--json"], &base, &new)
        .expect_code(1)
        .json();
    let found = only(&worse);
    assert_eq!(
        (found.verdict, found.licence),
        (Verdict::Worse, ComparisonBasis::Unpaired)
    );
    assert_eq!(found.metric.name, "thing.entities");
    assert_eq!(
        (found.base_median, found.new_median),
        (Some(40.0), Some(30.0))
    );
    assert_eq!(worse["base"].as_array().map(Vec::len), Some(5));

    compare(&lab, &[], &base, &base)
        .expect_code(4)
        .expect_stderr("is given twice");
    let equal = runs(&lab, "equal", &[40, 41, 40, 41, 40], &[]);
    let same = compare(&lab, &["--limit", "10%"], &base, &equal).expect_code(0);
    assert!(
        same.stdout.contains("NOT WORSE")
            && same
                .stdout
                .contains("nothing differs in file, environment and machine")
            && same.stdout.contains("not made in random pairs"),
        "{}",
        same.stdout
    );
    let one = headroom(&lab, &["compare"], &[&base[0], &new[0]]).expect_code(2);
    assert!(
        one.stdout.contains("One run of each says nothing") && one.stdout.contains("40"),
        "{}",
        one.stdout
    );

    let other = runs(&lab, "other", &[30, 31, 30, 31, 30], &["--set", "wait=2"]);
    let forbidden = compare(&lab, &[], &base, &other).expect_code(2);
    assert!(
        forbidden
            .stdout
            .contains("the plan of the experiment differs: systems.0.env.WAIT"),
        "{}",
        forbidden.stdout
    );
    compare(&lab, &["--despite-differences"], &base, &other).expect_code(1);

    let page = lab.path("page.html").display().to_string();
    compare(&lab, &["--page", &page], &base, &new).expect_code(1);
    let page = std::fs::read_to_string(&page).expect("a page");
    for part in [
        "WORSE",
        "thing.entities",
        "40 entities",
        "30 entities",
        "a → b",
    ] {
        assert!(
            page.to_uppercase().contains(&part.to_uppercase()),
            "{part}: {page}"
        );
    }
    assert_eq!(page.matches("class=\"lives\"").count(), 2);
    let nowhere = lab.path("no/page.html").display().to_string();
    compare(&lab, &["--page", &nowhere], &base, &new)
        .expect_code(4)
        .expect_stderr("no/page.html");

    compare(&lab, &["--metric", "thing.p99"], &base, &new)
        .expect_code(4)
        .expect_stderr("there is thing.entities");
    headroom(&lab, &["compare"], &[&base[0]])
        .expect_code(4)
        .expect_stderr("give two runs");
    headroom(&lab, &["compare"], &[&base[0], Path::new("nowhere")])
        .expect_code(4)
        .expect_stderr("nowhere");
}

#[test]
fn new_runs_are_compared_with_a_file_of_older_ones() {
    let lab = Lab::new();
    let base = runs(&lab, "base", &[40, 41, 40, 41, 40], &[]);
    let new = runs(&lab, "new", &[30, 31, 30, 31, 30], &[]);
    let paths: Vec<&Path> = base.iter().map(PathBuf::as_path).collect();
    let written = headroom(&lab, &["baseline"], &paths).expect_code(0);
    let file = lab.write("baseline.json", &written.stdout);
    let json = written.json();
    assert_eq!(json["runs"].as_array().map(Vec::len), Some(5));
    assert_eq!(json["metrics"][0]["values"][1], 41.0);
    assert_eq!(
        json["environment"]["plan_hash"].as_str().map(str::len),
        Some(64)
    );

    // As if the runs themselves were given; they are not needed any more.
    let by_runs = compare(&lab, &["--json"], &base, &new)
        .expect_code(1)
        .json();
    std::fs::remove_dir_all(lab.path("base")).expect("runs");
    let named = file.display().to_string();
    let words = ["compare", "--json", "--baseline", &named];
    let paths: Vec<&Path> = new.iter().map(PathBuf::as_path).collect();
    let by_file = headroom(&lab, &words, &paths).expect_code(1).json();
    for field in ["base", "new", "differences", "verdict", "metrics"] {
        assert_eq!(by_file[field], by_runs[field], "{field}");
    }

    let other = runs(&lab, "other", &[30, 31], &["--set", "wait=2"]);
    let others: Vec<&Path> = other.iter().map(PathBuf::as_path).collect();
    let forbidden = headroom(&lab, &words, &others).expect_code(2);
    assert!(
        forbidden
            .stdout
            .contains("the plan of the experiment differs"),
        "{}",
        forbidden.stdout
    );
    headroom(&lab, &["baseline"], &[&new[0], &other[0]])
        .expect_code(4)
        .expect_stderr("are not of the same: the plan of the experiment differs");
    let one = headroom(&lab, &["baseline"], &[&new[0]]).expect_code(0);
    one.expect_stderr("give several runs");
    std::fs::write(&file, "{}").expect("a file");
    headroom(&lab, &words, &paths)
        .expect_code(4)
        .expect_stderr("read the baseline");
}

fn git(folder: &Path, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command
        .arg("-C")
        .arg(folder)
        .args(["-c", "user.name=a", "-c", "user.email=a@b"]);
    let output = command.args(words).output().expect("git runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn a_history_names_the_commit_that_made_it_slower() {
    let lab = Lab::new();
    let repository = lab.path("repository");
    std::fs::create_dir(&repository).expect("a folder");
    git(&repository, &["init", "--quiet"]);
    for at in 0..24 {
        let subject = if at == 12 {
            "sort twice".to_owned()
        } else {
            format!("commit {at}")
        };
        git(
            &repository,
            &["commit", "--quiet", "--allow-empty", "-m", &subject],
        );
        let noise = [0.0, 0.4, -0.3, 0.2, -0.4, 0.1][at % 6];
        let value = noise + if at < 12 { 100.0 } else { 120.0 };
        let results = lab.write(
            "r.json",
            &format!(r#"[{{"name": "parse", "unit": "ns/iter", "value": {value}}}]"#),
        );
        let commit = git(&repository, &["rev-parse", "HEAD"]);
        let words = ["history", "import", "--commit", &commit];
        headroom(&lab, &words, &[&results]).expect_code(0);
    }
    let words = ["history", "show", "--repository"];
    let shown = headroom(&lab, &words, &[&repository]).expect_code(0);
    assert!(
        shown.stdout.contains("100 ns became 120 ns") && shown.stdout.contains(" sort twice\n"),
        "{}",
        shown.stdout
    );
    assert!(!shown.stdout.contains("commit 11\n"), "{}", shown.stdout);
    let json = headroom(&lab, &["history", "show", "--json"], &[])
        .expect_code(0)
        .json();
    assert_eq!(json["metrics"][0]["changes"][0]["index"], 12);
    assert_eq!(json["metrics"][0]["changes"][0]["certain"], true);

    // The page says the same in the same words, of every run.
    let words = ["history", "page", "--repository"];
    let page = headroom(&lab, &words, &[&repository]).expect_code(0);
    assert_eq!(page.stdout, "runs/history.html\n");
    let page = std::fs::read_to_string(lab.path("runs/history.html")).expect("a page");
    for part in ["100 ns became 120 ns", " sort twice", "step no"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert_eq!(page.matches("class=\"hit\"").count(), 24);
    assert!(
        !page.contains("commit 11") && !page.contains("http://"),
        "{page}"
    );
    headroom(&lab, &["history", "page", "--metric", "p99"], &[])
        .expect_code(4)
        .expect_stderr("no run has a metric");

    // Ten runs ago at most, it makes the exit code.
    let lines = std::fs::read_to_string(lab.path("runs/history.jsonl")).expect("a history");
    let early: Vec<&str> = lines.lines().take(16).collect();
    let early = lab.write("early.jsonl", &(early.join("\n") + "\n"));
    headroom(&lab, &["history", "show", "--file"], &[&early]).expect_code(1);
    let again = headroom(&lab, &["history", "import"], &[&early]).expect_code(0);
    assert!(
        again
            .stdout
            .starts_with("runs/history.jsonl: 0 runs added, 16 were there already, "),
        "{}",
        again.stdout
    );
}

#[test]
fn runs_are_added_to_a_history_once() {
    let lab = Lab::new();
    let run = runs(&lab, "runs", &[7], &[]);
    let words = ["history", "add", "--commit", "v1"];
    let added = headroom(&lab, &words, &[&run[0]]).expect_code(0);
    assert_eq!(added.stdout, "runs/history.jsonl: 1 run added, 1 in all\n");
    headroom(&lab, &words, &[&run[0]])
        .expect_code(4)
        .expect_stderr("is in it already");
    let line = std::fs::read_to_string(lab.path("runs/history.jsonl")).expect("a history");
    let record = lab_judgement::read_records(&line)
        .expect("records")
        .remove(0);
    assert_eq!(record.commit, "v1");
    assert_eq!(
        record.metric("thing.entities").map(|found| found.value),
        Some(7.0)
    );
    let shown = headroom(&lab, &["history", "show"], &[]).expect_code(0);
    assert!(
        shown.stdout.contains("no change in 1 value\n"),
        "{}",
        shown.stdout
    );
}
