use proptest::prelude::*;

use lab_store::{FaultEffect, Mark};

use super::*;

fn expectation(that: &str, measured: &str, outcome: Outcome, note: &str) -> Expectation {
    Expectation {
        that: that.into(),
        measured: measured.into(),
        values: Default::default(),
        units: std::collections::BTreeMap::new(),
        outcome,
        note: note.into(),
    }
}

fn sample() -> Verdict {
    Verdict {
        probes: Vec::new(),
        left_out: Vec::new(),
        notes: Vec::new(),
        outcome: Outcome::Fail,
        reason: None,
        duration_s: 29.64,
        expectations: vec![
            expectation(
                "task.desired..resolved max < 30s",
                "11.80 s",
                Outcome::Pass,
                "",
            ),
            expectation(
                "lrp.desired..running p99 of every instance that was asked for < 8s",
                "8.41 s",
                Outcome::Fail,
                "",
            ),
            expectation(
                "recovery('kill 10 cells') < 2m",
                "",
                Outcome::Inconclusive,
                "the step `kill 10 cells` did not run, so nothing could be measured",
            ),
        ],
    }
}

fn plain(width: usize) -> Style {
    Style {
        width,
        color: false,
    }
}

#[test]
fn at_40_columns() {
    assert_eq!(
        verdict_table(&sample(), plain(40)),
        "\
expectation     measured  outcome
task.desired..   11.80 s  ✓ pass
resolved max <
30s
lrp.desired..r    8.41 s  ✗ fail
unning p99 of
every instance
that was asked
for < 8s
recovery('kill         -  ? inconclusive
10 cells') <
2m
  the step `kill 10 cells` did not run,
  so nothing could be measured

FAIL  1 of 3 expectations held, after 29.6 s
"
    );
}

#[test]
fn at_80_columns() {
    assert_eq!(
        verdict_table(&sample(), plain(80)),
        "\
expectation                                             measured  outcome
task.desired..resolved max < 30s                         11.80 s  ✓ pass
lrp.desired..running p99 of every instance that was       8.41 s  ✗ fail
asked for < 8s
recovery('kill 10 cells') < 2m                                 -  ? inconclusive
  the step `kill 10 cells` did not run, so nothing could be measured

FAIL  1 of 3 expectations held, after 29.6 s
"
    );
}

#[test]
fn at_120_columns() {
    assert_eq!(
        verdict_table(&sample(), plain(120)),
        "\
expectation                                                         measured  outcome
task.desired..resolved max < 30s                                     11.80 s  ✓ pass
lrp.desired..running p99 of every instance that was asked for < 8s    8.41 s  ✗ fail
recovery('kill 10 cells') < 2m                                             -  ? inconclusive
  the step `kill 10 cells` did not run, so nothing could be measured

FAIL  1 of 3 expectations held, after 29.6 s
"
    );
}

#[test]
fn a_run_that_ended_early_says_why() {
    let verdict = Verdict {
        probes: Vec::new(),
        left_out: Vec::new(),
        notes: Vec::new(),
        outcome: Outcome::Error,
        reason: Some("the system `bbs` ended with status 1 before it was ready\nlast lines of bbs.log:\n  no disk\n  good bye".into()),
        duration_s: 0.4,
        expectations: Vec::new(),
    };
    let path = std::path::Path::new("runs/a-20261121-093000/report.html");
    assert_eq!(ending(path), "report  runs/a-20261121-093000/report.html\n");
    assert_eq!(
        verdict_table(&verdict, plain(40)),
        "\
ERROR  after 0.4 s
  the system `bbs` ended with status 1
  before it was ready
  last lines of bbs.log:
    no disk
    good bye
"
    );
}

fn finding(kind: &str, text: &str, explained_by: Option<usize>) -> FindingRecord {
    FindingRecord {
        kind: kind.into(),
        system: "bbs".into(),
        part: "task".into(),
        text: text.into(),
        from_s: 1.0,
        to_s: 9.0,
        effect: 0.5,
        interval: [0.4, 0.613],
        of: "time".into(),
        evidence: Default::default(),
        mark: Mark {
            chart: "lifecycle".into(),
            name: "task".into(),
            phase: None,
            level: None,
        },
        explained_by,
    }
}

#[test]
fn what_limited_a_run_is_told_with_what_follows_from_it() {
    let found = [
        finding("pool", "stood at 20\u{7} while others waited", None),
        finding("queue", "grew", Some(0)),
    ];
    assert_eq!(
        findings(&found, plain(60)),
        "\
what limited it
pool of bbs  40 % to 61.3 % of time
  stood at 20\\u{7} while others waited
  follows: queue of bbs  40 % to 61.3 % of time
  grew

"
    );
    let many = vec![finding("drops", "many", None); FINDINGS_SHOWN + 2];
    let text = findings(&many, plain(60));
    assert!(text.contains("and 2 more, which the report has"), "{text}");
    assert_eq!(findings(&[], plain(60)), "");
}

#[test]
fn what_was_measured_is_never_cut() {
    let mut verdict = sample();
    let measured = "task.entities 4000, lrp.entities 3999, task.complete 100 %";
    verdict.expectations = vec![expectation("a and b", measured, Outcome::Fail, "")];
    assert_eq!(
        verdict_table(&verdict, plain(80)),
        "\
expectation              measured  outcome
a and b                     below  ✗ fail
  measured task.entities 4000, lrp.entities 3999, task.complete 100 %

FAIL  0 of 1 expectation held, after 29.6 s
"
    );
}

#[test]
fn a_pass_without_expectations_says_so() {
    let verdict = Verdict {
        probes: Vec::new(),
        left_out: Vec::new(),
        notes: Vec::new(),
        outcome: Outcome::Pass,
        expectations: Vec::new(),
        ..sample()
    };
    assert_eq!(
        verdict_table(&verdict, plain(80)),
        "PASS  nothing was expected, after 29.6 s\n"
    );
}

#[test]
fn what_was_left_out_is_told_beside_what_held() {
    let left_out = || {
        vec![OmittedExpectation {
            that: "'theirs': load p99 < 1s".to_owned(),
            why: "nginx is not installed".to_owned(),
        }]
    };
    let some = Verdict {
        outcome: Outcome::Pass,
        expectations: vec![expectation("a < 1", "0.5", Outcome::Pass, "")],
        left_out: left_out(),
        ..sample()
    };
    assert_eq!(
        verdict_table(&some, plain(80)),
        "\
expectation              measured  outcome
a < 1                         0.5  ✓ pass
'theirs': load p99 < 1s         -  – left out
  nginx is not installed

PASS  1 of 1 expectation held, 1 left out, after 29.6 s
"
    );
    let none = Verdict {
        outcome: Outcome::Inconclusive,
        reason: Some("every expectation is left out: nginx is not installed".to_owned()),
        expectations: Vec::new(),
        left_out: left_out(),
        ..sample()
    };
    let table = verdict_table(&none, plain(80));
    assert!(
        table.ends_with(
            "\nINCONCLUSIVE  1 left out, after 29.6 s\n  every expectation is left out: nginx is not installed\n"
        ),
        "{table}"
    );
}

#[test]
fn colours_change_nothing_but_colours() {
    let coloured = verdict_table(
        &sample(),
        Style {
            width: 80,
            color: true,
        },
    );
    assert!(
        coloured.contains("\u{1b}[31m✗ fail\u{1b}[0m"),
        "{coloured:?}"
    );
    assert_eq!(
        console::strip_ansi_codes(&coloured),
        verdict_table(&sample(), plain(80))
    );
}

#[test]
fn names_cannot_steer_the_terminal() {
    let mut verdict = sample();
    verdict.expectations[0].that = "\u{1b}[2Jgone".into();
    let table = verdict_table(&verdict, plain(80));
    assert!(
        table.contains("\\u{1b}[2Jgone") && !table.contains('\u{1b}'),
        "{table}"
    );
    // Those that turn the direction of writing are no control characters.
    assert_eq!(printable("a\u{202e}b\u{2028}"), "a\\u{202e}b\\u{2028}");
}

proptest! {
    #[test]
    fn no_line_is_wider_than_the_terminal(
        width in 40_usize..150,
        that in ".{0,200}|[日本語 a]{0,80}",
        measured in ".{0,40}",
        note in ".{0,90}",
    ) {
        let mut verdict = sample();
        verdict.expectations.push(expectation(&that, &measured, Outcome::Pass, &note));
        let table = verdict_table(&verdict, plain(width));
        // The last lines are the sum, which stays whole.
        for line in table.lines().filter(|line| !line.starts_with("FAIL")) {
            prop_assert!(measure_text_width(line) <= width, "{width}: {line:?}");
        }
    }
}

#[test]
fn what_faults_did_stands_under_what_they_were() {
    let style = Style {
        width: 60,
        color: false,
    };
    let fault = FaultRecord {
        step: "break".into(),
        kind: "kill".into(),
        targets: vec!["web.0".into(), "web.2".into()],
        begin_s: 3.0,
        end_s: Some(5.5),
        text: "ready 310 ms after the new start".into(),
        effects: vec![FaultEffect {
            of: "traffic.good".into(),
            text: "fell by 100 %".into(),
            ..FaultEffect::default()
        }],
    };
    let open = FaultRecord {
        end_s: None,
        text: "not over when the run ended".into(),
        effects: Vec::new(),
        ..fault.clone()
    };
    assert_eq!(
        faults(&[fault, open], style),
        "break: kill web.0, web.2\n  2.5 s, ready 310 ms after the new start\n  traffic.good: fell by 100 %\n\n\
         break: kill web.0, web.2\n  not over when the run ended\n\n"
    );
    assert_eq!(faults(&[], style), "");
}

#[test]
fn what_steps_said_stands_under_their_names() {
    let event = |kind, text: &str| Event {
        t_s: 1.0,
        kind,
        name: "look".into(),
        text: text.into(),
    };
    let style = Style {
        width: 40,
        color: false,
    };
    let long = "a sentence that is longer than forty columns";
    let events = [
        event(EventKind::StepEnded, "1 s"),
        event(EventKind::Said, &format!("{long}\nmean    3 ms\n\u{1b}[2J")),
    ];
    let expected =
        "look\n  a sentence that is longer than forty\n  columns\n  mean    3 ms\n  \\u{1b}[2J\n\n";
    assert_eq!(printed_by_steps(&events, style), expected);
    assert_eq!(printed_by_steps(&events[..1], style), "");
}
