//! Commands: what the writer does to the state, one after the other.
//!
//! A command decodes the records it is about, asks the model, and puts the new
//! records into the batch. A command that fails has put nothing.

mod actual;
mod converge;
mod desired;
mod evacuation;
mod task;

pub(crate) use converge::Converge;
pub(crate) use task::placement;

use std::collections::BTreeMap;
use std::sync::Arc;

use diego::error::{Type, error};
use diego::models::{
    self, ActualLrpInstanceKey, ActualLrpKey, ClaimActualLrpRequest, CompleteTaskRequest,
    CrashActualLrpRequest, DesireTaskRequest, DesiredLrp, Error, FailActualLrpRequest,
    FailTaskRequest, RejectTaskRequest, RemoveActualLrpRequest, StartActualLrpRequest,
    StartTaskRequest, UpdateDesiredLrpRequest, UpsertDomainRequest,
};

use super::model::Context;
use super::model::actual::{Retire, Running};
use super::model::convergence::Action;
use super::model::slot::Slot;
use super::presence;
use super::state::Batch;

/// Something to be done to the state. Requests are valid.
#[derive(Debug)]
pub(crate) enum Command {
    UpsertDomain(UpsertDomainRequest),
    /// Who holds which key.
    Presences(Vec<presence::Change>),
    DesireTask(Box<DesireTaskRequest>),
    StartTask(StartTaskRequest),
    CompleteTask(CompleteTaskRequest),
    FailTask(FailTaskRequest),
    CancelTask(String, Arc<str>),
    RejectTask(RejectTaskRequest),
    ResolveTask(String),
    DeleteTask(String),
    DesireLrp(Box<DesiredLrp>, Arc<str>),
    UpdateLrp(Box<UpdateDesiredLrpRequest>, Arc<str>),
    RemoveLrp(String, Arc<str>),
    Claim(ClaimActualLrpRequest),
    Start(Box<StartActualLrpRequest>),
    Crash(CrashActualLrpRequest),
    Fail(FailActualLrpRequest),
    Remove(RemoveActualLrpRequest),
    Retire(ActualLrpKey, Arc<str>),
    Evacuate(Box<Evacuate>),
    Converge(Box<Converge>),
    /// Forgets the domains that are not fresh any more.
    PruneDomains,
}

/// One of the calls of a cell that is being emptied.
#[derive(Debug)]
pub(crate) struct Evacuate {
    pub(crate) key: ActualLrpKey,
    pub(crate) instance: ActualLrpInstanceKey,
    pub(crate) what: Evacuation,
}

/// The state of the instance on that cell.
#[derive(Debug)]
pub(crate) enum Evacuation {
    Claimed,
    Crashed(String),
    Stopped,
    Running(Box<Running>),
    /// The evacuating record is to go.
    Done,
}

/// What a command answers.
#[derive(Debug)]
pub(crate) enum Reply {
    Done,
    /// StartTask: is the cell to start it?
    ShouldStart(bool),
    /// Indices for which a record was created.
    Created(Vec<i32>),
    /// What retiring the index takes.
    Retire(Retire),
    /// Evacuation: is the cell to keep the container?
    Keep(bool),
    /// Convergence: what was done, and how often.
    Converged(BTreeMap<Action, usize>),
    /// The command has taken effect, and the answer is an error all the same.
    Refused(Error),
}

/// What subscribers are told.
#[derive(Debug)]
pub(crate) enum Change {
    Task {
        before: Option<Arc<models::Task>>,
        after: Option<Arc<models::Task>>,
    },
    Desired {
        before: Option<Arc<DesiredLrp>>,
        after: Option<Arc<DesiredLrp>>,
        trace: Arc<str>,
    },
    Slot {
        before: Slot,
        after: Slot,
        crashed: bool,
        trace: Arc<str>,
    },
}

/// What is to be asked of others once the batch is durable: which records call for it, and
/// why. What exactly is asked follows from the records when it is asked.
#[derive(Debug)]
pub(crate) enum Work {
    /// Indices of a process that have no cell.
    PlaceLrp {
        process_guid: Arc<str>,
        indices: Vec<i32>,
        trace: Arc<str>,
    },
    /// A task without a cell.
    PlaceTask(Arc<str>),
    /// A task with a result and an address to send it to.
    Callback(Arc<str>),
    CancelTask {
        task_guid: Arc<str>,
        cell: String,
        trace: Arc<str>,
    },
    /// A process with instances that are to end.
    StopInstances {
        process_guid: Arc<str>,
        trace: Arc<str>,
    },
    /// A process whose internal routes or metric tags changed.
    UpdateInstances {
        process_guid: Arc<str>,
        routes: bool,
        tags: bool,
        /// Only those that have not what they shall have.
        drifted: bool,
        trace: Arc<str>,
    },
}

/// Which changes somebody listens to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Watched {
    pub(crate) tasks: bool,
    pub(crate) lrps: bool,
}

/// What commands work on and leave behind.
pub(crate) struct Transaction<'a> {
    pub(crate) batch: Batch<'a>,
    pub(crate) context: Context<'a>,
    pub(crate) task_retries_max: i32,
    pub(crate) watched: Watched,
    pub(crate) changes: Vec<Change>,
    pub(crate) work: Vec<Work>,
}

impl Transaction<'_> {
    /// Does what the command says, or nothing and returns the protocol's error.
    pub(crate) fn apply(&mut self, command: Command) -> Result<Reply, Error> {
        match command {
            Command::UpsertDomain(request) => {
                self.upsert_domain(&request);
                Ok(Reply::Done)
            }
            Command::Presences(changes) => {
                self.batch.put_presences(changes);
                Ok(Reply::Done)
            }
            Command::DesireTask(request) => self.desire_task(*request),
            Command::StartTask(request) => self.start_task(&request),
            Command::CompleteTask(request) => self.complete_task(request),
            Command::FailTask(request) => {
                self.fail_task(&request.task_guid, &request.failure_reason)
            }
            Command::CancelTask(guid, trace) => self.cancel_task(&guid, trace),
            Command::RejectTask(request) => self.reject_task(&request),
            Command::ResolveTask(guid) => self.resolve_task(&guid),
            Command::DeleteTask(guid) => self.delete_task(&guid),
            Command::DesireLrp(lrp, trace) => self.desire_lrp(*lrp, &trace),
            Command::UpdateLrp(request, trace) => self.update_lrp(&request, &trace),
            Command::RemoveLrp(guid, trace) => self.remove_lrp(&guid, &trace),
            Command::Claim(request) => self.claim(request),
            Command::Start(request) => self.start(*request),
            Command::Crash(request) => self.crash(request),
            Command::Fail(request) => self.fail(request),
            Command::Remove(request) => self.remove(&request),
            Command::Retire(key, trace) => self.retire(&key, &trace),
            Command::Evacuate(request) => self.evacuate(*request),
            Command::Converge(request) => Ok(self.converge(&request)),
            Command::PruneDomains => {
                self.batch.prune_domains(self.context.now);
                Ok(Reply::Done)
            }
        }
    }

    fn upsert_domain(&mut self, request: &UpsertDomainRequest) {
        const SECOND_NS: i64 = 1_000_000_000;
        let now = self.context.now;
        self.batch.prune_domains(now);
        let expires = match request.ttl {
            0 => i64::MAX,
            ttl => now.saturating_add(i64::from(ttl) * SECOND_NS),
        };
        self.batch.put_domain(&request.domain, expires);
    }

    /// The records of an index as they are.
    fn slot(&self, process_guid: &str, index: i32) -> Result<Slot, Error> {
        self.batch.slot(process_guid, index).map_err(|_| damaged())
    }

    /// Changes the records of an index by a rule; what the rule refuses changes nothing.
    fn change_slot<T>(
        &mut self,
        process_guid: &str,
        index: i32,
        trace: &Arc<str>,
        rule: impl FnOnce(&mut Slot, &mut Context<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let before = self.slot(process_guid, index)?;
        let mut after = before.clone();
        let outcome = rule(&mut after, &mut self.context)?;
        self.put_slot(process_guid, index, before, after, false, trace);
        Ok(outcome)
    }

    /// Puts the records of an index that changed, and tells of it.
    fn put_slot(
        &mut self,
        process_guid: &str,
        index: i32,
        mut before: Slot,
        mut after: Slot,
        crashed: bool,
        trace: &Arc<str>,
    ) {
        if before == after {
            return;
        }
        self.batch
            .put_slot(process_guid, index, &mut before, &mut after);
        if self.watched.lrps {
            self.changes.push(Change::Slot {
                before,
                after,
                crashed,
                trace: Arc::clone(trace),
            });
        }
    }
}

fn not_found() -> Error {
    error(Type::ResourceNotFound)
}

/// Records are decoded when they are loaded and encoded by us: this cannot happen
/// short of damaged memory.
fn damaged() -> Error {
    error(Type::Deserialize)
}

/// No trace id.
fn untraced() -> Arc<str> {
    Arc::from("")
}
