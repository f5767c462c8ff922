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

/// Runs that were made here.
fn made(records: &[Record]) -> New {
    New {
        records: records.to_vec(),
        lines: None,
    }
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
fn a_drift_that_goes_on_counts_and_one_that_has_ended_does_not() {
    let got_worse = |change: f64, end: usize| {
        let mut random = stats::SplitMix::new(4);
        let values = (0..90).map(|at| {
            let truth = 0.1 * (1.0 + change * at.min(end) as f64 / end as f64);
            truth * (0.01 * random.normal()).exp()
        });
        let shown = judged(&records(values.collect::<Vec<f64>>()), &[], &no_log).unwrap();
        let judgement = &shown.metrics[0].judgement;
        assert!(judgement.changes.is_empty() && !judgement.drifts.is_empty());
        shown.got_worse
    };
    assert!(got_worse(0.4, 90));
    assert!(!got_worse(0.4, 50));
    assert!(!got_worse(-0.3, 90));
}

#[test]
fn a_change_that_may_be_no_commit_is_told_as_that() {
    let told = |commit: &dyn Fn(usize) -> String, log: &dyn Fn(&str, &str) -> Vec<String>| {
        let mut all = stepped(0.13);
        for (at, record) in all.iter_mut().enumerate() {
            record.commit = commit(at);
        }
        text(&judged(&all, &[], log).unwrap())
    };
    let known = |from: &str, to: &str| match from < to {
        true => vec!["c15 subject".to_owned()],
        false => Vec::new(),
    };
    let clean = told(&|at| format!("c{at:02}"), &known);
    assert!(
        clean.contains("c15 subject") && !clean.contains("it was not"),
        "{clean}"
    );
    let dirty = told(&|at| format!("0123456789abcd{at:02}-dirty"), &known);
    for part in ["(0123456789ab-dirty)", "changes that no commit has"] {
        assert!(dirty.contains(part), "{dirty}");
    }
    let same = told(&|_| "c1".to_owned(), &known);
    assert!(same.contains("it was not the program"), "{same}");
    let older = told(&|at| format!("c{:02}", 40 - at), &known);
    assert!(older.contains("an older commit"), "{older}");
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
    assert!(error.contains("there is p99"), "{error}");
    assert!(judged(&[], &[], &no_log).is_err());
}

/// A value of another metric in the place of that of each of some runs.
fn with_other(mut all: Vec<Record>, runs: std::ops::Range<usize>) -> Vec<Record> {
    for record in &mut all[runs] {
        record.metrics[0].metric.name = "other".into();
    }
    all
}

#[test]
fn a_metric_that_the_latest_runs_lack_is_looked_at_all_the_same() {
    let mut all = stepped(0.13);
    all.truncate(25);
    // The change is the tenth last value of p99, and not of the last ten runs.
    let found = judged(&with_other(all.clone(), 24..25), &[], &no_log).unwrap();
    let p99 = found.metrics.iter().find(|it| it.metric.name == "p99");
    let p99 = p99.unwrap();
    assert_eq!(p99.judgement.changes[0].index, 15);
    assert_eq!(p99.not_since, 1);
    assert!(text(&found).contains("not measured in the last 1 run\n"));
    assert!(found.got_worse);
    // Long gone is not lately.
    let gone = judged(&with_other(stepped(0.13), 19..30), &[], &no_log).unwrap();
    assert!(!gone.got_worse && gone.metrics.len() == 2);
    // And with nothing to find.
    let flat = judged(&with_other(stepped(0.1), 29..30), &["p99".into()], &no_log).unwrap();
    assert!(!flat.got_worse && flat.metrics[0].judgement.changes.is_empty());
}

#[test]
fn commits_of_runs_that_did_not_measure_it_may_be_the_change_too() {
    let log = |from: &str, to: &str| vec![format!("{from}..{to}")];
    let found = judged(&with_other(stepped(0.13), 13..15), &[], &log).unwrap();
    let p99 = found.metrics.iter().find(|it| it.metric.name == "p99");
    let p99 = p99.unwrap();
    assert_eq!(p99.judgement.changes[0].earliest_index, 15);
    assert_eq!(p99.between[0].last_before.as_deref(), Some("run-12"));
    assert_eq!(p99.between[0].commits, ["c12..c15"]);
}

#[test]
fn a_run_that_was_changed_by_hand_is_kept_apart() {
    let mut all = stepped(0.1);
    for at in [12, 29] {
        all[at].environment.by_hand = vec!["users at 80/s from its page".into()];
    }
    let shown = judged(&all, &[], &no_log).unwrap();
    assert_eq!((shown.runs.len(), shown.left_out), (28, 2));
    assert!(!shown.runs.contains(&"run-12".to_owned()));
}

#[test]
fn a_history_without_its_last_line_feed_is_added_to() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.jsonl");
    let all = records([1.0, 2.0, 3.0]);
    let first = write_record(&all[0]).unwrap();
    fs::write(&file, first.trim_end()).unwrap();
    add(&file, &made(&all[1..])).unwrap();
    assert_eq!(read(&file).unwrap(), all);
    // Whoever adds one twice, or half a line, changes nothing.
    let before = fs::read(&file).unwrap();
    assert!(add(&file, &made(&all[2..])).is_err());
    assert_eq!(fs::read(&file).unwrap(), before);
    fs::write(&file, &before[..before.len() - 20]).unwrap();
    assert!(add(&file, &made(&records([1.0]))).is_err());
    assert_eq!(fs::read(&file).unwrap(), before[..before.len() - 20]);
}

#[test]
fn lines_that_are_there_already_are_counted_and_others_named_by_their_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.jsonl");
    let all = records([1.0, 2.0, 3.0]);
    add(&file, &made(&all[..2])).unwrap();
    let lines = |records: &[Record]| New {
        records: records.to_vec(),
        lines: Some(("other.jsonl".into(), vec![1, 2, 4])),
    };
    let known = read(&file).unwrap();
    let again = lines(&all);
    let missing = again.missing(&known).unwrap();
    assert_eq!(missing, [&all[2]]);
    let counts = again.counts(known.len(), missing.len());
    assert_eq!((counts.added, counts.there, counts.all), (1, 2, 3));
    add(&file, &again).unwrap();
    let before = fs::read(&file).unwrap();
    add(&file, &again).unwrap();
    assert_eq!(fs::read(&file).unwrap(), before, "nothing is left to add");
    let mut changed = all.clone();
    changed[2].metrics[0].value = 9.0;
    let error = format!("{:#}", add(&file, &lines(&changed)).unwrap_err());
    assert!(
        error.ends_with("other.jsonl, line 4: the run run-2 is in it already, with other values"),
        "{error}"
    );
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn of_several_that_add_the_same_run_one_does() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.jsonl");
    let record = records([1.0]);
    let added = std::thread::scope(|scope| {
        let each: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| add(&file, &made(&record)).is_ok()))
            .collect();
        let each = each.into_iter().map(|one| one.join().unwrap());
        each.filter(|added| *added).count()
    });
    assert_eq!(added, 1);
    assert_eq!(read(&file).unwrap(), record);
}

#[test]
fn a_full_disk_leaves_the_history_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.jsonl");
    fs::write(&path, "before\n").unwrap();
    let file = OpenOptions::new().append(true).open(&path).unwrap();
    let half = |mut file: &File, lines: &[u8]| {
        file.write_all(&lines[..3])?;
        Err(io::Error::from(io::ErrorKind::StorageFull))
    };
    let error = append(&file, 7, b"a line\n", half).unwrap_err();
    assert!(
        format!("{error:#}").starts_with("nothing was added"),
        "{error:#}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "before\n");
    append(&file, 7, b"a line\n", |mut file, lines| {
        file.write_all(lines)
    })
    .unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "before\na line\n");
}

#[test]
fn lists_of_any_file_are_compared_and_names_that_nothing_has_are_refused() {
    use clap::Parser;
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ImportArgs,
    }
    let folder = tempfile::tempdir().unwrap();
    let import = |file: &str, more: &[&str]| {
        let path = folder.path().join(file);
        let list = r#"[{"name": "parse", "unit": "ops/s", "value": 120}]"#;
        fs::write(&path, list).unwrap();
        let path = path.display().to_string();
        let commit: &[&str] = match more.first() {
            Some(&"--commit") => &[],
            _ => &["--commit", "c1"],
        };
        let line = [&["import", &path], commit, more].concat();
        let new = import::records(&Line::parse_from(line).args);
        new.map(|new| new.records)
            .map_err(|error| format!("{error:#}"))
    };
    let plan = |records: Vec<Record>| records[0].environment.plan_hash.clone();
    let (one, other) = (import("parse.json", &[]), import("parse2.json", &[]));
    assert_eq!(plan(one.unwrap()), plan(other.unwrap()));
    let named = import("parse.json", &["--name", "nightly"]).unwrap();
    assert_eq!(plan(named.clone()), "nightly");
    assert!(named[0].run.starts_with("nightly-c1-"));
    let error = import("parse.json", &["--better", "typo=higher"]).unwrap_err();
    assert!(
        error.contains("no metric is called \"typo\"; there is parse"),
        "{error}"
    );
    let lower = import("parse.json", &["--better", "parse=lower"]).unwrap();
    assert_eq!(
        lower[0].metrics[0].metric.direction,
        Direction::LowerIsBetter
    );
    // Whatever says nothing is refused before it is written.
    let file = folder.path().join("history.jsonl");
    for commit in ["", "a\nb"] {
        let records = import("parse.json", &["--commit", commit]);
        assert!(records.is_err() || add(&file, &made(&records.unwrap())).is_err());
    }
}
