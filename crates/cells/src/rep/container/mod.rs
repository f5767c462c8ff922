//! The life of a container as a pure state machine.
//!
//! Events go in: requests, what the executor did, what the BBS answered. Commands
//! come out, for a shell to carry out. At most one call to the BBS is under way
//! per container; what a container wants next follows from its state alone, so
//! nothing is lost when a call fails: it is simply wanted again.

mod vocabulary;

pub use vocabulary::{Answer, Call, Command, Completion, Event, Kind, Phase};

/// A container.
#[derive(Debug, Clone)]
pub struct Container {
    kind: Kind,
    phase: Phase,
    /// A call is under way.
    calling: Option<Call>,
    /// A pause after a failed call is under way.
    pausing: bool,
    failures: u32,
    /// The BBS gave the work to this cell.
    ours: bool,
    /// The BBS said that the work is not this cell's.
    disowned: bool,
    stopping: bool,
    killed: bool,
    /// The BBS knows that the instance runs, or is being told.
    reported: bool,
    /// The BBS has heard at least once that the instance runs.
    announced: bool,
    /// Requests may be routed to the instance.
    routable: bool,
    /// A task's end was refused once and is reported as failed since.
    downgraded: bool,
    /// The instance is to leave this cell.
    evacuating: bool,
    /// It is time to ask whether the instance has been replaced.
    due: bool,
    /// The BBS may have marked the instance as evacuating: its ordinary record is free for
    /// another cell, from which a report that it runs here would take it again.
    handed_over: bool,
}

impl Container {
    /// A container that has just been reserved; feed it [`Event::Reserved`] first.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            phase: Phase::Reserved,
            calling: None,
            pausing: false,
            failures: 0,
            ours: false,
            disowned: false,
            stopping: false,
            killed: false,
            reported: false,
            announced: false,
            routable: true,
            downgraded: false,
            evacuating: false,
            due: false,
            handed_over: false,
        }
    }

    /// What it runs.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Where it is in its life.
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    /// Was it asked to stop?
    pub fn stopping(&self) -> bool {
        self.stopping
    }

    /// May requests be routed to it, once it runs?
    pub fn routable(&self) -> bool {
        self.routable
    }

    /// Has the BBS heard that the instance runs, so that to say so again is no news?
    pub fn announced(&self) -> bool {
        self.announced
    }

    /// Has the BBS acknowledged what its record has to say for it: of an instance that it
    /// runs as last reported, of a task that this cell started it?
    pub fn acknowledged(&self) -> bool {
        match self.kind {
            Kind::Lrp => self.announced && self.reported && self.calling.is_none(),
            Kind::Task => self.ours,
        }
    }

    /// Is it on its way to running?
    pub fn starting(&self) -> bool {
        matches!(
            self.phase,
            Phase::Reserved | Phase::Creating | Phase::Created
        )
    }

    /// Takes an event and returns what is to be done, in order. Events that make
    /// no sense in the present state change nothing.
    pub fn on(&mut self, event: Event) -> Vec<Command> {
        let mut commands = Vec::new();
        match event {
            Event::Reserved => {}
            Event::Stop => self.stopping = true,
            Event::Refresh => {
                self.reported = false;
                self.due = self.evacuating;
            }
            Event::Routable(routable) if routable == self.routable => {}
            Event::Routable(routable) => {
                self.routable = routable;
                self.reported = false;
                self.due = self.evacuating;
            }
            Event::Evacuate => {
                self.evacuating = self.kind == Kind::Lrp;
                self.due = self.evacuating;
            }
            Event::Retry => self.pausing = false,
            Event::Answered(answer) => self.answered(answer, &mut commands),
            Event::Created(result) if self.phase == Phase::Creating => match result {
                Ok(()) if self.stopping || self.disowned => self.complete(Completion::default()),
                Ok(()) => {
                    self.phase = Phase::Created;
                    commands.push(Command::Run);
                }
                Err(reason) => self.complete(Completion {
                    retryable: true,
                    ..Completion::failed(reason)
                }),
            },
            Event::Started if self.phase == Phase::Created => self.phase = Phase::Running,
            Event::Ended(completion) if self.has_process() => self.complete(completion),
            Event::Created(_) | Event::Started | Event::Ended(_) => {}
        }
        if (self.stopping || self.disowned) && self.has_process() && !self.killed {
            self.killed = true;
            commands.push(Command::Kill);
        }
        if self.calling.is_none() && !self.pausing {
            self.next(&mut commands);
        }
        commands
    }

    fn has_process(&self) -> bool {
        matches!(self.phase, Phase::Created | Phase::Running)
    }

    fn complete(&mut self, completion: Completion) {
        self.phase = Phase::Completed(completion);
        self.failures = 0;
    }

    fn answered(&mut self, answer: Answer, commands: &mut Vec<Command>) {
        let Some(call) = self.calling.take() else {
            return;
        };
        if answer == Answer::Failed {
            self.reported &= call != Call::StartLrp;
            self.due |= call == Call::EvacuateRunning;
            self.failures = self.failures.saturating_add(1);
            self.pausing = true;
            commands.push(Command::RetryAfter(self.failures));
            return;
        }
        self.failures = 0;
        let done = answer == Answer::Done;
        match call {
            Call::ClaimLrp | Call::StartTask if done => self.ours = true,
            Call::ClaimLrp | Call::StartTask => self.disowned = true,
            Call::Fetch if done && !self.stopping && !self.evacuating => {
                self.phase = Phase::Creating;
                commands.push(Command::Create);
            }
            // Stopped or evacuated while it was fetched: it ends as if it had run.
            Call::Fetch if done => {}
            // Nothing is known to run: an instance's record goes, a task fails.
            Call::Fetch => {
                self.stopping |= self.kind == Kind::Lrp;
                self.complete(Completion::failed("failed to run container"));
            }
            Call::StartLrp => {
                self.announced |= done;
                self.disowned |= !done;
            }
            Call::CompleteTask(_) if !done && !self.downgraded => {
                self.downgraded = true;
                self.complete(Completion::failed("invalid state transition"));
            }
            Call::EvacuateRunning if answer == Answer::Keep => {}
            // Another cell has it or will; its records are none of this cell's business now.
            Call::EvacuateClaimed | Call::EvacuateRunning => self.disowned = true,
            Call::RemoveLrp
            | Call::CrashLrp(_)
            | Call::EvacuateStopped
            | Call::EvacuateCrashed(_)
            | Call::CompleteTask(_)
            | Call::RejectTask(_) => self.delete(commands),
        }
    }

    fn delete(&mut self, commands: &mut Vec<Command>) {
        self.phase = Phase::Deleted;
        commands.push(Command::Delete);
    }

    /// What the container wants of the BBS now, if anything.
    fn next(&mut self, commands: &mut Vec<Command>) {
        let going = self.stopping || self.disowned;
        let call = match (&self.phase, self.kind) {
            (Phase::Creating | Phase::Created, _) if self.evacuating && !going => {
                Call::EvacuateClaimed
            }
            (Phase::Creating | Phase::Created | Phase::Deleted, _) => return,
            (Phase::Reserved | Phase::Completed(_), _) if self.disowned => {
                return self.delete(commands);
            }
            // A cancelled task is complete already in the BBS's eyes.
            (Phase::Reserved | Phase::Completed(_), Kind::Task) if self.stopping => {
                return self.delete(commands);
            }
            (Phase::Reserved, Kind::Lrp) if self.stopping => Call::RemoveLrp,
            // Only what was claimed can be given back, and only then is it placed again at once.
            (Phase::Reserved, _) if self.ours && self.evacuating => Call::EvacuateClaimed,
            (Phase::Reserved, _) if self.ours => Call::Fetch,
            (Phase::Reserved, Kind::Lrp) => Call::ClaimLrp,
            (Phase::Reserved, Kind::Task) => Call::StartTask,
            (Phase::Running, Kind::Lrp) if !self.reported && !self.handed_over && !going => {
                Call::StartLrp
            }
            (Phase::Running, Kind::Lrp) if self.due && !going => Call::EvacuateRunning,
            (Phase::Running, _) => return,
            (Phase::Completed(_), Kind::Lrp) if self.evacuating && self.stopping => {
                Call::EvacuateStopped
            }
            (Phase::Completed(end), Kind::Lrp) if self.evacuating => {
                Call::EvacuateCrashed(end.reason.clone())
            }
            (Phase::Completed(_), Kind::Lrp) if self.stopping => Call::RemoveLrp,
            (Phase::Completed(end), Kind::Lrp) => Call::CrashLrp(end.reason.clone()),
            (Phase::Completed(end), Kind::Task) if end.failed && end.retryable => {
                Call::RejectTask(end.reason.clone())
            }
            (Phase::Completed(end), Kind::Task) => Call::CompleteTask(end.clone()),
        };
        // Set now and not with the answer, so that a refresh in between is not lost.
        self.reported |= call == Call::StartLrp;
        if call == Call::EvacuateRunning {
            // Also when no answer comes: it may have been done.
            self.handed_over = true;
            self.due = false;
        }
        self.calling = Some(call.clone());
        commands.push(Command::Call(call));
    }
}

#[cfg(test)]
mod tests;
