//! A request in hand, and the attempts of its calls.

use std::sync::Arc;

use wire::deadlines::NEVER;
use wire::http2::StreamKey;
use wire::slab::Key;

use super::plan::Plan;
use crate::Nanos;
use crate::script::{OperationId, Request};
use crate::topology::{EdgeId, StepId};
use traces::context::Outgoing;
use traces::{SpanId, TraceId};

/// Most bytes of the bodies of its calls that an answer repeats; the rest is left out.
pub(super) const MOST_ECHO: usize = 64 * 1024;
/// Bytes of memory that a request leaves to the next one, for each of its parts.
const KEEP: usize = 4 * 1024;

/// A request in hand with what its instance does under the revision that it runs under.
pub(super) struct ActiveRequest {
    pub(super) key: Key,
    pub(super) plan: Arc<Plan>,
    pub(super) state: Box<RequestState>,
}

impl ActiveRequest {
    /// Whether the answer repeats the bodies of its calls.
    pub(super) fn echoes(&self) -> bool {
        let endpoint = self.plan.endpoint(self.state.endpoint);
        endpoint.is_some_and(|endpoint| endpoint.echo)
    }
}

/// A request in hand: from its head to the end of all that it began.
#[derive(Default)]
pub(super) struct RequestState {
    /// Place of the instance in its thread.
    pub(super) instance: usize,
    /// The caller's connection, until the answer is sent.
    pub(super) session: Option<Key>,
    /// The caller's connection of HTTP/2 and the stream there, in place of a session.
    pub(super) stream: Option<(Key, StreamKey)>,
    pub(super) request: Request,
    /// What it waits for.
    pub(super) open: Vec<Open>,
    pub(super) endpoint: usize,
    /// As it was asked for, without the query.
    pub(super) path: Vec<u8>,
    /// The method is HEAD.
    pub(super) bodiless: bool,
    pub(super) keep_alive: bool,
    /// `HTTP/1.0`, which must be told that the connection goes on.
    pub(super) old: bool,
    pub(super) trace: TraceId,
    /// The server span.
    pub(super) span: SpanId,
    pub(super) parent: SpanId,
    pub(super) sampled: bool,
    pub(super) debug: bool,
    /// Field lines that go along with calls.
    pub(super) passed: Vec<u8>,
    /// When the kernel told of its first byte, and how long it was not looked at then.
    pub(super) started: Nanos,
    pub(super) queue: Nanos,
    pub(super) deadline: Nanos,
    /// Bodies of calls, and whose they are.
    pub(super) echo: Vec<u8>,
    pub(super) parts: Vec<Part>,
    /// What stands before the rest of an echo.
    pub(super) prefix: Vec<u8>,
    /// What a callee said about its failure, and the edge to it.
    pub(super) failed: Vec<u8>,
    pub(super) failed_edge: Option<EdgeId>,
    /// Why own work was not done: the cause, and what the body says of it.
    pub(super) why: Option<(&'static str, String)>,
    /// Status and cause of the answer, while it is being sent.
    pub(super) answer: Option<(u16, &'static str)>,
    /// The server span is recorded.
    pub(super) concluded: bool,
}

/// Something that was commanded and has not ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    pub(super) operation_id: OperationId,
    pub(super) what: OpenKind,
    /// When it ends by time; what else ends it is told otherwise.
    pub(super) until: Nanos,
}

impl Open {
    /// Something that does not end by time.
    pub(super) fn new(operation_id: OperationId, what: OpenKind) -> Self {
        Self {
            operation_id,
            what,
            until: NEVER,
        }
    }
}

/// What it is.
#[derive(Debug, Clone, Copy)]
pub(super) enum OpenKind {
    /// A call over this connection.
    Call(Key),
    /// A call over this connection of HTTP/2.
    Stream(Key),
    /// A call that waits for a connection.
    Queued(PoolId),
    /// Work in hand, by its job.
    Job(Key),
    /// A sleep, since then.
    Sleep(StepId, SpanId, Nanos),
    /// A pause between attempts, or before an answer.
    Pause,
}

/// Which pool, and whose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PoolId {
    pub(super) instance: usize,
    pub(super) slot: usize,
    pub(super) place: usize,
}

/// One attempt of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt {
    pub(super) request: Key,
    /// Whose connections it goes over.
    pub(super) pool: PoolId,
    pub(super) operation_id: OperationId,
    pub(super) edge: EdgeId,
    pub(super) step: StepId,
    pub(super) bytes: u64,
    pub(super) deadline: Nanos,
    pub(super) number: u8,
    /// Not over a connection that was kept.
    pub(super) fresh: bool,
    pub(super) span: SpanId,
    /// When the step wanted it.
    pub(super) wanted: Nanos,
    /// When its first byte was sent.
    pub(super) sent: Nanos,
}

impl Attempt {
    /// Whether it is this operation of this request.
    pub(super) fn is(&self, request: Key, operation_id: OperationId) -> bool {
        self.request == request && self.operation_id == operation_id
    }

    /// The context that it carries.
    pub(super) fn context<'a>(&self, state: &'a RequestState) -> Outgoing<'a> {
        Outgoing {
            trace: state.trace,
            span: self.span,
            parent: state.span,
            sampled: state.sampled,
            debug: state.debug,
            passed: &state.passed,
        }
    }
}

/// The body of a call's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Part {
    pub(super) step: StepId,
    pub(super) operation_id: OperationId,
    /// Where it lies.
    pub(super) start: usize,
    pub(super) end: usize,
}

impl RequestState {
    /// Makes it ready for another request; memory that has grown much is given back.
    pub(super) fn clear(&mut self) {
        self.session = None;
        self.stream = None;
        self.request.reset();
        self.open.clear();
        self.parts.clear();
        for bytes in [
            &mut self.path,
            &mut self.passed,
            &mut self.echo,
            &mut self.prefix,
            &mut self.failed,
        ] {
            bytes.clear();
            bytes.shrink_to(KEEP);
        }
        self.failed_edge = None;
        self.why = None;
        self.answer = None;
        self.concluded = false;
    }

    /// Takes out an operation.
    pub(super) fn close(&mut self, operation_id: OperationId) -> Option<OpenKind> {
        let place = self
            .open
            .iter()
            .position(|open| open.operation_id == operation_id)?;
        Some(self.open.swap_remove(place).what)
    }

    /// Takes out something whose time has come.
    pub(super) fn due(&mut self, now: Nanos) -> Option<Open> {
        let place = self.open.iter().position(|open| open.until <= now)?;
        Some(self.open.swap_remove(place))
    }

    /// When the first thing ends that ends by time.
    pub(super) fn next(&self) -> Nanos {
        let ends = self.open.iter().map(|open| open.until);
        ends.min().unwrap_or(NEVER)
    }

    /// Keeps the body of a call's answer for the echo, as far as there is room.
    pub(super) fn keep(&mut self, step: StepId, operation_id: OperationId, body: &[u8]) {
        let room = MOST_ECHO.saturating_sub(self.echo.len());
        let start = self.echo.len();
        self.echo
            .extend_from_slice(body.get(..room).unwrap_or(body));
        let end = self.echo.len();
        self.parts.push(Part {
            step,
            operation_id,
            start,
            end,
        });
    }
}
