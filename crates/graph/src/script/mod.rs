//! The life of one request in one service, as a pure state machine.
//!
//! A shell feeds it what ended; it says what to do next. It knows no socket, no thread
//! and no clock.
//!
//! ```text
//! begin ──▶ commands ──▶ shell ──▶ ended(ticket, outcome) ──▶ commands … ──▶ Answer
//! ```

use crate::Nanos;
use crate::draw::SpanId;
use crate::topology::{EdgeId, StepId};

/// Names something that was commanded and has not ended. Unique within a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u32);

/// What the shell shall do.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Make one attempt of a call.
    Call {
        /// To be told when it ended.
        ticket: Ticket,
        /// Whose connections to use.
        edge: EdgeId,
        /// The step.
        step: StepId,
        /// Bytes of the request's body.
        bytes: u64,
        /// When the attempt is given up.
        deadline: Nanos,
        /// Counted from 0.
        attempt: u8,
        /// The client span of the attempt; its id crosses the wire.
        span: SpanId,
    },
    /// Do work.
    Work {
        /// To be told when it ended.
        ticket: Ticket,
        /// The step, which says what kind of work it is.
        step: StepId,
        /// How much, in the unit of the work's first amount (`Disk`: bytes read).
        amount: f64,
        /// `Disk`: bytes written. Otherwise 0.
        second: f64,
        /// The span of the work.
        span: SpanId,
    },
    /// Say when a time has come.
    Wait {
        /// To be told then, as done.
        ticket: Ticket,
        /// When.
        until: Nanos,
        /// The step, for a sleep; `None`: a pause between attempts, a held back answer.
        step: Option<StepId>,
        /// The span of a sleep.
        span: SpanId,
    },
    /// Answer, and forget the request. What still runs is not told of any more.
    Answer {
        /// HTTP's status.
        status: u16,
        /// Bytes of the body (`Response::Bytes`).
        bytes: u64,
        /// Why it is not 200.
        failure: Option<Failure>,
    },
    /// Close the connection without an answer.
    Drop,
}

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// The edge whose call failed; `None`: this service itself.
    pub edge: Option<EdgeId>,
    /// In a word: `timeout`, `refused`, `status`, `fault`, `work`, …
    pub cause: &'static str,
}

/// How something commanded ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A call was answered with this status.
    Answered(u16),
    /// A call got no answer: why.
    Unanswered(&'static str),
    /// Work or a wait is done.
    Done,
    /// Work failed, or no worker could take it: why.
    Failed(&'static str),
}
