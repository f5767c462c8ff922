//! What goes wrong by chance.

use traces::failure;

use super::harness::{Harness, failed, one_call, one_wait};
use super::plan::{MS, Plan, call};
use crate::Nanos;
use crate::amount::Amount;
use crate::script::{Arrival, Command, Program, Request};
use crate::topology::{Faults, ServiceId};
use traces::{SpanId, TraceId};

fn plan(faults: Faults) -> Plan {
    let mut plan = Plan::new(vec![call(1)]);
    plan.faults = faults;
    plan
}

#[test]
fn an_error_comes_before_any_step() {
    let (harness, commands) = Harness::of(
        plan(Faults {
            error: 1.0,
            status: 418,
            ..Faults::default()
        }),
        Nanos::MAX,
    );
    assert_eq!(commands, failed(418, None, failure::FAULT));
    assert!(harness.request.is_finished());
}

#[test]
fn a_drop_has_no_answer() {
    let (harness, commands) = Harness::of(
        plan(Faults {
            drop: 1.0,
            error: 1.0,
            ..Faults::default()
        }),
        Nanos::MAX,
    );
    assert_eq!(commands, [Command::Drop]);
    assert!(harness.request.is_finished());
}

#[test]
fn a_delay_comes_before_steps_and_faults() {
    let delayed = |error| {
        plan(Faults {
            error,
            delay_rate: 1.0,
            delay: Amount::Constant(50.0 * MS as f64),
            ..Faults::default()
        })
    };
    let (mut harness, commands) = Harness::of(delayed(0.0), Nanos::MAX);
    let (operation_id, until) = one_wait(&commands);
    assert_eq!(until, 50 * MS);
    harness.now = until;
    one_call(&harness.done(operation_id), 1);

    let (mut harness, commands) = Harness::of(delayed(1.0), Nanos::MAX);
    let (operation_id, until) = one_wait(&commands);
    harness.now = until;
    assert_eq!(
        harness.done(operation_id),
        failed(503, None, failure::FAULT)
    );

    let (mut harness, commands) = Harness::of(delayed(0.0), 20 * MS);
    let (operation_id, until) = one_wait(&commands);
    assert_eq!(until, 20 * MS);
    harness.now = until;
    assert_eq!(
        harness.done(operation_id),
        failed(504, None, failure::TIMEOUT)
    );
}

#[test]
fn shares_of_requests_are_met_and_independent() {
    let faults = || Faults {
        error: 0.3,
        drop: 0.1,
        ..Faults::default()
    };
    let (mut errors, mut drops) = (0, 0);
    for number in 0..4000 {
        let (_, commands) = Harness::number(plan(faults()), Nanos::MAX, number);
        match commands[..] {
            [Command::Drop] => drops += 1,
            [Command::Answer { status: 503, .. }] => errors += 1,
            _ => {}
        }
    }
    // Within four standard deviations: a drop forestalls an error.
    assert!((325..=475).contains(&drops), "{drops}");
    assert!((966..=1194).contains(&errors), "{errors}");
}

#[test]
fn a_service_or_an_endpoint_that_is_not_there_is_404() {
    let topology = super::plan::topology(1, vec![Plan::new(Vec::new())]);
    for (service, endpoint) in [(0, 1), (9, 0)] {
        let program = Program::compile(&topology, ServiceId(service));
        let mut request = Request::default();
        let mut commands = Vec::new();
        let arrival = Arrival {
            endpoint,
            trace: TraceId(1),
            span: SpanId(1),
            came: 0,
            now: 0,
            deadline: Nanos::MAX,
        };
        request.begin(&program, &arrival, &mut commands);
        assert_eq!(commands, failed(404, None, failure::PATH));
        assert!(request.is_finished());
        assert!(program.endpoints.get(endpoint).is_none());
    }
}
