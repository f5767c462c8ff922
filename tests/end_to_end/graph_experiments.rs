//! The experiments about service graphs: every file is right, and some of them, made small,
//! run and are judged.

use std::fs;

use serde_json::{Value, json};

use crate::lab::{Lab, answered, experiment, processes_of_run};

/// What is asked of every small run: a busy machine sends late, and that is no fault of it.
const SMALL: &[&str] = &["--json", "--set", "late=10s"];

/// How the names of steps begin in which answers are delayed on purpose.
const DELAYED: [&str; 2] = ["slow ratings", "neighbour"];

/// Whether requests of a load ran out of time, in a step in which nobody planted a delay.
fn ran_out_of_time(load: &Value) -> bool {
    let is_late = |error: &Value| {
        ["timeout", "every connection busy"]
            .iter()
            .any(|cause| error["cause"] == *cause)
    };
    let step = load["step"].as_str().unwrap_or_default();
    let is_delayed = DELAYED.iter().any(|begin| step.starts_with(begin));
    let errors = load["errors"].as_array().expect("errors");
    !is_delayed && (!load["statuses"]["504"].is_null() || errors.iter().any(is_late))
}

#[test]
fn a_planted_delay_is_no_busy_machine() {
    let late = |step: &str| {
        let load = json!({ "step": step, "statuses": { "200": 9, "504": 1 }, "errors": [] });
        ran_out_of_time(&load)
    };
    assert!(late("as it is") && late("alone, 1") && late("a neighbour comes"));
    assert!(!late("slow ratings") && !late("neighbour, 2"));
    let failed = |cause: &str| {
        let load = json!({ "step": "no work", "statuses": {}, "errors": [{ "cause": cause }] });
        ran_out_of_time(&load)
    };
    assert!(failed("timeout") && !failed("connection refused"));
}

/// A run of an experiment that was made small.
struct Small {
    lab: Lab,
    verdict: Value,
}

impl Small {
    #[track_caller]
    fn run(name: &str, settings: &[&str]) -> Self {
        let lab = Lab::alone();
        let mut arguments = SMALL.to_vec();
        arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
        let run = lab.run(&lab.patient(name), &arguments);
        // How fast an unoptimised graph on a busy machine is says nothing; but every step
        // must end well.
        assert!(matches!(run.code, 0..=3), "{}\n{}", run.stdout, run.stderr);
        let verdict = run.json();
        // A busy machine adds to latencies, and then it is not known whether all of them hold.
        let late = "the generator was late itself";
        let well = verdict["reason"]
            .as_str()
            .is_none_or(|why| why.contains(late));
        assert!(well, "{verdict:#}");
        Self { lab, verdict }
    }

    /// Whether the expectation that begins so held.
    #[track_caller]
    fn held(&self, begin: &str) -> bool {
        let expectations = self.verdict["expectations"].as_array().expect("a list");
        let mut all = expectations.iter();
        let found = all.find(|one| {
            one["that"]
                .as_str()
                .is_some_and(|that| that.starts_with(begin))
        });
        let found = found.unwrap_or_else(|| panic!("nothing expected begins with {begin:?}"));
        found["outcome"] == "pass"
    }

    /// Expectations of which each one held. Where one did not, and requests ran out of time for which nobody
    /// planted a delay, a busy machine took it: then what there was instead.
    #[track_caller]
    fn all_held(&self, begins: &[&str]) -> Result<(), String> {
        if begins.iter().all(|begin| self.held(begin)) {
            return Ok(());
        }
        let told = format!("{:#}", self.verdict);
        let is_busy = self.lab.loads().values().any(ran_out_of_time);
        assert!(is_busy, "{begins:?}: {told}");
        Err(told)
    }

    /// What the command of a step printed.
    #[track_caller]
    fn said(&self, step: &str) -> String {
        let events =
            fs::read_to_string(self.lab.run_folder().join("events.jsonl")).expect("events");
        let mut events = events
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let said = events.find(|event| event["kind"] == "said" && event["name"] == step);
        let said = said.unwrap_or_else(|| panic!("{step:?} said nothing"));
        said["text"].as_str().expect("text").to_owned()
    }

    fn leaves_nothing(&self) {
        let left = processes_of_run(&self.lab.run_folder());
        assert_eq!(left, Vec::<String>::new());
    }
}

#[test]
fn every_experiment_about_graphs_is_right() {
    let folder = experiment("");
    let names = fs::read_dir(folder).expect("experiments").map(|entry| {
        let name = entry.expect("an entry").file_name();
        name.into_string().expect("a name")
    });
    let graphs: Vec<_> = names.filter(|name| name.starts_with("graph-")).collect();
    assert!(graphs.len() >= 7, "{graphs:?}");
    for name in graphs {
        let lab = Lab::new();
        let checked = lab.command().arg("check").arg(experiment(&name)).output();
        let checked = checked.expect("headroom starts");
        let said = String::from_utf8_lossy(&checked.stderr);
        assert!(checked.status.success(), "{name}: {said}");
    }
}

#[test]
fn every_topology_of_an_experiment_is_right() {
    let lab = Lab::new();
    let mut found = 0;
    for entry in fs::read_dir(experiment("graphs")).expect("topologies") {
        let path = entry.expect("an entry").path();
        let checked = lab.command().args(["graph", "check"]).arg(&path).output();
        let checked = checked.expect("headroom starts");
        let said = String::from_utf8_lossy(&checked.stderr);
        assert!(checked.status.success(), "{}: {said}", path.display());
        found += 1;
    }
    assert!(found >= 9, "{found}");
}

#[test]
fn a_chain_does_its_work_and_says_where_the_time_went() {
    answered(["turn=3s", "turn=6s"], |turn| {
        let small = Small::run("graph-chain-3.toml", &[turn]);
        small.leaves_nothing();
        let said = small.said("busywork");
        for service in ["broot", "bbranch", "bleaf"] {
            assert!(said.contains(service), "{said}");
        }
        small.all_held(&["nothing errors == 0%", "opened.value == 1"])
    });
}

#[test]
fn faults_that_come_with_a_profile_are_found() {
    // As many requests at rates that are slower and slower.
    let sizes = [
        ["turn=4s", "rate=80/s"],
        ["turn=16s", "rate=20/s"],
        ["turn=32s", "rate=10/s"],
    ];
    answered(sizes, |sizes| {
        let small = Small::run("graph-bookinfo.toml", &sizes);
        small.leaves_nothing();
        assert!(small.said("slow ratings").contains("ratings"));
        small.all_held(&[
            "'as it is': page errors == 0%",
            "'failing ratings': page errors > 2%",
            "'asked again': page errors",
        ])
    });
}

#[test]
fn time_that_a_neighbour_takes_is_called_stolen() {
    answered(["turn=3s", "turn=6s"], |turn| {
        let small = Small::run("graph-noisy-neighbour.toml", &[turn, "last=40"]);
        small.leaves_nothing();
        assert!(small.said("neighbour, 1").contains("stolen"));
        small.all_held(&["'alone, 1': front errors == 0%"])
    });
}
