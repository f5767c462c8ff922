use proptest::prelude::*;

use super::*;

fn row(id: &str, at_ns: &[Option<i64>]) -> Row {
    Row {
        id: id.into(),
        group: None,
        at_ns: at_ns.to_vec(),
    }
}

fn table(points: &[&str], rows: Vec<Row>) -> Table {
    let points = points.iter().map(|point| (*point).to_owned()).collect();
    Table {
        name: "task".into(),
        points,
        rows,
    }
}

/// Two complete rows, one whose clock is behind, one stuck, one with a gap.
fn example() -> Table {
    table(
        &["desired", "placed", "running"],
        vec![
            row("a", &[Some(0), Some(10), Some(40)]),
            row("b", &[Some(5), Some(25), Some(35)]),
            row("skewed", &[Some(30), Some(20), Some(60)]),
            row("stuck", &[Some(8), None, None]),
            row("gap", &[Some(9), None, Some(50)]),
        ],
    )
}

#[test]
fn says_what_is_complete_and_what_is_missing() {
    let summary = summarise(&example());
    assert_eq!(
        (summary.entities, summary.complete, summary.skewed),
        (5, 3, 1)
    );
    assert_eq!(summary.complete_share, Some(0.6));
    let missing: Vec<u64> = summary.missing.iter().map(|(_, rows)| *rows).collect();
    assert_eq!(missing, [0, 2, 1]);
    assert_eq!(summary.missing[1].0, "placed");
}

#[test]
fn measures_every_phase_and_keeps_negative_durations() {
    let summary = summarise(&example());
    let expected = Durations {
        count: 3,
        negative: 1,
        min_ns: -10,
        p50_ns: 10,
        p90_ns: 20,
        p99_ns: 20,
        max_ns: 20,
        worst: "b".into(),
    };
    assert_eq!(summary.phases[0].durations, Some(expected));
    assert_eq!(
        (
            summary.phases[0].from.as_str(),
            summary.phases[0].to.as_str()
        ),
        ("desired", "placed")
    );
    let total = summary.total.unwrap();
    assert_eq!(
        (total.count, total.p50_ns, total.max_ns, &*total.worst),
        (4, 30, 41, "gap")
    );
    assert_eq!((total.min_ns, total.negative), (30, 0));
}

#[test]
fn no_time_at_all_is_not_negative_and_the_first_of_equals_is_the_worst() {
    let rows = ["x", "y", "z"].map(|id| row(id, &[Some(3), Some(3)]));
    let durations = summarise(&table(&["a", "b"], rows.to_vec())).total.unwrap();
    assert_eq!(
        (durations.negative, durations.max_ns, &*durations.worst),
        (0, 0, "x")
    );
}

#[test]
fn shares_are_over_complete_rows() {
    let summary = summarise(&example());
    // Totals 40, 30, 30; the first phase takes 10, 20, -10 of them.
    let close = |share: Option<f64>, to: f64| share.is_some_and(|share| (share - to).abs() < 1e-9);
    assert!(close(summary.phases[0].share_of_time, 0.2), "{summary:?}");
    assert!(close(summary.phases[1].share_of_time, 0.8), "{summary:?}");
    // cov = (10/3*20/3 + 40/3*-10/3 + -50/3*-10/3)/3 = 100/9; var = 200/9.
    assert!(
        close(summary.phases[0].share_of_variance, 0.5),
        "{summary:?}"
    );
}

#[test]
fn concurrency_counts_who_is_stuck_but_not_who_left_unseen() {
    let table = example();
    // a 0..10, b 5..25, stuck 8..end; skewed and gap are in no known interval.
    assert_eq!(summarise(&table).phases[0].max_concurrency, 3);
    assert_eq!(concurrency(&table, 0, 0, 10, 8), [3, 2, 2, 1, 1, 1, 1, 0]);
    // a 10..40, b 25..35, skewed 20..60.
    assert_eq!(concurrency(&table, 1, 0, 20, 3), [1, 3, 1]);
    assert_eq!(concurrency(&table, 7, 0, 20, 3), [0, 0, 0]);
}

#[test]
fn a_span_joins_any_two_points() {
    let found = span(&example(), "desired", "running").unwrap();
    assert_eq!(found.sorted_ns, [30, 30, 40, 41]);
    assert_eq!((found.negative, found.missing), (0, 1));
    assert_eq!(
        (found.makespan_ns, found.worst.as_deref()),
        (Some(60), Some("gap"))
    );
    let back = span(&example(), "running", "desired").unwrap();
    assert_eq!((back.negative, back.makespan_ns), (4, Some(-5)));
    assert_eq!(
        span(&example(), "desired", "runing")
            .unwrap_err()
            .to_string(),
        "lifecycle `task` has no point `runing`; it has desired, placed, running"
    );
}

#[test]
fn nothing_is_claimed_about_nothing() {
    let summary = summarise(&table(&["a", "b"], vec![]));
    assert_eq!((summary.complete_share, &summary.total), (None, &None));
    let phase = &summary.phases[0];
    assert_eq!((phase.share_of_time, phase.share_of_variance), (None, None));
    assert_eq!((&phase.durations, phase.max_concurrency), (&None, 0));
    assert_eq!(
        span(&table(&["a", "b"], vec![]), "a", "b")
            .unwrap()
            .makespan_ns,
        None
    );
    assert!(summarise(&table(&[], vec![])).phases.is_empty());
    // One row tells how long, but not why some take longer.
    let one = summarise(&table(&["a", "b"], vec![row("x", &[Some(0), Some(7)])]));
    assert_eq!(one.phases[0].share_of_time, Some(1.0));
    assert_eq!(one.phases[0].share_of_variance, None);
}

#[test]
fn a_lifecycle_of_one_point_has_no_phase() {
    let summary = summarise(&table(&["a"], vec![row("x", &[Some(3)])]));
    assert_eq!(
        (summary.complete, summary.phases.len(), summary.total),
        (1, 0, None)
    );
}

#[test]
fn a_broken_table_is_no_reason_to_crash() {
    let ragged = table(
        &["a", "b", "c"],
        vec![
            row("x", &[Some(i64::MIN)]),
            row("y", &[Some(i64::MAX), Some(i64::MIN)]),
        ],
    );
    let summary = summarise(&ragged);
    assert_eq!(
        summary.phases[0].durations.as_ref().map(|d| d.max_ns),
        Some(i64::MIN)
    );
    assert_eq!(concurrency(&ragged, 0, i64::MAX, i64::MAX, 2), [0, 0]);
}

proptest! {
    #[test]
    fn shares_add_up_to_one(
        rows in prop::collection::vec(prop::array::uniform4(prop::option::weighted(0.9, 0i64..1_000_000_000_000)), 2..40)
    ) {
        let rows = rows.iter().map(|at| row("x", at)).collect();
        let summary = summarise(&table(&["a", "b", "c", "d"], rows));
        let sum = |share: fn(&Phase) -> Option<f64>| summary.phases.iter().map(share).sum::<Option<f64>>();
        // With totals that cancel out, the quotient has no digits left to compare.
        if let Some(sum) = sum(|phase| phase.share_of_time).filter(|sum| sum.abs() < 1e6) {
            prop_assert!((sum - 1.0).abs() < 1e-6, "time {}", sum);
        }
        if let Some(sum) = sum(|phase| phase.share_of_variance) {
            prop_assert!((sum - 1.0).abs() < 1e-6, "variance {}", sum);
        }
    }

    #[test]
    fn concurrency_never_exceeds_its_maximum(
        rows in prop::collection::vec(prop::array::uniform3(prop::option::of(0i64..100)), 0..20),
        width in 1i64..30,
    ) {
        let rows = rows.iter().map(|at| row("x", at)).collect();
        let table = table(&["a", "b", "c"], rows);
        for (index, phase) in summarise(&table).phases.iter().enumerate() {
            let found = concurrency(&table, index, 0, width, (101 / width + 1) as usize);
            prop_assert_eq!(found.into_iter().max(), Some(phase.max_concurrency));
        }
    }
}
