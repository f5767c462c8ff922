//! A graph in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use traces::failure;

use super::{BudgetError, Costs, MOST_CALLS};
use crate::Nanos;
use crate::metrics;
use crate::script::{Arrival, Command, OperationId, Outcome, Program, Request};
use crate::topology::{Connections, EdgeId, Service, ServiceId, StepId, Topology};
use traces::ids::Run;
use traces::{Name, Span, SpanKind};
use traces::{SpanId, TraceId};

/// Runs requests, one at a time, each from time 0 on.
pub struct Simulation<'a> {
    topology: &'a Topology,
    costs: &'a Costs,
    endpoint: usize,
    programs: Vec<Arc<Program>>,
    services: Vec<Name>,
    /// Of each service, for each endpoint.
    paths: Vec<Vec<Name>>,
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    /// Memory that later requests use again; those behind `used` are free.
    visits: Vec<Visit>,
    used: usize,
    trace: TraceId,
    order: u64,
    commands: Vec<Command>,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Simulated {
    /// HTTP's status; 0: the connection was closed without an answer.
    pub status: u16,
    /// What its client sees, with a hop.
    pub latency: Nanos,
    /// Calls that it made over all services.
    pub calls: usize,
}

impl Simulated {
    /// Whether it was answered as it should.
    pub fn succeeded(&self) -> bool {
        (200..400).contains(&self.status)
    }
}

/// A request in one service.
struct Visit {
    service: ServiceId,
    arrival: Arrival,
    /// Who called, and the span of the attempt.
    caller: Option<(usize, OperationId, SpanId)>,
    request: Request,
    /// Attempts, by the ids of their operations; those that have ended are gone.
    attempts: Vec<Option<Attempt>>,
}

/// An attempt of a call.
#[derive(Debug, Clone, Copy)]
struct Attempt {
    span: SpanId,
    edge: EdgeId,
    step: StepId,
    number: u8,
    begun: Nanos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Begin(usize),
    Expire(usize),
    Done(usize, OperationId),
    /// An answer, or `None`: there is none.
    Answered(usize, OperationId, Option<u16>),
    GivenUp(usize, OperationId),
}

impl<'a> Simulation<'a> {
    /// Prepares a graph whose requests enter at a path.
    ///
    /// # Errors
    /// The entry does not have the path.
    pub fn new(topology: &'a Topology, path: &str, costs: &'a Costs) -> Result<Self, BudgetError> {
        let entry = topology.service(topology.entry);
        let endpoint = entry.and_then(|entry| entry.endpoint(path));
        let Some((endpoint, _)) = endpoint else {
            let endpoints = entry.map_or(&[][..], |entry| &entry.endpoints);
            let known: Vec<&str> = endpoints.iter().map(|one| one.path.as_str()).collect();
            return Err(BudgetError::NoEndpoint {
                entry: entry.map_or(String::new(), |entry| entry.name.clone()),
                path: path.to_owned(),
                known: known.join(", "),
            });
        };
        let services = || topology.services.iter();
        let ids = (0..).map(ServiceId).take(topology.services.len());
        let paths = |service: &Service| {
            let endpoints = service.endpoints.iter();
            endpoints.map(|one| one.path.as_str().into()).collect()
        };
        Ok(Self {
            topology,
            costs,
            endpoint,
            programs: ids.map(|id| Program::compile(topology, id)).collect(),
            services: services().map(|one| one.name.as_str().into()).collect(),
            paths: services().map(paths).collect(),
            events: BinaryHeap::new(),
            visits: Vec::new(),
            used: 0,
            trace: TraceId::default(),
            order: 0,
            commands: Vec::new(),
        })
    }

    /// Runs the request with a number, counted from 0, to the end of all that it began.
    /// Its spans are added, those of each service as they end.
    ///
    /// # Errors
    /// It makes more than [`MOST_CALLS`] calls.
    pub fn request(
        &mut self,
        number: u64,
        spans: &mut Vec<Span>,
    ) -> Result<Simulated, BudgetError> {
        self.events.clear();
        self.used = 0;
        self.order = 0;
        self.trace = TraceId::of_request(self.topology.seed, Run::default(), number);
        let mut ended = Simulated {
            status: 0,
            latency: 0,
            calls: 0,
        };
        let entry = Arrival {
            endpoint: self.endpoint,
            trace: self.trace,
            span: SpanId::default().child(self.trace, 0, 0),
            came: 0,
            now: 0,
            deadline: Nanos::MAX,
        };
        self.visit(self.topology.entry, entry, None);
        while let Some(Reverse((now, _, event))) = self.events.pop() {
            self.happen(event, now, spans);
            let mut commands = std::mem::take(&mut self.commands);
            for command in commands.drain(..) {
                self.perform(event.visit(), &command, now, spans, &mut ended);
            }
            self.commands = commands;
            if self.used > MOST_CALLS {
                return Err(BudgetError::TooLarge { number });
            }
        }
        ended.calls = self.used - 1;
        Ok(ended)
    }

    fn at(&mut self, time: Nanos, event: Event) {
        self.order += 1;
        self.events.push(Reverse((time, self.order, event)));
    }

    fn visit(
        &mut self,
        service: ServiceId,
        arrival: Arrival,
        caller: Option<(usize, OperationId, SpanId)>,
    ) {
        if self.used == self.visits.len() {
            self.visits.push(Visit {
                service,
                arrival,
                caller,
                request: Request::default(),
                attempts: Vec::new(),
            });
        } else {
            let visit = &mut self.visits[self.used];
            (visit.service, visit.arrival, visit.caller) = (service, arrival, caller);
            visit.attempts.clear();
        }
        self.at(arrival.now, Event::Begin(self.used));
        if arrival.deadline < Nanos::MAX {
            let then = arrival.deadline.max(arrival.now);
            self.at(then, Event::Expire(self.used));
        }
        self.used += 1;
    }

    fn happen(&mut self, event: Event, now: Nanos, spans: &mut Vec<Span>) {
        let at = event.visit();
        let unanswered = |operation_id, why| (Some(operation_id), Outcome::Unanswered(why), 0, why);
        let (operation_id, outcome, status, why) = match event {
            Event::Begin(_) | Event::Expire(_) => (None, Outcome::Done, 0, ""),
            Event::Done(_, operation_id) => (Some(operation_id), Outcome::Done, 0, ""),
            Event::Answered(_, operation_id, Some(status)) => {
                let failed = !(200..400).contains(&status);
                let why = if failed { failure::STATUS } else { "" };
                (Some(operation_id), Outcome::Answered(status), status, why)
            }
            Event::Answered(_, operation_id, None) => unanswered(operation_id, failure::RESET),
            Event::GivenUp(_, operation_id) => unanswered(operation_id, failure::TIMEOUT),
        };
        if matches!(event, Event::Answered(..) | Event::GivenUp(..)) {
            let open = operation_id
                .and_then(|operation_id| self.visits[at].attempts.get_mut(operation_id.0 as usize));
            // What was given up and answered late has ended already.
            let Some(attempt) = open.and_then(Option::take) else {
                return;
            };
            spans.push(self.client_span(at, attempt, now, status, why));
        }
        let visit = &mut self.visits[at];
        let program = &self.programs[visit.service.0 as usize];
        let request = &mut visit.request;
        match (event, operation_id) {
            (Event::Begin(_), _) => request.begin(program, &visit.arrival, &mut self.commands),
            (Event::Expire(_), _) => request.expired(program, now, &mut self.commands),
            (_, Some(operation_id)) => {
                request.ended(program, operation_id, outcome, now, &mut self.commands)
            }
            (_, None) => {}
        }
    }

    fn perform(
        &mut self,
        at: usize,
        command: &Command,
        now: Nanos,
        spans: &mut Vec<Span>,
        ended: &mut Simulated,
    ) {
        match *command {
            Command::Call {
                operation_id,
                edge,
                step,
                deadline,
                attempt,
                span,
                ..
            } => {
                let attempt = Attempt {
                    span,
                    edge,
                    step,
                    number: attempt,
                    begun: now,
                };
                let attempts = &mut self.visits[at].attempts;
                let place = operation_id.0 as usize;
                attempts.resize(attempts.len().max(place + 1), None);
                attempts[place] = Some(attempt);
                self.call(at, operation_id, attempt, deadline);
            }
            Command::Work {
                operation_id,
                step,
                amount,
                second,
                span,
            } => {
                let visit = &self.visits[at];
                let work = self.programs[visit.service.0 as usize].work(step);
                let (wall, cpu) = work.map_or((0, 0), |work| self.costs.of(work, amount, second));
                let name = work.map_or("", metrics::kind);
                let handed = work.is_some_and(|work| self.costs.is_handed_over(work));
                let queue = if handed { self.costs.handoff } else { 0 };
                spans.push(Span {
                    queue,
                    ..self.work_span(at, span, name, now, now + queue + wall, cpu)
                });
                self.at(now + queue + wall, Event::Done(at, operation_id));
            }
            Command::Wait {
                operation_id,
                until,
                step,
                span,
                ..
            } => {
                if step.is_some() {
                    spans.push(self.work_span(at, span, "sleep", now, until.max(now), 0));
                }
                self.at(until.max(now), Event::Done(at, operation_id));
            }
            Command::Answer {
                status, failure, ..
            } => {
                let why = failure.map_or("", |failure| failure.cause);
                let answered = now + self.costs.handling;
                self.answer(at, Some(status), why, answered, spans, ended);
            }
            Command::Drop => self.answer(at, None, failure::FAULT, now, spans, ended),
        }
    }

    fn call(&mut self, at: usize, operation_id: OperationId, attempt: Attempt, deadline: Nanos) {
        let callee = self.callee(at, attempt);
        let edge = self.topology.edge(attempt.edge);
        let connect = match edge.map(|edge| edge.connections) {
            Some(Connections::Cold(_)) => self.costs.connect,
            _ => 0,
        };
        self.at(deadline, Event::GivenUp(at, operation_id));
        if let Some((service, endpoint)) = callee {
            let arrival = Arrival {
                endpoint,
                trace: self.trace,
                span: attempt.span.child(self.trace, 0, 0),
                came: attempt.begun + connect + self.costs.hop / 2,
                now: attempt.begun + connect + self.costs.hop / 2,
                deadline,
            };
            self.visit(service, arrival, Some((at, operation_id, attempt.span)));
        }
    }

    /// Who is called, and the place of the endpoint there; one that is not there is
    /// answered with 404.
    fn callee(&self, at: usize, attempt: Attempt) -> Option<(ServiceId, usize)> {
        let visit = &self.visits[at];
        let own = self.topology.service(visit.service)?;
        let own = own.endpoints.get(visit.arrival.endpoint)?;
        let call = self.programs[visit.service.0 as usize].call(attempt.step)?;
        let path = call.path.as_deref().unwrap_or(&own.path);
        let to = self.topology.edge(attempt.edge)?.to;
        let endpoint = self.topology.service(to)?.endpoint(path);
        Some((to, endpoint.map_or(usize::MAX, |(place, _)| place)))
    }

    fn answer(
        &mut self,
        at: usize,
        status: Option<u16>,
        why: &'static str,
        now: Nanos,
        spans: &mut Vec<Span>,
        ended: &mut Simulated,
    ) {
        let visit = &self.visits[at];
        let (service, arrival) = (visit.service.0 as usize, visit.arrival);
        let path = self.paths[service].get(arrival.endpoint).cloned();
        spans.push(Span {
            id: arrival.span,
            parent: visit.caller.map_or(SpanId::default(), |(_, _, span)| span),
            name: path.unwrap_or_default(),
            start: arrival.now,
            end: now,
            status: status.unwrap_or(0),
            cause: why,
            ..self.span(service, SpanKind::Server)
        });
        let back = self.costs.hop.div_ceil(2);
        match visit.caller {
            Some((caller, operation_id, _)) => {
                self.at(now + back, Event::Answered(caller, operation_id, status));
            }
            None => {
                ended.status = status.unwrap_or(0);
                ended.latency = now + self.costs.hop;
            }
        }
    }

    fn span(&self, service: usize, kind: SpanKind) -> Span {
        let service = self.services[service].clone();
        Span::blank(
            self.trace,
            kind,
            [service, Name::default(), Name::default()],
        )
    }

    fn work_span(
        &self,
        at: usize,
        id: SpanId,
        name: &'static str,
        start: Nanos,
        end: Nanos,
        cpu: Nanos,
    ) -> Span {
        let visit = &self.visits[at];
        Span {
            id,
            parent: visit.arrival.span,
            name: name.into(),
            start,
            end,
            cpu,
            ..self.span(visit.service.0 as usize, SpanKind::Work)
        }
    }

    fn client_span(
        &self,
        at: usize,
        attempt: Attempt,
        now: Nanos,
        status: u16,
        why: &'static str,
    ) -> Span {
        let visit = &self.visits[at];
        let edge = self.topology.edge(attempt.edge);
        let peer = edge.and_then(|edge| self.services.get(edge.to.0 as usize));
        let own = self.paths[visit.service.0 as usize].get(visit.arrival.endpoint);
        let call = self.programs[visit.service.0 as usize].call(attempt.step);
        let named = call.and_then(|call| call.path.as_deref()).map(Name::from);
        Span {
            id: attempt.span,
            parent: visit.arrival.span,
            name: named.or_else(|| own.cloned()).unwrap_or_default(),
            peer: peer.cloned().unwrap_or_default(),
            start: attempt.begun,
            end: now,
            status,
            attempt: attempt.number,
            cause: why,
            ..self.span(visit.service.0 as usize, SpanKind::Client)
        }
    }
}

impl Event {
    fn visit(self) -> usize {
        match self {
            Self::Begin(at)
            | Self::Expire(at)
            | Self::Done(at, _)
            | Self::Answered(at, ..)
            | Self::GivenUp(at, _) => at,
        }
    }
}
