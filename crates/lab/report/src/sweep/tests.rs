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
            left_out: Vec::new(),
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
    let shown = "<title>pool 5, threads 1: 30 ms</title>";
    assert!(page.contains(shown), "{page}");
    for tick in ["0 s", "10 ms", "20 ms", "30 ms"] {
        assert!(page.contains(&format!(">{tick}</text>")), "{tick}: {page}");
    }
}

#[test]
fn lines_for_which_a_chart_has_no_room_are_counted() {
    let mut found = sweep((0..16).map(|at| run(at, 5.0, Outcome::Pass)).collect());
    let setting = |threads: usize| vec!["5".to_owned(), threads.to_string()];
    found.settings = (0..16).map(setting).collect();
    let page = html(&found);
    assert_eq!(page.matches("<polyline").count(), 14);
    let more = "And 2 further lines, which the table has.";
    assert!(page.contains(more), "{page}");
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

/// A sweep with names, values and sentences as long as people make them.
fn long_sweep() -> SweepRecord {
    let mut runs = Vec::new();
    for setting in 0..3 {
        let mut made = run(setting, 12.5 + setting as f64, Outcome::Pass);
        made.verdict.expectations[0].that =
            "'leader killed while all write': writes p99 < 1s and terms.etcd-0 rate < 0.1/s"
                .to_owned();
        made.verdict.expectations.push(Expectation {
            that: "recovery(writes.good) < 10s and lost(writes) < 500".to_owned(),
            measured: format!("recovery(writes.good) 1.2{setting} s, lost(writes) 31{setting}"),
            values: BTreeMap::new(),
            units: BTreeMap::new(),
            outcome: Outcome::Fail,
            note: String::new(),
        });
        made.verdict.reason =
            Some("it took longer than anybody would have thought it could take, ever".to_owned());
        runs.push(made);
    }
    let mut found = sweep(runs);
    found.times = 1;
    found.over = vec![
        "heartbeat-interval-of-members".to_owned(),
        "election-timeout".to_owned(),
    ];
    found.settings = ["100ms", "500ms", "1500ms"]
        .map(|beat| {
            vec![
                beat.to_owned(),
                "a-value-that-somebody-made-of-one-very-long-word".to_owned(),
            ]
        })
        .to_vec();
    found
}

fn widest(text: &str) -> usize {
    text.lines()
        .map(console::measure_text_width)
        .max()
        .unwrap_or(0)
}

/// The letters alone: what is left when only the places of line ends differ.
fn letters(text: &str) -> String {
    text.chars()
        .filter(|letter| !letter.is_whitespace())
        .collect()
}

#[test]
fn nothing_is_cut_at_any_width() {
    let found = long_sweep();
    let style = |width| Style {
        width,
        color: false,
    };
    let free = terminal(&found, style(usize::MAX));
    for width in [20, 40, 80, 120, 200] {
        let text = terminal(&found, style(width));
        assert!(widest(&text) <= width, "{width}: {text}");
        assert!(!text.contains('…'), "{width}: {text}");
        let whole = letters(&text);
        for value in found.settings.iter().flatten() {
            assert!(whole.contains(&letters(value)), "{width}, {value}: {text}");
        }
        for cell in ["12.5", "13.5", "14.5"] {
            assert!(whole.contains(cell), "{width}, {cell}: {text}");
        }
        for word in ["1.20", "1.21", "1.22", "310", "311", "312", "ever"] {
            assert!(whole.contains(word), "{width}, {word}: {text}");
        }
        assert_eq!(
            whole
                .matches("recovery(writes.good)<10sandlost(writes)<500")
                .count(),
            1
        );
    }
    // Without a terminal there is a line for each row, however long.
    assert_eq!(
        free.lines()
            .filter(|line| line.contains("very-long-word "))
            .count(),
        3,
        "{free}"
    );
}

#[test]
fn a_narrow_terminal_has_units_in_the_head_then_broken_cells_then_paragraphs() {
    let mut found = sweep((0..3).map(|at| run(at, 10.5, Outcome::Pass)).collect());
    found.times = 1;
    found.over = vec!["pool-of-connections".to_owned(), "threads".to_owned()];
    let table = |found: &SweepRecord, width| {
        let text = terminal(
            found,
            Style {
                width,
                color: false,
            },
        );
        let rows = text.split("\n\n").nth(1).unwrap().to_owned();
        assert!(widest(&rows) <= width, "{rows}");
        rows
    };
    let plain = "\
pool-of-connections  threads  [1]
5                    1        10.5 ms ✓
5                    2        10.5 ms ✓
50                   1        10.5 ms ✓";
    assert_eq!(table(&found, 39), plain);
    assert_eq!(
        table(&found, 35),
        "\
pool-of-     threads  [1]
connections
5            1        10.5 ms ✓
5            2        10.5 ms ✓
50           1        10.5 ms ✓"
    );
    assert_eq!(
        table(&found, 28),
        "\
pool-of-     threads  [1] ms
connections
5            1        10.5 ✓
5            2        10.5 ✓
50           1        10.5 ✓"
    );
    found.settings[1][0] = "what fits into the memory".to_owned();
    assert_eq!(
        table(&found, 30),
        "\
pool-of-     threads  [1] ms
connections
5            1        10.5 ✓
what fits    2        10.5 ✓
into the
memory
50           1        10.5 ✓"
    );
    assert_eq!(
        table(&found, 26),
        "\
pool-of-connections 5,
  threads 1
  [1] 10.5 ms ✓
pool-of-connections what
  fits into the memory,
  threads 2
  [1] 10.5 ms ✓
pool-of-connections 50,
  threads 1
  [1] 10.5 ms ✓"
    );
}
