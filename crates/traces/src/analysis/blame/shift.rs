//! Who holds the most of what requests take longer, where no place is much slower by itself.
//!
//! A service of which one instance of three is slow, or that is slower by half, may take less than
//! a tenth of a latency more and yet be all that moved. It is asked for where latencies are worse
//! beyond chance and nobody else was found.

use std::collections::{BTreeMap, BTreeSet};

use stats::{normal_quantile, rank_sum};

use super::few::{Held, Side, entries, waited};
use super::often;
use super::places::{Place, PlaceActivity, Visits};
use crate::Name;

/// A service is named if it has so much of what moved.
const HELD: f64 = 0.3;

/// Who holds most of what moved.
pub(super) struct Shift {
    /// What all requests take longer together, those of which that is beyond chance.
    pub(super) held: Held,
    /// Such requests.
    pub(super) requests: usize,
}

/// What each place of a service takes longer.
type Longer<'v> = BTreeMap<&'v Name, BTreeMap<&'v Place, f64>>;

/// Looks for it; each of its tests errs in so many cases, together.
pub(super) fn between(a: &Visits, b: &Visits, chance: f64) -> Option<Shift> {
    let entries = entries(a, b);
    let (mut all, mut requests) = (0.0, 0);
    let mut services = Longer::new();
    let each = chance / entries.len().max(1) as f64;
    for (before, now) in entries.values() {
        let more = stats::mean(&now.latencies)? - stats::mean(&before.latencies)?;
        let differs = rank_sum(&before.latencies, &now.latencies);
        if more <= 0.0 || differs.is_none_or(|found| found <= -normal_quantile(each)) {
            continue;
        }
        let count = now.requests.len();
        all += more * count as f64;
        requests += count;
        proven((a, before), (b, now), each, &mut services);
    }
    let sum = |places: &BTreeMap<&Place, f64>| places.values().sum::<f64>();
    let most = services
        .values()
        .max_by(|one, other| sum(one).total_cmp(&sum(other)))?;
    let held = sum(most);
    let (place, _) = most.iter().max_by(|one, other| one.1.total_cmp(other.1))?;
    (held >= all * HELD).then(|| Shift {
        held: Held {
            place: (*place).clone(),
            excess: all,
            of_service: held,
            often: often::of_requests(place, (a, &of_side(a)), (b, &of_side(b))),
        },
        requests,
    })
}

fn of_side(visits: &Visits) -> BTreeSet<usize> {
    (0..visits.requests.len()).collect()
}

/// Adds what places take longer beyond chance, among the requests of one entry.
fn proven<'v>(
    (a, before): (&'v Visits, &Side),
    (b, now): (&'v Visits, &Side),
    chance: f64,
    services: &mut Longer<'v>,
) {
    let of = |side: &Side| -> BTreeSet<usize> { side.requests.iter().copied().collect() };
    let (earlier, later) = (of(before), of(now));
    let (was, is) = (waited(a, &earlier), waited(b, &later));
    let least = -normal_quantile(chance / is.len().max(1) as f64);
    for (place, waited) in is {
        let more = waited - was.get(place).copied().unwrap_or(0.0);
        let spent = |stay: Option<&PlaceActivity>, requests: &BTreeSet<usize>| -> Vec<f64> {
            let passages = stay.into_iter().flat_map(|stay| &stay.passages);
            let its = passages.filter(|one| requests.contains(&one.request));
            its.map(|one| one.spent).collect()
        };
        let (a, b) = (
            spent(a.stays.get(place), &earlier),
            spent(b.stays.get(place), &later),
        );
        if more > 0.0 && rank_sum(&a, &b).is_some_and(|found| found > least) {
            let places = services.entry(place.service()).or_default();
            *places.entry(place).or_default() += more * later.len() as f64;
        }
    }
}
