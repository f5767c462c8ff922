//! What a request does at one moment.

use traces::failure;

use super::drawing;
use super::program::{Entry, Kind, Program};
use super::request::{Frame, Operation, Purpose, Request};
use super::verdict::{self, Failing};
use super::{Command, Failure, OperationId, Outcome, bound};
use crate::Nanos;
use crate::amount::Amount;
use crate::topology::{Call, EdgeId, Join, Response, StepId, Work};
use traces::SpanId;

/// How a node ended.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    Well,
    /// There was nothing to wait for: chance left it out, or nobody waits for it.
    Nothing,
    Failed(Failing),
}

/// A request, with all that it needs to go on now.
pub(super) struct Turn<'a> {
    pub(super) request: &'a mut Request,
    pub(super) program: &'a Program,
    pub(super) now: Nanos,
    pub(super) commands: &'a mut Vec<Command>,
}

impl<'a> Turn<'a> {
    pub(super) fn new(
        request: &'a mut Request,
        program: &'a Program,
        now: Nanos,
        commands: &'a mut Vec<Command>,
    ) -> Self {
        Self {
            request,
            program,
            now,
            commands,
        }
    }

    /// The request is here.
    pub(super) fn arrive(&mut self) {
        let Some(entry) = self.entry() else {
            return self.fail(Failing::new(404, None, failure::PATH));
        };
        if self.is_late() {
            return self.expire(None);
        }
        let faults = &self.program.faults;
        if self.by_chance(faults.delay_rate, entry.step, drawing::DELAYED) {
            let delay = self.time(&faults.delay, entry.step, drawing::DELAY);
            self.wait(Purpose::Delay, delay, None);
        } else {
            self.start(entry);
        }
    }

    /// Something that was commanded has ended.
    pub(super) fn finish_operation(&mut self, purpose: Purpose, outcome: Outcome) {
        if let Purpose::Attempt(attempt) | Purpose::Pause(attempt) = purpose
            && let Some(call) = self.call(attempt.node)
            && !call.wait
        {
            return self.land_unawaited(call, purpose, outcome);
        }
        if !self.request.live {
            return;
        }
        if self.is_late() {
            let edge = match purpose {
                Purpose::Attempt(attempt) => self.call(attempt.node).map(|call| call.edge),
                _ => None,
            };
            return self.expire(edge);
        }
        match purpose {
            Purpose::Delay => {
                if let Some(entry) = self.entry() {
                    self.start(entry);
                }
            }
            Purpose::Hold => self.answer(),
            Purpose::Work(node) if !self.is_unseen(node) => {
                let end = verdict::of_work(outcome).map_or(End::Well, End::Failed);
                self.ended(node, end);
            }
            Purpose::Attempt(attempt) if !self.is_unseen(attempt.node) => {
                self.land_attempt(attempt, outcome);
            }
            Purpose::Pause(attempt) if !self.is_unseen(attempt.node) => {
                if let Some(call) = self.call(attempt.node) {
                    self.attempt(call, attempt);
                }
            }
            Purpose::Work(_) | Purpose::Attempt(_) | Purpose::Pause(_) => {}
        }
    }

    /// Answers 504. `edge`: whose call took the time; `None`: that of the first call that is
    /// still waited for, if there is one.
    pub(super) fn expire(&mut self, edge: Option<EdgeId>) {
        let edge = edge.or_else(|| {
            let open = self
                .request
                .operations
                .iter()
                .filter(|operation| !operation.ended);
            let mut calls = open.filter_map(|operation| match operation.purpose {
                Purpose::Attempt(attempt) => self.call(attempt.node),
                _ => None,
            });
            calls.find(|call| call.wait).map(|call| call.edge)
        });
        self.fail(Failing::late(edge));
    }

    /// Begins the steps, unless a fault comes first.
    fn start(&mut self, entry: &'a Entry) {
        let faults = &self.program.faults;
        if self.by_chance(faults.drop, entry.step, drawing::DROP) {
            self.request.live = false;
            self.commands.push(Command::Drop);
        } else if self.by_chance(faults.error, entry.step, drawing::ERROR) {
            self.fail(Failing::new(faults.status, None, failure::FAULT));
        } else if let Some(end) = self.begin(entry.root) {
            self.ended(entry.root, end);
        }
    }

    /// Begins a node. `None`: it has not ended yet.
    fn begin(&mut self, node: usize) -> Option<End> {
        let end = self.enter(node);
        self.frame(node).over = end.is_some();
        end
    }

    fn enter(&mut self, node: usize) -> Option<End> {
        match &self.program.nodes[node].kind {
            Kind::Work(work) => {
                self.work(node, work);
                None
            }
            Kind::Call(call) => self.make(node, call),
            Kind::Sequence => {
                let first = self.program.first(node);
                self.run(node, first)
            }
            Kind::Parallel(join) => {
                let mut next = self.program.first(node);
                while let Some(branch) = next {
                    self.frame(node).running += 1;
                    if let Some(end) = self.begin(branch) {
                        self.frame(node).count(end);
                    }
                    next = self.program.next(branch);
                }
                self.joined(node, *join)
            }
        }
    }

    /// Runs a sequence from its step `next` on, as far as it goes without waiting.
    fn run(&mut self, node: usize, mut next: Option<usize>) -> Option<End> {
        while let Some(step) = next {
            match self.begin(step)? {
                End::Failed(failing) => return Some(End::Failed(failing)),
                End::Well => self.frame(node).well += 1,
                End::Nothing => {}
            }
            next = self.program.next(step);
        }
        Some(self.frame(node).outcome())
    }

    /// A node has ended: goes on with what waits for it.
    pub(super) fn ended(&mut self, mut node: usize, mut end: End) {
        loop {
            self.frame(node).over = true;
            let Some(parent) = self.program.nodes[node].parent else {
                return match end {
                    End::Failed(failing) => self.fail(failing),
                    End::Well | End::Nothing => self.hold(),
                };
            };
            let above = match (&self.program.nodes[parent].kind, end) {
                (Kind::Parallel(join), _) => {
                    self.frame(parent).count(end);
                    self.joined(parent, *join)
                }
                (_, End::Failed(_)) => Some(end),
                (_, End::Well | End::Nothing) => {
                    if matches!(end, End::Well) {
                        self.frame(parent).well += 1;
                    }
                    let next = self.program.next(node);
                    self.run(parent, next)
                }
            };
            match above {
                Some(above) => (node, end) = (parent, above),
                None => return,
            }
        }
    }

    /// Whether enough branches have ended. Those that had nothing to do count neither way.
    pub(super) fn joined(&mut self, node: usize, join: Join) -> Option<End> {
        let frame = *self.frame(node);
        match join {
            Join::All if frame.running > 0 => None,
            Join::All => Some(frame.outcome()),
            Join::Quorum(wanted) => {
                let wanted = wanted.min(frame.well + frame.failed + frame.running);
                if frame.well >= wanted {
                    Some(if frame.well > 0 {
                        End::Well
                    } else {
                        End::Nothing
                    })
                } else if frame.well + frame.running < wanted {
                    Some(frame.outcome())
                } else {
                    None
                }
            }
        }
    }

    fn work(&mut self, node: usize, work: &Work) {
        let step = self.program.nodes[node].step;
        let (first, most) = match work {
            Work::Sleep(length) => {
                let length = self.time(length, step, drawing::FIRST);
                return self.wait(Purpose::Work(node), length, Some(step));
            }
            Work::Cpu(time) | Work::Lock { hold: time, .. } => (time, bound::TIME),
            Work::Ops(units) | Work::Memory { touches: units, .. } => (units, bound::UNITS),
            Work::Disk { read, .. } => (read, bound::BYTES),
            Work::Primes(_)
            | Work::Fork(_)
            | Work::StressNg { .. }
            | Work::StressNgBackground { .. }
            | Work::StressNgStatus => (&Amount::ZERO, 0),
        };
        let amount = self.drawn(first, step, drawing::FIRST, most);
        let second = match work {
            Work::Disk { write, .. } => self.drawn(write, step, drawing::SECOND, bound::BYTES),
            _ => 0.0,
        };
        let amount = match work {
            #[expect(clippy::cast_precision_loss, reason = "the work itself has the number")]
            Work::Primes(to) => *to as f64,
            _ => amount,
        };
        let operation_id = self.open(Purpose::Work(node));
        let span = self.child(step, 0);
        self.commands.push(Command::Work {
            operation_id,
            step,
            amount,
            second,
            span,
        });
    }

    /// All steps have ended well: answers, not before the endpoint's latency has passed.
    fn hold(&mut self) {
        let Some(entry) = self.entry() else {
            return;
        };
        let latency = self.time(&entry.latency, entry.step, drawing::LATENCY);
        let at = self.request.came.saturating_add(latency);
        if at > self.now {
            self.wait(Purpose::Hold, at - self.now, None);
        } else {
            self.answer();
        }
    }

    fn answer(&mut self) {
        let Some(entry) = self.entry() else {
            return;
        };
        let bytes = match &entry.response {
            Response::Bytes(bytes) => self.bytes(bytes, entry.step, drawing::RESPONSE),
            Response::Echo => 0,
        };
        self.settle(200, bytes, None);
    }

    fn fail(&mut self, failing: Failing) {
        self.settle(failing.status, 0, Some(failing.failure));
    }

    fn settle(&mut self, status: u16, bytes: u64, failure: Option<Failure>) {
        self.request.live = false;
        self.commands.push(Command::Answer {
            status,
            bytes,
            failure,
        });
    }

    /// Commands a wait. One that would end behind the deadline ends at it; a pause has
    /// been weighed against its call's time already.
    pub(super) fn wait(&mut self, purpose: Purpose, length: Nanos, step: Option<StepId>) {
        let operation_id = self.open(purpose);
        let most = match purpose {
            Purpose::Pause(attempt) => attempt.until,
            _ => self.request.deadline,
        };
        let until = self.now.saturating_add(length).min(most);
        let span = step.map_or(SpanId::default(), |step| self.child(step, 0));
        self.commands.push(Command::Wait {
            operation_id,
            since: self.now,
            until,
            step,
            span,
        });
    }

    pub(super) fn open(&mut self, purpose: Purpose) -> OperationId {
        let operations = &mut self.request.operations;
        let operation_id = OperationId(u32::try_from(operations.len()).unwrap_or(u32::MAX));
        operations.push(Operation {
            purpose,
            ended: false,
        });
        self.request.open += 1;
        operation_id
    }

    /// Whether what waits for a node is over already.
    fn is_unseen(&mut self, mut node: usize) -> bool {
        while let Some(parent) = self.program.nodes[node].parent {
            if self.frame(parent).over {
                return true;
            }
            node = parent;
        }
        false
    }

    fn is_late(&self) -> bool {
        self.now >= self.request.deadline
    }

    fn entry(&self) -> Option<&'a Entry> {
        self.program.endpoints.get(self.request.endpoint)
    }

    pub(super) fn call(&self, node: usize) -> Option<&'a Call> {
        match &self.program.nodes.get(node)?.kind {
            Kind::Call(call) => Some(call),
            _ => None,
        }
    }

    pub(super) fn frame(&mut self, node: usize) -> &mut Frame {
        &mut self.request.frames[node - self.request.root]
    }
}

impl Frame {
    /// A branch or repeat has ended.
    pub(super) fn count(&mut self, end: End) {
        self.running = self.running.saturating_sub(1);
        match end {
            End::Well => self.well += 1,
            End::Nothing => {}
            End::Failed(failing) => {
                self.failed += 1;
                self.failure.get_or_insert(failing);
            }
        }
    }

    /// How a node ended whose parts have all ended.
    fn outcome(&self) -> End {
        match self.failure {
            Some(failing) => End::Failed(failing),
            None if self.well > 0 => End::Well,
            None => End::Nothing,
        }
    }
}
