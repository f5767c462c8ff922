use lab_store::{Expectation, Unit};

use super::*;
use crate::terminal::Style;

fn run(setting: usize, value: f64, outcome: Outcome) -> SweepRun {
    let expectation = Expectation {
        that: "'<b>load': web p99 < 20ms".to_owned(),
        measured: format!("{value} ms"),
        values: [("web p99".to_owned(), value / 1e3)].into(),
        units: [("web p99".to_owned(), Unit::Seconds)].into(),
        outcome,
        note: String::new(),
    };
    SweepRun {
        setting,
        folder: format!("pool-{setting}"),
        verdict: Verdict {
            outcome,
            reason: (outcome == Outcome::Error).then(|| "it broke\nbadly".to_owned()),
            duration_s: 1.0,
            expectations: vec![expectation],
            probes: Vec::new(),
            notes: Vec::new(),
        },
    }
}

fn sweep(runs: Vec<SweepRun>) -> SweepRecord {
    let setting = |pool: &str, threads: &str| vec![pool.to_owned(), threads.to_owned()];
    SweepRecord {
        name: "a & b".to_owned(),
        seed: 7,
        over: vec!["pool".to_owned(), "threads".to_owned()],
        settings: vec![setting("5", "1"), setting("5", "2"), setting("50", "1")],
        times: 3,
        runs,
        answer: None,
    }
}

const PLAIN: Style = Style {
    width: 100,
    color: false,
};

#[test]
fn a_row_for_each_setting_with_the_run_in_the_middle() {
    let found = sweep(vec![
        run(0, 30.0, Outcome::Fail),
        run(2, 3.0, Outcome::Pass),
        run(0, 10.0, Outcome::Pass),
        run(0, 19.0, Outcome::Pass),
    ]);
    let expected = "\
[1] '<b>load': web p99 < 20ms

pool  threads  [1]
5     1        19 ms 2/3
5     2        –
50    1        3 ms ✓

FAIL  4 of 9 runs
";
    assert_eq!(terminal(&found, PLAIN), expected);
}

#[test]
fn the_worst_run_decides_and_says_why() {
    let found = sweep(vec![
        run(0, 1.0, Outcome::Pass),
        run(1, 1.0, Outcome::Error),
        run(2, 1.0, Outcome::Invalid),
    ]);
    assert_eq!(found.outcome(), Outcome::Error);
    assert!(terminal(&found, PLAIN).ends_with("ERROR  3 of 9 runs\n  5 2: it broke\n"));
    assert_eq!(sweep(Vec::new()).outcome(), Outcome::Error);
    let passed = sweep(vec![run(0, 1.0, Outcome::Pass)]);
    assert_eq!(passed.outcome(), Outcome::Pass);
}

#[test]
fn the_page_has_every_value_and_no_name_can_leave_its_place() {
    let found = sweep(vec![
        run(0, 30.0, Outcome::Fail),
        run(0, 10.0, Outcome::Pass),
        run(1, 7.5, Outcome::Pass),
        run(2, f64::INFINITY, Outcome::Inconclusive),
    ]);
    let page = html(&found);
    assert_eq!(
        page.matches("<circle").count(),
        3,
        "what never ended has no place"
    );
    assert_eq!(
        page.matches("<polyline").count(),
        2,
        "a line for each number of threads"
    );
    assert!(page.contains("<h1>a &amp; b: sweep over pool, threads</h1>"));
    assert!(page.contains("&lt;b&gt;load") && !page.contains("<b>load"));
    assert!(page.contains("href=\"pool-0/report.html\""));
    assert!(page.contains("held in 1 of 2"), "{page}");
    for tick in ["0 s", "10 ms", "20 ms", "30 ms"] {
        assert!(page.contains(&format!(">{tick}</text>")), "{tick}: {page}");
    }
}

#[test]
fn a_search_is_told_by_its_answer_and_in_the_order_of_its_values() {
    let mut found = sweep(vec![
        run(0, 1.0, Outcome::Pass),
        run(1, 30.0, Outcome::Fail),
        run(2, 9.0, Outcome::Pass),
    ]);
    found.over.truncate(1);
    found.settings = ["10/s", "100/s", "40/s"]
        .map(|rate| vec![rate.to_owned()])
        .to_vec();
    found.answer = Some(SweepAnswer {
        text: "rate holds at 40/s, fails at 100/s".to_owned(),
        outcome: Outcome::Pass,
    });
    let text = terminal(&found, PLAIN);
    let rows: Vec<&str> = text.lines().skip(3).take(3).collect();
    assert_eq!(rows, ["10/s   1 ms ✓", "40/s   9 ms ✓", "100/s  30 ms ✗"]);
    assert!(
        text.ends_with("PASS  3 runs\n  rate holds at 40/s, fails at 100/s\n"),
        "{text}"
    );
    assert!(html(&found).contains("<p>rate holds at 40/s, fails at 100/s, 3 runs."));
}

#[test]
fn a_record_comes_back_as_it_was_stored() {
    let found = sweep(vec![run(0, 30.0, Outcome::Fail)]);
    let text = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<SweepRecord>(&text).unwrap(), found);
}
