use lab_judgement::{Direction, Metric, Unit};

use super::*;
use crate::terminal::Style;

fn run(number: u32, value: f64, outcome: Outcome) -> ListedRun {
    ListedRun {
        run: format!("web-20260102-03040{number}"),
        name: "web".to_owned(),
        began: "2026-01-02 03:04".to_owned(),
        started_at_unix_ns: i64::from(number),
        state: RunState::Ended,
        outcome: Some(outcome),
        reason: None,
        duration_s: Some(12.5),
        held: 1,
        expectations: 2,
        left_out: 0,
        git_commit: Some("0123456789abcdef".to_owned()),
        bytes: 2048,
        metrics: vec![MetricValue {
            metric: Metric {
                name: "'<steady>': web p99".to_owned(),
                unit: Unit::Seconds,
                direction: Direction::LowerIsBetter,
            },
            value,
            replicates: Vec::new(),
        }],
        alike: 1,
        report: true,
    }
}

/// Where the dots of the first chart of a page are.
fn dots(page: &str) -> Vec<(f64, f64)> {
    let chart = page.split("</svg>").next().unwrap();
    let number = |text: &str| text.split('"').next().unwrap().parse::<f64>().unwrap();
    let dots = chart.split("<circle").skip(1);
    dots.map(|dot| {
        let after = |name: &str| number(dot.split_once(name).unwrap().1);
        (after("cx=\""), after("cy=\""))
    })
    .collect()
}

#[test]
fn each_run_is_a_line() {
    let mut going = run(3, 0.1, Outcome::Pass);
    (going.state, going.outcome, going.duration_s) = (RunState::Unfinished, None, None);
    let runs = [
        run(1, 0.1, Outcome::Pass),
        run(2, 0.1, Outcome::Fail),
        going,
    ];
    let style = Style {
        width: 100,
        color: false,
    };
    assert_eq!(
        terminal(&runs, style),
        "run                  began (UTC)       took    size   outcome                held\n\
         web-20260102-030401  2026-01-02 03:04  12.5 s  2 KiB  ✓ pass                 1 of 2\n\
         web-20260102-030402  2026-01-02 03:04  12.5 s  2 KiB  ✗ fail                 1 of 2\n\
         web-20260102-030403  2026-01-02 03:04          2 KiB  goes on or was killed  1 of 2\n"
    );
    assert_eq!(terminal(&[], style), "");
}

#[test]
fn the_outcome_stands_beside_the_run_where_a_phone_shows_it() {
    let page = html(&[run(1, 0.1, Outcome::Fail)]);
    let row = page.split("<tr><td>").nth(1).unwrap();
    let outcome = row.split("<td").nth(1).unwrap();
    assert!(outcome.contains("FAIL"), "{row}");
}

#[test]
fn what_was_left_out_is_in_the_score() {
    let score = |expectations, left_out| {
        let held = expectations;
        let run = ListedRun {
            held,
            expectations,
            left_out,
            ..run(1, 0.1, Outcome::Pass)
        };
        run.score()
    };
    assert_eq!(score(0, 0), "");
    assert_eq!(score(2, 0), "2 of 2");
    assert_eq!(score(1, 2), "1 of 1, 2 left out");
    assert_eq!(score(0, 1), "1 left out");
}

#[test]
fn a_chart_shows_what_was_measured_from_zero_up() {
    let runs = [
        run(1, 0.1, Outcome::Pass),
        run(2, 0.2, Outcome::Pass),
        run(3, 0.4, Outcome::Fail),
    ];
    let page = html(&runs);
    let dots = dots(&page);
    assert_eq!(dots.len(), 3);
    // The largest is at the top; a half is half as high, a quarter a quarter.
    let height = |at: usize| 39.0 - dots[at].1;
    assert!((height(2) - 34.0).abs() < 0.1, "{dots:?}");
    assert!((height(1) - 17.0).abs() < 0.1, "{dots:?}");
    assert!((height(0) - 8.5).abs() < 0.1, "{dots:?}");
    assert!(dots[0].0 < dots[1].0 && dots[1].0 < dots[2].0);
    assert!(page.contains("<b>400 ms</b>"), "{page}");
    assert!(page.contains("web-20260102-030403/report.html"));
    assert!(page.contains("dot no") && !page.contains("dot so"));
    assert!(page.contains("&lt;steady&gt;") && !page.contains("<steady>"));
}

#[test]
fn runs_of_another_plan_are_not_joined_by_a_line() {
    let mut runs = [1, 2, 3].map(|number| run(number, 0.1, Outcome::Pass));
    let joined = html(&runs);
    assert_eq!(joined.matches("class=\"other\"").count(), 0);
    let path = |page: &str| {
        let path = page.split_once("d=\"").unwrap().1;
        path.split('"').next().unwrap().to_owned()
    };
    assert_eq!(path(&joined).matches('M').count(), 1);
    runs[2].alike = 2;
    let apart = html(&runs);
    assert_eq!(apart.matches("class=\"other\"").count(), 1);
    assert_eq!(path(&apart).matches('M').count(), 2);
}

#[test]
fn what_was_not_measured_has_no_dot() {
    let mut runs = [1, 2, 3].map(|number| run(number, 0.1, Outcome::Pass));
    runs[1].metrics.clear();
    assert_eq!(dots(&html(&runs)).len(), 2);
    runs[0].metrics[0].value = f64::INFINITY;
    assert_eq!(dots(&html(&runs)).len(), 1);
    runs[2].metrics.clear();
    runs[0].metrics.clear();
    assert!(!html(&runs).contains("<svg"));
}

#[test]
fn the_experiment_that_was_run_last_comes_first() {
    let mut other = run(2, 0.1, Outcome::Pass);
    other.name = "other".to_owned();
    let runs = [
        run(1, 0.1, Outcome::Pass),
        other,
        run(3, 0.1, Outcome::Pass),
    ];
    let names = by_name(&runs);
    let names: Vec<_> = names.iter().map(|(name, of)| (*name, of.len())).collect();
    assert_eq!(names, [("web", 2), ("other", 1)]);
}
