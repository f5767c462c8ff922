//! The experiments about compliance, made small: every step runs, and all that they expect is so.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::lab::{Finished, Lab, answered, experiment, is_open, processes_of_run};

/// A run of an experiment that was made small, in which every expectation held.
struct Small {
    verdict: Value,
}

impl Small {
    #[track_caller]
    fn run(name: &str, settings: &[&str]) -> Self {
        answered(1..=3, |_| Self::tried(name, settings))
    }

    /// One that a busy machine left open is none, and what it left open is told.
    #[track_caller]
    fn tried(name: &str, settings: &[&str]) -> Result<Self, String> {
        let lab = Lab::new();
        let done = Self::ended(&lab, name, settings);
        let left = processes_of_run(&lab.run_folder());
        assert_eq!(left, Vec::<String>::new());
        let verdict = done.json();
        let all = verdict["expectations"].as_array().expect("a list");
        let (open, told): (Vec<&Value>, Vec<&Value>) = all.iter().partition(|one| is_open(one));
        for one in told {
            assert_eq!(one["outcome"], "pass", "{one:#}\n{}", done.stderr);
        }
        match open.first() {
            Some(open) if done.code == 2 => Err(format!("{open:#}")),
            _ => {
                done.expect_code(0);
                Ok(Self { verdict })
            }
        }
    }

    fn ended(lab: &Lab, name: &str, settings: &[&str]) -> Finished {
        let mut arguments = vec!["--json"];
        arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
        lab.run(&experiment(name), &arguments)
    }

    /// All numbers that expectations are about.
    fn values(&self) -> BTreeMap<String, f64> {
        let expectations = self.verdict["expectations"].as_array().expect("a list");
        let all = expectations
            .iter()
            .filter_map(|one| one["values"].as_object());
        let numbers = all
            .flatten()
            .filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)));
        numbers.collect()
    }
}

#[test]
fn inventories_of_a_fleet_are_taken_once_each() {
    let small = Small::run("rudder-inventories.toml", &["agents=30", "answer=60s"]);
    assert_eq!(small.values()["kept.taken"], 30.0);
}

#[test]
fn a_change_makes_the_policies_that_it_touches() {
    let sizes = ["agents=20", "directives=2", "components=10", "single=60000"];
    let small = Small::run("rudder-policies.toml", &sizes);
    let values = small.values();
    // It is neither nobody nor everybody whom the query moves.
    assert!((2.0..20.0).contains(&values["kept.moved"]), "{values:#?}");
}

#[test]
fn every_report_is_accounted_for_through_two_outages() {
    let sizes = [
        "agents=8",
        "interval=2s",
        "components=10",
        "many_directives=19",
        "many_reports=200",
        "few=3s",
        "many=4s",
        "away=2s",
        "back=15s",
        "after=8s",
        "lag=30s",
    ];
    let small = Small::run("rudder-reports.toml", &sizes);
    // The books balance because they were kept, not because they are empty.
    let values = small.values();
    assert!(values["kept.stored"] > 8.0 * 200.0, "{values:#?}");
}

#[test]
fn every_message_of_syslog_is_accounted_for() {
    let sizes = ["agents=10", "hold=4s", "drops=100%"];
    let small = Small::run("rudder-syslog.toml", &sizes);
    let values = small.values();
    assert!(values["kept.taken"] > 1_000.0, "{values:#?}");
    let dropped = values["kept.kernel"];
    // So few at once that even a machine that is slow has room for them.
    assert_eq!(dropped, 0.0, "{values:#?}");
}

#[test]
fn what_the_kernel_drops_of_syslog_is_in_the_books() {
    let lab = Lab::new();
    // Less than one run: whatever comes at once is too much.
    let text = std::fs::read_to_string(experiment("rudder-syslog.toml")).expect("an experiment");
    let listen = "--syslog-listen {addr.syslog}";
    assert!(text.contains(listen), "{text}");
    let small = format!("{listen} --syslog-receive-buffer 4KiB");
    let file = lab.write("rudder-syslog.toml", &text.replace(listen, &small));
    std::os::unix::fs::symlink(experiment("compliance"), lab.path("compliance")).expect("a link");
    let sizes = [
        "--json",
        "--set",
        "agents=10",
        "--set",
        "directives=20",
        "--set",
        "hold=6s",
    ];
    let verdict = lab.run(&file, &sizes).expect_code(1).json();
    let expectations = verdict["expectations"].as_array().expect("a list");
    for one in expectations {
        let that = one["that"].as_str().expect("an expectation");
        let expected = if that == "kept.kernel <= 0% of kept.sent" {
            "fail"
        } else {
            "pass"
        };
        assert_eq!(one["outcome"], expected, "{one:#}");
    }
}

#[test]
fn a_store_ends_to_grow_when_runs_are_old_enough() {
    let sizes = [
        "agents=8",
        "directives=1",
        "keep=4s",
        "half=16s",
        "growth=300%",
        // A log that is as large as it gets is most of so small a database.
        "report=200",
        "row=20000",
    ];
    let small = Small::run("rudder-soak.toml", &sizes);
    let values = small.values();
    assert!(values["kept.made_runs"] > 100.0, "{values:#?}");
}

#[test]
fn a_store_that_keeps_everything_is_found() {
    let lab = Lab::new();
    let sizes = [
        "agents=8",
        "directives=1",
        "keep=1h",
        "half=8s",
        "report=200",
        "row=20000",
    ];
    let verdict = Small::ended(&lab, "rudder-soak.toml", &sizes)
        .expect_code(1)
        .json();
    let expectations = verdict["expectations"].as_array().expect("a list");
    let runs = expectations.iter().find(|one| {
        one["that"]
            .as_str()
            .is_some_and(|that| that.starts_with("kept.stored_runs"))
    });
    assert_eq!(
        runs.expect("an expectation")["outcome"],
        "fail",
        "{verdict:#}"
    );
}
