//! Load, a probe and a search against a server of known capacity.

use std::fs;

use crate::lab::{Lab, answered, processes_of_run};

/// A busy machine makes sends late; this test is about the way, not about the figures.
fn patient(search: &str) -> [&str; 7] {
    [
        "--json", "--set", "late=10s", "--set", search, "--set", "soak=3s",
    ]
}

#[test]
fn the_knee_of_a_web_server_is_found_and_held_at_a_share_of_it() {
    // A search that the machine disturbs may end without an answer, and says so; with more
    // time it has one.
    answered(["search=60s", "search=4m"], |search| {
        let lab = Lab::alone();
        let run = lab.run(&lab.patient("knee-of-a-web-server.toml"), &patient(search));
        told(&lab, &run.json())
    });
}

/// Where the run found a knee, all else must be as it should; else what it says of that.
fn told(lab: &Lab, verdict: &serde_json::Value) -> Result<(), String> {
    let folder = lab.run_folder();
    let load = |name: &str| -> serde_json::Value {
        let text = fs::read_to_string(folder.join("loads").join(name)).expect("a load");
        serde_json::from_str(&text).expect("JSON")
    };
    let capacity = &load("knee.traffic.json")["capacity"];
    let Some(knee) = capacity["knee"]["rate"].as_f64() else {
        assert_eq!(capacity["limit"], "unsure", "{capacity:#}");
        return Err(format!("{capacity:#}"));
    };
    // One worker that takes 2 ms cannot do more than 500 a second; a busy machine, less.
    assert!(knee > 20.0 && knee < 600.0, "{capacity:#}");
    // What comes after it is steered by a rate that was held, at most the knee.
    let soak = folder.join("loads").join("soak_at_70_.traffic.json");
    if !soak.exists() {
        return Err(format!("{verdict:#}"));
    }
    let soak = load("soak_at_70_.traffic.json");
    let asked = soak["rate"]["asked"].as_f64().expect("a rate");
    assert!(asked <= 0.701 * knee, "{asked} of {knee}");
    let points = capacity["points"].as_array().expect("holds");
    let mut held = points.iter().filter(|point| point["good"] == true);
    let is_it = |rate: f64| (0.7 * rate / asked - 1.0).abs() < 0.02;
    assert!(
        held.any(|point| point["rate"].as_f64().is_some_and(is_it)),
        "{asked}: {capacity:#}"
    );
    assert!(soak["requests"]["sent"].as_u64().expect("a count") > 0);
    assert_eq!(load("alive.json")["refusals"], serde_json::json!({}));
    let expectations = verdict["expectations"].as_array().expect("expectations");
    assert_eq!(expectations.len(), 3, "{verdict:#}");
    for expectation in expectations {
        // A machine that kept the laboratory waiting leaves a latency open, and it says so.
        let note = expectation["note"].as_str().unwrap_or_default();
        let is_open = expectation["outcome"] == "invalid" && !note.contains("late itself");
        assert!(!is_open, "{verdict:#}");
    }
    assert!(folder.join("report.html").is_file());
    assert_eq!(processes_of_run(&folder), Vec::<String>::new());
    Ok(())
}
