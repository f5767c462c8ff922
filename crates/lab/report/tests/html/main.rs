//! Reports of whole runs, read back from the page.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Read;
use std::path::Path;

use lab_load::Summary;
use lab_store::{
    EntityCount, Environment, Event, EventKind, LoadRate, Outcome, ProbeSample, ProcessSample,
    RunFile, RunFolder, SCHEMA, StoredLoad, Verdict,
};
use serde_json::Value;

mod exported;
mod underway;

fn run(folder: &Path) -> RunFolder {
    let started_at = "2026-11-21T09:30:00Z".parse().unwrap();
    let run = RunFolder::create(folder, "sample", started_at).unwrap();
    let environment = Environment {
        schema: SCHEMA,
        run_id: run.id(),
        started_at_unix_ns: 1_795_253_400_000_000_000,
        command: vec!["headroom".into(), "run".into()],
        headroom_version: "0.1.0".into(),
        git_commit: None,
        cores: 2,
        cpu_model: "model".into(),
        memory_bytes: 1 << 34,
        kernel: "Linux".into(),
        versions: BTreeMap::new(),
        made_from: None,
    };
    run.write_json(RunFile::Environment, &environment).unwrap();
    run.write_json(RunFile::Verdict, &verdict(Outcome::Pass, None))
        .unwrap();
    run
}

fn verdict(outcome: Outcome, reason: Option<&str>) -> Verdict {
    let reason = reason.map(str::to_owned);
    Verdict {
        probes: Vec::new(),
        left_out: Vec::new(),
        notes: Vec::new(),
        outcome,
        reason,
        duration_s: 30.0,
        expectations: Vec::new(),
    }
}

fn plan(run: &RunFolder, lifecycles: &[&str]) {
    let lifecycles: Vec<Value> = lifecycles
        .iter()
        .map(|name| serde_json::json!({ "name": name }))
        .collect();
    let plan = serde_json::json!({
        "name": "sample", "about": "x", "seed": u64::MAX, "lifecycles": lifecycles,
    });
    run.write_json(RunFile::Plan, &plan).unwrap();
}

/// The data and the inflated blob of a page.
fn embedded(page: &str) -> (Value, Vec<u8>) {
    let element = |id: &str| {
        let (_, rest) = page.split_once(&format!("id=\"{id}\">")).unwrap();
        rest.split_once("</script>").unwrap().0
    };
    let packed = seven_bits(element("columns"));
    let mut blob = Vec::new();
    flate2::read::DeflateDecoder::new(packed.as_slice())
        .read_to_end(&mut blob)
        .unwrap();
    (serde_json::from_str(element("run")).unwrap(), blob)
}

/// The bytes of a text that holds seven bits a character, the lowest first.
fn seven_bits(text: &str) -> Vec<u8> {
    let (mut held, mut bits, mut bytes) = (0_u32, 0, Vec::new());
    for one in text.chars() {
        let seven = match one {
            '\u{a1}' => 0,
            '\u{a2}' => 13,
            '\u{a3}' => 60,
            one => one as u32,
        };
        held |= seven << bits;
        bits += 7;
        if bits >= 8 {
            bytes.push(held as u8);
            held >>= 8;
            bits -= 8;
        }
    }
    bytes
}

/// Undoes the packing of a column whose coding is not `left`.
fn column(place: &Value, blob: &[u8]) -> Vec<Option<i64>> {
    let number = |name: &str| place[name].as_u64().unwrap() as usize;
    let (at, n, planes) = (number("at"), number("n"), number("planes"));
    let mut before = 0;
    (0..n)
        .map(|row| {
            let byte = |plane: usize| u32::from(blob[at + plane * n + row]) << (8 * plane);
            let folded = i64::from((0..planes).map(byte).sum::<u32>())
                .checked_sub(1)
                .filter(|f| *f >= 0)?;
            let difference = if folded % 2 == 0 {
                folded / 2
            } else {
                -(folded + 1) / 2
            };
            before = difference
                + if place["coding"] == "plain" {
                    0
                } else {
                    before
                };
            Some(before)
        })
        .collect()
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let run = run(folder.path());
    plan(&run, &["b", "a"]);
    run.write(
        RunFile::Lifecycle("a"),
        b"id,group,p,q\nx,cell-1,5000,9000\n",
    )
    .unwrap();
    run.write(RunFile::Lifecycle("b"), b"id,group,p,q\n")
        .unwrap();
    let first = lab_report::html(&run).unwrap();
    run.write(RunFile::Report, first.as_bytes()).unwrap();
    assert_eq!(
        lab_report::html(&RunFolder::open(run.path()).unwrap()).unwrap(),
        first
    );
    let (data, _) = embedded(&first);
    let names: Vec<&str> = data["lifecycles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| l["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["b", "a"], "in the order of the plan");
    assert_eq!(data["seed"], u64::MAX.to_string());
}

#[test]
fn an_entity_has_its_log_lines_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let run = run(folder.path());
    let points = [["made", "task.made"], ["done", "task.done"]];
    let plan = serde_json::json!({
        "name": "sample", "about": "", "seed": 1,
        "lifecycles": [{ "name": "task", "key": ["id"], "alias": [], "points": points }],
        "systems": [{ "name": "web", "log": "auto" }, { "name": "odd", "log": "text" }],
    });
    run.write_json(RunFile::Plan, &plan).unwrap();
    run.write(
        RunFile::Lifecycle("task"),
        b"id,group,made,done\nx,,1000000000,2000000000\nnowhere,,1,\n",
    )
    .unwrap();
    let hostile = "</script><b>\u{1b}[31m";
    let log = format!(
        "starting up\n\
         ts=1795253401 msg=task.made id=x note=\"{hostile}\"\n\
         ts=1795253401 msg=task.made id=other\n\
         {{\"timestamp\":\"1795253402.000000000\",\"message\":\"task.done\",\"data\":{{\"id\":\"x\"}}}}\n\
         ts=1795253403 msg=seen id=x long={}",
        "y".repeat(2000)
    );
    run.write(RunFile::Log("web"), log.as_bytes()).unwrap();
    run.write(RunFile::Log("odd"), log.as_bytes()).unwrap();
    let page = lab_report::html(&run).unwrap();
    let (data, blob) = embedded(&page);
    let place = &data["lifecycles"][0]["lines"];
    let number = |name: &str| place[name].as_u64().unwrap() as usize;
    let text = &blob[number("at")..number("at") + number("bytes")];
    let told: Value = serde_json::from_slice(text).unwrap();
    assert_eq!(told["files"], serde_json::json!(["logs/web.log"]));
    let [only] = told["entities"].as_array().unwrap().as_slice() else {
        panic!("{told}");
    };
    assert_eq!((&only["row"], &only["more"]), (&0.into(), &0.into()));
    let lines: Vec<_> = only["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| (line["number"].as_u64().unwrap(), line["points"].to_string()))
        .collect();
    let expected = [(2, "[0]"), (4, "[1]"), (5, "[]")];
    assert_eq!(lines, expected.map(|(n, points)| (n, points.to_owned())));
    assert!(only["lines"][0]["text"].as_str().unwrap().contains(hostile));
    let last = &only["lines"][2];
    assert_eq!(
        (last["text"].as_str().unwrap().len(), &last["cut"]),
        (500, &true.into())
    );
}

/// Whatever the logs hold, a page stays small.
#[test]
fn log_lines_have_a_bound_in_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let run = run(folder.path());
    let plan = serde_json::json!({
        "name": "sample", "about": "", "seed": 1,
        "lifecycles": [{ "name": "task", "key": ["id"], "alias": [], "points": [["made", "made"]] }],
        "systems": [{ "name": "web", "log": "logfmt" }],
    });
    run.write_json(RunFile::Plan, &plan).unwrap();
    let (mut table, mut log) = ("id,group,made\n".to_owned(), String::new());
    let mut noise = 1_u64;
    for id in 0..300 {
        writeln!(table, "{id},,1000000000").unwrap();
        for _ in 0..30 {
            log += "ts=1795253401 msg=made id=";
            write!(log, "{id} noise=").unwrap();
            for _ in 0..25 {
                noise = noise
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                write!(log, "{noise:016x}").unwrap();
            }
            log.push('\n');
        }
    }
    run.write(RunFile::Log("web"), log.as_bytes()).unwrap();
    let without = lab_report::html(&run).unwrap().len();
    run.write(RunFile::Lifecycle("task"), table.as_bytes())
        .unwrap();
    let with = lab_report::html(&run).unwrap().len();
    assert!(
        (50_000..260_000).contains(&(with - without)),
        "{with} and {without}"
    );
}

#[test]
fn a_run_without_anything_has_a_report_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let run = run(folder.path());
    let reason = "the system `bbs` never became ready";
    run.write_json(RunFile::Verdict, &verdict(Outcome::Error, Some(reason)))
        .unwrap();
    let (data, blob) = embedded(&lab_report::html(&run).unwrap());
    assert_eq!(data["verdict"]["reason"], reason);
    assert_eq!(data["name"], run.id());
    assert_eq!(
        (data["lifecycles"].as_array().unwrap().len(), blob.len()),
        (0, 0)
    );
}

#[test]
fn times_come_back_as_they_were_to_the_microsecond() {
    let folder = tempfile::tempdir().unwrap();
    let run = run(folder.path());
    let csv = b"id,group,p,q\na,,-1500000,2000000\nb,cell-2,,7999\nc,cell-1,0,\n";
    run.write(RunFile::Lifecycle("task"), csv).unwrap();
    let (data, blob) = embedded(&lab_report::html(&run).unwrap());
    let life = &data["lifecycles"][0];
    assert_eq!(
        (&life["origin_s"], &life["unit_s"]),
        (&(-0.0015).into(), &1e-6.into())
    );
    assert_eq!(column(&life["at"][0], &blob), [Some(0), None, Some(1500)]);
    assert_eq!(life["groups"], serde_json::json!(["cell-2", "cell-1"]));
    assert_eq!(column(&life["group"], &blob), [None, Some(0), Some(1)]);
}

#[test]
fn steps_counts_and_processes_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let run = run(folder.path());
    let mut events = run.appender::<Event>().unwrap();
    for (t_s, kind, name, text) in [
        (1.0, EventKind::StepStarted, "load", ""),
        (1.5, EventKind::Made, "load", ""),
        (4.0, EventKind::StepFailed, "load", "no answer"),
        (4.0, EventKind::StepStarted, "cut short", ""),
    ] {
        events
            .append(&Event {
                t_s,
                kind,
                name: name.into(),
                text: text.into(),
            })
            .unwrap();
    }
    events.flush().unwrap();
    let mut counts = run.appender::<EntityCount>().unwrap();
    let mut samples = run.appender::<ProcessSample>().unwrap();
    for tick in 0..5000_u32 {
        let t_s = f64::from(tick) / 100.0;
        let count = if tick == 3333 { 900 } else { 10 };
        counts
            .append(&EntityCount {
                t_s,
                what: "task".into(),
                state: "running".into(),
                count,
            })
            .unwrap();
        let cpu_cores = 0.25;
        let sample = ProcessSample {
            t_s,
            system: "bbs".into(),
            cpu_cores,
            rss_bytes: 1 << 30,
            fds: 9,
            threads: 2,
        };
        samples.append(&sample).unwrap();
    }
    counts.flush().unwrap();
    samples.flush().unwrap();

    let (data, blob) = embedded(&lab_report::html(&run).unwrap());
    let steps = &data["steps"];
    assert_eq!(
        (&steps[0]["end_s"], &steps[0]["failed"], &steps[0]["made_s"]),
        (&4.0.into(), &true.into(), &1.5.into())
    );
    assert_eq!(
        (&steps[1]["end_s"], &steps[1]["failed"]),
        (&30.0.into(), &false.into())
    );
    let line = &data["counts"][0]["states"][0]["line"];
    let values = column(&line["v"], &blob);
    assert!(
        values.len() <= 2000 && values.contains(&Some(890)),
        "the peak stays"
    );
    let cpu = &data["processes"][0]["cpu_cores"]["v"];
    assert_eq!(cpu["origin"], 0.25);
}

/// What the page says of files that it could not read: file and text.
fn problems(run: &RunFolder) -> Vec<(String, String)> {
    let (data, _) = embedded(&lab_report::html(run).unwrap());
    let of = |problem: &Value, field: &str| problem[field].as_str().unwrap().to_owned();
    let problems = data["problems"].as_array().unwrap();
    problems
        .iter()
        .map(|problem| (of(problem, "file"), of(problem, "text")))
        .collect()
}

/// The only problem, in one line.
fn problem(run: &RunFolder) -> String {
    let problems = problems(run);
    assert_eq!(problems.len(), 1, "{problems:?}");
    format!("{}: {}", problems[0].0, problems[0].1)
}

#[test]
fn a_broken_file_is_named_with_its_line_and_the_rest_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let run = run(folder.path());
    plan(&run, &["task"]);
    run.write(RunFile::Experiment, b"lab = 1\n").unwrap();
    run.write(RunFile::Lifecycle("task"), b"id,group,p\na,,1\nb,,x\n")
        .unwrap();
    let text = problem(&run);
    assert!(
        text.starts_with("lifecycles/task.csv: ") && text.contains("line 3"),
        "{text}"
    );
    run.write(RunFile::Lifecycle("task"), b"id,group,p\n")
        .unwrap();
    assert_eq!(problems(&run), []);
    run.write(RunFile::Events, b"{\"t_s\":1.0}\n").unwrap();
    assert!(problem(&run).contains("events.jsonl, line 1"));
    run.write(RunFile::Events, b"").unwrap();
    run.write(RunFile::Plan, b"{\"name\": 1}").unwrap();
    assert!(problem(&run).contains("plan.json, line 1"));
}

#[test]
fn a_missing_file_is_named_unless_the_run_was_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let run = run(folder.path());
    assert_eq!(
        problems(&run),
        [
            ("plan.json".to_owned(), "is missing".to_owned()),
            ("experiment.toml".to_owned(), "is missing".to_owned())
        ]
    );
    plan(&run, &["task"]);
    run.write(RunFile::Experiment, b"lab = 1\n").unwrap();
    let text = problem(&run);
    assert!(
        text.starts_with("lifecycles/task.csv: is missing"),
        "{text}"
    );
    run.write_json(RunFile::Verdict, &verdict(Outcome::Error, Some("x")))
        .unwrap();
    assert_eq!(problems(&run), []);
}

/// A load of two slots.
fn load(name: &str, began_unix_ns: i64) -> Summary {
    let times = serde_json::json!({ "count": 0 });
    let slot = |t_s: f64, heat: Value| {
        serde_json::json!({
            "t_s": t_s, "length_s": 1.0, "planned": 5, "sent": 5, "good": 4, "failed": 1,
            "p50": 0.001, "p99": null, "max": 0.5, "in_flight": 2, "backlog": 0, "heat": heat,
        })
    };
    let mut histogram = measure::Histogram::new();
    histogram.record(std::time::Duration::from_millis(20));
    serde_json::from_value(serde_json::json!({
        "schema": 1, "name": name, "target": "http://127.0.0.1/", "model": "open",
        "arrivals": "poisson 5/s", "began_unix_ns": began_unix_ns, "duration_s": 2.0,
        "partial": null,
        "validity": { "valid": true, "reasons": [], "loosened": [] },
        "steady": { "from_s": 0.0, "to_s": 2.0, "state": "short" },
        "rate": { "asked": 5.0, "sent": 5.0, "good": 4.0 },
        "requests": {
            "planned": 10, "sent": 10, "waited": 0, "answered": 8, "refused": 0, "errors": 2,
        },
        "latency": { "intended": times, "actual": times },
        "lateness": times, "statuses": { "200": 8 }, "errors": [], "refusals": {},
        "bytes": { "sent": 0, "received": 0 },
        "connections": { "opened": 1, "failed": 0, "closed": 0, "reused": 9, "open": 1 },
        "generator": {
            "threads": 1, "workers": 1, "cpu_s": 0.0, "cpu_per_request_s": null,
            "busiest_thread": 0.0, "pace": "exact", "steal": 0.0, "in_flight": 0.0,
            "in_flight_little": 0.0,
        },
        "kinds": [],
        "timeline": [
            slot(0.0, serde_json::json!([[20, 3], [47, 1]])),
            slot(1.0, serde_json::json!([[21, 4]])),
        ],
        "histograms": {
            "intended": histogram.to_base64().unwrap(), "actual": "", "lateness": "",
        },
        "capacity": null, "floor": null,
    }))
    .unwrap()
}

#[test]
fn numbers_of_loads_carry_the_names_of_step_and_load_however_long_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let run = run(folder.path());
    let began = run.environment().unwrap().started_at_unix_ns;
    // The name of the file is made of both, without what a file may not be called, and cut.
    let step = format!("hold: \"{}\"", "long ".repeat(40));
    run.write_load(&load("front", began), Some(&step)).unwrap();
    run.write_load(&load("probe", began), None).unwrap();
    let all = lab_report::metrics::gather(&run).unwrap();
    let labels = |of: &str, metric: &str| -> Vec<(&'static str, String)> {
        let mut found = all.iter().filter(|series| series.metric.name == metric);
        let named = ("load", of.to_owned());
        let found = found.find(|series| series.labels.contains(&named)).unwrap();
        assert!(found.labels.is_sorted(), "{:?}", found.labels);
        let kept = found.labels.iter();
        kept.filter(|(name, _)| *name != "run").cloned().collect()
    };
    let front = labels("front", "headroom_load_in_flight_requests");
    assert_eq!(front, [("load", "front".to_owned()), ("step", step)]);
    // One that goes on over steps has none.
    let probe = labels("probe", "headroom_load_in_flight_requests");
    assert_eq!(probe, [("load", "probe".to_owned())]);
    assert_eq!(
        labels("front", "headroom_load_requests_per_second").len(),
        3
    );
    // Each ends with its load, two seconds after the run's start.
    let ends = all
        .iter()
        .filter(|series| series.metric.name.starts_with("headroom_load_"));
    for series in ends {
        let last = series.samples.last().unwrap();
        assert_eq!(
            (last.unix_ns - began) / 1_000_000,
            2001,
            "{:?}",
            series.labels
        );
    }
}

#[test]
fn loads_of_a_run_stand_on_its_axis_in_the_order_in_which_they_began() {
    let folder = tempfile::tempdir().unwrap();
    let run = run(folder.path());
    let at = |s: i64| run.environment().unwrap().started_at_unix_ns + s * 1_000_000_000;
    run.write_load(&load("front", at(9)), Some("hold")).unwrap();
    run.write_load(&load("probe", at(2)), None).unwrap();
    let (data, blob) = embedded(&lab_report::html(&run).unwrap());
    let (probe, front) = (&data["loads"][0], &data["loads"][1]);
    assert_eq!(
        (&probe["start_s"], &probe["step"]),
        (&2.0.into(), &Value::Null)
    );
    assert_eq!(
        (&front["start_s"], &front["step"]),
        (&9.0.into(), &"hold".into())
    );
    assert_eq!(front["summary"]["rate"]["good"], 4.0);
    assert_eq!(front["summary"]["statuses"]["200"], 8);
    let timeline = &front["timeline"];
    let numbers = |field: &str| column(&timeline[field], &blob);
    assert_eq!(numbers("t_s"), [Some(0), Some(1_000_000)]);
    assert_eq!(numbers("p99"), [None, None]);
    assert_eq!(numbers("heat_pairs"), [Some(2), Some(1)]);
    assert_eq!(numbers("heat_bin"), [Some(20), Some(47), Some(21)]);
    assert_eq!(timeline["heat_count"]["origin"], 1.0);
    assert_eq!(
        front["percentiles"]["intended"].as_array().unwrap().len(),
        1
    );
    assert_eq!(front["summary"]["histograms"]["intended"], "");
    let files = data["files"].as_array().unwrap();
    assert!(
        files
            .iter()
            .any(|file| file["path"] == "loads/hold.front.json"),
        "{files:?}"
    );
}

#[test]
fn a_broken_load_and_a_broken_histogram_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let run = run(folder.path());
    plan(&run, &[]);
    run.write(RunFile::Experiment, b"lab = 1\n").unwrap();
    let mut spoiled = load("front", 5);
    spoiled.histograms.actual = "nonsense".into();
    run.write_load(&spoiled, None).unwrap();
    let text = problem(&run);
    assert!(
        text.starts_with("loads/front.json: histograms.actual: "),
        "{text}"
    );
    run.write(RunFile::Load("front"), b"{\"schema\": 4}")
        .unwrap();
    assert!(problem(&run).contains("schema 4"), "{}", problem(&run));
}

#[test]
fn loads_without_a_run_begin_at_zero_and_have_no_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let environment = run(folder.path()).environment().unwrap();
    let loads = [load("</script>", 7_000_000_000), load("b", 5_000_000_000)];
    let page = lab_report::load_html(&loads, &environment).unwrap();
    let (data, _) = embedded(&page);
    assert_eq!(data["verdict"], Value::Null);
    assert_eq!(data["name"], "http://127.0.0.1/");
    assert_eq!(data["loads"][0]["summary"]["name"], "</script>");
    assert_eq!(
        (&data["loads"][0]["start_s"], &data["loads"][1]["start_s"]),
        (&2.0.into(), &0.0.into())
    );
    let (none, blob) = embedded(&lab_report::load_html(&[], &environment).unwrap());
    assert_eq!(
        (none["loads"].as_array().unwrap().len(), blob.len()),
        (0, 0)
    );
}

/// The bound of a page of a million entities of 16 points, 40 MB, holds for a part of them, too, without what
/// rounds the times of many.
#[test]
fn ids_of_random_digits_take_their_bytes_and_little_more() {
    let folder = tempfile::tempdir().unwrap();
    let run = run(folder.path());
    let mut dice = stats::SplitMix::new(3);
    let mut csv = "id,group,p\n".to_owned();
    for row in 0..20_000 {
        let mut digits = |n: u32| {
            let one = |_| char::from_digit((dice.unit() * 16.0) as u32, 16).unwrap();
            (0..n).map(one).collect::<String>()
        };
        let id = [8, 4, 4, 4, 12].map(&mut digits).join("-");
        writeln!(csv, "{id},,{}", row * 1000).unwrap();
    }
    run.write(RunFile::Lifecycle("task"), csv.as_bytes())
        .unwrap();
    let with = lab_report::html(&run).unwrap().len();
    let head = "id,group,p\n";
    run.write(RunFile::Lifecycle("task"), head.as_bytes())
        .unwrap();
    let without = lab_report::html(&run).unwrap().len();
    let each = (with - without) as f64 / 20_000.0;
    assert!((16.0..19.0).contains(&each), "{each} bytes an id");
}

#[test]
fn eight_thousand_lifecycles_take_less_than_a_megabyte() {
    let folder = tempfile::tempdir().unwrap();
    let run = run(folder.path());
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for (name, points) in [("task", 9), ("lrp", 8)] {
        let heads: String = (0..points).map(|i| format!(",p{i}")).collect();
        let mut csv = format!("id,group{heads}\n");
        for row in 0..4000_u64 {
            let id: String = (0..32)
                .map(|_| char::from_digit(random(16) as u32, 16).unwrap())
                .collect();
            write!(csv, "{id},cell-{}", random(100)).unwrap();
            let mut at = row * 500_000;
            for _ in 0..points {
                at += random(2_000_000_000);
                write!(csv, ",{at}").unwrap();
            }
            csv.push('\n');
        }
        run.write(RunFile::Lifecycle(name), csv.as_bytes()).unwrap();
    }
    let size = lab_report::html(&run).unwrap().len();
    assert!(size < 1_000_000, "{size} bytes");
}
