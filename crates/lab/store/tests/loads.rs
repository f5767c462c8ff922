//! Results of loads, written and read back.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use lab_load::Summary;
use lab_load::recording::{ConnectionCounts, Phase, Tenths};
use lab_load::summary::{
    AfterEnd, Bytes, Counts, Distribution, ErrorCount, GeneratorUse, Histograms, Latency, Rates,
    SCHEMA, Slot, Steady, Validity,
};
use lab_store::{RunFolder, StoreError, StoredLoad};
use proptest::prelude::*;

fn new_run(folder: &Path) -> RunFolder {
    let start = "2026-11-21T09:30:00Z".parse().unwrap();
    RunFolder::create(folder, "demo", start).unwrap()
}

fn summary(name: &str) -> Summary {
    let times = Distribution {
        count: 3,
        min: Some(0.1 + 0.2),
        max: Some(1e-6),
        ..Distribution::default()
    };
    let mut tenths = Tenths::default();
    tenths.at(Tenths::LENGTH * 7).worst_us = 900;
    Summary {
        schema: SCHEMA,
        name: name.into(),
        target: "http://127.0.0.1:8080/".into(),
        model: "open".into(),
        arrivals: "poisson 5000/s".into(),
        began_unix_ns: i64::MAX,
        duration_s: 10.0,
        partial: None,
        validity: Validity {
            valid: true,
            reasons: Vec::new(),
            loosened: Vec::new(),
        },
        sending_s: 10.0,
        warm_up_s: 0.0,
        after_end: AfterEnd::default(),
        steady: Steady {
            from_s: 1.0,
            to_s: 10.0,
            state: "steady".into(),
            ..Steady::default()
        },
        rate: Rates {
            asked: Some(5000.0),
            sent: 5000.0,
            good: 4999.9,
            good_at_best: None,
        },
        requests: Counts {
            planned: u64::MAX,
            sent: 3,
            waited: 0,
            answered: 3,
            refused: 0,
            errors: 1,
            retried: 2,
            ..Counts::default()
        },
        latency: Latency {
            intended: times.clone(),
            actual: times,
        },
        lateness: Distribution::default(),
        statuses: BTreeMap::from([(200, 3)]),
        status_names: BTreeMap::new(),
        errors: vec![ErrorCount {
            phase: Phase::Connect,
            cause: "refused".into(),
            count: 1,
        }],
        refusals: BTreeMap::new(),
        bytes: Bytes {
            sent: 1,
            received: 2,
        },
        connections: ConnectionCounts::default(),
        generator: GeneratorUse {
            threads: 1,
            workers: 1,
            cpu_s: 0.5,
            cpu_per_request_s: None,
            busiest_thread: 0.3,
            pace: "exact".into(),
            steal: 0.0,
            in_flight: 1.0,
            in_flight_little: 1.01,
            in_flight_most: Some(1000),
            waited_s: 0.25,
            stopped_s: 0.0,
            read_late_s: 1e-3,
        },
        kinds: Vec::new(),
        timeline: vec![Slot {
            unanswered: 0,
            t_s: 0.0,
            length_s: 1.0,
            after_end: false,
            planned: 3,
            sent: 3,
            good: 3,
            failed: 0,
            p50: Some(1e-4),
            p99: None,
            max: None,
            in_flight: 1,
            backlog: 0,
            heat: vec![(10, 3)],
            late: 1,
            waited_share: 0.1 + 0.2,
            ..Slot::default()
        }],
        tenths,
        histograms: Histograms {
            intended: String::new(),
            actual: String::new(),
            lateness: String::new(),
        },
        capacity: None,
        floor: None,
        notes: Vec::new(),
    }
}

fn files(run: &RunFolder) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(run.path().join("loads"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn loads_come_back_in_the_order_in_which_they_began() {
    let folder = tempfile::tempdir().unwrap();
    let run = new_run(folder.path());
    assert_eq!(run.loads().unwrap(), []);
    let later = summary("front");
    let earlier = Summary {
        began_unix_ns: 1,
        ..summary("probe")
    };
    run.write_load(&later, Some("ramp up")).unwrap();
    run.write_load(&earlier, None).unwrap();
    let expected = [
        StoredLoad {
            step: None,
            summary: earlier,
        },
        StoredLoad {
            step: Some("ramp up".into()),
            summary: later,
        },
    ];
    assert_eq!(run.loads().unwrap(), expected);
    assert_eq!(files(&run), ["probe.json", "ramp_up.front.json"]);
}

#[test]
fn a_file_is_also_what_the_command_prints() {
    let folder = tempfile::tempdir().unwrap();
    let run = new_run(folder.path());
    run.write_load(&summary("front"), Some("hold")).unwrap();
    let text = fs::read_to_string(run.path().join("loads/hold.front.json")).unwrap();
    assert_eq!(
        serde_json::from_str::<Summary>(&text).unwrap(),
        summary("front")
    );
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["step"], "hold");
}

#[test]
fn the_same_load_is_replaced_and_others_never_are() {
    let folder = tempfile::tempdir().unwrap();
    let run = new_run(folder.path());
    run.write_load(&summary("a/b"), None).unwrap();
    run.write_load(&summary("a_b"), None).unwrap();
    let again = Summary {
        duration_s: 99.0,
        ..summary("a/b")
    };
    run.write_load(&again, None).unwrap();
    assert_eq!(files(&run), ["a_b-2.json", "a_b.json"]);
    assert_eq!(run.load("a_b").unwrap().summary, again);
    assert_eq!(run.load("a_b-2").unwrap().summary, summary("a_b"));

    fs::write(run.path().join("loads/x.json"), "cut sh").unwrap();
    run.write_load(&summary("x"), None).unwrap();
    let broken = fs::read_to_string(run.path().join("loads/x.json")).unwrap();
    assert_eq!(broken, "cut sh", "what cannot be read is left to people");
    assert_eq!(run.load("x-2").unwrap().summary, summary("x"));
}

#[test]
fn a_newer_summary_and_a_broken_one_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let run = new_run(folder.path());
    let place = |name: &str| run.path().join("loads").join(name);
    fs::write(
        place("new.json"),
        "{\"schema\": 4, \"from\": \"the future\"}",
    )
    .unwrap();
    let error = run.load("new").unwrap_err();
    assert!(
        matches!(error, StoreError::Newer { found: 4, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("loads/new.json"), "{error}");
    fs::write(place("new.json"), "{\"schema\": 1,\n\"name\": 4}").unwrap();
    let error = run.loads().unwrap_err().to_string();
    assert!(error.contains("loads/new.json, line 2"), "{error}");
}

#[test]
fn numbers_that_are_not_finite_are_refused_and_the_old_result_stays() {
    let folder = tempfile::tempdir().unwrap();
    let run = new_run(folder.path());
    run.write_load(&summary("front"), None).unwrap();
    let mut bad = summary("front");
    bad.latency.intended.p99 = Some(f64::NAN);
    let error = run.write_load(&bad, None).unwrap_err().to_string();
    assert!(error.contains("not finite"), "{error}");
    bad.latency.intended.p99 = None;
    bad.duration_s = f64::INFINITY;
    assert!(run.write_load(&bad, None).is_err());
    assert_eq!(run.load("front").unwrap().summary, summary("front"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_names_stay_in_the_folder_and_come_back(
        names in prop::collection::btree_set((prop::option::of(".{0,120}"), ".{0,120}"), 1..6)
    ) {
        let folder = tempfile::tempdir().unwrap();
        let run = new_run(folder.path());
        for (step, name) in &names {
            run.write_load(&summary(name), step.as_deref()).unwrap();
        }
        let found: std::collections::BTreeSet<_> = run
            .loads()
            .unwrap()
            .into_iter()
            .map(|load| (load.step, load.summary.name))
            .collect();
        prop_assert_eq!(found, names);
    }
}

#[test]
fn an_older_result_is_read_with_what_it_lacks_worked_out() {
    let folder = tempfile::tempdir().unwrap();
    let run = new_run(folder.path());
    let mut older = serde_json::to_value(summary("front")).unwrap();
    older["schema"] = 1.into();
    for field in ["sending_s", "warm_up_s", "after_end", "status_names"] {
        older.as_object_mut().unwrap().remove(field);
    }
    for field in ["tried", "failed", "failed_share"] {
        older["requests"].as_object_mut().unwrap().remove(field);
    }
    fs::create_dir_all(run.path().join("loads")).unwrap();
    fs::write(run.path().join("loads/front.json"), older.to_string()).unwrap();
    let read = run.load("front").unwrap().summary;
    assert_eq!(read.sending_s, 9.0);
    let counts = &read.requests;
    assert_eq!((counts.tried, counts.failed), (4, 1));
    assert_eq!(counts.failed_share, Some(0.25));
    assert!(
        read.notes[0].contains("leave out requests")
            && read.notes[1].contains("of the steady part"),
        "{:?}",
        read.notes
    );
}
