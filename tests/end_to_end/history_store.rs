//! `headroom history --store`: in a folder, and in a branch.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lab_judgement::{Direction, Fingerprint, Metric, MetricValue, Record, Unit, write_record};

use crate::lab::{Finished, Lab};

/// A history of one run, as a file to import.
fn one(lab: &Lab, run: &str, plan: &str, at: i64) -> PathBuf {
    let environment = Fingerprint {
        plan_hash: plan.to_owned(),
        cores: 2,
        ..Fingerprint::default()
    };
    let metric = MetricValue {
        metric: Metric {
            name: "parse".to_owned(),
            unit: Unit::Seconds,
            direction: Direction::LowerIsBetter,
        },
        value: 1.0 + at as f64 / 1e3,
        replicates: Vec::new(),
    };
    let commit = "c".to_owned();
    let record = Record::new(run.to_owned(), commit, at, environment, vec![metric]);
    let line = write_record(&record).expect("a record");
    lab.write(&format!("{run}.jsonl"), &line)
}

fn history(lab: &Lab, folder: &Path, words: &[&str]) -> Finished {
    let mut command = lab.command();
    command.current_dir(folder).arg("history").args(words);
    // As on a build server, where nobody has a name.
    command
        .env("HOME", folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    Finished::of(command.output().expect("headroom starts"))
}

fn import(lab: &Lab, folder: &Path, file: &Path, store: &str) -> Finished {
    let file = file.display().to_string();
    history(lab, folder, &["import", &file, "--store", store])
}

/// The runs that a store shows.
fn shown(lab: &Lab, folder: &Path, store: &str) -> Vec<String> {
    let json = history(lab, folder, &["show", "--json", "--store", store]).json();
    let runs = json["runs"].as_array().expect("runs").iter();
    runs.map(|run| run.as_str().expect("a name").to_owned())
        .collect()
}

/// Adds ten runs at once.
fn at_once(lab: &Lab, folder: &Path, store: &str) {
    let files: Vec<PathBuf> = (0..10)
        .map(|at| one(lab, &format!("at-once-{at}"), "plan", 100 + at))
        .collect();
    let adding: Vec<_> = files
        .iter()
        .map(|file| {
            let mut command = lab.command();
            command.current_dir(folder).args(["history", "import"]);
            command.arg(file).args(["--store", store]);
            command
                .stdout(Stdio::null())
                .spawn()
                .expect("headroom starts")
        })
        .collect();
    for mut adding in adding {
        assert!(adding.wait().expect("an end").success());
    }
    let runs = shown(lab, folder, store);
    for at in 0..10 {
        let name = format!("at-once-{at}");
        assert_eq!(
            runs.iter().filter(|run| **run == name).count(),
            1,
            "{runs:?}"
        );
    }
}

/// What every store does.
fn keeps_runs_by_plan(lab: &Lab, folder: &Path, store: &str) {
    history(lab, folder, &["show", "--store", store])
        .expect_code(4)
        .expect_stderr("no history is there");
    for (run, plan, at) in [("a", "plan", 1), ("b", "other", 2), ("c", "plan", 3)] {
        let added = import(lab, folder, &one(lab, run, plan, at), store).expect_code(0);
        assert!(
            added
                .stdout
                .ends_with(&format!("1 run added, {at} in all\n")),
            "{}",
            added.stdout
        );
    }
    assert_eq!(shown(lab, folder, store), ["a", "c"]);
    import(lab, folder, &one(lab, "d", "other", 4), store).expect_code(0);
    assert_eq!(shown(lab, folder, store), ["b", "d"]);
    import(lab, folder, &one(lab, "a", "other", 5), store)
        .expect_code(4)
        .expect_stderr("the run a is in it already");
    let page = history(lab, folder, &["page", "--store", store]).expect_code(0);
    assert_eq!(page.stdout, "history.html\n");
    std::fs::remove_file(folder.join("history.html")).expect("a page");
    at_once(lab, folder, store);
}

#[test]
fn a_folder_keeps_a_file_for_each_plan() {
    let lab = Lab::new();
    let here = lab.path(".");
    keeps_runs_by_plan(&lab, &here, "kept/here");
    let names = std::fs::read_dir(lab.path("kept/here")).expect("a folder");
    let mut names: Vec<String> = names
        .map(|entry| entry.expect("an entry").file_name().display().to_string())
        .filter(|name| name != ".lock")
        .collect();
    names.sort();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names[0].starts_with("other-") && names[1].starts_with("plan-"));
    // What cannot be read is named, and stays as it is.
    let file = lab.path("kept/here").join(&names[1]);
    std::fs::write(&file, "nothing\n").expect("a file");
    import(&lab, &here, &one(&lab, "z", "plan", 9), "kept/here")
        .expect_code(4)
        .expect_stderr(&names[1]);
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), "nothing\n");
    history(&lab, &here, &["show", "--store", "a", "--file", "b"]).expect_code(4);
}

fn git(folder: &Path, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder);
    command.args(["-c", "user.name=a", "-c", "user.email=a@b"]);
    let output = command.args(words).output().expect("git runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {error}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn a_branch_keeps_runs_and_nothing_else_of_the_repository_changes() {
    let lab = Lab::new();
    let repository = lab.path("repository");
    std::fs::create_dir(&repository).expect("a folder");
    history(&lab, &repository, &["show", "--store", "git:perf"])
        .expect_code(4)
        .expect_stderr("not a git repository");
    git(&repository, &["init", "--quiet", "--initial-branch=work"]);
    lab.write("repository/file", "one");
    git(&repository, &["add", "file"]);
    git(&repository, &["commit", "--quiet", "-m", "one"]);
    // Something staged, something changed, something new.
    lab.write("repository/file", "two");
    git(&repository, &["add", "file"]);
    lab.write("repository/file", "three");
    lab.write("repository/new", "new");
    let state = || {
        let words = [
            &["status", "--porcelain=v2", "--branch"][..],
            &["rev-parse", "work"],
            &["ls-files", "--stage"],
        ];
        words.map(|words| git(&repository, words))
    };
    let before = state();
    keeps_runs_by_plan(&lab, &repository, "git:perf");
    assert_eq!(state(), before);
    let files = git(&repository, &["ls-tree", "--name-only", "perf"]);
    assert_eq!(files.lines().count(), 2, "{files}");
    // A commit for each that added, none lost; the branch has no commit of the work.
    assert_eq!(git(&repository, &["rev-list", "--count", "perf"]), "14");
    git(&repository, &["fsck", "--strict"]);

    for (branch, why) in [
        ("git:work", "is checked out"),
        ("git:a..b", "cannot be the name of a branch"),
    ] {
        import(&lab, &repository, &one(&lab, "z", "plan", 9), branch)
            .expect_code(4)
            .expect_stderr(why);
    }
    git(&repository, &["branch", "other", "work"]);
    import(&lab, &repository, &one(&lab, "z", "plan", 9), "git:other")
        .expect_code(4)
        .expect_stderr("holds something else, file for instance");
}
