//! Growth, planted into a real system through the whole engine, and a system that does not grow.

use serde_json::Value;

use crate::lab::{Lab, answered, is_open, project};

/// What grows in the server of `growing.py`, each in one expectation.
const GROWING: [&str; 4] = ["system.web.rss", "size.value", "slow.latency", "loop.turn"];

/// What was expected of a server that grows, or is flat, and what became of it in a step of this length.
fn held(how: &str, bound: &str, length: &str) -> Vec<Value> {
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
hold = "{length}"
{}"#,
        expects.concat()
    );
    // Whoever begins or ends meanwhile makes a latency grow or shrink.
    let lab = Lab::alone();
    let run = lab.run(&lab.write("growth.toml", &text), &["--json"]);
    assert!(matches!(run.code, 0..=2), "{}\n{}", run.stdout, run.stderr);
    let verdict = run.json();
    let expectations = verdict["expectations"].as_array();
    expectations.expect("expectations").clone()
}

/// Everything that was expected comes to this, where it can be told; a longer step tells more.
fn comes_to(outcome: &str, how: &str, bound: &str) {
    answered(["6s", "30s", "60s"], |length| {
        let found = held(how, bound, length);
        assert_eq!(found.len(), GROWING.len(), "{found:#?}");
        let (open, told): (Vec<&Value>, Vec<&Value>) = found.iter().partition(|one| is_open(one));
        for one in told {
            assert_eq!(one["outcome"], outcome, "{length}: {one:#}");
        }
        match open.first() {
            None => Ok(()),
            Some(one) => Err(format!("{length}: {one:#}")),
        }
    });
}

#[test]
fn what_grows_fails() {
    comes_to("fail", "grows", "20%");
}

#[test]
fn what_stays_passes() {
    // A busy machine lets a sleep of some milliseconds last longer, now and then.
    comes_to("pass", "flat", "100%");
}

/// In a file that has nothing but a system and a step: memory that is taken for good, or is not.
#[test]
fn growth_needs_no_probe() {
    let lab = Lab::new();
    for (piece, grows) in [("b'x' * (2 << 20)", true), ("0", false)] {
        let program = format!(
            "import time\nheld = [b'x' * (40 << 20)]\nwhile True:\n    held.append({piece})\n    time.sleep(0.1)\n"
        );
        let program = lab.write("grows.py", &program);
        answered(["5s", "15s"], |length| {
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
hold = "{length}"
[[expect]]
that = "'held': growth(system.taker.rss) > 50%"
[[expect]]
that = "'held': growth(system.taker.rss) < 50%"
"#,
                program.display()
            );
            let run = lab.run(&lab.write("growth.toml", &text), &["--json"]);
            let verdict = run.json();
            let expectations = [0, 1].map(|at| &verdict["expectations"][at]);
            if expectations.into_iter().any(is_open) {
                return Err(format!("{length}: {verdict:#}"));
            }
            let outcomes = expectations.map(|one| one["outcome"].clone());
            let expected = if grows {
                ["pass", "fail"]
            } else {
                ["fail", "pass"]
            };
            assert_eq!(outcomes, expected, "{piece}: {verdict:#}");
            Ok(())
        });
    }
}
