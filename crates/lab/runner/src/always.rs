//! What must hold all the time that a step takes.

use std::cell::{Cell, RefCell};

use lab_experiment::expr::{Expr, Metric};
use lab_experiment::plan::Step;
use tokio::time::Instant;
use units::show_seconds;

use crate::conditions::{Holds, Look};
use crate::steps::{LOOK, StepError, StepRunner};

/// Does the work of a step while its conditions hold.
///
/// A condition is looked at after each try of a probe, and every 20 ms. One that cannot be told
/// holds for the time being; one that could not be told in the whole step has not held. One that only
/// the laboratory itself may have broken is doubtful, which is said when the work is done.
///
/// # Errors
/// Those of the work, and at once when a condition does not hold.
pub(crate) async fn during<T>(
    bench: &StepRunner<'_>,
    step: &Step,
    work: impl Future<Output = Result<T, StepError>>,
) -> Result<T, StepError> {
    let began = Instant::now();
    let told: Vec<Cell<bool>> = step.always.iter().map(|_| Cell::new(false)).collect();
    let doubt: RefCell<Option<String>> = RefCell::default();
    let conditions = || step.always.iter().zip(&told);
    let look = || {
        let now = (!step.always.is_empty()).then(|| bench.now());
        for (condition, told) in conditions() {
            let Some(Look { measured, holds }) = now.as_ref().map(|now| now.look(condition)) else {
                continue;
            };
            told.set(told.get() || holds != Holds::Unknown);
            let after = || show_seconds(began.elapsed().as_secs_f64());
            match holds {
                Holds::Yes | Holds::Unknown => {}
                Holds::No => {
                    let text = format!(
                        "{} did not hold {} after the step began: {}",
                        condition.text,
                        after(),
                        measured.measured
                    );
                    return Err(failed(condition, text));
                }
                Holds::Doubtful(why) => {
                    let say = || {
                        let text = &condition.text;
                        format!(
                            "{text} may not have held {} after the step began, as {why}",
                            after()
                        )
                    };
                    doubt.borrow_mut().get_or_insert_with(say);
                }
            }
        }
        Ok(())
    };
    let watch = async {
        if step.always.is_empty() {
            return std::future::pending().await;
        }
        loop {
            if let Err(trouble) = look() {
                return trouble;
            }
            tokio::select! {
                () = bench.probes.next_try() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    };
    let done = tokio::select! {
        biased;
        trouble = watch => return Err(trouble),
        done = work => done?,
    };
    look()?;
    match conditions().find(|(_, told)| !told.get()) {
        None => match doubt.take() {
            None => Ok(done),
            Some(text) => Err(StepError::Doubtful(text)),
        },
        Some((condition, _)) => {
            let missing = bench.now().look(condition).measured.missing.join(", ");
            let text = format!(
                "nobody could tell whether {} held: nothing known of {missing} in the whole step",
                condition.text
            );
            Err(failed(condition, text))
        }
    }
}

fn failed(condition: &Expr, text: String) -> StepError {
    let loads = condition.metrics().filter_map(Metric::load);
    StepError::Failed {
        text,
        rests_on: loads.map(str::to_owned).collect(),
    }
}
