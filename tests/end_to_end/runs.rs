//! Whole runs of the shipped experiments, small enough for a debug build.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::lab::{Finished, Lab, answered, experiment, processes_of_run};

const SMALL: &[&str] = &[
    "--set",
    "cells=4",
    "--set",
    "tasks=60",
    "--set",
    "instances=24",
];

fn small(more: &[&'static str]) -> Vec<&'static str> {
    SMALL.iter().chain(more).copied().collect()
}

#[test]
fn the_road_to_100_cells_passes_and_leaves_everything_needed_to_look_at_it_again() {
    let lab = Lab::new();
    let run = lab
        .run(&experiment("road-to-100-cells.toml"), &small(&["--json"]))
        .expect_code(0);
    let verdict = run.json();
    assert_eq!(verdict["outcome"], "pass");
    assert!(
        verdict["expectations"]
            .as_array()
            .expect("expectations")
            .iter()
            .all(|e| {
                e["outcome"] == "pass" && !e["measured"].as_str().expect("text").is_empty()
            }),
        "{verdict}"
    );

    let folder = lab.run_folder();
    for file in [
        "experiment.toml",
        "plan.json",
        "environment.json",
        "events.jsonl",
        "series/processes.csv",
        "series/entities.csv",
        "series/loops.csv",
        "lifecycles/task.csv",
        "lifecycles/lrp.csv",
        "histograms.json",
        "verdict.json",
        "logs/bbs.log",
        "report.html",
    ] {
        assert!(folder.join(file).is_file(), "{file} is missing");
    }
    let tasks = fs::read_to_string(folder.join("lifecycles/task.csv")).expect("the tasks");
    assert_eq!(tasks.lines().count(), 61, "a header and one row per task");
    assert!(
        !folder.join("work").exists(),
        "the work folder stays behind"
    );
    assert_eq!(processes_of_run(&folder), Vec::<String>::new());

    let first = fs::read(folder.join("report.html")).expect("a report");
    fs::remove_file(folder.join("report.html")).expect("removable");
    let output = lab
        .command()
        .arg("report")
        .arg(&folder)
        .output()
        .expect("headroom starts");
    assert!(output.status.success());
    let again = fs::read(folder.join("report.html")).expect("a report");
    assert!(first == again, "the report differs when it is built again");
}

#[test]
fn containers_can_be_real_processes() {
    let lab = Lab::new();
    lab.run(
        &experiment("road-to-100-cells.toml"),
        &small(&["--set", "executor=process"]),
    )
    .expect_code(0);
    assert_eq!(processes_of_run(&lab.run_folder()), Vec::<String>::new());
}

#[test]
fn a_missed_expectation_fails_the_run() {
    let lab = Lab::new();
    let text = fs::read_to_string(experiment("road-to-100-cells.toml")).expect("the file");
    let file = lab.write(
        "strict.toml",
        &format!("{text}\n[[expect]]\nthat = \"task.desired..resolved span < 1us\"\n"),
    );
    let run = lab.run(&file, SMALL).expect_code(1);
    assert!(run.stdout.contains("fail"), "{}", run.stdout);
}

#[test]
fn your_own_system_can_be_measured_without_rust() {
    let lab = Lab::alone();
    // How fast it is on a busy machine says nothing.
    let settings = ["--json", "--set", "soon=20s", "--set", "stock=20s"];
    let run = lab
        .run(&experiment("your-own-system.toml"), &settings)
        .expect_code(0);
    assert_eq!(run.json()["outcome"], "pass");
}

#[test]
fn the_same_file_gives_the_same_plan() {
    let lab = Lab::new();
    let mut plans = Vec::new();
    for out in ["a", "b"] {
        let output = lab
            .command()
            .arg("run")
            .arg(experiment("road-to-100-cells.toml"))
            .args(SMALL)
            .arg("--out")
            .arg(lab.path(out))
            .output()
            .expect("headroom starts");
        assert!(output.status.success());
        let folder = fs::read_dir(lab.path(out))
            .expect("runs")
            .next()
            .expect("a run");
        let plan = folder.expect("an entry").path().join("plan.json");
        plans.push(fs::read_to_string(plan).expect("a plan"));
    }
    assert_eq!(plans[0], plans[1]);
}

#[test]
fn without_a_terminal_there_is_no_colour_and_no_cursor_movement() {
    let lab = Lab::new();
    let run = lab
        .run(&experiment("road-to-100-cells.toml"), SMALL)
        .expect_code(0);
    for text in [&run.stdout, &run.stderr] {
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
    assert!(run.stdout.contains("report.html"), "{}", run.stdout);
}

/// PostgreSQL refuses root; where root may not become another user, it cannot be tried.
fn root_may_be_another() -> bool {
    let mut user = std::process::Command::new("unshare");
    user.args(["--user", "--map-user=1000", "true"]);
    let may = user.status().is_ok_and(|status| status.success());
    if !may {
        eprintln!("left out: this machine permits no user namespaces");
    }
    may
}

/// Of a run that counts what was stored in the end: no write is missing that was acknowledged,
/// and there is none that nobody made. Gives the numbers.
fn every_good_write_is_there(run: &Finished) -> serde_json::Value {
    // How soon all is back on a busy machine, and how late writes were sent, says nothing.
    assert!(matches!(run.code, 0..=3), "{}\n{}", run.stdout, run.stderr);
    let verdict = run.json();
    let all = verdict["expectations"].as_array().expect("expectations");
    let that = |one: &&serde_json::Value| {
        let that = one["that"].as_str();
        that.is_some_and(|that| that.starts_with("kept.rows"))
    };
    let counts = &all.iter().find(that).expect("an expectation about rows")["values"];
    let count = |name: &str| {
        let count = counts[name].as_f64();
        count.unwrap_or_else(|| panic!("no {name}: {verdict:#}"))
    };
    let (rows, good) = (count("kept.rows"), count("writes good"));
    assert!(good > 100.0 && rows >= good, "{verdict:#}");
    assert!(rows <= count("writes requests"), "{verdict:#}");
    counts.clone()
}

#[test]
fn a_bbs_whose_database_dies_and_that_dies_itself_loses_no_write_that_it_acknowledged() {
    if !root_may_be_another() {
        return;
    }
    let lab = Lab::new();
    let file = experiment("kill-database.toml");
    let mut settings = vec!["--json"];
    for setting in [
        "instances=8",
        "rate=60/s",
        "patience=5s",
        "away=2s",
        "back=8s",
    ] {
        settings.extend(["--set", setting]);
    }
    let run = lab.run(&file, &settings);
    every_good_write_is_there(&run);
    assert_eq!(processes_of_run(&lab.run_folder()), Vec::<String>::new());
}

#[test]
fn a_bbs_whose_disk_is_full_loses_no_write_that_it_acknowledged() {
    let lab = Lab::new();
    let file = experiment("full-disk.toml");
    let mut settings = vec!["--json"];
    for setting in ["instances=8", "rate=60/s", "patience=5s", "full=2s"] {
        settings.extend(["--set", setting]);
    }
    let run = lab.run(&file, &settings);
    if !processes::may_mount() {
        assert!(run.stderr.contains("CAP_SYS_ADMIN"), "{}", run.stderr);
        return;
    }
    every_good_write_is_there(&run);
    let verdict = run.json();
    let all = verdict["expectations"].as_array().expect("expectations");
    let failed = all.iter().find_map(|one| {
        let of = one["that"].as_str()?;
        of.ends_with("writes errors > 10%")
            .then(|| &one["values"])?
            .as_object()?
            .values()
            .next()
    });
    let failed = failed.and_then(|share| share.as_f64());
    assert!(failed.expect("a share of failures") > 0.1, "{verdict:#}");
    assert_eq!(processes_of_run(&lab.run_folder()), Vec::<String>::new());
}

#[test]
fn a_database_that_dies_loses_no_write_that_it_acknowledged() {
    if !root_may_be_another() {
        return;
    }
    let file = experiment("postgres-failover-like.toml");
    let settings = ["--json", "--set", "rate=100/s", "--set", "patience=5s"];
    let (lab, run) = answered(1..=3, |_| {
        let lab = Lab::new();
        let run = lab.run(&file, &settings);
        // A busy kernel may still hold memory of processes that have ended, and PostgreSQL then refuses
        // to start.
        match run.code == 4 && run.stdout.contains("pre-existing shared memory block") {
            true => Err(run.stdout),
            false => Ok((lab, run)),
        }
    });
    let counts = every_good_write_is_there(&run);
    assert_eq!(counts["probe.twice.value"], 0.0, "{counts:#}");
    assert_eq!(processes_of_run(&lab.run_folder()), Vec::<String>::new());
}

/// Where the server of Redis is; Debian's package of the tools holds it under another name.
fn redis_server(lab: &Lab) -> PathBuf {
    let server = lab.path("redis-server");
    let places = ["/usr/bin/redis-server", "/usr/bin/redis-check-rdb"];
    let found = places.iter().find(|place| Path::new(place).exists());
    let found = found.expect("a Redis, which scripts/install-test-tools installs");
    std::os::unix::fs::symlink(found, &server).expect("a link");
    server
}

#[test]
fn a_worker_that_dies_loses_no_job() {
    let lab = Lab::new();
    let redis = format!("redis={}", redis_server(&lab).display());
    let file = experiment("queue-worker.toml");
    let run = lab.run(&file, &["--json", "--set", &redis]);
    // How long the queue gets on a busy machine, and how late its jobs came, says nothing.
    assert!(matches!(run.code, 0..=3), "{}\n{}", run.stdout, run.stderr);
    let verdict = run.json();
    let all = verdict["expectations"].as_array().expect("expectations");
    let that = |one: &&serde_json::Value| {
        let that = one["that"].as_str();
        that.is_some_and(|that| that.starts_with("kept.done"))
    };
    let done = all.iter().find(that).expect("an expectation about jobs");
    let count = |name: &str| done["values"][name].as_f64().expect("a count");
    assert!(count("jobs good") > 1_000.0, "{verdict:#}");
    assert_eq!(count("kept.done"), count("jobs good"), "{verdict:#}");
    assert_eq!(done["outcome"], "pass", "{verdict:#}");
}

#[test]
fn cells_that_are_evacuated_are_missed_by_nobody_and_others_are() {
    let lab = Lab::new();
    let file = experiment("evacuate-rolling.toml");
    let run = lab.run(&file, &["--json", "--set", "instances=20"]);
    let verdict = run.expect_code(0).json();
    assert_eq!(verdict["outcome"], "pass", "{verdict:#}");

    // The same cells, ended without being emptied first. The BBS may still call routable what was
    // on them, as suspects, until it has been replaced; so the cells are asked what they run.
    let text = fs::read_to_string(&file).expect("an experiment");
    let text = text.replace(r#"signal = "USR1""#, r#"signal = "TERM""#);
    let steps = text.lines().filter(|line| !line.starts_with("while = "));
    let text = steps.collect::<Vec<_>>().join("\n");
    let probe = r#"
[[probe]]
name = "containers"
prom = "http://{addr}/metrics"
metric = "rep_containers"
labels = { state = "running" }
of = "cell"
every = "50ms"
[[probe]]
"#;
    let text = text.replacen("\n[[probe]]\n", probe, 1);
    drop(lab);
    let lab = Lab::new();
    lab.run(
        &lab.write("ended.toml", &text),
        &["--json", "--set", "instances=20"],
    );
    let probes = lab.run_folder().join("series/probes.csv");
    let probes = fs::read_to_string(probes).expect("the probes");
    let mut running: BTreeMap<&str, f64> = BTreeMap::new();
    let mut sums = Vec::new();
    for line in probes.lines() {
        let cells: Vec<&str> = line.split(',').collect();
        if cells[1] == "containers" {
            // Of a cell that is down there is no value.
            running.insert(cells[2], cells[5].parse().unwrap_or(0.0));
            sums.push(running.values().sum::<f64>());
        }
    }
    let up = sums.iter().position(|sum| *sum >= 20.0);
    let after = &sums[up.expect("all instances ran")..];
    assert!(after.iter().any(|sum| *sum < 20.0), "{after:?}");
}

#[test]
fn agents_that_are_told_to_are_silent_and_nobody_else() {
    let lab = Lab::new();
    let file = experiment("silent-cells.toml");
    let small = ["cells=20", "hit=4", "instances=200", "lives=6s", "calm=2s"];
    let short = ["silence=13s", "flap=1500ms", "flapping=6s"];
    // How fast a busy machine answers says nothing.
    let patient = ["answers=60s", "patience=60s"];
    let set = small.into_iter().chain(short).chain(patient);
    let set: Vec<&str> = set.flat_map(|pair| ["--set", pair]).collect();
    let run = lab.run(&file, &[&["--json"], set.as_slice()].concat());
    let verdict = run.expect_code(0).json();
    assert_eq!(verdict["outcome"], "pass", "{verdict:#}");
    let events = fs::read_to_string(lab.run_folder().join("events.jsonl")).expect("events");
    for said in ["silence 4 of 20 of cells", "they may speak again"] {
        assert!(events.contains(said), "{said}: {events}");
    }
    // The BBS missed those that were silent for longer than a presence lives, and no others.
    let probes = lab.run_folder().join("series/probes.csv");
    let probes = fs::read_to_string(probes).expect("the probes");
    let present = probes.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        let value: f64 = cells.get(5)?.parse().ok()?;
        (cells[1] == "present").then_some(value)
    });
    let after: Vec<f64> = present.skip_while(|cells| *cells < 20.0).collect();
    let fewest = after.iter().copied().fold(f64::INFINITY, f64::min);
    assert_eq!(fewest, 16.0, "{after:?}");
}
