//! Runs of many nodes, in whatever order their reports come.

use proptest::prelude::*;

use super::{Bounds, NotTaken, OverRun, Runs};
use crate::reports::moment::Moment;
use crate::reports::run_info::RunInfo;
use crate::reports::runlog::{Limits, Report, RunLog};

const BOUNDS: Bounds = Bounds {
    runs: 3,
    run_bytes: 2_000,
    bytes: 4_000,
    settle: 20,
    silence: 300,
};

fn moment(second: u64) -> Moment {
    let text = format!("2026-01-01T00:{:02}:{:02}Z", second / 60 % 60, second % 60);
    Moment::from_rfc3339(&text).unwrap()
}

/// A report of a node's run: its start, its end, or a component.
fn report<'a>(node: &'a str, run: u64, component: &'a str) -> Report<'a> {
    let marker = ["start", "end"].contains(&component);
    let (rule, directive, kind) = match marker {
        true => ("rudder", "run", "control"),
        false => ("r", "d", "result_success"),
    };
    Report {
        start_datetime: moment(run),
        rule_id: rule,
        directive_id: directive,
        component: component.into(),
        key_value: "config".into(),
        event_type: kind,
        msg: "said".into(),
        policy: "T",
        node_id: node,
        execution_datetime: moment(run),
        report_id: "0",
    }
}

fn take(runs: &mut Runs, node: &str, run: u64, components: &[&str], now: u64) {
    for component in components {
        runs.take(&report(node, run, component), now).unwrap();
    }
}

fn log<'a>(over: &'a OverRun) -> RunLog<'a> {
    let info = RunInfo {
        node_id: over.node.clone(),
        timestamp: moment(0),
    };
    RunLog::parse(info, &over.text, &Limits::default()).unwrap()
}

#[test]
fn a_run_is_over_when_its_end_has_settled() {
    let mut runs = Runs::new(BOUNDS);
    take(&mut runs, "a", 1, &["start", "x", "end"], 100);
    assert_eq!(runs.over(119, 9), []);
    // It was overtaken by the end.
    take(&mut runs, "a", 1, &["y"], 119);
    let over = runs.over(120, 9);
    assert_eq!(over.len(), 1);
    assert_eq!((&*over[0].node, over[0].reports), ("a", 4));
    let log = log(&over[0]);
    assert!(log.is_run());
    assert_eq!(log.config_id.as_deref(), Some("config"));
    assert_eq!(log.start(), moment(1));
    let components: Vec<_> = log
        .reports
        .iter()
        .map(|report| &*report.component)
        .collect();
    assert_eq!(components, ["start", "x", "end", "y"]);
    assert_eq!(runs.over(u64::MAX, 9), []);
}

#[test]
fn a_run_without_an_end_is_over_after_silence() {
    let mut runs = Runs::new(BOUNDS);
    take(&mut runs, "a", 1, &["start", "x"], 0);
    take(&mut runs, "a", 1, &["y"], 200);
    assert_eq!(runs.over(499, 9), []);
    assert_eq!(runs.over(500, 9)[0].reports, 3);
    // Without a start it informs and counts in no compliance.
    take(&mut runs, "a", 2, &["x", "end"], 600);
    let over = runs.over(700, 9);
    assert!(!log(&over[0]).is_run());
}

#[test]
fn nodes_and_runs_are_kept_apart() {
    let mut runs = Runs::new(BOUNDS);
    take(&mut runs, "a", 1, &["start"], 0);
    take(&mut runs, "b", 1, &["start", "x", "y"], 0);
    take(&mut runs, "a", 2, &["start", "x", "end"], 0);
    let over = runs.over(50, 9);
    assert_eq!(over.len(), 1);
    assert_eq!(log(&over[0]).start(), moment(2));
    assert_eq!(runs.all(1).len(), 1);
    let left = runs.all(9);
    assert_eq!((left.len(), &*left[0].node, left[0].reports), (1, "b", 3));
    assert_eq!(runs.bytes, 0);
}

#[test]
fn there_is_a_bound_to_everything() {
    let mut runs = Runs::new(BOUNDS);
    for node in ["a", "b", "c"] {
        take(&mut runs, node, 1, &["start"], 0);
    }
    let taken = runs.take(&report("d", 1, "start"), 0);
    assert_eq!(taken, Err(NotTaken::NoRoom));
    take(&mut runs, "a", 1, &["x"], 0);
    // Of one run, then of all.
    let fill = |runs: &mut Runs, node: &str| {
        let more = (0..100).take_while(|_| runs.take(&report(node, 1, "x"), 0).is_ok());
        more.count()
    };
    let (a, b) = (fill(&mut runs, "a"), fill(&mut runs, "b"));
    assert!(a > b && b > 0, "{a} {b}");
    assert!(runs.bytes <= BOUNDS.bytes);
    let mut broken = report("a", 1, "x");
    broken.component = "a@@b".into();
    assert_eq!(runs.take(&broken, 0), Err(NotTaken::Broken));
}

proptest! {
    /// Each report is in one run or refused, and those of a run stand in the order in which they came.
    #[test]
    fn nothing_is_lost_or_twice(
        steps in prop::collection::vec((0_usize..4, 0_u64..3, 0_usize..5, 0_u64..40), 1..200),
    ) {
        const NODES: [&str; 4] = ["a", "b", "c", "d"];
        const COMPONENTS: [&str; 5] = ["start", "end", "x", "y", "z"];
        let mut runs = Runs::new(BOUNDS);
        let (mut now, mut taken) = (0, Vec::new());
        let mut over = Vec::new();
        for (node, run, component, pause) in steps {
            now += pause;
            over.extend(runs.over(now, 2));
            let one = (NODES[node], run, COMPONENTS[component]);
            if runs.take(&report(one.0, one.1, one.2), now).is_ok() {
                taken.push(one);
            }
            let bytes: usize = runs.open.values().map(|open| open.text.len()).sum();
            prop_assert_eq!(runs.bytes, bytes);
            prop_assert!(bytes <= BOUNDS.bytes && runs.open.len() <= BOUNDS.runs);
        }
        over.extend(runs.all(usize::MAX));
        let mut found: Vec<(String, Moment, Vec<String>)> = Vec::new();
        for one in &over {
            let log = log(one);
            prop_assert_eq!(log.broken, 0);
            prop_assert_eq!(u64::try_from(log.reports.len()).unwrap(), one.reports);
            let components = log.reports.iter().map(|report| report.component.to_string());
            found.push((one.node.clone(), log.start(), components.collect()));
        }
        for node in NODES {
            for run in 0..3 {
                let mine = found.iter().filter(|one| one.0 == node && one.1 == moment(run));
                let mine: Vec<_> = mine.flat_map(|one| one.2.iter().map(String::as_str)).collect();
                let expected = taken.iter().filter(|one| one.0 == node && one.1 == run);
                let expected: Vec<_> = expected.map(|one| one.2).collect();
                prop_assert_eq!(mine, expected);
            }
        }
    }
}
