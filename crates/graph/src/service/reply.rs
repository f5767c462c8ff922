//! What is said to a caller, whatever it speaks.

use std::mem;

use super::plan::Plan;
use super::request_state::{ActiveRequest, RequestState};
use crate::script::Failure;

/// An answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reply {
    pub(super) status: u16,
    /// Why it is no success, in a word.
    pub(super) cause: &'static str,
    body: Body,
}

/// What stands in the body.
#[derive(Debug, Clone, Copy)]
enum Body {
    Bytes(u64),
    Failure,
    Echo,
}

impl Reply {
    /// The answer to a request, which keeps what belongs to it.
    pub(super) fn new(
        active: &mut ActiveRequest,
        status: u16,
        bytes: u64,
        failure: Option<Failure>,
    ) -> Self {
        let body = match failure {
            Some(_) => Body::Failure,
            None if active.echoes() => Body::Echo,
            None => Body::Bytes(bytes),
        };
        let (plan, state) = (&active.plan, &mut active.state);
        let cause = failure.map_or("", |failure| failure.cause);
        state.answer = Some((status, cause));
        if let Some(failure) = failure
            && (state.failed.is_empty() || state.failed_edge != failure.edge)
        {
            state.failed.clear();
            match failure.edge {
                Some(edge) => plan.write_edge(edge, &mut state.failed),
                None => state.failed.extend_from_slice(plan.name.as_bytes()),
            }
            state.failed.push(b' ');
            state.failed.extend_from_slice(failure.cause.as_bytes());
        }
        let own = failure.filter(|failure| failure.edge.is_none());
        state.why = mem::take(&mut state.why)
            .filter(|(cause, _)| own.is_some_and(|own| own.cause == *cause));
        Self {
            status,
            cause,
            body,
        }
    }

    /// Which edge failed, and why.
    pub(super) fn failed(self, state: &RequestState) -> Option<&[u8]> {
        matches!(self.body, Body::Failure).then_some(&state.failed)
    }

    /// Writes the text of the body; gives how many bytes without meaning come behind it.
    pub(super) fn write(self, active: &mut ActiveRequest, out: &mut Vec<u8>) -> u64 {
        let state = &mut active.state;
        match self.body {
            Body::Bytes(bytes) => return bytes,
            Body::Failure => write_failure(state, out),
            Body::Echo => write_echo(state, &active.plan, out),
        }
        0
    }

    /// The length of the body.
    pub(super) fn length(self, active: &ActiveRequest) -> u64 {
        let state = &active.state;
        let length = match self.body {
            Body::Bytes(bytes) => return bytes,
            Body::Failure => {
                let why = state.why.as_ref().map_or(0, |(_, why)| why.len() + 1);
                state.failed.len() + 1 + why
            }
            Body::Echo => {
                let own = "hello:".len() + active.plan.name.len() + ":".len() + state.path.len();
                state.prefix.len() + own + state.parts.len() + state.echo.len()
            }
        };
        length as u64
    }
}

/// Writes where a failure began and its cause, and in a second line what is known of it.
fn write_failure(state: &RequestState, out: &mut Vec<u8>) {
    out.extend_from_slice(&state.failed);
    out.push(b'\n');
    if let Some((_, why)) = &state.why {
        out.extend_from_slice(why.as_bytes());
        out.push(b'\n');
    }
}

/// Writes testapi's body: `hello:SERVICE:PATH`, and behind a colon each the bodies of the
/// calls in the order of their steps.
fn write_echo(state: &mut RequestState, plan: &Plan, out: &mut Vec<u8>) {
    out.extend_from_slice(&state.prefix);
    out.extend_from_slice(b"hello:");
    out.extend_from_slice(plan.name.as_bytes());
    out.push(b':');
    out.extend_from_slice(&state.path);
    state.parts.sort_unstable();
    for part in &state.parts {
        out.push(b':');
        let body = state.echo.get(part.start..part.end);
        out.extend_from_slice(body.unwrap_or_default());
    }
}
