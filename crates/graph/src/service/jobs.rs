//! Own work of requests: done here if it is short, else by the workers of the instance.

use std::io::Write as _;
use std::mem;
use std::sync::Arc;

use wire::clock;
use wire::slab::{Key, Slab};

use traces::SpanId;
use traces::failure;

use super::context::Context;
use super::recordings::Piece;
use super::request_state::{ActiveRequest, Open, OpenKind, RequestState};
use crate::script::{Command, OperationId, Outcome};
use crate::topology::StepId;
use crate::work::{self, Ended, Inbox, Refused, SharedResources, WorkError, Worker};

/// See the module.
pub(super) struct Jobs {
    /// In hand of workers.
    all: Slab<Job>,
    inbox: Arc<Inbox>,
    /// Does what is done here.
    worker: Worker,
    ended: Vec<Ended>,
}

/// Work in the hands of a worker.
#[derive(Debug, Clone, Copy)]
struct Job {
    request: Key,
    operation_id: OperationId,
    step: StepId,
    span: SpanId,
}

impl Jobs {
    /// What workers have done comes through an inbox.
    pub(super) fn new(resources: &Arc<SharedResources>, inbox: Arc<Inbox>) -> Self {
        Self {
            all: Slab::default(),
            inbox,
            worker: Worker::new(resources),
            ended: Vec::new(),
        }
    }

    /// A script wants work done.
    pub(super) fn work(
        &mut self,
        active: &mut ActiveRequest,
        command: &Command,
        context: &mut Context,
    ) {
        let Command::Work {
            operation_id,
            step,
            amount,
            second,
            span,
        } = *command
        else {
            return;
        };
        let Some(work) = active.plan.work(step) else {
            return;
        };
        let deadline = active.state.deadline;
        let wanted = clock::now();
        let mut piece = Piece::new(span, wanted, wanted);
        let task = match &work.task {
            Ok(task) => task,
            Err(error) => {
                piece.cause = explain(&mut active.state, error.as_ref());
                end(active, operation_id, step, &piece, context);
                return;
            }
        };
        if task.fits_event_loop() || matches!(active.plan.workers, Ok(None)) {
            let result = self.worker.perform(task, amount, second, deadline);
            context.now = clock::now();
            piece.ended = context.now;
            match result {
                Ok(done) => (piece.cpu, piece.stolen) = (done.cpu, done.stolen()),
                Err(error) => piece.cause = explain(&mut active.state, Some(&error)),
            }
            end(active, operation_id, step, &piece, context);
            return;
        }
        let job = self.all.insert(Job {
            request: active.key,
            operation_id,
            step,
            span,
        });
        let handed = work::Job {
            task: Arc::clone(task),
            amount,
            second,
            key: job.number(),
            deadline,
        };
        let handed = match &active.plan.workers {
            Ok(Some(workers)) => workers.submit(handed).map_err(|refused| match refused {
                Refused::Full => failure::FULL,
                refused => refused.cause(),
            }),
            Ok(None) => Err(failure::WORK),
            Err(cause) => Err(*cause),
        };
        match handed {
            Ok(()) => active
                .state
                .open
                .push(Open::new(operation_id, OpenKind::Job(job))),
            Err(refused) => {
                self.all.release(job);
                piece.cause = refused;
                end(active, operation_id, step, &piece, context);
            }
        }
    }

    /// A job is of no use to anybody any more.
    pub(super) fn release(&mut self, job: Key) {
        self.all.release(job);
    }

    /// What workers have done.
    pub(super) fn take_ended(&mut self, context: &mut Context) {
        let mut all = mem::take(&mut self.ended);
        self.inbox.drain(&mut all);
        for ended in all.drain(..) {
            let Some(job) = self.all.remove(Key::of(ended.key)) else {
                continue;
            };
            let Some(mut active) = context.active_requests.take(job.request) else {
                continue;
            };
            let mut piece = Piece::new(job.span, ended.submitted, ended.begun);
            match &ended.result {
                Ok(done) => {
                    piece.ended = ended.begun + done.wall;
                    // It may have ended after this thread last looked at the clock.
                    context.now = context.now.max(piece.ended);
                    (piece.cpu, piece.stolen) = (done.cpu, done.stolen());
                }
                Err(error) => {
                    piece.ended = context.now;
                    piece.cause = explain(&mut active.state, Some(error));
                }
            }
            end(&mut active, job.operation_id, job.step, &piece, context);
            context.active_requests.put(active);
        }
        self.ended = all;
    }
}

/// A piece of work has ended, or is not done.
fn end(
    active: &mut ActiveRequest,
    operation_id: OperationId,
    step: StepId,
    piece: &Piece,
    context: &mut Context,
) {
    if let Some(work) = active.plan.work(step) {
        context.recordings.work(active, work, piece);
        if work.tells_load && piece.cause.is_empty() {
            // Testapi's, before the body. Writing to memory does not fail.
            let (load, prefix) = (active.plan.load.status(), &mut active.state.prefix);
            let _ = write!(prefix, "status[{}/{}],", load.done, load.started);
        }
    }
    let outcome = match piece.cause {
        "" => Outcome::Done,
        cause => Outcome::Failed(cause),
    };
    context.ended(active.key, operation_id, outcome);
}

/// Keeps why work was not done for the body of the answer, and gives the cause.
fn explain(state: &mut RequestState, error: Option<&WorkError>) -> &'static str {
    let Some(error) = error else {
        return failure::WORK;
    };
    state.why = Some((error.cause(), error.to_string()));
    error.cause()
}
