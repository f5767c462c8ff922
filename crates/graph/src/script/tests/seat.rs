//! One request whose shell is the test.

use std::sync::Arc;

use super::plan::{Plan, topology};
use crate::Nanos;
use crate::script::{Arrival, Command, Failure, Outcome, Program, Request, Ticket};
use crate::topology::{EdgeId, ServiceId, Step};
use traces::ids::Run;
use traces::{SpanId, TraceId};

/// A request and the time.
pub(super) struct Seat {
    pub(super) program: Arc<Program>,
    pub(super) request: Request,
    pub(super) now: Nanos,
}

impl Seat {
    /// Begins a request of a service with these steps, at time 0.
    pub(super) fn with(steps: Vec<Step>) -> (Self, Vec<Command>) {
        Self::of(Plan::new(steps), Nanos::MAX)
    }

    pub(super) fn of(plan: Plan, deadline: Nanos) -> (Self, Vec<Command>) {
        Self::number(plan, deadline, 0)
    }

    /// The request with a number.
    pub(super) fn number(plan: Plan, deadline: Nanos, number: u64) -> (Self, Vec<Command>) {
        let topology = topology(42, vec![plan]);
        let mut seat = Self {
            program: Program::compile(&topology, ServiceId(0)),
            request: Request::default(),
            now: 0,
        };
        let trace = TraceId::of_request(42, Run(0), number);
        let arrival = Arrival {
            endpoint: 0,
            trace,
            span: SpanId::default().child(trace, 0, 0),
            came: 0,
            now: 0,
            deadline,
        };
        let mut commands = Vec::new();
        seat.request.begin(&seat.program, &arrival, &mut commands);
        (seat, commands)
    }

    /// Says how something ended, now.
    pub(super) fn end(&mut self, ticket: Ticket, outcome: Outcome) -> Vec<Command> {
        let mut commands = Vec::new();
        self.request
            .ended(&self.program, ticket, outcome, self.now, &mut commands);
        commands
    }

    pub(super) fn answered(&mut self, ticket: Ticket, status: u16) -> Vec<Command> {
        self.end(ticket, Outcome::Answered(status))
    }

    pub(super) fn done(&mut self, ticket: Ticket) -> Vec<Command> {
        self.end(ticket, Outcome::Done)
    }

    pub(super) fn expire(&mut self) -> Vec<Command> {
        let mut commands = Vec::new();
        self.request.expired(&self.program, self.now, &mut commands);
        commands
    }
}

/// The answer of a request that went well.
pub(super) fn good() -> Vec<Command> {
    vec![Command::Answer {
        status: 200,
        bytes: 7,
        failure: None,
    }]
}

pub(super) fn failed(status: u16, edge: Option<u32>, cause: &'static str) -> Vec<Command> {
    let edge = edge.map(EdgeId);
    vec![Command::Answer {
        status,
        bytes: 0,
        failure: Some(Failure { edge, cause }),
    }]
}

/// The calls among commands: ticket and edge.
pub(super) fn calls(commands: &[Command]) -> Vec<(Ticket, u32)> {
    let call = |command: &Command| match command {
        Command::Call { ticket, edge, .. } => Some((*ticket, edge.0)),
        _ => None,
    };
    commands.iter().filter_map(call).collect()
}

/// The only call of the commands.
pub(super) fn one_call(commands: &[Command], to: u32) -> Ticket {
    let [Command::Call { ticket, edge, .. }] = commands else {
        panic!("not one call: {commands:?}");
    };
    assert_eq!(edge.0, to);
    *ticket
}

/// The only wait of the commands, and its end.
pub(super) fn one_wait(commands: &[Command]) -> (Ticket, Nanos) {
    let [Command::Wait { ticket, until, .. }] = commands else {
        panic!("not one wait: {commands:?}");
    };
    (*ticket, *until)
}

/// The only work of the commands, and its amounts.
pub(super) fn one_work(commands: &[Command]) -> (Ticket, f64, f64) {
    let [
        Command::Work {
            ticket,
            amount,
            second,
            ..
        },
    ] = commands
    else {
        panic!("not one piece of work: {commands:?}");
    };
    (*ticket, *amount, *second)
}
