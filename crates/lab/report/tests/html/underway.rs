//! The page of a run that goes on, read back.

use std::sync::Arc;

use lab_lifecycle::{ChangedRow, Changes, NOT_SEEN, Row, Table};
use lab_report::{Growing, Page, Update};
use lab_store::SoFar;

use super::*;

#[test]
fn a_run_that_goes_on_is_shown_as_its_report_will_show_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = run(folder.path());
    plan(&run, &["task"]);
    let mut events = run.appender::<Event>().unwrap();
    for (t_s, kind, text) in [
        (1.0, EventKind::StepStarted, ""),
        (2.0, EventKind::FaultBegan, "killed web"),
    ] {
        let (name, text) = ("hold".into(), text.into());
        let event = Event {
            t_s,
            kind,
            name,
            text,
        };
        events.append(&event).unwrap();
    }
    events.flush().unwrap();
    let mut tries = run.appender::<ProbeSample>().unwrap();
    for error in ["", "refused"] {
        let (probe, error) = ("alive".into(), error.into());
        let sample = ProbeSample {
            t_s: 1.0,
            probe,
            error,
            ..ProbeSample::default()
        };
        tries.append(&sample).unwrap();
    }
    tries.flush().unwrap();
    let csv = "id,group,a,b\n";
    let table = |rows: &str| Table::read_csv(format!("{csv}{rows}").as_bytes(), "task").unwrap();
    let table = table("one,,1000000,2000000\ntwo,,3000000,\n");
    let began = run.environment().unwrap().started_at_unix_ns;
    let stored = |sent: u64, step: &str| {
        let mut summary = load("front", began);
        summary.requests.sent = sent;
        StoredLoad {
            step: Some(step.to_owned()),
            summary,
        }
    };
    run.write_load(&stored(9, "before").summary, Some("before"))
        .unwrap();
    let so_far = SoFar {
        now_s: 12.5,
        doing: "hold".into(),
        changes: vec![changes(&table)],
        turns: Arc::default(),
        // That of the step before has been stored meanwhile.
        loads: vec![stored(8, "before"), stored(7, "hold")],
        rates: vec![LoadRate {
            load: "visitors".into(),
            per_s: 50.0,
        }],
        may: vec!["mark"],
    };
    std::fs::remove_file(run.file(RunFile::Verdict)).unwrap();
    let growing = Growing::default();
    growing.take(&so_far.changes);
    let page = Page::so_far(&run, &so_far, &growing).unwrap();
    let (data, _) = embedded(&page.html());
    assert_eq!(data["lifecycles"], serde_json::json!([]));
    assert_eq!(data["underway"]["now_s"], 12.5);
    assert_eq!(data["underway"]["may"], serde_json::json!(["mark"]));
    let rates = serde_json::json!([{"load": "visitors", "per_s": 50.0}]);
    assert_eq!(data["underway"]["rates"], rates);
    assert_eq!(data["verdict"], Value::Null);
    assert_eq!(data["problems"], serde_json::json!([]));
    assert_eq!(data["steps"][0]["end_s"], 12.5);
    assert_eq!(data["faults"][0]["start_s"], 2.0);
    assert_eq!(data["faults"][0]["end_s"], Value::Null);
    let probe = &data["probes"][0]["summaries"][0];
    assert_eq!((&probe["tries"], &probe["failed"]), (&2.into(), &1.into()));
    let loads = data["loads"].as_array().unwrap().iter();
    let sent: Vec<_> = loads
        .map(|load| &load["summary"]["requests"]["sent"])
        .collect();
    assert_eq!(sent, [9, 7]);

    // What came while the picture was being made is part of it, and not beyond its end.
    let (name, text) = (String::new(), "colder".into());
    let note = Event {
        t_s: 12.75,
        kind: EventKind::Noted,
        name,
        text,
    };
    events.append(&note).unwrap();
    events.flush().unwrap();
    let (later, _) = embedded(&Page::so_far(&run, &so_far, &growing).unwrap().html());
    assert_eq!(later["notes"][0]["t_s"], 12.75);
    assert_eq!(later["underway"]["now_s"], 12.75);
    assert_eq!(later["steps"][0]["end_s"], 12.75);

    // The end has the same timelines, of the same code.
    run.write_json(RunFile::Verdict, &verdict(Outcome::Pass, None))
        .unwrap();
    let mut stored = Vec::new();
    table.write_csv(&mut stored).unwrap();
    run.write(RunFile::Lifecycle("task"), &stored).unwrap();
    let (end, _) = embedded(&lab_report::html(&run).unwrap());
    assert_eq!(end["underway"], Value::Null);
    let (grown, numbers) = grown(&page, None);
    for same in ["name", "points", "origin_s", "unit_s", "entities", "groups"] {
        assert_eq!(grown[same], end["lifecycles"][0][same], "{same}");
    }
    // Both times of one, the only one of the other; and no groups.
    assert_eq!(numbers, [0, 2000, 1000, -1, -1, -1]);
    let Update { lifecycles, .. } = page.update(None).unwrap();
    let (grown, numbers) = self::grown(&page, Some(lifecycles));
    assert_eq!((&grown["rows"], numbers), (&0.into(), Vec::new()));
}

/// What has become of the only lifecycle, with its numbers.
fn grown(page: &Page, known: Option<u32>) -> (Value, Vec<i32>) {
    let Update { bytes, .. } = page.update(known).unwrap();
    let (lengths, mut rest) = bytes.split_at(12);
    let parts = lengths.as_chunks::<4>().0.iter().map(|length| {
        let (part, after) = rest.split_at(u32::from_le_bytes(*length) as usize);
        rest = after;
        part
    });
    let parts: Vec<&[u8]> = parts.collect();
    let mut grown: Vec<Value> = serde_json::from_slice(parts[2]).unwrap();
    let numbers = rest.as_chunks::<4>().0.iter();
    (
        grown.remove(0),
        numbers.map(|four| i32::from_le_bytes(*four)).collect(),
    )
}

/// A table, as what has changed since there was nothing.
fn changes(table: &Table) -> Changes {
    let row = |(number, row): (usize, &Row)| ChangedRow {
        number: number as u32,
        id: Arc::clone(&row.id),
        group: row.group.clone(),
    };
    let times = table.rows.iter().flat_map(|row| &row.at_ns);
    Changes {
        name: table.name.clone(),
        points: table.points.clone(),
        rows: table.rows.iter().enumerate().map(row).collect(),
        at_ns: times.map(|at| at.unwrap_or(NOT_SEEN)).collect(),
    }
}
