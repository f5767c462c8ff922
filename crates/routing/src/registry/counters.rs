//! What the feed counts. One thread counts, any thread reads.

use std::sync::{Mutex, PoisonError};

use crate::http::counters::HistogramTotal;
use crate::table::{Registered, Unregistered};

/// Components that are counted by name; later ones are counted together.
const MOST_COMPONENTS: usize = 64;

/// The name under which those are counted.
pub const OTHER_COMPONENTS: &str = "other";

/// Upper bounds of the times from an endpoint's change to its registration, in
/// nanoseconds: those of gorouter, which end at 4 ms, and on to 100 s.
const LATENCY_BOUNDS: [u64; 19] = [
    100_000,
    500_000,
    1_000_000,
    1_500_000,
    2_000_000,
    2_500_000,
    3_000_000,
    3_500_000,
    4_000_000,
    5_000_000,
    10_000_000,
    50_000_000,
    100_000_000,
    500_000_000,
    1_000_000_000,
    5_000_000_000,
    10_000_000_000,
    50_000_000_000,
    100_000_000_000,
];

/// What became of a component's registrations. A message counts once for each of its
/// routes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ComponentTotals {
    /// The component, as the tag of that name says; empty: unknown.
    pub component: Box<str>,
    /// Endpoints that were new.
    pub added: u64,
    /// Endpoints that changed.
    pub updated: u64,
    /// Endpoints that were there, alike.
    pub refreshed: u64,
    /// Endpoints that were not taken: of another isolation segment.
    pub ignored: u64,
    /// Unregistrations, those without an effect included.
    pub unregistered: u64,
}

/// All that was counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegistryTotals {
    /// By component, in the order in which they were first heard of.
    pub components: Vec<ComponentTotals>,
    /// Endpoints whose removal was asked for and that were there.
    pub removed: u64,
    /// Messages that were no registration.
    pub invalid_messages: u64,
    /// Routes in messages that were no `host[/path]`.
    pub invalid_routes: u64,
    /// Endpoints that were refused, since there are as many routes, endpoints of their
    /// route, or endpoints in all, as there may be.
    pub refused: u64,
    /// Endpoints that were pruned.
    pub endpoints_pruned: u64,
    /// Answers to `router.greet`.
    pub greeted: u64,
    /// Log lines that were left out because too many came at once.
    pub lines_left_out: u64,
    /// From an endpoint's change to its registration, nanoseconds.
    pub latency: HistogramTotal,
}

impl RegistryTotals {
    /// Sums over all components.
    pub fn all_components(&self) -> ComponentTotals {
        let mut all = ComponentTotals::default();
        for one in &self.components {
            all.add(one);
        }
        all
    }

    pub(crate) fn registered(&mut self, component: &str, what: Registered) {
        let totals = self.component(component);
        match what {
            Registered::Added { .. } => totals.added += 1,
            Registered::Updated => totals.updated += 1,
            Registered::Refreshed => totals.refreshed += 1,
            Registered::Ignored => totals.ignored += 1,
            Registered::Refused(_) => self.refused += 1,
        }
    }

    pub(super) fn refreshed(&mut self, component: &str, endpoints: u64) {
        self.component(component).refreshed += endpoints;
    }

    pub(crate) fn unregistered(&mut self, component: &str, what: Unregistered) {
        self.component(component).unregistered += 1;
        self.removed += u64::from(matches!(what, Unregistered::Removed { .. }));
    }

    pub(super) fn took(&mut self, nanoseconds: u64) {
        if self.latency.buckets.is_empty() {
            self.latency.buckets = LATENCY_BOUNDS.iter().map(|bound| (*bound, 0)).collect();
        }
        for (bound, below) in &mut self.latency.buckets {
            *below += u64::from(nanoseconds <= *bound);
        }
        self.latency.count += 1;
        self.latency.sum = self.latency.sum.saturating_add(nanoseconds);
    }

    fn component(&mut self, name: &str) -> &mut ComponentTotals {
        let known = self.components.iter().position(|it| &*it.component == name);
        let at = known.unwrap_or_else(|| {
            // One place is kept for the others.
            let others = self.components.len() >= MOST_COMPONENTS - 1;
            let name = if others { OTHER_COMPONENTS } else { name };
            let known = self.components.iter().position(|it| &*it.component == name);
            known.unwrap_or_else(|| {
                self.components.push(ComponentTotals {
                    component: name.into(),
                    ..ComponentTotals::default()
                });
                self.components.len() - 1
            })
        });
        &mut self.components[at]
    }
}

impl ComponentTotals {
    fn add(&mut self, other: &Self) {
        self.added += other.added;
        self.updated += other.updated;
        self.refreshed += other.refreshed;
        self.ignored += other.ignored;
        self.unregistered += other.unregistered;
    }
}

/// The feed's counters, to be read by others.
#[derive(Debug, Default)]
pub struct RegistryCounters(Mutex<RegistryTotals>);

impl RegistryCounters {
    /// What was counted so far.
    pub fn totals(&self) -> RegistryTotals {
        self.with(|totals| totals.clone())
    }

    /// Counts. Taken once for many messages.
    pub(crate) fn with<T>(&self, count: impl FnOnce(&mut RegistryTotals) -> T) -> T {
        count(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_counted_by_name_up_to_a_bound() {
        let mut totals = RegistryTotals::default();
        for round in 0..2 {
            for number in 0..100 {
                totals.registered(&format!("c{number}"), Registered::Updated);
            }
            totals.registered("c0", Registered::Added { route: round == 0 });
        }
        assert_eq!(totals.components.len(), MOST_COMPONENTS);
        assert_eq!(
            (totals.components[0].added, totals.components[0].updated),
            (2, 2)
        );
        let others = totals.components.last().unwrap();
        assert_eq!(
            (&*others.component, others.updated),
            (OTHER_COMPONENTS, 2 * (100 - 63))
        );
        assert_eq!(totals.all_components().updated, 200);
    }

    #[test]
    fn buckets_are_cumulative() {
        let mut totals = RegistryTotals::default();
        for value in [1, 1_000_000, 1_000_001, u64::MAX] {
            totals.took(value);
        }
        let below: Vec<_> = totals
            .latency
            .buckets
            .iter()
            .map(|(_, below)| *below)
            .collect();
        assert_eq!(&below[1..4], [1, 2, 3]);
        assert_eq!(below.last(), Some(&3));
        assert_eq!((totals.latency.count, totals.latency.sum), (4, u64::MAX));
    }
}
