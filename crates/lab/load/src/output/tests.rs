use std::collections::BTreeSet;
use std::time::Duration;

use base64::Engine as _;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use measure::Histogram;

use super::*;
use crate::example::{recorded, workload};
use crate::summary::{Growth, PartNumbers};

fn summary() -> Summary {
    let recorded = recorded(5, 10, 400.0, Duration::from_millis(3));
    let target = "http://127.0.0.1:8080/";
    Summary::of(
        crate::summary::WarmUp::Auto,
        "load",
        target,
        &workload(&["a"]),
        &recorded,
    )
    .unwrap()
}

#[test]
fn json_has_the_documented_places_and_is_read_back() {
    let summary = summary();
    let text = json(&summary).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["schema"], 3);
    assert_eq!(
        value["latency"]["intended"]["p90"],
        summary.latency.intended.p90.unwrap()
    );
    assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary);
}

#[test]
fn every_line_of_csv_has_every_column() {
    let mut summary = summary();
    let first = &mut summary.timeline[0];
    (first.p99, first.unanswered) = (None, 0);
    let text = csv(&summary);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 11);
    for line in &lines {
        assert_eq!(line.split(',').count(), 11, "{line}");
    }
    assert_eq!(lines[1].split(',').nth(7), Some(""));
    summary.timeline[0].unanswered = 1;
    let lost = csv(&summary);
    let first = lost.lines().nth(1).unwrap();
    assert_eq!(first.split(',').nth(7), Some("inf"));
    assert_eq!(lines[2].split(',').next(), Some("1"));
}

/// Read by the field's library: nothing is lost, and times are right.
#[test]
fn the_interval_log_is_one() {
    let recorded = recorded(5, 3, 400.0, Duration::from_millis(3));
    let mut log = hdr_head("headroom 1", recorded.began_unix_ns);
    for span in recorded.timeline.spans() {
        log += &hdr_lines(span).unwrap();
    }
    let mut starts = Vec::new();
    let mut all = Histogram::new();
    for entry in IntervalLogIterator::new(log.as_bytes()) {
        match entry.unwrap() {
            LogEntry::Interval(interval) => {
                starts.push(interval.start_timestamp());
                assert_eq!(interval.duration(), Duration::from_secs(1));
                let encoded = interval.encoded_histogram();
                let bytes = base64::engine::general_purpose::STANDARD
                    .decode(encoded)
                    .unwrap();
                let theirs: hdrhistogram::Histogram<u64> = Deserializer::new()
                    .deserialize(&mut bytes.as_slice())
                    .unwrap();
                let highest = theirs.max() as f64 / 1e3;
                assert!((interval.max() - highest).abs() < 0.001);
                match interval.tag().unwrap().as_str() {
                    "intended" => all.merge(&Histogram::from_v2(&bytes).unwrap()),
                    tag => assert_eq!(tag, "actual"),
                }
            }
            LogEntry::BaseTime(base) => assert_eq!(base.as_secs(), 1_700_000_000),
            LogEntry::StartTime(start) => assert_eq!(start.as_secs(), 1_700_000_000),
        }
    }
    let seconds = [0, 0, 1, 1, 2, 2].map(Duration::from_secs);
    assert_eq!(starts, seconds);
    assert_eq!(all, recorded.total.kinds[0].intended);
}

/// Every field of the JSON stands in the document, and no other.
#[test]
fn the_documented_schema_is_the_real_one() {
    let mut recorded = recorded(5, 3, 400.0, Duration::from_millis(3));
    let mut other = recorded.total.kinds[0].clone();
    other.refuse("status");
    recorded.total.kinds.push(other);
    recorded.total.machine.steal = 0.5;
    let mut workload = workload(&["a", "b"]);
    workload.guard.steal_share = 0.3;
    let mut summary = Summary::of(
        crate::summary::WarmUp::Auto,
        "load",
        "http://h/",
        &workload,
        &recorded,
    )
    .unwrap();
    summary.notes.push("a note".into());
    summary.tenths.at(Duration::ZERO).sent = 1;
    summary.status_names.insert(14, "UNAVAILABLE".into());
    summary.steady.growth = Some(Growth {
        per_s: 0.01,
        low: 0.009,
        high: 0.011,
        confidence: 0.95,
    });
    summary.steady.numbers = Some(PartNumbers {
        rate: summary.rate.clone(),
        requests: summary.requests.clone(),
        latency: summary.latency.clone(),
    });
    let value = serde_json::to_value(&summary).unwrap();
    let mut real = BTreeSet::new();
    fields(&value, String::new(), &mut real);

    let document = include_str!("../../../../../docs/load.md");
    let (_, tables) = document.split_once("## The JSON result").unwrap();
    let rows = tables.lines().filter(|line| line.starts_with("| `"));
    let documented: BTreeSet<String> = rows
        .filter_map(|row| row.split('|').nth(1))
        .flat_map(|cell| cell.split(','))
        .map(|name| name.trim().trim_matches('`').to_owned())
        .collect();
    assert_eq!(documented, real);
}

/// Names of fields as the document has them.
fn fields(value: &serde_json::Value, name: String, names: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(map) if map.contains_key("p9999") => {
            names.extend(map.keys().map(|key| format!(".{key}")));
            names.insert(name);
        }
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                let free = name.ends_with("statuses")
                    || name == "status_names"
                    || name.ends_with("refusals");
                let key = if free { "*" } else { key };
                let dot = if name.is_empty() { "" } else { "." };
                fields(value, format!("{name}{dot}{key}"), names);
            }
        }
        serde_json::Value::Array(items) => {
            assert!(!items.is_empty(), "{name} must have an example");
            for item in items {
                fields(item, format!("{name}[]"), names);
            }
        }
        _ => {
            names.insert(name);
        }
    }
}
