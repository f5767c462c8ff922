//! Own work of requests: done here if it is short, else by the workers of the instance;
//! and what only takes time.

use std::io::Write as _;
use std::sync::Arc;

use wire::clock;
use wire::slab::Key;

use traces::failure;

use super::event_loop::{EventLoop, Job, Todo};
use super::flight::{Flight, Open, What};
use super::plan::Plan;
use super::recording::Piece;
use crate::script::{Command, Outcome, Ticket};
use crate::work::{self, Ended, Refused, WorkError};

impl EventLoop {
    /// A script wants to be told when a time has come.
    pub(super) fn wait(&mut self, key: Key, flight: &mut Flight, command: &Command) {
        let Command::Wait {
            ticket,
            since,
            until,
            step,
            span,
        } = *command
        else {
            return;
        };
        let what = match step {
            Some(step) => What::Sleep(step, span, since),
            None => What::Pause,
        };
        flight.open.push(Open::until(ticket, what, until));
        self.timers.waits.lower(key.index(), until);
    }

    /// The time of something that a request waits for has come.
    pub(super) fn wait_expired(&mut self, key: Key) {
        let Some(mut flight) = self.flights.take(key) else {
            return;
        };
        while let Some(Open { ticket, what, .. }) = flight.due(self.now) {
            match what {
                What::Sleep(step, span, since) => {
                    if let Some(plan) = flight.plan.clone()
                        && let Some(work) = plan.work(step)
                    {
                        let mut piece = Piece::new(span, since, since);
                        piece.ended = self.now;
                        self.record_work(&flight, &plan, work, &piece);
                    }
                }
                What::Queued(slot, place) => {
                    let place = (slot, place);
                    if let Some(attempt) = self.leave_queue(&flight, key, ticket, place) {
                        self.unanswered(&mut flight, &attempt, failure::TIMEOUT);
                    }
                    continue;
                }
                // The others do not end by time, but for pauses.
                _ => {}
            }
            let done = Todo::Ended(key, ticket, Outcome::Done);
            self.todo.push_back(done);
        }
        self.timers.waits.lower(key.index(), flight.next());
        self.flights.put(key, flight);
    }

    /// A script wants work done.
    pub(super) fn work(
        &mut self,
        key: Key,
        flight: &mut Flight,
        plan: &Arc<Plan>,
        command: &Command,
    ) {
        let Command::Work {
            ticket,
            step,
            amount,
            second,
            span,
        } = *command
        else {
            return;
        };
        let Some(work) = plan.work(step) else {
            return;
        };
        let wanted = clock::now();
        let mut piece = Piece::new(span, wanted, wanted);
        let task = match &work.task {
            Ok(task) => task,
            Err(error) => {
                piece.cause = explain(flight, error.as_ref());
                self.not_done(key, flight, plan, ticket, work, &piece);
                return;
            }
        };
        if task.fits_event_loop() || matches!(plan.workers, Ok(None)) {
            let result = self.worker.perform(task, amount, second, flight.deadline);
            self.now = clock::now();
            piece.ended = self.now;
            match result {
                Ok(done) => {
                    (piece.cpu, piece.stolen) = (done.cpu, done.stolen());
                    self.record_work(flight, plan, work, &piece);
                    tell_load(flight, plan, work.tells_load);
                    self.todo.push_back(Todo::Ended(key, ticket, Outcome::Done));
                }
                Err(error) => {
                    piece.cause = explain(flight, Some(&error));
                    self.not_done(key, flight, plan, ticket, work, &piece);
                }
            }
            return;
        }
        let job = self.jobs.insert(Job {
            flight: key,
            ticket,
            step,
            span,
        });
        let handed = work::Job {
            task: Arc::clone(task),
            amount,
            second,
            key: job.number(),
            deadline: flight.deadline,
        };
        let refused = match &plan.workers {
            Ok(Some(workers)) => workers.submit(handed).map_err(|refused| match refused {
                Refused::Full => failure::FULL,
                refused => refused.cause(),
            }),
            Ok(None) => Err(failure::WORK),
            Err(cause) => Err(*cause),
        };
        match refused {
            Ok(()) => flight.open.push(Open::new(ticket, What::Job(job))),
            Err(refused) => {
                self.jobs.release(job);
                piece.cause = refused;
                self.not_done(key, flight, plan, ticket, work, &piece);
            }
        }
    }

    /// A worker has done a job.
    pub(super) fn work_ended(&mut self, ended: &Ended) {
        let Some(job) = self.jobs.remove(Key::of(ended.key)) else {
            return;
        };
        let key = job.flight;
        let Some(mut flight) = self.flights.take(key) else {
            return;
        };
        if let Some(plan) = flight.plan.clone()
            && let Some(work) = plan.work(job.step)
        {
            let mut piece = Piece::new(job.span, ended.submitted, ended.begun);
            match &ended.result {
                Ok(done) => {
                    piece.ended = ended.begun + done.wall;
                    // It may have ended after this thread last looked at the clock.
                    self.now = self.now.max(piece.ended);
                    (piece.cpu, piece.stolen) = (done.cpu, done.stolen());
                    self.record_work(&flight, &plan, work, &piece);
                    tell_load(&mut flight, &plan, work.tells_load);
                    self.todo
                        .push_back(Todo::Ended(key, job.ticket, Outcome::Done));
                }
                Err(error) => {
                    piece.ended = self.now;
                    piece.cause = explain(&mut flight, Some(error));
                    self.not_done(key, &flight, &plan, job.ticket, work, &piece);
                }
            }
        }
        self.flights.put(key, flight);
    }

    fn not_done(
        &mut self,
        key: Key,
        flight: &Flight,
        plan: &Plan,
        ticket: Ticket,
        work: &super::plan::WorkPlan,
        piece: &Piece,
    ) {
        self.record_work(flight, plan, work, piece);
        let outcome = Outcome::Failed(piece.cause);
        self.todo.push_back(Todo::Ended(key, ticket, outcome));
    }
}

/// Keeps why work was not done for the body of the answer, and gives the cause.
fn explain(flight: &mut Flight, error: Option<&WorkError>) -> &'static str {
    let Some(error) = error else {
        return failure::WORK;
    };
    flight.why = Some((error.cause(), error.to_string()));
    error.cause()
}

/// Puts testapi's `status[DONE/STARTED],` before the body.
fn tell_load(flight: &mut Flight, plan: &Plan, tells: bool) {
    if tells {
        let load = plan.load.status();
        // Writing to memory does not fail.
        let _ = write!(flight.prefix, "status[{}/{}],", load.done, load.started);
    }
}
