//! The state of one request.

use super::turn::Turn;
use super::verdict::Failing;
use super::{Command, OperationId, Outcome, Program};
use crate::Nanos;
use crate::draw::Draws;
use traces::{SpanId, TraceId};

/// A request that came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Which endpoint its path has, by its place in the service. One that the service does
    /// not have is answered with 404.
    pub endpoint: usize,
    /// Of its context, or new.
    pub trace: TraceId,
    /// The server span; with the trace it decides every draw.
    pub span: SpanId,
    /// When its first byte came. The least latency of an endpoint counts from then.
    pub came: Nanos,
    /// When it is begun: later than it came, if it waited for the thread.
    pub now: Nanos,
    /// When it must have been answered; `Nanos::MAX`: at any time.
    pub deadline: Nanos,
}

/// One request in one service. Its memory is used again by the next [`Request::begin`]:
/// once it has grown to what a program needs, a request allocates nothing.
///
/// `program` is the one that it began with, in all of its calls.
#[derive(Debug, Default)]
pub struct Request {
    pub(super) came: Nanos,
    pub(super) deadline: Nanos,
    pub(super) trace: TraceId,
    pub(super) span: SpanId,
    pub(super) draws: Draws,
    pub(super) endpoint: usize,
    /// Where the nodes of the endpoint begin.
    pub(super) root: usize,
    /// One for each node of the endpoint.
    pub(super) frames: Vec<Frame>,
    /// All that was commanded; an id is a place in it.
    pub(super) operations: Vec<Operation>,
    /// How many of those have not ended.
    pub(super) open: u32,
    /// Begun, and neither `Answer` nor `Drop` was commanded.
    pub(super) live: bool,
}

/// How far a node is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Frame {
    /// Its end is known; what still runs below goes on unseen.
    pub(super) over: bool,
    /// Branches, or repeats of a call, that have not ended.
    pub(super) running: u32,
    /// Steps, branches or repeats that ended well.
    pub(super) well: u32,
    /// Branches or repeats that failed.
    pub(super) failed: u32,
    /// How the first of those did.
    pub(super) failure: Option<Failing>,
}

/// Something commanded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    pub(super) purpose: Purpose,
    pub(super) ended: bool,
}

/// What something was commanded for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    /// The delay of a fault.
    Delay,
    /// Holding back the answer.
    Hold,
    /// The work or the sleep of a node.
    Work(usize),
    /// An attempt.
    Attempt(Attempt),
    /// The pause before an attempt.
    Pause(Attempt),
}

/// One attempt of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt {
    pub(super) node: usize,
    /// Which of the repeats; counted from 0.
    pub(super) repeat: u32,
    /// Counted from 0.
    pub(super) number: u32,
    /// Bytes of the body.
    pub(super) bytes: u64,
    /// When no attempt of the repeat may run any more.
    pub(super) until: Nanos,
}

impl Request {
    /// Begins a request, whatever the memory held before.
    pub fn begin(&mut self, program: &Program, arrival: &Arrival, commands: &mut Vec<Command>) {
        self.reset();
        self.live = true;
        self.came = arrival.came;
        self.deadline = arrival.deadline;
        self.trace = arrival.trace;
        self.span = arrival.span;
        self.draws = Draws::new(program.seed, arrival.trace, arrival.span);
        self.endpoint = arrival.endpoint;
        if let Some(entry) = program.endpoints.get(arrival.endpoint) {
            self.root = entry.root;
            let nodes = program.nodes[entry.root].end - entry.root;
            self.frames.resize(nodes, Frame::default());
        }
        Turn::new(self, program, arrival.now, commands).arrive();
    }

    /// An operation has ended. One that is not open is ignored.
    pub fn ended(
        &mut self,
        program: &Program,
        operation_id: OperationId,
        outcome: Outcome,
        now: Nanos,
        commands: &mut Vec<Command>,
    ) {
        let Some(operation) = self.operations.get_mut(operation_id.0 as usize) else {
            return;
        };
        if std::mem::replace(&mut operation.ended, true) {
            return;
        }
        let purpose = operation.purpose;
        self.open -= 1;
        Turn::new(self, program, now, commands).finish_operation(purpose, outcome);
    }

    /// The deadline has come: answers 504 if nothing else was. Calls and sleeps end by
    /// themselves then; a shell that has work of the request in hand says it with this.
    pub fn expired(&mut self, program: &Program, now: Nanos, commands: &mut Vec<Command>) {
        if self.live && now >= self.deadline {
            Turn::new(self, program, now, commands).expire(None);
        }
    }

    /// Whether it was answered or dropped and nothing is open: it commands nothing more,
    /// and its memory is free.
    pub fn is_finished(&self) -> bool {
        !self.live && self.open == 0
    }

    /// Forgets the request and keeps the memory.
    pub fn reset(&mut self) {
        self.frames.clear();
        self.operations.clear();
        self.open = 0;
        self.live = false;
    }
}
