//! What differs between two runs, place by place: each change is beyond chance, and worth
//! saying to those whose requests pass there.

use std::collections::{BTreeMap, BTreeSet};

use stats::{larger_by_chance, normal_quantile, rank_sum};

use super::places::{Endpoint, Passage, Place, Places, Shape, Stay};
use crate::Name;

/// A place that takes longer takes so much of a request's usual latency more, at least.
const WORTH: f64 = 0.1;

/// Requests wait for so much of what a place takes longer, at least: else it is beside them.
const WAITED_FOR: f64 = 0.25;

/// Shares that grow by less are not told.
const WORTH_SHARE: f64 = 0.02;

/// A shape is new if it was so many times rarer before.
const RARER: f64 = 4.0;

/// How likely one change or more is told where nothing differs.
const FALSE: f64 = 0.003;

/// A place takes longer beyond doubt if so many of its requests take longer than any did before.
const BEYOND_ALL: f64 = 0.2;

/// Requests of which that is asked: of fewer, a burst may be as many.
const MANY: usize = 40;

/// Requests at a place of which it could be told that they take longer.
const ENOUGH: usize = 8;

/// Requests that take longer at a place.
#[derive(Debug, Clone)]
pub(super) struct Slower {
    pub(super) place: Place,
    /// Nanoseconds of all requests together.
    pub(super) effect: f64,
    /// Whether that is on the critical path of requests.
    pub(super) is_waited_for: bool,
    /// Nanoseconds of a request that passes, before and after, in the mean.
    pub(super) means: (f64, f64),
    /// Requests that passed.
    pub(super) requests: usize,
    /// The usual latency of such requests before, in nanoseconds.
    pub(super) latency: f64,
}

/// Visits that fail more often.
#[derive(Debug, Clone)]
pub(super) struct Failing {
    pub(super) place: Place,
    pub(super) shares: (f64, f64),
    pub(super) visits: u64,
}

/// Visits of an endpoint that now do what they hardly did before.
#[derive(Debug, Clone)]
pub(super) struct Reshaped {
    pub(super) endpoint: Endpoint,
    pub(super) shape: Shape,
    /// What they leave out of what most did before; nothing: they do other things.
    pub(super) left_out: Vec<Endpoint>,
    pub(super) shares: (f64, f64),
    pub(super) visits: u64,
}

/// All that differs.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) slower: Vec<Slower>,
    pub(super) failing: Vec<Failing>,
    pub(super) reshaped: Vec<Reshaped>,
    /// Who calls whom, as far as both runs have enough requests to tell whether that grew.
    pub(super) edges: BTreeSet<(Name, Name)>,
}

/// The ways from and to a service: how many of them are among those that grew, and how many
/// there are.
pub(super) fn ways_grown(
    service: &Name,
    slower: &[Slower],
    edges: &BTreeSet<(Name, Name)>,
) -> (usize, usize) {
    let its = edges
        .iter()
        .filter(|(from, to)| from == service || to == service);
    let grew = |(from, to): &&(Name, Name)| {
        slower
            .iter()
            .any(|one| matches!(&one.place, Place::Between(a, b) if a == from && b.service == *to))
    };
    (its.clone().filter(grew).count(), its.count())
}

impl Changes {
    /// From `a` to `b`.
    pub(super) fn between(a: &Places, b: &Places) -> Self {
        let empty = Stay::default();
        // Each place is asked whether it is slower and whether it fails more, each endpoint of
        // each thing that it does.
        let shapes: usize = b.shapes.values().map(BTreeMap::len).sum();
        let chance = FALSE / (2 * b.stays.len() + shapes).max(1) as f64;
        let mut changes = Self::default();
        for (place, now) in &b.stays {
            let before = a.stays.get(place).unwrap_or(&empty);
            changes.slower.extend(slower(place, before, now, chance));
            changes.failing.extend(failing(place, before, now, chance));
            if let Place::Between(from, to) = place
                && before.passages.len().min(now.passages.len()) >= ENOUGH
            {
                changes.edges.insert((from.clone(), to.service.clone()));
            }
        }
        let none = BTreeMap::new();
        for (endpoint, now) in &b.shapes {
            let before = a.shapes.get(endpoint).unwrap_or(&none);
            changes
                .reshaped
                .extend(reshaped(endpoint, before, now, chance));
        }
        changes
    }
}

fn slower(place: &Place, before: &Stay, now: &Stay, chance: f64) -> Option<Slower> {
    let spent = |stay: &Stay| -> Vec<f64> { stay.passages.iter().map(|one| one.spent).collect() };
    let (a, b) = (spent(before), spent(now));
    let means = (stats::mean(&a)?, stats::mean(&b)?);
    let longer = means.1 - means.0;
    let latency = usual_latency(&before.passages);
    let waited = |stay: &Stay| stay.passages.iter().map(|one| one.waited).sum::<f64>();
    let waited = waited(now) / b.len() as f64 - waited(before) / a.len() as f64;
    // Most places end here, which spares them a rank sum.
    if longer < latency * WORTH {
        return None;
    }
    let differs = rank_sum(&a, &b)? > -normal_quantile(chance) || exceeds(&a, &b, chance);
    differs.then(|| Slower {
        place: place.clone(),
        effect: longer * b.len() as f64,
        is_waited_for: waited >= longer * WAITED_FOR,
        means,
        requests: b.len(),
        latency,
    })
}

/// Whether many of `b` are above all of `a`: a fault that set in midway is no burst.
/// By chance the largest of both come all from `b` as often as draws without putting back do.
fn exceeds(a: &[f64], b: &[f64], chance: f64) -> bool {
    let most = a.iter().copied().fold(0.0, f64::max);
    let beyond = b.iter().filter(|value| **value > most).count();
    let drawn = (0..beyond).map(|at| (b.len() - at) as f64 / (a.len() + b.len() - at) as f64);
    a.len().min(b.len()) >= MANY
        && beyond as f64 >= b.len() as f64 * BEYOND_ALL
        && drawn.product::<f64>() < chance
}

fn usual_latency(passages: &[Passage]) -> f64 {
    let mut all: Vec<f64> = passages.iter().map(|one| one.latency).collect();
    all.sort_by(f64::total_cmp);
    stats::nearest_rank(&all, 0.5).unwrap_or(0.0)
}

/// What visits of a shape leave out of the most frequent shape that has all of theirs and more.
fn left_out(shape: &Shape, before: &BTreeMap<Shape, u64>) -> Vec<Endpoint> {
    let has_all = |other: &Shape| shape.below.iter().all(|one| other.below.contains(one));
    let longer = before
        .iter()
        .filter(|(other, _)| other.below.len() > shape.below.len() && has_all(other));
    let usual = longer.max_by_key(|(_, count)| **count);
    let left = usual.into_iter().flat_map(|(usual, _)| &usual.below);
    left.filter(|one| !shape.below.contains(one))
        .cloned()
        .collect()
}

fn share((some, all): (u64, u64)) -> f64 {
    some as f64 / all.max(1) as f64
}

fn failing(place: &Place, before: &Stay, now: &Stay, chance: f64) -> Option<Failing> {
    let (a, b) = ((before.failed, before.visits), (now.failed, now.visits));
    let shares = (share(a), share(b));
    // What was never there cannot have failed less: all of it that fails is new.
    let a = if before.visits == 0 {
        (0, now.visits)
    } else {
        a
    };
    (shares.1 >= shares.0 + WORTH_SHARE && larger_by_chance(a, b) < chance).then(|| Failing {
        place: place.clone(),
        shares,
        visits: now.visits,
    })
}

fn reshaped(
    endpoint: &Endpoint,
    before: &BTreeMap<Shape, u64>,
    now: &BTreeMap<Shape, u64>,
    chance: f64,
) -> Vec<Reshaped> {
    let (of_a, of_b) = (before.values().sum(), now.values().sum());
    if of_a == 0 {
        return Vec::new();
    }
    let new = now.iter().filter_map(|(shape, count)| {
        let a = (before.get(shape).copied().unwrap_or(0), of_a);
        let b = (*count, of_b);
        let shares = (share(a), share(b));
        let is_new = shares.1 >= WORTH_SHARE && shares.0 * RARER <= shares.1;
        (is_new && larger_by_chance(a, b) < chance).then(|| Reshaped {
            endpoint: endpoint.clone(),
            shape: shape.clone(),
            left_out: left_out(shape, before),
            shares,
            visits: of_b,
        })
    });
    new.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_beyond_all_are_no_chance_only_if_chance_seldom_makes_them() {
        let a: Vec<f64> = (0..40).map(f64::from).collect();
        let beyond = |many: usize| -> Vec<f64> {
            let small = a.iter().copied().take(40 - many);
            small.chain((0..many).map(|at| 100.0 + at as f64)).collect()
        };
        // The 8 largest of 80 come all from one half once in 377 times, the 20 largest once in
        // 25 million.
        let (eight, twenty) = (beyond(8), beyond(20));
        assert!(exceeds(&a, &eight, 1.0 / 376.0));
        assert!(!exceeds(&a, &eight, 1.0 / 378.0));
        assert!(exceeds(&a, &twenty, 1e-6));
        assert!(!exceeds(&a, &twenty, 1e-8));
        assert!(!exceeds(&a, &beyond(7), 1.0), "too small a share");
    }
}
