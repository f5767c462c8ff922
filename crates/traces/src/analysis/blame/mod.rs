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

/// Two sides, with all runs of each together.
pub(super) struct Sides(Places, Places);

impl Sides {
    pub(super) fn of<'p>(
        a: impl Iterator<Item = &'p Places>,
        b: impl Iterator<Item = &'p Places>,
    ) -> Self {
        Self(all(a), all(b))
    }

    /// Names who is behind the difference, the likeliest first; nobody, where nothing differs
    /// beyond chance. Beside it, what differs and accuses nobody.
    pub(super) fn blame(&self) -> (Vec<Culprit>, Vec<String>) {
        let changes = Changes::between(&self.0, &self.1);
        let mut culprits = hubs::of(&changes);
        culprits.truncate(MOST);
        let is_named = |one: &&NeutralChange| {
            let service = &*one.reshaped().endpoint.service;
            culprits.iter().any(|culprit| culprit.service == *service)
        };
        let otherwise = changes.otherwise.iter().filter(|one| !is_named(one));
        let told = otherwise.take(MOST).map(sentences::otherwise);
        let alike = changes.alike.map(sentences::alike);
        let told = alike.into_iter().chain(told).collect();
        (culprits, told)
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
        let failing = Changes::most_failing(&self.0, &self.1)?;
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
        let (a, b) = (&self.0.links, &self.1.links);
        (a.losses(b), b.losses(a))
    }

    /// Requests of each side that are not compared place by place, since spans of them are missing.
    pub(super) fn torn(&self) -> (u64, u64) {
        (self.0.torn(), self.1.torn())
    }

    fn visits(&self) -> (Cow<'_, Visits>, Cow<'_, Visits>) {
        let whole = self.0.has_whole() && self.1.has_whole();
        (self.0.visits(whole), self.1.visits(whole))
    }
}

fn all<'p>(runs: impl Iterator<Item = &'p Places>) -> Places {
    let mut all = Places::default();
    runs.for_each(|run| all.extend(run));
    all
}

#[cfg(test)]
mod tests;
