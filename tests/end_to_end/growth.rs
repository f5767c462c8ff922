//! Growth, planted into a real system through the whole engine, and a system that does not grow.

use serde_json::Value;

use crate::lab::{Lab, project};

/// What grows in the server of `growing.py`, each in one expectation.
const GROWING: [&str; 4] = ["system.web.rss", "size.value", "slow.latency", "loop.turn"];

/// What was expected of a server that grows, or is flat, and what became of it.
fn held(how: &str, bound: &str) -> Vec<Value> {
    let program = project().join("tests/end_to_end/growing.py");
    let program = program.display();
    let expects =
        GROWING.map(|what| format!("[[expect]]\nthat = \"'held': growth({what}) < {bound}\"\n"));
    let text = format!(
        r#"lab = 1
name = "growth"
[[system]]
name = "web"
run = "python3 '{program}' {{port}} {how}"
ready = "http /"
[[probe]]
name = "size"
http = "http://{{web.addr}}/value"
value = "json /value"
every = "50ms"
within = "20s"
[[probe]]
name = "slow"
http = "http://{{web.addr}}/slow"
every = "50ms"
within = "20s"
[[loop]]
name = "turn"
start = "turn.starting"
end = "turn.finished"
[[step]]
name = "settle"
hold = "500ms"
[[step]]
name = "held"
hold = "6s"
{}"#,
        expects.concat()
    );
    let lab = Lab::new();
    let run = lab.run(&lab.write("growth.toml", &text), &["--json"]);
    assert!(matches!(run.code, 0..=2), "{}\n{}", run.stdout, run.stderr);
    let verdict = run.json();
    let expectations = verdict["expectations"].as_array();
    expectations.expect("expectations").clone()
}

#[test]
fn what_grows_fails() {
    for found in held("grows", "20%") {
        assert_eq!(found["outcome"], "fail", "{found:#}");
    }
}

#[test]
fn what_stays_passes() {
    // A busy machine lets a sleep of some milliseconds last longer, now and then.
    for found in held("flat", "100%") {
        assert_eq!(found["outcome"], "pass", "{found:#}");
    }
}
