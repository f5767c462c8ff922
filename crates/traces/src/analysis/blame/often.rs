//! Who visits a place more often, where each visit takes as long as before.
//!
//! A loop around a query makes its service busier and not slower: whoever has the loop is behind
//! it, and not who answers.

use std::collections::BTreeSet;

use super::places::{Endpoint, Place, Visits};
use crate::Name;

/// Of what a place takes longer, so much is by more visits at least.
const BY_VISITS: f64 = 0.5;

/// Visits that lead to visits are followed so far.
const FARTHEST: usize = 64;

/// Visits that became more.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MoreVisits {
    /// Whose visits make more.
    pub(super) by: Endpoint,
    /// What they visit.
    pub(super) of: Endpoint,
    /// Visits of the place by a request that passes, before and after.
    pub(super) visits: (f64, f64),
}

impl MoreVisits {
    /// One of which it is not yet known who is behind it.
    pub(super) fn untold(place: &Place, visits: (f64, f64)) -> Self {
        let at = visited(place);
        Self {
            by: at.clone(),
            of: at.clone(),
            visits,
        }
    }

    pub(super) fn service(&self) -> &Name {
        &self.by.service
    }
}

fn visited(place: &Place) -> &Endpoint {
    match place {
        Place::Within(at) | Place::Between(_, at) => at,
    }
}

/// Whether time grew by more visits rather than by longer ones; both are means of a request.
pub(super) fn is_more_often(visits: (f64, f64), spent: (f64, f64)) -> bool {
    let each = spent.0 / visits.0.max(f64::MIN_POSITIVE);
    let longer = spent.1 - spent.0;
    visits.0 > 0.0 && longer > 0.0 && (visits.1 - visits.0) * each >= longer * BY_VISITS
}

/// Who makes more visits of a place: from what is visited, up to where one visit leads to more
/// than before. `None`: nobody does; more requests pass there.
pub(super) fn who(
    (a, b): (&Visits, &Visits),
    place: &Place,
    visits: (f64, f64),
) -> Option<MoreVisits> {
    let mut of = visited(place).clone();
    for _ in 0..FARTHEST {
        let (by, before, now) = growing((a, b), &of)?;
        let all = |side: &Visits| side.visited.get(&by).copied().unwrap_or(0);
        let rate = |count: u64, side: &Visits| count as f64 / all(side).max(1) as f64;
        let (was, is) = (rate(before, a), rate(now, b));
        let (visited, visits_now) = (of_request(all(a), a), of_request(all(b), b));
        // Of visits that became more in two ways, the larger one is told.
        if was == 0.0 || is / was >= visits_now / visited.max(f64::MIN_POSITIVE) {
            return Some(MoreVisits { by, of, visits });
        }
        if by == of {
            return None;
        }
        of = by;
    }
    None
}

/// Who makes more visits of a place in some requests than in others before, if those take no longer
/// each.
pub(super) fn of_requests(
    place: &Place,
    (a, before): (&Visits, &BTreeSet<usize>),
    (b, now): (&Visits, &BTreeSet<usize>),
) -> Option<MoreVisits> {
    let means = |visits: &Visits, requests: &BTreeSet<usize>| -> (f64, f64) {
        let passages = visits.stays.get(place).into_iter();
        let passages = passages.flat_map(|stay| &stay.passages);
        let its = passages.filter(|one| requests.contains(&one.request));
        let sums = its.fold((0.0, 0.0), |sums, one| {
            (sums.0 + one.visits as f64, sums.1 + one.spent)
        });
        let count = requests.len().max(1) as f64;
        (sums.0 / count, sums.1 / count)
    };
    let (was, is) = (means(a, before), means(b, now));
    let visits = (was.0, is.0);
    match is_more_often(visits, (was.1, is.1)) {
        true => who((a, b), place, visits),
        false => None,
    }
}

fn of_request(count: u64, side: &Visits) -> f64 {
    count as f64 / side.requests.len().max(1) as f64
}

/// Below whose visits those of an endpoint became more by most, and how many they were on each side.
fn growing((a, b): (&Visits, &Visits), of: &Endpoint) -> Option<(Endpoint, u64, u64)> {
    let now = b.callers.get(of)?;
    let before = a.callers.get(of);
    let was = |by: &Endpoint| before.and_then(|known| known.get(by)).copied().unwrap_or(0);
    let more = |by: &Endpoint, count: u64| of_request(count, b) - of_request(was(by), a);
    let each = now.iter().map(|(by, count)| (by, *count, more(by, *count)));
    let (by, count, growth) = each.max_by(|one, other| one.2.total_cmp(&other.2))?;
    (growth > 0.0).then(|| (by.clone(), was(by), count))
}
