use std::sync::Arc;

use lab_experiment::expr::{Affected, FaultNumber};
use lab_lifecycle::{Row, Turn};
use lab_store::FaultEffect;
use proptest::prelude::*;

use super::*;

const S: i64 = 1_000_000_000;

fn table(rows: &[[Option<i64>; 3]]) -> Table {
    Table {
        name: "task".into(),
        points: ["a", "b", "c"].map(String::from).to_vec(),
        rows: (0..)
            .zip(rows)
            .map(|(n, times)| Row {
                id: Arc::from(format!("{n}")),
                group: None,
                at_ns: times.iter().map(|at| at.map(|s| s * S)).collect(),
            })
            .collect(),
    }
}

fn sample(system: &str, cpu_cores: f64) -> ProcessSample {
    ProcessSample {
        t_s: 0.0,
        system: system.into(),
        cpu_cores,
        rss_bytes: 100,
        fds: 5,
        threads: 2,
    }
}

fn interval(from: &str, to: &str, stat: Stat) -> Metric {
    Metric::Interval {
        lifecycle: "task".into(),
        from: from.into(),
        to: to.into(),
        stat,
    }
}

#[test]
fn intervals_are_in_seconds_over_all_that_have_both_points() {
    let tables = [table(&[
        [Some(0), Some(1), Some(4)],
        [Some(1), Some(3), None],
        [Some(2), Some(1), Some(9)],
    ])];
    let measured = Measured {
        tables: &tables,
        ..Measured::default()
    };
    let value = |metric| measured.value(&metric);
    assert_eq!(value(interval("a", "b", Stat::Max)), Some(2.0));
    assert_eq!(value(interval("a", "b", Stat::Min)), Some(-1.0));
    assert_eq!(value(interval("a", "b", Stat::P50)), Some(1.0));
    assert_eq!(value(interval("a", "c", Stat::Count)), Some(2.0));
    assert_eq!(value(interval("a", "c", Stat::Span)), Some(9.0));
    assert_eq!(value(interval("a", "nowhere", Stat::Max)), None);
    let name = || "task".to_owned();
    assert_eq!(
        value(Metric::Complete { lifecycle: name() }),
        Some(2.0 / 3.0)
    );
    assert_eq!(value(Metric::Negative { lifecycle: name() }), Some(1.0));
    assert_eq!(value(Metric::Rows { lifecycle: name() }), Some(3.0));
    assert_eq!(
        value(Metric::Rows {
            lifecycle: "other".into()
        }),
        None
    );
}

#[test]
fn nothing_measured_is_no_value_but_a_count_of_zero() {
    let tables = [table(&[])];
    let measured = Measured {
        tables: &tables,
        ..Measured::default()
    };
    assert_eq!(measured.value(&interval("a", "b", Stat::Max)), None);
    assert_eq!(measured.value(&interval("a", "b", Stat::Span)), None);
    assert_eq!(measured.value(&interval("a", "b", Stat::Mean)), None);
    assert_eq!(measured.value(&interval("a", "b", Stat::Count)), Some(0.0));
    let lifecycle = || "task".to_owned();
    let complete = Metric::Complete {
        lifecycle: lifecycle(),
    };
    assert_eq!(measured.value(&complete), None);
    // No interval was measured, so none is known to be in order.
    let negative = Metric::Negative {
        lifecycle: lifecycle(),
    };
    assert_eq!(measured.value(&negative), None);
}

#[test]
fn no_run_ends_well_on_a_record_with_holes() {
    let hole = || Err("disk full".to_owned());
    let failed = || Ending::Failed("waited".into());
    let broken = |text: &str| Ending::Broken(text.into());
    assert_eq!(Ending::Complete.on(Ok(())), Ending::Complete);
    assert_eq!(failed().on(Ok(())), failed());
    assert_eq!(Ending::Complete.on(hole()), broken("disk full"));
    assert_eq!(failed().on(hole()), broken("waited\ndisk full"));
    assert_eq!(broken("first").on(hole()), broken("first"));
}

#[test]
fn what_was_not_measured_has_a_reason() {
    let (empty, halves) = (table(&[]), table(&[[Some(0), None, Some(2)]]));
    let turns = Turns {
        unmatched_starts: 3,
        ..Turns::default()
    };
    let loops = [("tidy".to_owned(), turns)];
    let why = |tables: &[Table], metric: &Metric| {
        let measured = Measured {
            tables,
            loops: &loops,
            ..Measured::default()
        };
        assert_eq!(measured.value(metric), None);
        measured.why(metric)
    };
    let max = interval("a", "b", Stat::Max);
    assert_eq!(
        why(&[empty], &max),
        "no log line showed a point of task together with its key"
    );
    assert_eq!(why(&[halves], &max), "no entity passed both a and b");
    let tidy = |name: &str| Metric::Loop {
        name: name.into(),
        stat: Stat::Max,
    };
    assert_eq!(
        why(&[], &tidy("tidy")),
        "the logs showed 3 starts and 0 ends of tidy that belong to no turn"
    );
    assert_eq!(
        why(&[], &tidy("idle")),
        "no log line showed a start or an end of idle"
    );
}

#[test]
fn samples_of_every_copy_count_alike_and_of_no_other_system() {
    let samples = [
        sample("cell.0", 1.0),
        sample("cell.1", 3.0),
        sample("cellar", 9.0),
        sample("cell.0", 2.0),
    ];
    let measured = Measured {
        samples: &samples,
        copies: BTreeMap::from([("cell".into(), vec!["cell.0".into(), "cell.1".into()])]),
        ..Measured::default()
    };
    let value = |quantity, stat| {
        measured.value(&Metric::Process {
            system: "cell".into(),
            quantity,
            stat,
        })
    };
    assert_eq!(value(Watch::Cpu, Stat::Max), Some(3.0));
    assert_eq!(value(Watch::Cpu, Stat::Mean), Some(2.0));
    assert_eq!(value(Watch::Cpu, Stat::Last), Some(2.0));
    assert_eq!(value(Watch::Rss, Stat::Min), Some(100.0));
    assert_eq!(value(Watch::Threads, Stat::P99), Some(2.0));
}

#[test]
fn turns_and_steps_are_in_seconds() {
    let turns = Turns {
        turns: vec![
            Turn {
                start_ns: 0,
                end_ns: S / 2,
                process: 0,
            },
            Turn {
                start_ns: S,
                end_ns: 2 * S,
                process: 1,
            },
        ],
        ..Turns::default()
    };
    let loops = [("tidy".to_owned(), turns)];
    let steps = [StepLength {
        step: "tasks".to_owned(),
        seconds: 1.5,
        stood_s: 0.0,
    }];
    let measured = Measured {
        loops: &loops,
        steps: &steps,
        ..Measured::default()
    };
    let turn = |stat| {
        measured.value(&Metric::Loop {
            name: "tidy".into(),
            stat,
        })
    };
    assert_eq!((turn(Stat::Max), turn(Stat::Count)), (Some(1.0), Some(2.0)));
    let step = |step: &str| measured.value(&Metric::StepDuration { step: step.into() });
    assert_eq!((step("tasks"), step("skipped")), (Some(1.5), None));
}

proptest! {
    #[test]
    fn statistics_are_in_order(mut values in proptest::collection::vec(-1e9f64..1e9, 1..100)) {
        let mut of = |stat| of_values(&mut values, stat).unwrap();
        let ordered = [Stat::Min, Stat::P50, Stat::P90, Stat::P95, Stat::P99, Stat::P999, Stat::Max]
            .map(&mut of);
        prop_assert!(ordered.is_sorted(), "{:?}", ordered);
        let mean = of(Stat::Mean);
        prop_assert!(ordered[0] - 1e-3 <= mean && mean <= ordered[6] + 1e-3);
    }
}

#[test]
fn a_recovery_that_could_not_be_seen_decides_only_what_it_decides_either_way() {
    let effect = |at_most_s| FaultEffect {
        of: "traffic.good".into(),
        seen: Some(false),
        recovery_s: Some(0.0),
        depth_share: Some(0.0),
        at_most_s,
        ..FaultEffect::default()
    };
    let fault = |at_most_s| FaultRecord {
        step: "s".into(),
        kind: "pause".into(),
        targets: Vec::new(),
        begin_s: 1.0,
        end_s: Some(2.0),
        text: String::new(),
        effects: vec![effect(at_most_s)],
    };
    let comparison = |number, op, quantity| Comparison {
        metric: Metric::Fault {
            step: None,
            of: Affected::Load("traffic".into()),
            number,
        },
        op,
        quantity,
        of: None,
        written: String::new(),
    };
    let undecided_of = |number, at_most_s, op, quantity| {
        let faults = [fault(at_most_s)];
        let measured = Measured {
            faults: &faults,
            ..Measured::default()
        };
        measured.unfinished(&comparison(number, op, quantity), true)
    };
    let undecided =
        |at_most_s, op, quantity| undecided_of(FaultNumber::Recovery, at_most_s, op, quantity);
    // All went well: it took no time.
    assert_eq!(undecided(None, Op::Less, 0.5), None);
    assert_eq!(undecided(None, Op::Equal, 0.0), None);
    // It may have taken up to 0.4 s.
    assert_eq!(undecided(Some(0.4), Op::Less, 0.5), None);
    assert_eq!(undecided(Some(0.4), Op::Greater, 0.5), None);
    let why = undecided(Some(0.4), Op::Less, 0.3).unwrap();
    assert!(why.contains("may have lasted up to 400 ms"), "{why}");
    assert!(undecided(Some(0.4), Op::Equal, 0.0).is_some());
    // Within what a busy machine delays, nothing is as good as no time.
    assert_eq!(undecided(Some(0.1), Op::Equal, 0.0), None);
    assert!(undecided(Some(0.1), Op::Less, 0.05).is_some());
    // While it lasted, all may have failed.
    let depth = |at_most_s, op, quantity| undecided_of(FaultNumber::Depth, at_most_s, op, quantity);
    assert_eq!(depth(None, Op::Less, 0.01), None);
    assert_eq!(depth(None, Op::Equal, 0.0), None);
    let why = depth(Some(0.4), Op::Less, 0.01).unwrap();
    assert!(why.contains("how deep that was is not known"), "{why}");
    assert!(depth(Some(0.4), Op::GreaterOrEqual, 0.95).is_some());
    assert!(depth(Some(0.4), Op::Equal, 0.0).is_some());
    assert_eq!(depth(Some(0.1), Op::Equal, 0.0), None);
    assert_eq!(depth(Some(0.4), Op::LessOrEqual, 1.0), None);
    // All was as before after 3.2 s, and nobody had looked for 0.7 s.
    let seen = FaultEffect {
        seen: Some(true),
        recovery_s: Some(3.2),
        resolution_s: Some(0.7),
        ..effect(None)
    };
    let faults = [FaultRecord {
        effects: vec![seen],
        ..fault(None)
    }];
    let measured = Measured {
        faults: &faults,
        ..Measured::default()
    };
    let late =
        |op, quantity| measured.unfinished(&comparison(FaultNumber::Recovery, op, quantity), true);
    let why = late(Op::Greater, 3.0).unwrap();
    assert!(why.contains("up to 700 ms before that was seen"), "{why}");
    assert!(late(Op::Less, 3.0).is_some());
    assert_eq!(late(Op::Less, 4.0), None);
    assert_eq!(late(Op::Greater, 2.0), None);
    // Of two faults, what was not seen of one takes away no doubt about the other.
    let two = |seen: FaultEffect, op, quantity| {
        let faults = [FaultRecord {
            effects: vec![effect(Some(20.0)), seen],
            ..fault(None)
        }];
        let measured = Measured {
            faults: &faults,
            ..Measured::default()
        };
        measured.unfinished(&comparison(FaultNumber::Recovery, op, quantity), true)
    };
    let never = FaultEffect {
        recovery_s: Some(10.0),
        at_least: true,
        ..effect(None)
    };
    let why = two(never, Op::Less, 30.0).unwrap();
    assert!(why.contains("had not come back"), "{why}");
    // Requests are not seen better by sending more of them: they did not succeed.
    assert!(!why.contains("more often"), "{why}");
    let seldom = FaultEffect {
        recovery_s: Some(3.2),
        resolution_s: Some(0.7),
        ..effect(None)
    };
    let why = two(seldom.clone(), Op::Greater, 3.0).unwrap();
    assert!(why.contains("up to 700 ms before that was seen"), "{why}");
    assert!(why.contains("ask more often"), "{why}");
    // Where that would not help, what does is said instead.
    let slow = FaultEffect {
        remedy: Some("leave room for that".into()),
        ..seldom
    };
    let why = two(slow, Op::Greater, 3.0).unwrap();
    assert!(why.ends_with("was seen; leave room for that"), "{why}");
}
