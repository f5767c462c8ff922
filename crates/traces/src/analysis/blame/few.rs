//! Requests of one kind, a few of which take longer than those before.
//!
//! A fault of one request in 25 moves no median and hardly a rank. So it is asked, of each entry by
//! itself, whether more requests than before are beyond what next to none was: Fisher's exact
//! test, with Holm's correction for all entries that are asked. Requests that follow each other
//! count once, for a burst is one event. What those requests take more is then laid to the place
//! that has the most of it on their critical paths.

use std::collections::{BTreeMap, BTreeSet};

use stats::{holm, larger_by_chance};

use super::often::{self, MoreVisits};
use super::places::{Endpoint, Kind, Place, PlaceActivity, Request, Visits};
use crate::Name;

/// Fewest requests of an entry before: of fewer, the largest says little.
const ENOUGH: usize = 40;

/// The slowest of so many before are what is usual at most; else the slowest of all.
const USUAL: usize = 100;

/// Shares that grow by less are not told.
const WORTH: f64 = 0.02;

/// A service is named if it has so much of what slow requests take more.
const HELD: f64 = 0.5;

/// How many standard deviations more give what is seen in four of five cases.
const POWER: f64 = 0.84;

/// A few requests of an entry take longer.
#[derive(Debug, Clone)]
pub(super) struct SlowMinority {
    pub(super) entry: Entry,
    /// Beyond `beyond`, before and after.
    pub(super) shares: (f64, f64),
    /// Nanoseconds.
    pub(super) beyond: f64,
    /// Requests of the entry.
    requests: usize,
    /// What a slow one takes more than the mean before.
    pub(super) held: Held,
}

impl SlowMinority {
    /// Requests that are slow, beyond those that were.
    pub(super) fn more(&self) -> f64 {
        (self.shares.1 - self.shares.0) * self.requests as f64
    }

    /// What all of them lost, in nanoseconds.
    pub(super) fn lost(&self) -> f64 {
        self.more() * self.held.of_service
    }
}

/// Where requests entered, and to whom a gateway handed them on, if it names all alike.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    endpoint: Endpoint,
    handed_to: Option<Endpoint>,
}

impl Entry {
    fn of((endpoint, handed_to): Kind<'_>) -> Self {
        Self {
            endpoint: endpoint.clone(),
            handed_to: handed_to.cloned(),
        }
    }

    /// What follows "requests to".
    pub(super) fn named(&self) -> String {
        let Endpoint { service, name } = &self.endpoint;
        let handed_to = self.handed_to.as_ref().map_or_else(String::new, |callee| {
            format!(" that go on to `{}` of `{}`", callee.name, callee.service)
        });
        format!("`{name}` of `{service}`{handed_to}")
    }
}

/// The requests of an entry, in the order of their beginnings.
#[derive(Default)]
pub(super) struct Side {
    pub(super) requests: Vec<usize>,
    pub(super) latencies: Vec<f64>,
}

/// Entries of both sides with enough requests before.
pub(super) fn entries<'v>(a: &'v Visits, b: &'v Visits) -> BTreeMap<Kind<'v>, (Side, Side)> {
    let mut entries: BTreeMap<Kind<'_>, (Side, Side)> = BTreeMap::new();
    for (visits, kinds, is_a) in [(a, a.kinds(b), true), (b, b.kinds(a), false)] {
        let mut order: Vec<(usize, &Request)> = visits.requests.iter().enumerate().collect();
        order.sort_by_key(|(_, one)| one.begin);
        for (at, request) in order {
            let sides = entries.entry(kinds[at]).or_default();
            let side = if is_a { &mut sides.0 } else { &mut sides.1 };
            side.requests.push(at);
            side.latencies.push(request.latency);
        }
    }
    entries.retain(|_, (a, b)| a.requests.len() >= ENOUGH && !b.requests.is_empty());
    entries
}

/// What next to no request before was beyond.
fn thresholds(before: &Side) -> Vec<f64> {
    let mut sorted = before.latencies.clone();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len() - 1;
    let usual = last - sorted.len() / USUAL;
    let mut all = vec![sorted[last]];
    if usual < last {
        all.push(sorted[usual]);
    }
    all
}

/// How many bursts of requests are beyond, of how many requests.
fn bursts(side: &Side, beyond: f64) -> (u64, u64) {
    let is_beyond = |at: usize| side.latencies[at] > beyond;
    let all = side.latencies.len();
    let begins = (0..all).filter(|at| is_beyond(*at) && (*at == 0 || !is_beyond(at - 1)));
    (begins.count() as u64, all as u64)
}

fn share_beyond(side: &Side, beyond: f64) -> f64 {
    let slow = side.latencies.iter().filter(|one| **one > beyond).count();
    slow as f64 / side.latencies.len().max(1) as f64
}

/// Entries of which a few requests take longer, with who is behind it.
pub(super) fn between(a: &Visits, b: &Visits, chance: f64) -> Vec<SlowMinority> {
    let entries = entries(a, b);
    let mut asked = Vec::new();
    for (entry, sides) in &entries {
        for beyond in thresholds(&sides.0) {
            let by_chance = larger_by_chance(bursts(&sides.0, beyond), bursts(&sides.1, beyond));
            asked.push((*entry, sides, beyond, by_chance));
        }
    }
    let found = holm(&asked.iter().map(|one| one.3).collect::<Vec<_>>());
    let mut told: BTreeMap<Kind<'_>, (f64, SlowMinority)> = BTreeMap::new();
    for ((entry, sides, beyond, _), by_chance) in asked.into_iter().zip(found) {
        let shares = (
            share_beyond(&sides.0, beyond),
            share_beyond(&sides.1, beyond),
        );
        if by_chance >= chance || shares.1 < shares.0 + WORTH {
            continue;
        }
        let is_better = told.get(&entry).is_none_or(|(known, _)| by_chance < *known);
        if let Some(held) = held((a, &sides.0), (b, &sides.1), beyond)
            && is_better
        {
            let few = SlowMinority {
                entry: Entry::of(entry),
                shares,
                beyond,
                requests: sides.1.requests.len(),
                held,
            };
            told.insert(entry, (by_chance, few));
        }
    }
    told.into_values().map(|(_, few)| few).collect()
}

/// Where requests spend what they take more than those before.
#[derive(Debug, Clone)]
pub(super) struct Held {
    /// Where its service has the most of that.
    pub(super) place: Place,
    /// All of it, in nanoseconds.
    pub(super) excess: f64,
    /// What of that the place's service has.
    pub(super) of_service: f64,
    /// Who visits the place more often, if those visits take no longer each.
    pub(super) often: Option<MoreVisits>,
}

impl Held {
    /// Who is behind it.
    pub(super) fn service(&self) -> &Name {
        let often = self.often.as_ref();
        often.map_or(self.place.service(), MoreVisits::service)
    }
}

/// `None`: no service has most of it.
fn held((a, before): (&Visits, &Side), (b, now): (&Visits, &Side), beyond: f64) -> Option<Held> {
    let slow = now.requests.iter().zip(&now.latencies);
    let these: BTreeSet<usize> = slow
        .filter(|(_, latency)| **latency > beyond)
        .map(|(at, _)| *at)
        .collect();
    let those: BTreeSet<usize> = before.requests.iter().copied().collect();
    let (slow, usual) = (waited(b, &these), waited(a, &those));
    // All of it, and where the most is.
    type More<'p> = (f64, Option<(&'p Place, f64)>);
    let mut services: BTreeMap<&Name, More<'_>> = BTreeMap::new();
    let mut excess = 0.0;
    for place in slow
        .keys()
        .chain(usual.keys())
        .copied()
        .collect::<BTreeSet<_>>()
    {
        let of = |times: &BTreeMap<&Place, f64>| times.get(place).copied().unwrap_or(0.0);
        let more = of(&slow) - of(&usual);
        excess += more;
        let (sum, most) = services.entry(place.service()).or_default();
        *sum += more;
        if most.is_none_or(|(_, known)| more > known) {
            *most = Some((place, more));
        }
    }
    let (held, most) = services
        .into_values()
        .max_by(|one, other| one.0.total_cmp(&other.0))?;
    let (place, _) = most?;
    (held > excess * HELD && excess > 0.0).then(|| Held {
        place: place.clone(),
        excess,
        of_service: held,
        often: often::of_requests(place, (a, &those), (b, &these)),
    })
}

/// How long these requests wait at each place, in the mean of them, in nanoseconds.
pub(super) fn waited<'v>(
    visits: &'v Visits,
    requests: &BTreeSet<usize>,
) -> BTreeMap<&'v Place, f64> {
    let count = requests.len().max(1) as f64;
    let of_place = |(place, stay): (&'v Place, &'v PlaceActivity)| {
        let its = stay
            .passages
            .iter()
            .filter(|one| requests.contains(&one.request));
        (place, its.map(|one| one.waited).sum::<f64>() / count)
    };
    visits.stays.iter().map(of_place).collect()
}

/// Requests of an entry beyond all before, more than would have been seen, had they not come in so
/// few groups that chance may be why.
#[derive(Debug, Clone)]
pub(super) struct Groups {
    pub(super) entry: Entry,
    /// Slow ones, of how many.
    pub(super) requests: (usize, usize),
    pub(super) groups: u64,
    /// Nanoseconds in the mean, of those before and of the slow ones.
    pub(super) means: (f64, f64),
    /// Who has how much of what a slow one takes more; `None`: nobody has most of it.
    pub(super) held: Option<(Name, f64)>,
    /// What that is, in nanoseconds.
    pub(super) excess: f64,
}

/// Likewise, of each entry.
pub(super) fn in_groups(a: &Visits, b: &Visits, chance: f64) -> Vec<Groups> {
    let visible = visible(a, b, chance);
    let entries = entries(a, b);
    let groups = entries.iter().filter_map(|(entry, (before, now))| {
        let entry = Entry::of(*entry);
        let seen_from = visible.iter().find(|one| one.entry == entry)?;
        let beyond = before.latencies.iter().copied().fold(0.0, f64::max);
        let slow: Vec<f64> = now
            .latencies
            .iter()
            .copied()
            .filter(|one| *one > beyond)
            .collect();
        if share_beyond(now, beyond) < seen_from.share {
            return None;
        }
        let means = (stats::mean(&before.latencies)?, stats::mean(&slow)?);
        let held = held((a, before), (b, now), beyond);
        let who = held.map(|held| (held.service().clone(), held.of_service));
        Some(Groups {
            entry,
            requests: (slow.len(), now.latencies.len()),
            groups: bursts(now, beyond).0,
            means,
            held: who,
            excess: means.1 - means.0,
        })
    });
    groups.collect()
}

/// From which share on requests that are beyond all before would be seen, in four of five cases.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::analysis) struct Visible {
    entry: Entry,
    /// Requests of the entry now.
    pub(in crate::analysis) requests: usize,
    /// 0 to 1, and more where nothing would be seen.
    pub(in crate::analysis) share: f64,
}

impl Visible {
    /// What follows "requests to".
    pub(in crate::analysis) fn named(&self) -> String {
        self.entry.named()
    }
}

/// Likewise, of each entry, those with most requests first.
pub(super) fn visible(a: &Visits, b: &Visits, chance: f64) -> Vec<Visible> {
    let entries = entries(a, b);
    let tests: usize = entries
        .values()
        .map(|sides| thresholds(&sides.0).len())
        .sum();
    let chance = chance / tests.max(1) as f64;
    let of_entry = |(entry, (a, b)): (&Kind<'_>, &(Side, Side))| {
        let (of_a, of_b) = (a.requests.len() as u64, b.requests.len() as u64);
        let fewest = (1..=of_b).find(|few| larger_by_chance((0, of_a), (*few, of_b)) < chance);
        let share = fewest.map_or(f64::INFINITY, |few| {
            let few = few as f64;
            (few + POWER * few.sqrt()) / of_b as f64
        });
        Visible {
            entry: Entry::of(*entry),
            requests: b.requests.len(),
            share: share.max(WORTH),
        }
    };
    let mut all: Vec<Visible> = entries.iter().map(of_entry).collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.requests));
    all
}
