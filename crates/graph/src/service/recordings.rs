//! What is counted and recorded of requests, calls and work.

use std::sync::Arc;

use super::plan::{Plan, WorkPlan};
use super::request_state::{ActiveRequest, Attempt, RequestState};
use crate::Nanos;
use crate::trace::Recorder;
use traces::SpanId;
use traces::failure;
use traces::names::cut;
use traces::{Name, Span, SpanKind};

/// The cause of what was cut off since its caller went.
pub(super) const GONE: &str = "gone";

/// How a piece of work went.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) span: SpanId,
    /// When it was wanted, begun and ended.
    pub(super) wanted: Nanos,
    pub(super) begun: Nanos,
    pub(super) ended: Nanos,
    pub(super) cpu: Nanos,
    /// What others took of the processor.
    pub(super) stolen: Nanos,
    /// Why it was not done, if it was not.
    pub(super) cause: &'static str,
}

impl Piece {
    /// One that took no time so far.
    pub(super) fn new(span: SpanId, wanted: Nanos, begun: Nanos) -> Self {
        Self {
            span,
            wanted,
            begun,
            ended: begun,
            cpu: 0,
            stolen: 0,
            cause: "",
        }
    }
}

/// Where requests, calls and work are recorded, beside the counters of their plans.
pub(super) struct Recordings(pub(super) Recorder);

impl Recordings {
    /// A request is answered, or never will be.
    pub(super) fn conclude(&mut self, active: &mut ActiveRequest, why: &'static str, now: Nanos) {
        let (plan, state) = (&active.plan, &mut active.state);
        state.concluded = true;
        state.session = None;
        state.stream = None;
        let status = state.answer.map_or(0, |(status, _)| status);
        let counters = plan.server_counters(state.endpoint);
        let end = now.max(state.started);
        match status {
            0 => counters.dropped(),
            status => counters.answered(status, end - state.started),
        }
        if !why.is_empty() {
            counters.failed(why);
        }
        if !state.sampled {
            return;
        }
        let (name, peer) = (path(state, plan), &plan.nobody);
        self.0.record(Span {
            id: state.span,
            parent: state.parent,
            start: state.started,
            end,
            queue: state.queue,
            status,
            cause: why,
            ..span(state, plan, SpanKind::Server, name, peer)
        });
    }

    /// An attempt of a call has ended; status 0: without an answer.
    pub(super) fn call(
        &mut self,
        active: &ActiveRequest,
        attempt: &Attempt,
        status: u16,
        why: &'static str,
        now: Nanos,
    ) {
        let (plan, state) = (&active.plan, &active.state);
        let Some(call) = plan.call(attempt.step) else {
            return;
        };
        let end = now.max(attempt.wanted);
        // One that was never sent waited all the time.
        let begun = if attempt.sent == 0 { end } else { attempt.sent };
        let queue = begun.min(end).saturating_sub(attempt.wanted);
        let why = match why {
            "" if status >= 400 => failure::STATUS,
            why => why,
        };
        call.counters.ended(status, end - attempt.wanted, queue);
        if !why.is_empty() {
            call.counters.failed(why);
        }
        if !state.sampled {
            return;
        }
        let own = call.path.clone();
        let name = own.unwrap_or_else(|| path(state, plan));
        self.0.record(Span {
            id: attempt.span,
            start: attempt.wanted,
            end,
            queue,
            status,
            attempt: attempt.number,
            cause: why,
            ..span(state, plan, SpanKind::Client, name, &call.peer)
        });
    }

    /// A piece of work has ended.
    pub(super) fn work(&mut self, active: &ActiveRequest, work: &WorkPlan, piece: &Piece) {
        let (plan, state) = (&active.plan, &active.state);
        let queue = piece.begun.saturating_sub(piece.wanted);
        if piece.cause.is_empty() {
            let wall = piece.ended.saturating_sub(piece.begun);
            work.counters.done(wall, piece.cpu, piece.stolen, queue);
        } else {
            work.counters.failed(piece.cause);
        }
        if !state.sampled {
            return;
        }
        let (name, peer) = (Arc::clone(&work.name), &plan.nobody);
        self.0.record(Span {
            id: piece.span,
            start: piece.wanted,
            end: piece.ended.max(piece.wanted),
            cpu: piece.cpu,
            queue,
            cause: piece.cause,
            ..span(state, plan, SpanKind::Work, name, peer)
        });
    }
}

/// The path of a request, as the graph names it, or else as it was asked for.
fn path(state: &RequestState, plan: &Plan) -> Name {
    match plan.endpoint(state.endpoint) {
        Some(endpoint) if !endpoint.any => Arc::clone(&endpoint.path),
        _ => Name::from(cut(&String::from_utf8_lossy(&state.path))),
    }
}

/// A span within a request, without times and with nothing to tell.
fn span(state: &RequestState, plan: &Plan, kind: SpanKind, name: Name, peer: &Name) -> Span {
    let names = [Arc::clone(&plan.name), name, Arc::clone(peer)];
    Span {
        id: state.span,
        parent: state.span,
        revision: plan.revision,
        ..Span::blank(state.trace, kind, names)
    }
}
