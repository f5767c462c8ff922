use std::sync::Arc;

use jiff::Timestamp;
use lab_store::{Environment, FaultRecord, Outcome, SCHEMA, Verdict};
use serde_json::Value;

use super::*;

fn row(id: &str, at_ms: &[Option<i64>]) -> Row {
    Row {
        id: id.into(),
        group: Some(Arc::from("cell.0")),
        at_ns: at_ms.iter().map(|at| at.map(|at| at * 1_000_000)).collect(),
    }
}

/// A run with a step, a fault, three entities and a sample of a process.
fn run(folder: &std::path::Path) -> RunFolder {
    let run = RunFolder::create(folder, "demo", Timestamp::UNIX_EPOCH).unwrap();
    let environment = Environment {
        schema: SCHEMA,
        run_id: run.id(),
        started_at_unix_ns: 0,
        command: Vec::new(),
        headroom_version: String::new(),
        git_commit: None,
        cores: 2,
        cpu_model: String::new(),
        memory_bytes: 0,
        kernel: String::new(),
        versions: BTreeMap::new(),
    };
    run.write_json(RunFile::Environment, &environment).unwrap();
    let event = |t_s, kind, name: &str| Event {
        t_s,
        kind,
        name: name.to_owned(),
        text: String::new(),
    };
    let mut events = run.appender::<Event>().unwrap();
    for event in [
        event(1.0, EventKind::StepStarted, "up"),
        event(3.5, EventKind::StepEnded, "up"),
        event(3.5, EventKind::StepStarted, "cut \"short\""),
    ] {
        events.append(&event).unwrap();
    }
    events.flush().unwrap();
    let mut samples = run.appender::<ProcessSample>().unwrap();
    let sample = ProcessSample {
        t_s: 2.0,
        system: "bbs".to_owned(),
        cpu_cores: 0.25,
        rss_bytes: 1 << 20,
        fds: 7,
        threads: 3,
    };
    samples.append(&sample).unwrap();
    samples.flush().unwrap();
    let fault = FaultRecord {
        step: "up".to_owned(),
        kind: "kill".to_owned(),
        targets: vec!["bbs".to_owned()],
        begin_s: 1.5,
        end_s: None,
        text: String::new(),
        effects: Vec::new(),
    };
    run.write_json(RunFile::Faults, &vec![fault]).unwrap();
    let table = Table {
        name: "task".to_owned(),
        points: ["desired", "started", "resolved"]
            .map(str::to_owned)
            .to_vec(),
        rows: vec![
            row("quick", &[Some(1_000), Some(1_001), Some(1_002)]),
            row("slow", &[Some(1_100), None, Some(2_100)]),
            row("odd", &[Some(1_200), Some(1_190), Some(1_500)]),
        ],
    };
    let mut csv = Vec::new();
    table.write_csv(&mut csv).unwrap();
    run.write(RunFile::Lifecycle("task"), &csv).unwrap();
    let verdict = Verdict {
        outcome: Outcome::Pass,
        reason: None,
        duration_s: 5.0,
        expectations: Vec::new(),
        probes: Vec::new(),
        notes: Vec::new(),
    };
    run.write_json(RunFile::Verdict, &verdict).unwrap();
    run
}

fn traced(most: usize) -> (Vec<Value>, Vec<LeftOut>) {
    let folder = tempfile::tempdir().unwrap();
    let mut out = Vec::new();
    let left_out = perfetto(&run(folder.path()), most, &mut out).unwrap();
    let trace: Value = serde_json::from_slice(&out).unwrap();
    (trace["traceEvents"].as_array().unwrap().clone(), left_out)
}

/// Begin and length of each slice of a name, in microseconds.
fn slices(events: &[Value], name: &str) -> Vec<(f64, f64)> {
    let named = events
        .iter()
        .filter(|event| event["ph"] == "X" && event["name"] == name);
    named
        .map(|event| {
            (
                event["ts"].as_f64().unwrap(),
                event["dur"].as_f64().unwrap(),
            )
        })
        .collect()
}

#[test]
fn what_was_planted_stands_where_it_happened() {
    let (events, left_out) = traced(10);
    assert_eq!(left_out, []);
    assert_eq!(slices(&events, "up"), [(1e6, 2.5e6)]);
    // A step and a fault without an end last until the run's.
    assert_eq!(slices(&events, "cut \"short\""), [(3.5e6, 1.5e6)]);
    assert_eq!(slices(&events, "kill bbs"), [(1.5e6, 3.5e6)]);
    assert_eq!(
        slices(&events, "desired → started"),
        [(1e6, 1e3), (1.2e6, 0.0)]
    );
    // A point that nobody saw is passed over.
    assert_eq!(slices(&events, "desired → resolved"), [(1.1e6, 1e6)]);
    let backwards = events
        .iter()
        .filter(|event| event["args"]["backwards_s"].is_number());
    assert_eq!(backwards.count(), 1);
    let cores = events
        .iter()
        .find(|event| event["name"] == "processors")
        .unwrap();
    assert_eq!(
        (&cores["ts"], &cores["args"]["cores"]),
        (&json!(2e6), &json!(0.25))
    );
    let named = |name: &str| events.iter().any(|event| event["args"]["name"] == name);
    for name in ["run", "steps", "task", "bbs", "quick", "slow", "odd"] {
        assert!(named(name), "{name}");
    }
    assert!(!named("loads") && !named("probes") && !named("loops"));
}

#[test]
fn of_many_entities_the_slowest_stay_and_the_others_are_counted() {
    let (events, left_out) = traced(1);
    assert!(events.iter().any(|event| event["args"]["name"] == "slow"));
    assert!(!events.iter().any(|event| event["args"]["name"] == "quick"));
    assert_eq!(
        left_out,
        [LeftOut {
            lifecycle: "task".to_owned(),
            entities: 2
        }]
    );
}
