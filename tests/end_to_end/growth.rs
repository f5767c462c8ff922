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

/// In a file that has nothing but a system and a step: memory that is taken for good, or is not.
#[test]
fn growth_needs_no_probe() {
    let lab = Lab::new();
    for (piece, grows) in [("b'x' * (4 << 20)", true), ("0", false)] {
        let program = format!(
            "import time\nheld = [b'x' * (40 << 20)]\nwhile True:\n    held.append({piece})\n    time.sleep(0.1)\n"
        );
        let program = lab.write("grows.py", &program);
        let text = format!(
            r#"lab = 1
name = "growth"
[[system]]
name = "taker"
run = "python3 '{}'"
[[step]]
name = "settle"
hold = "1s"
[[step]]
name = "held"
hold = "4s"
[[expect]]
that = "'held': growth(system.taker.rss) > 50%"
[[expect]]
that = "'held': growth(system.taker.rss) < 50%"
"#,
            program.display()
        );
        let run = lab.run(&lab.write("growth.toml", &text), &["--json"]);
        let verdict = run.json();
        let outcomes = [0, 1].map(|at| verdict["expectations"][at]["outcome"].clone());
        let expected = if grows {
            ["pass", "fail"]
        } else {
            ["fail", "pass"]
        };
        assert_eq!(outcomes, expected, "{piece}: {verdict:#}");
    }
}
