//! Deadlines, and answers that are held back.

use traces::failure;

use super::plan::{MS, Plan, call, cpu, parallel, sleep, topology};
use super::seat::{Seat, calls, failed, good, one_call, one_wait, one_work};
use crate::Nanos;
use crate::amount::Amount;
use crate::script::{Arrival, Command, Outcome, Program, Request};
use crate::topology::{Join, ServiceId};
use traces::{SpanId, TraceId};

#[test]
fn a_request_that_comes_too_late_begins_nothing() {
    let (seat, commands) = Seat::of(Plan::new(vec![call(1)]), 0);
    assert_eq!(commands, failed(504, None, failure::TIMEOUT));
    assert!(seat.request.is_finished());
}

#[test]
fn the_time_that_is_left_bounds_a_call() {
    let (mut seat, commands) = Seat::of(Plan::new(vec![cpu(MS), call(1)]), 30 * MS);
    seat.now = 25 * MS;
    let (work, _, _) = one_work(&commands);
    let commands = seat.done(work);
    let [
        Command::Call {
            ticket, deadline, ..
        },
    ] = commands[..]
    else {
        panic!("{commands:?}");
    };
    assert_eq!(deadline, 30 * MS);
    seat.now = deadline;
    let expected = failed(504, Some(1), failure::TIMEOUT);
    let outcome = Outcome::Unanswered(failure::TIMEOUT);
    assert_eq!(seat.end(ticket, outcome), expected);
}

#[test]
fn nothing_begins_from_the_deadline_on() {
    let (mut seat, commands) = Seat::of(Plan::new(vec![cpu(MS), call(1)]), 30 * MS);
    seat.now = 30 * MS;
    let (work, _, _) = one_work(&commands);
    assert_eq!(seat.done(work), failed(504, None, failure::TIMEOUT));
}

#[test]
fn an_answer_that_comes_too_late_is_none() {
    let (mut seat, commands) = Seat::of(Plan::new(vec![call(1)]), 30 * MS);
    seat.now = 31 * MS;
    let ticket = one_call(&commands, 1);
    assert_eq!(
        seat.answered(ticket, 200),
        failed(504, Some(1), failure::TIMEOUT)
    );
}

#[test]
fn a_sleep_ends_at_the_deadline() {
    let (mut seat, commands) = Seat::of(Plan::new(vec![sleep(50 * MS)]), 30 * MS);
    let (ticket, until) = one_wait(&commands);
    assert_eq!(until, 30 * MS);
    seat.now = until;
    assert_eq!(seat.done(ticket), failed(504, None, failure::TIMEOUT));
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
    let (mut seat, commands) = Seat::of(Plan::new(vec![cpu(MS), call(1)]), 30 * MS);
    let (ticket, _, _) = one_work(&commands);
    seat.now = 29 * MS;
    assert!(seat.expire().is_empty());
    seat.now = 30 * MS;
    assert_eq!(seat.expire(), failed(504, None, failure::TIMEOUT));
    assert!(seat.expire().is_empty());
    assert!(!seat.request.is_finished());
    assert!(seat.done(ticket).is_empty());
    assert!(seat.request.is_finished());
}

#[test]
fn the_deadline_names_the_call_that_is_waited_for() {
    let branches = vec![cpu(MS), call(1), call(2)];
    let plan = Plan::new(vec![parallel(Join::All, branches)]);
    let (mut seat, commands) = Seat::of(plan, 30 * MS);
    let (first, _) = calls(&commands)[0];
    assert!(seat.answered(first, 200).is_empty());
    seat.now = 30 * MS;
    assert_eq!(seat.expire(), failed(504, Some(2), failure::TIMEOUT));
}

fn held(steps: Vec<crate::topology::Step>) -> Plan {
    let mut plan = Plan::new(steps);
    plan.latency = Amount::Constant(5.0 * MS as f64);
    plan
}

#[test]
fn an_early_answer_is_held_back() {
    let (mut seat, commands) = Seat::of(held(vec![call(1)]), 100 * MS);
    seat.now = 2 * MS;
    let (hold, until) = one_wait(&seat.answered(one_call(&commands, 1), 200));
    assert_eq!(until, 5 * MS);
    seat.now = until;
    assert_eq!(seat.done(hold), good());
}

#[test]
fn a_late_one_or_a_failure_is_not() {
    let (mut seat, commands) = Seat::of(held(vec![call(1)]), 100 * MS);
    seat.now = 5 * MS;
    assert_eq!(seat.answered(one_call(&commands, 1), 200), good());

    let (mut seat, commands) = Seat::of(held(vec![call(1)]), 100 * MS);
    let expected = failed(502, Some(1), failure::STATUS);
    assert_eq!(seat.answered(one_call(&commands, 1), 500), expected);
}

#[test]
fn nothing_is_held_back_beyond_the_deadline() {
    let (mut seat, commands) = Seat::of(held(Vec::new()), 3 * MS);
    let (hold, until) = one_wait(&commands);
    assert_eq!(until, 3 * MS);
    seat.now = until;
    assert_eq!(seat.done(hold), failed(504, None, failure::TIMEOUT));
}
