//! Where changed places meet.

use std::collections::{BTreeMap, BTreeSet};

use super::changes::{Changes, Reshaped, Slower, ways_grown};
use super::places::Place;
use super::{Culprit, sentences};
use crate::Name;

/// A further service is slow by itself if it has this share of what the first one has.
const WORTH: f64 = 0.3;

/// Of both ends of a call that grew alone, the callee is the likelier one.
const CALLER: f64 = 0.99;

/// What speaks against a service.
#[derive(Default)]
struct Case {
    /// Requests that it cost, or that it made so much slower that it is as if.
    weight: f64,
    lost: f64,
    reasons: Vec<(f64, String)>,
}

impl Case {
    fn add(&mut self, weight: f64, reason: String) {
        self.weight += weight;
        self.reasons.push((weight, reason));
    }
}

/// Everyone who is behind a change, the weightiest first.
pub(super) fn of(changes: &Changes) -> Vec<Culprit> {
    let mut cases: BTreeMap<Name, Case> = BTreeMap::new();
    for failing in &changes.failing {
        // A call that fails while the callee does not is one that the callee does not answer, or
        // that is given up too soon.
        let case = cases.entry(failing.service().clone()).or_default();
        let more = failing.shares.1 - failing.shares.0;
        case.add(more * failing.visits as f64, sentences::failing(failing));
    }
    for reshaped in &changes.reshaped {
        let service = behind(reshaped, changes);
        let last = reshaped.last.as_ref();
        let is_next = reshaped.endpoint.service == service
            || last.is_some_and(|last| last.service == service);
        let more = (reshaped.shares.1 - reshaped.shares.0) * reshaped.visits as f64;
        let case = cases.entry(service).or_default();
        case.weight += more;
        // What is passed on from afar says less of it.
        let rank = if is_next { more } else { more / 2.0 };
        case.reasons.push((rank, sentences::reshaped(reshaped)));
    }
    for (service, often) in more_often(changes, true) {
        let case = cases.entry(service).or_default();
        case.lost += often.iter().map(|one| one.effect).sum::<f64>();
        case.add(weight(&often), sentences::often(&often));
    }
    let waited_for = slow(changes, true);
    // What nobody waits for is told where there is nothing else to tell.
    let is_waited_for = !waited_for.is_empty() || !cases.is_empty() || !changes.few.is_empty();
    let slow = match is_waited_for {
        true => waited_for,
        false => slow(changes, false),
    };
    for (service, slower) in slow {
        let case = cases.entry(service.clone()).or_default();
        case.lost += slower.iter().map(|one| one.effect).sum::<f64>();
        case.add(
            weight(&slower),
            sentences::slower(&service, &slower, changes),
        );
    }
    if !is_waited_for {
        for (service, often) in more_often(changes, false) {
            let case = cases.entry(service).or_default();
            case.lost += often.iter().map(|one| one.effect).sum::<f64>();
            case.add(weight(&often), sentences::often(&often));
        }
    }
    for few in &changes.few {
        let case = cases.entry(few.held.service().clone()).or_default();
        case.lost += few.lost();
        case.add(few.more(), sentences::few(few));
    }
    let mut cases: Vec<_> = cases.into_iter().collect();
    cases.sort_by(|(_, one), (_, other)| other.weight.total_cmp(&one.weight));
    let culprits = cases.into_iter().map(|(service, mut case)| {
        case.reasons.sort_by(|one, other| other.0.total_cmp(&one.0));
        Culprit {
            service: service.to_string(),
            reasons: case.reasons.into_iter().map(|(_, reason)| reason).collect(),
            lost_ns: case.lost as u64,
            is_waited_for,
        }
    });
    culprits.collect()
}

/// Requests that slower places cost, or that those made so much slower that it is as if.
fn weight(slower: &[Slower]) -> f64 {
    let requests = |one: &Slower| (one.effect / one.latency.max(1.0)).min(one.requests as f64);
    slower.iter().map(requests).fold(0.0, f64::max)
}

/// Services that visit others more often, each with the places that take longer by that alone.
fn more_often(changes: &Changes, is_waited_for: bool) -> BTreeMap<Name, Vec<Slower>> {
    let mut services: BTreeMap<Name, Vec<Slower>> = BTreeMap::new();
    let slower = changes.slower.iter();
    for one in slower.filter(|one| one.is_waited_for == is_waited_for) {
        if let Some(often) = &one.often {
            services
                .entry(often.service().clone())
                .or_default()
                .push(one.clone());
        }
    }
    for places in services.values_mut() {
        places.sort_by(|one, other| other.effect.total_cmp(&one.effect));
    }
    services
}

/// Who makes visits end early: the callee of the last call, if it changed itself or if others
/// stop after calls to it too; else whoever was visited. A callee that only ended early itself
/// passes on what another one began.
fn behind(reshaped: &Reshaped, changes: &Changes) -> Name {
    let mut passed = vec![reshaped];
    loop {
        let service = stopper(passed[passed.len() - 1], changes);
        let own = &passed[passed.len() - 1].endpoint.service;
        let is_moved = |place: &Place| matches!(place, Place::Within(at) if at.service == service);
        let by_itself = service == *own
            || changes.slower.iter().any(|one| is_moved(&one.place))
            || changes.failing.iter().any(|one| *one.service() == service);
        let further = changes.reshaped.iter().find(|one| {
            one.endpoint.service == service
                && stopper(one, changes) != service
                && !passed.iter().any(|known| known.endpoint == one.endpoint)
        });
        match further {
            Some(further) if !by_itself => passed.push(further),
            _ => return service,
        }
    }
}

/// Who stops visits, by what is seen of them and of whom they called last.
fn stopper(reshaped: &Reshaped, changes: &Changes) -> Name {
    let own = &reshaped.endpoint.service;
    let last = reshaped.last.as_ref();
    let Some(last) = last.filter(|_| !reshaped.left_out.is_empty()) else {
        return own.clone();
    };
    let callee = &last.service;
    let is_within = |place: &Place| matches!(place, Place::Within(at) if at.service == *callee);
    let has_changed = changes.slower.iter().any(|one| is_within(&one.place))
        || changes.failing.iter().any(|one| one.service() == callee)
        || changes
            .reshaped
            .iter()
            .any(|one| one.endpoint.service == *callee);
    let stops_there = |one: &&Reshaped| {
        let last = one.last.as_ref();
        !one.left_out.is_empty() && last.is_some_and(|last| last.service == *callee)
    };
    let stops = changes.reshaped.iter().filter(stops_there).count();
    match has_changed || stops > 1 {
        true => callee.clone(),
        false => own.clone(),
    }
}

/// Services at which slower places meet, each with those; the one that explains most first.
fn slow(changes: &Changes, is_waited_for: bool) -> Vec<(Name, Vec<Slower>)> {
    let slower = changes.slower.iter();
    let of_kind = slower.filter(|one| one.is_waited_for == is_waited_for && one.often.is_none());
    let mut left: Vec<Slower> = of_kind.cloned().collect();
    let mut found: Vec<(Name, Vec<Slower>)> = Vec::new();
    let mut first = 0.0;
    while let Some((service, score)) = strongest(&left, &changes.edges) {
        if score < first * WORTH {
            break;
        }
        first = f64::max(first, score);
        let (mut its, others): (Vec<_>, Vec<_>) = left
            .into_iter()
            .partition(|one| touches(&one.place, &service));
        left = others;
        its.sort_by(|one, other| other.effect.total_cmp(&one.effect));
        found.push((service, its));
    }
    found
}

fn touches(place: &Place, service: &Name) -> bool {
    match place {
        Place::Within(at) => at.service == *service,
        Place::Between(from, to) => from == service || to.service == *service,
    }
}

/// The service that has the most of what grew, where calls count by the share of the service's
/// edges that grew with them.
fn strongest(slower: &[Slower], edges: &BTreeSet<(Name, Name)>) -> Option<(Name, f64)> {
    let mut scores: BTreeMap<&Name, f64> = BTreeMap::new();
    for one in slower {
        match &one.place {
            Place::Within(at) => *scores.entry(&at.service).or_default() += one.effect,
            Place::Between(from, to) => {
                for (end, times) in [(from, CALLER), (&to.service, 1.0)] {
                    let (grown, all) = ways_grown(end, slower, edges);
                    let share = grown as f64 / all.max(1) as f64;
                    *scores.entry(end).or_default() += one.effect * share * times;
                }
            }
        }
    }
    let best = scores
        .into_iter()
        .max_by(|one, other| one.1.total_cmp(&other.1))?;
    Some((best.0.clone(), best.1))
}
