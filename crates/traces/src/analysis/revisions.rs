//! Requests under several revisions of a profile: each is held to its own, and before stands
//! beside after.

use std::collections::BTreeMap;

use serde::Serialize;
use units::grouped;

use super::Analysis;
use super::cause::Cause;
use super::figures::Latency;
use super::ledger::{Ledger, Part};
use super::resample::{Estimate, Resamples};
use super::sentences::time;
use super::survey::Accumulator;
use super::suspects::{Suspect, SuspectKind};

/// Parts that changed by less than this share of the whole change are not told.
const WORTH_SAYING: f64 = 0.1;

/// A change below this share of what was before is none.
const CHANGED: f64 = 0.05;

/// Requests that ran under one revision of the profile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Revision {
    /// As spans have it, counted from 1.
    pub revision: u32,
    /// Whether everything else is of this one.
    pub chosen: bool,
    /// With those that failed.
    pub requests: u64,
    /// Those that failed.
    pub failed: u64,
    /// Of those that succeeded.
    pub latency: Latency,
}

/// Every revision, if there are several.
pub(super) fn all(
    chosen: Option<u32>,
    book: &Accumulator,
    others: &[(u32, Accumulator)],
) -> Vec<Revision> {
    let (Some(chosen), false) = (chosen, others.is_empty()) else {
        return Vec::new();
    };
    let of = |revision: u32, book: &Accumulator| Revision {
        revision,
        chosen: revision == chosen,
        requests: book.requests(),
        failed: book.failed(),
        latency: Latency::of(&book.ledger.totals),
    };
    let mut all: Vec<Revision> = others.iter().map(|(at, book)| of(*at, book)).collect();
    all.push(of(chosen, book));
    all.sort_by_key(|one| one.revision);
    all
}

/// How one part changed.
struct Change {
    part: Part,
    by: Estimate,
    /// Work wherever it ran, on the critical path or not; `None`: it is no work.
    done: Option<Estimate>,
}

/// What became of requests from one revision to the next.
pub(super) struct Changed {
    before: u32,
    by: Estimate,
    was: f64,
    /// What was asked for first, then the largest.
    parts: Vec<Change>,
}

impl Changed {
    /// `None`: too few requests of one of them.
    pub(super) fn of((revision, before): (u32, &Ledger), after: &Ledger) -> Option<Self> {
        let (old, new) = (
            Resamples::seeded(before.starts(), 0xbef0)?,
            Resamples::of(after.starts())?,
        );
        let difference = |sums: &Sums, key: &Part| {
            let none_old = vec![0.0; old.stretches()];
            let none_new = vec![0.0; new.stretches()];
            let was = sums.0.get(key).unwrap_or(&none_old);
            let is = sums.1.get(key).unwrap_or(&none_new);
            new.difference(is, (&old, was))
        };
        let by = new.difference(&new.totals(after), (&old, &old.totals(before)));
        let on_path = (on_path(before, &old), on_path(after, &new));
        let done = (done(before, &old), done(after, &new));
        let keys = on_path.0.keys().chain(on_path.1.keys());
        let keys: std::collections::BTreeSet<&Part> = keys.collect();
        let parts = keys.into_iter().map(|part| Change {
            part: part.clone(),
            by: difference(&on_path, part),
            done: (done.0.contains_key(part) || done.1.contains_key(part))
                .then(|| difference(&done, part)),
        });
        let was = before.mean();
        let is_worth_saying = |one: &Change| {
            // What is asked for is what can be changed, even if queues make more of it.
            let whole = match is_asked(&one.part) {
                true => by.value.abs().min(was),
                false => by.value.abs(),
            };
            one.by.value.signum() == by.value.signum()
                && one.by.value.abs() >= whole * WORTH_SAYING
                && is_certain(&one.by)
        };
        let mut parts: Vec<Change> = parts.filter(is_worth_saying).collect();
        parts.sort_by(|one, other| {
            let rank = |one: &Change| (is_asked(&one.part), one.by.value.abs());
            let ((asked, by), (other_asked, other_by)) = (rank(one), rank(other));
            other_asked.cmp(&asked).then(other_by.total_cmp(&by))
        });
        Some(Self {
            before: revision,
            by,
            was,
            parts,
        })
    }

    /// Whether anything changed beyond what stretches of a run differ by.
    fn is_change(&self) -> bool {
        is_certain(&self.by) && self.by.value.abs() >= self.was * CHANGED
    }

    /// What the new profile asks for and the one before did not.
    pub(super) fn suspects(&self) -> Vec<Suspect> {
        let grew = self.parts.iter().filter(|one| {
            is_asked(&one.part) && self.by.low > 0.0 && one.done.is_some_and(|done| done.low > 0.0)
        });
        let all = grew.filter(|_| self.is_change()).map(|one| Suspect {
            kind: SuspectKind::Profile,
            place: format!("{} {}", one.part.service, one.part.work),
            effect_ns: one.by.value,
            interval_ns: (one.by.low, one.by.high),
            tail_share: None,
            sentence: String::new(),
            parts: Vec::new(),
        });
        all.collect()
    }

    fn describe(&self) -> String {
        if !self.is_change() {
            return "No difference between both can be resolved.".to_owned();
        }
        let word = if self.by.value > 0.0 { "more" } else { "less" };
        let parts = self.parts.iter().take(3).map(|one| {
            let part = &one.part;
            let place = match (part.peer.is_empty(), part.work.is_empty()) {
                (false, _) => format!("{}>{}", part.service, part.peer),
                (_, false) => format!("{} {}", part.service, part.work),
                _ => part.service.to_string(),
            };
            let how = match one.done {
                Some(done) if done.value.abs() * 2.0 < one.by.value.abs() => {
                    match one.by.value > 0.0 {
                        true => ", which moved onto the critical path and takes no longer",
                        false => ", which moved off the critical path and takes as long",
                    }
                }
                _ => "",
            };
            let by = time(one.by.value.abs());
            format!("{by} `{place}` {}{how}", part.cause.name())
        });
        let parts: Vec<String> = parts.collect();
        let parts = match parts.is_empty() {
            true => String::new(),
            false => format!(": of it {}", parts.join(", ")),
        };
        format!(
            "Since revision {} a request takes {} {word} ({} to {}){parts}.",
            self.before,
            time(self.by.value.abs()),
            time(self.by.low.abs().min(self.by.high.abs())),
            time(self.by.low.abs().max(self.by.high.abs())),
        )
    }
}

fn is_asked(part: &Part) -> bool {
    matches!(part.cause, Cause::Cpu | Cause::Sleep)
}

fn is_certain(one: &Estimate) -> bool {
    one.low > 0.0 || one.high < 0.0
}

/// Sums over stretches, before and after.
type Sums = (BTreeMap<Part, Vec<f64>>, BTreeMap<Part, Vec<f64>>);

fn on_path(ledger: &Ledger, of: &Resamples) -> BTreeMap<Part, Vec<f64>> {
    let sums = of.sums(ledger.parts.len(), ledger.lengths());
    ledger.parts.iter().cloned().zip(sums).collect()
}

fn done(ledger: &Ledger, of: &Resamples) -> BTreeMap<Part, Vec<f64>> {
    let sums = of.sums(ledger.done_parts.len(), ledger.done());
    ledger.done_parts.iter().cloned().zip(sums).collect()
}

/// What is said of several revisions.
pub(super) fn sentence(analysis: &Analysis, changed: Option<&Changed>) -> Option<String> {
    let chosen = analysis.revisions.iter().find(|one| one.chosen)?;
    let each = analysis.revisions.iter().map(|one| {
        format!(
            "{} under revision {} (mean {}, p50 {}, {} failed)",
            grouped(one.requests),
            one.revision,
            time(one.latency.mean_ns),
            time(one.latency.p50_ns as f64),
            grouped(one.failed),
        )
    });
    let each: Vec<String> = each.collect();
    let changed = changed.map(|changed| format!(" {}", changed.describe()));
    Some(format!(
        "The profile changed while requests came: {}.{} All else here is of revision {}.",
        each.join(", "),
        changed.unwrap_or_default(),
        chosen.revision,
    ))
}
