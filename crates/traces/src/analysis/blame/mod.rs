//! Which services are behind the difference between two runs.
//!
//! Latency alone does not tell: a fault of 4 % of the requests moves no percentile but the
//! highest, and one that ends requests early makes them fast. So runs are compared place by
//! place, each among the requests that pass there: how long it takes, how often it fails, and
//! what its visits call. What is behind many changed places stands where those meet: a service
//! all of whose calls take longer is slow to run or badly connected, whoever calls it.

mod changes;
mod hubs;
mod places;
mod sentences;
#[cfg(test)]
pub(crate) mod shop;

use serde::Serialize;

use crate::Nanos;

use changes::Changes;
pub(super) use places::Places;

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

/// Names who is behind the difference between the runs of `a` and those of `b`, the likeliest
/// first; nobody, where nothing differs beyond chance.
pub(super) fn blame<'p>(
    a: impl Iterator<Item = &'p Places>,
    b: impl Iterator<Item = &'p Places>,
) -> Vec<Culprit> {
    let mut culprits = hubs::of(&Changes::between(&all(a), &all(b)));
    culprits.truncate(MOST);
    culprits
}

fn all<'p>(runs: impl Iterator<Item = &'p Places>) -> Places {
    let mut all = Places::default();
    runs.for_each(|run| all.extend(run));
    all
}

#[cfg(test)]
mod tests;
