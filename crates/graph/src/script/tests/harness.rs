//! One request whose shell is the test.

use std::sync::Arc;

use super::plan::{Plan, topology};
use crate::Nanos;
use crate::script::{Arrival, Command, Failure, OperationId, Outcome, Program, Request};
use crate::topology::{EdgeId, ServiceId, Step};
use traces::ids::Run;
use traces::{SpanId, TraceId};

/// A request and the time.
pub(super) struct Harness {
    pub(super) program: Arc<Program>,
    pub(super) request: Request,
    pub(super) now: Nanos,
}

impl Harness {
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
        let mut harness = Self {
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
        harness
            .request
            .begin(&harness.program, &arrival, &mut commands);
        (harness, commands)
    }

    /// Says how something ended, now.
    pub(super) fn end(&mut self, operation_id: OperationId, outcome: Outcome) -> Vec<Command> {
        let mut commands = Vec::new();
        self.request.ended(
            &self.program,
            operation_id,
            outcome,
            self.now,
            &mut commands,
        );
        commands
    }

    pub(super) fn answered(&mut self, operation_id: OperationId, status: u16) -> Vec<Command> {
        self.end(operation_id, Outcome::Answered(status))
    }

    pub(super) fn done(&mut self, operation_id: OperationId) -> Vec<Command> {
        self.end(operation_id, Outcome::Done)
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

/// The calls among commands: operation and edge.
pub(super) fn calls(commands: &[Command]) -> Vec<(OperationId, u32)> {
    let call = |command: &Command| match command {
        Command::Call {
            operation_id, edge, ..
        } => Some((*operation_id, edge.0)),
        _ => None,
    };
    commands.iter().filter_map(call).collect()
}

/// The only call of the commands.
pub(super) fn one_call(commands: &[Command], to: u32) -> OperationId {
    let [
        Command::Call {
            operation_id, edge, ..
        },
    ] = commands
    else {
        panic!("not one call: {commands:?}");
    };
    assert_eq!(edge.0, to);
    *operation_id
}

/// The only wait of the commands, and its end.
pub(super) fn one_wait(commands: &[Command]) -> (OperationId, Nanos) {
    let [
        Command::Wait {
            operation_id,
            until,
            ..
        },
    ] = commands
    else {
        panic!("not one wait: {commands:?}");
    };
    (*operation_id, *until)
}

/// The only work of the commands, and its amounts.
pub(super) fn one_work(commands: &[Command]) -> (OperationId, f64, f64) {
    let [
        Command::Work {
            operation_id,
            amount,
            second,
            ..
        },
    ] = commands
    else {
        panic!("not one piece of work: {commands:?}");
    };
    (*operation_id, *amount, *second)
}
