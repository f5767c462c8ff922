//! Faults that go on while further steps do.
// Helpers outside of test functions panic like tests do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::support::{faults, of, passed, run};
use lab_runner::Finished;
use lab_store::{EventKind, Outcome};

/// A system of two copies, and steps of which the first has this fault.
fn made(fault: &str) -> (tempfile::TempDir, Finished) {
    run(&format!(
        r#"
[[system]]
name = "beat"
run = "sleep 600"
count = 2
[[step]]
name = "one"
hold = "400ms"
fault = {{ {fault} }}
[[step]]
name = "two"
hold = "400ms"
fault = {{ pause = "beat.1", at = "0s", for = "50ms" }}
[[step]]
name = "three"
hold = "400ms"
[[step]]
name = "four"
hold = "400ms"
"#
    ))
}

/// When each step began and ended, in seconds of the run.
fn steps(finished: &Finished) -> Vec<(f64, f64)> {
    let began = of(finished, EventKind::StepStarted);
    let ended = of(finished, EventKind::StepEnded);
    let both = began.iter().zip(&ended);
    both.map(|(began, ended)| (began.0, ended.0)).collect()
}

#[test]
fn a_fault_goes_on_through_later_steps_beside_theirs_and_is_undone_with_the_last() {
    let (_folder, finished) = made(r#"pause = "beat.0", through = "three""#);
    passed(&finished);
    let steps = steps(&finished);
    let mut made = faults(&finished);
    made.sort_by(|a, b| a.begin_s.total_cmp(&b.begin_s));
    let [through, beside] = &made[..] else {
        panic!("{made:?}")
    };
    // It begins when the hold of its own step is over, as others do.
    assert!(through.begin_s >= 0.4 + steps[0].0 && through.begin_s <= steps[0].1);
    let end_s = through.end_s.unwrap();
    assert!(end_s > steps[1].1 && end_s >= steps[2].0 + 0.4 && end_s <= steps[2].1);
    assert_eq!((&*through.step, &*through.text), ("one", "they go on"));
    assert_eq!(
        (&*beside.step, &*beside.targets),
        ("two", &["beat.1".to_owned()][..])
    );
}

#[test]
fn a_fault_recurs_in_every_step_until_the_one_that_it_goes_on_through_ends_and_never_after() {
    for gap in ["40ms", "exponential 40ms"] {
        let (_folder, finished) = made(&format!(
            r#"pause = "beat.0", for = "20ms", every = "{gap}", through = "three""#
        ));
        passed(&finished);
        let steps = steps(&finished);
        let mut turns = faults(&finished);
        turns.retain(|fault| fault.step == "one");
        for (place, (from, to)) in steps[..3].iter().enumerate() {
            let within = turns
                .iter()
                .filter(|turn| (*from..*to).contains(&turn.begin_s));
            assert!(
                within.count() > 0,
                "every {gap}: none in step {place}: {turns:?}"
            );
        }
        for turn in &turns {
            let end_s = turn.end_s.unwrap();
            assert!(end_s <= steps[2].1, "{gap}: {turn:?}");
        }
    }
}

#[test]
fn a_fault_that_fails_while_another_step_goes_on_ends_the_run_there() {
    // What it is to hit at its second turn, the fault of the second step has just then.
    let (_folder, finished) =
        made(r#"pause = "beat.1", at = "400ms", for = "1ms", every = "10ms", through = "three""#);
    let verdict = &finished.verdict;
    assert_eq!(verdict.outcome, Outcome::Error, "{verdict:?}");
    let said = format!("{verdict:?}");
    assert!(said.contains("another fault has the others"), "{said}");
}
