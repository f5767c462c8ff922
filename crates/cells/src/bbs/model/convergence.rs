//! What records call for by themselves: nobody asks for it, a look at them at some time does.
//!
//! Each index of a process and each task is judged alone. A [`Verdict`] says what is to be done
//! now, and when another look is due although nothing changes until then. The rules are those of
//! Diego's convergence (bbs `db/sqldb/lrp_convergence.go`, `task_convergence.go`), except that
//! cells of which nothing is known are neither lost nor present, and that what lies beyond the
//! wanted count is never started.

use diego::models::task::State as TaskState;

use super::actual::IMMEDIATE_RESTARTS;
use super::slot::Phase;

const SECOND_NS: i64 = 1_000_000_000;
/// First wait after a crash that is not followed by a restart at once.
const BACKOFF_NS: i64 = 30 * SECOND_NS;
/// Times that the wait doubles at most: 16 minutes.
const BACKOFF_DOUBLINGS: i32 = 5;
/// Crashes after which an instance is not started again.
const CRASHES_MOST: i32 = 200;

/// Ages in ns at which something is done about a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvergenceAges {
    /// A record without a cell is to be placed again, and a result is to be sent again.
    pub again: i64,
    /// A task that has not started has failed.
    pub pending: i64,
    /// A result that nobody took is forgotten.
    pub completed: i64,
    /// When the BBS began to serve, in ns since 1970. Before, nobody could take a result.
    pub began: i64,
}

/// What is known of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    /// It holds its presence.
    Present,
    /// It does not.
    Lost,
    /// Nothing, because nobody holds a presence: then the fault is more likely here.
    Unknown,
}

/// One record of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instance {
    /// Its state.
    pub phase: Phase,
    /// Its cell; meaningless without one.
    pub cell: Cell,
    /// When its state last changed, in ns since 1970. Of records on a cell it is not needed.
    pub since: i64,
    /// How often it crashed. Of records on a cell it is not needed.
    pub crash_count: i32,
    /// It runs with other internal routes or metric tags than are desired.
    pub drifted: bool,
}

/// An index of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Index {
    /// Its number.
    pub number: i32,
    /// How many instances are desired; `None`: nobody desires the process.
    pub desired: Option<i32>,
    /// From which number on instances are being ended because somebody asked for it.
    pub stop_from: Option<i32>,
    /// Its domain is fresh: what is not desired is not wanted.
    pub fresh: bool,
    /// The record that almost every call is about.
    pub ordinary: Option<Instance>,
    /// The one on a cell that was lost.
    pub suspect: Option<Instance>,
    /// The cell of the one that is being evacuated.
    pub evacuating: Option<Cell>,
}

/// Something to be done about an index or a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// The evacuating record goes: its cell is lost.
    RemoveEvacuating,
    /// The suspect record goes: it is not wanted, or has a successor.
    RemoveSuspect,
    /// The suspect becomes ordinary again, in the place of its replacement: its cell is back.
    Promote,
    /// The missing record is created and placed.
    Create,
    /// It has waited too long for a cell: it is placed again.
    Place,
    /// It has waited long enough after its crash: it is placed again.
    Restart,
    /// It becomes suspect, and a replacement is created and placed: its cell is lost.
    Suspect,
    /// The replacement lost its cell as well: it waits for another.
    Unclaim,
    /// Its cell is to learn internal routes and metric tags again.
    Update,
    /// The record goes: nobody wants it, and no cell has it.
    Remove,
    /// Its cell is to end it, and so all of its process from here on that nobody wants.
    Stop,
    /// The task is placed again.
    PlaceTask,
    /// The task fails: it has not started in time.
    FailUnstarted,
    /// The task fails: its cell is lost.
    FailLost,
    /// The claim on the task's result is void; the result is sent again.
    Unresolve,
    /// The task's result is sent again.
    CallBack,
    /// The task goes: nobody has read its result.
    Forget,
}

/// What a look at a record says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// To be done now, in this order.
    pub actions: Vec<Action>,
    /// When the verdict becomes another one by time alone, in ns since 1970.
    pub due: Option<i64>,
    /// It becomes another one when its domain becomes fresh.
    pub once_fresh: bool,
}

impl Verdict {
    /// Acts if this much time has passed since then, else another look is due at that time.
    fn after(&mut self, since: i64, age: i64, now: i64, action: Action) {
        let at = since.saturating_add(age);
        if at <= now {
            self.actions.push(action);
        } else {
            self.due = Some(self.due.map_or(at, |due| due.min(at)));
        }
    }
}

/// Judges an index.
pub fn index(index: &Index, ages: &ConvergenceAges, now: i64) -> Verdict {
    let mut verdict = Verdict::default();
    if index.evacuating == Some(Cell::Lost) {
        verdict.actions.push(Action::RemoveEvacuating);
    }
    if index.desired.is_some_and(|count| index.number < count) {
        wanted(index, ages, now, &mut verdict);
    } else {
        unwanted(index, &mut verdict);
    }
    verdict
}

fn wanted(index: &Index, ages: &ConvergenceAges, now: i64, verdict: &mut Verdict) {
    let runs = |instance: Instance| instance.phase == Phase::Running;
    let mut suspect = index.suspect;
    if let Some(of) = suspect {
        if index.ordinary.is_some_and(runs) {
            verdict.actions.push(Action::RemoveSuspect);
            suspect = None;
        } else if of.cell == Cell::Present {
            verdict.actions.push(Action::Promote);
            return;
        }
    }
    let Some(ordinary) = index.ordinary else {
        return verdict.actions.push(Action::Create);
    };
    match (ordinary.phase, ordinary.cell) {
        (Phase::Unclaimed, _) => verdict.after(ordinary.since, ages.again, now, Action::Place),
        (Phase::Crashed, _) => {
            if let Some(wait) = backoff(ordinary.crash_count) {
                verdict.after(ordinary.since, wait, now, Action::Restart);
            }
        }
        (Phase::Claimed | Phase::Running, Cell::Lost) => verdict.actions.push(match suspect {
            Some(_) => Action::Unclaim,
            None => Action::Suspect,
        }),
        (Phase::Running, Cell::Present) if ordinary.drifted => {
            verdict.actions.push(Action::Update);
        }
        (Phase::Claimed | Phase::Running, _) => {}
    }
}

/// Beyond the count, or without a desired LRP.
fn unwanted(index: &Index, verdict: &mut Verdict) {
    let ending = index.stop_from.is_some_and(|from| index.number >= from);
    if index.ordinary.is_none() && index.suspect.is_none() {
        return;
    }
    if !ending && !index.fresh {
        // Whoever desires processes of the domain may not have said all of it.
        verdict.once_fresh = true;
        if index.suspect.is_some_and(|of| of.cell == Cell::Present) {
            verdict.actions.push(Action::Promote);
        }
        return;
    }
    if index.suspect.is_some() {
        verdict.actions.push(Action::RemoveSuspect);
    }
    if let Some(ordinary) = index.ordinary {
        let on_cell = matches!(ordinary.phase, Phase::Claimed | Phase::Running);
        match (on_cell, ordinary.cell) {
            (false, _) => verdict.actions.push(Action::Remove),
            // Who asked for it to end had its cell in mind, which may be back in a moment:
            // such instances have a clock of their own.
            (true, _) if ending => {}
            (true, Cell::Lost) => verdict.actions.push(Action::Remove),
            (true, _) => verdict.actions.push(Action::Stop),
        }
    }
}

/// Time between a crash and the restart, in ns; `None`: it is not started again.
pub fn backoff(crash_count: i32) -> Option<i64> {
    if crash_count >= CRASHES_MOST {
        return None;
    }
    let doublings = crash_count.saturating_sub(IMMEDIATE_RESTARTS);
    if doublings < 0 {
        return Some(0);
    }
    Some(BACKOFF_NS << doublings.min(BACKOFF_DOUBLINGS))
}

/// A task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// Its state.
    pub state: TaskState,
    /// Its cell; meaningless without one.
    pub cell: Cell,
    /// When it was desired, in ns since 1970.
    pub created_at: i64,
    /// When it last changed, in ns since 1970.
    pub updated_at: i64,
    /// When it was completed, in ns since 1970.
    pub completed_at: i64,
    /// Its result is to be sent somewhere.
    pub called_back: bool,
}

/// Judges a task.
pub fn task(task: &Task, ages: &ConvergenceAges, now: i64) -> Verdict {
    let mut verdict = Verdict::default();
    let untaken = task.completed_at.max(ages.began);
    match task.state {
        TaskState::Invalid => {}
        TaskState::Pending => {
            verdict.after(task.created_at, ages.pending, now, Action::FailUnstarted);
            if verdict.actions.is_empty() {
                // Diego offers it in each pass. With the whole age one that was refused a moment
                // after a pass would be left out of the next, and fail after twice as long.
                let again = ages.again / 2;
                verdict.after(task.updated_at, again, now, Action::PlaceTask);
            }
        }
        TaskState::Running => {
            if task.cell == Cell::Lost {
                verdict.actions.push(Action::FailLost);
            }
        }
        TaskState::Resolving => {
            verdict.after(task.updated_at, ages.again, now, Action::Unresolve);
            // Diego demotes first and then deletes in the same pass; otherwise one that is sent
            // in vain would be claimed again before every look, and stay for ever.
            if !verdict.actions.is_empty() {
                verdict.after(untaken, ages.completed, now, Action::Forget);
            }
        }
        TaskState::Completed => {
            verdict.after(untaken, ages.completed, now, Action::Forget);
            if task.called_back && verdict.actions.is_empty() {
                verdict.after(task.updated_at, ages.again, now, Action::CallBack);
            }
        }
    }
    verdict
}
