//! What expressions mean.

use std::collections::BTreeMap;

use crate::support::{checked, plan_of};
use lab_experiment::expr::{Dimension, Expr, Judgement, Metric, Metrics, Stat};
use lab_experiment::plan::Watch;
use proptest::prelude::*;

const FILE: &str = r#"
[[system]]
name = "bbs"
run = "x"
[[lifecycle]]
name = "task"
key = ["id"]
points = [["desired", "x"], ["resolved", "y"]]
[[loop]]
name = "sync"
start = "a"
end = "b"
[[step]]
name = "it's a step"
hold = "1s"
"#;

fn file(that: &str) -> String {
    format!("lab = 1\nname = \"t\"\n[[expect]]\nthat = '''{that}'''\n{FILE}")
}

fn expr(that: &str) -> Expr {
    plan_of(&file(that)).expects.remove(0).that
}

/// Values by the name of their metric.
struct Values(BTreeMap<&'static str, f64>);

impl Metrics for Values {
    fn value(&self, metric: &Metric) -> Option<f64> {
        self.0.get(metric.to_string().as_str()).copied()
    }
}

fn judge(that: &str, values: &[(&'static str, f64)]) -> Judgement {
    expr(that).eval(&Values(values.iter().copied().collect()))
}

#[test]
fn what_never_came_is_longer_than_any_bound() {
    let that = "task.desired..resolved p99 < 5s";
    let never = [("task.desired..resolved p99", f64::INFINITY)];
    let judgement = judge(that, &never);
    assert_eq!(judgement.holds, Some(false));
    assert_eq!(judgement.measured, "no answer");
    let share = [("task.complete", f64::INFINITY)];
    assert_eq!(judge("task.complete > 5%", &share).holds, None);
}

#[test]
fn a_single_value_stands_alone() {
    let judgement = judge(
        "task.desired..resolved p99 < 5s",
        &[("task.desired..resolved p99", 1.2749)],
    );
    assert_eq!(
        judgement,
        Judgement {
            holds: Some(true),
            measured: "1.27 s".to_owned(),
            missing: Vec::new()
        }
    );
    let measured = |that, name, value| judge(that, &[(name, value)]).measured;
    assert_eq!(
        measured("task.complete == 100%", "task.complete", 1.0),
        "100 %"
    );
    assert_eq!(
        measured("task.entities == 4_000", "task.entities", 4000.0),
        "4000"
    );
    let rss = 212.3 * 1024.0 * 1024.0;
    assert_eq!(
        measured("system.bbs.rss max < 500MiB", "system.bbs.rss max", rss),
        "212 MiB"
    );
    assert_eq!(
        measured(
            "system.bbs.cpu mean < 0.5 cores",
            "system.bbs.cpu mean",
            0.31
        ),
        "0.31 cores"
    );
    let name = r#"duration("it's a step")"#;
    assert_eq!(
        measured(r#"duration("it's a step") < 2 s"#, name, 1.5),
        "1.5 s"
    );
}

#[test]
fn several_values_follow_their_names() {
    let judgement = judge(
        "task.complete == 100% and task.negative == 0 and task.complete > 50%",
        &[("task.complete", 0.9), ("task.negative", 3.0)],
    );
    assert_eq!(judgement.holds, Some(false));
    assert_eq!(judgement.measured, "task.complete 90 %, task.negative 3");
}

#[test]
fn operators() {
    for (op, holds) in [
        ("==", [false, true, false]),
        ("!=", [true, false, true]),
        ("<", [true, false, false]),
        ("<=", [true, true, false]),
        (">", [false, false, true]),
        (">=", [false, true, true]),
    ] {
        let found = [4.0, 5.0, 6.0].map(|value| {
            judge(
                &format!("task.negative {op} 5"),
                &[("task.negative", value)],
            )
            .holds
            .unwrap()
        });
        assert_eq!(found, holds, "{op}");
    }
}

/// What grew may be several times as large, and what shrank, or ended before it began, is below zero.
#[test]
fn growth_has_no_bounds_and_what_may_be_negative_a_sign() {
    let growth = "'it's a step': growth(system.bbs.rss)";
    for (that, name, value, holds) in [
        (
            "\"it's a step\": growth(system.bbs.rss) < 250%",
            growth,
            2.4,
            true,
        ),
        (
            "\"it's a step\": growth(system.bbs.rss) < 250%",
            growth,
            2.6,
            false,
        ),
        (
            "\"it's a step\": growth(system.bbs.rss) > -5%",
            growth,
            -0.04,
            true,
        ),
        (
            "\"it's a step\": growth(system.bbs.rss) > -5%",
            growth,
            -0.06,
            false,
        ),
        (
            "task.desired..resolved p50 > -3s",
            "task.desired..resolved p50",
            -2.0,
            true,
        ),
        (
            "task.desired..resolved p50 >= -3s",
            "task.desired..resolved p50",
            -4.0,
            false,
        ),
    ] {
        let expr = expr(that);
        let name: &'static str = match expr.metrics().next() {
            Some(metric) => metric.to_string().leak(),
            None => name,
        };
        let found = expr.eval(&Values([(name, value)].into()));
        assert_eq!(found.holds, Some(holds), "{that}: {found:?}");
    }
}

#[test]
fn a_value_is_shown_on_the_side_where_it_was_judged() {
    let shown = |that, value| judge(that, &[("task.desired..resolved p99", value)]).measured;
    assert_eq!(
        shown("task.desired..resolved p99 <= 30s", 30.004),
        "30.004 s"
    );
    assert_eq!(shown("task.desired..resolved p99 < 30s", 30.004), "30 s");
    assert_eq!(shown("task.desired..resolved p99 < 20s", 30.004), "30 s");
    let judgement = judge(
        "task.complete >= 99.9%",
        &[("task.complete", 3999.0 / 4000.0)],
    );
    assert_eq!(
        (judgement.holds, judgement.measured.as_str()),
        (Some(true), "99.98 %")
    );
    let judgement = judge("task.complete >= 99.9%", &[("task.complete", 0.999)]);
    assert_eq!(
        (judgement.holds, judgement.measured.as_str()),
        (Some(true), "99.9 %")
    );
}

#[test]
fn a_missing_value_decides_nothing() {
    let (c, n) = (("task.complete", 1.0), ("task.negative", 5.0));
    let holds = |that, values: &[(&'static str, f64)]| judge(that, values).holds;
    let both = "task.complete == 100% and task.negative == 0";
    assert_eq!(holds(both, &[]), None);
    assert_eq!(holds(both, &[c]), None);
    assert_eq!(holds(both, &[n]), Some(false), "whatever the other one is");
    let one = "task.complete == 100% or task.negative == 0";
    assert_eq!(holds(one, &[c]), Some(true), "whatever the other one is");
    assert_eq!(holds(one, &[n]), None);

    let judgement = judge(both, &[c]);
    assert_eq!(
        judgement.measured, "task.complete 100 %",
        "named, as it is not all that was asked"
    );
    assert_eq!(judgement.missing, ["task.negative"]);
    assert_eq!(
        holds("task.negative < 5", &[("task.negative", f64::NAN)]),
        None
    );
}

#[test]
fn and_binds_tighter_than_or() {
    let values = [
        ("task.complete", 1.0),
        ("task.negative", 5.0),
        ("task.entities", 1.0),
    ];
    let that = "task.complete == 100% or task.negative == 0 and task.entities == 0";
    assert_eq!(judge(that, &values).holds, Some(true));
    let that = "(task.complete == 100% or task.negative == 0) and task.entities == 0";
    assert_eq!(judge(that, &values).holds, Some(false));
}

#[test]
fn metrics_are_told_with_their_units() {
    let expr =
        expr("task.desired..resolved count > 1 or loop.sync p95 < 1s or system.bbs.fds last < 9");
    let metrics: Vec<&Metric> = expr.metrics().collect();
    let interval = Metric::Interval {
        lifecycle: "task".to_owned(),
        from: "desired".to_owned(),
        to: "resolved".to_owned(),
        stat: Stat::Count,
    };
    let fds = Metric::Process {
        system: "bbs".to_owned(),
        quantity: Watch::Fds,
        stat: Stat::Last,
    };
    assert_eq!(metrics[0], &interval);
    assert_eq!(metrics[2], &fds);
    let units: Vec<Dimension> = metrics.iter().map(|metric| metric.dimension()).collect();
    assert_eq!(
        units,
        [Dimension::Count, Dimension::Seconds, Dimension::Count]
    );
    let Metric::Loop { stat, .. } = metrics[1] else {
        panic!()
    };
    assert_eq!(stat.quantile(), Some(0.95));
    assert_eq!(Stat::Span.quantile(), None);
}

#[test]
fn a_metric_is_compared_with_a_share_of_another() {
    let that = "loop.sync p95 < 110% of loop.sync p50";
    let judged = |p95: f64| judge(that, &[("loop.sync p50", 1.0), ("loop.sync p95", p95)]);
    assert_eq!(judged(1.2).holds, Some(false));
    let close = judged(1.0996);
    assert_eq!(close.holds, Some(true));
    assert_eq!(
        close.measured, "loop.sync p95 1.0996 s, loop.sync p50 1 s",
        "with so many digits that it reads as it was judged"
    );
    let lacking = judge(that, &[("loop.sync p95", 1.0)]);
    assert_eq!(
        (lacking.holds, lacking.missing),
        (None, vec!["loop.sync p50".to_owned()])
    );
    for (wrong, told) in [
        (
            "loop.sync p95 < 2s of loop.sync p50",
            "a share such as 110%",
        ),
        ("loop.sync p95 < 90% of task.complete", "different units"),
        ("loop.sync p95 < 90% of loop.snyc p50", "loop.sync"),
    ] {
        let rendered = checked(&file(wrong), &[]).unwrap_err();
        assert!(rendered.contains(told), "{rendered}");
    }
}

#[test]
fn parentheses_have_a_deepest_nesting() {
    let nested = |depth: usize| {
        file(&format!(
            "{}task.negative == 0{}",
            "(".repeat(depth),
            ")".repeat(depth)
        ))
    };
    assert!(checked(&nested(32), &[]).is_ok());
    let rendered = checked(&nested(33), &[]).unwrap_err();
    assert!(
        rendered.contains("parentheses nest at most 32 deep"),
        "{rendered}"
    );
    assert!(checked(&nested(2000), &[]).is_err());
}

proptest! {
    /// The logic agrees with the one of Rust when every value is known.
    #[test]
    fn known_values_give_two_valued_logic(
        parts in prop::collection::vec((0_u8..9, 0_u8..9, any::<bool>()), 1..8),
    ) {
        let mut text = String::new();
        let mut expected = false;
        let mut run = true;
        for (at, (limit, _, and)) in parts.iter().enumerate() {
            let holds = 4 < *limit;
            if at > 0 {
                text += if *and { " and " } else { " or " };
            }
            if at > 0 && !and {
                expected |= run;
                run = true;
            }
            run &= holds;
            text += &format!("task.negative < {limit}");
        }
        expected |= run;
        prop_assert_eq!(judge(&text, &[("task.negative", 4.0)]).holds, Some(expected));
    }

    /// What is not measured never decides: filling it in never turns a decision around.
    #[test]
    fn a_decision_stays_when_more_is_known(value in 0_u8..4, limit in 0_u8..4, or in any::<bool>()) {
        let joint = if or { "or" } else { "and" };
        let text = format!("task.negative < {limit} {joint} task.entities < {limit}");
        let less = judge(&text, &[("task.negative", f64::from(value))]);
        for other in 0..4 {
            let values = [("task.negative", f64::from(value)), ("task.entities", f64::from(other))];
            let more = judge(&text, &values);
            prop_assert!(more.holds.is_some());
            if less.holds.is_some() {
                prop_assert_eq!(less.holds, more.holds);
            }
        }
    }

    #[test]
    fn no_expression_breaks_the_parser(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "task", ".", "..", "complete", "desired", "p99", "and", "or", "(", ")", "<", "==",
                "30s", "100%", "5", "'", "\"", "loop", "system.bbs.rss max", "duration", "é", "{", "}",
                "-", "=",
            ]),
            0..16,
        ),
        joint in " ?",
    ) {
        let _ = checked(&file(&words.join(&joint)), &[]);
    }

    #[test]
    fn no_text_breaks_the_parser(text in "[^']{0,60}") {
        let _ = checked(&file(&text), &[]);
    }
}
