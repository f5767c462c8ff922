//! What scripts command, and who does it.

use std::mem;

use traces::failure;
use wire::slab::Key;

use super::calls::Calls;
use super::context::{Context, Deferred};
use super::http2_callers::Http2Callers;
use super::jobs::Jobs;
use super::recordings::{GONE, Piece};
use super::reply::Reply;
use super::request_state::{ActiveRequest, Open, OpenKind};
use super::sessions::Sessions;
use crate::Nanos;
use crate::script::{Arrival, Command, Outcome};

/// Who has to do with the requests in hand. None of them knows of another.
pub(super) struct Requests {
    pub(super) sessions: Sessions,
    pub(super) http2_callers: Http2Callers,
    pub(super) calls: Calls,
    pub(super) jobs: Jobs,
    commands: Vec<Command>,
}

impl Requests {
    /// For so many instances.
    pub(super) fn new(instances: usize, jobs: Jobs) -> Self {
        Self {
            sessions: Sessions::new(instances),
            http2_callers: Http2Callers::default(),
            calls: Calls::default(),
            jobs,
            commands: Vec::new(),
        }
    }

    /// Does what there is to do.
    pub(super) fn settle(&mut self, context: &mut Context) {
        while let Some(deferred) = context.deferred.pop_front() {
            match deferred {
                Deferred::Begin(key) => self.drive_script(key, context, |active, now, commands| {
                    let state = &mut active.state;
                    let counters = active.plan.server_counters(state.endpoint);
                    counters.began(state.queue);
                    let arrival = Arrival {
                        endpoint: state.endpoint,
                        trace: state.trace,
                        span: state.span,
                        came: state.started,
                        now: now.max(state.started),
                        deadline: state.deadline,
                    };
                    let request = &mut state.request;
                    request.begin(&active.plan.program, &arrival, commands);
                }),
                Deferred::Ended(key, operation_id, outcome) => {
                    self.drive_script(key, context, |active, now, commands| {
                        let state = &mut active.state;
                        state.close(operation_id);
                        let (request, program) = (&mut state.request, &active.plan.program);
                        request.ended(program, operation_id, outcome, now, commands);
                    });
                }
                Deferred::Expired(key) => {
                    self.drive_script(key, context, |active, now, commands| {
                        let request = &mut active.state.request;
                        request.expired(&active.plan.program, now, commands);
                    })
                }
                Deferred::Sent(key) => {
                    if let Some(mut active) = context.active_requests.take(key) {
                        let (_, cause) = active.state.answer.unwrap_or_default();
                        context.recordings.conclude(&mut active, cause, context.now);
                        context.active_requests.put(active);
                    }
                }
                Deferred::Resume(key) => self.sessions.resume(key, context),
                Deferred::Dispatch(pool) => self.calls.dispatch(pool, context),
                Deferred::Retry => self.calls.retry(context),
                Deferred::Http2Caller(key) => self.http2_callers.drive(key, false, context),
                Deferred::Channel(key) => self.calls.drive_channel(key, context),
                Deferred::Abandon(key, cause) => self.abandon(key, cause, false, context),
            }
        }
    }

    /// When to [`Requests::expire`] next.
    pub(super) fn next_deadline(&self, context: &Context) -> Nanos {
        let callers = self
            .sessions
            .next_deadline()
            .min(self.http2_callers.next_deadline());
        let waits = context.active_requests.next_deadline();
        callers.min(self.calls.next_deadline()).min(waits)
    }

    /// Handles what has run out.
    pub(super) fn expire(&mut self, context: &mut Context) {
        while self.sessions.expire(context)
            || self.calls.expire(context)
            || self.http2_callers.expire(context)
            || self.wait_expired(context)
        {
            self.settle(context);
        }
    }

    /// The end: what is on its way is cut off.
    pub(super) fn end(&mut self, context: &mut Context) {
        for key in context.active_requests.keys() {
            self.abandon(key, "stopped", true, context);
        }
        self.calls.end(context);
        self.http2_callers.end(context);
        self.sessions.end(context);
    }

    /// Drives the script of a request, and does what it commands.
    fn drive_script(
        &mut self,
        key: Key,
        context: &mut Context,
        what: impl FnOnce(&mut ActiveRequest, Nanos, &mut Vec<Command>),
    ) {
        let Some(mut active) = context.active_requests.take(key) else {
            return;
        };
        let mut commands = mem::take(&mut self.commands);
        what(&mut active, context.now, &mut commands);
        self.carry_out(&mut active, &mut commands, context);
        self.commands = commands;
        context.active_requests.put(active);
    }

    /// Does what a script commands. Calls go out before own work holds this thread up.
    fn carry_out(
        &mut self,
        active: &mut ActiveRequest,
        commands: &mut Vec<Command>,
        context: &mut Context,
    ) {
        for command in &*commands {
            match *command {
                Command::Call { .. } => self.calls.call(active, command, context),
                Command::Wait {
                    operation_id,
                    since,
                    until,
                    step,
                    span,
                } => {
                    let what =
                        step.map_or(OpenKind::Pause, |step| OpenKind::Sleep(step, span, since));
                    let open = Open {
                        operation_id,
                        what,
                        until,
                    };
                    context.active_requests.wait(active, open);
                }
                Command::Work { .. } | Command::Answer { .. } | Command::Drop => {}
            }
        }
        for command in commands.drain(..) {
            match command {
                Command::Call { .. } | Command::Wait { .. } => {}
                Command::Work { .. } => self.jobs.work(active, &command, context),
                Command::Answer {
                    status,
                    bytes,
                    failure,
                } => {
                    let reply = Reply::new(active, status, bytes, failure);
                    if active.state.stream.is_some() {
                        self.http2_callers.answer(active, reply, context);
                    } else {
                        self.sessions.answer(active, reply, context);
                    }
                }
                // A fault: the caller gets no answer.
                Command::Drop => {
                    active.state.answer = Some((0, failure::FAULT));
                    self.sessions.drop(&active.state, context);
                    self.http2_callers.drop(&active.state, context);
                    let recordings = &mut context.recordings;
                    recordings.conclude(active, failure::FAULT, context.now);
                }
            }
        }
    }

    /// The time of something that a request waits for has come; `false`: of nothing.
    fn wait_expired(&mut self, context: &mut Context) -> bool {
        let Some(mut active) = context.active_requests.take_late(context.now) else {
            return false;
        };
        while let Some(Open {
            operation_id, what, ..
        }) = active.state.due(context.now)
        {
            match what {
                OpenKind::Sleep(step, span, since) => {
                    if let Some(work) = active.plan.work(step) {
                        let mut piece = Piece::new(span, since, since);
                        piece.ended = context.now;
                        context.recordings.work(&active, work, &piece);
                    }
                }
                OpenKind::Queued(pool) => {
                    if let Some(attempt) = Calls::leave_queue(pool, &active, operation_id, context)
                    {
                        context.unanswered(&mut active, &attempt, failure::TIMEOUT);
                    }
                    continue;
                }
                // The others do not end by time, but for pauses.
                _ => {}
            }
            context.ended(active.key, operation_id, Outcome::Done);
        }
        context.active_requests.put_until_next(active);
        true
    }

    /// A request is of no use to anybody: what it began is cut off, unless it was answered:
    /// then that goes on, but for the `end` of all.
    fn abandon(&mut self, key: Key, cause: &'static str, end: bool, context: &mut Context) {
        let Some(mut active) = context.active_requests.take(key) else {
            return;
        };
        let goes_on = active.state.answer.is_some() && !end;
        if !goes_on {
            for open in mem::take(&mut active.state.open) {
                if let OpenKind::Job(job) = open.what {
                    self.jobs.release(job);
                } else if let Some(attempt) = self.calls.give_up(&active, open, context) {
                    let recordings = &mut context.recordings;
                    recordings.call(&active, &attempt, 0, GONE, context.now);
                }
            }
        }
        if !active.state.concluded {
            context.recordings.conclude(&mut active, cause, context.now);
        }
        if goes_on {
            context.active_requests.put(active);
        } else {
            context.active_requests.forget(active);
        }
    }
}
