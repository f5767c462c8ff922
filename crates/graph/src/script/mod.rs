//! The life of one request in one service, as a pure state machine.
//!
//! A shell feeds it what ended; it says what to do next. It knows no socket, no thread
//! and no clock.
//!
//! ```text
//! begin ──▶ commands ──▶ shell ──▶ ended(operation, outcome) ──▶ commands … ──▶ Answer
//! ```
//!
//! What a [`Request`] does, in words:
//!
//! - **Before its steps**: a delay of the service's faults, then its errors and drops.
//! - **Branches** of a parallel step begin in one batch of commands. When enough have ended,
//!   what still runs goes on unseen: it is told of, and nothing follows it.
//! - **Calls** are left out by chance, repeated all at once, tried again after a failure. A
//!   call that nobody waits for lives on after the answer, bounded by its own time alone.
//! - **Time**: what is left bounds all that is begun. From the deadline on nothing is, and
//!   the answer is 504. An answer that is ready early is held back to the endpoint's latency.
//! - **Failures** are never 200: see [`Failure`]. A failed answer is not held back.

mod calls;
mod drawing;
mod program;
mod request;
mod turn;
mod verdict;

#[cfg(test)]
mod tests;

pub use program::Program;
pub use request::{Arrival, Request};

use crate::Nanos;
use crate::topology::{EdgeId, StepId};
use traces::SpanId;

/// Names something that was commanded and has not ended. Unique within a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId(pub u32);

/// What the shell shall do.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Make one attempt of a call.
    Call {
        /// To be told when it ended.
        operation_id: OperationId,
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
        operation_id: OperationId,
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
        operation_id: OperationId,
        /// Now.
        since: Nanos,
        /// When.
        until: Nanos,
        /// The step, for a sleep; `None`: a pause between attempts, a held back answer.
        step: Option<StepId>,
        /// The span of a sleep.
        span: SpanId,
    },
    /// Answer. What still runs is told of as before, until [`Request::is_finished`]: a call
    /// that nobody waits for may have another attempt.
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
///
/// | what failed | status |
/// |---|---|
/// | a call timed out, or its callee says so (504); no time is left | 504 |
/// | a call got no answer, or one outside 200 to 399 | 502 |
/// | no room to wait: for a connection, for a worker | 503 |
/// | own work | 500 |
/// | an injected fault | that of [`crate::topology::Faults`] |
/// | no such endpoint | 404 |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// The edge whose call failed; `None`: this service itself.
    pub edge: Option<EdgeId>,
    /// In a word: one of [`traces::failure`], or what the shell said.
    pub cause: &'static str,
}

/// Bounds of what a draw may ask for. A larger constant is cut as well.
pub mod bound {
    use crate::Nanos;

    /// Time that a step or a pause takes: an hour.
    pub const TIME: Nanos = 3_600_000_000_000;
    /// Bytes of a body, or of what a step reads or writes: 1 GiB.
    pub const BYTES: u64 = 1 << 30;
    /// Repeats of a call.
    pub const COUNT: u32 = 1000;
    /// Attempts of a call after its first.
    pub const RETRIES: u32 = 254;
    /// Operations, cache lines and whatever else is counted.
    pub const UNITS: u64 = 1 << 50;
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
