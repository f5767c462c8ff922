//! Which services are behind the difference between two runs.
//!
//! Latency alone does not tell: a fault of 4 % of the requests moves no percentile but the
//! highest, and one that ends requests early makes them fast. So runs are compared place by
//! place, each among the requests that pass there: how long it takes, how often it fails, and
//! what its visits call. What is behind many changed places stands where those meet: a service
//! all of whose calls take longer is slow to run or badly connected, whoever calls it.

mod alike;
mod changes;
mod few;
mod hubs;
#[cfg(test)]
mod innocents;
mod links;
mod often;
mod places;
mod sentences;
mod shapes;
mod shift;
#[cfg(test)]
pub(crate) mod shop;
mod strata;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::Nanos;

use alike::Growth;
use changes::{Changes, FALSE, FAMILIES, NeutralChange};
pub(super) use few::Visible;
pub(super) use links::Losses;
pub(super) use places::Places;
use places::Visits;

/// Most services that are named.
const MOST: usize = 3;
/// Most parts of a side that are compared with the others of it.
const MOST_PARTS: usize = 8;
/// So many times as much as between the runs of a side is lost where the sides differ.
const BEYOND_RUNS: f64 = 2.0;

/// A service behind what differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Culprit {
    /// Who.
    pub service: String,
    /// Why, in plain words; the weightiest first.
    pub reasons: Vec<String>,
    /// What requests lost there, of all of them together, in nanoseconds; 0: they lost none,
    /// but failed or ended otherwise.
    pub lost_ns: Nanos,
    /// Whether requests wait for it: otherwise it is beside their critical paths, and in no
    /// latency yet.
    pub is_waited_for: bool,
}

/// Who is behind the difference of two sides.
pub(super) struct Blame {
    /// The likeliest first; nobody, where nothing differs beyond chance.
    pub(super) culprits: Vec<Culprit>,
    /// What differs and accuses nobody.
    pub(super) innocent: Vec<String>,
    /// Whether services would be named, did they not differ as much between the runs of a side.
    pub(super) is_of_runs: bool,
}

/// Two sides, with all runs of each together, and one by one.
pub(super) struct Sides<'p> {
    a: Places,
    b: Places,
    runs: [Vec<&'p Places>; 2],
}

impl<'p> Sides<'p> {
    pub(super) fn of(
        a: impl Iterator<Item = &'p Places>,
        b: impl Iterator<Item = &'p Places>,
    ) -> Self {
        let (a, b): (Vec<_>, Vec<_>) = (a.collect(), b.collect());
        Self {
            a: all(&a),
            b: all(&b),
            runs: [a, b],
        }
    }

    /// Names who is behind the difference.
    pub(super) fn blame(&self) -> Blame {
        let changes = Changes::between(&self.a, &self.b);
        let mut culprits = hubs::of(&changes);
        let varying = match culprits.is_empty() {
            true => BTreeMap::new(),
            false => self.varying(),
        };
        let varies = |one: &mut Culprit| {
            let most = varying.get(&one.service);
            most.is_some_and(|most| lost_each(one, &self.b) <= BEYOND_RUNS * most)
        };
        let varying: Vec<Culprit> = culprits.extract_if(.., varies).collect();
        culprits.truncate(MOST);
        let is_named = |one: &&NeutralChange| {
            let service = &*one.reshaped().endpoint.service;
            culprits.iter().any(|culprit| culprit.service == *service)
        };
        let otherwise = changes.otherwise.iter().filter(|one| !is_named(one));
        let otherwise = otherwise.take(MOST).map(sentences::otherwise);
        let alike = changes.alike.map(sentences::alike).into_iter();
        let of_runs = varying.iter().take(MOST).map(sentences::varying);
        Blame {
            innocent: alike.chain(of_runs).chain(otherwise).collect(),
            is_of_runs: !varying.is_empty(),
            culprits,
        }
    }

    /// Services that a part of a side would be accused of beside the rest of that side, with the
    /// most that a request of the part loses there: they differ from run to run, whatever changed.
    fn varying(&self) -> BTreeMap<String, f64> {
        let mut varying = BTreeMap::new();
        for runs in &self.runs {
            let parts: Vec<&[&Places]> = runs
                .chunks(runs.len().div_ceil(MOST_PARTS).max(1))
                .collect();
            // What a single run differs from is not known.
            if parts.len() == 1 {
                continue;
            }
            for place in 0..parts.len() {
                let rest = [parts[..place].concat(), parts[place + 1..].concat()].concat();
                let part = all(parts[place]);
                for culprit in hubs::of(&Changes::between(&all(&rest), &part)) {
                    let lost = lost_each(&culprit, &part);
                    let most = varying.entry(culprit.service).or_insert(lost);
                    *most = most.max(lost);
                }
            }
        }
        varying
    }

    /// Names who holds the most of what requests take longer, where nobody else is behind it;
    /// nobody, where all services take longer alike.
    pub(super) fn blame_shift(&self) -> Option<Culprit> {
        let (a, b) = self.visits();
        if Growth::between(&a, &b).of_all().is_some() {
            return None;
        }
        let shift = shift::between(&a, &b, FALSE)?;
        Some(Culprit {
            service: shift.held.service().to_string(),
            reasons: vec![sentences::shift(&shift)],
            lost_ns: shift.held.of_service as u64,
            is_waited_for: true,
        })
    }

    /// Names where most of what fails more does, where nobody else is behind it.
    pub(super) fn blame_failures(&self) -> Option<Culprit> {
        let failing = Changes::most_failing(&self.a, &self.b)?;
        Some(Culprit {
            service: failing.service().to_string(),
            reasons: vec![sentences::failing(&failing)],
            lost_ns: 0,
            is_waited_for: true,
        })
    }

    /// Of each entry, slow requests that may be chance's: more than would have been seen, had they
    /// come one by one.
    pub(super) fn groups(&self) -> Vec<String> {
        let (a, b) = self.visits();
        let groups = few::in_groups(&a, &b, FALSE / FAMILIES);
        groups.iter().take(MOST).map(sentences::groups).collect()
    }

    /// From which share on slow requests of each entry would have been seen.
    pub(super) fn visible(&self) -> Vec<Visible> {
        let (a, b) = self.visits();
        few::visible(&a, &b, FALSE / FAMILIES)
    }

    /// Spans that are missing on each side.
    pub(super) fn losses(&self) -> (Losses, Losses) {
        let (a, b) = (&self.a.links, &self.b.links);
        (a.losses(b), b.losses(a))
    }

    /// Requests of each side that are not compared place by place, since spans of them are missing.
    pub(super) fn torn(&self) -> (u64, u64) {
        (self.a.torn(), self.b.torn())
    }

    fn visits(&self) -> (Cow<'_, Visits>, Cow<'_, Visits>) {
        let whole = self.a.has_whole() && self.b.has_whole();
        (self.a.visits(whole), self.b.visits(whole))
    }
}

fn all(runs: &[&Places]) -> Places {
    let mut all = Places::default();
    runs.iter().for_each(|run| all.extend(run));
    all
}

/// What a request of a side loses where a service is behind it, in the mean, in nanoseconds.
fn lost_each(culprit: &Culprit, side: &Places) -> f64 {
    culprit.lost_ns as f64 / side.requests().max(1) as f64
}

#[cfg(test)]
mod tests;
