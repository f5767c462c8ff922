//! An experiment in every setting of its constants, against a server whose times are planted.

use serde_json::Value;

use crate::lab::{Finished, Lab, wait_until};

const FILE: &str = r#"
lab = 1
name = "slow-and-slower"
seed = 3
[let]
latency = "20ms"
count = 1
[sweep]
over = { latency = ["10ms", "400ms"], count = [1, 2] }
times = 2
[[system]]
name = "shop"
builtin = "target"
args = "--listen {addr} --latency {latency}"
count = "{count}"
ready = "tcp"
[[load]]
name = "web"
http = "GET http://{shop.addr}/"
guard = { late_after = "60s", steal_share = "100%", little = "100%", sent_share = "0%" }
[[step]]
name = "steady"
load = { web = "20/s" }
hold = "1s"
[[expect]]
that = "'steady': web p50 < 200ms"
"#;

#[test]
fn every_setting_is_run_and_told_with_what_was_planted() {
    let lab = Lab::new();
    let file = lab.write("sweep.toml", FILE);
    let [xml, summary] = ["sweep.xml", "summary.md"].map(|name| lab.path(name));
    let [to_xml, to_summary] = [&xml, &summary].map(|path| path.display().to_string());
    let files = ["--junit", &to_xml, "--markdown", &to_summary];
    let ran = lab.run(&file, &files).expect_code(1);
    let xml = std::fs::read_to_string(&xml).expect("a file");
    assert!(xml.contains("tests=\"8\" failures=\"4\""), "{xml}");
    assert_eq!(
        xml.matches("latency=10ms count=2, run 2: ").count(),
        1,
        "{xml}"
    );
    let summary = std::fs::read_to_string(&summary).expect("a file");
    assert!(
        summary.contains("4 of 8 runs passed, 8 planned"),
        "{summary}"
    );
    let rows: Vec<Vec<&str>> = ran
        .stdout
        .lines()
        .filter(|line| line.starts_with("10ms") || line.starts_with("400ms"))
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows.len(), 4, "{}", ran.stdout);
    for row in rows {
        let held = if row[0] == "10ms" { "2/2" } else { "0/2" };
        assert_eq!(row.last(), Some(&held), "{}", ran.stdout);
    }
    let record = stored(&lab, ".sweep.json");
    let record: Value = serde_json::from_str(&record).expect("JSON");
    let runs = record["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 8);
    for run in runs {
        let setting = &record["settings"][run["setting"].as_u64().expect("a number") as usize];
        let planted = if setting[0] == "10ms" { 0.01 } else { 0.4 };
        let p50 = &run["verdict"]["expectations"][0]["values"]["'steady': web p50"];
        let p50 = p50.as_f64().unwrap_or_else(|| panic!("{run}"));
        assert!(p50 >= planted * 0.95, "{setting}: {p50}");
        let folder = run["folder"].as_str().expect("a folder");
        assert!(lab.path("runs").join(folder).join("report.html").exists());
    }
    assert_eq!(stored(&lab, ".sweep.html").matches("<circle").count(), 8);
}

/// A pool of 8 that works 50 ms on each request can do 160 a second.
#[test]
fn the_highest_value_that_holds_is_found_where_it_was_planted() {
    let lab = Lab::new();
    let text = FILE
        .replace("[sweep]\nover = { latency = [\"10ms\", \"400ms\"], count = [1, 2] }\ntimes = 2\n", "rate = \"20/s\"\n[sweep]\nover = { rate = { from = \"20/s\", to = \"640/s\", within = \"50%\" } }\n")
        .replace("--latency {latency}", "--latency 50ms --pool 8")
        .replace("\"20/s\" }\nhold = \"1s\"", "\"{rate}\" }\nhold = \"3s\"");
    let file = lab.write("highest.toml", &text);
    let ran = lab.run(&file, &[]).expect_code(0);
    let answer = ran
        .stdout
        .lines()
        .find_map(|line| line.trim().strip_prefix("rate holds at "));
    let answer = answer.unwrap_or_else(|| panic!("{}", ran.stdout));
    let ends: Vec<f64> = answer
        .split(", fails at ")
        .filter_map(|end| end.strip_suffix("/s")?.parse().ok())
        .collect();
    let [holds, fails] = ends[..] else {
        panic!("{answer}");
    };
    // A little above what it can do, three seconds are too short for a long line.
    assert!(holds < 250.0 && fails > 160.0 * 0.9, "{answer}");
}

#[test]
fn a_constant_that_is_set_is_not_swept_and_an_interrupted_sweep_keeps_what_it_has() {
    let lab = Lab::new();
    let file = lab.write("sweep.toml", &FILE.replace("times = 2", "times = 100"));
    lab.run(&file, &["--set", "latency=10ms", "--set", "count=1"])
        .expect_code(0);
    assert!(!has(&lab, ".sweep.json"), "nothing is left to sweep over");

    let mut command = lab.run_command(&file, &["--set", "latency=10ms"]);
    let mut child = command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("headroom starts");
    wait_until("two runs of a sweep", || {
        has(&lab, ".sweep.json") && stored(&lab, ".sweep.json").matches("\"folder\"").count() >= 2
    });
    let id = nix::unistd::Pid::from_raw(child.id().cast_signed());
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGINT).expect("a signal");
    let status = child.wait().expect("an end");
    assert_eq!(status.code(), Some(4));
    let record: Value = serde_json::from_str(&stored(&lab, ".sweep.json")).expect("JSON");
    let runs = record["runs"].as_array().expect("runs");
    assert!((2..100).contains(&runs.len()), "{}", runs.len());
    assert_eq!(runs[0]["verdict"]["outcome"], "pass");
}

#[test]
fn a_value_that_a_run_would_refuse_is_found_by_a_check() {
    let lab = Lab::new();
    let check = |text: &str| {
        let file = lab.write("sweep.toml", text);
        let checked = lab.command().arg("check").arg(file).output();
        Finished::of(checked.expect("headroom starts"))
    };
    check(FILE).expect_code(0);
    // The constants of a file have one kind, and only each value by itself can be wrong.
    let wrong = FILE
        .replace("\"20/s\" }", "\"{rate}\" }")
        .replace("[let]", "[let]\nrate = \"20/s\"")
        .replace("over = {", "over = { rate = [\"20/s\", \"often\"],");
    check(&wrong)
        .expect_code(4)
        .expect_stderr("the mistakes come of rate=often");
    check(&wrong.replace("often", "40/s")).expect_code(0);
}

fn has(lab: &Lab, end: &str) -> bool {
    files(lab, end).next().is_some()
}

fn stored(lab: &Lab, end: &str) -> String {
    let path = files(lab, end).next().unwrap_or_else(|| panic!("no {end}"));
    std::fs::read_to_string(path).expect("a file")
}

fn files(lab: &Lab, end: &str) -> impl Iterator<Item = std::path::PathBuf> {
    let end = end.to_owned();
    let entries = std::fs::read_dir(lab.path("runs")).into_iter().flatten();
    let paths = entries.flatten().map(|entry| entry.path());
    paths.filter(move |path| path.to_string_lossy().ends_with(&end))
}
