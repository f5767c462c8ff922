//! Lifecycles proposed from logs, put into an experiment and run.

use std::fmt::Write as _;

use std::path::Path;

use crate::lab::{Finished, Lab};

/// The log of a shop: thirty orders in three messages each, and what else it says.
fn log() -> String {
    let mut lines = Vec::new();
    for order in 0..30 {
        for (step, said) in ["order received", "paid for", "parcel sent"]
            .iter()
            .enumerate()
        {
            let at = 10 * order + 70 * step;
            lines.push((
                at,
                format!(r#"msg="{said}" order_id=o-{order:04} took={at}"#),
            ));
        }
        lines.push((10 * order + 5, "msg=\"cache swept\" entries=12".to_owned()));
    }
    lines.sort();
    lines.iter().fold(String::new(), |mut text, (at, line)| {
        let at = 1_700_000_000_000 + at;
        let _ = writeln!(text, "ts={}.{:03} {line}", at / 1_000, at % 1_000);
        text
    })
}

fn suggest(lab: &Lab, logs: &Path, more: &[&str]) -> Finished {
    let mut command = lab.command();
    command.args(["lifecycle", "suggest"]).arg(logs).args(more);
    Finished::of(command.output().expect("headroom starts"))
}

#[test]
fn what_is_proposed_for_a_log_is_what_a_run_of_it_finds() {
    let lab = Lab::new();
    let proposed = suggest(&lab, &lab.write("shop.log", &log()), &[]).expect_code(0);
    let proposed = proposed.stdout;
    assert!(
        proposed.starts_with("# 30 entities in these logs; 30 have every point."),
        "{proposed}"
    );
    let script = format!(
        "sleep 1\ncat {}\nexec sleep 60\n",
        lab.path("shop.log").display()
    );
    lab.write("shop.sh", &script);
    let file = format!(
        r#"
lab = 1
name = "shop"
[[system]]
name = "shop"
run = "sh shop.sh"
[[step]]
name = "trade"
hold = "5s"
[[expect]]
that = "order.complete == 100%"
[[expect]]
that = "order.received..sent p50 == 140ms"
{proposed}"#
    );
    let file = lab.write("shop.toml", &file);
    lab.run(&file, &[]).expect_code(0);
}

#[test]
fn where_there_is_no_lifecycle_it_says_what_there_is() {
    let lab = Lab::new();
    let lines: String = (0..100)
        .map(|n| {
            format!(
                "ts=17000000{n:02} msg=served took={n}ms from=10.0.0.{}\n",
                n % 7
            )
        })
        .collect();
    let log = lab.write("requests.log", &(lines + "no line of a log\n"));
    let found = suggest(&lab, &log, &[])
        .expect_code(2)
        .expect_stderr("no lifecycle found in 101 lines, of which 1 could not be read, the first: no line of a log")
        .expect_stderr("took  100 lines, 100 values such as \"0ms\": no value is in lines with different messages");
    assert_eq!(found.stdout, "");
    let found = suggest(&lab, &log, &["--json"]).json();
    assert_eq!(found["lifecycles"], serde_json::json!([]));
    assert_eq!(found["fields"][0]["values"], 7);

    suggest(&lab, &lab.path("nowhere.log"), &[])
        .expect_code(4)
        .expect_stderr("read the log ");
    std::fs::create_dir(lab.path("empty")).expect("a folder");
    suggest(&lab, &lab.path("empty"), &[])
        .expect_code(4)
        .expect_stderr("ends in .log; name the files themselves");
}
