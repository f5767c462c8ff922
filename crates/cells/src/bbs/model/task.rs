//! Tasks: Pending, Running, Completed, Resolving, gone.

use diego::error::{Type, error, with_text};
use diego::models::task::State;
use diego::models::{DesireTaskRequest, Error, Task};

use super::truncate;
use super::validate::names_fit;

/// The reason of a task that somebody cancelled.
pub const CANCELLED: &str = "task was cancelled";
/// The reason of a task that no cell has started in time.
pub const UNSTARTED: &str = "not started within time limit";
/// The reason of a task whose cell is gone.
pub const LOST: &str = "cell disappeared before completion";

/// The result that a cell reports for a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Did it fail?
    pub failed: bool,
    /// Why it failed.
    pub failure_reason: String,
    /// What it produced.
    pub result: String,
}

/// A new task, Pending.
pub fn desire(request: DesireTaskRequest, now: i64) -> Task {
    Task {
        task_definition: request.task_definition,
        task_guid: request.task_guid,
        domain: request.domain,
        created_at: now,
        updated_at: now,
        state: State::Pending.into(),
        ..Task::default()
    }
}

/// The task once `cell` runs it; `None` when that cell runs it already.
///
/// # Errors
/// InvalidStateTransition unless it is Pending; InvalidRequest when the name of the
/// cell is too long.
pub fn start(task: &Task, cell: &str, now: i64) -> Result<Option<Task>, Error> {
    match task.state() {
        State::Running if task.cell_id == cell => Ok(None),
        State::Pending => names_fit([cell]).map(|()| {
            Some(Task {
                state: State::Running.into(),
                cell_id: cell.to_owned(),
                updated_at: now,
                ..task.clone()
            })
        }),
        _ => Err(no_transition(task, State::Running)),
    }
}

/// The task once `cell` has finished it.
///
/// # Errors
/// InvalidStateTransition unless it is Running; RunningOnDifferentCell when
/// another cell runs it.
pub fn complete(task: &Task, cell: &str, outcome: Outcome, now: i64) -> Result<Task, Error> {
    if task.state() != State::Running {
        return Err(no_transition(task, State::Completed));
    }
    if task.cell_id != cell {
        return Err(with_text(
            Type::RunningOnDifferentCell,
            format!("Running on cell {} not {cell}", task.cell_id),
        ));
    }
    Ok(completed(task, outcome, now))
}

/// The task once it has failed without a cell's word, for `reason`.
///
/// # Errors
/// InvalidStateTransition unless it is Pending or Running.
pub fn fail(task: &Task, reason: &str, now: i64) -> Result<Task, Error> {
    match task.state() {
        State::Pending | State::Running => {
            let outcome = Outcome {
                failed: true,
                failure_reason: reason.to_owned(),
                result: String::new(),
            };
            Ok(completed(task, outcome, now))
        }
        _ => Err(no_transition(task, State::Completed)),
    }
}

/// What a rejection makes of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Rejection {
    /// The record that the change starts from.
    pub before: Task,
    /// The record that it ends with.
    pub after: Task,
}

/// The task once a cell or the auctioneer could not place it: Pending again, or
/// Completed as failed when it has been rejected `retries_max` times before.
///
/// # Errors
/// InvalidRequest when it is neither Pending nor Running, or
/// InvalidStateTransition when it is, moreover, out of retries.
pub fn reject(task: &Task, reason: &str, retries_max: i32, now: i64) -> Result<Rejection, Error> {
    let last = task.rejection_count >= retries_max;
    if !matches!(task.state(), State::Pending | State::Running) {
        return Err(if last {
            no_transition(task, State::Completed)
        } else {
            error(Type::InvalidRequest)
        });
    }
    let rejected = Task {
        state: State::Pending.into(),
        rejection_count: task.rejection_count.saturating_add(1),
        rejection_reason: truncate(reason.to_owned()),
        updated_at: now,
        ..task.clone()
    };
    if last {
        let after = fail(&rejected, reason, now)?;
        return Ok(Rejection {
            before: rejected,
            after,
        });
    }
    Ok(Rejection {
        before: task.clone(),
        after: rejected,
    })
}

/// The task once one consumer has claimed its result.
///
/// # Errors
/// InvalidStateTransition unless it is Completed.
pub fn resolve(task: &Task, now: i64) -> Result<Task, Error> {
    match task.state() {
        State::Completed => Ok(Task {
            state: State::Resolving.into(),
            updated_at: now,
            ..task.clone()
        }),
        _ => Err(no_transition(task, State::Resolving)),
    }
}

/// The task once the claim on its result has come to nothing: another consumer may have it.
///
/// # Errors
/// InvalidStateTransition unless it is Resolving.
pub fn unresolve(task: &Task, now: i64) -> Result<Task, Error> {
    match task.state() {
        State::Resolving => Ok(Task {
            state: State::Completed.into(),
            updated_at: now,
            ..task.clone()
        }),
        _ => Err(no_transition(task, State::Completed)),
    }
}

/// May the task be deleted?
///
/// # Errors
/// InvalidStateTransition unless it is Resolving.
pub fn delete(task: &Task) -> Result<(), Error> {
    match task.state() {
        State::Resolving => Ok(()),
        _ => Err(no_transition(task, State::Resolving)),
    }
}

fn completed(task: &Task, outcome: Outcome, now: i64) -> Task {
    Task {
        state: State::Completed.into(),
        cell_id: String::new(),
        failed: outcome.failed,
        failure_reason: truncate(outcome.failure_reason),
        result: outcome.result,
        first_completed_at: now,
        updated_at: now,
        ..task.clone()
    }
}

fn no_transition(task: &Task, to: State) -> Error {
    with_text(
        Type::InvalidStateTransition,
        format!(
            "Cannot transition from {} to {}",
            task.state().as_str_name(),
            to.as_str_name()
        ),
    )
}
