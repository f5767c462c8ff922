//! What goes into a container's state machine and what comes out.

/// What a container runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An instance of a long-running process.
    Lrp,
    /// A task.
    Task,
}

/// Where a container is in its life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Room is held for it.
    Reserved,
    /// The executor creates it.
    Creating,
    /// It exists; the executor starts its process.
    Created,
    /// Its process runs.
    Running,
    /// It has ended, and the BBS may not know yet.
    Completed(Completion),
    /// It is gone.
    Deleted,
}

/// How a container ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completion {
    /// Did it fail?
    pub failed: bool,
    /// Why it failed; empty when it did not.
    pub reason: String,
    /// May another cell do better?
    pub retryable: bool,
    /// Content of a task's result file, also of one that failed.
    pub result: String,
}

impl Completion {
    /// It failed, for this reason.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self {
            failed: true,
            reason: reason.into(),
            ..Self::default()
        }
    }
}

/// A call to the BBS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// Claim the instance for this cell.
    ClaimLrp,
    /// Claim the task for this cell.
    StartTask,
    /// Fetch what is to be run.
    Fetch,
    /// Report the instance as running.
    StartLrp,
    /// Remove the record of an instance that was stopped.
    RemoveLrp,
    /// Report a crash, with its reason.
    CrashLrp(String),
    /// Report the end of a task.
    CompleteTask(Completion),
    /// Give a task back, with the reason.
    RejectTask(String),
    /// Give back an instance that does not run yet, for the cell is evacuated.
    EvacuateClaimed,
    /// Hand over an instance that runs, or ask whether it has been replaced.
    EvacuateRunning,
    /// Remove the record of an instance that was stopped on a cell that is evacuated.
    EvacuateStopped,
    /// Report a crash on a cell that is evacuated, with its reason.
    EvacuateCrashed(String),
}

/// How the BBS answered a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It was done.
    Done,
    /// It was refused for good: the record is gone or in somebody else's hands.
    Refused,
    /// It was not done but may be done later.
    Failed,
    /// Of [`Call::EvacuateRunning`]: nobody has replaced the instance yet.
    Keep,
}

/// What happens to a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It was just reserved.
    Reserved,
    /// Stop the instance or cancel the task.
    Stop,
    /// The BBS shall hear again that the instance runs: its routes or tags
    /// changed, or it is time to repeat it.
    Refresh,
    /// The cell is evacuated: give the instance away, or ask again whether it has been
    /// replaced. A task runs on.
    Evacuate,
    /// The pause after a failed call is over.
    Retry,
    /// The BBS answered the call under way.
    Answered(Answer),
    /// The executor created the container, or says why not.
    Created(Result<(), String>),
    /// The process started.
    Started,
    /// Requests may, or may not, be routed to the instance from now on.
    Routable(bool),
    /// The process ended, or could not be started.
    Ended(Completion),
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Call the BBS; exactly one [`Event::Answered`] must follow.
    Call(Call),
    /// Send [`Event::Retry`] after a pause that grows with the number of failures.
    RetryAfter(u32),
    /// Create the container; [`Event::Created`] must follow.
    Create,
    /// Start its process; [`Event::Ended`] must follow, with at most one
    /// [`Event::Started`] before it.
    Run,
    /// End its process; [`Event::Ended`] follows.
    Kill,
    /// Free what it holds and forget it. No other command follows.
    Delete,
}
