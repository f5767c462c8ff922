//! What a load's numbers say to other programs once it is over.

use lab_report::metrics::{LOAD_LATENCY, LOAD_RATE, Series, gather};

use super::*;

/// A run of 30 s in which a load went on from the ninth second to the eleventh.
fn loaded(folder: &Path) -> RunFolder {
    let run = run(folder);
    let began = run.environment().unwrap().started_at_unix_ns + 9_000_000_000;
    let mut front = load("front", began);
    for slot in &mut front.timeline {
        slot.p99 = Some(0.25);
    }
    // What was answered after the load's own time is none of its rate.
    let mut late = front.timeline[1].clone();
    (late.t_s, late.length_s, late.after_end) = (2.0, 4.0, true);
    front.timeline.push(late);
    run.write_load(&front, Some("hold")).unwrap();
    run
}

#[test]
fn a_load_has_no_rate_in_a_trace_after_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let run = loaded(folder.path());
    let file = folder.path().join("trace.json");
    lab_report::perfetto_file(&run, 10, &file).unwrap();
    let trace: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let counters = |name: &str, value: &str| -> Vec<(f64, f64)> {
        let events = trace["traceEvents"].as_array().unwrap().iter();
        let of = events.filter(|event| event["ph"] == "C" && event["name"] == name);
        of.map(|event| {
            let at = event["ts"].as_f64().unwrap();
            (at, event["args"][value].as_f64().unwrap())
        })
        .collect()
    };
    let of = |value: f64, end: f64| [(9e6, value), (10e6, value), (11e6, end)];
    assert_eq!(counters("hold.front rate (/s)", "good"), of(4.0, 0.0));
    assert_eq!(counters("hold.front latency (ms)", "p99"), of(250.0, 0.0));
}

#[test]
fn the_series_of_a_load_end_with_it_and_those_of_the_run_with_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let run = loaded(folder.path());
    let mut samples = run.appender::<ProcessSample>().unwrap();
    let sample = ProcessSample {
        t_s: 2.0,
        system: "web".to_owned(),
        cpu_cores: 0.25,
        rss_bytes: 1,
        fds: 1,
        threads: 1,
    };
    samples.append(&sample).unwrap();
    samples.flush().unwrap();
    let began = run.environment().unwrap().started_at_unix_ns;
    let end_s = |series: &Series| {
        let last = series.samples.last().unwrap();
        assert_eq!(last.value, None);
        (last.unix_ns - began) as f64 / 1e9
    };
    let all = gather(&run).unwrap();
    let (loads, others): (Vec<_>, Vec<_>) = all
        .iter()
        .partition(|series| series.labels.iter().any(|(name, _)| *name == "load"));
    for metric in [LOAD_RATE, LOAD_LATENCY] {
        assert!(loads.iter().any(|series| series.metric == metric));
    }
    for series in &loads {
        assert_eq!(end_s(series), 11.001, "{series:?}");
        // What was known of its last second is told at that second's end.
        assert_eq!(series.samples.len(), 3);
    }
    assert_eq!(others.len(), 4);
    for series in others {
        assert_eq!(end_s(series), 30.001, "{series:?}");
    }
}
