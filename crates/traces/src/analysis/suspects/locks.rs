//! Locks that workers stand at: all are busy, and none of them works.

use super::{Judge, Suspect, SuspectKind, largest_first};
use crate::analysis::cause::Cause;
use crate::analysis::ledger::Part;
use crate::analysis::phrases;

/// The step that holds a lock while it works.
const LOCK: &str = "lock";

/// Workers stand at a lock if they do so for this share of their time: of two that do nothing else
/// and are always busy one works, so that it is half; and they are not always busy.
const STAND: f64 = 1.0 / 3.0;

/// What is asked for, with the lock in the place of workers that stand at it.
pub(super) fn behind_workers(judge: &Judge<'_>, found: Vec<Suspect>) -> Vec<Suspect> {
    let (workers, mut others): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|one| one.kind == SuspectKind::Workers);
    for suspect in workers {
        let Some(share) = standing(judge, &suspect.place) else {
            others.push(suspect);
            continue;
        };
        let place = format!("{} {LOCK}", suspect.place);
        others.retain(|one| one.place != place || one.kind != SuspectKind::Wait);
        let parts = judge.evidence.parts(|part| {
            *part.service == *suspect.place
                && !part.work.is_empty()
                && (part.cause == Cause::Queue || is_lock(part))
        });
        let held = judge.held(&parts, judge.evidence.beyond_budget(&parts));
        let mut lock = judge.suspect(SuspectKind::Wait, place, &parts, &held);
        lock.sentence = phrases::lock(&suspect.place, share);
        others.push(lock);
    }
    largest_first(&mut others);
    others
}

fn is_lock(part: &Part) -> bool {
    part.cause == Cause::Wait && &*part.work == LOCK
}

/// The share of their time for which workers of a service stand at its lock, if that is most.
fn standing(judge: &Judge<'_>, service: &str) -> Option<f64> {
    let evidence = judge.evidence;
    let busy = evidence.parts(|part| {
        *part.service == *service && !part.work.is_empty() && part.cause != Cause::Queue
    });
    let lock = evidence.parts(|part| *part.service == *service && is_lock(part));
    let share = evidence.mean_length(&lock) / evidence.mean_length(&busy).max(1.0);
    (share >= STAND).then_some(share)
}
