use lab_judgement::{Direction, Fingerprint, MetricValue, Record, Unit};
use serde_json::Value;

use super::*;

fn metric(name: &str) -> Metric {
    Metric {
        name: name.into(),
        unit: Unit::Seconds,
        direction: Direction::LowerIsBetter,
    }
}

fn run(name: &str, values: &[(&str, f64)]) -> Recorded {
    let metrics = values.iter().map(|(name, value)| MetricValue {
        metric: metric(name),
        value: *value,
        replicates: Vec::new(),
    });
    let commit = "same".to_owned();
    let record = Record::new(
        name.into(),
        commit,
        1,
        Fingerprint::default(),
        metrics.collect(),
    );
    Recorded {
        record,
        plan: Value::Null,
    }
}

fn args() -> CompareArgs {
    CompareArgs {
        base: Vec::new(),
        new: Vec::new(),
        baseline: None,
        page: None,
        metrics: Vec::new(),
        limits: Vec::new(),
        despite_differences: false,
        json: false,
    }
}

/// Eight runs of a side; those in `without` lack y.
fn side(name: &str, y: f64, without: &[usize]) -> Vec<Recorded> {
    let noise = |at: usize| 1.0 + 0.0005 * ((at * 5) % 8) as f64;
    let runs = (0..8).map(|at| {
        let all = [("x", noise(at)), ("y", y * noise(at + 3))];
        let count = if without.contains(&at) { 1 } else { 2 };
        run(&format!("{name}-{at}"), &all[..count])
    });
    runs.collect()
}

#[test]
fn a_metric_that_one_run_lacks_is_judged_in_whatever_order() {
    for without in [0, 4, 7] {
        let base = side("a", 1.0, &[without]);
        let found = compared(&base, &side("b", 2.0, &[]), &args()).unwrap();
        assert_eq!(found.verdict, Verdict::Worse, "{found:?}");
        assert!(found.sentence.contains('y'), "{}", found.sentence);
        let sentence = format!("y is missing in a-{without}");
        assert!(found.differences.iter().any(|it| it.sentence == sentence));
        // The same with nothing to find.
        let equal = compared(&base, &side("b", 1.0, &[]), &args()).unwrap();
        assert_eq!(equal.verdict, Verdict::NotWorse, "{equal:?}");
    }
}

#[test]
fn a_run_counts_once() {
    let base = side("a", 1.0, &[]);
    let twice: Vec<Recorded> = [side("b", 1.0, &[]), side("b", 1.0, &[])]
        .into_iter()
        .flatten()
        .collect();
    for (base, new) in [(&base, &twice), (&twice, &base), (&base, &base)] {
        let error = compared(base, new, &args()).unwrap_err().to_string();
        assert!(error.contains("is given twice"), "{error}");
    }
}

#[test]
fn what_is_below_zero_is_not_called_missing() {
    let found = compared(&side("a", 1.0, &[]), &side("b", -1.0, &[]), &args()).unwrap();
    assert_eq!(found.verdict, Verdict::CannotTell);
    let of_y = &found.metrics[1];
    assert_eq!((of_y.new_count, of_y.negative), (0, 8));
    let said = of_y.finding_in_words();
    assert!(
        said.contains("in 8 of all the value is below zero"),
        "{said}"
    );
}

#[test]
fn a_metric_that_a_side_lacks_is_told_and_never_a_pass() {
    let all: Vec<usize> = (0..8).collect();
    let gone = compared(&side("a", 1.0, &[]), &side("b", 1.0, &all), &args()).unwrap();
    assert_eq!(gone.verdict, Verdict::CannotTell);
    let said = |found: &Compared, sentence: &str| {
        let mut all = found.differences.iter();
        assert!(all.any(|it| it.sentence == sentence), "{found:?}");
    };
    said(&gone, "only base runs measured y");
    let new = compared(&side("a", 1.0, &all), &side("b", 1.0, &[]), &args()).unwrap();
    assert_eq!(new.verdict, Verdict::NotWorse);
    said(&new, "only new runs measured y");
    let asked = CompareArgs {
        metrics: vec!["y".into()],
        ..args()
    };
    let asked = compared(&side("a", 1.0, &all), &side("b", 1.0, &[]), &asked).unwrap();
    assert_eq!(asked.verdict, Verdict::CannotTell);
    let other = CompareArgs {
        metrics: vec!["z".into()],
        ..args()
    };
    let error = compared(&side("a", 1.0, &[]), &side("b", 1.0, &[]), &other).unwrap_err();
    assert!(error.to_string().contains("there is x, y"), "{error}");
}

#[test]
fn a_unit_that_differs_is_seen_also_where_the_first_run_lacks_it() {
    let mut new = side("b", 1.0, &[]);
    new[5].record.metrics[1].metric.unit = Unit::Bytes;
    let found = compared(&side("a", 1.0, &[0]), &new, &args()).unwrap();
    assert_eq!(found.verdict, Verdict::CannotTell);
    assert_eq!(
        found.differences[0].sentence,
        "the unit of y differs: seconds and bytes"
    );
}

#[test]
fn what_was_done_by_hand_is_told_first_and_forbids() {
    let mut new = side("b", 1.0, &[]);
    new[3].record.environment.by_hand = vec!["users at 80/s from its page".into()];
    for run in &mut new {
        run.record.environment.cores = 4;
    }
    let found = compared(&side("a", 1.0, &[]), &new, &args()).unwrap();
    assert_eq!(found.verdict, Verdict::CannotTell);
    let sentence = "b-3 was changed by hand: users at 80/s from its page";
    assert_eq!(found.differences[0].sentence, sentence);
    // Told once, and not at all where nothing was done.
    let told = |found: &Compared| {
        let all = found.differences.iter();
        all.filter(|it| it.sentence.contains("by hand")).count()
    };
    assert_eq!(told(&found), 1);
    let found = compared(&side("a", 1.0, &[]), &side("b", 1.0, &[]), &args()).unwrap();
    assert_eq!((told(&found), found.differences.len()), (0, 0));
}

#[test]
fn too_few_runs_say_how_many_it_takes() {
    let (base, new) = (side("a", 1.0, &[]), side("b", 1.0, &[]));
    let found = compared(&base[..3], &new[..3], &args()).unwrap();
    assert_eq!(found.verdict, Verdict::CannotTell);
    let text = text(&found);
    assert!(text.contains("it takes at least 4 runs of each"), "{text}");
}
