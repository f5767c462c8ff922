//! How long requests took, by application: a histogram for each, of a bounded number.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use crate::table::{Endpoint, Nanos, Text};

/// Upper bounds of the buckets in nanoseconds: gorouter's, 0.1 s doubled eight times.
pub const BOUNDS: [Nanos; 9] = {
    let mut bounds = [100_000_000; 9];
    let mut at = 1;
    while at < bounds.len() {
        bounds[at] = bounds[at - 1] * 2;
        at += 1;
    }
    bounds
};

/// The application of requests that reached no endpoint, or one without the tag, as
/// gorouter calls it.
const NONE: &str = "gorouter";
/// All applications beyond the bound.
const OTHER: &str = "other";
/// The tag that names an endpoint's application.
const TAG: &str = "source_id";

/// The latencies of one application.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AppLatency {
    /// Values at most each of [`BOUNDS`]; not cumulative.
    pub buckets: [u64; 9],
    /// All values.
    pub count: u64,
    /// Their sum in nanoseconds.
    pub sum: u64,
}

impl AppLatency {
    fn record(&mut self, took: Nanos) {
        let bucket = BOUNDS.iter().position(|bound| took <= *bound);
        if let Some(bucket) = bucket.and_then(|at| self.buckets.get_mut(at)) {
            *bucket += 1;
        }
        self.count += 1;
        self.sum = self.sum.wrapping_add(took);
    }

    fn add(&mut self, other: &Self) {
        for (own, more) in self.buckets.iter_mut().zip(other.buckets) {
            *own += more;
        }
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

/// What one thread has recorded; any thread reads it.
#[derive(Debug, Default)]
pub struct AppLatencies(Mutex<HashMap<Text, AppLatency>>);

impl AppLatencies {
    /// Records a request that took so long and reached `endpoint`, if any. At most `most`
    /// applications are told apart; those that come later are one. `false`: nothing was
    /// recorded, as somebody reads just now, whom no request waits for.
    pub(super) fn record(&self, endpoint: Option<&Endpoint>, took: Nanos, most: usize) -> bool {
        let tags = endpoint.and_then(|endpoint| endpoint.tags.as_deref());
        let tag = tags.and_then(|tags| tags.iter().find(|(name, _)| name.as_str() == TAG));
        let name = tag.map(|(_, value)| value).filter(|it| !it.is_empty());
        let Ok(mut apps) = self.0.try_lock() else {
            return false;
        };
        let known = apps.get_mut(name.map_or(NONE, Text::as_str));
        match known {
            Some(latency) => latency.record(took),
            None => {
                let name = match name {
                    None => Text::from(NONE),
                    Some(_) if apps.len() >= most => Text::from(OTHER),
                    Some(name) => name.clone(),
                };
                apps.entry(name).or_default().record(took);
            }
        }
        true
    }

    /// Adds everything to `all`, in which it is added up over the threads.
    pub(super) fn add_to(&self, all: &mut BTreeMap<String, AppLatency>) {
        let copy: Vec<_> = {
            let apps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let copy = apps.iter().map(|(name, latency)| (name.clone(), *latency));
            copy.collect()
        };
        for (name, latency) in copy {
            all.entry(name.to_string()).or_default().add(&latency);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(app: &str) -> Endpoint {
        let tags = [(Text::from(TAG), Text::from(app))];
        Endpoint {
            tags: Some(tags.into_iter().collect()),
            ..Endpoint::default()
        }
    }

    fn told(latencies: &AppLatencies) -> Vec<(String, u64)> {
        let mut all = BTreeMap::new();
        latencies.add_to(&mut all);
        all.into_iter().map(|(name, it)| (name, it.count)).collect()
    }

    #[test]
    fn applications_beyond_the_bound_are_one() {
        let latencies = AppLatencies::default();
        for app in ["a", "b", "c", "d", "a", ""] {
            assert!(latencies.record(Some(&endpoint(app)), 1, 2));
        }
        assert!(latencies.record(None, 1, 2));
        let expected = [("a", 2), ("b", 1), ("gorouter", 2), ("other", 2)];
        assert_eq!(
            told(&latencies),
            expected.map(|(name, n)| (name.to_owned(), n))
        );
    }

    #[test]
    fn values_fall_into_their_buckets() {
        let mut latency = AppLatency::default();
        for took in [0, BOUNDS[0], BOUNDS[0] + 1, BOUNDS[8], BOUNDS[8] + 1] {
            latency.record(took);
        }
        assert_eq!(latency.buckets, [2, 1, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!((latency.count, BOUNDS[8]), (5, 25_600_000_000));
        let mut twice = latency;
        twice.add(&latency);
        assert_eq!((twice.count, twice.sum), (10, 2 * latency.sum));
    }

    #[test]
    fn nobody_waits_for_a_reader() {
        let latencies = AppLatencies::default();
        let _reads = latencies.0.lock().unwrap();
        assert!(!latencies.record(None, 1, 2));
    }
}
