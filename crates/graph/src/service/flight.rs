//! A request in hand.

use std::sync::Arc;

use wire::deadlines::NEVER;
use wire::http2::StreamKey;
use wire::slab::Key;

use super::plan::Plan;
use crate::Nanos;
use crate::script::{Request, Ticket};
use crate::topology::{EdgeId, Protocol, StepId};
use traces::{SpanId, TraceId};

/// Most bytes of the bodies of its calls that an answer repeats; the rest is left out.
pub(super) const MOST_ECHO: usize = 64 * 1024;
/// Bytes of memory that a request leaves to the next one, for each of its parts.
const KEEP: usize = 4 * 1024;

/// A request in hand: from its head to the end of all that it began.
#[derive(Default)]
pub(super) struct Flight {
    /// Place of the instance in its thread.
    pub(super) instance: usize,
    /// Set from its head on.
    pub(super) plan: Option<Arc<Plan>>,
    /// The caller's connection, until the answer is sent.
    pub(super) session: Option<Key>,
    /// The caller's connection of HTTP/2 and the stream there, in place of a session.
    pub(super) stream: Option<(Key, StreamKey)>,
    /// What the caller speaks.
    pub(super) protocol: Protocol,
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
    pub(super) ticket: Ticket,
    pub(super) what: What,
    /// When it ends by time; what else ends it is told otherwise.
    pub(super) until: Nanos,
}

impl Open {
    pub(super) fn new(ticket: Ticket, what: What) -> Self {
        Self::until(ticket, what, NEVER)
    }

    pub(super) fn until(ticket: Ticket, what: What, until: Nanos) -> Self {
        Self {
            ticket,
            what,
            until,
        }
    }
}

/// What it is.
#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    /// A call over this connection.
    Call(Key),
    /// A call over this connection of HTTP/2.
    Stream(Key),
    /// A call that waits for a connection, at a callee's slot and instance.
    Queued(usize, usize),
    /// Work in hand, by its job.
    Job(Key),
    /// A sleep, since then.
    Sleep(StepId, SpanId, Nanos),
    /// A pause between attempts, or before an answer.
    Pause,
}

/// The body of a call's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Part {
    pub(super) step: StepId,
    pub(super) ticket: Ticket,
    /// Where it lies.
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Flight {
    /// Makes it ready for another request; memory that has grown much is given back.
    pub(super) fn clear(&mut self) {
        self.plan = None;
        self.session = None;
        self.stream = None;
        self.protocol = Protocol::Http1;
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

    /// Takes out what a ticket stands for.
    pub(super) fn close(&mut self, ticket: Ticket) -> Option<What> {
        let place = self.open.iter().position(|open| open.ticket == ticket)?;
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
    pub(super) fn keep(&mut self, step: StepId, ticket: Ticket, body: &[u8]) {
        let room = MOST_ECHO.saturating_sub(self.echo.len());
        let start = self.echo.len();
        self.echo
            .extend_from_slice(body.get(..room).unwrap_or(body));
        let end = self.echo.len();
        self.parts.push(Part {
            step,
            ticket,
            start,
            end,
        });
    }
}
