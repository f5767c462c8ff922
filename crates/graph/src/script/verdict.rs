//! Which outcomes are failures, and what a request answers for them.

use traces::failure;

use super::{Failure, Outcome};
use crate::topology::EdgeId;

/// A failure, and the status that the request answers if it fails with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Failing {
    pub(super) status: u16,
    pub(super) failure: Failure,
}

impl Failing {
    pub(super) fn new(status: u16, edge: Option<EdgeId>, cause: &'static str) -> Self {
        let failure = Failure { edge, cause };
        Self { status, failure }
    }

    /// No time is left.
    pub(super) fn late(edge: Option<EdgeId>) -> Self {
        Self::new(504, edge, failure::TIMEOUT)
    }
}

/// How an attempt of a call failed; `None`: it did not.
pub(super) fn of_call(edge: EdgeId, outcome: Outcome) -> Option<Failing> {
    let (status, cause) = match outcome {
        Outcome::Answered(200..=399) | Outcome::Done => return None,
        Outcome::Answered(504) => (504, failure::STATUS),
        Outcome::Answered(_) => (502, failure::STATUS),
        Outcome::Unanswered(cause) | Outcome::Failed(cause) => (unanswered(cause), cause),
    };
    Some(Failing::new(status, Some(edge), cause))
}

fn unanswered(cause: &str) -> u16 {
    match cause {
        failure::TIMEOUT => 504,
        failure::FULL => 503,
        _ => 502,
    }
}

/// Whether another attempt may go better: there was no answer, or the callee failed. A
/// status below 500 says that the request itself is wrong.
pub(super) fn may_improve(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Answered(status) => status >= 500,
        Outcome::Unanswered(_) | Outcome::Failed(_) => true,
        Outcome::Done => false,
    }
}

/// How own work failed; `None`: it did not.
pub(super) fn of_work(outcome: Outcome) -> Option<Failing> {
    let (status, cause) = match outcome {
        Outcome::Done | Outcome::Answered(_) => return None,
        Outcome::Failed(failure::FULL) | Outcome::Unanswered(failure::FULL) => (503, failure::FULL),
        Outcome::Failed(failure::TIMEOUT) => (504, failure::TIMEOUT),
        Outcome::Failed(cause) | Outcome::Unanswered(cause) => (500, cause),
    };
    Some(Failing::new(status, None, cause))
}
