//! A stored run in which everything is known, for tests.

use std::sync::Arc;

use jiff::Timestamp;
use lab_lifecycle::{Row, Table};
use lab_store::{
    EntityCount, Environment, Event, EventKind, FaultRecord, Outcome, ProcessSample, RunFile,
    RunFolder, SCHEMA, Verdict,
};

fn row(id: &str, at_ms: &[Option<i64>]) -> Row {
    Row {
        id: id.into(),
        group: Some(Arc::from("cell.0")),
        at_ns: at_ms.iter().map(|at| at.map(|at| at * 1_000_000)).collect(),
    }
}

/// A run of five seconds with a step that ends and one that does not, a fault without an end, three
/// entities, a sample of a process, and numbers of entities that change within a millisecond.
pub(crate) fn planted_run(folder: &std::path::Path) -> RunFolder {
    let run = RunFolder::create(folder, "demo", Timestamp::UNIX_EPOCH).unwrap();
    let environment = Environment {
        schema: SCHEMA,
        run_id: run.id(),
        cores: 2,
        ..Environment::default()
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
    let mut counts = run.appender::<EntityCount>().unwrap();
    for (t_s, count) in [(1.0, 5), (1.000_1, 6), (4.0, 0)] {
        let count = EntityCount {
            t_s,
            what: "task".to_owned(),
            state: "running".to_owned(),
            count,
        };
        counts.append(&count).unwrap();
    }
    counts.flush().unwrap();
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
        left_out: Vec::new(),
        notes: Vec::new(),
    };
    run.write_json(RunFile::Verdict, &verdict).unwrap();
    run
}
