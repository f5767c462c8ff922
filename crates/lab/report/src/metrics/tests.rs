use std::collections::BTreeMap;

use prost::Message;

use super::*;
use crate::planted_run::planted_run;

/// Labels.
type Named = Vec<(String, String)>;

/// Seconds since 1970 and values of a series.
fn seen(series: &Series) -> Vec<(f64, Option<f64>)> {
    let samples = series.samples.iter();
    samples
        .map(|sample| (sample.unix_ns as f64 / 1e9, sample.value))
        .collect()
}

fn gathered() -> (Vec<Series>, String) {
    let folder = tempfile::tempdir().unwrap();
    let run = planted_run(folder.path());
    (gather(&run).unwrap(), run.id())
}

fn of<'s>(all: &'s [Series], metric: Metric, label: (&str, &str)) -> &'s Series {
    let mut all = all.iter().filter(|series| series.metric == metric);
    let has = |series: &&Series| {
        let mut labels = series.labels.iter();
        labels.any(|(name, value)| (*name, value.as_str()) == label)
    };
    all.find(has).unwrap()
}

/// Series with these samples and nothing else.
fn series(name: &str, samples: usize) -> Series {
    let sample = |at: usize| Sample {
        unix_ns: at as i64 * 1_000_000,
        value: Some(at as f64),
    };
    Series {
        metric: CORES,
        labels: vec![("run", "r".to_owned()), ("system", name.to_owned())],
        samples: (0..samples).map(sample).collect(),
    }
}

#[test]
fn what_was_planted_is_told_at_its_time_and_ends_with_the_run() {
    let (all, run) = gathered();
    let end = (5.001, None);
    let steps = of(&all, STEP, ("step", "up"));
    assert_eq!(seen(steps), [(1.0, Some(1.0)), (3.5, Some(0.0)), end]);
    let steps = of(&all, STEP, ("step", "cut \"short\""));
    // One without an end ends with the run, and the series a millisecond later.
    assert_eq!(seen(steps), [(3.5, Some(1.0)), (5.0, Some(0.0)), end]);
    let fault = of(&all, FAULT, ("targets", "bbs"));
    assert_eq!(seen(fault), [(1.5, Some(1.0)), (5.0, Some(0.0)), end]);
    // Of a millisecond the last.
    let entities = of(&all, ENTITIES, ("state", "running"));
    assert_eq!(
        seen(entities),
        [(1.000_1, Some(6.0)), (4.0, Some(0.0)), end]
    );
    let labels = [
        ("run", run.as_str()),
        ("state", "running"),
        ("what", "task"),
    ];
    let labels = labels.map(|(name, value)| (name, value.to_owned()));
    assert_eq!(entities.labels, labels);
    let memory = of(&all, MEMORY, ("system", "bbs"));
    assert_eq!(seen(memory), [(2.0, Some(1_048_576.0)), end]);
    let known: Vec<&str> = all.iter().map(|series| series.metric.name).collect();
    assert!(!known.contains(&LOAD_RATE.name) && !known.contains(&PROBE_UP.name));
    assert_eq!(all.len(), 8, "{known:?}");
}

#[test]
fn what_holds_for_long_is_said_again_and_what_does_not_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let run = planted_run(folder.path());
    let mut verdict = run.verdict().unwrap();
    verdict.duration_s = 200.0;
    run.write_json(lab_store::RunFile::Verdict, &verdict)
        .unwrap();
    let all = gather(&run).unwrap();
    let entities = of(&all, ENTITIES, ("state", "running"));
    let last = Some(0.0);
    let expected = [
        (1.000_1, Some(6.0)),
        (4.0, last),
        (64.0, last),
        (124.0, last),
        (184.0, last),
        (200.001, None),
    ];
    assert_eq!(seen(entities), expected);
    let memory = of(&all, MEMORY, ("system", "bbs"));
    assert_eq!(seen(memory).len(), 2);
}

#[test]
fn remote_write_has_every_sample_once_in_order_and_sorted_labels() {
    let (all, run) = gathered();
    // Milliseconds and the bits of values, by labels.
    let mut found: BTreeMap<Named, Vec<(i64, u64)>> = BTreeMap::new();
    for request in remote_write::requests(&all) {
        let body = remote_write::body(&request).unwrap();
        let text = snap::raw::Decoder::new().decompress_vec(&body).unwrap();
        let read = remote_write::WriteRequest::decode(&*text).unwrap();
        for series in read.timeseries {
            let labels = series.labels.into_iter();
            let labels: Vec<_> = labels.map(|one| (one.name, one.value)).collect();
            assert!(labels.is_sorted(), "{labels:?}");
            assert!(labels.iter().all(|(_, value)| !value.is_empty()));
            let samples = series.samples.iter();
            let samples = samples.map(|one| (one.timestamp, one.value.to_bits()));
            found.entry(labels).or_default().extend(samples);
        }
    }
    assert_eq!(found.len(), all.len());
    let text = |pairs: &[(&str, &str)]| -> Named {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    };
    let step = text(&[
        ("__name__", "headroom_step"),
        ("job", "headroom"),
        ("run", &run),
        ("step", "up"),
    ]);
    // The last one is Prometheus' own mark of a series that has ended.
    let expected = [
        (1_000, 1.0_f64.to_bits()),
        (3_500, 0),
        (5_001, 0x7ff0_0000_0000_0002),
    ];
    assert_eq!(found[&step], expected);
}

#[test]
fn otlp_has_every_point_and_says_where_a_series_ends() {
    let (all, run) = gathered();
    let mut points = 0;
    for request in otlp::requests(&all, &run) {
        let request = otlp::ExportMetricsServiceRequest::decode(&*request.encode_to_vec()).unwrap();
        let of_run = &request.resource_metrics[0];
        let about = &of_run.resource.as_ref().unwrap().attributes;
        assert_eq!(about[1].key, "service.instance.id");
        let metrics = &of_run.scope_metrics[0].metrics;
        let names: Vec<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
        let mut once = names.clone();
        once.dedup();
        assert_eq!(names, once);
        for metric in metrics {
            let gauge = metric.gauge.as_ref().unwrap();
            points += gauge.data_points.len();
            for point in &gauge.data_points {
                assert_eq!(point.as_double.is_none(), point.flags == 1);
            }
        }
        let memory = metrics.iter().find(|metric| metric.name == MEMORY.name);
        let memory = memory.unwrap();
        let first = &memory.gauge.as_ref().unwrap().data_points[0];
        assert_eq!(memory.unit, "By");
        assert_eq!(first.time_unix_nano, 2_000_000_000);
        assert_eq!(first.as_double, Some(1_048_576.0));
    }
    let samples: usize = all.iter().map(|series| series.samples.len()).sum();
    assert_eq!(points, samples);
}

#[test]
fn requests_are_cut_at_their_bound_and_lose_nothing() {
    for (sizes, most, expected) in [
        (&[][..], 10, &[][..]),
        (&[3, 4], 10, &[7]),
        (&[25], 10, &[10, 10, 5]),
        (&[9, 2, 9], 10, &[10, 10]),
    ] {
        let all: Vec<Series> = sizes.iter().map(|size| series("s", *size)).collect();
        let portions = portions(&all, most);
        let counts: Vec<usize> = portions
            .iter()
            .map(|portion| portion.iter().map(|(_, samples)| samples.len()).sum())
            .collect();
        assert_eq!(counts, expected);
        let values = portions.iter().flatten().flat_map(|(_, samples)| *samples);
        let all = all.iter().flat_map(|series| &series.samples);
        assert!(values.eq(all));
    }
}

#[test]
fn the_dashboard_shows_every_number_and_no_other() {
    let dashboard = dashboard();
    let mut expressions: Vec<&str> = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        expressions.push(panel["targets"][0]["expr"].as_str().unwrap());
    }
    for stretch in dashboard["annotations"]["list"].as_array().unwrap() {
        expressions.push(stretch["expr"].as_str().unwrap());
    }
    let named = expressions
        .iter()
        .map(|text| text.split('{').next().unwrap());
    let mut named: Vec<&str> = named.collect();
    named.sort_unstable();
    let mut known = METRICS.map(|metric| metric.name).to_vec();
    known.sort_unstable();
    assert_eq!(named, known);
}
