use std::time::Duration;

use base64::Engine as _;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use measure::Histogram;

use super::*;
use crate::example::{recorded, workload};

fn summary() -> Summary {
    let recorded = recorded(5, 10, 400.0, Duration::from_millis(3));
    let target = "http://127.0.0.1:8080/";
    Summary::of("load", target, &workload(&["a"]), &recorded).unwrap()
}

#[test]
fn json_has_the_documented_places_and_is_read_back() {
    let summary = summary();
    let text = json(&summary).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["schema"], 1);
    assert_eq!(
        value["latency"]["intended"]["p90"],
        summary.latency.intended.p90.unwrap()
    );
    assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary);
}

#[test]
fn every_line_of_csv_has_every_column() {
    let mut summary = summary();
    summary.timeline[0].p99 = None;
    let text = csv(&summary);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 11);
    for line in &lines {
        assert_eq!(line.split(',').count(), 11, "{line}");
    }
    assert_eq!(lines[1].split(',').nth(7), Some(""));
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
