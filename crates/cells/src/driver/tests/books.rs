//! What the books say does not depend on the order in which things are told.

use super::super::lrps::{LrpBook, Operation, Report, Shape};
use super::super::tasks::{Report as TaskReport, TaskBook};
use super::*;

fn of(counts: &[(&'static str, u64)]) -> BTreeMap<&'static str, u64> {
    counts.iter().copied().collect()
}

/// One thing that a task book is told.
#[derive(Debug, Clone)]
enum Told {
    Accepted(u64),
    CalledBack(u64, bool),
    Seen(TaskReport),
    Gone(u64),
}

fn tell(book: &mut TaskBook, told: &Told) {
    match *told {
        Told::Accepted(n) => book.accepted(n),
        Told::CalledBack(n, failed) => book.called_back(n, failed),
        Told::Seen(report) => book.seen(report),
        Told::Gone(n) => book.removed(n),
    }
}

/// Everything about one task that goes as far as `stage` (1 to 5).
fn life(n: u64, stage: i32, failed: bool) -> Vec<Told> {
    let mut told = vec![Told::Accepted(n)];
    told.extend((1..=stage.min(4)).map(|state| {
        Told::Seen(TaskReport {
            n,
            state,
            failed: failed && state >= 3,
            updated_at: i64::from(state),
        })
    }));
    if stage >= 4 {
        told.push(Told::CalledBack(n, failed));
    }
    if stage >= 5 {
        told.push(Told::Gone(n));
    }
    told
}

proptest! {
    #[test]
    fn tasks_are_counted_alike_in_any_order(
        lives in proptest::collection::vec((0i32..=5, any::<bool>()), 0..20),
        seed in any::<u64>(),
    ) {
        let mut told: Vec<Told> = (0..)
            .zip(&lives)
            .flat_map(|(n, (stage, failed))| life(n, *stage, *failed))
            .collect();
        let key = |told: &Told| {
            use std::hash::{DefaultHasher, Hash, Hasher};
            let mut hasher = DefaultHasher::new();
            (seed, format!("{told:?}")).hash(&mut hasher);
            hasher.finish()
        };
        told.sort_by_key(key);
        let mut book = TaskBook::default();
        prop_assert_eq!(book.reserve(lives.len() as u64), 0);
        told.iter().for_each(|told| tell(&mut book, told));
        let counts = book.counts();
        let counts = of(&counts);
        let are = |holds: &dyn Fn(i32, bool) -> bool| {
            lives.iter().filter(|(stage, failed)| holds(*stage, *failed)).count() as u64
        };
        prop_assert_eq!(counts["desired"], lives.len() as u64);
        prop_assert_eq!(counts["pending"], are(&|stage, _| stage == 1));
        prop_assert_eq!(counts["running"], are(&|stage, _| stage == 2));
        prop_assert_eq!(counts["completed"], are(&|stage, _| stage >= 3));
        prop_assert_eq!(counts["failed"], are(&|stage, failed| stage >= 3 && failed));
        prop_assert_eq!(counts["resolved"], are(&|stage, _| stage == 5));
        prop_assert_eq!(counts["alive"], are(&|stage, _| stage < 5));
    }

    #[test]
    fn what_is_desired_becomes_what_was_asked(
        wishes in proptest::collection::vec((0u64..30, proptest::option::of(any::<bool>())), 1..10),
    ) {
        let mut book = LrpBook::default();
        for (count, one) in wishes {
            let shape = one.map(|one| if one { Shape::One } else { Shape::Many });
            let operations = book.operations(count, shape).unwrap();
            operations.into_iter().for_each(|operation| book.accepted(operation));
            prop_assert_eq!(of(&book.counts())["desired"], count);
            prop_assert_eq!(book.operations(count, shape).unwrap(), []);
        }
    }

    #[test]
    fn instances_are_counted_alike_in_any_order(
        records in proptest::collection::vec((0u32..4, any::<bool>()), 0..12),
        seed in any::<u64>(),
    ) {
        const STATES: [&str; 4] = ["UNCLAIMED", "CLAIMED", "RUNNING", "CRASHED"];
        let report = |n: usize, change: u32, state: &str| Report {
            lrp: 1,
            index: n as i32,
            state: state.to_owned(),
            epoch: format!("e{n}"),
            change,
        };
        let mut told = Vec::new();
        for (n, (last, removed)) in records.iter().enumerate() {
            told.extend((0..=*last).map(|change| report(n, change, STATES[change as usize])));
            if *removed {
                told.push(report(n, *last, ""));
            }
        }
        told.sort_by_key(|told| {
            use std::hash::{DefaultHasher, Hash, Hasher};
            let mut hasher = DefaultHasher::new();
            (seed, &told.epoch, told.change, &told.state).hash(&mut hasher);
            hasher.finish()
        });
        let mut book = LrpBook::default();
        told.into_iter().for_each(|told| book.seen(told));
        let counts = book.counts();
        let counts = of(&counts);
        for (state, name) in (0..).zip(["unclaimed", "claimed", "running", "crashed"]) {
            let expected = records.iter().filter(|record| **record == (state, false)).count();
            prop_assert_eq!(counts[name], expected as u64, "{}", name);
        }
    }
}

fn seen(book: &mut LrpBook, epoch: &str, change: u32, state: &str) {
    book.seen(Report {
        lrp: 0,
        index: 0,
        state: state.into(),
        epoch: epoch.into(),
        change,
    });
}

#[test]
fn a_rejected_task_is_pending_again() {
    let mut book = TaskBook::default();
    book.reserve(1);
    for (state, updated_at) in [(1, 10), (2, 20), (1, 30), (2, 20)] {
        book.seen(TaskReport {
            n: 0,
            state,
            failed: false,
            updated_at,
        });
    }
    assert_eq!(of(&book.counts())["pending"], 1);
    // Numbers that were never asked for belong to someone else.
    book.seen(TaskReport {
        n: 99,
        state: 1,
        failed: false,
        updated_at: 1,
    });
    assert_eq!(of(&book.counts())["pending"], 1);
}

#[test]
fn an_unclaimed_instance_is_told_as_created_and_removed_in_any_order() {
    for order in [[0, 1], [1, 0]] {
        let mut book = LrpBook::default();
        seen(&mut book, "e", 2, "RUNNING");
        for told in order {
            match told {
                0 => seen(&mut book, "e", 3, "UNCLAIMED"),
                _ => seen(&mut book, "e", 2, ""),
            }
        }
        let counts = book.counts();
        assert_eq!(
            (of(&counts)["unclaimed"], of(&counts)["alive"]),
            (1, 1),
            "{order:?}"
        );
    }
}

#[test]
fn an_instance_with_several_records_counts_once_with_the_best() {
    let mut book = LrpBook::default();
    seen(&mut book, "old", 2, "RUNNING");
    seen(&mut book, "new", 0, "UNCLAIMED");
    let counts = book.counts();
    let counts = of(&counts);
    assert_eq!(
        (counts["running"], counts["unclaimed"], counts["alive"]),
        (1, 0, 1)
    );
    seen(&mut book, "old", 2, "");
    assert_eq!(of(&book.counts())["unclaimed"], 1);
}

#[test]
fn a_list_corrects_what_events_did_not_tell() {
    let mut book = LrpBook::default();
    seen(&mut book, "lost", 1, "RUNNING");
    seen(&mut book, "kept", 1, "CLAIMED");
    let expected = book.expected();
    // Came while the list was on its way: it is newer than the list.
    book.seen(Report {
        lrp: 0,
        index: 5,
        state: "RUNNING".into(),
        epoch: "late".into(),
        change: 0,
    });
    let kept = Report {
        lrp: 0,
        index: 0,
        state: "RUNNING".into(),
        epoch: "kept".into(),
        change: 2,
    };
    book.reconcile(&expected, vec![kept]);
    let counts = book.counts();
    assert_eq!((of(&counts)["running"], of(&counts)["alive"]), (2, 2));
    book.set_blind(true);
    assert_eq!(book.counts(), [("desired", 0)]);
}

#[test]
fn a_make_without_instances_removes_both_shapes() {
    let mut book = LrpBook::default();
    book.accepted(Operation::Desire {
        lrp: 0,
        instances: 5,
    });
    book.accepted(Operation::Desire {
        lrp: 3,
        instances: 1,
    });
    let operations = book.operations(0, None).unwrap();
    assert_eq!(
        operations,
        [Operation::Remove { lrp: 0 }, Operation::Remove { lrp: 3 }]
    );
}
