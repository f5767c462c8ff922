//! The whole transition table of tasks, and random walks through it.

use diego::error::Type;
use diego::models::task::State;
use diego::models::{DesireTaskRequest, Task};
use proptest::prelude::*;

use super::task::{self, Outcome};

const RETRIES: i32 = 3;

fn in_state(state: State) -> Task {
    Task {
        task_guid: "t".into(),
        domain: "d".into(),
        created_at: 1,
        updated_at: 1,
        state: state.into(),
        cell_id: if state == State::Running { "c" } else { "" }.into(),
        first_completed_at: if state >= State::Completed { 1 } else { 0 },
        ..Task::default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Call {
    Start(&'static str),
    Complete(&'static str),
    Fail,
    Reject,
    Resolve,
    Delete,
}

const CALLS: [Call; 8] = [
    Call::Start("c"),
    Call::Start("other"),
    Call::Complete("c"),
    Call::Complete("other"),
    Call::Fail,
    Call::Reject,
    Call::Resolve,
    Call::Delete,
];

/// The record after the call; `None` when it is gone.
fn apply(task: &Task, call: Call, now: i64) -> Result<Option<Task>, Type> {
    let done = match call {
        Call::Start(cell) => {
            task::start(task, cell, now).map(|new| Some(new.unwrap_or_else(|| task.clone())))
        }
        Call::Complete(cell) => task::complete(task, cell, Outcome::default(), now).map(Some),
        Call::Fail => task::fail(task, "why", now).map(Some),
        Call::Reject => task::reject(task, "why", RETRIES, now).map(|done| Some(done.after)),
        Call::Resolve => task::resolve(task, now).map(Some),
        Call::Delete => task::delete(task).map(|()| None),
    };
    done.map_err(|error| error.r#type())
}

#[test]
fn every_call_in_every_state_does_what_the_table_says() {
    use State::{Completed, Pending, Resolving, Running};
    use Type::{InvalidRequest, InvalidStateTransition as Transition, RunningOnDifferentCell};
    type Row = (State, [Result<Option<State>, Type>; 8]);
    #[rustfmt::skip]
    let table: [Row; 4] = [
        (Pending, [Ok(Some(Running)), Ok(Some(Running)), Err(Transition), Err(Transition),
            Ok(Some(Completed)), Ok(Some(Pending)), Err(Transition), Err(Transition)]),
        (Running, [Ok(Some(Running)), Err(Transition), Ok(Some(Completed)),
            Err(RunningOnDifferentCell), Ok(Some(Completed)), Ok(Some(Pending)),
            Err(Transition), Err(Transition)]),
        (Completed, [Err(Transition), Err(Transition), Err(Transition), Err(Transition),
            Err(Transition), Err(InvalidRequest), Ok(Some(Resolving)), Err(Transition)]),
        (Resolving, [Err(Transition), Err(Transition), Err(Transition), Err(Transition),
            Err(Transition), Err(InvalidRequest), Err(Transition), Ok(None)]),
    ];
    for (state, expected) in table {
        for (call, expected) in CALLS.into_iter().zip(expected) {
            let found = apply(&in_state(state), call, 9).map(|task| task.map(|task| task.state()));
            assert_eq!(found, expected, "{call:?} in {state:?}");
        }
    }
}

#[test]
fn texts_name_both_states() {
    let error = task::start(&in_state(State::Completed), "c", 2).unwrap_err();
    assert_eq!(error.message, "Cannot transition from Completed to Running");
    let error = task::complete(&in_state(State::Running), "x", Outcome::default(), 2).unwrap_err();
    assert_eq!(error.message, "Running on cell c not x");
    let error = task::delete(&in_state(State::Completed)).unwrap_err();
    assert_eq!(
        error.message,
        "Cannot transition from Completed to Resolving"
    );
}

#[test]
fn the_rejection_after_the_last_retry_fails_the_task() {
    let mut task = in_state(State::Pending);
    for count in 1..=RETRIES {
        task = task::reject(&task, "full", RETRIES, 5).unwrap().after;
        assert_eq!(
            (task.state(), task.rejection_count),
            (State::Pending, count)
        );
    }
    let last = task::reject(&task, "full", RETRIES, 6).unwrap();
    assert_eq!(last.before.rejection_count, 4);
    assert_eq!(last.after.state(), State::Completed);
    assert_eq!(
        (last.after.failed, last.after.failure_reason.as_str()),
        (true, "full")
    );
    let error = task::reject(&last.after, "full", RETRIES, 7).unwrap_err();
    assert_eq!(
        error.message,
        "Cannot transition from Completed to Completed"
    );
}

proptest! {
    #[test]
    fn any_walk_keeps_the_record_consistent(
        calls in proptest::collection::vec(0..CALLS.len(), 0..40)
    ) {
        let mut task = task::desire(
            DesireTaskRequest { task_guid: "t".into(), domain: "d".into(), ..Default::default() },
            1,
        );
        for (step, call) in calls.into_iter().enumerate() {
            let now = 2 + step as i64;
            match apply(&task, CALLS[call], now) {
                Err(_) => {}
                Ok(None) => {
                    prop_assert_eq!(task.state(), State::Resolving);
                    break;
                }
                Ok(Some(next)) => {
                    prop_assert_eq!(next.created_at, 1);
                    prop_assert!(next == task || next.updated_at == now);
                    task = next;
                }
            }
            let over = matches!(task.state(), State::Completed | State::Resolving);
            prop_assert_eq!(task.first_completed_at != 0, over);
            prop_assert!(!over || task.cell_id.is_empty());
            prop_assert!(task.state() != State::Running || !task.cell_id.is_empty());
            prop_assert!(task.rejection_count <= RETRIES + 1);
        }
    }
}
