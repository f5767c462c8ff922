//! What all services take longer alike.
//!
//! A slower machine, more load or another time of day makes everybody slow: some place then has the
//! most of it, and is not behind it. So a place stands out only if it grew by twice as much as the
//! others' own time did.

use std::collections::BTreeMap;

use super::changes::{ENOUGH, Slower, usual};
use super::places::{Place, PlaceActivity, Visits};
use crate::Name;

/// Fewest services beside a place that tell.
const FEWEST: usize = 3;

/// Of those, so many may have grown less: others share what only some have.
const LEAST: f64 = 0.25;

/// All take longer from this growth on.
const GREW: f64 = 1.1;

/// One place stands out if it grew by so many times what all did.
const TIMES_OTHERS: f64 = 2.0;

/// How many times as long as before services take by themselves, the least first.
pub(super) struct Growth<'v>(Vec<(&'v Name, f64)>);

impl<'v> Growth<'v> {
    pub(super) fn between(a: &'v Visits, b: &'v Visits) -> Self {
        let mut services: BTreeMap<&Name, (f64, f64)> = BTreeMap::new();
        for (place, now) in &b.stays {
            let (Place::Within(at), Some(before)) = (place, a.stays.get(place)) else {
                continue;
            };
            let (count, earlier) = (now.passages.len(), before.passages.len());
            if count.min(earlier) >= ENOUGH {
                let sums = services.entry(&at.service).or_default();
                sums.0 += usual_spent(before) * count as f64;
                sums.1 += usual_spent(now) * count as f64;
            }
        }
        let took = services.into_iter().filter(|(_, sums)| sums.0 > 0.0);
        let mut all: Vec<(&Name, f64)> = took
            .map(|(service, (before, now))| (service, now / before))
            .collect();
        all.sort_by(|one, other| one.1.total_cmp(&other.1));
        Self(all)
    }

    /// How many times as long nearly all services take, if they take longer.
    pub(super) fn of_all(&self) -> Option<f64> {
        self.of(|_| true).filter(|_| self.0.len() > FEWEST)
    }

    /// Whether a place only grew as the others did.
    pub(super) fn explains(&self, slower: &Slower) -> bool {
        let is_other = |service: &Name| match &slower.place {
            Place::Within(at) => at.service != *service,
            Place::Between(from, to) => from != service && to.service != *service,
        };
        let (before, now) = slower.means;
        self.of(is_other)
            .is_some_and(|others| now - before < before * (others - 1.0) * TIMES_OTHERS)
    }

    fn of(&self, is_asked: impl Fn(&Name) -> bool) -> Option<f64> {
        let asked = self.0.iter().filter(|(service, _)| is_asked(service));
        let asked: Vec<f64> = asked.map(|(_, growth)| *growth).collect();
        let least = stats::nearest_rank(&asked, LEAST)?;
        (asked.len() >= FEWEST && least >= GREW).then_some(least)
    }
}

/// The usual time of a request that passes, in nanoseconds.
fn usual_spent(stay: &PlaceActivity) -> f64 {
    usual(stay.passages.iter().map(|one| one.spent))
}
