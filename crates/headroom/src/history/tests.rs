use lab_judgement::{Direction, Fingerprint, Metric, MetricValue, Unit};

use super::show::{Shown, judged, text};
use super::*;

fn records(values: impl IntoIterator<Item = f64>) -> Vec<Record> {
    let each = values.into_iter().enumerate();
    let record = each.map(|(at, value)| {
        let metric = Metric {
            name: "p99".into(),
            unit: Unit::Seconds,
            direction: Direction::LowerIsBetter,
        };
        let replicates = Vec::new();
        let metrics = vec![MetricValue {
            metric,
            value,
            replicates,
        }];
        let environment = Fingerprint {
            plan_hash: "same".into(),
            ..Fingerprint::default()
        };
        let at = i64::try_from(at).unwrap();
        Record::new(
            format!("run-{at}"),
            format!("c{at}"),
            at,
            environment,
            metrics,
        )
    });
    record.collect()
}

/// Fifteen runs at a level, then fifteen at another, with noise that is known.
fn stepped(after: f64) -> Vec<Record> {
    let mut random = stats::SplitMix::new(4);
    let mut noisy = |level: f64| level * (0.01 * random.normal()).exp();
    let values: Vec<f64> = (0..30)
        .map(|at| noisy(if at < 15 { 0.1 } else { after }))
        .collect();
    records(values)
}

fn no_log(_: &str, _: &str) -> Vec<String> {
    Vec::new()
}

#[test]
fn a_planted_step_is_named_with_its_commits() {
    let log = |from: &str, to: &str| vec![format!("{from}..{to}"), "subject".into()];
    let shown = judged(&stepped(0.13), &[], &log).unwrap();
    let found = &shown.metrics[0];
    assert_eq!(found.judgement.changes.len(), 1);
    let (change, between) = (&found.judgement.changes[0], &found.between[0]);
    assert!(
        change.worse && change.certain && change.index == 15,
        "{change:?}"
    );
    assert_eq!(between.last_before.as_deref(), Some("run-14"));
    assert_eq!(between.commits[0], "c14..c15");
    // Fifteen runs ago: whoever builds now did not do it.
    assert!(!shown.got_worse);
    let text = text(&shown);
    assert!(text.contains("100 ms became 130 ms"), "{text}");
    assert!(
        text.contains("after run-14 (c14), with run-15 (c15) at the latest"),
        "{text}"
    );
    let json = serde_json::to_string(&shown).unwrap();
    assert_eq!(serde_json::from_str::<Shown>(&json).unwrap(), shown);
}

#[test]
fn what_got_worse_lately_counts_and_what_got_better_does_not() {
    let lately = |after| {
        judged(&stepped(after)[..21], &[], &no_log)
            .unwrap()
            .got_worse
    };
    assert!(lately(0.13));
    assert!(!lately(0.08));
    let flat = judged(&stepped(0.1), &[], &no_log).unwrap();
    assert!(!flat.got_worse && flat.metrics[0].judgement.changes.is_empty());
    assert!(text(&flat).contains("no change in 30 values"));
}

#[test]
fn the_latest_runs_raise_an_alarm_before_a_change_is_certain() {
    let mut all = stepped(0.1);
    all.extend(records([0.12, 0.12]).into_iter().map(|mut record| {
        record.run = format!("latest {}", record.run);
        record
    }));
    let shown = judged(&all, &[], &no_log).unwrap();
    let alarm = shown.metrics[0].judgement.alarm.as_ref();
    assert!(
        alarm.is_some_and(|alarm| alarm.worse) && shown.got_worse,
        "{shown:?}"
    );
    assert!(
        text(&shown).contains("since latest run-0"),
        "{}",
        text(&shown)
    );
}

#[test]
fn runs_of_another_plan_are_left_out() {
    let mut all = stepped(0.13);
    for record in &mut all[..15] {
        record.environment.plan_hash = "other".into();
    }
    let shown = judged(&all, &[], &no_log).unwrap();
    assert_eq!((shown.runs.len(), shown.left_out), (15, 15));
    assert!(shown.metrics[0].judgement.changes.is_empty());
    let error = judged(&all, &["p50".into()], &no_log)
        .unwrap_err()
        .to_string();
    assert!(error.contains("it has p99"), "{error}");
    assert!(judged(&[], &[], &no_log).is_err());
}
