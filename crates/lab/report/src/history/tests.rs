use lab_judgement::{Direction, HistorySettings, Unit, judge_history};

use super::*;

/// So many runs of a latency around 100 ms, `factor` times as much from the run `at` on.
fn latency(count: usize, at: usize, factor: f64) -> HistoryMetric {
    let metric = Metric {
        name: "'<steady>' p99".to_owned(),
        unit: Unit::Seconds,
        direction: Direction::LowerIsBetter,
    };
    let noise = [0.0, 0.4, -0.3, 0.2, -0.4, 0.1];
    let value = |run: usize| 0.1 + noise[run % 6] / 1e3;
    let values: Vec<Option<f64>> = (0..count)
        .map(|run| Some(value(run) * if run < at { 1.0 } else { factor }))
        .collect();
    let judgement = judge_history(&metric, &values, &HistorySettings::default());
    let said = judgement.changes.iter().map(|change| HistoryStatement {
        sentence: change.sentence.clone(),
        below: vec!["after <run>".to_owned()],
        worse: change.worse,
    });
    HistoryMetric {
        said: said.collect(),
        metric,
        values,
        judgement,
    }
}

fn runs(count: usize) -> Vec<HistoryRun> {
    let run = |number: usize| HistoryRun {
        run: format!("run-{number}"),
        commit: format!("{number:040}"),
    };
    (0..count).map(run).collect()
}

fn numbers(page: &str, class: &str, name: &str) -> Vec<f64> {
    let marked = format!("class=\"{class}\"");
    let drawn = page.split('<').filter(|element| !element.starts_with("i "));
    let elements = drawn.filter(|element| element.contains(&marked));
    let number = |element: &str| {
        let (_, rest) = element.split_once(&format!(" {name}=\"")).unwrap();
        rest.split('"').next().unwrap().parse().unwrap()
    };
    elements.map(number).collect()
}

#[test]
fn a_change_stands_where_it_was_planted() {
    let page = html("24 runs", &runs(24), &[latency(24, 12, 1.2)]);
    assert_eq!(page.matches("<circle").count(), 24);
    // Half-way between the eleventh run and the twelfth, which are drawn evenly.
    let step = (720.0 - 32.0) / 23.0;
    let at = numbers(&page, "step no", "x1");
    assert_eq!(at.len(), 1);
    assert!((at[0] - (16.0 + 11.5 * step)).abs() < 0.1, "{at:?}");
    // Two levels, the higher one is higher up.
    let levels = numbers(&page, "level", "y1");
    assert!(levels.len() == 2 && levels[1] < levels[0], "{levels:?}");
    assert!(
        page.contains("<title>run-7 (000000000000): 100 ms</title>"),
        "{page}"
    );
    assert!(page.contains("worse with run 12") && page.contains("after &lt;run&gt;"));
    assert!(page.contains("&lt;steady&gt;") && !page.contains("<steady>"));
    assert!(page.contains("default-src 'none'") && !page.contains("<script"));
}

#[test]
fn what_got_worse_comes_first_and_what_did_not_change_says_so() {
    let level = HistoryMetric {
        metric: Metric {
            name: "level".to_owned(),
            ..latency(1, 1, 1.0).metric
        },
        ..latency(24, 24, 1.0)
    };
    let better = HistoryMetric {
        metric: Metric {
            name: "better".to_owned(),
            ..latency(1, 1, 1.0).metric
        },
        ..latency(24, 12, 0.8)
    };
    let page = html("24 runs", &runs(24), &[level, better, latency(24, 12, 1.2)]);
    let place = |text: &str| page.find(text).unwrap();
    assert!(place("steady") < place("<h2>better") && place("<h2>better") < place("<h2>level"));
    assert!(page.contains("no change in 24 values"));
    assert_eq!(numbers(&page, "step", "x1").len(), 1);
}

#[test]
fn of_many_runs_the_latest_are_drawn_and_marks_stay_with_their_runs() {
    let count = MOST_RUNS + 100;
    let page = html("many", &runs(count), &[latency(count, MOST_RUNS, 1.5)]);
    assert_eq!(page.matches("class=\"hit\"").count(), MOST_RUNS);
    assert!(page.contains(&format!("<title>run-{} (", count - 1)));
    assert!(!page.contains("<title>run-99 ("));
    let step = (720.0 - 32.0) / (MOST_RUNS - 1) as f64;
    let at = numbers(&page, "step no", "x1");
    let expected = 16.0 + (MOST_RUNS as f64 - 100.5) * step;
    assert!((at[0] - expected).abs() < 0.1, "{at:?} {expected}");
}

#[test]
fn what_was_not_measured_is_no_value() {
    let mut found = latency(24, 24, 1.0);
    found.values[3] = None;
    found.values[4] = Some(f64::NAN);
    let page = html("24 runs", &runs(24), &[found.clone()]);
    assert_eq!(page.matches("class=\"hit\"").count(), 22);
    found.values.fill(None);
    assert!(!html("24 runs", &runs(24), &[found.clone()]).contains("<svg"));
    found.values[0] = Some(0.0);
    assert!(html("1 run", &runs(24), &[found]).contains("cy=\"60.0\""));
}
