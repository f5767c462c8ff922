//! The states of our tasks, from answers, events, callbacks and lists, which may
//! come in any order.

use diego::models::task::State;

/// What one source says about a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Report {
    /// Number of the task.
    pub(super) n: u64,
    /// Number of its state in the protocol.
    pub(super) state: i32,
    /// Did it fail?
    pub(super) failed: bool,
    /// When the BBS last changed it, in nanoseconds.
    pub(super) updated_at: i64,
}

/// States that are counted, in order of a life; what is desired is known without events.
pub(super) const STATES: [&str; 7] = [
    "desired",
    "pending",
    "running",
    "completed",
    "failed",
    "resolved",
    "alive",
];

/// All tasks that the driver made.
#[derive(Debug, Default)]
pub(super) struct TaskBook {
    tasks: Vec<Task>,
    /// How many are in each of the [`STATES`].
    totals: [u64; STATES.len()],
    blind: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Task {
    accepted: bool,
    called_back: bool,
    completed: bool,
    failed: bool,
    stage: Stage,
    updated_at: i64,
}

/// In order of a life; of two reports with the same time the later stage is newer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// No report yet.
    #[default]
    Unseen,
    Pending,
    Running,
    /// Also while its result is being handed over.
    Completed,
    /// Removed from the BBS.
    Gone,
}

impl Task {
    fn is_known(self) -> bool {
        self.accepted || self.stage != Stage::Unseen
    }

    /// In which of the [`STATES`] it is.
    fn totals(self) -> [u64; STATES.len()] {
        let gone = self.stage == Stage::Gone;
        let is = [
            self.accepted,
            self.stage == Stage::Pending,
            self.stage == Stage::Running,
            self.completed,
            self.failed,
            self.called_back && gone,
            self.is_known() && !gone,
        ];
        is.map(u64::from)
    }
}

impl TaskBook {
    /// Makes room for `count` tasks and returns the number of the first.
    pub(super) fn reserve(&mut self, count: u64) -> u64 {
        let first = self.tasks.len();
        self.tasks.resize(first + count as usize, Task::default());
        first as u64
    }

    /// The BBS accepted a task.
    pub(super) fn accepted(&mut self, n: u64) {
        self.change(n, |task| task.accepted = true);
    }

    /// The BBS handed over the result of a task.
    pub(super) fn called_back(&mut self, n: u64, failed: bool) {
        self.change(n, |task| {
            task.called_back = true;
            task.completed = true;
            task.failed |= failed;
        });
    }

    /// An event or a list shows a task. An old report changes nothing; a running
    /// task that is rejected is pending again, so time decides and not the stage.
    pub(super) fn seen(&mut self, report: Report) {
        let stage = match State::try_from(report.state) {
            Ok(State::Pending) => Stage::Pending,
            Ok(State::Running) => Stage::Running,
            Ok(State::Completed | State::Resolving) => Stage::Completed,
            Ok(State::Invalid) | Err(_) => return,
        };
        self.change(report.n, |task| {
            if task.stage == Stage::Gone
                || (report.updated_at, stage) < (task.updated_at, task.stage)
            {
                return;
            }
            task.updated_at = report.updated_at;
            task.stage = stage;
            if stage == Stage::Completed {
                task.completed = true;
                task.failed |= report.failed;
            }
        });
    }

    /// The BBS removed a task.
    pub(super) fn removed(&mut self, n: u64) {
        self.change(n, |task| task.stage = Stage::Gone);
    }

    /// Tasks that a list taken from now on must show, or else are gone.
    pub(super) fn expected(&self) -> Vec<u64> {
        (0..)
            .zip(&self.tasks)
            .filter(|(_, task)| task.is_known() && task.stage != Stage::Gone)
            .map(|(n, _)| n)
            .collect()
    }

    /// Takes in a whole list, asked for after `expected` was drawn up.
    pub(super) fn reconcile(&mut self, expected: &[u64], listed: &[Report]) {
        let shown: std::collections::BTreeSet<u64> = listed.iter().map(|report| report.n).collect();
        for n in expected.iter().filter(|n| !shown.contains(n)) {
            self.removed(*n);
        }
        for report in listed {
            self.seen(*report);
        }
    }

    /// While events are missed, what follows from them is not told.
    pub(super) fn set_blind(&mut self, blind: bool) {
        self.blind = blind;
    }

    /// How many are in each state.
    pub(super) fn counts(&self) -> Vec<(&'static str, u64)> {
        let known = if self.blind { 1 } else { STATES.len() };
        STATES.into_iter().zip(self.totals).take(known).collect()
    }

    fn change(&mut self, n: u64, change: impl FnOnce(&mut Task)) {
        // Numbers beyond are not ours, whatever their names say.
        let Some(task) = usize::try_from(n).ok().and_then(|n| self.tasks.get_mut(n)) else {
            return;
        };
        let before = task.totals();
        change(task);
        let after = task.totals();
        for (total, (before, after)) in self.totals.iter_mut().zip(before.into_iter().zip(after)) {
            *total = *total + after - before;
        }
    }
}
