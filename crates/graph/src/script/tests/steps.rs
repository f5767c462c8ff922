//! Sequences, branches, chance, repeats, calls that nobody waits for.

use std::collections::HashSet;

use traces::failure;

use super::harness::{Harness, calls, failed, good, one_call, one_wait, one_work};
use super::plan::{MS, Plan, call, call_with, constant, cpu, parallel, sequence, sleep, work};
use crate::amount::Amount;
use crate::script::{Command, Outcome};
use crate::topology::{Join, Step, StepId, Work};

#[test]
fn without_steps_the_answer_is_there_at_once() {
    let (harness, commands) = Harness::with(Vec::new());
    assert_eq!(commands, good());
    assert!(harness.request.is_finished());
}

#[test]
fn steps_follow_each_other() {
    let (mut harness, commands) = Harness::with(vec![cpu(5 * MS), sleep(2 * MS), call(3)]);
    let (operation_id, amount, _) = one_work(&commands);
    assert_eq!(amount, 5.0 * MS as f64);
    harness.now = 6 * MS;
    let commands = harness.done(operation_id);
    let (operation_id, until) = one_wait(&commands);
    assert_eq!(until, 8 * MS);
    harness.now = 8 * MS;
    let commands = harness.done(operation_id);
    let operation_id = one_call(&commands, 3);
    assert_eq!(harness.answered(operation_id, 200), good());
    assert!(harness.request.is_finished());
}

#[test]
fn every_work_says_its_amounts() {
    let disk = Work::Disk {
        read: constant(4096),
        write: constant(100),
        sync: true,
    };
    for (kind, expected) in [
        (Work::Ops(constant(50)), (50.0, 0.0)),
        (Work::Primes(250_000), (250_000.0, 0.0)),
        (Work::Fork(vec!["date".into()]), (0.0, 0.0)),
        (disk, (4096.0, 100.0)),
    ] {
        let (harness, commands) = Harness::with(vec![work(kind.clone())]);
        let (_, amount, second) = one_work(&commands);
        assert_eq!((amount, second), expected);
        assert_eq!(harness.program.work(StepId(2)), Some(&kind));
        assert_eq!(harness.program.call(StepId(2)), None);
    }
}

#[test]
fn branches_begin_at_once_and_all_are_waited_for() {
    let branches = vec![call(1), sequence(vec![cpu(MS), call(2)]), call(3)];
    let (mut harness, commands) = Harness::with(vec![parallel(Join::All, branches), call(4)]);
    let [(first, 1), (third, 3)] = calls(&commands)[..] else {
        panic!("{commands:?}");
    };
    let (work, _, _) = one_work(&commands[1..2]);
    assert!(harness.answered(third, 200).is_empty());
    let second = one_call(&harness.done(work), 2);
    assert!(harness.answered(second, 200).is_empty());
    let last = one_call(&harness.answered(first, 200), 4);
    assert_eq!(harness.answered(last, 200), good());
}

#[test]
fn a_failed_branch_fails_the_step_when_all_have_ended() {
    let (mut harness, commands) = Harness::with(vec![
        parallel(Join::All, vec![call(1), call(2), call(3)]),
        call(4),
    ]);
    let calls = calls(&commands);
    assert!(harness.answered(calls[1].0, 500).is_empty());
    assert!(
        harness
            .end(calls[0].0, Outcome::Unanswered(failure::RESET))
            .is_empty()
    );
    // The first failure in time is told.
    let expected = failed(502, Some(2), failure::STATUS);
    assert_eq!(harness.answered(calls[2].0, 200), expected);
    assert!(harness.request.is_finished());
}

#[test]
fn the_first_branch_is_enough_for_any_and_nothing_follows_the_others() {
    let slow = sequence(vec![cpu(MS), call(9)]);
    let retried = call_with(2, |call| call.retries = 3);
    let (mut harness, commands) = Harness::with(vec![parallel(
        Join::Quorum(1),
        vec![call(1), retried, slow],
    )]);
    let [(first, 1), (second, 2)] = calls(&commands)[..] else {
        panic!("{commands:?}");
    };
    let (work, _, _) = one_work(&commands[2..]);
    assert_eq!(harness.answered(first, 200), good());
    assert!(!harness.request.is_finished());
    assert!(harness.answered(second, 503).is_empty());
    assert!(harness.done(work).is_empty());
    assert!(harness.request.is_finished());
}

#[test]
fn what_a_quorum_left_behind_stays_behind_in_later_steps() {
    let slow = sequence(vec![cpu(MS), call(9)]);
    let (mut harness, commands) = Harness::with(vec![
        parallel(Join::Quorum(1), vec![call(1), slow]),
        call(3),
    ]);
    let (first, _) = calls(&commands)[0];
    let (work, _, _) = one_work(&commands[1..]);
    let third = one_call(&harness.answered(first, 200), 3);
    assert!(harness.done(work).is_empty());
    assert_eq!(harness.answered(third, 200), good());
}

#[test]
fn a_quorum_bears_failures_until_it_cannot_be_met() {
    let quorum = || {
        let branches = vec![call(1), call(2), call(3)];
        let (harness, commands) = Harness::with(vec![parallel(Join::Quorum(2), branches)]);
        (harness, calls(&commands))
    };
    let (mut harness, calls) = quorum();
    assert!(harness.answered(calls[0].0, 500).is_empty());
    assert!(harness.answered(calls[1].0, 200).is_empty());
    assert_eq!(harness.answered(calls[2].0, 200), good());

    let (mut harness, calls) = quorum();
    assert!(harness.answered(calls[0].0, 500).is_empty());
    let expected = failed(502, Some(1), failure::STATUS);
    assert_eq!(harness.answered(calls[2].0, 404), expected);
    assert!(harness.answered(calls[1].0, 200).is_empty());
}

#[test]
fn a_call_that_chance_left_out_counts_neither_way() {
    let never = |to| call_with(to, |call| call.probability = 0.0);
    let (mut harness, commands) = Harness::with(vec![parallel(
        Join::Quorum(1),
        vec![never(1), sequence(vec![never(2)]), call(3)],
    )]);
    let operation_id = one_call(&commands, 3);
    let expected = failed(502, Some(3), failure::REFUSED);
    assert_eq!(
        harness.end(operation_id, Outcome::Unanswered(failure::REFUSED)),
        expected
    );

    let (_, commands) = Harness::with(vec![parallel(Join::Quorum(2), vec![never(1), never(2)])]);
    assert_eq!(commands, good());
}

#[test]
fn a_quorum_of_none_waits_for_nobody() {
    let branches = vec![call(1), call(2)];
    let (mut harness, commands) = Harness::with(vec![parallel(Join::Quorum(0), branches), call(3)]);
    let [(first, 1), (_, 2), (third, 3)] = calls(&commands)[..] else {
        panic!("{commands:?}");
    };
    assert!(harness.answered(first, 500).is_empty());
    assert_eq!(harness.answered(third, 200), good());
    assert!(!harness.request.is_finished());
}

#[test]
fn repeats_run_at_once_each_with_a_span_and_a_size_of_its_own() {
    let step = call_with(1, |call| {
        call.count = constant(3);
        call.request = Amount::Uniform { from: 0.0, to: 1e6 };
    });
    let (mut harness, commands) = Harness::with(vec![step]);
    let mut told = HashSet::new();
    for command in &commands {
        let Command::Call { span, bytes, .. } = command else {
            panic!("{command:?}");
        };
        assert!(*bytes <= 1_000_000);
        told.insert((*span, *bytes));
    }
    assert_eq!(told.len(), 3);
    let calls = calls(&commands);
    assert!(harness.answered(calls[0].0, 500).is_empty());
    assert!(harness.answered(calls[2].0, 200).is_empty());
    let expected = failed(502, Some(1), failure::STATUS);
    assert_eq!(harness.answered(calls[1].0, 200), expected);
}

#[test]
fn counts_are_rounded_and_bounded() {
    let count = |count: Amount| {
        let (_, commands) = Harness::with(vec![call_with(1, |call| call.count = count)]);
        calls(&commands).len()
    };
    assert_eq!(count(Amount::Constant(0.4)), 0);
    assert_eq!(count(Amount::Constant(1.5)), 2);
    assert_eq!(count(Amount::Constant(1e9)), 1000);
}

#[test]
fn nobody_waits_for_a_call_but_it_is_seen_to_its_end() {
    let unawaited = call_with(1, |call| {
        call.wait = false;
        call.retries = 1;
        call.backoff = 3 * MS;
    });
    let (mut harness, commands) = Harness::of(Plan::new(vec![unawaited]), 10 * MS);
    let [(operation_id, 1)] = calls(&commands)[..] else {
        panic!("{commands:?}");
    };
    assert_eq!(commands[1..], good());
    assert!(!harness.request.live && !harness.request.is_finished());
    // Behind the deadline of the request: only its own time bounds the call.
    harness.now = 20 * MS;
    let (pause, until) =
        one_wait(&harness.end(operation_id, Outcome::Unanswered(failure::REFUSED)));
    assert_eq!(until, 23 * MS);
    harness.now = until;
    let again = one_call(&harness.done(pause), 1);
    assert!(harness.answered(again, 500).is_empty());
    assert!(harness.request.is_finished());
}

#[test]
fn its_failure_is_no_failure_of_the_request() {
    let unawaited: Step = call_with(1, |call| call.wait = false);
    let (mut harness, commands) =
        Harness::with(vec![parallel(Join::All, vec![unawaited, call(2)])]);
    let calls = calls(&commands);
    assert!(harness.answered(calls[0].0, 500).is_empty());
    assert_eq!(harness.answered(calls[1].0, 200), good());
}

#[test]
fn a_ticket_that_is_not_open_is_ignored() {
    let (mut harness, commands) = Harness::with(vec![call(1), call(2)]);
    let operation_id = one_call(&commands, 1);
    assert!(
        harness
            .answered(crate::script::OperationId(99), 200)
            .is_empty()
    );
    let second = one_call(&harness.answered(operation_id, 200), 2);
    assert!(harness.answered(operation_id, 500).is_empty());
    assert_eq!(harness.answered(second, 200), good());
    assert!(harness.answered(second, 200).is_empty());
    assert!(harness.expire().is_empty());
}
