//! Attempts after a failed one, and what the last one's failure answers.

use traces::failure;

use super::harness::{Harness, failed, good, one_call, one_wait, one_work};
use super::plan::{MS, Plan, call, call_with, cpu};
use crate::script::{Command, Outcome};
use crate::topology::Call;

fn attempt(commands: &[Command]) -> (u8, u64) {
    let [
        Command::Call {
            attempt, deadline, ..
        },
    ] = commands
    else {
        panic!("not one call: {commands:?}");
    };
    (*attempt, *deadline)
}

fn twice(call: &mut Call) {
    call.retries = 2;
    call.timeout = 10 * MS;
}

#[test]
fn a_failed_attempt_is_made_again() {
    let (mut harness, commands) = Harness::with(vec![call_with(1, twice)]);
    assert_eq!(attempt(&commands), (0, 10 * MS));
    let first = one_call(&commands, 1);
    harness.now = 4 * MS;
    let commands = harness.end(first, Outcome::Unanswered(failure::RESET));
    assert_eq!(attempt(&commands), (1, 14 * MS));
    let second = one_call(&commands, 1);
    harness.now = 6 * MS;
    let commands = harness.answered(second, 503);
    assert_eq!(attempt(&commands), (2, 16 * MS));
    let third = one_call(&commands, 1);
    assert_eq!(harness.answered(third, 200), good());
}

#[test]
fn the_last_failure_is_the_calls_failure() {
    let (mut harness, mut commands) = Harness::with(vec![call_with(1, twice)]);
    for _ in 0..2 {
        let operation_id = one_call(&commands, 1);
        commands = harness.end(operation_id, Outcome::Unanswered(failure::REFUSED));
    }
    let operation_id = one_call(&commands, 1);
    let expected = failed(504, Some(1), failure::TIMEOUT);
    assert_eq!(
        harness.end(operation_id, Outcome::Unanswered(failure::TIMEOUT)),
        expected
    );
}

#[test]
fn a_wrong_request_is_not_made_again() {
    let (mut harness, commands) = Harness::with(vec![call_with(1, twice)]);
    let operation_id = one_call(&commands, 1);
    let expected = failed(502, Some(1), failure::STATUS);
    assert_eq!(harness.answered(operation_id, 404), expected);
}

#[test]
fn attempts_have_spans_of_their_own_and_the_same_body() {
    let step = call_with(1, |call| {
        call.retries = 1;
        call.request = crate::amount::Amount::Exponential { mean: 1e5 };
    });
    let (mut harness, first) = Harness::with(vec![step]);
    let second = harness.answered(one_call(&first, 1), 500);
    let told = |commands: &[Command]| match commands {
        [Command::Call { span, bytes, .. }] => (*span, *bytes),
        _ => panic!("{commands:?}"),
    };
    let ((span, bytes), (other_span, other_bytes)) = (told(&first), told(&second));
    assert_ne!(span, other_span);
    assert_eq!(bytes, other_bytes);
}

#[test]
fn a_pause_comes_before_another_attempt() {
    let step = call_with(1, |call| {
        twice(call);
        call.backoff = 5 * MS;
    });
    let (mut harness, commands) = Harness::with(vec![step]);
    harness.now = 2 * MS;
    let commands = harness.answered(one_call(&commands, 1), 500);
    let (pause, until) = one_wait(&commands);
    assert_eq!(until, 7 * MS);
    harness.now = until;
    let commands = harness.done(pause);
    assert_eq!(attempt(&commands), (1, 17 * MS));
    // The time of three attempts is 30 ms: that of the next one is cut.
    harness.now = 20 * MS;
    let (pause, until) = one_wait(&harness.answered(one_call(&commands, 1), 500));
    harness.now = until;
    let commands = harness.done(pause);
    assert_eq!(attempt(&commands), (2, 30 * MS));
}

#[test]
fn no_attempt_begins_behind_the_time_of_all_attempts_or_the_deadline() {
    let step = || {
        call_with(1, |call| {
            twice(call);
            call.backoff = 5 * MS;
        })
    };
    let (mut harness, commands) = Harness::with(vec![step()]);
    harness.now = 26 * MS;
    let expected = failed(502, Some(1), failure::STATUS);
    assert_eq!(harness.answered(one_call(&commands, 1), 500), expected);

    let (mut harness, commands) = Harness::of(Plan::new(vec![step()]), 8 * MS);
    assert_eq!(attempt(&commands), (0, 8 * MS));
    harness.now = 4 * MS;
    assert_eq!(harness.answered(one_call(&commands, 1), 500), expected);
}

#[test]
fn failures_of_calls_answer_by_their_kind() {
    for (outcome, status, why) in [
        (Outcome::Unanswered(failure::TIMEOUT), 504, failure::TIMEOUT),
        (Outcome::Unanswered(failure::FULL), 503, failure::FULL),
        (Outcome::Unanswered(failure::REFUSED), 502, failure::REFUSED),
        (
            Outcome::Unanswered(failure::MALFORMED),
            502,
            failure::MALFORMED,
        ),
        (Outcome::Answered(504), 504, failure::STATUS),
        (Outcome::Answered(503), 502, failure::STATUS),
        (Outcome::Answered(400), 502, failure::STATUS),
        (Outcome::Answered(199), 502, failure::STATUS),
    ] {
        let (mut harness, commands) = Harness::with(vec![call(5), call(6)]);
        let operation_id = one_call(&commands, 5);
        let expected = failed(status, Some(5), why);
        assert_eq!(harness.end(operation_id, outcome), expected, "{outcome:?}");
    }
    for status in [200, 204, 399] {
        let (mut harness, commands) = Harness::with(vec![call(5)]);
        let operation_id = one_call(&commands, 5);
        assert_eq!(harness.answered(operation_id, status), good());
    }
}

#[test]
fn failures_of_work_answer_by_their_kind() {
    for (why, status) in [(failure::FULL, 503), (failure::WORK, 500), ("missing", 500)] {
        let (mut harness, commands) = Harness::with(vec![cpu(MS), call(6)]);
        let (operation_id, _, _) = one_work(&commands);
        let expected = failed(status, None, why);
        assert_eq!(harness.end(operation_id, Outcome::Failed(why)), expected);
    }
}
