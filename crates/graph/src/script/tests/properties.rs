//! Any steps, any outcomes, in any order.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use proptest::prelude::*;
use stats::SplitMix;

use traces::failure;

use super::plan::{MS, Plan, call_with, cpu, parallel, sequence, sleep, topology};
use crate::Nanos;
use crate::amount::Amount;
use crate::script::{Arrival, Command, OperationId, Outcome, Program, Request};
use crate::topology::{Faults, Join, ServiceId, Step, StepId};
use traces::{SpanId, TraceId};

/// Something commanded that runs: until when, if it is a wait or must be given up then.
#[derive(Debug, Clone, Copy)]
struct Running {
    until: Nanos,
    kind: Kind,
    /// Of a call that nobody waits for.
    unawaited: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Call,
    Work,
    Wait,
}

/// What a request did.
#[derive(Debug, Default, PartialEq)]
struct Told {
    /// By span: the step, what was drawn for it.
    drawn: BTreeMap<SpanId, (StepId, u64)>,
    status: Option<u16>,
}

/// A shell that does things in a random order, and how they end.
struct Shell {
    program: Arc<Program>,
    request: Request,
    random: SplitMix,
    failures: f64,
    deadline: Nanos,
    now: Nanos,
    running: BTreeMap<OperationId, Running>,
    attempts: HashMap<StepId, Vec<u8>>,
    ends: u32,
    told: Told,
}

impl Shell {
    fn run(plan: Plan, deadline: Nanos, failures: f64, order: u64) -> Told {
        let graph = topology(9, vec![plan]);
        let mut shell = Self {
            program: Program::compile(&graph, ServiceId(0)),
            request: Request::default(),
            random: SplitMix::new(order),
            failures,
            deadline,
            now: 0,
            running: BTreeMap::new(),
            attempts: HashMap::new(),
            ends: 0,
            told: Told::default(),
        };
        let arrival = Arrival {
            endpoint: 0,
            trace: TraceId(5),
            span: SpanId(6),
            came: 0,
            now: 0,
            deadline,
        };
        let mut commands = Vec::new();
        shell.request.begin(&shell.program, &arrival, &mut commands);
        shell.check(&commands);
        while !shell.running.is_empty() {
            shell.step();
        }
        shell.finish()
    }

    /// Lets some time pass, and one thing end.
    fn step(&mut self) {
        // In real time waits and calls end by their time; work ends whenever it does.
        let soonest = self.running.values().filter(|one| one.kind != Kind::Work);
        let soonest = soonest.map(|one| one.until).min().unwrap_or(Nanos::MAX);
        let later = self.now + (self.random.uniform() * 3e6) as Nanos;
        self.now = later.min(soonest).max(self.now);
        let mut commands = Vec::new();
        if self.now >= self.deadline && self.random.uniform() < 0.5 {
            self.request.expired(&self.program, self.now, &mut commands);
            self.check(&commands);
            commands.clear();
        }
        let may = |one: &Running| one.kind != Kind::Wait || one.until <= self.now;
        let due: Vec<_> = self
            .running
            .iter()
            .filter(|(_, one)| may(one))
            .map(|(operation_id, one)| (*operation_id, *one))
            .collect();
        if due.is_empty() {
            return;
        }
        let (operation_id, one) = due[(self.random.uniform() * due.len() as f64) as usize];
        self.running.remove(&operation_id);
        let outcome = self.outcome(one);
        self.request.ended(
            &self.program,
            operation_id,
            outcome,
            self.now,
            &mut commands,
        );
        self.check(&commands);
        // Told twice by mistake.
        let mut none = Vec::new();
        self.request
            .ended(&self.program, operation_id, outcome, self.now, &mut none);
        assert!(none.is_empty());
    }

    fn outcome(&mut self, one: Running) -> Outcome {
        let fails = self.random.uniform() < self.failures;
        let other = self.random.uniform() < 0.5;
        match one.kind {
            Kind::Call if self.now >= one.until => Outcome::Unanswered(failure::TIMEOUT),
            Kind::Call if fails && other => Outcome::Unanswered(failure::RESET),
            Kind::Call if fails => Outcome::Answered(404 + u16::from(one.unawaited) * 99),
            Kind::Call => Outcome::Answered(200),
            Kind::Work if fails => Outcome::Failed(failure::WORK),
            Kind::Work | Kind::Wait => Outcome::Done,
        }
    }

    fn check(&mut self, commands: &[Command]) {
        for command in commands {
            match command {
                Command::Call {
                    operation_id,
                    step,
                    bytes,
                    deadline,
                    attempt,
                    span,
                    ..
                } => {
                    let call = self.program.call(*step).unwrap();
                    let unawaited = !call.wait;
                    assert!(*deadline <= self.now + call.timeout);
                    assert!(u32::from(*attempt) <= call.retries);
                    assert!(unawaited || *deadline <= self.deadline);
                    self.attempts.entry(*step).or_default().push(*attempt);
                    let drawn = self.told.drawn.insert(*span, (*step, *bytes));
                    assert!(drawn.is_none(), "a span twice");
                    self.open(*operation_id, *deadline, Kind::Call, unawaited);
                }
                Command::Work {
                    operation_id,
                    step,
                    amount,
                    span,
                    ..
                } => {
                    let drawn = self.told.drawn.insert(*span, (*step, amount.to_bits()));
                    assert!(drawn.is_none(), "a span twice");
                    self.open(*operation_id, Nanos::MAX, Kind::Work, false);
                }
                Command::Wait {
                    operation_id,
                    until,
                    step,
                    ..
                } => {
                    // After the answer only calls without a waiter pause.
                    let unawaited = self.ends > 0;
                    assert!(*until >= self.now);
                    assert!(step.is_none() || *until <= self.deadline);
                    self.open(
                        *operation_id,
                        *until,
                        Kind::Wait,
                        unawaited || step.is_none(),
                    );
                }
                Command::Answer {
                    status, failure, ..
                } => {
                    assert_eq!(*status == 200, failure.is_none());
                    assert!(*status != 200 || self.now < self.deadline);
                    self.told.status = Some(*status);
                    self.ends += 1;
                }
                Command::Drop => self.ends += 1,
            }
        }
    }

    /// Nothing is begun after the end or the deadline that somebody would wait for.
    fn open(&mut self, operation_id: OperationId, until: Nanos, kind: Kind, unawaited: bool) {
        assert!(unawaited || self.ends == 0, "{kind:?} after the end");
        assert!(unawaited || self.now < self.deadline, "{kind:?} too late");
        let running = Running {
            until,
            kind,
            unawaited,
        };
        assert!(self.running.insert(operation_id, running).is_none());
    }

    fn finish(self) -> Told {
        assert_eq!(self.ends, 1);
        assert!(self.request.is_finished());
        for (step, attempts) in self.attempts {
            let call = self.program.call(step).unwrap();
            let count = |number| attempts.iter().filter(|one| **one == number).count();
            for number in 1..=u8::try_from(call.retries).unwrap() {
                assert!(count(number) <= count(number - 1));
            }
        }
        self.told
    }
}

fn any_call() -> impl Strategy<Value = Step> {
    let share = prop_oneof![Just(1.0), Just(0.0), 0.0..1.0];
    let times = (1..20_u64, 0..3_u64).prop_map(|(timeout, pause)| (timeout * MS, pause * MS));
    (share, 0..4_u32, times, 0..4_u32, any::<bool>()).prop_map(
        |(probability, count, (timeout, backoff), retries, wait)| {
            call_with(1, |call| {
                call.probability = probability;
                call.count = Amount::Constant(count.into());
                call.request = Amount::Exponential { mean: 1000.0 };
                call.timeout = timeout;
                call.backoff = backoff;
                call.retries = retries;
                call.wait = wait;
            })
        },
    )
}

fn any_step(joins: bool) -> impl Strategy<Value = Step> {
    let join = if joins {
        prop_oneof![Just(Join::All), (0..4_u32).prop_map(Join::Quorum)].boxed()
    } else {
        Just(Join::All).boxed()
    };
    let leaf = prop_oneof![
        3 => any_call(),
        1 => (1..5_u64).prop_map(|ms| cpu(ms * MS)),
        1 => (0..5_u64).prop_map(|ms| sleep(ms * MS)),
    ];
    leaf.prop_recursive(3, 24, 4, move |inner| {
        let steps = prop::collection::vec(inner, 0..4);
        prop_oneof![
            steps.clone().prop_map(sequence),
            (steps, join.clone()).prop_map(|(steps, join)| parallel(join, steps)),
        ]
    })
}

fn any_plan(joins: bool) -> impl Strategy<Value = Plan> {
    let share = || prop_oneof![4 => Just(0.0), 1 => 0.0..1.0];
    let faults = (share(), share(), share());
    let latency = prop_oneof![Just(0.0), 0.0..1e8];
    let steps = prop::collection::vec(any_step(joins), 0..4);
    (steps, faults, latency).prop_map(|(steps, (error, drop, delay_rate), latency)| Plan {
        steps,
        faults: Faults {
            error,
            drop,
            delay_rate,
            delay: Amount::Constant(3e6),
            ..Faults::default()
        },
        latency: Amount::Constant(latency),
    })
}

fn any_deadline() -> impl Strategy<Value = Nanos> {
    prop_oneof![Just(Nanos::MAX), 0..60 * MS]
}

impl Clone for Plan {
    fn clone(&self) -> Self {
        Self {
            steps: self.steps.clone(),
            faults: self.faults.clone(),
            latency: self.latency.clone(),
        }
    }
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#?} {:?} {:?}", self.steps, self.faults, self.latency)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_request_ends_once_and_all_that_it_began_ends(
        plan in any_plan(true),
        deadline in any_deadline(),
        failures in prop_oneof![Just(0.0), 0.0..1.0],
        order: u64,
    ) {
        Shell::run(plan, deadline, failures, order);
    }

    #[test]
    fn what_is_drawn_for_a_span_is_the_same_whatever_happens(
        plan in any_plan(true),
        deadline in any_deadline(),
        failures in 0.0..1.0,
        orders: (u64, u64),
    ) {
        let one = Shell::run(plan.clone(), Nanos::MAX, 0.0, orders.0);
        let other = Shell::run(plan, deadline, failures, orders.1);
        for (span, drawn) in &other.drawn {
            if let Some(same) = one.drawn.get(span) {
                prop_assert_eq!(same, drawn);
            }
        }
    }

    #[test]
    fn the_order_in_which_things_end_well_changes_nothing(
        plan in any_plan(false),
        orders: (u64, u64),
    ) {
        let patient = |mut plan: Plan| {
            be_patient(&mut plan.steps);
            plan
        };
        let one = Shell::run(patient(plan.clone()), Nanos::MAX, 0.0, orders.0);
        let other = Shell::run(patient(plan), Nanos::MAX, 0.0, orders.1);
        prop_assert_eq!(one, other);
    }
}

/// No call runs out of time.
fn be_patient(steps: &mut [Step]) {
    use crate::topology::Action;
    for step in steps {
        match &mut step.action {
            Action::Call(call) => call.timeout = Nanos::MAX / 1000,
            Action::Sequence(steps) => be_patient(steps),
            Action::Parallel { branches, .. } => be_patient(branches),
            Action::Work(_) => {}
        }
    }
}
