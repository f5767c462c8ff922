//! Why time passes.

use serde::Serialize;

use crate::Span;
use crate::failure;

/// What a stretch of a request's critical path was spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Processor time of work that was asked for.
    Cpu,
    /// Work that could have run and did not: wall time less processor time. Others had the
    /// processor, or a limit held it back.
    Stolen,
    /// A sleep that was asked for, to its end.
    Sleep,
    /// Work that waits by its nature: for a lock, a disk, a program, and what it was held
    /// up meanwhile.
    Wait,
    /// In a queue: for a worker, for a connection, for the thread that reads requests.
    Queue,
    /// A request on its way: from the caller's wish, less the queue, to the callee's first
    /// look. Kernels, network, and the wake-up of the callee.
    WireOut,
    /// An answer on its way: until the caller has read it. Its wake-up is the caller's.
    WireBack,
    /// As the wire, but the caller's own work of a parallel branch ran meanwhile.
    Sibling,
    /// A pause before a call that failed was made again.
    Backoff,
    /// An attempt of a call that failed and was made again, with all that it began.
    Retry,
    /// The same of one that ran out of time.
    Timeout,
    /// The same of one whose connection ended without an answer.
    Drop,
    /// A call whose other end left no span.
    Unseen,
    /// Everything else in a service: handling, delays that a profile adds, and what internal
    /// spans of other systems took, which do not say what of.
    Own,
}

impl Cause {
    /// Every one, in the order of a report.
    pub const ALL: [Self; 14] = [
        Self::Cpu,
        Self::Stolen,
        Self::Sleep,
        Self::Wait,
        Self::Queue,
        Self::WireOut,
        Self::WireBack,
        Self::Sibling,
        Self::Backoff,
        Self::Retry,
        Self::Timeout,
        Self::Drop,
        Self::Unseen,
        Self::Own,
    ];

    /// As serialised.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Stolen => "stolen",
            Self::Sleep => "sleep",
            Self::Wait => "wait",
            Self::Queue => "queue",
            Self::WireOut => "wire-out",
            Self::WireBack => "wire-back",
            Self::Sibling => "sibling",
            Self::Backoff => "backoff",
            Self::Retry => "retry",
            Self::Timeout => "timeout",
            Self::Drop => "drop",
            Self::Unseen => "unseen",
            Self::Own => "own",
        }
    }

    /// Of a piece of work: what passed beside its processor time.
    pub(super) fn beside_cpu(work: &str) -> Self {
        match work {
            "sleep" => Self::Sleep,
            "lock" | "disk" => Self::Wait,
            "fork" | "stress-ng" | "stress-ng-background" | "stress-ng-status" => Self::Wait,
            "cpu" | "ops" | "primes" | "memory" => Self::Stolen,
            // An internal span of another system. It may compute, or wait for anything.
            _ => Self::Own,
        }
    }

    /// Why an attempt of a call that was made again had failed.
    pub(super) fn of_attempt(failed: &Span) -> Self {
        match (failed.cause, failed.status) {
            // The callee gave up just before its caller did.
            (failure::TIMEOUT, _) | (_, 504) => Self::Timeout,
            (failure::RESET, _) => Self::Drop,
            _ => Self::Retry,
        }
    }

    /// Whether work of this kind keeps a thread of its service, so that no answer is read.
    pub(super) fn keeps_thread(work: &str) -> bool {
        Self::beside_cpu(work) == Self::Stolen
    }
}
