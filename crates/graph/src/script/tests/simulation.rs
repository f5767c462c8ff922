//! Whole graphs in virtual time: a shell that hands requests from service to service.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use stats::SplitMix;

use traces::failure;

use crate::Nanos;
use crate::script::{Arrival, Command, Failure, OperationId, Outcome, Program, Request};
use crate::topology::{ServiceId, Topology, Work};
use traces::ids::Run;
use traces::{SpanId, TraceId};

/// A call that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Made {
    pub(super) trace: TraceId,
    pub(super) span: SpanId,
    pub(super) to: ServiceId,
}

/// How a request of a client ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) number: u64,
    pub(super) status: u16,
    pub(super) failure: Option<Failure>,
    pub(super) latency: Nanos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Begin(usize),
    Expire(usize),
    /// Something that an instance commanded has ended. 0: no answer in time.
    Answered(usize, OperationId, u16),
    Done(usize, OperationId),
}

struct Instance {
    service: ServiceId,
    request: Request,
    arrival: Arrival,
    /// Who called; `None`: a client, whose request has a number.
    caller: Result<(usize, OperationId), u64>,
}

/// A graph that runs.
pub(super) struct Simulation {
    seed: u64,
    entry: ServiceId,
    programs: Vec<Arc<Program>>,
    random: SplitMix,
    /// The longest way of a message; each takes a random part of it.
    wire: Nanos,
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    instances: Vec<Instance>,
    now: Nanos,
    next: u64,
    total: u64,
    pub(super) made: Vec<Made>,
    pub(super) ended: Vec<Ended>,
}

impl Simulation {
    pub(super) fn new(topology: &Topology, order: u64, wire: Nanos) -> Self {
        let ids = (0..u32::try_from(topology.services.len()).unwrap()).map(ServiceId);
        Self {
            seed: topology.seed,
            entry: topology.entry,
            programs: ids.map(|id| Program::compile(topology, id)).collect(),
            random: SplitMix::new(order),
            wire,
            events: BinaryHeap::new(),
            instances: Vec::new(),
            now: 0,
            next: 0,
            total: 0,
            made: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// So many requests of clients, `concurrency` of them at once.
    pub(super) fn run(mut self, total: u64, concurrency: u64) -> Self {
        self.total = total;
        for _ in 0..concurrency {
            self.client();
        }
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            self.now = at;
            self.happen(event);
        }
        assert!(self.instances.iter().all(|one| one.request.is_finished()));
        self
    }

    /// The next request of a client, if there is one.
    fn client(&mut self) {
        if self.next < self.total {
            let trace = TraceId::of_request(self.seed, Run(0), self.next);
            self.send(
                self.entry,
                trace,
                SpanId::default(),
                Nanos::MAX,
                Err(self.next),
            );
            self.next += 1;
        }
    }

    fn send(
        &mut self,
        service: ServiceId,
        trace: TraceId,
        parent: SpanId,
        deadline: Nanos,
        caller: Result<(usize, OperationId), u64>,
    ) {
        let at = self.now + self.way();
        let arrival = Arrival {
            endpoint: 0,
            trace,
            span: parent.child(trace, 0, 0),
            came: at,
            now: at,
            deadline,
        };
        self.instances.push(Instance {
            service,
            request: Request::default(),
            arrival,
            caller,
        });
        let instance = self.instances.len() - 1;
        self.after(at, Event::Begin(instance));
        if deadline < Nanos::MAX {
            self.after(at.max(deadline), Event::Expire(instance));
        }
    }

    fn way(&mut self) -> Nanos {
        (self.random.uniform() * self.wire as f64) as Nanos
    }

    /// What happens at the same time happens in any order.
    fn after(&mut self, at: Nanos, event: Event) {
        let order = (self.random.uniform() * 1e9) as u64;
        self.events.push(Reverse((at, order, event)));
    }

    fn happen(&mut self, event: Event) {
        let (Event::Begin(at) | Event::Expire(at) | Event::Answered(at, ..) | Event::Done(at, _)) =
            event;
        let mut commands = Vec::new();
        let now = self.now;
        let one = &mut self.instances[at];
        let program = &self.programs[one.service.0 as usize];
        let request = &mut one.request;
        match event {
            Event::Begin(_) => request.begin(program, &one.arrival, &mut commands),
            Event::Expire(_) => request.expired(program, now, &mut commands),
            Event::Answered(_, operation_id, status) => {
                let outcome = match status {
                    0 => Outcome::Unanswered(failure::TIMEOUT),
                    status => Outcome::Answered(status),
                };
                request.ended(program, operation_id, outcome, now, &mut commands);
            }
            Event::Done(_, operation_id) => {
                request.ended(program, operation_id, Outcome::Done, now, &mut commands);
            }
        }
        for command in commands {
            self.perform(at, command);
        }
    }

    fn perform(&mut self, at: usize, command: Command) {
        let Instance {
            service,
            arrival,
            caller,
            ..
        } = self.instances[at];
        match command {
            Command::Call {
                operation_id,
                edge,
                deadline,
                span,
                ..
            } => {
                let (trace, to) = (arrival.trace, ServiceId(edge.0));
                self.made.push(Made { trace, span, to });
                self.send(to, trace, span, deadline, Ok((at, operation_id)));
                self.after(deadline, Event::Answered(at, operation_id, 0));
            }
            Command::Work {
                operation_id,
                step,
                amount,
                ..
            } => {
                let work = self.programs[service.0 as usize].work(step);
                assert!(matches!(work, Some(Work::Cpu(_))), "{work:?}");
                self.after(self.now + amount as Nanos, Event::Done(at, operation_id));
            }
            Command::Wait {
                operation_id,
                until,
                ..
            } => self.after(until, Event::Done(at, operation_id)),
            Command::Answer {
                status, failure, ..
            } => match caller {
                Ok((caller, operation_id)) => {
                    let there = self.now + self.way();
                    self.after(there, Event::Answered(caller, operation_id, status));
                }
                Err(number) => {
                    let latency = self.now - arrival.now;
                    self.ended.push(Ended {
                        number,
                        status,
                        failure,
                        latency,
                    });
                    self.client();
                }
            },
            Command::Drop => panic!("no test of graphs drops"),
        }
    }
}
