//! Deadlines, and answers that are held back.

use traces::failure;

use super::harness::{Harness, calls, failed, good, one_call, one_wait, one_work};
use super::plan::{MS, Plan, call, cpu, parallel, sleep, topology};
use crate::Nanos;
use crate::amount::Amount;
use crate::script::{Arrival, Command, Outcome, Program, Request};
use crate::topology::{Join, ServiceId};
use traces::{SpanId, TraceId};

#[test]
fn a_request_that_comes_too_late_begins_nothing() {
    let (harness, commands) = Harness::of(Plan::new(vec![call(1)]), 0);
    assert_eq!(commands, failed(504, None, failure::TIMEOUT));
    assert!(harness.request.is_finished());
}

#[test]
fn the_time_that_is_left_bounds_a_call() {
    let (mut harness, commands) = Harness::of(Plan::new(vec![cpu(MS), call(1)]), 30 * MS);
    harness.now = 25 * MS;
    let (work, _, _) = one_work(&commands);
    let commands = harness.done(work);
    let [
        Command::Call {
            operation_id,
            deadline,
            ..
        },
    ] = commands[..]
    else {
        panic!("{commands:?}");
    };
    assert_eq!(deadline, 30 * MS);
    harness.now = deadline;
    let expected = failed(504, Some(1), failure::TIMEOUT);
    let outcome = Outcome::Unanswered(failure::TIMEOUT);
    assert_eq!(harness.end(operation_id, outcome), expected);
}

#[test]
fn nothing_begins_from_the_deadline_on() {
    let (mut harness, commands) = Harness::of(Plan::new(vec![cpu(MS), call(1)]), 30 * MS);
    harness.now = 30 * MS;
    let (work, _, _) = one_work(&commands);
    assert_eq!(harness.done(work), failed(504, None, failure::TIMEOUT));
}

#[test]
fn an_answer_that_comes_too_late_is_none() {
    let (mut harness, commands) = Harness::of(Plan::new(vec![call(1)]), 30 * MS);
    harness.now = 31 * MS;
    let operation_id = one_call(&commands, 1);
    assert_eq!(
        harness.answered(operation_id, 200),
        failed(504, Some(1), failure::TIMEOUT)
    );
}

#[test]
fn a_sleep_ends_at_the_deadline() {
    let (mut harness, commands) = Harness::of(Plan::new(vec![sleep(50 * MS)]), 30 * MS);
    let (operation_id, until) = one_wait(&commands);
    assert_eq!(until, 30 * MS);
    harness.now = until;
    assert_eq!(
        harness.done(operation_id),
        failed(504, None, failure::TIMEOUT)
    );
}

#[test]
fn a_sleep_is_whole_though_its_request_waited_for_the_thread() {
    let topology = topology(42, vec![held(vec![sleep(10 * MS)])]);
    let program = Program::compile(&topology, ServiceId(0));
    let mut request = Request::default();
    let mut commands = Vec::new();
    let arrival = Arrival {
        endpoint: 0,
        trace: TraceId(1),
        span: SpanId(2),
        came: MS,
        now: 3 * MS,
        deadline: Nanos::MAX,
    };
    request.begin(&program, &arrival, &mut commands);
    let [Command::Wait { since, until, .. }] = commands[..] else {
        panic!("{commands:?}");
    };
    assert_eq!((since, until), (3 * MS, 13 * MS));
}

#[test]
fn the_deadline_answers_though_work_is_in_hand() {
    let (mut harness, commands) = Harness::of(Plan::new(vec![cpu(MS), call(1)]), 30 * MS);
    let (operation_id, _, _) = one_work(&commands);
    harness.now = 29 * MS;
    assert!(harness.expire().is_empty());
    harness.now = 30 * MS;
    assert_eq!(harness.expire(), failed(504, None, failure::TIMEOUT));
    assert!(harness.expire().is_empty());
    assert!(!harness.request.is_finished());
    assert!(harness.done(operation_id).is_empty());
    assert!(harness.request.is_finished());
}

#[test]
fn the_deadline_names_the_call_that_is_waited_for() {
    let branches = vec![cpu(MS), call(1), call(2)];
    let plan = Plan::new(vec![parallel(Join::All, branches)]);
    let (mut harness, commands) = Harness::of(plan, 30 * MS);
    let (first, _) = calls(&commands)[0];
    assert!(harness.answered(first, 200).is_empty());
    harness.now = 30 * MS;
    assert_eq!(harness.expire(), failed(504, Some(2), failure::TIMEOUT));
}

fn held(steps: Vec<crate::topology::Step>) -> Plan {
    let mut plan = Plan::new(steps);
    plan.latency = Amount::Constant(5.0 * MS as f64);
    plan
}

#[test]
fn an_early_answer_is_held_back() {
    let (mut harness, commands) = Harness::of(held(vec![call(1)]), 100 * MS);
    harness.now = 2 * MS;
    let (hold, until) = one_wait(&harness.answered(one_call(&commands, 1), 200));
    assert_eq!(until, 5 * MS);
    harness.now = until;
    assert_eq!(harness.done(hold), good());
}

#[test]
fn a_late_one_or_a_failure_is_not() {
    let (mut harness, commands) = Harness::of(held(vec![call(1)]), 100 * MS);
    harness.now = 5 * MS;
    assert_eq!(harness.answered(one_call(&commands, 1), 200), good());

    let (mut harness, commands) = Harness::of(held(vec![call(1)]), 100 * MS);
    let expected = failed(502, Some(1), failure::STATUS);
    assert_eq!(harness.answered(one_call(&commands, 1), 500), expected);
}

#[test]
fn nothing_is_held_back_beyond_the_deadline() {
    let (mut harness, commands) = Harness::of(held(Vec::new()), 3 * MS);
    let (hold, until) = one_wait(&commands);
    assert_eq!(until, 3 * MS);
    harness.now = until;
    assert_eq!(harness.done(hold), failed(504, None, failure::TIMEOUT));
}
