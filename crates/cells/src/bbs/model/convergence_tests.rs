//! The rules of convergence, one case each.

use diego::models::task::State as TaskState;
use proptest::prelude::*;

use super::convergence::*;
use super::slot::Phase;

const AGES: ConvergenceAges = ConvergenceAges {
    again: 30,
    pending: 1800,
    completed: 120,
    began: 0,
};
const NOW: i64 = 10_000;

fn on(phase: Phase, cell: Cell) -> Instance {
    Instance {
        phase,
        cell,
        since: NOW,
        crash_count: 0,
        drifted: false,
    }
}

fn wanted(ordinary: Option<Instance>) -> Index {
    Index {
        number: 0,
        desired: Some(1),
        ordinary,
        ..Index::default()
    }
}

fn orphan(ordinary: Option<Instance>) -> Index {
    Index {
        desired: None,
        fresh: true,
        ..wanted(ordinary)
    }
}

fn actions(of: Index) -> Vec<Action> {
    index(&of, &AGES, NOW).actions
}

#[test]
fn what_is_as_desired_needs_nothing() {
    for phase in [Phase::Claimed, Phase::Running] {
        for cell in [Cell::Present, Cell::Unknown] {
            let verdict = index(&wanted(Some(on(phase, cell))), &AGES, NOW);
            assert_eq!(verdict, Verdict::default(), "{phase:?} on {cell:?}");
        }
    }
}

#[test]
fn a_missing_index_is_created_and_one_beyond_the_count_is_not() {
    assert_eq!(actions(wanted(None)), [Action::Create]);
    let beyond = Index {
        number: 1,
        ..wanted(None)
    };
    assert_eq!(actions(beyond), []);
}

#[test]
fn a_record_without_a_cell_is_placed_again_at_its_age() {
    let unclaimed = |age| {
        let row = Instance {
            since: NOW - age,
            ..on(Phase::Unclaimed, Cell::Lost)
        };
        index(&wanted(Some(row)), &AGES, NOW)
    };
    assert_eq!(unclaimed(29).actions, []);
    assert_eq!(unclaimed(29).due, Some(NOW + 1));
    assert_eq!(unclaimed(30).actions, [Action::Place]);
}

#[test]
fn an_instance_on_a_lost_cell_becomes_suspect_and_its_replacement_is_unclaimed() {
    let lost = wanted(Some(on(Phase::Running, Cell::Lost)));
    assert_eq!(actions(lost), [Action::Suspect]);
    let both = Index {
        suspect: Some(on(Phase::Running, Cell::Lost)),
        ..wanted(Some(on(Phase::Claimed, Cell::Lost)))
    };
    assert_eq!(actions(both), [Action::Unclaim]);
    let unknown = wanted(Some(on(Phase::Running, Cell::Unknown)));
    assert_eq!(actions(unknown), []);
}

#[test]
fn a_suspect_is_promoted_when_its_cell_is_back_unless_it_has_a_successor() {
    let beside = |phase, cell| Index {
        suspect: Some(on(Phase::Running, cell)),
        ..wanted(Some(on(phase, Cell::Present)))
    };
    assert_eq!(
        actions(beside(Phase::Claimed, Cell::Present)),
        [Action::Promote]
    );
    assert_eq!(actions(beside(Phase::Claimed, Cell::Lost)), []);
    assert_eq!(actions(beside(Phase::Claimed, Cell::Unknown)), []);
    assert_eq!(
        actions(beside(Phase::Running, Cell::Present)),
        [Action::RemoveSuspect]
    );
}

#[test]
fn an_evacuating_record_goes_with_its_cell_only() {
    let with = |cell| Index {
        evacuating: Some(cell),
        ..wanted(Some(on(Phase::Running, Cell::Present)))
    };
    assert_eq!(actions(with(Cell::Lost)), [Action::RemoveEvacuating]);
    assert_eq!(actions(with(Cell::Present)), []);
    assert_eq!(actions(with(Cell::Unknown)), []);
}

#[test]
fn what_nobody_desires_ends_only_in_a_fresh_domain() {
    let stale = Index {
        fresh: false,
        ..orphan(Some(on(Phase::Running, Cell::Present)))
    };
    let verdict = index(&stale, &AGES, NOW);
    assert_eq!((verdict.actions, verdict.once_fresh), (vec![], true));
    for (phase, cell, expected) in [
        (Phase::Running, Cell::Present, Action::Stop),
        (Phase::Claimed, Cell::Unknown, Action::Stop),
        (Phase::Running, Cell::Lost, Action::Remove),
        (Phase::Unclaimed, Cell::Lost, Action::Remove),
        (Phase::Crashed, Cell::Lost, Action::Remove),
    ] {
        assert_eq!(actions(orphan(Some(on(phase, cell)))), [expected]);
    }
    let suspect = Index {
        suspect: Some(on(Phase::Running, Cell::Lost)),
        ..orphan(None)
    };
    assert_eq!(actions(suspect), [Action::RemoveSuspect]);
}

#[test]
fn what_somebody_asked_to_end_is_left_to_that() {
    let ending = Index {
        stop_from: Some(0),
        fresh: false,
        ..orphan(Some(on(Phase::Running, Cell::Lost)))
    };
    assert_eq!(actions(ending), []);
}

#[test]
fn a_crashed_instance_waits_as_long_as_it_has_crashed_often() {
    const SECOND: i64 = 1_000_000_000;
    let waits = [30, 60, 120, 240, 480, 960, 960];
    for (crashes, seconds) in (3..).zip(waits) {
        assert_eq!(
            backoff(crashes),
            Some(seconds * SECOND),
            "{crashes} crashes"
        );
    }
    assert_eq!((backoff(199), backoff(200)), (Some(960 * SECOND), None));
    let crashed = |crash_count, since| Instance {
        since,
        crash_count,
        ..on(Phase::Crashed, Cell::Lost)
    };
    let now = 100 * SECOND;
    let at = |row| index(&wanted(Some(row)), &AGES, now);
    assert_eq!(at(crashed(3, 70 * SECOND)).actions, [Action::Restart]);
    assert_eq!(at(crashed(3, 70 * SECOND + 1)).due, Some(100 * SECOND + 1));
    assert_eq!(at(crashed(200, 0)), Verdict::default());
}

#[test]
fn only_an_instance_that_runs_on_a_present_cell_is_told_of_a_difference() {
    for (phase, cell, expected) in [
        (Phase::Running, Cell::Present, &[Action::Update][..]),
        (Phase::Claimed, Cell::Present, &[]),
        (Phase::Running, Cell::Unknown, &[]),
    ] {
        let row = Instance {
            drifted: true,
            ..on(phase, cell)
        };
        assert_eq!(actions(wanted(Some(row))), expected);
    }
}

#[test]
fn tasks_go_on_or_fail_or_are_forgotten_at_their_ages() {
    let of = |state, age: i64| Task {
        state,
        cell: Cell::Present,
        created_at: NOW - age,
        updated_at: NOW - age,
        completed_at: NOW - age,
        called_back: true,
    };
    for (state, age, expected) in [
        (TaskState::Pending, 14, &[][..]),
        (TaskState::Pending, 15, &[Action::PlaceTask]),
        (TaskState::Pending, 1800, &[Action::FailUnstarted]),
        (TaskState::Running, 9000, &[]),
        (TaskState::Resolving, 29, &[]),
        (TaskState::Resolving, 30, &[Action::Unresolve]),
        (TaskState::Resolving, 119, &[Action::Unresolve]),
        (
            TaskState::Resolving,
            120,
            &[Action::Unresolve, Action::Forget],
        ),
        (TaskState::Completed, 29, &[]),
        (TaskState::Completed, 30, &[Action::CallBack]),
        (TaskState::Completed, 120, &[Action::Forget]),
    ] {
        let verdict = task(&of(state, age), &AGES, NOW);
        assert_eq!(verdict.actions, expected, "{state:?} after {age}");
    }
    let lost = Task {
        cell: Cell::Lost,
        ..of(TaskState::Running, 0)
    };
    assert_eq!(task(&lost, &AGES, NOW).actions, [Action::FailLost]);
    let claimed = Task {
        updated_at: NOW - 10,
        ..of(TaskState::Resolving, 9000)
    };
    let verdict = task(&claimed, &AGES, NOW);
    assert_eq!(
        (verdict.actions.as_slice(), verdict.due),
        (&[][..], Some(NOW + 20))
    );
    let restarted = ConvergenceAges {
        began: NOW - 100,
        ..AGES
    };
    let verdict = task(&of(TaskState::Completed, 9000), &restarted, NOW);
    assert_eq!(
        verdict.actions,
        [Action::CallBack],
        "nobody could take it before"
    );
    assert_eq!(verdict.due, Some(NOW + 20));
    let quiet = Task {
        called_back: false,
        ..of(TaskState::Completed, 119)
    };
    assert_eq!(task(&quiet, &AGES, NOW).due, Some(NOW + 1));
}

fn phase() -> impl Strategy<Value = Phase> {
    prop::sample::select(Phase::ALL.map(|(phase, _)| phase).to_vec())
}

fn instance() -> impl Strategy<Value = Option<Instance>> {
    let cell = prop::sample::select(vec![Cell::Present, Cell::Lost, Cell::Unknown]);
    let instance = (phase(), cell, 0..200i64, 0..6i32, any::<bool>());
    prop::option::of(
        instance.prop_map(|(phase, cell, since, crash_count, drifted)| Instance {
            phase,
            cell,
            since,
            crash_count,
            drifted,
        }),
    )
}

proptest! {
    /// Whoever looks again at the time that a verdict names, and not before, misses nothing.
    #[test]
    fn a_verdict_stays_as_it_is_until_it_is_due(
        ordinary in instance(),
        suspect in instance(),
        desired in prop::option::of(0..2i32),
        stop_from in prop::option::of(0..2i32),
        fresh in any::<bool>(),
        now in 0..300i64,
        later in 0..300i64,
    ) {
        let of = Index { number: 0, desired, stop_from, fresh, ordinary, suspect, evacuating: None };
        let (first, second) = (index(&of, &AGES, now), index(&of, &AGES, now + later));
        if first.due.is_none_or(|due| now + later < due) {
            prop_assert_eq!(first, second);
        } else if first.due == Some(now + later) {
            prop_assert_ne!(first.actions, second.actions);
        }
    }
}
