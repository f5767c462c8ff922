//! What is said to a caller, whatever it speaks.

use std::mem;

use super::flight::{Active, Flight};
use super::plan::Plan;
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
        active: &mut Active,
        status: u16,
        bytes: u64,
        failure: Option<Failure>,
    ) -> Self {
        let body = match failure {
            Some(_) => Body::Failure,
            None if active.echoes() => Body::Echo,
            None => Body::Bytes(bytes),
        };
        let (plan, flight) = (&active.plan, &mut active.flight);
        let cause = failure.map_or("", |failure| failure.cause);
        flight.answer = Some((status, cause));
        if let Some(failure) = failure
            && (flight.failed.is_empty() || flight.failed_edge != failure.edge)
        {
            flight.failed.clear();
            match failure.edge {
                Some(edge) => plan.write_edge(edge, &mut flight.failed),
                None => flight.failed.extend_from_slice(plan.name.as_bytes()),
            }
            flight.failed.push(b' ');
            flight.failed.extend_from_slice(failure.cause.as_bytes());
        }
        let own = failure.filter(|failure| failure.edge.is_none());
        flight.why = mem::take(&mut flight.why)
            .filter(|(cause, _)| own.is_some_and(|own| own.cause == *cause));
        Self {
            status,
            cause,
            body,
        }
    }

    /// Which edge failed, and why.
    pub(super) fn failed(self, flight: &Flight) -> Option<&[u8]> {
        matches!(self.body, Body::Failure).then_some(&flight.failed)
    }

    /// Writes the text of the body; gives how many bytes without meaning come behind it.
    pub(super) fn write(self, active: &mut Active, out: &mut Vec<u8>) -> u64 {
        let flight = &mut active.flight;
        match self.body {
            Body::Bytes(bytes) => return bytes,
            Body::Failure => write_failure(flight, out),
            Body::Echo => write_echo(flight, &active.plan, out),
        }
        0
    }

    /// The length of the body.
    pub(super) fn length(self, active: &Active) -> u64 {
        let flight = &active.flight;
        let length = match self.body {
            Body::Bytes(bytes) => return bytes,
            Body::Failure => {
                let why = flight.why.as_ref().map_or(0, |(_, why)| why.len() + 1);
                flight.failed.len() + 1 + why
            }
            Body::Echo => {
                let own = "hello:".len() + active.plan.name.len() + ":".len() + flight.path.len();
                flight.prefix.len() + own + flight.parts.len() + flight.echo.len()
            }
        };
        length as u64
    }
}

/// Writes where a failure began and its cause, and in a second line what is known of it.
fn write_failure(flight: &Flight, out: &mut Vec<u8>) {
    out.extend_from_slice(&flight.failed);
    out.push(b'\n');
    if let Some((_, why)) = &flight.why {
        out.extend_from_slice(why.as_bytes());
        out.push(b'\n');
    }
}

/// Writes testapi's body: `hello:SERVICE:PATH`, and behind a colon each the bodies of the
/// calls in the order of their steps.
fn write_echo(flight: &mut Flight, plan: &Plan, out: &mut Vec<u8>) {
    out.extend_from_slice(&flight.prefix);
    out.extend_from_slice(b"hello:");
    out.extend_from_slice(plan.name.as_bytes());
    out.push(b':');
    out.extend_from_slice(&flight.path);
    flight.parts.sort_unstable();
    for part in &flight.parts {
        out.push(b':');
        let body = flight.echo.get(part.start..part.end);
        out.extend_from_slice(body.unwrap_or_default());
    }
}
